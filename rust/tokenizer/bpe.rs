//! Byte pair encoding of one pretoken.
//!
//! *Invariant*: merges happen in the reference's order: the lowest rank first, of equal ranks the leftmost. The time is
//! n log n in the length of the pretoken, however it looks.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::merges::{Merge, Merges};
use crate::TokenId;

/// What a pretoken becomes: ids, and the byte of the pretoken where each begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Merged<'a> {
    pub(super) ids: &'a [TokenId],
    pub(super) starts: &'a [u32],
}

/// A symbol: an id, the byte where it begins, and what becomes of it and the next one.
#[derive(Debug, Clone, Copy)]
struct Symbol {
    id: TokenId,
    start: u32,
    merge: Merge,
}

/// A pretoken of any length, with buffers that are used again.
#[derive(Debug, Default)]
pub(super) struct Long {
    symbols: Vec<Symbol>,
    ids: Vec<TokenId>,
    starts: Vec<u32>,
}

impl Long {
    /// Forgets the last pretoken.
    pub(super) fn begin(&mut self) {
        self.symbols.clear();
        self.ids.clear();
        self.starts.clear();
    }

    /// Adds a symbol.
    pub(super) fn push(&mut self, id: TokenId, start: u32) {
        self.symbols.push(Symbol { id, start, merge: Merge::NONE });
    }

    /// What the pretoken becomes; `piece` is its text.
    pub(super) fn merged(&mut self, merges: &Merges, piece: &[u8]) -> Merged<'_> {
        self.rank_all(merges);
        self.merge(merges);
        starts_of_characters(&mut self.starts, piece);
        Merged { ids: &self.ids, starts: &self.starts }
    }

    fn rank_all(&mut self, merges: &Merges) {
        for index in 1..self.symbols.len() {
            let right = self.symbols[index].id;
            let left = &mut self.symbols[index - 1];
            left.merge = merges.get(left.id, right);
        }
    }

    /// With a heap of candidates and links between the symbols that are left.
    fn merge(&mut self, merges: &Merges) {
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

/// Moves the starts inside characters to the first byte of the character.
pub(super) fn starts_of_characters(starts: &mut [u32], piece: &[u8]) {
    for start in starts {
        while piece[*start as usize] & 0xC0 == 0x80 {
            *start -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_of_one_symbol_ends() {
        let merges = Merges::new(&[(0, 0, 1), (1, 1, 2), (2, 2, 3)]);
        let mut long = Long::default();
        long.begin();
        (0..1_000_001).for_each(|start| long.push(0, start));
        let found = long.merged(&merges, &vec![0; 1_000_001]);
        assert_eq!(found.ids.len(), 125_001);
        assert_eq!(found.starts.last(), Some(&1_000_000));
    }
}
