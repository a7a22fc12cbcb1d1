//! Up to 64 characters of ASCII at a time: where pretokens begin, found with bits in place of branches.
//!
//! *Invariant*: the beginnings that are given are those that the splitter finds one by one, whatever follows the block.
//!
//! Bit `i` of every number stands for byte `i` of the block. A block begins where a pretoken does, so nothing before it
//! matters; what lies behind it may, and beginnings that depend on that are left out.

use std::ops::Range;

use super::Split;
#[cfg(target_arch = "x86_64")]
use super::classes::Classes;
use super::contraction;

/// Where a block takes the text no further than this, the rest of the way is made piece by piece.
const STEP: usize = 32;

/// How contractions are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contractions {
    /// They are nothing of their own.
    None,
    /// Each is a pretoken.
    Apart,
    /// Each ends the word before it.
    Suffix,
}

/// What the families differ in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// How many digits go together: one or three.
    pub(super) digits: usize,
    pub(super) contractions: Contractions,
    /// A capital after a small letter begins a word, and a slash goes on with the line breaks after symbols.
    pub(super) cased: bool,
    /// Characters that are neither printed nor white space are no symbols; blocks end before them.
    pub(super) no_controls: bool,
}

/// Calls `piece` with the start and the end of every piece of a range of a text, in order: those of blocks, and one by
/// one those that no block is sure of. `WIDE` as for [`Classes::of`].
#[inline(always)]
#[expect(clippy::inline_always, reason = "measured: the rules are constants then")]
pub(super) fn each<const WIDE: bool>(
    splitter: &impl Split,
    rules: Rules,
    bytes: &[u8],
    range: Range<usize>,
    mut piece: impl FnMut(usize, usize),
) {
    let mut start = range.start;
    while start < range.end {
        let until = range.end.min(start + STEP);
        #[cfg(target_arch = "x86_64")]
        if bytes[start].is_ascii() {
            let (base, left) = (start, (range.end - start).min(64) as u32);
            let mut ends = match bytes.get(start..start + 64).and_then(|block| block.try_into().ok()) {
                Some(block) => starts::<WIDE>(rules, block, left),
                None => starts::<WIDE>(rules, &padded(&bytes[start..]), left),
            };
            ends &= ends - 1;
            while ends != 0 {
                let end = base + ends.trailing_zeros() as usize;
                piece(start, end);
                start = end;
                ends &= ends - 1;
            }
        }
        while start < until {
            let end = splitter.next(&bytes[..range.end], start);
            piece(start, end);
            start = end;
        }
    }
}

/// The last bytes of a text.
#[cfg(target_arch = "x86_64")]
fn padded(bytes: &[u8]) -> [u8; 64] {
    let mut block = [0; 64];
    block[..bytes.len()].copy_from_slice(bytes);
    block
}

/// So many bits from the lowest on.
#[inline]
const fn low(count: u32) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

/// The beginnings of pretokens in a block of `length` bytes, of which the first is one.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
#[expect(clippy::inline_always, reason = "measured: the rules are constants then")]
fn starts<const WIDE: bool>(rules: Rules, block: &[u8; 64], length: u32) -> u64 {
    let classes = Classes::of::<WIDE>(rules, block);
    let controls = if rules.no_controls { classes.controls & !classes.white } else { 0 };
    let length = (classes.wide | controls).trailing_zeros().min(length);
    if length == 0 {
        return 1;
    }
    let within = low(length);
    let (letters, digits) = (classes.letters & within, classes.digits & within);
    let (white, breaks) = (classes.white & within, classes.breaks & within);
    let symbols = within & !(letters | digits | white);
    let spaces = white & !breaks;

    // White space up to the last break goes together, what follows it is apart, and its last character begins the next
    // pretoken.
    let leading = flooded(spaces & (breaks >> 1), spaces);
    let lines = breaks | leading;
    let trailing = spaces & !leading;
    let last = trailing & !(trailing >> 1);
    let mut starts = 1 | lines & !(lines << 1) & (!(symbols << 1) | leading) | trailing & !(trailing << 1) | last;

    // Symbols take a space before them and the breaks behind them; a single one without a space goes with letters.
    let first = symbols & !(symbols << 1) & !(classes.space << 1);
    let joined = first & !(symbols >> 1) & (letters >> 1);
    let after_breaks = breaks.wrapping_add(breaks & (symbols << 1)) & !breaks;
    starts |= first | after_breaks & leading;
    starts |= letters & !(letters << 1) & !(spaces << 1) & !(joined << 1);
    starts |= if rules.digits == 1 { digits } else { threes(digits) };
    if rules.cased {
        starts |= classes.capitals & within & (letters & !classes.capitals) << 1;
    }

    let mut sure = sure(white, length);
    if rules.cased {
        sure = sure.min((after_breaks & classes.slashes).trailing_zeros());
    }
    match rules.contractions {
        Contractions::None => {}
        Contractions::Apart => apart(block, classes.apostrophes & joined, length, &mut starts, &mut sure),
        Contractions::Suffix => {
            let after_words = classes.apostrophes & within & letters << 1;
            suffixes(block, after_words, length, &mut starts, &mut sure);
        }
    }
    starts & low(sure)
}

/// The bits of `inside` from which steps upwards, all inside, lead to a bit of `last`.
#[inline]
fn flooded(mut last: u64, inside: u64) -> u64 {
    // Rare: white space at the end of a line.
    while last != 0 {
        let more = last | (last >> 1 & inside);
        if more == last {
            break;
        }
        last = more;
    }
    last
}

/// The first, fourth, seventh, … digit of every run.
#[inline]
fn threes(digits: u64) -> u64 {
    let mut starts = digits & !(digits << 1);
    let whole = digits & digits << 1 & digits << 2 & digits << 3;
    let mut next = starts << 3 & whole;
    while next != 0 {
        starts |= next;
        next = next << 3 & whole;
    }
    starts
}

/// The number of bytes whose beginnings are certain: all, but white space at the end of the block may go on.
#[inline]
fn sure(white: u64, length: u32) -> u32 {
    let at_end = (!(white << (64 - length))).leading_zeros();
    if at_end == 0 { length } else { (length - at_end.min(length) + 1).min(length) }
}

/// Contractions that are pretokens.
#[inline]
fn apart(block: &[u8; 64], mut candidates: u64, length: u32, starts: &mut u64, sure: &mut u32) {
    while candidates != 0 {
        let at = candidates.trailing_zeros();
        if at + 2 >= length {
            *sure = at.wrapping_add(1).min(*sure);
            return;
        }
        if let Some(end) = contraction::folded(block, at as usize) {
            *starts |= 1_u64.checked_shl(end as u32).unwrap_or(0);
        }
        candidates &= candidates - 1;
    }
}

/// Contractions that end a word.
#[inline]
fn suffixes(block: &[u8; 64], mut candidates: u64, length: u32, starts: &mut u64, sure: &mut u32) {
    let mut before = 0;
    while candidates != 0 {
        let at = candidates.trailing_zeros();
        if at + 2 >= length {
            *sure = at.min(*sure);
            return;
        }
        if at != before
            && let Some(end) = contraction::folded(block, at as usize)
        {
            before = end as u32;
            *starts = *starts & !(low(before) & !low(at)) | 1_u64.checked_shl(before).unwrap_or(0);
        }
        candidates &= candidates - 1;
    }
}
