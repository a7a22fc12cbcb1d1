//! Columns that stand beside their tokens: the same shape, moved by a place or two.

use super::fault::{Found, Kind};
use super::linter::LintOptions;
use super::markers::Markers;
use super::tape::{Tape, runs, runs_where};

/// How far apart shapes are compared, the nearest first.
const DISTANCES: [i64; 4] = [1, -1, 2, -2];

/// Logprobs where nothing counts as sampled: logprobs or mask are moved, or a turn was masked out.
pub(super) fn check(tape: &Tape<'_>, markers: &Markers, options: &LintOptions, found: &mut Found) {
    let Some(values) = tape.logprobs else { return };
    let outside = |token: usize| !options.is_filler(values[token]) && !tape.is_sampled(token);
    if !(0..tape.ids.len()).any(outside) {
        return;
    }
    let recorded: Vec<u8> = values.iter().map(|value| u8::from(!options.is_filler(*value))).collect();
    match DISTANCES.into_iter().find(|by| is_moved(&recorded, tape.sampled, *by)) {
        Some(by) => moved(tape, markers, &recorded, by, found),
        None => masked_out(tape, markers, outside, found),
    }
}

/// Whether every recorded place, moved by `by`, is a sampled one, and every sampled run begins or ends with one.
fn is_moved(recorded: &[u8], sampled: &[u8], by: i64) -> bool {
    let moved = shifted(recorded, by);
    let inside = moved.iter().zip(sampled).all(|(moved, sampled)| *moved == 0 || *sampled != 0);
    inside && runs(sampled).iter().any(|run| moved[run.start] != 0 || moved[run.end - 1] != 0)
}

fn shifted(mask: &[u8], by: i64) -> Vec<u8> {
    let at = |token: i64| usize::try_from(token).ok().and_then(|token| mask.get(token)).copied().unwrap_or_default();
    (0..mask.len() as i64).map(|token| at(token - by)).collect()
}

/// Says which of the two is moved: the one whose runs agree less with the ids.
fn moved(tape: &Tape<'_>, markers: &Markers, recorded: &[u8], by: i64, found: &mut Found) {
    let as_mask = agreement(tape.ids, tape.sampled, markers);
    let as_logprobs =
        agreement(tape.ids, recorded, markers).max(agreement(tape.ids, &shifted(tape.sampled, -by), markers));
    if as_logprobs > as_mask {
        let first =
            recorded.iter().zip(tape.sampled).position(|(recorded, sampled)| (*recorded != 0) != (*sampled != 0));
        let first = first.unwrap_or_default();
        let message = format!("the mask stands {} the sampled tokens", places(by));
        found.tokens(Kind::MaskShifted, "sampled_mask", first..first + 1, message);
        return;
    }
    found.row(Kind::LogprobsShifted, "logprobs", format!("the logprobs stand {} their tokens", places(-by)));
}

fn places(by: i64) -> String {
    let plural = if by.abs() == 1 { "" } else { "s" };
    format!("{} place{plural} {}", by.abs(), if by > 0 { "behind" } else { "before" })
}

/// How many runs begin behind a header, and how many end with a stop.
fn agreement(ids: &[i32], mask: &[u8], markers: &Markers) -> usize {
    let agrees = |run: &std::ops::Range<usize>| {
        usize::from(markers.header_ends(ids, run.start)) + usize::from(markers.is_stop(ids[run.end - 1]))
    };
    runs(mask).iter().map(agrees).sum()
}

/// Tokens with logprobs that do not count as sampled, and are no shift.
fn masked_out(tape: &Tape<'_>, markers: &Markers, outside: impl Fn(usize) -> bool, found: &mut Found) {
    for run in runs_where(0..tape.ids.len(), outside) {
        if found.explains(run.start) {
            continue;
        }
        let last = tape.ids[run.end - 1];
        let (kind, message) = if markers.is_stop(last) && run.len() == 1 {
            (Kind::StopTokenNotTrained, "the stop token has a logprob and does not count as sampled")
        } else if markers.is_stop(last) && markers.header_ends(tape.ids, run.start) {
            (Kind::SampledTurnNotTrained, "a turn with logprobs does not count as sampled")
        } else {
            (Kind::LogprobOnUnsampledToken, "a logprob stands on a token that does not count as sampled")
        };
        found.tokens(kind, "sampled_mask", run, message);
    }
}
