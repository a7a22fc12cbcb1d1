//! Rows through files and bins: what goes in comes out, whatever the rows are.

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Int32Type, UInt8Type};
use arrow_buffer::Buffer;
use proptest::prelude::*;
use tokentape::arrow::Batch;
use tokentape::pack::{Overlong, PackOptions, Packing, RowWork};
use tokentape::plan::Work;
use tokentape::row::Row;

/// A row of these ids, with nothing to say about them.
pub(crate) fn row(token_ids: Vec<i32>) -> Row {
    Row {
        message_index: vec![-1; token_ids.len()],
        token_ids,
        metrics: "{}".to_owned(),
        messages: "[]".to_owned(),
        tools: "[]".to_owned(),
        provenance: "{}".to_owned(),
        ..Row::default()
    }
}

fn any_row() -> impl Strategy<Value = Row> {
    let token = (any::<i32>().prop_map(i32::unsigned_abs), 0_u8..2, 0_u8..2, -9.0_f32..0.0);
    (prop::collection::vec(token, 0..40), any::<bool>()).prop_map(|(tokens, weighed)| Row {
        sampled_mask: tokens.iter().map(|token| token.1).collect(),
        loss_mask: tokens.iter().map(|token| token.2).collect(),
        loss_weight: weighed.then(|| tokens.iter().map(|token| token.3).collect()),
        logprobs: Some(tokens.iter().map(|token| token.3).collect()),
        ..row(tokens.iter().map(|token| (token.0 >> 1) as i32).collect())
    })
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    prop::collection::vec(any_row(), 0..30)
}

pub(crate) fn options(token_budget: u32, ranks: u32, align: u32) -> PackOptions {
    PackOptions {
        token_budget,
        ranks,
        overlong: Overlong::Truncate,
        align,
        pad_token_id: 7,
        max_segments: None,
        work: RowWork::Model(Work::ATTENTION),
        sharing: None,
    }
}

pub(crate) fn list<T: ArrowPrimitiveType>(bins: &RecordBatch, name: &str, bin: usize) -> Vec<T::Native> {
    bins.column_by_name(name).unwrap().as_list::<i32>().value(bin).as_primitive::<T>().values().to_vec()
}

/// Checks one bin, and returns the rows it holds with the tokens of each.
fn check_bin(bins: &RecordBatch, bin: usize, rows: &[Row], align: u32) -> Vec<(usize, usize)> {
    let ids = list::<Int32Type>(bins, "input_ids", bin);
    let positions = list::<Int32Type>(bins, "position_ids", bin);
    let loss = list::<UInt8Type>(bins, "loss_mask", bin);
    let ends = list::<Int32Type>(bins, "cu_seqlens", bin);
    assert_eq!(*ends.last().unwrap() as usize, ids.len());
    assert_eq!(ids.len() % align as usize, 0);
    let mut held = Vec::new();
    for (segment, row) in list::<Int32Type>(bins, "row", bin).into_iter().enumerate() {
        let place = ends[segment] as usize..ends[segment + 1] as usize;
        assert!(positions[place.clone()].iter().copied().eq(0..place.len() as i32));
        assert_eq!(loss[place.start], 0);
        let Ok(row) = usize::try_from(row) else {
            assert!(ids[place].iter().all(|id| *id == 7));
            continue;
        };
        assert_eq!(ids[place.clone()], rows[row].token_ids[..place.len()]);
        assert_eq!(loss[place.clone()][1..], rows[row].loss_mask[1..place.len()]);
        held.push((row, place.len()));
    }
    held
}

fn check_packing(rows: &[Row], budget: u32, ranks: u32, align: u32) {
    let batch = Batch::from_rows(rows).unwrap();
    let packing = Packing::new(batch, options(budget, ranks, align)).unwrap();
    let bins = packing.fill(0..packing.bins()).unwrap();
    assert_eq!(bins.num_rows() % ranks as usize, 0);
    let mut held: Vec<(usize, usize)> =
        (0..bins.num_rows()).flat_map(|bin| check_bin(&bins, bin, rows, align)).collect();
    held.sort_unstable();
    let report = packing.report();
    let mut all: Vec<usize> = held.iter().map(|held| held.0).chain(report.left_out.iter().map(|row| row.0)).collect();
    all.sort_unstable();
    assert_eq!(all, (0..rows.len()).collect::<Vec<_>>());
    assert_eq!(held.iter().map(|held| held.1 as u64).sum::<u64>(), report.tokens);
}

proptest! {
    #[test]
    fn a_file_and_a_stream_give_the_same_table(rows in rows(), cut in 0_usize..30) {
        let batch = Batch::from_rows(&rows).unwrap();
        batch.validate().unwrap();
        let mut file = Vec::new();
        batch.write_file(&mut file).unwrap();
        let read = Batch::from_file(&Buffer::from(file)).unwrap();
        prop_assert_eq!(read.record_batches(), batch.record_batches());
        let sliced = batch.slice(cut, 5);
        let mut stream = Vec::new();
        sliced.write_stream(&mut stream).unwrap();
        let read = Batch::from_stream(Buffer::from(stream)).unwrap().combined().unwrap();
        let sliced = sliced.combined().unwrap();
        prop_assert_eq!(read.record_batches(), sliced.record_batches());
    }

    #[test]
    fn the_invariants_of_packing_hold(rows in rows(), budget in 8_u32..80, ranks in 1_u32..5, align in 1_u32..9) {
        check_packing(&rows, budget, ranks, align);
    }

    #[test]
    fn a_damaged_file_is_refused_or_read(rows in rows(), place in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut file = Vec::new();
        Batch::from_rows(&rows).unwrap().write_file(&mut file).unwrap();
        let index = place.index(file.len());
        file[index] = byte;
        if let Ok(batch) = Batch::from_file(&Buffer::from(file)) {
            let _ = batch.validate();
        }
    }
}

#[test]
#[ignore = "long: a million cases take minutes"]
fn the_invariants_of_packing_hold_a_million_times() {
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(1_000_000));
    let cases = (rows(), 8_u32..80, 1_u32..5, 1_u32..9);
    runner
        .run(&cases, |(rows, budget, ranks, align)| {
            check_packing(&rows, budget, ranks, align);
            Ok(())
        })
        .unwrap();
}
