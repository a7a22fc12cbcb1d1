//! The merges of a vocabulary: which two ids become which third, and how early.

use std::hint::select_unpredictable;

use super::prefetch::prefetch;
use super::stored::Stored;
use crate::TokenId;

const ID_BITS: u32 = 21;
const RANK_BITS: u32 = 22;
const RANK_MASK: u64 = (1 << RANK_BITS) - 1;
/// A slot has room for smaller ids than this.
pub(super) const ID_LIMIT: TokenId = (1 << ID_BITS) - 1;
/// And for so many merges.
pub(super) const MOST: usize = (1 << RANK_BITS) - 2;
/// The id of a symbol that is not there: it merges with none. With no other id does it make the pair of a free slot.
pub(super) const NOBODY: TokenId = TokenId::MIN;
/// A slot with no pair.
const FREE: u64 = u64::MAX;
/// So many pairs share a line of the processor's cache.
const SLOTS: usize = 5;

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

/// Pairs and what becomes of them: all that a merge asks for lies in one line.
#[derive(Debug, Clone)]
#[repr(align(64))]
struct Bucket {
    /// Each pair above its rank; those that are free come last.
    slots: [u64; SLOTS],
    merged: [TokenId; SLOTS],
}

/// A table from pairs of ids to merges: what finds its bucket full is in a later one. The last is always free.
#[derive(Debug)]
pub(super) struct Merges(Box<[Bucket]>);

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

    /// An empty table; half of it will be free, so that few buckets are full.
    fn with_capacity(count: usize) -> Self {
        let bucket = Bucket { slots: [FREE; SLOTS], merged: [0; SLOTS] };
        Self(vec![bucket; count * 2 / SLOTS + 2].into())
    }

    fn insert(&mut self, pair: u64, merge: Merge) {
        let mut index = self.first(pair);
        loop {
            let Bucket { slots, merged } = &mut self.0[index];
            let place = slots.iter().position(|slot| *slot == FREE || slot >> RANK_BITS == pair);
            if let Some(place) = place {
                (slots[place], merged[place]) = (pair << RANK_BITS | u64::from(merge.rank), merge.merged);
                return;
            }
            index = self.behind(index);
        }
    }

    /// What becomes of a pair.
    #[inline]
    pub(super) fn get(&self, left: TokenId, right: TokenId) -> Merge {
        self.get_at(self.first(pair(left, right)) as u32, left, right)
    }

    /// The place of a pair, of which the one or the other may be [`NOBODY`]; what lies there is fetched.
    #[inline]
    pub(super) fn fetch(&self, left: TokenId, right: TokenId) -> u32 {
        let place = select_unpredictable((left | right) >= 0, self.first(pair(left, right)), self.0.len() - 1);
        prefetch(&self.0, place);
        place as u32
    }

    /// What becomes of a pair whose place is known.
    #[inline]
    pub(super) fn get_at(&self, place: u32, left: TokenId, right: TokenId) -> Merge {
        let pair = pair(left, right);
        let mut index = place as usize;
        loop {
            let Bucket { slots, merged } = &self.0[index];
            // Which of them it is cannot be guessed, so no branch asks.
            let mut found = Merge::NONE;
            for (slot, merged) in slots.iter().zip(merged) {
                let merge = Merge { rank: (slot & RANK_MASK) as u32, merged: *merged };
                found = select_unpredictable(slot >> RANK_BITS == pair, merge, found);
            }
            if slots[SLOTS - 1] == FREE || found != Merge::NONE {
                return found;
            }
            index = self.behind(index);
        }
    }

    /// Where the search for a pair begins.
    #[inline]
    fn first(&self, pair: u64) -> usize {
        let hash = pair.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        ((u128::from(hash) * (self.0.len() - 1) as u128) >> 64) as usize
    }

    /// Where it goes on.
    #[inline]
    fn behind(&self, index: usize) -> usize {
        (index + 1) % (self.0.len() - 1)
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
        let slots = self.0.iter().flat_map(|bucket| bucket.slots.iter().zip(&bucket.merged));
        let used = slots.filter(|(slot, _)| **slot != FREE);
        let merge = |slot: &u64, merged: &TokenId| Merge { rank: (slot & RANK_MASK) as u32, merged: *merged };
        used.map(|(slot, merged)| (slot >> RANK_BITS, merge(slot, merged))).collect::<Vec<_>>().write(out);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_has_its_merge_and_others_none() {
        // Far more than buckets hold on the average: some are full.
        let list: Vec<_> = (0..20_000).map(|rank| (rank % 141, rank / 141 + ID_LIMIT - 200, rank)).collect();
        let merges = Merges::new(&list);
        for &(left, right, merged) in &list {
            assert_eq!(merges.get(left, right), Merge { rank: merged as u32, merged });
            assert_eq!(merges.get_at(merges.fetch(left, right), left, right).merged, merged);
            assert_eq!(merges.get(right, left), Merge::NONE);
            for (left, right) in [(NOBODY, right), (left, NOBODY)] {
                assert_eq!(merges.get_at(merges.fetch(left, right), left, right), Merge::NONE);
            }
        }
    }

    #[test]
    fn the_later_of_two_counts_and_none_is_in_an_empty_table() {
        assert_eq!(Merges::new(&[(1, 2, 3), (1, 2, 4)]).get(1, 2), Merge { rank: 1, merged: 4 });
        assert_eq!(Merges::new(&[]).get(0, 0), Merge::NONE);
        assert_eq!(Merges::new(&[]).get(ID_LIMIT - 1, ID_LIMIT - 1), Merge::NONE);
    }

    #[test]
    fn nobody_merges_with_no_id_at_all() {
        let merges = Merges::new(&[(0, 1, 2)]);
        for id in (0..4096).chain(ID_LIMIT - 4096..ID_LIMIT) {
            for (left, right) in [(id, NOBODY), (NOBODY, id)] {
                assert_eq!(merges.get_at(merges.fetch(left, right), left, right), Merge::NONE, "{id}");
            }
        }
    }
}
