//! Generated texts through the tokenizer and through the `tokenizers` library: no id and no start may differ.
//!
//! The long run: `TOKENTAPE_FUZZ_STRINGS=200000 cargo test --release --test rust -- --ignored tokenizer_fuzz`.

use std::io::BufReader;
use std::path::Path;

use serde_json::{Value, json};
use tokenizers::Tokenizer as Library;
use tokentape::tokenizer::Tokenizer;

use crate::corpus;
use crate::texts::Texts;

const NAMES: [&str; 9] =
    ["qwen3", "qwen2.5", "llama3", "llama3.1", "llama3.2", "deepseek-v3", "gemma3", "gpt-oss", "mistral-tekken-240911"];

/// A `tokenizer.json` of the corpus.
pub(crate) fn unpacked(folder: &Path, name: &str) -> Vec<u8> {
    let file = std::fs::File::open(folder.join("tokenizers").join(name).join("tokenizer.json.xz")).unwrap();
    let mut json = Vec::new();
    lzma_rs::xz_decompress(&mut BufReader::new(file), &mut json).unwrap();
    json
}

/// The library as loaded, and the tokenizer with and without its fast path.
struct Pair {
    library: Library,
    fast: Tokenizer,
    reference: Tokenizer,
    contents: Vec<String>,
}

impl Pair {
    fn new(json: &[u8]) -> Self {
        let fast = Tokenizer::from_json(json).unwrap();
        let contents = fast.added_tokens().iter().map(|token| token.content.clone()).collect();
        let reference = Tokenizer::from_json(json).unwrap().with_reference_only();
        Self { library: Library::from_bytes(json).unwrap(), fast, reference, contents }
    }

    fn compare(&self, text: &str) {
        let expected: Vec<i32> =
            self.library.encode_fast(text, false).unwrap().get_ids().iter().map(|id| *id as i32).collect();
        let ids = self.fast.encode(text).unwrap();
        assert!(ids == expected, "{text:?}\n ours   {ids:?}\n theirs {expected:?}");
        let ours = self.fast.encode_with_offsets(text).unwrap();
        let theirs = self.reference.encode_with_offsets(text).unwrap();
        assert!(ours == theirs, "{text:?}\n ours   {ours:?}\n theirs {theirs:?}");
        // The reference path looks for guarded tokens as they are spelt: that is the same where nothing is normalised.
        if text.is_ascii() {
            let whole = 0..text.len() as u32;
            assert_eq!(self.fast.encode_guarded(text, std::slice::from_ref(&whole)).unwrap(), ours, "{text:?}");
            let [ours, theirs] = [&self.fast, &self.reference].map(|path| path.encode_guarded(text, &[]).unwrap());
            assert_eq!(ours, theirs, "{text:?}");
        }
    }

    fn compare_many(&self, seed: u64, count: usize) {
        let mut texts = Texts::new(seed, &self.contents);
        for _ in 0..count {
            self.compare(&texts.next());
        }
    }
}

fn run(count: usize, longest: usize) {
    let Some(folder) = corpus::folder() else { return };
    for (seed, name) in NAMES.iter().enumerate() {
        let pair = Pair::new(&unpacked(&folder, name));
        assert!(pair.fast.engine().is_fast(), "{name}: {}", pair.fast.engine());
        pair.compare_many(seed as u64, count);
        for text in Texts::long(longest) {
            pair.compare(&text);
        }
        corpus::report(&format!("{name}: {count} texts, {}", pair.fast.engine()));
    }
}

#[test]
fn the_tokenizers_of_the_corpus() {
    run(250, 3_000);
}

#[test]
#[ignore = "long: 200,000 texts for each tokenizer of the corpus"]
fn the_tokenizers_of_the_corpus_at_length() {
    let count = std::env::var("TOKENTAPE_FUZZ_STRINGS").ok().and_then(|count| count.parse().ok());
    run(count.unwrap_or(200_000), 100_000);
}

/// A small byte-level model, learnt from a few lines.
pub(crate) fn small_model() -> Value {
    use tokenizers::models::bpe::{BPE, BpeTrainer};
    use tokenizers::pre_tokenizers::byte_level::ByteLevel;
    let level = ByteLevel::new(false, false, true);
    let mut library = Library::new(BPE::default());
    library.with_pre_tokenizer(Some(level));
    let mut trainer = BpeTrainer::builder()
        .vocab_size(400)
        .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
        .show_progress(false)
        .build()
        .into();
    train(&mut library, &mut trainer);
    serde_json::from_str(&library.to_string(false).unwrap()).unwrap()
}

fn train(library: &mut Library, trainer: &mut tokenizers::models::TrainerWrapper) {
    let lines =
        (0..40).map(|line| format!("the tool is called {line} times, and then the answer is {} <x>\n", line * 7));
    library.train(trainer, lines).unwrap();
}

pub(crate) fn with(model: &Value, changes: &[(&str, Value)]) -> Vec<u8> {
    let mut other = model.clone();
    for (key, value) in changes {
        other[*key] = value.clone();
    }
    other.to_string().into_bytes()
}

#[test]
fn every_combination_of_flags() {
    let model = small_model();
    for flags in 0..32_u32 {
        let token = |id: u32, content: &str, flags: u32| {
            json!({"id": id, "content": content, "special": flags & 1 != 0, "normalized": flags & 2 != 0,
                "lstrip": flags & 4 != 0, "rstrip": flags & 8 != 0, "single_word": flags & 16 != 0})
        };
        let other = flags.wrapping_mul(7) + 3;
        let added = json!([
            token(400, "<tool>", flags),
            token(401, "e\u{301}nd", other),
            token(402, "\n\n", flags),
            token(403, "<tool", other)
        ]);
        for normalizer in [Value::Null, json!({"type": "NFC"})] {
            let pair = Pair::new(&with(&model, &[("added_tokens", added.clone()), ("normalizer", normalizer)]));
            assert!(pair.fast.engine().is_fast(), "{}", pair.fast.engine());
            pair.compare_many(u64::from(flags), 150);
        }
    }
}

#[test]
fn every_pre_tokenizer_and_normalizer_is_exact_or_left_to_the_reference() {
    let model = small_model();
    let level = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false});
    let split = |pattern: Value, behavior: &str, invert: bool| {
        json!({"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}, level]})
    };
    let splits = [
        split(json!({"Regex": r"\w+|\s"}), "Isolated", false),
        split(json!({"Regex": r"\w+|\s"}), "Removed", true),
        split(json!({"Regex": r"\s+"}), "Removed", false),
        split(json!({"String": "e"}), "Isolated", false),
        split(json!({"String": "e"}), "MergedWithPrevious", false),
        json!({"type": "Whitespace"}),
        json!({"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": true}, level]}),
        json!({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true}),
    ];
    let normalizers = [
        json!(null),
        json!({"type": "NFKC"}),
        json!({"type": "Lowercase"}),
        json!({"type": "NFD"}),
        json!({"type": "Prepend", "prepend": "_"}),
        json!({"type": "Strip", "strip_left": true, "strip_right": false}),
    ];
    for (seed, split) in splits.iter().enumerate() {
        for normalizer in &normalizers {
            let pair =
                Pair::new(&with(&model, &[("pre_tokenizer", split.clone()), ("normalizer", normalizer.clone())]));
            pair.compare_many(seed as u64, 60);
        }
    }
}

/// The layout of Llama 2: `▁` for spaces, bytes for what is no token.
#[test]
fn byte_fallback() {
    use tokenizers::models::bpe::{BPE, BpeTrainer};
    let mut library = Library::new(BPE::default());
    let steps = json!([{"type": "Prepend", "prepend": "▁"},
        {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]);
    let normalizer: tokenizers::NormalizerWrapper = serde_json::from_value(json!({"type": "Sequence",
        "normalizers": steps}))
    .unwrap();
    library.with_normalizer(Some(normalizer)).unwrap();
    train(&mut library, &mut BpeTrainer::builder().vocab_size(300).show_progress(false).build().into());
    let mut model: Value = serde_json::from_str(&library.to_string(false).unwrap()).unwrap();
    let vocab = model["model"]["vocab"].as_object_mut().unwrap();
    for byte in 0..256 {
        vocab.insert(format!("<0x{byte:02X}>"), json!(300 + byte));
    }
    vocab.insert("<unk>".to_owned(), json!(556));
    model["model"]["byte_fallback"] = json!(true);
    model["model"]["unk_token"] = json!("<unk>");
    model["model"]["fuse_unk"] = json!(true);
    let added = json!([{"id": 556, "content": "<unk>", "special": true, "normalized": false, "lstrip": false,
        "rstrip": false, "single_word": false}]);
    for normalizer in [model["normalizer"].clone(), steps[1].clone()] {
        let pair = Pair::new(&with(&model, &[("added_tokens", added.clone()), ("normalizer", normalizer)]));
        assert!(pair.fast.engine().is_fast(), "{}", pair.fast.engine());
        pair.compare_many(5, 1_500);
    }
}

#[test]
fn other_models_use_the_reference() {
    use tokenizers::models::unigram::{Unigram, UnigramTrainer};
    use tokenizers::models::wordlevel::{WordLevel, WordLevelTrainer};
    use tokenizers::models::wordpiece::{WordPiece, WordPieceTrainer};
    let mut unigram = Library::new(Unigram::default());
    let trainer = UnigramTrainer::builder()
        .vocab_size(80)
        .show_progress(false)
        .unk_token(Some("<unk>".into()))
        .special_tokens(vec![tokenizers::AddedToken::from("<unk>", true)])
        .build()
        .unwrap();
    train(&mut unigram, &mut trainer.into());
    let word_level = WordLevel::builder().unk_token("[UNK]".into()).build().unwrap();
    let mut words = Library::new(word_level);
    words.with_pre_tokenizer(Some(tokenizers::pre_tokenizers::whitespace::Whitespace {}));
    let unknown = || vec![tokenizers::AddedToken::from("[UNK]", true)];
    let trainer =
        WordLevelTrainer::builder().vocab_size(80).show_progress(false).special_tokens(unknown()).build().unwrap();
    train(&mut words, &mut trainer.into());
    let mut pieces = Library::new(WordPiece::builder().unk_token("[UNK]".into()).build().unwrap());
    pieces.with_pre_tokenizer(Some(tokenizers::pre_tokenizers::whitespace::Whitespace {}));
    let trainer = WordPieceTrainer::builder().vocab_size(80).show_progress(false).special_tokens(unknown()).build();
    train(&mut pieces, &mut trainer.into());
    for library in [unigram, words, pieces] {
        let pair = Pair::new(library.to_string(false).unwrap().as_bytes());
        assert!(!pair.fast.engine().is_fast());
        pair.compare_many(9, 300);
    }
}
