//! Byte pair encoding of one pretoken.
//!
//! *Invariant*: merges happen in the reference's order: the lowest rank first, of equal ranks the leftmost. The time is
//! n log n in the length of the pretoken, however it looks.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::merges::{Merge, Merges};
use super::vocab::Bytes;
use crate::TokenId;

/// Up to this length, looking through all pairs for the best is quicker than a heap, and a bit for each symbol fits a word.
const SHORT: usize = 32;
/// The bits of a place in a short pretoken.
const PLACE_BITS: u32 = SHORT.trailing_zeros();
/// The rank that stands for that of no merge where a place is below it.
const LAST: u32 = 1 << 24;

/// A symbol: an id, the byte where it begins, and what becomes of it and the next one.
#[derive(Debug, Clone, Copy)]
struct Symbol {
    id: TokenId,
    start: u32,
    merge: Merge,
}

/// Buffers that are used again from pretoken to pretoken.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    symbols: Vec<Symbol>,
    /// The ids of the last pretoken.
    pub(super) ids: Vec<TokenId>,
    /// The byte of the pretoken where each begins.
    pub(super) starts: Vec<u32>,
}

impl Scratch {
    /// Forgets the last pretoken.
    pub(super) fn begin(&mut self) {
        self.symbols.clear();
    }

    /// Adds a symbol to the pretoken.
    pub(super) fn push(&mut self, id: TokenId, start: u32) {
        self.symbols.push(Symbol { id, start, merge: Merge::NONE });
    }

    /// Adds the symbols of bytes, and ranks them.
    pub(super) fn push_bytes(&mut self, piece: &[u8], bytes: &Bytes) {
        let symbol = |(start, byte): (usize, &u8)| {
            let pair = |next: &u8| bytes.pairs[usize::from(*byte) << 8 | usize::from(*next)];
            let merge = piece.get(start + 1).map_or(Merge::NONE, pair);
            Symbol { id: bytes.ids[usize::from(*byte)], start: start as u32, merge }
        };
        self.symbols.extend(piece.iter().enumerate().map(symbol));
    }

    /// Ranks the symbols.
    pub(super) fn rank_all(&mut self, merges: &Merges) {
        for index in 1..self.symbols.len() {
            let right = self.symbols[index].id;
            let left = &mut self.symbols[index - 1];
            left.merge = merges.get(left.id, right);
        }
    }

    /// Fetches what the first merges will ask for.
    pub(super) fn prepare(&self, merges: &Merges) {
        let mut before = None;
        for (place, symbol) in self.symbols.iter().enumerate().take(SHORT) {
            if symbol.merge != Merge::NONE {
                if let Some(before) = before {
                    merges.prefetch(before, symbol.merge.merged);
                }
                if let Some(after) = self.symbols.get(place + 2) {
                    merges.prefetch(symbol.merge.merged, after.id);
                }
            }
            before = Some(symbol.id);
        }
    }

    /// One id for the whole pretoken.
    pub(super) fn take(&mut self, id: TokenId) {
        self.ids.clear();
        self.starts.clear();
        self.ids.push(id);
        self.starts.push(0);
    }

    /// Merges the symbols, which are ranked, into `ids` and `starts`.
    pub(super) fn merge(&mut self, merges: &Merges) {
        self.ids.clear();
        self.starts.clear();
        if self.symbols.len() <= SHORT {
            self.merge_short(merges);
        } else {
            self.merge_long(merges);
        }
    }

    /// Moves the starts inside characters to the first byte of the character.
    pub(super) fn starts_of_characters(&mut self, piece: &[u8]) {
        for start in &mut self.starts {
            while piece[*start as usize] & 0xC0 == 0x80 {
                *start -= 1;
            }
        }
    }

    /// Merges up to [`SHORT`] symbols: nothing moves, a bit says which are left.
    fn merge_short(&mut self, merges: &Merges) {
        let symbols = self.symbols.as_mut_slice();
        let mut left = low(symbols.len());
        let mut candidates = [candidate(Merge::NONE, 0); SHORT];
        for place in 0..symbols.len().min(SHORT) {
            candidates[place] = candidate(symbols[place].merge, place);
        }
        let used = symbols.len().next_multiple_of(LANES).min(SHORT);
        loop {
            let best = least(&candidates[..used]);
            let at = best as usize % SHORT;
            if best >> PLACE_BITS == LAST as i32 {
                break;
            }
            let id = symbols[at].merge.merged;
            let gone = above(left, at).trailing_zeros() as usize % SHORT;
            left &= !(1 << gone);
            candidates[gone] = candidate(Merge::NONE, 0);
            symbols[at].id = id;
            let after = symbols.get(above(left, at).trailing_zeros() as usize);
            symbols[at].merge = after.map_or(Merge::NONE, |after| merges.get(id, after.id));
            candidates[at] = candidate(symbols[at].merge, at);
            prepare(symbols, left, at, merges);
            if let Some(before) = below(left, at) {
                symbols[before].merge = merges.get(symbols[before].id, id);
                candidates[before] = candidate(symbols[before].merge, before);
                prepare(symbols, left, before, merges);
            }
        }
        while left != 0 {
            let symbol = symbols[left.trailing_zeros() as usize];
            self.ids.push(symbol.id);
            self.starts.push(symbol.start);
            left &= left - 1;
        }
    }

    /// With a heap of candidates and links between the symbols that are left.
    fn merge_long(&mut self, merges: &Merges) {
        let symbols = &mut self.symbols;
        let count = symbols.len();
        let mut next: Vec<u32> = (1..=count as u32).collect();
        let mut previous: Vec<u32> = (0..count as u32).map(|index| index.wrapping_sub(1)).collect();
        let mut alive = vec![true; count];
        // One number, in which the rank counts first, is compared without a branch.
        let ranked_at = |index: usize, symbol: &Symbol| Reverse(u64::from(symbol.merge.rank) << 32 | index as u64);
        let ranked = symbols.iter().enumerate().filter(|(_, symbol)| symbol.merge != Merge::NONE);
        let mut heap: BinaryHeap<_> = ranked.map(|(index, symbol)| ranked_at(index, symbol)).collect();
        while let Some(Reverse(first)) = heap.pop() {
            let (best, at) = ((first >> 32) as u32, first as u32 as usize);
            // An old candidate: one of its two symbols was merged since.
            if !alive[at] || symbols[at].merge.rank != best {
                continue;
            }
            let right = next[at] as usize;
            symbols[at].id = symbols[at].merge.merged;
            alive[right] = false;
            next[at] = next[right];
            symbols[at].merge = Merge::NONE;
            if let Some(after) = symbols.get(next[at] as usize).map(|after| after.id) {
                previous[next[at] as usize] = at as u32;
                symbols[at].merge = merges.get(symbols[at].id, after);
                if symbols[at].merge != Merge::NONE {
                    heap.push(ranked_at(at, &symbols[at]));
                }
            }
            let before = previous[at] as usize;
            let id = symbols[at].id;
            if let Some(symbol) = symbols.get_mut(before) {
                symbol.merge = merges.get(symbol.id, id);
                if symbol.merge != Merge::NONE {
                    heap.push(ranked_at(before, symbol));
                }
            }
        }
        for (symbol, _) in symbols.iter().zip(alive).filter(|(_, alive)| *alive) {
            self.ids.push(symbol.id);
            self.starts.push(symbol.start);
        }
    }
}

/// One number in which the rank counts first, then the place: no branch has to be guessed, and the leftmost of equals is
/// the least.
#[inline]
fn candidate(merge: Merge, place: usize) -> i32 {
    (merge.rank.min(LAST) << PLACE_BITS) as i32 | place as i32
}

/// Fetches what will be asked for if the symbol at a place merges with the next: most of the time is waiting for it.
#[inline]
fn prepare(symbols: &[Symbol], left: u32, place: usize, merges: &Merges) {
    let merge = symbols[place].merge;
    if merge == Merge::NONE {
        return;
    }
    if let Some(before) = below(left, place) {
        merges.prefetch(symbols[before].id, merge.merged);
    }
    let next = above(left, place);
    if let Some(after) = symbols.get((next & next.wrapping_sub(1)).trailing_zeros() as usize) {
        merges.prefetch(merge.merged, after.id);
    }
}

/// The places above one.
#[inline]
fn above(left: u32, place: usize) -> u32 {
    left & !low(place + 1)
}

/// The last place below one.
#[inline]
fn below(left: u32, place: usize) -> Option<usize> {
    (left & low(place)).checked_ilog2().map(|before| before as usize % SHORT)
}

/// So many candidates are compared at once.
const LANES: usize = 8;

#[inline]
fn least(candidates: &[i32]) -> i32 {
    let mut lanes = [i32::MAX; LANES];
    for chunk in candidates.as_chunks::<LANES>().0 {
        for (lane, other) in lanes.iter_mut().zip(chunk) {
            *lane = (*lane).min(*other);
        }
    }
    lanes.into_iter().fold(i32::MAX, i32::min)
}

/// So many bits from the lowest on.
#[inline]
fn low(count: usize) -> u32 {
    1_u32.unbounded_shl(count as u32).wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids 0 and 1; pairs merge into the ids from 2 on, in this order.
    fn merges() -> Merges {
        Merges::new(&[(0, 0, 2), (2, 2, 3), (0, 1, 4), (3, 3, 5), (2, 4, 6), (1, 1, 7)])
    }

    fn encode(symbols: &[TokenId], short: bool) -> (Vec<TokenId>, Vec<u32>) {
        let mut scratch = Scratch::default();
        for (start, id) in symbols.iter().enumerate() {
            scratch.push(*id, start as u32);
        }
        let merges = merges();
        scratch.rank_all(&merges);
        if short {
            scratch.merge_short(&merges);
        } else {
            scratch.merge_long(&merges);
        }
        (scratch.ids, scratch.starts)
    }

    #[test]
    fn the_two_ways_agree() {
        let agree = |bits: u64, length: usize| {
            let symbols: Vec<TokenId> = (0..length).map(|bit| (bits >> bit & 1) as TokenId).collect();
            assert_eq!(encode(&symbols, true), encode(&symbols, false), "{symbols:?}");
        };
        (0..1 << 12).for_each(|bits| agree(bits, 12));
        for number in 0..2_000_u64 {
            agree(number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32, SHORT - (number % 9) as usize);
        }
    }

    #[test]
    fn equal_ranks_merge_from_the_left() {
        assert_eq!(encode(&[0, 0, 0], true), (vec![2, 0], vec![0, 2]));
    }

    #[test]
    fn a_long_run_of_one_symbol_ends() {
        let (ids, starts) = encode(&vec![0; 1_000_001], false);
        assert_eq!(ids.len(), 125_001);
        assert_eq!(starts.last(), Some(&1_000_000));
    }
}
