//! Texts that repeat against the tokenizer's own reference, which keeps nothing: what was kept changes no id and no start.

use serde_json::json;
use tokentape::tokenizer::{Encoded, Tokenizer};

use crate::corpus;
use crate::texts::Texts;
use crate::tokenizer_fuzz::{small_model, unpacked, with};

/// Parts of at least so many bytes, that texts are made of again and again.
fn parts(seed: u64, contents: &[String], longest: usize) -> Vec<String> {
    let mut texts = Texts::new(seed, &[]);
    let long = |size: usize, texts: &mut Texts<'_>| {
        let mut text = String::new();
        while text.len() < size {
            text.push_str(&texts.next());
        }
        text
    };
    let mut parts: Vec<String> = [520, 900, 4_000, longest].iter().map(|size| long(*size, &mut texts)).collect();
    // One that differs from another in a byte, one that another begins with, and ones that begin and end as tokens do.
    let two: Vec<String> = ["x", "y"].iter().map(|end| "the tool is called ".repeat(40) + end).collect();
    parts.extend([two[0].clone(), two[1].clone(), two[0].clone() + " and then", format!("  {}\n ", two[0])]);
    parts.extend([format!("\u{301}{}e", two[0]), format!("a{}", two[1]), String::new(), "\n\n".to_owned()]);
    parts.extend(contents.iter().cloned());
    parts
}

/// Texts of three parts each, with added tokens between some of them.
fn texts(seed: u64, contents: &[String], count: usize, longest: usize) -> Vec<String> {
    let parts = parts(seed, contents, longest);
    let mut state = seed;
    let mut draw = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    (0..count)
        .map(|_| {
            let mut text = String::new();
            for _ in 0..3 {
                text.push_str(&parts[draw(parts.len())]);
                if draw(3) > 0 {
                    text.push_str(&contents[draw(contents.len())]);
                }
            }
            text
        })
        .collect()
}

/// Four threads encode the same texts, some at the same moment.
fn check(json: &[u8], seed: u64, count: usize, longest: usize) {
    let fast = Tokenizer::from_json(json).unwrap();
    assert!(fast.engine().is_fast());
    let reference = Tokenizer::from_json(json).unwrap().with_reference_only();
    let contents: Vec<String> = fast.added_tokens().iter().map(|token| token.content.clone()).take(6).collect();
    let texts = texts(seed, &contents, count, longest);
    let whole = |text: &str| reference.encode_with_offsets(text).unwrap();
    let guarded = |text: &str| reference.encode_guarded(text, &[]).unwrap();
    let expected: Vec<(Encoded, Option<Encoded>)> =
        texts.iter().map(|text| (whole(text), text.is_ascii().then(|| guarded(text)))).collect();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (fast, texts, expected) = (&fast, &texts, &expected);
            scope.spawn(move || {
                for round in 0..2 {
                    for step in 0..texts.len() {
                        let index = (step * 7 + thread / 2 + round) % texts.len();
                        let (text, (whole, guarded)) = (&texts[index], &expected[index]);
                        assert_eq!(fast.encode_with_offsets(text).unwrap(), *whole, "{text:?}");
                        assert_eq!(fast.encode(text).unwrap(), whole.ids, "{text:?}");
                        if let Some(guarded) = guarded {
                            assert_eq!(fast.encode_guarded(text, &[]).unwrap(), *guarded, "{text:?}");
                        }
                    }
                }
            });
        }
    });
}

#[test]
fn small_tokenizers_with_flags() {
    let model = small_model();
    for flags in [0, 2, 6, 13, 16, 31] {
        let token = |id: u32, content: &str, flags: u64| {
            json!({"id": id, "content": content, "special": flags & 1 != 0, "normalized": flags & 2 != 0,
                "lstrip": flags & 4 != 0, "rstrip": flags & 8 != 0, "single_word": flags & 16 != 0})
        };
        let added = json!([token(400, "<tool>", flags), token(401, "<x>", flags * 7 + 3)]);
        check(&with(&model, &[("added_tokens", added), ("normalizer", json!({"type": "NFC"}))]), flags, 19, 2_000);
    }
}

#[test]
fn tokenizers_of_the_corpus() {
    let Some(folder) = corpus::folder() else { return };
    for (seed, name) in ["qwen2.5", "gemma3"].iter().enumerate() {
        check(&unpacked(&folder, name), seed as u64, 26, 70_000);
        corpus::report(&format!("{name}: segments that repeat"));
    }
}
