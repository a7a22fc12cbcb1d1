//! Text to ids and back, exactly as the tokenizer's own library does it.
//!
//! *Invariant*: ids equal those of the `tokenizers` library for the same `tokenizer.json` with
//! `add_special_tokens=False`, for every text; or an error is raised. Chat templates print their own special tokens, so
//! none is ever added here.

mod added;
mod bpe;
mod bytes;
mod cache;
mod compiled;
mod decode;
mod engine;
mod fast;
mod file;
mod key;
mod lane;
mod later;
mod library;
mod line;
mod load;
mod merges;
mod normalize;
mod output;
mod pieces;
mod prefetch;
mod reference;
mod release;
mod segments;
mod selfcheck;
mod spaces;
mod split;
mod store;
mod stored;
mod trie;
mod vocab;
mod whole;

use std::ops::Range;
use std::sync::{Arc, OnceLock};

pub use self::added::AddedToken;
use self::added::Literal;
use self::bytes::TokenBytes;
pub use self::decode::TextStream;
pub use self::engine::Engine;
use self::fast::Fast;
use self::later::Later;
pub use self::later::Shared;
use self::pieces::Pieces;
pub use self::store::Store;
use crate::{Error, ErrorKind, Result, TokenId};

/// The ids of a text, and where each token begins in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Encoded {
    /// The ids.
    pub ids: Vec<TokenId>,
    /// For each token, the byte of the text where it begins. A token that begins inside a character has the
    /// character's first byte.
    pub starts: Vec<u32>,
}

/// A tokenizer, shared freely between threads.
#[derive(Debug)]
pub struct Tokenizer {
    fast: Option<Fast>,
    engine: Engine,
    reference: Later,
    vocab_size: usize,
    bytes: TokenBytes,
    /// Laid out when something is first decoded.
    pieces: OnceLock<Option<Pieces>>,
    added: Vec<AddedToken>,
    sha256: String,
}

impl Tokenizer {
    /// Reads the content of a `tokenizer.json`.
    pub fn from_json(json: &[u8]) -> Result<Self> {
        Self::load(&(Arc::new(json.to_vec()) as Shared), None)
    }

    /// Which path encodes, and why.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The same tokenizer without its fast path: the reference itself.
    #[must_use]
    pub fn with_reference_only(mut self) -> Self {
        self.fast = None;
        self.engine = Engine::Reference("asked for".to_owned());
        self
    }

    /// The ids of a text.
    pub fn encode(&self, text: &str) -> Result<Vec<TokenId>> {
        match &self.fast {
            Some(fast) => {
                let mut out = Encoded::default();
                fast.encode::<false>(text, Literal::All, &mut out)?;
                Ok(out.ids)
            }
            None => self.reference.get()?.encode(text),
        }
    }

    /// The ids of a text, with the byte where each begins.
    pub fn encode_with_offsets(&self, text: &str) -> Result<Encoded> {
        match &self.fast {
            Some(fast) => {
                let mut out = Encoded::default();
                fast.encode::<true>(text, Literal::All, &mut out)?;
                Ok(out)
            }
            None => self.reference.get()?.encode_with_offsets(text),
        }
    }

    /// The ids of a text in which an added token counts only where its spelling lies wholly inside one of the `literal`
    /// ranges of bytes (sorted, disjoint). Any other match is encoded by itself as plain text, and hides no token that
    /// lies inside a range.
    pub fn encode_guarded(&self, text: &str, literal: &[Range<u32>]) -> Result<Encoded> {
        match &self.fast {
            Some(fast) => {
                let mut out = Encoded::default();
                fast.encode::<true>(text, Literal::inside(literal), &mut out)?;
                Ok(out)
            }
            None => self.reference.get()?.encode_guarded(text, literal),
        }
    }

    /// The text of ids: bytes that are no UTF-8 become U+FFFD.
    pub fn decode(&self, token_ids: &[TokenId], skip_special_tokens: bool) -> Result<String> {
        let mut stream = TextStream::new(skip_special_tokens);
        let mut text = stream.push(self, token_ids)?;
        text.push_str(&stream.finish(self)?);
        Ok(text)
    }

    /// As [`Tokenizer::decode`], by the reference.
    fn decode_whole(&self, token_ids: &[TokenId], skip_special_tokens: bool) -> Result<String> {
        self.reference.get()?.decode(token_ids, skip_special_tokens)
    }

    /// Refuses ids that no token has; the first of `token_ids` is the token `first` to the caller.
    fn check_ids(&self, token_ids: &[TokenId], first: usize) -> Result<()> {
        match token_ids.iter().position(|id| !self.has(*id)) {
            None => Ok(()),
            Some(index) => Err(failure(format!(
                "token {}: the tokenizer has no token with the id {}; it has ids from 0 to {}",
                first + index,
                token_ids[index],
                self.vocab_size().saturating_sub(1)
            ))),
        }
    }

    fn has(&self, id: TokenId) -> bool {
        self.pieces().map_or_else(|| self.token(id).is_some(), |pieces| pieces.get(id).is_some())
    }

    fn pieces(&self) -> Option<&Pieces> {
        self.pieces.get_or_init(|| Pieces::new(self.reference.get().ok()?, self.vocab_size, &self.bytes)).as_ref()
    }

    /// The bytes that a token stands for, which need not be whole characters. An added token stands for its content.
    pub fn token_bytes(&self, id: TokenId) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        self.push_token_bytes(id, &mut bytes).then_some(bytes)
    }

    /// Adds the bytes that a token stands for; false if there is no token with the id.
    pub(crate) fn push_token_bytes(&self, id: TokenId, out: &mut Vec<u8>) -> bool {
        if let Ok(index) = self.added.binary_search_by_key(&id, |added| added.id) {
            out.extend_from_slice(self.added[index].content.as_bytes());
            return true;
        }
        match self.pieces() {
            Some(pieces) => pieces.get(id).map(|piece| out.extend_from_slice(piece.bytes)).is_some(),
            None => self.token(id).map(|token| out.extend(self.bytes.decode(&token))).is_some(),
        }
    }

    /// The token with an id, as the vocabulary spells it.
    pub fn token(&self, id: TokenId) -> Option<String> {
        self.reference.get().ok()?.token(id)
    }

    /// The id of a token, as the vocabulary spells it.
    pub fn id_of(&self, token: &str) -> Option<TokenId> {
        // A text that is no token at all, or one that was added, is what is mostly asked for, and needs no reference.
        let spelled = |pieces: &Pieces| pieces.may_hold(&self.bytes.decode(token));
        if !self.pieces.get().and_then(Option::as_ref).is_none_or(spelled) {
            return None;
        }
        match self.added.iter().find(|added| added.content == token) {
            Some(added) => Some(added.id),
            None => self.reference.get().ok()?.id_of(token),
        }
    }

    /// One more than the largest id, added tokens included.
    pub fn vocab_size(&self) -> usize {
        self.vocab_size
    }

    /// The added tokens, special ones among them, by id.
    pub fn added_tokens(&self) -> &[AddedToken] {
        &self.added
    }

    /// The SHA-256 of the `tokenizer.json`, in hexadecimal digits.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// The `tokenizer.json` that makes this tokenizer again.
    pub fn to_json(&self) -> Result<String> {
        self.reference.get()?.to_json()
    }
}

/// A [`ErrorKind::Tokenizer`] error.
pub(crate) fn failure(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Tokenizer, message)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by it")]
pub(crate) mod tests {
    use super::compiled::Compiled;
    use super::file::File;
    use super::load::checked;
    use super::*;

    /// A byte-level tokenizer without merges: one token a byte, and two added tokens.
    pub(crate) fn byte_level() -> Tokenizer {
        Tokenizer::from_json(byte_level_json().to_string().as_bytes()).unwrap()
    }

    fn byte_level_json() -> serde_json::Value {
        let alphabet = tokenizers::pre_tokenizers::byte_level::ByteLevel::alphabet();
        let mut letters: Vec<char> = alphabet.into_iter().collect();
        letters.sort_unstable();
        let vocab: serde_json::Map<String, serde_json::Value> =
            letters.iter().enumerate().map(|(id, letter)| (letter.to_string(), id.into())).collect();
        let added = |id: u32, content: &str, special: bool| {
            serde_json::json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": special})
        };
        let level = serde_json::json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false,
            "use_regex": true});
        serde_json::json!({"version": "1.0", "truncation": null, "padding": null,
            "added_tokens": [added(256, "<|end|>", true), added(257, "<think>", false)], "normalizer": null,
            "pre_tokenizer": level, "post_processor": level, "decoder": level,
            "model": {"type": "BPE", "vocab": vocab, "merges": []}})
    }

    #[test]
    fn added_tokens_count_only_in_literal_text() {
        let tokenizer = byte_level();
        let text = "a<|end|><think>b<|end|>";
        let all = tokenizer.encode_with_offsets(text).unwrap();
        assert_eq!(all.starts, [0, 1, 8, 15, 16]);
        let guarded = tokenizer.encode_guarded(text, std::slice::from_ref(&(1..8))).unwrap();
        assert_eq!(guarded.ids[..2], all.ids[..2]);
        assert_eq!(guarded.ids.len(), 2 + "<think>b<|end|>".len());
        assert_eq!(guarded.starts.last(), Some(&(text.len() as u32 - 1)));
        assert_eq!(tokenizer.decode(&guarded.ids, false).unwrap(), text);
    }

    #[test]
    fn a_difference_at_load_switches_the_fast_path_off() {
        let mut json = byte_level_json();
        let vocab = json["model"]["vocab"].as_object_mut().unwrap();
        let (a, b) = (vocab["a"].clone(), vocab["b"].clone());
        vocab.insert("a".to_owned(), b);
        vocab.insert("b".to_owned(), a);
        let tokenizer = byte_level();
        let json = json.to_string();
        let compiled = File::parse(json.as_bytes()).and_then(|file| Compiled::new(&file));
        let fast = compiled.and_then(|compiled| compiled.with_added(tokenizer.added_tokens()));
        let (fast, engine) = checked(fast, tokenizer.reference.get().unwrap(), tokenizer.added_tokens());
        assert!(fast.is_none() && !engine.is_fast());
        let warning = engine.warning().unwrap();
        assert!(warning.starts_with("the fast path differs from the reference at token "), "{warning}");
    }

    #[test]
    fn an_unknown_id_is_refused_by_place() {
        let error = byte_level().decode(&[0, 999], false).unwrap_err();
        assert!(error.message().starts_with("token 1: "), "{error}");
    }

    #[test]
    fn tokens_give_their_bytes() {
        let tokenizer = byte_level();
        let ids = tokenizer.encode("é<think>").unwrap();
        let bytes: Vec<u8> = ids.iter().flat_map(|id| tokenizer.token_bytes(*id).unwrap()).collect();
        assert_eq!(bytes, "é<think>".as_bytes());
    }

    #[test]
    fn a_broken_file_is_an_error() {
        for json in ["", "{", "[]", r#"{"model": {"type": "Nonsense"}}"#] {
            assert_eq!(Tokenizer::from_json(json.as_bytes()).unwrap_err().kind(), ErrorKind::Tokenizer);
        }
    }
}
