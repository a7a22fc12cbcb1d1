//! The merges of a vocabulary: which two ids become which third, and how early.

use super::stored::Stored;
use crate::TokenId;

/// The rank of a pair that does not merge.
pub(super) const NONE: u32 = u32::MAX;
/// The most merges, and the largest ids, that fit a slot.
pub(super) const MOST: usize = (1 << RANK_BITS) - 2;
const RANK_BITS: u32 = 22;
const ID_BITS: u32 = 21;
/// No pair has it.
const FREE: u64 = u64::MAX;

/// A table from pairs of ids to ranks, with open addressing: a slot has two ids and a rank, so a line of the processor's
/// cache holds eight.
#[derive(Debug)]
pub(super) struct Merges {
    slots: Box<[u64]>,
    shift: u32,
    /// For each rank, what the pair becomes.
    merged: Box<[TokenId]>,
}

impl Merges {
    /// The table of `(left, right, merged)` in the order of their ranks, at most [`MOST`]. A pair that is named again
    /// has the later rank, as in the reference.
    pub(super) fn new(list: &[(TokenId, TokenId, TokenId)]) -> Self {
        let size = (list.len() * 3 / 2 + 2).next_power_of_two();
        let merged = list.iter().map(|merge| merge.2).collect();
        let mut table = Self { slots: vec![FREE; size].into(), shift: 64 - size.trailing_zeros(), merged };
        for (rank, &(left, right, _)) in list.iter().enumerate() {
            let index = table.find(left, right);
            table.slots[index] = pair(left, right) << RANK_BITS | rank as u64;
        }
        table
    }

    /// The rank of a pair, or [`NONE`].
    #[inline]
    pub(super) fn rank(&self, left: TokenId, right: TokenId) -> u32 {
        let slot = self.slots[self.find(left, right)];
        if slot == FREE { NONE } else { slot as u32 & ((1 << RANK_BITS) - 1) }
    }

    /// What the pair of a rank becomes.
    #[inline]
    pub(super) fn merged(&self, rank: u32) -> TokenId {
        self.merged[rank as usize]
    }

    /// The slot of a pair, or the free one where it would be.
    #[inline]
    fn find(&self, left: TokenId, right: TokenId) -> usize {
        let pair = pair(left, right);
        let mut index = (pair.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize;
        loop {
            let slot = self.slots[index];
            if slot == FREE || slot >> RANK_BITS == pair {
                return index;
            }
            index = (index + 1) & (self.slots.len() - 1);
        }
    }
}

impl Stored for Merges {
    fn write(&self, out: &mut Vec<u8>) {
        self.slots.write(out);
        self.merged.write(out);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        let slots: Box<[u64]> = Stored::read(from)?;
        let merged = Stored::read(from)?;
        // Without a free slot, a search would not end.
        let is_table = slots.len().is_power_of_two() && slots.len() > 1 && slots.contains(&FREE);
        is_table.then(|| Self { shift: 64 - slots.len().trailing_zeros(), slots, merged })
    }
}

#[inline]
fn pair(left: TokenId, right: TokenId) -> u64 {
    u64::from(left as u32) << ID_BITS | u64::from(right as u32)
}
