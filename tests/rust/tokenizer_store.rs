//! Tokenizers that come from a store against those that were compiled: everything they do is the same.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use tokentape::tokenizer::{Shared, Store, Tokenizer};

use crate::corpus;
use crate::texts::Texts;
use crate::tokenizer_fuzz::unpacked;

/// A store in a new folder.
fn store(name: &str) -> (PathBuf, Store) {
    let folder = std::env::temp_dir().join(format!("tokentape-{name}-{}", std::process::id()));
    _ = fs::remove_dir_all(&folder);
    (folder.clone(), Store::new(folder, "test"))
}

fn same(one: &Tokenizer, other: &Tokenizer, seed: u64) {
    assert_eq!((one.engine(), one.sha256()), (other.engine(), other.sha256()));
    assert_eq!((one.vocab_size(), one.added_tokens()), (other.vocab_size(), other.added_tokens()));
    let contents: Vec<String> = one.added_tokens().iter().map(|token| token.content.clone()).collect();
    let mut texts = Texts::new(seed, &contents);
    for _ in 0..60 {
        let text = texts.next();
        let encoded = one.encode_with_offsets(&text).unwrap();
        assert_eq!(encoded, other.encode_with_offsets(&text).unwrap(), "{text:?}");
        for skip in [false, true] {
            assert_eq!(one.decode(&encoded.ids, skip).unwrap(), other.decode(&encoded.ids, skip).unwrap());
        }
    }
    for id in -1..one.vocab_size() as i32 + 2 {
        assert_eq!(one.token_bytes(id), other.token_bytes(id), "{id}");
    }
}

/// What needs the reference, which is made then.
fn same_spellings(one: &Tokenizer, other: &Tokenizer) {
    for text in ["no such token", "Ġthe", " the", "the", "\n", "Ċ", "▁the", "<0x0A>", "", "<|im_end|>", "<eos>"] {
        assert_eq!(one.id_of(text), other.id_of(text), "{text:?}");
    }
    for id in (0..one.vocab_size() as i32 + 2).step_by(997) {
        let token = one.token(id);
        assert_eq!(token, other.token(id), "{id}");
        assert_eq!(token.as_deref().map(|token| one.id_of(token)), token.as_deref().map(|token| other.id_of(token)));
    }
    assert_eq!(one.to_json().unwrap(), other.to_json().unwrap());
}

fn check(name: &str, json: Vec<u8>) {
    let (folder, store) = store(name);
    let json: Shared = Arc::new(json);
    let compiled = Tokenizer::load(&json, Some(&store)).unwrap();
    let kept: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(kept.len(), 1, "{name}");
    let restored = Tokenizer::load(&json, Some(&store)).unwrap();
    same(&compiled, &restored, 5);
    same_spellings(&compiled, &restored);
    corpus::report(&format!("{name}: restored as compiled"));

    // Half of a file, and one with a changed byte, are as good as none.
    let whole = fs::read(&kept[0]).unwrap();
    fs::write(&kept[0], &whole[..whole.len() / 2]).unwrap();
    same(&compiled, &Tokenizer::load(&json, Some(&store)).unwrap(), 6);
    assert_eq!(fs::read(&kept[0]).unwrap().len(), whole.len(), "it is written again");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_small_tokenizer_is_restored() {
    let letters = tokenizers::pre_tokenizers::byte_level::ByteLevel::alphabet();
    let mut vocab: Vec<String> = letters.into_iter().map(String::from).collect();
    vocab.sort();
    vocab.extend(["th", "the", "Ġthe"].map(str::to_owned));
    let vocab: serde_json::Map<String, serde_json::Value> =
        vocab.into_iter().enumerate().map(|(id, token)| (token, id.into())).collect();
    let added = serde_json::json!({"id": 400, "content": "<eos>", "special": true, "single_word": false,
        "lstrip": true, "rstrip": false, "normalized": true});
    for ignore_merges in [false, true] {
        let level = serde_json::json!({"type": "ByteLevel", "add_prefix_space": false, "use_regex": true,
            "trim_offsets": true});
        let json = serde_json::json!({"added_tokens": [added], "normalizer": {"type": "NFC"}, "pre_tokenizer": level,
            "decoder": level, "model": {"type": "BPE", "vocab": vocab, "ignore_merges": ignore_merges,
            "merges": ["t h", "th e", "Ġ the"]}});
        check("small", json.to_string().into_bytes());
    }
}

#[test]
fn a_tokenizer_that_the_fast_path_does_not_model_is_kept_nowhere() {
    let (folder, store) = store("words");
    let json = serde_json::json!({"model": {"type": "WordLevel", "vocab": {"a": 0, "b": 1}, "unk_token": "b"}});
    let json: Shared = Arc::new(json.to_string().into_bytes());
    for _ in 0..2 {
        assert_eq!(Tokenizer::load(&json, Some(&store)).unwrap().encode("a").unwrap(), [0]);
    }
    assert!(!folder.exists());
}

#[test]
fn tokenizers_of_the_corpus_are_restored() {
    let Some(folder) = corpus::folder() else { return };
    for name in ["qwen3", "llama3", "gemma3"] {
        check(name, unpacked(&folder, name));
    }
}
