//! Byte pair encoding of short pretokens, several side by side.
//!
//! Most of the time goes into waiting for the table of merges, which no cache of a core holds. So what a pretoken will
//! ask for is fetched, and others go on meanwhile.
//!
//! *Invariant*: each is merged as [`super::bpe`] says, whatever lies beside it.

use super::bpe::{Merged, starts_of_characters};
use super::merges::{Merge, Merges, NOBODY};
use super::vocab::Bytes;
use crate::TokenId;

/// The most symbols of a short pretoken: a bit for each fits a word, and looking at all pairs finds the best quickly.
pub(super) const SHORT: usize = 32;
/// So many pretokens are merged side by side at most: a bit for each fits a word.
pub(super) const MOST: usize = 32;
/// Behind the places of symbols are some where nobody stands: a neighbour that is missing is one of them, and needs no
/// branch, which could not be guessed.
const PLACES: usize = 2 * SHORT;
/// The bits of a place in a pretoken.
const PLACE_BITS: u32 = SHORT.trailing_zeros();
/// The rank that stands for that of no merge where a place is below it.
const LAST: u32 = 1 << 24;
/// The least candidate that is none.
const NONE: i32 = (LAST << PLACE_BITS) as i32;
/// So many candidates are compared at once.
const WIDTH: usize = 8;

/// A short pretoken: nothing moves in it, a bit says which symbols are left.
#[derive(Debug, Clone)]
pub(super) struct Lane {
    /// For each symbol, the rank of its merge with the next, and its place.
    candidates: [i32; PLACES],
    /// What both would become.
    merged: [TokenId; PLACES],
    ids: [TokenId; PLACES],
    /// The byte where each begins.
    starts: [u32; SHORT],
    /// The number of symbols to begin with, and in the end.
    count: usize,
    left: u32,
    /// The place of the last merge.
    at: usize,
    /// Where the table has what its symbol becomes with the one after it, and the one before it with that.
    after: u32,
    before: u32,
}

impl Default for Lane {
    fn default() -> Self {
        Self {
            candidates: [NONE; PLACES],
            merged: [0; PLACES],
            ids: [NOBODY; PLACES],
            starts: [0; SHORT],
            count: 0,
            left: 0,
            at: 0,
            after: 0,
            before: 0,
        }
    }
}

impl Lane {
    /// Forgets the pretoken before.
    pub(super) fn begin(&mut self) {
        self.count = 0;
    }

    /// Adds a symbol; there must be room.
    pub(super) fn push(&mut self, id: TokenId, start: u32) {
        let place = self.count % SHORT;
        (self.ids[place], self.starts[place]) = (id, start);
        self.count += 1;
    }

    /// Ranks the symbols.
    pub(super) fn rank_all(&mut self, merges: &Merges) {
        self.count = self.count.min(SHORT);
        self.left = low(self.count);
        self.candidates[..SHORT].fill(NONE);
        for place in 1..self.count {
            self.put(place - 1, merges.get(self.ids[place - 1], self.ids[place]));
        }
    }

    /// The symbols of at most [`SHORT`] bytes, ranked.
    pub(super) fn fill(&mut self, piece: &[u8], bytes: &Bytes) {
        self.count = piece.len().min(SHORT);
        self.left = low(self.count);
        self.candidates[..SHORT].fill(NONE);
        for (place, byte) in piece.iter().enumerate().take(SHORT) {
            self.ids[place] = bytes.ids[usize::from(*byte)];
            self.starts[place] = place as u32;
        }
        for (place, pair) in piece.windows(2).enumerate().take(SHORT - 1) {
            self.put(place, bytes.pairs[usize::from(pair[0]) << 8 | usize::from(pair[1])]);
        }
    }

    /// One id for the whole pretoken.
    pub(super) fn take(&mut self, id: TokenId) {
        self.candidates[..SHORT].fill(NONE);
        (self.ids[0], self.starts[0], self.count, self.left) = (id, 0, 1, 1);
    }

    /// What the pretoken has become, once it is finished.
    pub(super) fn merged(&self) -> Merged<'_> {
        Merged { ids: &self.ids[..self.count], starts: &self.starts[..self.count] }
    }

    #[inline]
    fn put(&mut self, place: usize, merge: Merge) {
        // One number in which the rank counts first, then the place: the leftmost of equals is the least.
        self.candidates[place] = (merge.rank.min(LAST) << PLACE_BITS) as i32 | place as i32;
        self.merged[place] = merge.merged;
    }

    /// Merges the best pair, and fetches what its neighbours become with it; whether there was one.
    #[inline]
    fn advance(&mut self, merges: &Merges) -> bool {
        let best = least(&self.candidates[..self.count.next_multiple_of(WIDTH).min(SHORT)]);
        if best >= NONE {
            return false;
        }
        let at = best as usize % SHORT;
        let gone = above(self.left, at);
        debug_assert!(gone < SHORT, "a symbol merges with one that is there");
        self.left &= !(1 << (gone % SHORT));
        self.candidates[gone] = NONE;
        let id = self.merged[at];
        self.ids[at] = id;
        self.at = at;
        self.after = merges.fetch(id, self.ids[above(self.left, at)]);
        self.before = merges.fetch(self.ids[below(self.left, at)], id);
        true
    }

    /// Ranks the pairs that the last merge has made.
    #[inline]
    fn rank(&mut self, merges: &Merges) {
        let (at, id) = (self.at % SHORT, self.ids[self.at % SHORT]);
        let (after, before) = (above(self.left, at), below(self.left, at));
        self.put(at, merges.get_at(self.after, id, self.ids[after]));
        self.put(before, merges.get_at(self.before, self.ids[before], id));
    }

    /// Puts the symbols that are left in a row; `piece` is the text.
    pub(super) fn finish(&mut self, piece: &[u8]) {
        self.count = 0;
        for_each(self.left, |place| self.push(self.ids[place % SHORT], self.starts[place % SHORT]));
        starts_of_characters(&mut self.starts[..self.count], piece);
    }
}

/// Merges the pretokens of at most [`MOST`] lanes.
pub(super) fn merge(lanes: &mut [Lane], merges: &Merges) {
    let mut going = low(lanes.len());
    loop {
        for_each(going, |index| {
            if !lanes.get_mut(index).is_some_and(|lane| lane.advance(merges)) {
                going &= !(1 << index);
            }
        });
        if going == 0 {
            break;
        }
        for_each(going, |index| {
            if let Some(lane) = lanes.get_mut(index) {
                lane.rank(merges);
            }
        });
    }
}

/// Calls with the place of each bit.
#[inline]
fn for_each(mut bits: u32, mut place: impl FnMut(usize)) {
    while bits != 0 {
        place(bits.trailing_zeros() as usize);
        bits &= bits - 1;
    }
}

/// The next place above one; behind the last, one where nobody stands.
#[inline]
fn above(left: u32, place: usize) -> usize {
    (left & !low(place + 1)).trailing_zeros() as usize % PLACES
}

/// The last place below one; before the first, one where nobody stands.
#[inline]
fn below(left: u32, place: usize) -> usize {
    31_u32.wrapping_sub((left & low(place)).leading_zeros()) as usize % PLACES
}

#[inline]
fn least(candidates: &[i32]) -> i32 {
    let mut least = [i32::MAX; WIDTH];
    for chunk in candidates.as_chunks::<WIDTH>().0 {
        for (least, other) in least.iter_mut().zip(chunk) {
            *least = (*least).min(*other);
        }
    }
    least.into_iter().fold(i32::MAX, i32::min)
}

/// So many bits from the lowest on.
#[inline]
fn low(count: usize) -> u32 {
    1_u32.unbounded_shl(count as u32).wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use super::super::bpe::Long;
    use super::super::merges::ID_LIMIT;
    use super::*;

    /// Ids 0 and 1; pairs merge into the ids from 2 on, in this order.
    fn merges() -> Merges {
        Merges::new(&[(0, 0, 2), (2, 2, 3), (0, 1, 4), (3, 3, 5), (2, 4, 6), (1, 1, 7)])
    }

    fn lane(symbols: &[TokenId], merges: &Merges) -> Lane {
        let mut lane = Lane::default();
        lane.begin();
        symbols.iter().zip(0..).for_each(|(id, start)| lane.push(*id, start));
        lane.rank_all(merges);
        lane
    }

    /// The ids and starts of each, merged side by side.
    fn encode(all: &[Vec<TokenId>]) -> Vec<(Vec<TokenId>, Vec<u32>)> {
        let merges = merges();
        let mut lanes: Vec<Lane> = all.iter().map(|symbols| lane(symbols, &merges)).collect();
        merge(&mut lanes, &merges);
        let finished = lanes.iter_mut().map(|lane| {
            lane.finish(&[0; SHORT]);
            (lane.merged().ids.to_vec(), lane.merged().starts.to_vec())
        });
        finished.collect()
    }

    #[test]
    fn lanes_agree_with_the_heap() {
        let merges = merges();
        let symbols = |bits: u64, length: usize| -> Vec<TokenId> {
            (0..length).map(|bit| (bits >> bit & 1) as TokenId).collect()
        };
        let mut all: Vec<_> = (0..1 << 12).map(|bits| symbols(bits, 12)).collect();
        all.extend(
            (0..2_000_u64).map(|number| {
                symbols(number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32, SHORT - (number % 33) as usize)
            }),
        );
        for all in all.chunks(MOST) {
            for (found, symbols) in encode(all).into_iter().zip(all) {
                let mut long = Long::default();
                long.begin();
                symbols.iter().zip(0..).for_each(|(id, start)| long.push(*id, start));
                let Merged { ids, starts } = long.merged(&merges, &[0; SHORT]);
                assert_eq!(found, (ids.to_vec(), starts.to_vec()), "{symbols:?}");
            }
        }
    }

    #[test]
    fn the_largest_ids_end_a_pretoken() {
        let top = ID_LIMIT - 1;
        let merges = Merges::new(&[(0, 1, top), (2, top, top - 1)]);
        for (symbols, expected) in
            [(vec![0, 1], vec![top]), (vec![3, 0, 1], vec![3, top]), (vec![2, 0, 1], vec![top - 1])]
        {
            let mut lane = lane(&symbols, &merges);
            merge(std::slice::from_mut(&mut lane), &merges);
            lane.finish(&[0; SHORT]);
            assert_eq!(lane.merged().ids, expected);
        }
    }

    #[test]
    fn equal_ranks_merge_from_the_left() {
        assert_eq!(encode(&[vec![0, 0, 0], vec![]]), [(vec![2, 0], vec![0, 2]), (vec![], vec![])]);
    }
}
