//! Best-fit decreasing: longest first, each into the fullest bin that still has room.
//!
//! A counting sort orders the lengths; a bitset over the room that bins have left, with summary levels above it, finds
//! the tightest one in a few steps whatever the number of bins.

use std::collections::BTreeMap;

use super::Bins;
use crate::{Error, Result};

/// Above this budget the tables by length would not fit the cache any more, nor small machines.
const LARGEST_TABLE: u32 = 1 << 24;

/// Bins of at most `budget` tokens and `max_segments` rows, in the order in which they were opened.
///
/// Deterministic: rows of equal length go in the order of their indices; of bins with equal room, the one that was
/// filled last takes the row.
pub fn best_fit(lengths: &[u32], budget: u32, max_segments: Option<u32>) -> Result<Bins> {
    if let Some(row) = lengths.iter().position(|length| *length == 0 || *length > budget) {
        let length = lengths[row];
        return Err(Error::value(format!(
            "length {length} at {row} is not between 1 and the budget of {budget} tokens"
        )));
    }
    let order = longest_first(lengths, budget);
    let mut open = Open::new(budget);
    let mut counts: Vec<u32> = Vec::new();
    let limit = max_segments.unwrap_or(u32::MAX);
    let mut bin_of = vec![0_u32; lengths.len()];
    for row in &order {
        let length = lengths[*row as usize];
        let (bin, room) = open.tightest(length).unwrap_or_else(|| {
            counts.push(0);
            (counts.len() as u32 - 1, budget)
        });
        bin_of[*row as usize] = bin;
        counts[bin as usize] += 1;
        if room > length && counts[bin as usize] < limit {
            open.insert(bin, room - length);
        }
    }
    Ok(Bins::gather(&order, &bin_of, &counts))
}

/// The rows by falling length, equal ones by rising index.
fn longest_first(lengths: &[u32], budget: u32) -> Vec<u32> {
    if budget > LARGEST_TABLE {
        let mut order: Vec<u32> = (0..lengths.len() as u32).collect();
        order.sort_by_key(|row| std::cmp::Reverse(lengths[*row as usize]));
        return order;
    }
    let longest = lengths.iter().copied().max().unwrap_or_default();
    let mut places = vec![0_u32; longest as usize + 2];
    for length in lengths {
        places[(longest - length) as usize + 1] += 1;
    }
    for index in 1..places.len() {
        places[index] += places[index - 1];
    }
    let mut order = vec![0_u32; lengths.len()];
    for (row, length) in lengths.iter().enumerate() {
        let place = &mut places[(longest - length) as usize];
        order[*place as usize] = row as u32;
        *place += 1;
    }
    order
}

/// The bins with room, by room.
enum Open {
    Dense(Dense),
    Sparse(BTreeMap<u32, Vec<u32>>),
}

impl Open {
    fn new(budget: u32) -> Self {
        if budget > LARGEST_TABLE { Self::Sparse(BTreeMap::new()) } else { Self::Dense(Dense::new(budget)) }
    }

    /// Takes out the bin with the least room that is at least `length`, and says how much it has.
    fn tightest(&mut self, length: u32) -> Option<(u32, u32)> {
        match self {
            Self::Dense(dense) => dense.tightest(length),
            Self::Sparse(map) => {
                let (room, bins) = map.range_mut(length..).next()?;
                let (room, bin) = (*room, bins.pop()?);
                if bins.is_empty() {
                    map.remove(&room);
                }
                Some((bin, room))
            }
        }
    }

    fn insert(&mut self, bin: u32, room: u32) {
        match self {
            Self::Dense(dense) => dense.insert(bin, room),
            Self::Sparse(map) => map.entry(room).or_default().push(bin),
        }
    }
}

const NONE: u32 = u32::MAX;

/// For each room a stack of bins, threaded through `below`; the bitset says which stacks hold any.
struct Dense {
    top: Vec<u32>,
    below: Vec<u32>,
    rooms: Bitset,
}

impl Dense {
    fn new(budget: u32) -> Self {
        let size = budget as usize + 1;
        Self { top: vec![NONE; size], below: Vec::new(), rooms: Bitset::new(size) }
    }

    fn tightest(&mut self, length: u32) -> Option<(u32, u32)> {
        let room = self.rooms.first_from(length as usize)?;
        let bin = self.top[room];
        self.top[room] = self.below[bin as usize];
        if self.top[room] == NONE {
            self.rooms.clear(room);
        }
        Some((bin, room as u32))
    }

    fn insert(&mut self, bin: u32, room: u32) {
        if bin as usize >= self.below.len() {
            self.below.resize(bin as usize + 1, NONE);
        }
        self.below[bin as usize] = std::mem::replace(&mut self.top[room as usize], bin);
        self.rooms.set(room as usize);
    }
}

/// A set of small numbers; a bit of level `n + 1` says that a word of level `n` is not empty.
struct Bitset {
    levels: Vec<Vec<u64>>,
}

impl Bitset {
    fn new(size: usize) -> Self {
        let mut levels = Vec::new();
        let mut size = size;
        loop {
            size = size.div_ceil(64);
            levels.push(vec![0; size]);
            if size == 1 {
                return Self { levels };
            }
        }
    }

    fn set(&mut self, mut index: usize) {
        for level in &mut self.levels {
            level[index / 64] |= 1 << (index % 64);
            index /= 64;
        }
    }

    fn clear(&mut self, mut index: usize) {
        for level in &mut self.levels {
            level[index / 64] &= !(1 << (index % 64));
            if level[index / 64] != 0 {
                return;
            }
            index /= 64;
        }
    }

    /// The smallest member that is not below `from`.
    fn first_from(&self, mut from: usize) -> Option<usize> {
        for (height, level) in self.levels.iter().enumerate() {
            let word = *level.get(from / 64)? & (u64::MAX << (from % 64));
            if word != 0 {
                let found = from / 64 * 64 + word.trailing_zeros() as usize;
                return Some(self.descend(height, found));
            }
            from = from / 64 + 1;
        }
        None
    }

    fn descend(&self, height: usize, found: usize) -> usize {
        let below = self.levels[..height].iter().rev();
        below.fold(found, |index, level| index * 64 + level[index].trailing_zeros() as usize)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lengths_and_budget() -> impl Strategy<Value = (Vec<u32>, u32)> {
        (1_u32..400).prop_flat_map(|budget| (prop::collection::vec(1..=budget, 0..300), Just(budget)))
    }

    /// Best fit over a plain list of bins.
    fn slow(lengths: &[u32], budget: u32) -> Vec<Vec<u32>> {
        let mut order: Vec<usize> = (0..lengths.len()).collect();
        order.sort_by_key(|row| std::cmp::Reverse(lengths[*row]));
        let mut bins: Vec<(u32, usize, Vec<u32>)> = Vec::new();
        for (time, row) in order.into_iter().enumerate() {
            let fitting = bins.iter_mut().filter(|bin| bin.0 >= lengths[row]);
            if let Some(bin) = fitting.min_by_key(|bin| (bin.0, std::cmp::Reverse(bin.1))) {
                *bin = (bin.0 - lengths[row], time, [bin.2.as_slice(), &[row as u32]].concat());
            } else {
                bins.push((budget - lengths[row], time, vec![row as u32]));
            }
        }
        bins.into_iter().map(|bin| bin.2).collect()
    }

    proptest! {
        #[test]
        fn equals_the_slow_twin((lengths, budget) in lengths_and_budget()) {
            let bins = best_fit(&lengths, budget, None).unwrap();
            let found: Vec<Vec<u32>> = bins.iter().map(<[u32]>::to_vec).collect();
            prop_assert_eq!(found, slow(&lengths, budget));
        }

        #[test]
        fn a_large_budget_takes_the_other_path((lengths, budget) in lengths_and_budget()) {
            let scale = 1 << 20;
            let large: Vec<u32> = lengths.iter().map(|length| length * scale).collect();
            prop_assert_eq!(
                best_fit(&large, budget * scale, None).unwrap(),
                best_fit(&lengths, budget, None).unwrap()
            );
        }

        #[test]
        fn max_segments_holds((lengths, budget) in lengths_and_budget(), limit in 1_u32..5) {
            let bins = best_fit(&lengths, budget, Some(limit)).unwrap();
            prop_assert!(bins.iter().all(|bin| bin.len() <= limit as usize));
            let mut rows: Vec<u32> = bins.iter().flatten().copied().collect();
            rows.sort_unstable();
            prop_assert_eq!(rows, (0..lengths.len() as u32).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_length_over_the_budget_is_refused() {
        assert!(best_fit(&[3, 9], 8, None).is_err_and(|error| error.message().contains("length 9 at 1")));
    }
}
