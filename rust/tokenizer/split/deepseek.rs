//! The three splits of `DeepSeek` in one pass.
//!
//! *Invariant*: the same pieces as the three [`PATTERNS`], one after the other, give with the reference's regex engine.

use std::ops::Range;

use super::Split;
use super::block::{self, Contractions, Rules};
use super::cl100k::{numbers, run};
use super::class::{self, BREAK, Class, KANA, LETTER, MARK, NUMBER, SPACE, SYMBOL};
use super::eight;
use super::space::space_run;

/// The patterns, each applied to the pieces of the one before.
pub(super) const PATTERNS: [&str; 3] = [
    r"\p{N}{1,3}",
    "[一-龥\u{3040}-ゟ゠-ヿ]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
];

/// The splitter.
#[derive(Debug)]
pub(crate) struct DeepSeek;

impl Split for DeepSeek {
    fn next(&self, bytes: &[u8], start: usize) -> usize {
        let (first, length) = class::at(bytes, start);
        if first & NUMBER != 0 {
            numbers(bytes, start + length, 2)
        } else {
            piece_end(bytes, start + length, first & KANA)
        }
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "measured: what it is compiled for depends on the caller")]
    fn each<const WIDE: bool>(&self, bytes: &[u8], range: Range<usize>, mut piece: impl FnMut(usize, usize)) {
        let mut start = range.start;
        while start < range.end {
            let end = self.next(&bytes[..range.end], start);
            block::each::<WIDE>(&Words, Words::RULES, bytes, start..end, &mut piece);
            start = end;
        }
    }
}

/// The third pattern in a text that the first two have cut off; what it does not match is left together.
struct Words;

impl Split for Words {
    fn next(&self, bytes: &[u8], start: usize) -> usize {
        let mut position = start;
        while position < bytes.len() {
            match matched(bytes, position) {
                Some(end) if position == start => return end,
                Some(_) => return position,
                None => position += class::at(bytes, position).1,
            }
        }
        position
    }
}

impl Words {
    const RULES: Rules = Rules { digits: 3, contractions: Contractions::None, cased: false, no_controls: true };
}

/// The end of the piece that the first two patterns leave: a run of kana, or of neither kana nor numbers.
#[inline]
fn piece_end(bytes: &[u8], mut position: usize, kana: Class) -> usize {
    loop {
        if kana == 0 {
            position = eight::without_digits(bytes, position);
        }
        let (class, length) = class::at(bytes, position);
        // A run of kana has no numbers in it, and other text has neither.
        if length == 0 || class & KANA != kana || class & NUMBER != 0 {
            return position;
        }
        position += length;
    }
}

/// The third pattern at a position.
#[inline]
fn matched(bytes: &[u8], start: usize) -> Option<usize> {
    let (first, length) = class::at(bytes, start);
    let second_start = start + length;
    if bytes[start].is_ascii_punctuation() && bytes.get(second_start).is_some_and(u8::is_ascii_alphabetic) {
        return Some(letters(bytes, second_start));
    }
    if first & (LETTER | MARK) != 0 {
        return Some(word(bytes, second_start));
    }
    let (second, second_length) = class::at(bytes, second_start);
    if first & (BREAK | SYMBOL) == 0 && second & (LETTER | MARK) != 0 {
        return Some(word(bytes, second_start + second_length));
    }
    if first & SYMBOL != 0 {
        return Some(symbols(bytes, second_start));
    }
    if bytes[start] == b' ' && second & SYMBOL != 0 {
        return Some(symbols(bytes, second_start + second_length));
    }
    (first & SPACE != 0).then(|| space_run(bytes, start))
}

/// `[A-Za-z]*`
#[inline]
fn letters(bytes: &[u8], start: usize) -> usize {
    let start = eight::letters(bytes, start);
    bytes[start..].iter().position(|byte| !byte.is_ascii_alphabetic()).map_or(bytes.len(), |length| start + length)
}

/// `[\p{L}\p{M}]*`
#[inline]
fn word(bytes: &[u8], start: usize) -> usize {
    let end = eight::letters(bytes, start);
    match bytes.get(end) {
        Some(byte) if byte.is_ascii() && !byte.is_ascii_alphabetic() => end,
        _ => run(bytes, end, LETTER | MARK),
    }
}

/// `[\p{P}\p{S}]*[\r\n]*`
fn symbols(bytes: &[u8], start: usize) -> usize {
    run(bytes, run(bytes, start, SYMBOL), BREAK)
}
