//! Lengths to bins, bins to ranks and micro-steps. Knows only numbers.
//!
//! *Invariant*: every row is in exactly one bin; no bin exceeds the budget; the same input gives the same plan.

mod balance;
mod best_fit;
mod heavy;

pub use best_fit::best_fit;

use crate::{Error, Result};

/// Rows by bin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bins {
    rows: Vec<u32>,
    starts: Vec<u32>,
}

impl Bins {
    /// Bins from the bin of each row and the number of rows of each bin; inside a bin, rows keep the given order.
    fn gather(order: &[u32], bin_of: &[u32], counts: &[u32]) -> Self {
        let mut starts = Vec::with_capacity(counts.len() + 1);
        let mut end = 0;
        starts.push(0);
        starts.extend(counts.iter().map(|count| {
            end += count;
            end
        }));
        let mut places = starts.clone();
        let mut rows = vec![0; order.len()];
        for row in order {
            let place = &mut places[bin_of[*row as usize] as usize];
            rows[*place as usize] = *row;
            *place += 1;
        }
        Self { rows, starts }
    }

    /// Bins of the given rows.
    pub(crate) fn from_lists(lists: impl IntoIterator<Item = impl AsRef<[u32]>>) -> Self {
        let mut bins = Self { rows: Vec::new(), starts: vec![0] };
        for list in lists {
            bins.rows.extend_from_slice(list.as_ref());
            bins.starts.push(bins.rows.len() as u32);
        }
        bins
    }

    /// The number of bins.
    pub fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Whether there are no bins.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rows of a bin.
    pub fn get(&self, bin: usize) -> &[u32] {
        &self.rows[self.starts[bin] as usize..self.starts[bin + 1] as usize]
    }

    /// The rows of each bin.
    pub fn iter(&self) -> impl Iterator<Item = &[u32]> {
        (0..self.len()).map(|bin| self.get(bin))
    }
}

/// What a row costs a trainer: `linear` for each token, `quadratic` for each pair of tokens that attention compares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Work {
    /// Per token.
    pub linear: f64,
    /// Per token squared.
    pub quadratic: f64,
}

impl Work {
    /// Matrix products alone: work is the number of tokens.
    pub const TOKENS: Self = Self { linear: 1.0, quadratic: 0.0 };
    /// With attention: the ratio of a transformer of width 4096, `24 * width^2 * l + 4 * width * l^2` by layer.
    pub const ATTENTION: Self = Self { linear: 24_576.0, quadratic: 1.0 };

    /// The work of a row of `length` tokens.
    pub fn of(self, length: u32) -> f64 {
        let length = f64::from(length);
        self.linear * length + self.quadratic * length * length
    }
}

/// How rows are packed.
#[derive(Debug, Clone, Copy)]
pub struct PlanOptions {
    /// The tokens that a bin holds at most.
    pub budget: u32,
    /// The rows that a bin holds at most.
    pub max_segments: Option<u32>,
    /// The ranks that work at the same time.
    pub ranks: u32,
}

/// Bins dealt to ranks: bin `step * ranks + rank` is what `rank` works on in micro-step `step`.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Rows by bin; a bin without rows is a filler that keeps the ranks in step.
    pub bins: Bins,
    /// The ranks.
    pub ranks: u32,
    /// The micro-steps, equal for all ranks.
    pub micro_steps: u32,
    /// The modelled time of all micro-steps over the time if all ranks worked equally: at least 1.
    pub imbalance: f64,
}

/// Packs rows of the given lengths and work.
pub fn plan(lengths: &[u32], work: &[f64], options: PlanOptions) -> Result<Plan> {
    let PlanOptions { budget, max_segments, ranks } = options;
    if budget == 0 || ranks == 0 || max_segments == Some(0) {
        return Err(Error::value("token_budget, ranks and max_segments must be at least 1"));
    }
    if let Some(row) = work.iter().position(|work| !work.is_finite() || *work < 0.0) {
        return Err(Error::value(format!("the work {} of row {row} is not a number of at least 0", work[row])));
    }
    if work.len() != lengths.len() {
        return Err(Error::value(format!("{} values of work for {} rows", work.len(), lengths.len())));
    }
    let bins = best_fit(lengths, budget, max_segments)?;
    if ranks == 1 {
        let micro_steps = bins.len() as u32;
        return Ok(Plan { bins, ranks, micro_steps, imbalance: 1.0 });
    }
    Ok(balance::deal(&bins, lengths, work, options))
}

/// The fewest bins that could hold the lengths.
pub fn lower_bound(lengths: &[u32], budget: u32) -> usize {
    let total: u64 = lengths.iter().map(|length| u64::from(*length)).sum();
    usize::try_from(total.div_ceil(u64::from(budget.max(1)))).unwrap_or(usize::MAX)
}
