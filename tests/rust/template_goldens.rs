//! What transformers renders for every template and conversation of the corpus: text, generation spans, errors.

use std::collections::BTreeMap;
use std::ops::Range;

use tokentape::message::Data;
use tokentape::template::{RenderOptions, RenderedText};

use crate::corpus::{self, Case, Templates};

#[test]
fn every_golden_agrees() {
    let Some(folder) = corpus::folder() else { return };
    let cases = corpus::cases(&folder);
    let mut templates = Templates::default();
    let (mut count, mut wrong) = (0, Vec::new());
    for line in corpus::lines(&folder.join("goldens.jsonl.gz")) {
        let record = Data::from_json(&line).expect("JSON");
        let text = |name| record.get(name).and_then(Data::as_text);
        let (template, id) = (text("t").expect("template"), text("c").expect("conversation"));
        let Case { conversation, options } = &cases[id];
        let prompt = record.get("g") == Some(&Data::Int(1));
        let options = RenderOptions { add_generation_prompt: prompt, ..options.clone() };
        let result = templates.get(&folder, template).clone().and_then(|t| t.render(conversation, &options));
        if let Some(difference) = difference(&record, &result) {
            wrong.push(format!("{template} {id} g={}: {difference}", i32::from(prompt)));
        }
        count += 1;
    }
    corpus::report(&format!("{count} goldens, {} differ", wrong.len()));
    assert!(count > 0 && wrong.is_empty(), "{}", summary(&wrong));
}

/// How a result differs from a golden.
fn difference(record: &Data, result: &tokentape::Result<RenderedText>) -> Option<String> {
    let text = |name| record.get(name).and_then(Data::as_text);
    match (result, text("out"), text("err")) {
        (Ok(rendered), Some(out), _) if rendered.text == out => {
            let expected = record.get("spans").map(spans_of);
            let shown: Vec<_> = rendered.generation_spans.iter().map(|span| characters(&rendered.text, span)).collect();
            let differ = expected.filter(|expected| *expected != shown);
            differ.map(|expected| format!("spans {shown:?}, expected {expected:?}"))
        }
        (Ok(rendered), Some(out), _) => {
            let same = rendered.text.bytes().zip(out.bytes()).take_while(|(a, b)| a == b).count();
            let tail =
                |text: &str| String::from_utf8_lossy(&text.as_bytes()[same..(same + 60).min(text.len())]).into_owned();
            Some(format!("text differs at byte {same}: {:?}, expected {:?}", tail(&rendered.text), tail(out)))
        }
        (Err(error), _, Some(class)) if error.class() == Some(class) => {
            let differs = class == "TemplateError" && text("msg").is_some_and(|message| message != error.message());
            differs.then(|| format!("message {:?}, expected {:?}", error.message(), text("msg")))
        }
        (Err(error), out, class) => {
            let expected = class.or(out.map(|_| "text"));
            Some(format!(
                "{:?} ({error}, line {:?}), expected {expected:?} {:?}",
                error.class(),
                error.line(),
                text("msg")
            ))
        }
        (Ok(_), None, class) => Some(format!("text, expected {class:?} {:?}", text("msg"))),
    }
}

pub(crate) fn spans_of(spans: &Data) -> Vec<(usize, usize)> {
    let number = |value: Option<&Data>| match value {
        Some(Data::Int(number)) => *number as usize,
        _ => usize::MAX,
    };
    let pair = |span: &Data| span.as_items().map(|pair| (number(pair.first()), number(pair.get(1))));
    spans.as_items().unwrap_or_default().iter().filter_map(pair).collect()
}

/// A byte range in characters; a place past the end counts its characters beyond it.
pub(crate) fn characters(text: &str, span: &Range<u32>) -> (usize, usize) {
    let place = |at: u32| {
        let inside = (at as usize).min(text.len());
        text[..inside].chars().count() + at as usize - inside
    };
    (place(span.start), place(span.end))
}

/// The differences by their first words, with an example of each.
pub(crate) fn summary(wrong: &[String]) -> String {
    let mut kinds: BTreeMap<String, (usize, &str)> = BTreeMap::new();
    for line in wrong {
        let kind = line.split(": ").nth(1).unwrap_or(line).chars().take(60).collect();
        kinds.entry(kind).or_insert((0, line)).0 += 1;
    }
    let mut kinds: Vec<_> = kinds.into_values().collect();
    kinds.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let lines: Vec<_> = kinds.iter().take(40).map(|(count, example)| format!("{count:6} {example}")).collect();
    format!("{} differ\n{}", wrong.len(), lines.join("\n"))
}
