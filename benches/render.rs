//! Chat templates on their own, without Python: conversations rendered a second, templates compiled a second.
//!
//! Templates and conversations come from the corpus that the tests read.

#[path = "../tests/rust/corpus.rs"]
#[expect(dead_code, reason = "tests need more of it")]
#[expect(clippy::expect_used, clippy::unwrap_used, reason = "without a sound corpus there is nothing to measure")]
mod corpus;

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tokentape::template::Template;

use corpus::Case;

/// So many pairs of a template and a conversation are rendered.
const SAMPLE: usize = 500;

fn sources(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder.join("templates")).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = files.map(|file| file.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "jinja"));
    paths.sort_unstable();
    paths.iter().filter_map(|path| fs::read_to_string(path).ok()).collect()
}

/// Pairs that render, evenly spread over templates and conversations.
fn sample<'a>(templates: &'a [Template], cases: &'a [Case]) -> Vec<(&'a Template, &'a Case)> {
    let pairs = (0..).map(|index| (&templates[index * 7 % templates.len()], &cases[index * 11 % cases.len()]));
    let renders = |(template, case): &(&Template, &Case)| template.render(&case.conversation, &case.options).is_ok();
    pairs.take(templates.len() * cases.len()).filter(renders).take(SAMPLE).collect()
}

fn rendering(criterion: &mut Criterion) {
    let Some(folder) = corpus::folder() else { return };
    let templates: Vec<Template> =
        sources(&folder).iter().filter_map(|source| Template::compile(source).ok()).collect();
    let mut cases: Vec<(String, Case)> = corpus::cases(&folder).into_iter().collect();
    cases.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    let cases: Vec<Case> = cases.into_iter().map(|(_, case)| case).collect();
    let sample = sample(&templates, &cases);
    let mut group = criterion.benchmark_group("template");
    group.throughput(Throughput::Elements(sample.len() as u64));
    group.bench_function("render", |bencher| bencher.iter(|| render_all(black_box(&sample))));
    group.finish();
}

/// One pass over the sample, under a name that `valgrind --toggle-collect` finds.
#[inline(never)]
fn render_all(sample: &[(&Template, &Case)]) {
    for (template, case) in sample {
        let _ = black_box(template.render(&case.conversation, &case.options));
    }
}

fn compiling(criterion: &mut Criterion) {
    let Some(folder) = corpus::folder() else { return };
    let sources = sources(&folder);
    let mut group = criterion.benchmark_group("template");
    group.throughput(Throughput::Bytes(sources.iter().map(|source| source.len() as u64).sum()));
    group.bench_function("compile", |bencher| {
        bencher.iter(|| sources.iter().filter(|source| Template::compile(source).is_ok()).count());
    });
    group.finish();
}

criterion_group!(benches, rendering, compiling);
criterion_main!(benches);
