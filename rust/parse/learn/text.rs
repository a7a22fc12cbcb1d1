//! The tags in a template's literal text, and common beginnings and ends that cut none of them.

use std::ops::Range;

/// Where the tag that begins at `at` ends, if one does: `<…>`, `[NAME]`, `[|…|]`. A tag that the text does not close
/// goes on to its end: what closes it stands behind a value.
fn tag_end(text: &str, at: usize) -> Option<usize> {
    let rest = &text[at..];
    let close = match rest.as_bytes().first()? {
        b'<' => '>',
        b'[' => ']',
        _ => return None,
    };
    let body = &rest[1..];
    let first = body.chars().next()?;
    let begins = match close {
        '>' => !first.is_whitespace() && first != '<' && first != '=',
        _ => first == '|' || first == '/' || body.chars().take(2).filter(char::is_ascii_uppercase).count() == 2,
    };
    if !begins {
        return None;
    }
    match body.find([close, '\n', '<']) {
        None if close == '>' => Some(text.len()),
        Some(end) if body[end..].starts_with(close) => Some(at + 1 + end + 1),
        _ => None,
    }
}

/// The tags of a text, from the left.
pub(super) fn tags(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut position = 0;
    std::iter::from_fn(move || {
        while let Some(found) = text[position..].find(['<', '[']) {
            let start = position + found;
            if let Some(end) = tag_end(text, start) {
                position = end;
                return Some(start..end);
            }
            position = start + 1;
        }
        None
    })
}

pub(super) fn has_tag(text: &str) -> bool {
    tags(text).next().is_some()
}

/// The largest place up to `at` that cuts neither a tag nor a word.
fn cut_before(text: &str, at: usize) -> usize {
    let mut at = floor(text, at);
    if let Some(tag) = tags(text).find(|tag| tag.start < at && at < tag.end) {
        at = tag.start;
    }
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    if text[at..].starts_with(is_part) {
        at = text[..at].trim_end_matches(is_part).len();
    }
    // A bracket that two different tags share begins both.
    text[..at].trim_end_matches(['<', '[']).len()
}

/// The smallest place from `at` on that cuts neither a tag nor a word.
fn cut_after(text: &str, at: usize) -> usize {
    let mut at = at;
    while !text.is_char_boundary(at) {
        at += 1;
    }
    if let Some(tag) = tags(text).find(|tag| tag.start < at && at < tag.end) {
        at = tag.end;
    }
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    if text[..at].ends_with(is_part) {
        at = text.len() - text[at..].trim_start_matches(is_part).len();
    }
    at
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// How much of `one` two texts begin with alike, white space aside.
pub(super) fn common_start(one: &str, two: &str) -> usize {
    let mut others = two.chars().filter(|character| !character.is_whitespace());
    let mut end = 0;
    for (at, character) in one.char_indices() {
        if character.is_whitespace() {
            continue;
        }
        if others.next() != Some(character) {
            break;
        }
        end = at + character.len_utf8();
    }
    cut_before(one, end)
}

/// Where in `one` the end begins that two texts have alike, white space aside.
pub(super) fn common_end(one: &str, two: &str) -> usize {
    let mut others = two.char_indices().rev().filter(|(_, character)| !character.is_whitespace());
    let (mut start, mut other_start) = (one.len(), two.len());
    for (at, character) in one.char_indices().rev() {
        if character.is_whitespace() {
            continue;
        }
        match others.next() {
            Some((other_at, other)) if other == character => (start, other_start) = (at, other_at),
            _ => break,
        }
    }
    // A tag right behind a word ends what the word begins.
    let attached = [&one[..start], &two[..other_start]].iter().any(|text| text.ends_with(char::is_alphanumeric));
    let tag = tags(one).find(|tag| tag.start == start).filter(|_| attached);
    cut_after(one, tag.map_or(start, |tag| tag.end))
}

/// A text without a beginning, white space aside.
pub(super) fn without_start<'a>(text: &'a str, start: &str) -> Option<&'a str> {
    let mut rest = text.trim_start();
    for piece in start.split_whitespace() {
        rest = rest.strip_prefix(piece)?.trim_start();
    }
    Some(rest)
}

const REASONING: [&str; 3] = ["think", "thought", "reason"];

/// Whether a text is about reasoning, by its words.
pub(super) fn names_reasoning(text: &str) -> bool {
    let lower = text.to_lowercase();
    REASONING.iter().any(|word| lower.contains(word))
}

/// The words of a text: runs of letters.
pub(super) fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|character: char| !character.is_alphabetic()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// The beginning of `marker` up to the end of a tag that no other text begins with.
pub(super) fn shortest_own<'a>(marker: &'a str, others: &[&str]) -> &'a str {
    let shared = |start: &str| others.iter().any(|other| *other != marker && other.starts_with(start));
    let end = tags(marker).map(|tag| tag.end).find(|end| !shared(&marker[..*end]));
    &marker[..end.unwrap_or(marker.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_ends_cut_no_tag() {
        let (one, two) = ("<a_section><|call|>", "</call><|call|>");
        assert_eq!(&one[common_end(one, two)..], "<|call|>");
        let (one, two) = ("</p>\n<invoke", "</p>\n</tool>");
        assert_eq!(&one[..common_start(one, two)].trim_end(), &"</p>");
        assert_eq!(&"<|x|>\nab c"[..common_start("<|x|>\nab c", "<|x|>ab d")], "<|x|>\nab");
    }

    #[test]
    fn an_unclosed_tag_goes_on() {
        let found: Vec<_> = tags("[x] <a>b</a><f name=\"").collect();
        assert_eq!(found, [4..7, 8..12, 12..21]);
    }
}
