//! What stands around reasoning and content: header, marks, parts.

use super::probe::{Answer, CONTENT, Prober, REASONING};
use super::text::{common_end, common_start, has_tag, names_reasoning, tags, without_start, words};
use crate::message::Data;
use crate::parse::grammar::{Frame, Parts};

/// The end of the prompt that every answer of the probes goes on from: the beginning that they and the prompt share,
/// before a mark of reasoning.
pub(super) fn header(prompt: Option<&str>, answers: &[&str]) -> String {
    let texts: Vec<&str> = prompt.into_iter().chain(answers.iter().copied()).collect();
    let Some((&first, others)) = texts.split_first() else { return String::new() };
    let shared = others.iter().fold(first, |shared, other| &first[..common_start(shared, other)]);
    let shared = if others.is_empty() { "" } else { shared };
    before_reasoning(shared).to_owned()
}

/// A text up to the first tag that is about reasoning, or that stands right before a word about it.
fn before_reasoning(text: &str) -> &str {
    let mut end = text.len();
    for tag in tags(text) {
        let next = &text[tag.end..];
        let word = &next[..next.find(['<', '[', '\n']).unwrap_or(next.len())];
        if names_reasoning(&text[tag.clone()]) || names_reasoning(word) {
            end = tag.start;
            break;
        }
    }
    &text[..end]
}

/// What follows the header in an answer.
pub(super) fn turn<'a>(answer: &'a str, header: &str) -> &'a str {
    without_start(answer, header).unwrap_or(answer)
}

/// The field that a template takes reasoning from, and the answer that shows it.
pub(super) struct Reasoned {
    /// Before the reasoning.
    pub(super) open: String,
    /// Behind it, up to the content or the first call.
    pub(super) close: String,
    pub(super) beside_content: bool,
}

const FIELDS: [&str; 5] = ["reasoning_content", "tool_plan", "thought", "thoughts", "reasoning_text"];

/// What a template writes around reasoning, before content or else before a call that ends with `call_start`.
pub(super) fn reasoned(prober: &Prober<'_>, header: &str, calls: &[Data], call_start: &str) -> Option<Reasoned> {
    let content = || Some(Data::from(CONTENT));
    let candidates = FIELDS.iter().flat_map(|&field| {
        let plain = Answer { content: content(), reasoning: Some(field), calls: Vec::new() };
        let empty = Answer { content: Some("".into()), reasoning: Some(field), calls: calls.to_vec() };
        let none = Answer { content: None, ..empty.clone() };
        [(plain, true), (empty, false), (none, false)]
    });
    let parts = ["thinking", "reasoning"].map(|kind| (as_parts(kind), true));
    for (answer, beside_content) in candidates.chain(parts) {
        if !beside_content && answer.calls.is_empty() && answer.reasoning.is_some() {
            continue;
        }
        let Some(shown) = prober.answer(&answer, super::probe::After::Nothing) else { continue };
        let shown = turn(&shown, header);
        let stop = if beside_content { shown.rfind(CONTENT) } else { shown.find(call_start) };
        let Some((start, stop)) = shown.find(REASONING).zip(stop) else { continue };
        // A list of parts that is printed as it is shows no format.
        let is_dump = shown[..start].contains("'type'") || shown[..start].contains("\"type\"");
        if start + REASONING.len() <= stop && has_tag(&shown[..start]) && !is_dump {
            let close = shown[start + REASONING.len()..stop].to_owned();
            return Some(Reasoned { open: shown[..start].to_owned(), close, beside_content });
        }
    }
    None
}

/// A message whose content is a list of parts, one of them reasoning.
fn as_parts(kind: &'static str) -> Answer {
    let part = |kind: &str, text: &str| super::probe::dict([("type", kind.into()), (kind, text.into())]);
    let parts = vec![part(kind, REASONING), part("text", CONTENT)];
    Answer { content: Some(parts.into()), ..Answer::default() }
}

/// The frame of reasoning, from what stands before and behind it. What closes it shares a word with what opens it; what
/// stands behind that opens the content.
pub(super) fn reasoning_frame(open: &str, behind: &str) -> Frame {
    let open = open.trim();
    let own: Vec<String> = words(open).filter(|word| !matches!(&**word, "start" | "begin" | "open" | "end")).collect();
    let last = tags(open).last().map(|tag| &open[tag]).unwrap_or_default();
    let last_is_word = words(last).any(|word| own.contains(&word));
    let mut found = None;
    let mut has_word = false;
    let mut previous = 0;
    for tag in tags(behind) {
        has_word |= words(&behind[previous..tag.end]).any(|word| own.contains(&word));
        previous = tag.end;
        if has_word && (last_is_word || behind[tag.clone()] == *last || !behind.contains(last)) {
            found = Some(tag.end);
            break;
        }
    }
    let first = || tags(behind).next().map(|tag| tag.end);
    let end = found.or_else(first).unwrap_or(0);
    Frame::new(open, &behind[..end])
}

/// The frame that the prompt shows when it opens reasoning, or that a plain answer shows empty.
pub(super) fn shown_empty(text: &str, source: &str) -> Option<Frame> {
    let found: Vec<&str> = tags(text).map(|tag| &text[tag]).collect();
    let open = found.iter().find(|tag| names_reasoning(tag) && !is_closing(tag))?;
    let close = found.iter().find(|tag| names_reasoning(tag) && is_closing(tag));
    let close = close.map_or_else(|| partner(open, source), |close| Some((*close).to_owned()))?;
    Some(Frame::new(open, &close))
}

/// The frame that a template looks for in the content of a message: `content.split('</think>')`.
pub(super) fn looked_for(source: &str) -> Option<Frame> {
    let close = tags(source).map(|tag| &source[tag]).find(|tag| {
        let name = tag.trim_start_matches("</").trim_end_matches('>');
        tag.starts_with("</") && names_reasoning(name) && name.chars().all(char::is_alphanumeric)
    })?;
    Some(Frame::new(&close.replacen("</", "<", 1), close))
}

fn is_closing(tag: &str) -> bool {
    tag.starts_with("</") || tag.starts_with("[/") || words(tag).any(|word| word == "end")
}

/// What would close a tag, if the template's source or the habit of markup knows it.
fn partner(open: &str, source: &str) -> Option<String> {
    let swapped = [("<|START_", "<|END_"), ("<|start_", "<|end_"), ("_start|>", "_end|>"), ("_begin|>", "_end|>")];
    let named = swapped.iter().find(|(start, _)| open.contains(start)).map(|(start, end)| open.replacen(start, end, 1));
    let slashed = [("[", "[/"), ("<", "</")].iter().find(|(plain, _)| open.starts_with(plain));
    let slashed = slashed.map(|(plain, closing)| open.replacen(plain, closing, 1));
    named.filter(|close| source.contains(&**close)).or(slashed)
}

/// The marks of parts with headers, if the answer `several` writes `header` again between its parts.
pub(super) fn parts(header: &str, content_open: &str, several: &[(&str, &str, &str)]) -> Option<Parts> {
    let body = tags(content_open).last().map(|tag| &content_open[tag]).filter(|body| !names_reasoning(body))?;
    let again = |start: &str| {
        several.iter().find_map(|(text, from, to)| {
            let from = text.find(from)? + from.len();
            let between = &text[from..from + text[from..].rfind(to)?];
            between.find(start).map(|at| between[..at].to_owned())
        })
    };
    let starts: Vec<usize> = tags(header).map(|tag| tag.start).collect();
    // The shortest end of the prompt that names a role outside its tags.
    let candidates = starts.into_iter().rev().map(|at| header[at..].trim());
    let start = candidates.filter(|start| has_word(start)).find(|start| again(start).is_some())?;
    let ends = several.iter().filter_map(|(text, from, _)| {
        let from = text.find(from)?;
        let at = from + text[from..].find(start)?;
        let tag = tags(&text[from..at]).last()?;
        (from + tag.end == at).then(|| text[from..at][tag].to_owned())
    });
    let mut ends: Vec<String> = ends.collect();
    ends.dedup();
    let content = content_open[..content_open.len() - body.len()].trim().to_owned();
    Some(Parts { header: start.to_owned(), body: body.to_owned(), ends, content, ..Parts::default() })
}

/// Whether a word stands outside the tags of a text.
fn has_word(text: &str) -> bool {
    let mut at = 0;
    let mut outside = String::new();
    for tag in tags(text) {
        outside.push_str(&text[at..tag.start]);
        at = tag.end;
    }
    outside.push_str(&text[at..]);
    outside.contains(char::is_alphabetic)
}

/// The end of one text that is the end of another, tags whole.
pub(super) fn shared_end<'a>(one: &'a str, two: &str) -> &'a str {
    &one[common_end(one, two)..]
}
