//! A micro-step for the heaviest rows: each rank gets one of them, and its bin is filled up with what makes it as heavy as
//! the heaviest of all.
//!
//! The ranks wait for the heaviest row whatever is done, so the work that its micro-step holds beside it is free, and what
//! is left for the other micro-steps is less and more even.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::PlanOptions;
use super::balance::key;

/// How many rows are looked at for one that fits both the room and the work that a bin has left, where work does not
/// rise with length.
const LOOKS: usize = 64;

/// The rows that are in no bin yet.
pub(super) struct Rest<'a> {
    lengths: &'a [u32],
    work: &'a [f64],
    /// By length and by work; of equal ones the first row stands last, and is taken first.
    by_length: BTreeSet<(u32, Reverse<u32>)>,
    by_work: BTreeSet<(u64, Reverse<u32>)>,
}

impl<'a> Rest<'a> {
    pub(super) fn new(lengths: &'a [u32], work: &'a [f64]) -> Self {
        let rows = || 0..lengths.len() as u32;
        Self {
            lengths,
            work,
            by_length: rows().map(|row| (lengths[row as usize], Reverse(row))).collect(),
            by_work: rows().map(|row| (key(work[row as usize]), Reverse(row))).collect(),
        }
    }

    /// Row, length and work of each row, by falling work.
    pub(super) fn heaviest_first(&self) -> impl Iterator<Item = (u32, u32, f64)> {
        let rows = self.by_work.iter().rev().map(|(_, Reverse(row))| *row);
        rows.map(|row| (row, self.lengths[row as usize], self.work[row as usize]))
    }

    /// The work of all rows that are left.
    pub(super) fn work(&self) -> f64 {
        self.heaviest_first().map(|(.., work)| work).sum()
    }

    /// One bin a rank around the heaviest rows; the rows are taken out.
    pub(super) fn step(&mut self, ranks: usize, options: PlanOptions) -> Vec<Vec<u32>> {
        let heads: Vec<(u32, u32, f64)> = self.heaviest_first().take(ranks).collect();
        let heaviest = heads.first().map_or(0.0, |(.., work)| *work);
        for (row, ..) in &heads {
            self.remove(*row);
        }
        let limit = options.max_segments.unwrap_or(u32::MAX) as usize;
        let bin = |(row, length, work)| self.filled(row, options.budget - length, heaviest - work, limit);
        let mut bins: Vec<Vec<u32>> = heads.into_iter().map(bin).collect();
        bins.resize(ranks, Vec::new());
        bins
    }

    /// A bin that begins with `row`, filled while anything fits into the room and the work it has left.
    fn filled(&mut self, row: u32, mut room: u32, mut work: f64, limit: usize) -> Vec<u32> {
        let mut bin = vec![row];
        while bin.len() < limit
            && let Some(next) = self.fitting(room, work)
        {
            self.remove(next);
            room -= self.lengths[next as usize];
            work -= self.work[next as usize];
            bin.push(next);
        }
        bin
    }

    /// The longest row that fits, or the heaviest.
    fn fitting(&self, room: u32, work: f64) -> Option<u32> {
        let (_, Reverse(longest)) = *self.by_length.range(..=(room, Reverse(0))).next_back()?;
        if self.work[longest as usize] <= work {
            return Some(longest);
        }
        let lighter = self.by_work.range(..=(key(work.max(0.0)), Reverse(0))).rev().take(LOOKS);
        lighter.map(|(_, Reverse(row))| *row).find(|row| self.lengths[*row as usize] <= room)
    }

    fn remove(&mut self, row: u32) {
        self.by_length.remove(&(self.lengths[row as usize], Reverse(row)));
        self.by_work.remove(&(key(self.work[row as usize]), Reverse(row)));
    }
}
