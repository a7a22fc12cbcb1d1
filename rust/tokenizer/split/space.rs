//! `\s*[\r\n]+|\s+(?!\S)|\s+`: how most splits end.

use super::class::{self, BREAK, SPACE};

/// The end of the piece that begins with white space where no other alternative matched.
pub(super) fn space_run(bytes: &[u8], start: usize) -> usize {
    let mut position = start;
    let mut last = start;
    let mut after_break = None;
    loop {
        let (class, length) = class::at(bytes, position);
        if class & SPACE == 0 {
            break;
        }
        last = position;
        position += length;
        if class & BREAK != 0 {
            after_break = Some(position);
        }
    }
    match after_break {
        Some(end) => end,
        None => without_last(bytes, start, last, position),
    }
}

/// `\s+(?!\S)|\s+` over the white space `start..end` whose last character begins at `last`.
pub(super) fn without_last(bytes: &[u8], start: usize, last: usize, end: usize) -> usize {
    if end == bytes.len() || last == start { end } else { last }
}
