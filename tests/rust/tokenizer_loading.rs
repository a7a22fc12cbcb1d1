//! The library's object that is built from a parsed file against the one that the library loads by itself.

use serde_json::{Value, json};
use tokenizers::{PostProcessorWrapper, Tokenizer as Library};
use tokentape::tokenizer::Tokenizer;

use crate::corpus;
use crate::tokenizer_fuzz::unpacked;

/// What the library makes of a file, as JSON, without what never matters to ids here.
fn by_library(json: &[u8]) -> Option<String> {
    let mut library = Library::from_bytes(json).ok()?;
    library.with_post_processor(None::<PostProcessorWrapper>);
    library.with_padding(None);
    library.with_truncation(None).ok()?;
    library.to_string(false).ok()
}

/// Both refuse a file, or make the same of it.
fn compare(json: &[u8], what: &str) -> bool {
    let ours = Tokenizer::from_json(json).ok().map(|tokenizer| tokenizer.with_reference_only().to_json().unwrap());
    // Some files make the library panic.
    let theirs = std::panic::catch_unwind(|| by_library(json)).unwrap_or_default();
    assert!(ours == theirs, "{what}\n ours   {ours:?}\n theirs {theirs:?}");
    ours.is_some()
}

#[test]
fn tokenizers_of_the_corpus_are_what_the_library_loads() {
    let Some(folder) = corpus::folder() else { return };
    for name in ["qwen2.5", "gemma3", "mistral-tekken-240911"] {
        assert!(compare(&unpacked(&folder, name), name));
        corpus::report(&format!("{name}: the library's object"));
    }
}

/// A small model of bytes with every part that a file may have.
fn whole() -> Value {
    let letters = tokenizers::pre_tokenizers::byte_level::ByteLevel::alphabet();
    let mut letters: Vec<char> = letters.into_iter().collect();
    letters.sort_unstable();
    let mut vocab: serde_json::Map<String, Value> =
        letters.iter().enumerate().map(|(id, letter)| (letter.to_string(), id.into())).collect();
    for (token, id) in [("th", 256), ("the", 257), ("<unk>", 258), ("<eos>", 259), ("\"\\", 260)] {
        vocab.insert(token.to_owned(), json!(id));
    }
    let level = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true});
    let added = |id: u32, content: &str, special: bool| {
        json!({"id": id, "content": content, "special": special, "normalized": !special, "lstrip": special,
            "rstrip": false, "single_word": false})
    };
    json!({"version": "1.0", "truncation": {"direction": "Right", "max_length": 8, "strategy": "LongestFirst",
        "stride": 0}, "padding": null, "added_tokens": [added(259, "<eos>", true), added(300, "<pad>", true),
        added(7, "e\u{301}", false), added(300, "<pad>", false)], "normalizer": {"type": "NFC"},
        "pre_tokenizer": level, "post_processor": level, "decoder": level,
        "model": {"type": "BPE", "dropout": null, "unk_token": "<unk>", "continuing_subword_prefix": "",
            "end_of_word_suffix": "", "fuse_unk": true, "byte_fallback": false, "ignore_merges": true,
            "vocab": vocab, "merges": [["t", "h"], ["th", "e"], ["\"", "\\"]]}})
}

#[test]
fn a_file_with_any_part_left_out_or_of_another_kind() {
    let whole = whole();
    assert!(compare(whole.to_string().as_bytes(), "whole"));
    let others =
        [json!(null), json!("x"), json!("1.0"), json!(1), json!(0.5), json!(-1), json!([]), json!({}), json!(true)];
    let mut loaded = 0;
    for inside in [false, true] {
        let names: Vec<String> =
            if inside { &whole["model"] } else { &whole }.as_object().unwrap().keys().cloned().collect();
        for name in names {
            for other in std::iter::once(None).chain(others.iter().map(Some)) {
                let mut changed = whole.clone();
                let part = if inside { &mut changed["model"] } else { &mut changed };
                match other {
                    Some(other) => part[&name] = other.clone(),
                    None => _ = part.as_object_mut().unwrap().shift_remove(&name),
                }
                loaded += usize::from(compare(changed.to_string().as_bytes(), &format!("{name}: {other:?}")));
            }
        }
    }
    assert!(loaded > 40, "{loaded}");
}

#[test]
fn merges_and_ids_of_every_spelling() {
    let whole = whole();
    let merges = [
        json!(["t h", "th e"]),
        json!(["#version: 0.2", "t h"]),
        json!(["#versiont h", "t h"]),
        json!([["t", "h"], "th e"]),
        json!([["t", "h", "e"]]),
        json!([["t"]]),
        json!(["t h e"]),
        json!(["t"]),
        json!([["t", "h"], ["t", "h"]]),
        json!([["t", "x"]]),
        json!([["t", 7]]),
    ];
    for merges in merges {
        let mut changed = whole.clone();
        changed["model"]["merges"] = merges.clone();
        compare(changed.to_string().as_bytes(), &merges.to_string());
    }
    for id in [json!(-1), json!(1 << 21), json!(1_u64 << 33), json!(1.0), json!("1"), json!(null)] {
        let mut changed = whole.clone();
        changed["model"]["vocab"]["zz"] = id.clone();
        compare(changed.to_string().as_bytes(), &format!("a token with the id {id}"));
        let mut changed = whole.clone();
        changed["added_tokens"][0]["id"] = id.clone();
        compare(changed.to_string().as_bytes(), &format!("an added token with the id {id}"));
    }
    for flag in ["id", "content", "special", "normalized", "lstrip"] {
        let mut changed = whole.clone();
        changed["added_tokens"][1].as_object_mut().unwrap().shift_remove(flag);
        assert!(!compare(changed.to_string().as_bytes(), flag));
    }
}

#[test]
fn what_is_there_twice() {
    let text = whole().to_string();
    let twice = [
        (r#""version":"1.0","#, r#""version":"1.0","version":"1.0","#),
        (r#""normalizer":"#, r#""normalizer":null,"normalizer":"#),
        (r#""model":"#, r#""model":{"type":"BPE","vocab":{"a":0},"merges":[]},"model":"#),
        (r#""fuse_unk":"#, r#""fuse_unk":false,"fuse_unk":"#),
        (r#""vocab":{"#, r#""vocab":{"the":3,"#),
        (r#""merges":"#, r#""merges":[],"merges":"#),
    ];
    for (once, two) in twice {
        assert_eq!(text.matches(once).count(), 1, "{once}");
        compare(text.replace(once, two).as_bytes(), two);
    }
}
