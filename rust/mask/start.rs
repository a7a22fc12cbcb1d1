//! Where sampling begins: at the end of the generation prompt, found in a rendering that goes on behind it.

use super::marker::{before_marker, blocks, empty_reasoning, is_blank, is_closing, is_reasoning, is_space};
use super::marker::{reasoning_is_open, skip_space};
use super::rendering::Rendering;
use crate::author::Author;

/// Where the prompt ends in a rendering whose message `index` begins at `begin`, or `None` if it does not stand there.
pub(super) fn prompt_end(rendering: &Rendering<'_>, prompt: &Rendering<'_>, begin: usize, index: u32) -> Option<usize> {
    let (anchor, supplied) = (rendering.after_data(begin), prompt.supplied());
    let end = if rendering.text.starts_with(prompt.text) {
        prompt.text.len()
    } else if anchor > 0 && rendering.text[anchor..].starts_with(supplied) {
        anchor + supplied.len()
    } else {
        return None;
    };
    if index == 0 {
        return (end > begin).then_some(end); // before a first message the prompt may be nothing
    }
    let frame_only = || rendering.runs(end..begin).all(|(_, author)| author == Author::Frame);
    Some(if end >= begin || frame_only() { end } else { begin })
}

/// The end of what the header in `text[anchor..first]` has in common with what the prompt supplies, white space aside.
/// No marker is cut, and a reasoning block that is empty in only one of the two is not entered.
pub(super) fn shared_end(text: &str, anchor: usize, first: usize, supplied: &str) -> usize {
    let end = before_marker(text, anchor, common_end(text, anchor, first, supplied));
    let opening = blocks(text, anchor, end).find(|block| {
        let marker = &text[block.clone()];
        let opens = is_reasoning(marker) && !is_closing(marker);
        opens && (empty_reasoning(text, block.start, first) > end || !reasoning_is_open(supplied))
    });
    opening.map_or(end, |block| block.start)
}

/// How far both texts go together when white space equals any white space or none.
fn common_end(text: &str, anchor: usize, first: usize, supplied: &str) -> usize {
    let (mut end, mut position, mut taken) = (anchor, anchor, 0);
    loop {
        let there = skip_space(supplied, taken, supplied.len());
        let here = skip_space(text, position, first);
        if here == first || (there > taken && here > position) {
            end = here;
        }
        let same = supplied[there..].chars().next().filter(|_| here != first);
        match same.filter(|character| text[here..].starts_with(*character)) {
            None => return end,
            Some(character) => {
                taken = there + character.len_utf8();
                position = here + character.len_utf8();
                end = position;
            }
        }
    }
}

/// Where the known header ends in `text[begin..first]`, white space and an open reasoning block aside.
pub(super) fn find_header(header: &str, text: &str, begin: usize, first: usize) -> Option<usize> {
    let opened = blocks(header, 0, header.len()).filter(|block| is_reasoning(&header[block.clone()])).last();
    let without = opened.map_or(header, |block| &header[..block.start]);
    [header, without].into_iter().find_map(|wanted| find_loosely(wanted, text, begin, first))
}

/// The end of the first place in `text[begin..first]` where `wanted` stands, its white space being any or none.
fn find_loosely(wanted: &str, text: &str, begin: usize, first: usize) -> Option<usize> {
    let pieces: Vec<&str> = wanted.split(is_space).filter(|piece| !piece.is_empty()).collect();
    let spaced = wanted.ends_with(is_space);
    (begin..=first).filter(|at| text.is_char_boundary(*at)).find_map(|at| {
        let mut end = at;
        for (number, piece) in pieces.iter().enumerate() {
            end = if number > 0 { skip_space(text, end, first) } else { end };
            end = text[end..first].starts_with(piece).then_some(end + piece.len())?;
        }
        Some(if spaced { skip_space(text, end, first) } else { end })
    })
}

/// Where sampling begins when the prompt does not stand in the rendering.
pub(super) fn fallback(
    rendering: &Rendering<'_>,
    index: u32,
    prompt: Option<&Rendering<'_>>,
    (begin, first): (usize, usize),
    header: Option<&str>,
) -> Fallback {
    let (text, anchor) = (rendering.text, rendering.after_data(begin));
    if let Some(prompt) = prompt.filter(|_| anchor > 0) {
        let at = shared_end(text, anchor, first, prompt.supplied());
        if at > begin && !is_blank(&text[anchor..at]) {
            return Fallback::At(at);
        }
    }
    match header {
        _ if is_blank(&text[begin..first]) => Fallback::At(first),
        Some("") if index > 0 => Fallback::At(begin),
        None | Some("") => Fallback::Unknown,
        Some(header) => find_header(header, text, begin, first).map_or(Fallback::NoHeader, Fallback::At),
    }
}

/// The result of [`fallback`].
pub(super) enum Fallback {
    /// Sampling begins there.
    At(usize),
    /// The known header is not in the region: sampling begins with the region.
    NoHeader,
    /// Nothing tells.
    Unknown,
}
