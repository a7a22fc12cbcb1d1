//! The split of GPT-2, by hand.
//!
//! *Invariant*: the same pieces as [`PATTERN`] gives with the reference's regex engine.

use super::Split;
use super::cl100k::{letters, not, run};
use super::class::{self, LETTER, NUMBER, SPACE};
use super::contraction;
use super::space::without_last;

/// What `ByteLevel` with `use_regex` splits with.
pub(super) const PATTERN: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// The splitter.
#[derive(Debug)]
pub(crate) struct Gpt2;

impl Split for Gpt2 {
    #[inline]
    fn next(&self, bytes: &[u8], start: usize) -> usize {
        if bytes[start] == b'\''
            && let Some(end) = contraction::exact(bytes, start)
        {
            return end;
        }
        let (first, length) = class::at(bytes, start);
        let blank = bytes[start] == b' ';
        let (class, length) = if blank { class::at(bytes, start + 1) } else { (first, length) };
        let inside = start + usize::from(blank) + length;
        if class & LETTER != 0 {
            letters(bytes, inside)
        } else if class & NUMBER != 0 {
            run(bytes, inside, NUMBER)
        } else if class & SPACE == 0 && length > 0 {
            not(bytes, inside, SPACE | LETTER | NUMBER)
        } else {
            spaces(bytes, start)
        }
    }
}

/// `\s+(?!\S)|\s+`
fn spaces(bytes: &[u8], start: usize) -> usize {
    let (mut position, mut last) = (start, start);
    loop {
        let (class, length) = class::at(bytes, position);
        if class & SPACE == 0 {
            return without_last(bytes, start, last, position);
        }
        last = position;
        position += length;
    }
}
