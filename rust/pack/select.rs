//! Which rows are packed, and how many of their tokens: nothing is left out or cut without a record of it.

use crate::arrow::{Batch, View};
use crate::{Error, ErrorKind, Result, threads};

/// What happens to a row that is longer than the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overlong {
    /// Packing fails.
    Error,
    /// The row is left out.
    Drop,
    /// The first tokens are kept.
    Truncate,
    /// The tokens up to the end of the last turn that fits are kept; a row whose first turn does not fit is left out.
    TruncateTurn,
}

impl Overlong {
    /// The policy of a name.
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "error" => Ok(Self::Error),
            "drop" => Ok(Self::Drop),
            "truncate" => Ok(Self::Truncate),
            "truncate_turn" => Ok(Self::TruncateTurn),
            _ => Err(Error::value(format!(
                "overlong={name:?} is none of \"error\", \"drop\", \"truncate\", \"truncate_turn\""
            ))),
        }
    }
}

/// Why a row is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// It has no tokens.
    Empty,
    /// No token of it that is kept carries loss; the first token of a segment never does.
    NoLoss,
    /// It is longer than the budget.
    Overlong,
}

impl Reason {
    /// The reason as the report says it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::NoLoss => "no_loss",
            Self::Overlong => "overlong",
        }
    }
}

/// What becomes of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// The first `length` tokens are packed; `cleared` says that the first of them carried loss.
    Kept { length: u32, cleared: bool },
    /// The row is left out.
    LeftOut(Reason),
}

/// The fate of every row.
pub(super) fn select(batch: &Batch, budget: u32, overlong: Overlong) -> Result<Vec<Fate>> {
    let mut fates = Vec::with_capacity(batch.len());
    for (start, view) in batch.views()? {
        let fate = |row| fate(&view, start, row, budget, overlong);
        let part: Result<Vec<Fate>> = threads::collected(view.len(), view.tokens(), fate);
        fates.extend(part?);
    }
    Ok(fates)
}

fn fate(view: &View<'_>, start: usize, row: usize, budget: u32, overlong: Overlong) -> Result<Fate> {
    let tokens = view.token_ids.length(row);
    if tokens == 0 {
        return Ok(Fate::LeftOut(Reason::Empty));
    }
    if let Some((name, found)) = view.ragged(row) {
        return Err(Error::schema(format!(
            "row {}: `{name}` has {found} values, `token_ids` has {tokens}: give one value per token",
            start + row
        )));
    }
    let length = if tokens <= budget as usize { Some(tokens) } else { shortened(view, start, row, budget, overlong)? };
    let Some(length) = length else { return Ok(Fate::LeftOut(Reason::Overlong)) };
    let loss = view.loss_mask.get(row).and_then(|mask| mask.get(..length)).unwrap_or_default();
    match loss.split_first() {
        Some((first, rest)) if rest.iter().any(|loss| *loss != 0) => {
            Ok(Fate::Kept { length: length as u32, cleared: *first != 0 })
        }
        _ => Ok(Fate::LeftOut(Reason::NoLoss)),
    }
}

/// The tokens of an overlong row that are kept; `None` to leave it out.
fn shortened(view: &View<'_>, start: usize, row: usize, budget: u32, overlong: Overlong) -> Result<Option<usize>> {
    match overlong {
        Overlong::Drop => Ok(None),
        Overlong::Truncate => Ok(Some(budget as usize)),
        Overlong::TruncateTurn => {
            let ends = view.turns.int32("end")?;
            let range = view.turns.range(row).unwrap_or_default();
            Ok(ends[range].iter().rev().find(|end| **end as u32 <= budget).map(|end| *end as usize))
        }
        Overlong::Error => {
            let id = view.text("trajectory_id")?.value(row);
            Err(Error::new(
                ErrorKind::Budget,
                format!(
                    "row {} (trajectory {id:?}) has {} tokens, the budget is {budget}: raise token_budget, or pass \
                     overlong=\"drop\", \"truncate\" or \"truncate_turn\"",
                    start + row,
                    view.token_ids.length(row)
                ),
            ))
        }
    }
}
