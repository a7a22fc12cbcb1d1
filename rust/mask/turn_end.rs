//! What a template writes around plain turns: its turn ends, and the header before an answer. Learned from probes.

use std::sync::Arc;

use super::marker::{is_closing, is_paired, markers, shaped_end};
use super::rendering::Rendering;
use super::start::{prompt_end, shared_end};
use crate::author::Author;
use crate::message::{Conversation, Data, Dict};
use crate::template::{RenderOptions, RenderedText, Template};

const PROBES: [&[&str]; 3] =
    [&["user", "assistant"], &["user", "assistant", "user", "assistant"], &["system", "user", "assistant", "user"]];

/// A dict of these entries.
pub(super) fn dict<const N: usize>(entries: [(&str, Data); N]) -> Data {
    Data::from(entries.into_iter().collect::<Dict>())
}

/// A message with a short text of its role, as a string or as a list of one part.
fn message(role: &str, as_parts: bool) -> Data {
    let text = Data::from(match role {
        "user" => "Uu",
        "assistant" => "Aa",
        _ => "Ss",
    });
    let part = || Data::from(vec![dict([("type", Data::from("text")), ("text", text.clone())])]);
    let content = if as_parts { part() } else { text.clone() };
    dict([("role", Data::from(role)), ("content", content)])
}

/// One tool without parameters.
pub(super) fn tools() -> Data {
    let parameters = dict([("type", Data::from("object")), ("properties", Data::from(Dict::default()))]);
    let function = dict([("name", Data::from("t")), ("description", Data::from("T")), ("parameters", parameters)]);
    Data::from(vec![dict([("type", Data::from("function")), ("function", function)])])
}

/// A rendering of plain turns that shows the text of each: string contents or parts, without tools or with one.
pub(super) fn probe(
    template: &Template,
    roles: &[&str],
    arguments: &[(Arc<str>, Data)],
    options: &RenderOptions,
) -> Option<RenderedText> {
    [(false, false), (false, true), (true, false), (true, true)].into_iter().find_map(|(with_tools, as_parts)| {
        let messages = roles.iter().map(|role| message(role, as_parts)).collect();
        let tools = with_tools.then(tools);
        let conversation = Conversation { messages, tools, documents: None, arguments: arguments.to_vec() };
        let rendered = template.render(&conversation, options).ok()?;
        let shows = |index| {
            rendered.spans.iter().any(|span| {
                matches!(span.author, Author::Value(message, field)
                    if message == index && rendered.fields.name(field) == "content")
            })
        };
        (0..roles.len() as u32).all(shows).then_some(rendered)
    })
}

/// The turn ends of a template, as plain turns show them.
pub(super) fn turn_ends(template: &Template, options: &RenderOptions) -> Vec<String> {
    let mut found = Vec::new();
    for roles in PROBES {
        if let Some(rendered) = probe(template, roles, &[], options) {
            add_turn_ends(&Rendering::new(&rendered), roles, &mut found);
        }
    }
    found
}

fn add(found: &mut Vec<String>, marker: &str) {
    if !found.iter().any(|known| known == marker) {
        found.push(marker.to_owned());
    }
}

/// What stands behind one answer of a probe.
struct Tail<'a> {
    /// The header before the answer, where nothing of the answer's own follows it; else empty.
    header: &'a str,
    /// All of the template's text up to the next value.
    text: &'a str,
}

fn add_turn_ends(rendering: &Rendering<'_>, roles: &[&str], found: &mut Vec<String>) {
    let answers = (0u32..).zip(roles).filter(|(_, role)| **role == "assistant");
    let tails: Vec<_> = answers.filter_map(|(index, _)| tail(rendering, index, found)).collect();
    // Written as frame, or by the next message: what the end of the text shows too, or what closes the header.
    let last = tails.last().map_or("", |tail| tail.text);
    let ends_with_answer = roles.last() == Some(&"assistant");
    for Tail { header, text } in tails {
        let Some(marker) = markers(text, 0, text.len()).next().filter(|marker| marker.start == 0) else { continue };
        let marker = &text[marker];
        let shown = ends_with_answer && text != trimmed(last) && trimmed(last) == marker;
        if shown || is_closing(marker) && is_paired(marker, header) {
            add(found, marker);
        }
    }
}

fn trimmed(text: &str) -> &str {
    text.trim_matches(super::marker::is_space)
}

/// What stands behind the answer at `index`; the turn end in its own scaffold is added to those found.
fn tail<'a>(rendering: &Rendering<'a>, index: u32, found: &mut Vec<String>) -> Option<Tail<'a>> {
    let text = rendering.text;
    let region = rendering.region(index)?;
    let last = rendering.last_value(index, 0..region.stop)?;
    let own = rendering.scaffold_end(index, last, region.stop);
    if let Some(end) = shaped_end(&text[last..own], "") {
        add(found, &text[last..own][end]);
    }
    let first = rendering.first_value(index, 0..region.stop)?;
    let header = text.get(rendering.after_data(region.start)..first).unwrap_or_default();
    Some(Tail { header: if own == last { header } else { "" }, text: &text[last..rendering.next_data(last)] })
}

/// What the template writes before a plain answer to a lone user message, as far as the prompt supplies it; all of it if
/// the prompt supplies nothing and it names the role; `None` if that cannot be told.
pub(super) fn header(template: &Template, arguments: &[(Arc<str>, Data)], options: &RenderOptions) -> Option<String> {
    let answered = probe(template, &["user", "assistant"], arguments, options)?;
    let asked = RenderOptions { add_generation_prompt: true, ..options.clone() };
    let prompt = probe(template, &["user"], arguments, &asked)?;
    let (answered, prompt) = (Rendering::new(&answered), Rendering::new(&prompt));
    let region = answered.region(1)?;
    let (text, begin) = (answered.text, region.start);
    let first = answered.first_value(1, begin..region.stop)?;
    let at = prompt_end(&answered, &prompt, begin, 1).or_else(|| {
        let anchor = answered.after_data(begin);
        let at = shared_end(text, anchor, first, prompt.supplied());
        (at >= begin && !super::marker::is_blank(&text[anchor..at])).then_some(at)
    })?;
    let supplied = &text[begin..at.max(begin)];
    let whole = &text[begin..first];
    Some(if supplied.is_empty() && whole.contains("assistant") { whole } else { supplied }.to_owned())
}
