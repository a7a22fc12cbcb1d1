//! Markers: the control tokens of chat templates, recognised by their shape, and never cut.
//!
//! A marker is `<…>` without white space inside, `[|…|]`, `[UPPER]`, or `]~b]`. The rules are those of an independent
//! oracle over some three hundred real templates; a template whose control tokens look otherwise has no markers.

use std::ops::Range;

/// Whether Python's `str.isspace` is true for the character.
pub(super) fn is_space(character: char) -> bool {
    character.is_whitespace() || ('\x1c'..='\x1f').contains(&character)
}

/// The first byte at or after `at`, and before `stop`, that is no white space; else `stop`.
pub(super) fn skip_space(text: &str, at: usize, stop: usize) -> usize {
    text[at..stop].find(|character| !is_space(character)).map_or(stop, |found| at + found)
}

/// Whether the text is nothing but white space.
pub(super) fn is_blank(text: &str) -> bool {
    text.chars().all(is_space)
}

/// Where the marker that begins at `at` ends, if one does and ends at or before `stop`.
fn marker_end(text: &str, at: usize, stop: usize) -> Option<usize> {
    let rest = &text[at..stop];
    let length = match rest.as_bytes().first()? {
        b'<' => angle(rest),
        b'[' => bars(rest).or_else(|| upper(rest)).or_else(|| tilde(rest)),
        b']' => tilde(rest),
        _ => None,
    };
    length.map(|length| at + length)
}

/// `<`, 1 to 60 characters that are no angle brackets and no white space, `>`.
fn angle(text: &str) -> Option<usize> {
    let inner = text[1..].find(|c: char| matches!(c, '<' | '>') || is_space(c))?;
    let closed = text[1 + inner..].starts_with('>');
    (closed && (1..=60).contains(&text[1..=inner].chars().count())).then_some(inner + 2)
}

/// `[|`, 1 to 40 characters that are no brackets, bars and no white space, `|]`.
fn bars(text: &str) -> Option<usize> {
    let body = text.strip_prefix("[|")?;
    let inner = body.find(|c: char| matches!(c, '[' | ']' | '|') || is_space(c))?;
    let closed = body[inner..].starts_with("|]");
    (closed && (1..=40).contains(&body[..inner].chars().count())).then_some(inner + 4)
}

/// `[`, an optional slash, a capital letter, one or more capitals and underscores, `]`.
fn upper(text: &str) -> Option<usize> {
    let body = text.strip_prefix('[')?;
    let name = body.strip_prefix('/').unwrap_or(body);
    let inner = name.bytes().take_while(|byte| byte.is_ascii_uppercase() || *byte == b'_').count();
    let closed = inner >= 2 && !name.starts_with('_') && name[inner..].starts_with(']');
    closed.then(|| text.len() - name.len() + inner + 1)
}

/// A bracket, an optional letter, `~`, an optional letter, a bracket.
fn tilde(text: &str) -> Option<usize> {
    let is_letter = |byte: &u8| byte.is_ascii_lowercase() || *byte == b'!';
    let bytes = text.as_bytes();
    let middle = 1 + usize::from(bytes.get(1).is_some_and(is_letter));
    let last = middle + 1 + usize::from(bytes.get(middle + 1).is_some_and(is_letter));
    let fits = bytes.get(middle) == Some(&b'~') && matches!(bytes.get(last), Some(b'[' | b']'));
    fits.then_some(last + 1)
}

/// The markers in `text[at..stop]`, from the left, none inside another.
pub(super) fn markers(text: &str, at: usize, stop: usize) -> impl Iterator<Item = Range<usize>> {
    let mut position = at;
    std::iter::from_fn(move || {
        while let Some(found) = text[position..stop].find(['<', '[', ']']) {
            let start = position + found;
            if let Some(end) = marker_end(text, start, stop) {
                position = end;
                return Some(start..end);
            }
            position = start + 1;
        }
        position = stop;
        None
    })
}

const CHANNEL: &str = "<|channel>thought";
const CHANNEL_END: &str = "<channel|>";

/// The blocks in `text[at..stop]`: markers, of which `<|channel>thought` is one.
pub(super) fn blocks(text: &str, at: usize, stop: usize) -> impl Iterator<Item = Range<usize>> {
    markers(text, at, stop).map(move |found| {
        let opens = text[found.start..stop].starts_with(CHANNEL);
        found.start..if opens { found.start + CHANNEL.len() } else { found.end }
    })
}

/// `end`, or the start of the marker in `text[start..]` that it would cut.
pub(super) fn before_marker(text: &str, start: usize, end: usize) -> usize {
    let cut = markers(text, start, text.len()).take_while(|marker| marker.start < end).find(|marker| end < marker.end);
    cut.map_or(end, |marker| marker.start)
}

fn contains_any(text: &str, words: &[&str]) -> bool {
    let lower = text.to_lowercase();
    words.iter().any(|word| lower.contains(word))
}

/// Whether the name of the marker says that it is about reasoning.
pub(super) fn is_reasoning(marker: &str) -> bool {
    contains_any(marker, &["think", "thought", "reason"])
}

/// Whether the marker closes a block.
pub(super) fn is_closing(marker: &str) -> bool {
    let slashed = marker.starts_with("</") || marker.starts_with("[/");
    slashed || ends_with_bar(marker) || contains_any(marker, &["end", "close"])
}

/// `<name|>`: what closes `<|name>`.
fn ends_with_bar(marker: &str) -> bool {
    let mut characters = marker.chars();
    let opens = characters.next() == Some('<');
    let bare = characters.next().is_some_and(|second| second != '|' && second != '｜');
    opens && bare && characters.as_str().ends_with("|>")
}

const SIDES: [&str; 7] = ["start", "begin", "open", "end", "close", "prefix", "suffix"];

/// What an opening marker and its closing one have in common.
fn name(marker: &str) -> String {
    let lower = marker.to_lowercase();
    let mut kept = String::new();
    let mut rest = lower.as_str();
    while let Some(character) = rest.chars().next() {
        if let Some(side) = SIDES.iter().find(|side| rest.starts_with(**side)) {
            rest = &rest[side.len()..];
            continue;
        }
        if character.is_alphanumeric() {
            kept.push(character);
        }
        rest = &rest[character.len_utf8()..];
    }
    kept
}

/// Whether the marker has a partner in the text before it: another marker of the same name.
pub(super) fn is_paired(marker: &str, before: &str) -> bool {
    let own = name(marker);
    markers(before, 0, before.len()).any(|other| before[other.clone()] != *marker && name(&before[other]) == own)
}

/// Whether the last reasoning marker of the text opens a block.
pub fn reasoning_is_open(text: &str) -> bool {
    if let Some(at) = text.rfind(CHANNEL) {
        return !text[at..].contains(CHANNEL_END);
    }
    let last = markers(text, 0, text.len()).filter(|marker| is_reasoning(&text[marker.clone()])).last();
    last.is_some_and(|marker| !is_closing(&text[marker]))
}

/// Where an empty reasoning block, or a closing reasoning marker alone, that stands at `start` ends, with the white
/// space around it; else `start`.
pub(super) fn empty_reasoning(text: &str, start: usize, stop: usize) -> usize {
    if start >= stop {
        return start;
    }
    let first = skip_space(text, start, stop);
    if let Some(body) = text[first..stop].strip_prefix(CHANNEL) {
        let after = skip_space(text, stop - body.len(), stop);
        if text[after..stop].starts_with(CHANNEL_END) {
            return skip_space(text, after + CHANNEL_END.len(), stop);
        }
    }
    let Some(opened) = marker_end(text, first, stop) else { return start };
    let next = skip_space(text, opened, stop);
    let (opening, closing, end) = match marker_end(text, next, stop) {
        Some(closed) => (Some(&text[first..opened]), &text[next..closed], closed),
        None => (None, &text[first..opened], opened),
    };
    let closes = is_reasoning(closing) && is_closing(closing);
    let matches = opening.is_none_or(|opening| !is_closing(opening) && name(opening) == name(closing));
    if closes && matches { skip_space(text, end, stop) } else { start }
}

/// The first marker of the tail that closes nothing opened before and has white space or nothing after it.
pub(super) fn shaped_end(tail: &str, before: &str) -> Option<Range<usize>> {
    markers(tail, 0, tail.len()).find(|found| {
        let ends = tail[found.end..].chars().next().is_none_or(is_space);
        let marker = &tail[found.clone()];
        ends && !is_reasoning(marker) && !is_paired(marker, &format!("{before}{}", &tail[..found.start]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<&str> {
        markers(text, 0, text.len()).map(|range| &text[range]).collect()
    }

    #[test]
    fn markers_have_four_shapes() {
        assert_eq!(
            found("a<b> < c><|im_end|>[|x|][/INST][A]]~b][~]"),
            ["<b>", "<|im_end|>", "[|x|]", "[/INST]", "]~b]", "[~]"]
        );
        assert_eq!(found("<<a>> <> [|a b|] [_AB] [Ab]"), ["<a>"]);
        assert_eq!(found(&format!("<{}>", "x".repeat(61))), [""; 0]);
    }

    #[test]
    fn a_boundary_inside_a_marker_moves_to_its_start() {
        assert_eq!(before_marker("ab<end>", 0, 4), 2);
        assert_eq!(before_marker("ab<end>", 0, 7), 7);
        assert_eq!(before_marker("ab<end>", 0, 2), 2);
    }

    #[test]
    fn names_ignore_sides() {
        assert!(is_paired("<|tool_call_end|>", "x<|tool_call_start|>y"));
        assert!(!is_paired("<|im_end|>", "<|im_end|>"));
        assert!(is_closing("<channel|>") && is_closing("</think>") && !is_closing("<|channel|>"));
    }

    #[test]
    fn empty_reasoning_is_skipped_with_its_white_space() {
        let skipped = |text: &str| empty_reasoning(text, 0, text.len());
        assert_eq!(skipped("<think>\n\n</think>\n\nHi"), 19);
        assert_eq!(skipped("</think>Hi"), 8);
        assert_eq!(skipped("<|channel>thought\n<channel|>Hi"), 28);
        assert_eq!(skipped("<think>a</think>Hi"), 0);
        assert_eq!(skipped("<b></think>"), 0);
    }

    #[test]
    fn open_reasoning_is_seen() {
        assert!(reasoning_is_open("<|im_start|>assistant\n<think>\n"));
        assert!(!reasoning_is_open("<think>\n\n</think>\n\n"));
        assert!(reasoning_is_open("<|turn>model\n<|channel>thought\n"));
    }
}
