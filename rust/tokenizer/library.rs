//! The `tokenizers` library's object from a file that is parsed already.
//!
//! *Invariant*: it is the object that the library's own loading gives. What that would refuse, or what is not certain to
//! be the same, is left to it.
//!
//! *Measured*: the library reads a model into a tree of JSON values, copies that, and reads the copy: two thirds of the
//! time of its loading. Its builder takes the vocabulary and the merges as they are.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::{AddedToken, Tokenizer as Library};

use super::file::{File, Model};

/// An added token as a file has it. The library gives the id by itself, but wants one to be there.
#[derive(Deserialize)]
struct Added {
    #[serde(rename = "id")]
    _id: u32,
    #[serde(flatten)]
    token: AddedToken,
}

/// The library's object of a file; an error says no more than that the library should load it by itself.
pub(super) fn of(file: &File<'_>) -> tokenizers::Result<Library> {
    let mut rest = file.rest.clone();
    let added = rest.remove("added_tokens").map_or_else(|| Ok(Vec::new()), serde_json::from_value::<Vec<Added>>)?;
    let mut library = without_model(rest)?;
    // Added tokens take their ids from the model, so it comes first.
    library.with_model(bpe(&file.model)?);
    library.add_tokens(added.into_iter().map(|added| added.token))?;
    Ok(library)
}

/// The object with a model that knows nothing.
fn without_model(mut rest: Map<String, Value>) -> tokenizers::Result<Library> {
    rest.insert("model".to_owned(), json!({"type": "BPE", "vocab": {}, "merges": []}));
    Library::from_bytes(serde_json::to_string(&rest)?)
}

fn bpe(model: &Model<'_>) -> tokenizers::Result<BPE> {
    let vocab: Vocab = model.vocab.0.iter().map(|(text, id)| (text.0.to_string(), *id as u32)).collect();
    let merges = model.merges.iter().map(|merge| (merge.left.0.to_string(), merge.right.0.to_string())).collect();
    let mut bpe = BPE::builder().vocab_and_merges(vocab, merges).build()?;
    bpe.dropout = model.dropout;
    bpe.unk_token.clone_from(&model.unk_token);
    bpe.continuing_subword_prefix.clone_from(&model.continuing_subword_prefix);
    bpe.end_of_word_suffix.clone_from(&model.end_of_word_suffix);
    bpe.fuse_unk = model.fuse_unk.unwrap_or_default();
    bpe.byte_fallback = model.byte_fallback.unwrap_or_default();
    bpe.ignore_merges = model.ignore_merges.unwrap_or_default();
    Ok(bpe)
}
