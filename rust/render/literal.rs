//! Where control tokens count in a rendered text, if not everywhere.
//!
//! *Invariant*: a control token lies wholly in text of the template, or of a message of a trusted role. What the template
//! copied from its further arguments is no text of its own.

use std::ops::Range;

use super::{ControlTokens, RenderSettings};
use crate::author::{Author, Span};
use crate::message::Conversation;
use crate::template::RenderedText;

/// The ranges where control tokens count from the byte `from` on, sorted; `None` if they count everywhere.
///
/// A range that begins before `from` is given whole.
pub(super) fn ranges(
    text: &RenderedText,
    conversation: &Conversation,
    settings: &RenderSettings,
    from: u32,
) -> Option<Vec<Range<u32>>> {
    if settings.control_tokens == ControlTokens::All {
        return None;
    }
    let first = text.spans.partition_point(|span| span.end <= from);
    let mut ranges = Vec::new();
    for span in &text.spans[first..] {
        if is_literal(span, text, conversation, settings) {
            without(span.start..span.end, &text.argument_spans, |part| push(&mut ranges, part));
        }
    }
    Some(ranges)
}

/// Whether control tokens count in a span, apart from what was copied from arguments.
///
/// The role counts too where it is a plain word: many templates build their markers around it, as in
/// `'<|' + message.role + '|>'`, and a word cannot bring a marker along.
fn is_literal(span: &Span, text: &RenderedText, conversation: &Conversation, settings: &RenderSettings) -> bool {
    let Author::Value(message, field) = span.author else { return !span.author.is_value() };
    let written = &text.text[span.start as usize..span.end as usize];
    (text.fields.name(field) == "role" && is_word(written)) || is_trusted(message, conversation, settings)
}

fn is_word(text: &str) -> bool {
    text.chars().all(|character| character.is_alphanumeric() || matches!(character, '_' | '-'))
}

fn is_trusted(message: u32, conversation: &Conversation, settings: &RenderSettings) -> bool {
    if settings.trusted_roles.is_empty() {
        return false;
    }
    let role = conversation.messages.get(message as usize).and_then(|message| message.get("role")?.as_text());
    role.is_some_and(|role| settings.trusted_roles.iter().any(|name| **name == *role))
}

/// The parts of a range that lie in none of the `holes`, which are sorted.
fn without(range: Range<u32>, holes: &[Range<u32>], mut part: impl FnMut(Range<u32>)) {
    let first = holes.partition_point(|hole| hole.end <= range.start);
    let mut start = range.start;
    for hole in holes[first..].iter().take_while(|hole| hole.start < range.end) {
        part(start..hole.start);
        start = hole.end;
    }
    part(start..range.end);
}

/// Adds a range behind the last one, or to it where they touch.
fn push(ranges: &mut Vec<Range<u32>>, range: Range<u32>) {
    if range.start >= range.end {
        return;
    }
    match ranges.last_mut().filter(|last| last.end == range.start) {
        Some(last) => last.end = range.end,
        None => ranges.push(range),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(range: Range<u32>, holes: &[(u32, u32)]) -> Vec<(u32, u32)> {
        let holes: Vec<_> = holes.iter().map(|(start, end)| *start..*end).collect();
        let mut parts = Vec::new();
        without(range, &holes, |part| push(&mut parts, part));
        parts.into_iter().map(|part| (part.start, part.end)).collect()
    }

    #[test]
    fn holes_are_cut_out() {
        assert_eq!(parts(2..10, &[]), [(2, 10)]);
        assert_eq!(parts(2..10, &[(0, 3), (5, 6), (9, 12)]), [(3, 5), (6, 9)]);
        assert_eq!(parts(2..10, &[(0, 2), (10, 12)]), [(2, 10)]);
        assert_eq!(parts(2..10, &[(1, 11)]), []);
    }

    #[test]
    fn ranges_that_touch_are_one() {
        let mut ranges = Vec::new();
        for range in [0..2, 2..2, 2..5, 6..7] {
            push(&mut ranges, range);
        }
        assert_eq!(ranges, [0..5, 6..7]);
    }
}
