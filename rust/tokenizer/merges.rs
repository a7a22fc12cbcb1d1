//! The merges of a vocabulary: which two ids become which third, and how early.

use crate::TokenId;

#[derive(Debug, Clone, Copy)]
struct Slot {
    left: TokenId,
    right: TokenId,
    rank: u32,
    merged: TokenId,
}

const FREE: Slot = Slot { left: -1, right: -1, rank: 0, merged: 0 };

/// A table from pairs of ids, with open addressing.
#[derive(Debug)]
pub(super) struct Merges {
    slots: Box<[Slot]>,
    shift: u32,
}

impl Merges {
    /// The table of `(left, right, merged)` in the order of their ranks. A pair that is named again has the later rank,
    /// as in the reference.
    pub(super) fn new(list: &[(TokenId, TokenId, TokenId)]) -> Self {
        let size = (list.len() * 3 / 2 + 2).next_power_of_two();
        let mut table = Self { slots: vec![FREE; size].into(), shift: 64 - size.trailing_zeros() };
        for (rank, &(left, right, merged)) in list.iter().enumerate() {
            let index = table.find(left, right);
            table.slots[index] = Slot { left, right, rank: rank as u32, merged };
        }
        table
    }

    /// The rank of a pair, and what it becomes.
    #[inline]
    pub(super) fn get(&self, left: TokenId, right: TokenId) -> Option<(u32, TokenId)> {
        let slot = self.slots[self.find(left, right)];
        (slot.left >= 0).then_some((slot.rank, slot.merged))
    }

    /// The slot of a pair, or the free one where it would be.
    #[inline]
    fn find(&self, left: TokenId, right: TokenId) -> usize {
        let pair = u64::from(left as u32) << 32 | u64::from(right as u32);
        let mut index = (pair.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize;
        loop {
            let slot = &self.slots[index];
            if slot.left < 0 || (slot.left == left && slot.right == right) {
                return index;
            }
            index = (index + 1) & (self.slots.len() - 1);
        }
    }
}
