//! The split of cl100k, Qwen and Llama 3, by hand: they differ in how many digits go together.
//!
//! *Invariant*: the same pieces as [`PATTERN_3`] (or [`PATTERN_1`]) gives with the reference's regex engine.

use std::ops::Range;

use super::Split;
use super::block::{self, Contractions, Rules};
use super::class::{self, BREAK, Class, LETTER, NUMBER, SPACE};
use super::contraction;
use super::eight;
use super::space::space_run;

/// Up to three digits together.
pub(super) const PATTERN_3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// Each digit alone.
pub(super) const PATTERN_1: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// The splitter, with the number of digits that go together.
#[derive(Debug)]
pub(crate) struct Cl100k<const DIGITS: usize>;

impl<const DIGITS: usize> Split for Cl100k<DIGITS> {
    #[inline]
    fn next(&self, bytes: &[u8], start: usize) -> usize {
        let (first, length) = class::at(bytes, start);
        if first & LETTER != 0 {
            return letters(bytes, start + length);
        }
        let second_start = start + length;
        let (second, second_length) = class::at(bytes, second_start);
        if second & LETTER != 0 && first & (BREAK | NUMBER) == 0 {
            if bytes[start] == b'\''
                && let Some(end) = contraction::folded(bytes, start)
            {
                return end;
            }
            return letters(bytes, second_start + second_length);
        }
        if first & NUMBER != 0 {
            return numbers(bytes, second_start, DIGITS - 1);
        }
        if first & SPACE == 0 {
            return others(bytes, second_start);
        }
        if bytes[start] == b' ' && second_length > 0 && second & (SPACE | NUMBER) == 0 {
            return others(bytes, second_start + second_length);
        }
        space_run(bytes, start)
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "measured: what it is compiled for depends on the caller")]
    fn each<const WIDE: bool>(&self, bytes: &[u8], range: Range<usize>, piece: impl FnMut(usize, usize)) {
        block::each::<WIDE>(self, Self::RULES, bytes, range, piece);
    }
}

impl<const DIGITS: usize> Cl100k<DIGITS> {
    const RULES: Rules = Rules { digits: DIGITS, contractions: Contractions::Apart, cased: false, no_controls: false };
}

/// The end of the run of letters.
#[inline]
pub(super) fn letters(bytes: &[u8], position: usize) -> usize {
    let position = eight::letters(bytes, position);
    match bytes.get(position) {
        Some(byte) if byte.is_ascii() && !byte.is_ascii_alphabetic() => position,
        _ => run(bytes, position, LETTER),
    }
}

/// The end of the run of characters of a class.
#[inline]
pub(super) fn run(bytes: &[u8], mut position: usize, class: Class) -> usize {
    loop {
        let (found, length) = class::at(bytes, position);
        if found & class == 0 {
            return position;
        }
        position += length;
    }
}

/// The end of at most `more` further numbers.
#[inline]
pub(super) fn numbers(bytes: &[u8], mut position: usize, more: usize) -> usize {
    for _ in 0..more {
        let (found, length) = class::at(bytes, position);
        if found & NUMBER == 0 {
            break;
        }
        position += length;
    }
    position
}

/// `[^\s\p{L}\p{N}]*[\r\n]*`
#[inline]
fn others(bytes: &[u8], start: usize) -> usize {
    run(bytes, not(bytes, start, SPACE | LETTER | NUMBER), BREAK)
}

/// The end of the run of characters outside a class.
#[inline]
pub(super) fn not(bytes: &[u8], mut position: usize, class: Class) -> usize {
    loop {
        let (found, length) = class::at(bytes, position);
        if length == 0 || found & class != 0 {
            return position;
        }
        position += length;
    }
}
