//! The corpus of real templates, and how tests read it.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, fs};

use tokentape::message::{Conversation, Data};
use tokentape::template::{Clock, ContinueFinalMessage, RenderOptions, Template};

/// The moment at which the expected texts were made.
pub(crate) const CLOCK: Clock = Clock { year: 2026, month: 11, day: 30, hour: 9, minute: 5, second: 7, microsecond: 0 };

const SPECIAL_TOKENS: [(&str, &str); 4] =
    [("bos_token", "<|bos|>"), ("eos_token", "<|eos|>"), ("unk_token", "<|unk|>"), ("pad_token", "<|pad|>")];

/// The corpus folder. Without one the test is skipped, or fails where `TOKENTAPE_REQUIRE_CORPUS` is set.
pub(crate) fn folder() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus");
    let folder = env::var_os("TOKENTAPE_CORPUS").map_or(beside, PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    assert!(
        env::var_os("TOKENTAPE_REQUIRE_CORPUS").is_none(),
        "no corpus at {}: set TOKENTAPE_CORPUS",
        folder.display()
    );
    report(&format!("no corpus at {}: skipped", folder.display()));
    None
}

/// Says how many records a test ran, also in the file that `TOKENTAPE_RECORDS` names.
#[expect(clippy::print_stdout, reason = "the number of records is a part of the result")]
pub(crate) fn report(line: &str) {
    println!("{line}");
    if let Some(path) = env::var_os("TOKENTAPE_RECORDS") {
        let mut file = fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
        writeln!(file, "rust: {line}").unwrap();
    }
}

/// The lines of a `.jsonl` or `.jsonl.gz` file. Text in them may hold U+2028, so only `\n` ends a line.
pub(crate) fn lines(path: &Path) -> Vec<String> {
    let bytes = fs::read(path).expect("the corpus file");
    let mut text = String::new();
    if path.extension().is_some_and(|extension| extension == "gz") {
        flate2::read::GzDecoder::new(&*bytes).read_to_string(&mut text).expect("gzip of UTF-8");
    } else {
        text = String::from_utf8(bytes).expect("UTF-8");
    }
    text.split('\n').filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// A conversation of the corpus with the settings it is rendered with.
pub(crate) struct Case {
    pub(crate) conversation: Conversation,
    pub(crate) options: RenderOptions,
}

/// The conversations by id, without a generation prompt.
pub(crate) fn cases(folder: &Path) -> HashMap<String, Case> {
    let text = fs::read_to_string(folder.join("conversations.json")).expect("conversations.json");
    let all = Data::from_json(&text).expect("JSON");
    let items = all.as_items().expect("a list");
    items.iter().map(|item| (item.get("id").and_then(Data::as_text).expect("id").to_owned(), case(item))).collect()
}

/// A case from its JSON form.
pub(crate) fn case(item: &Data) -> Case {
    let kwargs = item.get("kwargs").and_then(Data::as_dict).cloned().unwrap_or_default();
    let arguments: Vec<(Arc<str>, Data)> = kwargs
        .iter()
        .filter(|(key, _)| key.as_text() != Some("__no_special__"))
        .map(|(key, value)| (key.as_text().expect("text").into(), value.clone()))
        .collect();
    let special: Vec<(Arc<str>, Data)> = match kwargs.get("__no_special__") {
        Some(Data::Bool(true)) => Vec::new(),
        _ => SPECIAL_TOKENS.iter().map(|(name, value)| (Arc::from(*name), Data::from(*value))).collect(),
    };
    let optional = |name| item.get(name).filter(|value| **value != Data::Null).cloned();
    let conversation = Conversation {
        messages: item.get("messages").and_then(Data::as_items).unwrap_or_default().to_vec(),
        tools: optional("tools"),
        documents: optional("documents"),
        arguments,
    };
    let continue_final_message = match item.get("continue_final_message") {
        Some(Data::Bool(true)) => ContinueFinalMessage::Content,
        Some(Data::Text(field)) => ContinueFinalMessage::Field(field.clone()),
        _ => ContinueFinalMessage::No,
    };
    let add_generation_prompt = item.get("add_generation_prompt") == Some(&Data::Bool(true));
    let options = RenderOptions {
        add_generation_prompt,
        continue_final_message,
        special_tokens: special.into(),
        now: Some(CLOCK),
        ..RenderOptions::default()
    };
    Case { conversation, options }
}

/// A template of the corpus, with its line ends as they are in the file.
pub(crate) fn source(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join("templates").join(name)).expect("a template")
}

/// The compiled templates by name, each compiled once.
#[derive(Default)]
pub(crate) struct Templates(HashMap<String, tokentape::Result<Template>>);

impl Templates {
    pub(crate) fn get(&mut self, folder: &Path, name: &str) -> &tokentape::Result<Template> {
        self.0.entry(name.to_owned()).or_insert_with(|| Template::compile(&source(folder, name)))
    }
}
