//! The assistant masks of an independent oracle, for every template that marks nothing itself; and the generation spans
//! of templates that do, against the masks of their twins that do not.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use tokentape::mask::{AssistantSpans, Masker};
use tokentape::message::Data;
use tokentape::template::{RenderOptions, RenderedText, Template};

use crate::corpus::{self, Case};

/// The special tokens that the corpus is rendered with, also where a conversation is rendered without them.
fn special_tokens(cases: &HashMap<String, Case>) -> Arc<[(Arc<str>, Data)]> {
    cases["01_user"].options.special_tokens.clone()
}

fn text<'a>(record: &'a Data, name: &str) -> &'a str {
    record.get(name).and_then(Data::as_text).unwrap_or_else(|| panic!("no {name}"))
}

fn number(value: &Data) -> usize {
    match value {
        Data::Int(number) => *number as usize,
        _ => panic!("{value:?} is no number"),
    }
}

/// `(message, spans in characters, flags)`.
type Expected = (usize, Vec<(usize, usize)>, Vec<String>);

fn expected(message: &Data) -> Expected {
    let items = |name| message.get(name).and_then(Data::as_items).unwrap();
    let pair = |span: &Data| (number(&span.as_items().unwrap()[0]), number(&span.as_items().unwrap()[1]));
    let flags = items("flags").iter().map(|flag| flag.as_text().unwrap().to_owned()).collect();
    (number(message.get("i").unwrap()), items("spans").iter().map(pair).collect(), flags)
}

fn found(assistant: &AssistantSpans, text: &str) -> Expected {
    let characters = |byte: u32| text[..byte as usize].chars().count();
    let spans = assistant.spans.iter().map(|span| (characters(span.start), characters(span.end))).collect();
    (assistant.message as usize, spans, assistant.flags.iter().map(|flag| flag.name().to_owned()).collect())
}

#[test]
fn every_mask_agrees_with_the_oracle() {
    let Some(folder) = corpus::folder() else { return };
    let cases = corpus::cases(&folder);
    let special = special_tokens(&cases);
    let mut maskers: HashMap<String, Masker> = HashMap::new();
    let (mut count, mut wrong) = (0, Vec::new());
    for line in corpus::lines(&folder.join("masks.jsonl.gz")) {
        let record = Data::from_json(&line).unwrap();
        let (name, id) = (text(&record, "t"), text(&record, "c"));
        let masker = maskers.entry(name.to_owned()).or_insert_with(|| {
            Masker::new(Template::compile(&corpus::source(&folder, name)).unwrap(), special.clone())
        });
        let Case { conversation, options } = &cases[id];
        let options = RenderOptions { add_generation_prompt: false, ..options.clone() };
        count += 1;
        let rendered = match masker.template().render(conversation, &options) {
            Ok(rendered) => rendered,
            Err(error) => {
                wrong.push(format!("{name} {id}: {error}"));
                continue;
            }
        };
        let assistants = masker.assistant_spans(conversation, &options, &rendered);
        let found: Vec<Expected> = assistants.iter().map(|assistant| found(assistant, &rendered.text)).collect();
        let wanted: Vec<Expected> =
            record.get("messages").and_then(Data::as_items).unwrap().iter().map(expected).collect();
        if found != wanted {
            wrong.push(format!("{name} {id}:\n  found    {found:?}\n  expected {wanted:?}"));
        }
    }
    println!("{count} masks, {} differ", wrong.len());
    let shown = wrong.len().min(20);
    assert!(count > 0 && wrong.is_empty(), "{} of {count} differ\n{}", wrong.len(), wrong[..shown].join("\n"));
}
