//! Rows that share prefixes: each is a path of its bin, and what a token trains is the sum over the rows that hold it.

use std::collections::{BTreeMap, BTreeSet};

use arrow_array::RecordBatch;
use arrow_array::types::{Float32Type, Int32Type, UInt8Type};
use proptest::prelude::*;
use tokentape::arrow::Batch;
use tokentape::pack::{PackOptions, Packing};
use tokentape::row::Row;
use tokentape::tree::Sharing;

use crate::pack::{list, options, row};

/// Rows over few ids, so that many begin alike: a prompt, then sampled tokens of which some are trained.
fn any_row() -> impl Strategy<Value = Row> {
    let prompt = prop::collection::vec(0_i32..2, 1..6);
    let reply = prop::collection::vec((0_i32..2, 0_u8..2, -4_i8..5), 0..8);
    (prompt, reply).prop_map(|(prompt, reply)| {
        let after = |value: fn(&(i32, u8, i8)) -> u8| prompt.iter().map(|_| 0).chain(reply.iter().map(value)).collect();
        let credit = prompt.iter().map(|_| 0.0).chain(reply.iter().map(|token| f32::from(token.2)));
        Row {
            sampled_mask: after(|_| 1),
            loss_mask: after(|token| token.1),
            advantages: Some(credit.collect()),
            ..row(prompt.iter().copied().chain(reply.iter().map(|token| token.0)).collect())
        }
    })
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    prop::collection::vec(any_row(), 1..14)
}

fn sharing() -> impl Strategy<Value = Sharing> {
    prop::sample::select(vec![Sharing::Whole, Sharing::SingleNext, Sharing::Prompt])
}

/// The places of a bin from the root to the end of a segment.
fn path(parents: &[i32], ends: &[i32], leaf: i32) -> Vec<usize> {
    let mut places = Vec::new();
    let mut segment = usize::try_from(leaf).ok();
    while let Some(index) = segment {
        places.splice(0..0, ends[index] as usize..ends[index + 1] as usize);
        segment = usize::try_from(parents[index]).ok();
    }
    places
}

/// What each beginning trains: the sum over rows of weight times advantage of the token that ends it.
type Objective = BTreeMap<Vec<i32>, f32>;

fn expected(rows: &[&Row]) -> Objective {
    let mut sums = Objective::new();
    for row in rows {
        for place in (1..row.token_ids.len()).filter(|place| row.loss_mask[*place] == 1) {
            let credit = row.advantages.as_ref().unwrap()[place];
            *sums.entry(row.token_ids[..=place].to_vec()).or_default() += credit;
        }
    }
    sums
}

/// Checks one bin, and returns the rows it holds.
fn check_bin(bins: &RecordBatch, bin: usize, rows: &[Row], budget: u32) -> Vec<usize> {
    let int = |name: &str| list::<Int32Type>(bins, name, bin);
    let (ids, positions, parent) = (int("input_ids"), int("position_ids"), int("parent"));
    let (ends, parents, leaves) = (int("cu_seqlens"), int("segment_parent"), int("leaf_row"));
    let loss = list::<UInt8Type>(bins, "loss_mask", bin);
    let advantages = list::<Float32Type>(bins, "advantages", bin);
    let weighed = bins.column_by_name("loss_weight").map(|_| list::<Float32Type>(bins, "loss_weight", bin));
    assert!(ids.len() <= budget as usize);
    let mut found = Objective::new();
    let mut counted = BTreeSet::new();
    for (row, leaf) in leaves.iter().zip(int("leaf_segment")) {
        let places = path(&parents, &ends, leaf);
        assert!(places.iter().map(|place| ids[*place]).eq(rows[*row as usize].token_ids.iter().copied()));
        assert!(places.iter().map(|place| positions[*place]).eq(0..places.len() as i32));
        assert_eq!(parent[places[0]], -1);
        assert!(places.windows(2).all(|pair| parent[pair[1]] == pair[0] as i32));
        for (count, place) in places.iter().enumerate() {
            if counted.insert(*place) && loss[*place] == 1 {
                let key = places[..=count].iter().map(|place| ids[*place]).collect();
                let weight = weighed.as_ref().map_or(1.0, |weights| weights[*place]);
                *found.entry(key).or_default() += weight * advantages[*place];
            }
        }
    }
    let held: Vec<usize> = leaves.iter().map(|row| *row as usize).collect();
    let wanted = expected(&held.iter().map(|row| &rows[*row]).collect::<Vec<_>>());
    assert!(found.keys().eq(wanted.keys()), "{found:?} {wanted:?}");
    assert!(found.values().zip(wanted.values()).all(|(one, other)| (one - other).abs() < 1e-3), "{found:?} {wanted:?}");
    held
}

fn check(rows: &[Row], budget: u32, ranks: u32, sharing: Sharing) {
    let options = PackOptions { sharing: Some(sharing), ..options(budget, ranks, 1) };
    let packing = Packing::new(Batch::from_rows(rows).unwrap(), options).unwrap();
    let bins = packing.fill(0..packing.bins()).unwrap();
    let mut held: Vec<usize> = (0..bins.num_rows()).flat_map(|bin| check_bin(&bins, bin, rows, budget)).collect();
    held.extend(packing.report().left_out.iter().map(|row| row.0)); // those that train nothing
    held.sort_unstable();
    assert!(held.into_iter().eq(0..rows.len()));
    if sharing == Sharing::Prompt {
        assert_eq!(packing.report().merged, 0);
    }
}

proptest! {
    #[test]
    fn every_row_is_a_path_and_trains_what_it_did(
        rows in rows(), budget in 14_u32..60, ranks in 1_u32..4, sharing in sharing(),
    ) {
        check(&rows, budget, ranks, sharing);
    }
}

#[test]
#[ignore = "long: half a million cases take minutes"]
fn every_row_is_a_path_half_a_million_times() {
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(500_000));
    let cases = (rows(), 14_u32..60, 1_u32..4, sharing());
    runner
        .run(&cases, |(rows, budget, ranks, sharing)| {
            check(&rows, budget, ranks, sharing);
            Ok(())
        })
        .unwrap();
}
