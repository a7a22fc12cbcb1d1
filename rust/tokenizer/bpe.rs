//! Byte pair encoding of one pretoken.
//!
//! *Invariant*: merges happen in the reference's order: the lowest rank first, of equal ranks the leftmost. The time is
//! n log n in the length of the pretoken, however it looks.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::merges::{Merges, NONE};
use super::vocab::Bytes;
use crate::TokenId;

/// Up to this length, looking through all pairs for the best is quicker than a heap.
const SHORT: usize = 48;

/// A symbol: an id, the byte where it begins, and the rank of its merge with the next one.
#[derive(Debug, Clone, Copy)]
struct Symbol {
    id: TokenId,
    start: u32,
    rank: u32,
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
        self.symbols.push(Symbol { id, start, rank: NONE });
    }

    /// Adds the symbols of bytes, and ranks them.
    pub(super) fn push_bytes(&mut self, piece: &[u8], bytes: &Bytes) {
        let symbol = |(start, byte): (usize, &u8)| {
            let rank =
                piece.get(start + 1).map_or(NONE, |next| bytes.ranks[usize::from(*byte) << 8 | usize::from(*next)]);
            Symbol { id: bytes.ids[usize::from(*byte)], start: start as u32, rank }
        };
        self.symbols.extend(piece.iter().enumerate().map(symbol));
    }

    /// Ranks the symbols.
    pub(super) fn rank_all(&mut self, merges: &Merges) {
        for index in 1..self.symbols.len() {
            let right = self.symbols[index].id;
            let left = &mut self.symbols[index - 1];
            left.rank = merges.rank(left.id, right);
        }
    }

    /// Merges the symbols, which are ranked, into `ids` and `starts`.
    pub(super) fn merge(&mut self, merges: &Merges) {
        if self.symbols.len() <= SHORT {
            self.merge_short(merges);
        } else {
            self.merge_long(merges);
        }
        self.ids.clear();
        self.starts.clear();
        self.ids.extend(self.symbols.iter().map(|symbol| symbol.id));
        self.starts.extend(self.symbols.iter().map(|symbol| symbol.start));
    }

    /// Moves the starts inside characters to the first byte of the character.
    pub(super) fn starts_of_characters(&mut self, piece: &[u8]) {
        for start in &mut self.starts {
            while piece[*start as usize] & 0xC0 == 0x80 {
                *start -= 1;
            }
        }
    }

    fn merge_short(&mut self, merges: &Merges) {
        let symbols = &mut self.symbols;
        loop {
            // The index is part of what is compared: no branch has to be guessed, and the leftmost of equals wins.
            let mut best = u64::MAX;
            for (index, symbol) in symbols.iter().enumerate() {
                best = best.min(u64::from(symbol.rank) << 32 | index as u64);
            }
            let (rank, at) = ((best >> 32) as u32, best as u32 as usize);
            if rank == NONE {
                return;
            }
            let id = merges.merged(rank);
            symbols.remove(at + 1);
            let after = symbols.get(at + 1).map_or(NONE, |next| merges.rank(id, next.id));
            (symbols[at].id, symbols[at].rank) = (id, after);
            if at > 0 {
                symbols[at - 1].rank = merges.rank(symbols[at - 1].id, id);
            }
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
        let candidate = |index: usize, symbol: &Symbol| Reverse(u64::from(symbol.rank) << 32 | index as u64);
        let ranked = symbols.iter().enumerate().filter(|(_, symbol)| symbol.rank != NONE);
        let mut heap: BinaryHeap<_> = ranked.map(|(index, symbol)| candidate(index, symbol)).collect();
        while let Some(Reverse(first)) = heap.pop() {
            let (best, at) = ((first >> 32) as u32, first as u32 as usize);
            // An old candidate: one of its two symbols was merged since.
            if !alive[at] || symbols[at].rank != best {
                continue;
            }
            let right = next[at] as usize;
            symbols[at].id = merges.merged(best);
            alive[right] = false;
            next[at] = next[right];
            symbols[at].rank = NONE;
            if let Some(after) = symbols.get(next[at] as usize).map(|after| after.id) {
                previous[next[at] as usize] = at as u32;
                symbols[at].rank = merges.rank(symbols[at].id, after);
                if symbols[at].rank != NONE {
                    heap.push(candidate(at, &symbols[at]));
                }
            }
            let before = previous[at] as usize;
            let id = symbols[at].id;
            if let Some(symbol) = symbols.get_mut(before) {
                symbol.rank = merges.rank(symbol.id, id);
                if symbol.rank != NONE {
                    heap.push(candidate(before, symbol));
                }
            }
        }
        let mut index = 0;
        symbols.retain(|_| {
            index += 1;
            alive[index - 1]
        });
    }
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
        scratch.symbols.iter().map(|symbol| (symbol.id, symbol.start)).unzip()
    }

    #[test]
    fn the_two_ways_agree() {
        for bits in 0..1_u32 << 12 {
            let symbols: Vec<TokenId> = (0..12).map(|bit| (bits >> bit & 1) as TokenId).collect();
            assert_eq!(encode(&symbols, true), encode(&symbols, false), "{symbols:?}");
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
