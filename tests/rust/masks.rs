//! The assistant masks of an independent oracle, for every template that marks nothing itself; and the generation spans
//! of templates that do, against the masks of their twins that do not.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use tokentape::mask::{AssistantSpans, Masker};
use tokentape::message::Data;
use tokentape::template::{ContinueFinalMessage, RenderOptions, RenderedText, Template};

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
    corpus::report(&format!("{count} masks, {} differ", wrong.len()));
    let shown = wrong.len().min(20);
    assert!(count > 0 && wrong.is_empty(), "{} of {count} differ\n{}", wrong.len(), wrong[..shown].join("\n"));
}

/// Bytes that the ranges cover.
fn covered(ranges: &[Range<u32>], size: usize) -> Vec<bool> {
    let mut covered = vec![false; size];
    for range in ranges {
        covered[(range.start as usize).min(size)..(range.end as usize).min(size)].fill(true);
    }
    covered
}

/// What a difference between our mask and generation spans is, by place and text; `None` for one that has no name.
fn class(text: &str, run: Range<usize>, is_ours: bool, follows_both: bool, starts: &[u32]) -> Option<&'static str> {
    let piece = &text[run.clone()];
    match piece {
        _ if !is_ours && follows_both && piece.replace("<|eos|>", "").trim().is_empty() => Some("after the turn end"),
        _ if !is_ours && starts.contains(&(run.end as u32)) => Some("header, opener or empty reasoning"),
        _ if !is_ours && follows_both && piece.starts_with("<|") && piece.ends_with('>') => Some("next role"),
        "<|tool_response>" if is_ours => Some("first token of a tool result"),
        _ => None,
    }
}

/// The differences of two masks of one text.
fn differences(
    rendered: &RenderedText,
    ours: &[Range<u32>],
    theirs: &[Range<u32>],
) -> Vec<(usize, Option<&'static str>)> {
    let text = &rendered.text;
    let (mask, tags) = (covered(ours, text.len()), covered(theirs, text.len()));
    let starts: Vec<u32> = ours.iter().map(|span| span.start).collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let same = |byte: &usize| (mask[*byte], tags[*byte]) == (mask[at], tags[at]);
        let end = (at..text.len()).take_while(same).last().unwrap() + 1;
        if mask[at] != tags[at] {
            let follows_both = at > 0 && mask[at - 1] && tags[at - 1];
            found.push((at, class(text, at..end, mask[at], follows_both, &starts)));
        }
        at = end;
    }
    found
}

/// A template that marks what is generated says the same as the mask of its twin without tags, but for differences that
/// have a name: the template marks text after the turn end, or text that the generation prompt already holds.
#[test]
fn masks_equal_the_generation_spans_of_training_templates() {
    let Some(folder) = corpus::folder() else { return };
    let cases = corpus::cases(&folder);
    let special = special_tokens(&cases);
    let names = std::fs::read_dir(folder.join("templates")).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort_unstable();
    let masker = |name: &str| Masker::new(Template::compile(&corpus::source(&folder, name)).unwrap(), special.clone());
    let (mut pairs, mut renderings, mut messages, mut wrong) = (0, 0, 0, Vec::new());
    let mut classes: HashMap<&str, usize> = HashMap::new();
    for training in names.iter().filter(|name| name.starts_with("trl_") && name.ends_with("_training.jinja")) {
        let plain = training.replace("_training", "");
        if !names.contains(&plain) {
            continue;
        }
        let (plain_masker, training_masker) = (masker(&plain), masker(training));
        let before = renderings;
        let finished = cases.iter().filter(|(_, case)| case.options.continue_final_message == ContinueFinalMessage::No);
        for (id, Case { conversation, options }) in finished {
            let options = RenderOptions { add_generation_prompt: false, ..options.clone() };
            let tagged = training_masker.template().render(conversation, &options);
            let bare = plain_masker.template().render(conversation, &options);
            let (Ok(tagged), Ok(bare)) = (tagged, bare) else { continue };
            if tagged.generation_spans.is_empty() || tagged.text != bare.text {
                continue;
            }
            let assistants = plain_masker.assistant_spans(conversation, &options, &bare);
            let ours: Vec<_> = assistants.iter().flat_map(|assistant| assistant.spans.iter().cloned()).collect();
            for (at, class) in differences(&bare, &ours, &tagged.generation_spans) {
                match class {
                    Some(class) => *classes.entry(class).or_default() += 1,
                    None => wrong.push(format!("{plain} {id}: byte {at}")),
                }
            }
            renderings += 1;
            messages += assistants.len();
        }
        pairs += usize::from(renderings > before);
    }
    corpus::report(&format!(
        "{pairs} pairs, {renderings} renderings, {messages} messages, {} without a name; {classes:?}",
        wrong.len()
    ));
    assert!(pairs > 0 && wrong.is_empty(), "{}", wrong.join("\n"));
}
