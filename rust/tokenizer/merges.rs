//! The merges of a vocabulary: which two ids become which third, and how early.

use super::prefetch::prefetch;
use super::stored::Stored;
use crate::TokenId;

/// The most merges, and the largest ids, that [`super::bpe`] and a slot have room for.
pub(super) const MOST: usize = (1 << 22) - 2;
const ID_BITS: u32 = 21;
/// No pair has it.
const FREE: u64 = u64::MAX;

/// What becomes of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Merge {
    /// The lowest rank merges first.
    pub(super) rank: u32,
    pub(super) merged: TokenId,
}

impl Merge {
    /// That of a pair that does not merge: the highest rank.
    pub(super) const NONE: Self = Self { rank: u32::MAX, merged: 0 };
}

/// A pair and what becomes of it: all that a merge asks for lies together.
#[derive(Debug, Clone, Copy)]
struct Slot {
    pair: u64,
    merge: Merge,
}

/// A table from pairs of ids to merges, with open addressing.
#[derive(Debug)]
pub(super) struct Merges {
    slots: Box<[Slot]>,
    shift: u32,
}

impl Merges {
    /// The table of `(left, right, merged)` in the order of their ranks, at most [`MOST`]. A pair that is named again
    /// has the later rank, as in the reference.
    pub(super) fn new(list: &[(TokenId, TokenId, TokenId)]) -> Self {
        let mut table = Self::with_capacity(list.len());
        for (rank, &(left, right, merged)) in list.iter().enumerate() {
            table.insert(pair(left, right), Merge { rank: rank as u32, merged });
        }
        table
    }

    /// An empty table; a third or more will be free.
    fn with_capacity(count: usize) -> Self {
        let size = (count * 3 / 2 + 2).next_power_of_two();
        let slots = vec![Slot { pair: FREE, merge: Merge::NONE }; size];
        Self { slots: slots.into(), shift: 64 - size.trailing_zeros() }
    }

    fn insert(&mut self, pair: u64, merge: Merge) {
        let index = self.find(pair);
        self.slots[index] = Slot { pair, merge };
    }

    /// What becomes of a pair.
    #[inline]
    pub(super) fn get(&self, left: TokenId, right: TokenId) -> Merge {
        self.slots[self.find(pair(left, right))].merge
    }

    /// Fetches what [`Self::get`] will read.
    #[inline]
    pub(super) fn prefetch(&self, left: TokenId, right: TokenId) {
        prefetch(&self.slots, self.first(pair(left, right)));
    }

    /// The slot of a pair, or the free one where it would be.
    #[inline]
    fn find(&self, pair: u64) -> usize {
        let mut index = self.first(pair);
        loop {
            let slot = self.slots[index].pair;
            if slot == FREE || slot == pair {
                return index;
            }
            index = (index + 1) & (self.slots.len() - 1);
        }
    }

    /// Where the search for a pair begins.
    #[inline]
    fn first(&self, pair: u64) -> usize {
        (pair.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize
    }
}

impl Stored for Merge {
    fn write(&self, out: &mut Vec<u8>) {
        (self.rank, self.merged).write(out);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        let (rank, merged) = Stored::read(from)?;
        Some(Self { rank, merged })
    }
}

impl Stored for Merges {
    fn write(&self, out: &mut Vec<u8>) {
        let used = self.slots.iter().filter(|slot| slot.pair != FREE);
        used.map(|slot| (slot.pair, slot.merge)).collect::<Vec<_>>().write(out);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        let used: Vec<(u64, Merge)> = Stored::read(from)?;
        let mut table = Self::with_capacity(used.len());
        for (pair, merge) in used {
            table.insert(pair, merge);
        }
        Some(table)
    }
}

#[inline]
fn pair(left: TokenId, right: TokenId) -> u64 {
    u64::from(left as u32) << ID_BITS | u64::from(right as u32)
}
