//! Added tokens: the entries that are matched in the text before anything else.

use serde::Deserialize;

use super::failure;
use crate::{Result, TokenId};

/// An added token and its flags, as `tokenizer.json` has them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "the five flags are the format's own")]
pub struct AddedToken {
    /// The id.
    pub id: TokenId,
    /// The text that is matched.
    pub content: String,
    /// Left out when special tokens are skipped in decoding.
    #[serde(default)]
    pub special: bool,
    /// White space before a match belongs to it.
    #[serde(default)]
    pub lstrip: bool,
    /// White space after a match belongs to it.
    #[serde(default)]
    pub rstrip: bool,
    /// Matched only where it is no part of a longer word.
    #[serde(default)]
    pub single_word: bool,
    /// Matched in the normalised text, not in the text as it was given.
    #[serde(default)]
    pub normalized: bool,
}

/// The part of `tokenizer.json` that is read here.
#[derive(Deserialize)]
struct File {
    #[serde(default)]
    added_tokens: Vec<AddedToken>,
}

/// The added tokens of a `tokenizer.json`, sorted by id.
pub(super) fn from_json(json: &[u8]) -> Result<Vec<AddedToken>> {
    let file: File = serde_json::from_slice(json)
        .map_err(|error| failure(format!("tokenizer.json: the added tokens cannot be read: {error}")))?;
    let mut added = file.added_tokens;
    added.sort_by_key(|token| token.id);
    Ok(added)
}
