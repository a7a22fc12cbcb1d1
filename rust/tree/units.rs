//! Rows that are packed together: the largest trees that fit a bin.
//!
//! *Invariant*: every row is in exactly one unit; the tree of a unit has at most `budget` tokens.

use crate::Result;
use crate::plan::best_fit;

/// Rows that are packed together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// The rows, counted in lexicographic order, rising.
    pub rows: Vec<u32>,
    /// The tokens of their tree.
    pub tokens: u32,
}

/// Units of rows in lexicographic order, from their lengths and what each shares with the one before (the first: 0).
///
/// A tree that fits is one unit. One that does not is taken apart at its first branch: subtrees that fit are put
/// together, each set with its own copy of what stands above them; the others are taken apart in turn.
pub fn units(lengths: &[u32], shared: &[u32], budget: u32) -> Result<Vec<Unit>> {
    let tree = Tree { lengths, shared };
    let mut found = Vec::new();
    let mut large: Vec<(usize, usize)> = tree.branches(0, lengths.len(), 0);
    while let Some((from, to)) = large.pop() {
        let tokens = tree.tokens(from, to);
        if tokens <= u64::from(budget) {
            found.push(Unit { rows: (from as u32..to as u32).collect(), tokens: tokens as u32 });
            continue;
        }
        let depth = tree.first_branch(from, to);
        let (fitting, others): (Vec<_>, Vec<_>) = tree
            .branches(from, to, depth)
            .into_iter()
            .partition(|(from, to)| tree.tokens(*from, *to) <= u64::from(budget));
        large.extend(others);
        found.extend(tree.together(&fitting, depth, budget)?);
    }
    found.sort_by(|a, b| a.rows.cmp(&b.rows));
    Ok(found)
}

struct Tree<'a> {
    lengths: &'a [u32],
    shared: &'a [u32],
}

impl Tree<'_> {
    /// The tokens of the tree of rows `from..to`.
    fn tokens(&self, from: usize, to: usize) -> u64 {
        let rest = (from + 1..to).map(|row| u64::from(self.lengths[row] - self.shared[row]));
        u64::from(self.lengths[from]) + rest.sum::<u64>()
    }

    /// Where rows `from..to` first part. A row that is the beginning of the next one parts from nothing.
    fn first_branch(&self, from: usize, to: usize) -> u32 {
        let parting = (from + 1..to).filter(|row| self.lengths[row - 1] > self.shared[*row]);
        parting.map(|row| self.shared[row]).min().unwrap_or_default()
    }

    /// The parts of `from..to` that share more than `depth` tokens; a row of no more tokens goes with the next part.
    fn branches(&self, from: usize, to: usize, depth: u32) -> Vec<(usize, usize)> {
        let mut parts = Vec::new();
        let mut start = from;
        for row in from + 1..to {
            if self.shared[row] <= depth && self.lengths[row - 1] > depth {
                parts.push((start, row));
                start = row;
            }
        }
        if start < to {
            parts.push((start, to));
        }
        parts
    }

    /// Subtrees that leave from one place at `depth`, in as few units as they fit.
    fn together(&self, parts: &[(usize, usize)], depth: u32, budget: u32) -> Result<Vec<Unit>> {
        let own: Vec<u32> =
            parts.iter().map(|(from, to)| (self.tokens(*from, *to) as u32).saturating_sub(depth).max(1)).collect();
        let bins = best_fit(&own, (budget - depth).max(1), None)?;
        let unit = |bin: &[u32]| {
            let mut members: Vec<u32> = bin.to_vec();
            members.sort_unstable();
            let ranges = members.iter().map(|part| parts[*part as usize]);
            let rows = ranges.flat_map(|(from, to)| from as u32..to as u32).collect();
            let tokens = depth + bin.iter().map(|part| own[*part as usize]).sum::<u32>();
            Unit { rows, tokens }
        };
        Ok(bins.iter().map(unit).collect())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use proptest::prelude::*;

    use super::super::{Sharing, order};
    use super::*;
    use crate::TokenId;

    fn check(rows: &[Vec<TokenId>], budget: u32, sharing: Sharing) {
        let slices: Vec<&[TokenId]> = rows.iter().map(Vec::as_slice).collect();
        let sorted: Vec<&[TokenId]> = order(&slices).into_iter().map(|row| slices[row as usize]).collect();
        let lengths: Vec<u32> = sorted.iter().map(|row| row.len() as u32).collect();
        let between = |row: usize| if row == 0 { 0 } else { sharing.shared(sorted[row - 1], sorted[row]) as u32 };
        let shared: Vec<u32> = (0..sorted.len()).map(between).collect();
        let found = units(&lengths, &shared, budget).unwrap();
        let mut held: Vec<u32> = found.iter().flat_map(|unit| unit.rows.clone()).collect();
        held.sort_unstable();
        assert_eq!(held, (0..rows.len() as u32).collect::<Vec<_>>());
        for unit in found {
            let own: Vec<&[TokenId]> = unit.rows.iter().map(|row| sorted[*row as usize]).collect();
            let saved: usize = own.windows(2).map(|pair| sharing.shared(pair[0], pair[1])).sum();
            let tokens = own.iter().map(|row| row.len()).sum::<usize>() - saved;
            assert!(tokens <= unit.tokens as usize && unit.tokens <= budget, "{tokens} {unit:?} {budget}");
        }
    }

    proptest! {
        #[test]
        fn every_row_once_and_never_over_budget(
            rows in prop::collection::vec(prop::collection::vec(0_i32..3, 1..12), 1..20),
            budget in 12_u32..30,
            single in any::<bool>(),
        ) {
            check(&rows, budget, if single { Sharing::SingleNext } else { Sharing::Whole });
        }
    }

    #[test]
    fn a_group_over_the_budget_repeats_its_prompt_once_a_unit() {
        let rows: Vec<Vec<TokenId>> = (0..8).map(|row| [vec![7; 10], vec![row; 5]].concat()).collect();
        let lengths = [15; 8];
        let shared = [0, 10, 10, 10, 10, 10, 10, 10];
        let found = units(&lengths, &shared, 30).unwrap();
        assert_eq!(found.iter().map(|unit| unit.tokens).collect::<Vec<_>>(), [30, 30]);
        check(&rows, 30, Sharing::Whole);
    }
}
