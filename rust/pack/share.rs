//! Rows that share prefixes: which stand in one bin, and what each adds to the one before it.
//!
//! *Invariant*: a bin holds its rows in the order of their tokens, or of their prompts, and no more tokens than the budget. A shared token carries
//! the loss of all its rows: their weights are added, its advantage is their mean by weight.

use super::{Kept, PackOptions, Report, RowWork};
use crate::arrow::Batch;
use crate::plan::{Bins, Plan, PlanOptions, Work, lower_bound};
use crate::tree::{Sharing, Unit, order, units};
use crate::{Error, Result, TokenId, threads};

/// Plans bins of trees, and notes in each row what it shares with the row before it in its bin.
pub(super) fn plan(
    batch: &Batch,
    kept: &mut [Kept],
    work: &[f64],
    options: &PackOptions,
    plan_options: PlanOptions,
    sharing: Sharing,
    report: &mut Report,
) -> Result<Plan> {
    if plan_options.max_segments.is_some() {
        return Err(Error::value("max_segments counts rows side by side: with share_prefixes pass max_segments=None"));
    }
    let rows = Rows::sorted(batch, kept, sharing)?;
    let found = units(&rows.lengths, &rows.shared, plan_options.budget)?;
    let distinct: u64 = rows.lengths.iter().zip(&rows.shared).map(|(length, shared)| u64::from(length - shared)).sum();
    report.lower_bound = usize::try_from(distinct.div_ceil(u64::from(plan_options.budget))).unwrap_or(usize::MAX);
    let model = match &options.work {
        RowWork::Model(work) => Some(*work),
        RowWork::Given(_) => None,
    };
    let costs: Vec<f64> = found.iter().map(|unit| rows.cost(unit, model, work)).collect();
    let plan = rows.pack(&found, &costs, plan_options)?;
    let before = report.tokens;
    let mut lists: Vec<Vec<u32>> = Vec::with_capacity(plan.bins.len());
    for bin in plan.bins.iter() {
        let mut members: Vec<u32> = bin.iter().flat_map(|unit| &found[*unit as usize].rows).copied().collect();
        members.sort_unstable();
        for (place, row) in members.iter().enumerate() {
            let from = if place == 0 { 0 } else { rows.between(members[place - 1], *row) };
            kept[rows.order[*row as usize] as usize].from = from;
            report.shared += u64::from(from);
        }
        lists.push(members.into_iter().map(|row| rows.order[row as usize]).collect());
    }
    report.tokens = before - report.shared;
    let kept = &*kept;
    let count = |bin: usize| merged(batch, kept, &lists[bin]);
    let counts: Result<Vec<u64>> = threads::collected(lists.len(), before as usize, count);
    report.merged = counts?.into_iter().sum();
    Ok(Plan { bins: Bins::from_lists(lists), ..plan })
}

/// The rows in order.
struct Rows<'a> {
    /// The place of each among those that are packed.
    order: Vec<u32>,
    /// What of each is compared with the others: all of it, or its prompt.
    heads: Vec<&'a [TokenId]>,
    lengths: Vec<u32>,
    /// What each shares with the one before.
    shared: Vec<u32>,
    sharing: Sharing,
}

impl<'a> Rows<'a> {
    fn sorted(batch: &'a Batch, kept: &[Kept], sharing: Sharing) -> Result<Self> {
        let views = batch.views()?;
        let head = |kept: &Kept| {
            let row = kept.row as usize;
            let (start, view) = &views[views.partition_point(|(start, _)| *start <= row) - 1];
            let own = &view.token_ids.get(row - start).unwrap_or_default()[..kept.length as usize];
            if sharing != Sharing::Prompt {
                return own;
            }
            let sampled = view.sampled_mask.get(row - start).unwrap_or_default();
            let prompt = sampled.iter().take(own.len()).position(|sampled| *sampled != 0);
            &own[..prompt.unwrap_or(own.len())]
        };
        let unsorted: Vec<&[TokenId]> = kept.iter().map(head).collect();
        let order = order(&unsorted);
        let heads: Vec<&[TokenId]> = order.iter().map(|row| unsorted[*row as usize]).collect();
        let lengths = order.iter().map(|row| kept[*row as usize].length).collect();
        let mut rows = Self { order, heads, lengths, shared: Vec::new(), sharing };
        let shared = |row: u32| if row == 0 { 0 } else { rows.compared(row - 1, row) };
        let values = rows.heads.iter().map(|head| head.len()).sum();
        rows.shared = threads::collected(rows.heads.len(), values, |row| shared(row as u32));
        Ok(rows)
    }

    fn compared(&self, left: u32, right: u32) -> u32 {
        self.sharing.shared(self.heads[left as usize], self.heads[right as usize]) as u32
    }

    /// What two rows share, the left one before the right.
    fn between(&self, left: u32, right: u32) -> u32 {
        if left + 1 == right { self.shared[right as usize] } else { self.compared(left, right) }
    }

    /// The cost of a unit: of the tokens that its rows add, each attending to all before it; or what was given.
    fn cost(&self, unit: &Unit, model: Option<Work>, given: &[f64]) -> f64 {
        let Some(model) = model else {
            return unit.rows.iter().map(|row| given[self.order[*row as usize] as usize]).sum();
        };
        let of = |place: usize, row: u32| {
            let from = if place == 0 { 0 } else { self.between(unit.rows[place - 1], row) };
            model.of(self.lengths[row as usize]) - model.of(from)
        };
        unit.rows.iter().enumerate().map(|(place, row)| of(place, *row)).sum()
    }

    /// Bins of units. What all rows share stands once in a bin, so only the rest counts.
    fn pack(&self, found: &[Unit], costs: &[f64], options: PlanOptions) -> Result<Plan> {
        let shortest = self.lengths.iter().copied().min().unwrap_or(1);
        let common = self.shared.iter().skip(1).copied().min().unwrap_or_default();
        let common = common.min(shortest - 1).min(options.budget - 1);
        let weights: Vec<u32> = found.iter().map(|unit| unit.tokens - common).collect();
        let options = PlanOptions { budget: options.budget - common, ..options };
        debug_assert!(lower_bound(&weights, options.budget) <= found.len());
        crate::plan::plan(&weights, costs, options)
    }
}

/// How many tokens of a bin carry the loss of more than one row.
fn merged(batch: &Batch, kept: &[Kept], bin: &[u32]) -> Result<u64> {
    let views = batch.views()?;
    let mut path: Vec<u8> = Vec::new();
    let mut count = 0;
    for kept in bin.iter().map(|index| kept[*index as usize]) {
        let row = kept.row as usize;
        let (start, view) = &views[views.partition_point(|(start, _)| *start <= row) - 1];
        let loss = &view.loss_mask.get(row - start).unwrap_or_default()[..kept.length as usize];
        path.truncate(kept.from as usize);
        for (held, own) in path.iter_mut().zip(loss).skip(1).filter(|(_, own)| **own != 0) {
            count += u64::from(*held != 0 && *held & 2 == 0);
            *held = if *held != 0 { 3 } else { *own };
        }
        path.extend_from_slice(&loss[kept.from as usize..]);
    }
    Ok(count)
}
