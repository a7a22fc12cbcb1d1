//! Plan and fill on their own, without Python: lengths a second, tokens a second.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tokentape::arrow::Batch;
use tokentape::pack::{Overlong, PackOptions, Packing, RowWork};
use tokentape::plan::{PlanOptions, Work, best_fit, plan};
use tokentape::row::Row;

const BUDGET: u32 = 32_768;

/// Long-tailed lengths: a power of evenly spread numbers, in an order that looks random.
fn lengths(count: u64) -> Vec<u32> {
    let spread = |index: u64| f64::from((index.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as u32) / f64::from(1 << 24);
    (0..count).map(|index| (200.0 + 32_568.0 * spread(index).powi(5)) as u32).collect()
}

fn row(length: u32) -> Row {
    let length = length as usize;
    Row {
        token_ids: (0..length as i32).collect(),
        sampled_mask: vec![1; length],
        loss_mask: vec![1; length],
        logprobs: Some(vec![-0.5; length]),
        advantages: Some(vec![1.0; length]),
        message_index: vec![-1; length],
        ..Row::default()
    }
}

fn planning(criterion: &mut Criterion) {
    let lengths = lengths(100_000);
    let work: Vec<f64> = lengths.iter().map(|length| Work::ATTENTION.of(*length)).collect();
    let mut group = criterion.benchmark_group("plan");
    group.throughput(Throughput::Elements(lengths.len() as u64));
    group.bench_function("best fit", |bencher| {
        bencher.iter(|| best_fit(black_box(&lengths), BUDGET, None));
    });
    let options = PlanOptions { budget: BUDGET, max_segments: None, ranks: 64 };
    group.bench_function("64 ranks", |bencher| bencher.iter(|| plan(black_box(&lengths), &work, options)));
    group.finish();
}

fn filling(criterion: &mut Criterion) {
    let rows: Vec<Row> = lengths(1_000).into_iter().map(row).collect();
    let options = PackOptions {
        token_budget: BUDGET,
        ranks: 1,
        overlong: Overlong::Error,
        align: 1,
        pad_token_id: 0,
        max_segments: None,
        work: RowWork::Model(Work::TOKENS),
        sharing: None,
    };
    let Ok(packing) = Batch::from_rows(&rows).and_then(|batch| Packing::new(batch, options)) else { return };
    let mut group = criterion.benchmark_group("fill");
    group.throughput(Throughput::Elements(packing.report().tokens));
    group.bench_function("pages, pooled", |bencher| {
        bencher.iter(|| {
            let mut start = 0;
            while start < packing.bins() {
                let page = packing.page(start);
                start = page.end;
                let _ = black_box(packing.fill(page));
            }
        });
    });
    group.finish();
}

criterion_group!(benches, planning, filling);
criterion_main!(benches);
