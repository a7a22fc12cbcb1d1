//! Which sampled tokens several rows hold, and which of those rows trains them.

use std::collections::HashMap;
use std::ops::Range;

use super::Group;
use crate::columns::Origin;

/// Sampled tokens of one row that the same rows and units hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    /// The tokens.
    pub(super) range: Range<u32>,
    /// The units that contain them, in order.
    pub(super) units: Vec<usize>,
    /// Whether another row trains them.
    pub(super) trained_elsewhere: bool,
}

/// One row's hold on the tokens of one origin.
struct Holding {
    range: Range<u32>,
    /// Tokens before this are inherited: the row holds them and does not train them.
    inherited: u32,
    row: usize,
}

/// All holdings of a group, by the act that produced the tokens.
pub(super) struct Sharing<'a> {
    holdings: HashMap<&'a Origin, Vec<Holding>>,
    units_of_row: Vec<Vec<usize>>,
}

impl<'a> Sharing<'a> {
    pub(super) fn of(group: &'a Group) -> Self {
        let mut holdings: HashMap<&Origin, Vec<Holding>> = HashMap::new();
        for (row, trajectory) in group.rows.iter().enumerate() {
            let inherited = trajectory.columns().inherited() as u32;
            for chunk in trajectory.columns().chunks() {
                let holding = Holding { range: chunk.start..chunk.end, inherited, row };
                holdings.entry(&chunk.origin).or_default().push(holding);
            }
        }
        let mut units_of_row = vec![Vec::new(); group.rows.len()];
        for (index, unit) in group.units.iter().enumerate() {
            unit.rows.iter().for_each(|row| units_of_row[*row].push(index));
        }
        Self { holdings, units_of_row }
    }

    /// The pieces of `range`, sampled by `origin`, as row `row` holds them.
    pub(super) fn pieces(&self, row: usize, origin: &Origin, range: Range<u32>) -> Vec<Piece> {
        let holdings = self.holdings.get(origin).map_or(&[][..], Vec::as_slice);
        let mut cuts: Vec<u32> = holdings
            .iter()
            .flat_map(|holding| [holding.range.start, holding.range.end, holding.inherited])
            .chain([range.start, range.end])
            .filter(|cut| (range.start..=range.end).contains(cut))
            .collect();
        cuts.sort_unstable();
        cuts.dedup();
        cuts.windows(2).map(|ends| self.piece(row, holdings, ends[0]..ends[1])).collect()
    }

    fn piece(&self, row: usize, holdings: &[Holding], range: Range<u32>) -> Piece {
        let holders = || holdings.iter().filter(|holding| holding.range.contains(&range.start));
        let trainer = holders().filter(|holding| holding.inherited <= range.start).map(|holding| holding.row).min();
        let mut units: Vec<usize> = holders().flat_map(|holding| &self.units_of_row[holding.row]).copied().collect();
        units.sort_unstable();
        units.dedup();
        Piece { range, units, trained_elsewhere: trainer.is_some_and(|trainer| trainer != row) }
    }
}
