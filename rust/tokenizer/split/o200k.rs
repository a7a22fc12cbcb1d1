//! The splits of o200k (gpt-oss, gpt-4o) and of tekken (Mistral), by hand.
//!
//! *Invariant*: the same pieces as [`PATTERN`] (or [`TEKKEN`]) gives with the reference's regex engine.

use std::ops::Range;

use super::Split;
use super::block::{self, Contractions, Rules};
use super::cl100k::{not, numbers, run};
use super::class::{self, BREAK, CASELESS, Class, LETTER, LOWER, MARK, NUMBER, SPACE, UPPER};
use super::contraction;
use super::eight;
use super::space::space_run;

/// The split of o200k.
pub(super) const PATTERN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// The split of tekken: no contractions, each digit alone.
pub(super) const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`
const HEAD: Class = UPPER | CASELESS | MARK;
/// `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`
const TAIL: Class = LOWER | CASELESS | MARK;

/// The splitter: how many digits go together, and whether a word takes its contraction.
#[derive(Debug)]
pub(crate) struct O200k<const DIGITS: usize, const CONTRACTIONS: bool>;

impl<const DIGITS: usize, const CONTRACTIONS: bool> Split for O200k<DIGITS, CONTRACTIONS> {
    #[inline]
    fn next(&self, bytes: &[u8], start: usize) -> usize {
        let (first, length) = class::at(bytes, start);
        let second_start = start + length;
        if let Some(end) = word(bytes, start, first, second_start) {
            let suffix =
                if CONTRACTIONS && bytes.get(end) == Some(&b'\'') { contraction::folded(bytes, end) } else { None };
            return suffix.unwrap_or(end);
        }
        if first & NUMBER != 0 {
            return numbers(bytes, second_start, DIGITS - 1);
        }
        if first & SPACE == 0 {
            return others(bytes, second_start);
        }
        let (second, second_length) = class::at(bytes, second_start);
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

impl<const DIGITS: usize, const CONTRACTIONS: bool> O200k<DIGITS, CONTRACTIONS> {
    const RULES: Rules = Rules {
        digits: DIGITS,
        contractions: if CONTRACTIONS { Contractions::Suffix } else { Contractions::None },
        cased: true,
        no_controls: false,
    };
}

/// The end of a word without its contraction: the two word alternatives, each first with the character before the
/// word and then without.
#[inline]
fn word(bytes: &[u8], start: usize, first: Class, second_start: usize) -> Option<usize> {
    if first & LETTER != 0 {
        return lower(bytes, start).or_else(|| upper(bytes, start));
    }
    if first & (BREAK | NUMBER) != 0 {
        return None;
    }
    let inside = class::at(bytes, second_start).0 & (LETTER | MARK) != 0;
    let mark = first & MARK != 0;
    if !inside && !mark {
        return None;
    }
    let without = |find: fn(&[u8], usize) -> Option<usize>| if mark { find(bytes, start) } else { None };
    lower(bytes, second_start)
        .or_else(|| without(lower))
        .or_else(|| upper(bytes, second_start))
        .or_else(|| without(upper))
}

/// `HEAD*TAIL+`
#[inline]
fn lower(bytes: &[u8], start: usize) -> Option<usize> {
    // Most words are small letters, perhaps after one capital.
    let first = start + usize::from(bytes.get(start).is_some_and(u8::is_ascii_uppercase));
    let end = eight::small(bytes, first);
    if end > first && bytes.get(end).is_some_and(u8::is_ascii) {
        // A small letter can only be followed by more near the end of the text.
        return Some(run(bytes, end, TAIL));
    }
    let mut position = start;
    let mut after_both = None;
    loop {
        let (class, length) = class::at(bytes, position);
        if class & HEAD == 0 {
            return if class & TAIL == 0 { after_both } else { Some(run(bytes, position + length, TAIL)) };
        }
        position += length;
        if class & TAIL != 0 {
            after_both = Some(position);
        }
    }
}

/// `HEAD+TAIL*` where `HEAD*TAIL+` does not match: no tail follows.
#[inline]
fn upper(bytes: &[u8], start: usize) -> Option<usize> {
    let end = run(bytes, start, HEAD);
    (end > start).then_some(end)
}

/// `[^\s\p{L}\p{N}]*[\r\n/]*`
#[inline]
fn others(bytes: &[u8], start: usize) -> usize {
    let mut position = not(bytes, start, SPACE | LETTER | NUMBER);
    while matches!(bytes.get(position), Some(b'\r' | b'\n' | b'/')) {
        position += 1;
    }
    position
}
