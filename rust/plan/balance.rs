//! Bins for ranks that work at the same time: as many micro-steps for each, and in each micro-step as little waiting as
//! can be.
//!
//! Three ways are tried and the one with the shortest modelled time is taken. Best-fit bins, cut where a multiple of the
//! ranks asks for more, stand side by side with others of nearly their own work; that is best where bins are many. Rows
//! dealt by work, heaviest first to the lightest bin that has room, give bins of equal work; that is best where bins are
//! few. Where a few rows outweigh such a bin, the heaviest rows get micro-steps of their own first, see [`heavy`].
//!
//! [`heavy`]: super::heavy

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use super::heavy::Rest;
use super::{Bins, Plan, PlanOptions};

/// Beyond so many micro-steps neighbours in the order of work are equal enough, and dealing by work costs time.
const MANY_STEPS: usize = 64;
/// The micro-steps that the heaviest rows get first, at most.
const HEAVY_STEPS: usize = 4;
/// Time over the ideal below which nothing better is looked for.
const EQUAL: f64 = 1.002;
/// A further micro-step is taken only for a gain above this: each has a cost that the model does not know.
const WORTH_A_STEP: f64 = 0.99;

type List = Vec<u32>;

/// Deals the bins to ranks.
pub(super) fn deal(bins: &Bins, lengths: &[u32], work: &[f64], options: PlanOptions) -> Plan {
    let ranks = options.ranks as usize;
    let steps = bins.len().div_ceil(ranks);
    let mut best = ordered(cut(bins, steps * ranks, work), work);
    let mut time = step_time(&best, ranks);
    let ideal = work.iter().sum::<f64>() / f64::from(options.ranks);
    if steps < MANY_STEPS {
        for steps in [steps, steps + 1] {
            for lists in by_rows(steps, lengths, work, options) {
                let candidate = ordered(lists, work);
                let needed = if candidate.len() > best.len() { WORTH_A_STEP } else { 1.0 };
                if step_time(&candidate, ranks) < time * needed {
                    time = step_time(&candidate, ranks);
                    best = candidate;
                }
            }
        }
    }
    let imbalance = if ideal > 0.0 { (time / ideal).max(1.0) } else { 1.0 };
    let micro_steps = (best.len() / ranks) as u32;
    Plan { bins: Bins::from_lists(to_ranks(best, ranks)), ranks: options.ranks, micro_steps, imbalance }
}

/// A bin with the sum of its work.
struct Weighed {
    work: f64,
    rows: List,
}

fn weigh(rows: List, work: &[f64]) -> Weighed {
    Weighed { work: weight(&rows, work), rows }
}

fn weight(rows: &[u32], work: &[f64]) -> f64 {
    rows.iter().map(|row| work[*row as usize]).sum()
}

/// The bins by falling work; equal ones keep their order.
fn ordered(lists: Vec<List>, work: &[f64]) -> Vec<Weighed> {
    let mut bins: Vec<Weighed> = lists.into_iter().map(|rows| weigh(rows, work)).collect();
    bins.sort_by(|a, b| b.work.total_cmp(&a.work));
    bins
}

/// The sum over micro-steps of the work of the slowest rank; the bins are in order of falling work.
fn step_time(bins: &[Weighed], ranks: usize) -> f64 {
    bins.chunks(ranks).map(|step| step[0].work).sum()
}

/// A total order of work for heaps and sets.
pub(super) fn key(work: f64) -> u64 {
    (work + 0.0).to_bits() // not below zero, and -0.0 made 0.0: the order of the bits is the order of the numbers
}

/// Bins for `steps` micro-steps, built row by row: none, one, two and more of them given to the heaviest rows first.
fn by_rows(steps: usize, lengths: &[u32], work: &[f64], options: PlanOptions) -> Vec<Vec<List>> {
    let ranks = options.ranks as usize;
    let mut rest = Rest::new(lengths, work);
    let mut heavy: Vec<List> = Vec::new();
    let mut found = Vec::new();
    for taken in 0..steps.min(HEAVY_STEPS + 1) {
        if let Some(light) = by_work((steps - taken) * ranks, &rest, options) {
            let heaviest = light.iter().map(|bin| weight(bin, work)).fold(0.0, f64::max);
            found.push(heavy.iter().cloned().chain(light).collect());
            // Bins of equal work: a step of their own for the heaviest rows would shorten nothing.
            if heaviest * f64::from((steps - taken) as u32) <= EQUAL * rest.work() / f64::from(options.ranks) {
                break;
            }
        }
        heavy.extend(rest.step(ranks, options));
    }
    found
}

/// Best-fit bins, the heaviest cut in two until there are `count`; empty bins where none can be cut.
fn cut(bins: &Bins, count: usize, work: &[f64]) -> Vec<List> {
    let mut lists: Vec<List> = bins.iter().map(<[u32]>::to_vec).collect();
    let mut heap: BinaryHeap<_> =
        lists.iter().enumerate().map(|(index, list)| (key(weight(list, work)), Reverse(index))).collect();
    while lists.len() < count {
        let Some((_, Reverse(index))) = heap.pop() else { break };
        if lists[index].len() < 2 {
            continue;
        }
        let (left, right) = halves(&lists[index], work);
        heap.push((key(weight(&left, work)), Reverse(index)));
        heap.push((key(weight(&right, work)), Reverse(lists.len())));
        lists[index] = left;
        lists.push(right);
    }
    lists.resize(count, List::new());
    lists
}

fn halves(bin: &List, work: &[f64]) -> (List, List) {
    let mut rows = bin.clone();
    rows.sort_by(|a, b| work[*b as usize].total_cmp(&work[*a as usize]));
    let mut parts = [(0.0, List::new()), (0.0, List::new())];
    for row in rows {
        let lighter = usize::from(parts[1].0 < parts[0].0);
        parts[lighter].0 += work[row as usize];
        parts[lighter].1.push(row);
    }
    let [mut left, right] = parts;
    if right.1.is_empty() {
        let last = left.1.split_off(left.1.len() - 1);
        return (left.1, last);
    }
    (left.1, right.1)
}

/// `count` bins of work as equal as can be: heaviest row first, into the lightest bin that has room for it. `None`
/// where a row finds no room.
fn by_work(count: usize, rest: &Rest<'_>, options: PlanOptions) -> Option<Vec<List>> {
    let limit = options.max_segments.unwrap_or(u32::MAX) as usize;
    let mut lists = vec![List::new(); count];
    let mut lightest: BTreeSet<(u64, usize, u32)> = (0..count).map(|bin| (0, bin, options.budget)).collect();
    // Bins that had no room for an earlier row, by room: a shorter row brings them back.
    let mut tight: BTreeSet<(u32, u64, usize)> = BTreeSet::new();
    for (row, length, work) in rest.heaviest_first() {
        while let Some((room, weight, bin)) = tight.last().copied().filter(|(room, ..)| *room >= length) {
            tight.pop_last();
            lightest.insert((weight, bin, room));
        }
        let (weight, bin, room) = loop {
            let (weight, bin, room) = lightest.pop_first()?;
            if room >= length {
                break (weight, bin, room);
            }
            tight.insert((room, weight, bin));
        };
        lists[bin].push(row);
        if lists[bin].len() < limit {
            lightest.insert((key(f64::from_bits(weight) + work), bin, room - length));
        }
    }
    Some(lists)
}

/// Inside each micro-step the heaviest bin goes to the rank that has worked least.
fn to_ranks(bins: Vec<Weighed>, ranks: usize) -> Vec<List> {
    let mut totals = vec![0.0; ranks];
    let mut dealt: Vec<List> = Vec::with_capacity(bins.len());
    let mut bins = bins.into_iter();
    loop {
        let step: Vec<Weighed> = bins.by_ref().take(ranks).collect();
        if step.is_empty() {
            return dealt;
        }
        let mut idlest: Vec<usize> = (0..ranks).collect();
        idlest.sort_by(|a, b| f64::total_cmp(&totals[*a], &totals[*b]));
        let mut places = vec![List::new(); ranks];
        for (bin, rank) in step.into_iter().zip(idlest) {
            totals[rank] += bin.work;
            places[rank] = bin.rows;
        }
        dealt.extend(places);
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use proptest::prelude::*;

    use super::super::{PlanOptions, Work, plan};

    fn options(budget: u32, ranks: u32) -> PlanOptions {
        PlanOptions { budget, max_segments: None, ranks }
    }

    proptest! {
        #[test]
        fn every_row_once_and_never_over_budget(
            (lengths, budget) in (1_u32..300).prop_flat_map(|b| (prop::collection::vec(1..=b, 0..200), Just(b))),
            ranks in 2_u32..9,
        ) {
            let work: Vec<f64> = lengths.iter().map(|length| Work::ATTENTION.of(*length)).collect();
            let plan = plan(&lengths, &work, options(budget, ranks)).unwrap();
            let mut rows: Vec<u32> = plan.bins.iter().flatten().copied().collect();
            rows.sort_unstable();
            prop_assert_eq!(rows, (0..lengths.len() as u32).collect::<Vec<_>>());
            prop_assert_eq!(plan.bins.len(), (plan.micro_steps * ranks) as usize);
            let tokens = |bin: &[u32]| bin.iter().map(|row| lengths[*row as usize]).sum::<u32>();
            prop_assert!(plan.bins.iter().all(|bin| tokens(bin) <= budget));
            prop_assert!(plan.imbalance >= 1.0);
        }
    }

    #[test]
    fn work_that_is_no_number_is_refused() {
        assert!(plan(&[1, 1], &[1.0, f64::NAN], options(4, 2)).is_err());
    }
}
