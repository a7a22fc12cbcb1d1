//! What the values of single columns must be, whatever the others say.

use std::ops::Range;

use super::fault::{Found, Kind};
use super::linter::LintOptions;
use super::markers::Markers;
use super::tape::{Tape, runs_where};
use crate::arrow::View;

/// Servers round: so much above zero is taken as rounding.
const TOLERANCE: f32 = 1e-4;
/// Logprobs at or below this are what engines write when they have none (vLLM writes -9999.0).
const SENTINEL: f32 = -9999.0;
/// The NaN that stands for a null, where a format has nulls and Arrow has none.
pub(super) const NULL_BITS: u32 = 0x7fc0_0001;
/// A row with very many single faults is reported by so many of each kind.
const MOST: usize = 8;

/// Whether all per-token columns have one length; each that has not is a fault.
pub(super) fn lengths(view: &View<'_>, row: usize, tape: &Tape<'_>, found: &mut Found) -> bool {
    let expected = tape.ids.len();
    let others = [
        ("sampled_mask", Kind::MaskLength, Some(tape.sampled.len())),
        ("loss_mask", Kind::MaskLength, Some(tape.loss.len())),
        ("logprobs", Kind::LogprobsLength, tape.logprobs.map(<[f32]>::len)),
        ("loss_weight", Kind::ColumnLength, view.loss_weight.get(row).map(<[f32]>::len)),
        ("advantages", Kind::ColumnLength, view.advantages.get(row).map(<[f32]>::len)),
        ("message_index", Kind::ColumnLength, view.message_index.get(row).map(<[i32]>::len)),
    ];
    let mut equal = true;
    for (column, kind, length) in others {
        let Some(length) = length.filter(|length| *length != expected) else { continue };
        equal = false;
        let known = found.faults.iter().any(|fault| fault.kind == kind && kind == Kind::MaskLength);
        if !known {
            let first = length.min(expected);
            let message = format!("`{column}` has {length} values for {expected} tokens");
            found.tokens(kind, column, first..length.max(expected), message);
        }
    }
    equal
}

/// Ids, masks and finite numbers.
pub(super) fn plain(view: &View<'_>, row: usize, tape: &Tape<'_>, markers: &Markers, found: &mut Found) {
    let size = markers.vocabulary();
    let outside = |id: i32| id < 0 || id as usize >= size;
    if tape.ids.iter().fold(false, |any, id| any | outside(*id)) {
        for run in runs_where(0..tape.ids.len(), |token| outside(tape.ids[token])).into_iter().take(MOST) {
            let id = tape.ids[run.start];
            let kind = if id < 0 { Kind::NegativeId } else { Kind::IdOutOfVocabulary };
            found.tokens(kind, "token_ids", run, format!("the id {id} is outside the vocabulary of {size}"));
        }
    }
    for (column, mask) in [("sampled_mask", tape.sampled), ("loss_mask", tape.loss)] {
        if mask.iter().fold(0, |any, value| any | value) > 1 {
            let at = mask.iter().position(|value| *value > 1).unwrap_or_default();
            found.tokens(Kind::MaskValue, column, at..at + 1, format!("the mask is {}, not 0 or 1", mask[at]));
        }
    }
    for (column, values) in [("advantages", view.advantages.get(row)), ("loss_weight", view.loss_weight.get(row))] {
        let wrong = values.and_then(|values| values.iter().position(|value| !value.is_finite()));
        if let Some(at) = wrong {
            found.tokens(Kind::NotFinite, column, at..at + 1, format!("`{column}` is not finite"));
        }
    }
}

/// The logprobs of sampled tokens, outside of what is already explained.
pub(super) fn logprobs(tape: &Tape<'_>, options: &LintOptions, found: &mut Found) {
    let Some(values) = tape.logprobs else { return };
    let wrong = |value: f32| !(value > SENTINEL && value <= TOLERANCE);
    let sampled = tape.sampled.iter().zip(values);
    if !sampled.fold(false, |any, (sampled, value)| any | ((*sampled != 0) & wrong(*value))) {
        return;
    }
    let judged = |token: usize| tape.is_sampled(token) && wrong(values[token]) && !found.explains(token);
    let faulty = runs_where(0..tape.ids.len(), judged);
    for run in faulty.into_iter().take(MOST) {
        let value = values[run.start];
        let (kind, what) = name(value, options);
        let run = same_kind(values, run, options);
        found.tokens(kind, "logprobs", run, format!("the logprob of a sampled token is {what}"));
    }
}

/// The part of a run whose values have the kind of the first.
fn same_kind(values: &[f32], run: Range<usize>, options: &LintOptions) -> Range<usize> {
    let kind = name(values[run.start], options).0;
    let length = values[run.clone()].iter().take_while(|value| name(**value, options).0 == kind).count();
    run.start..run.start + length
}

fn name(value: f32, options: &LintOptions) -> (Kind, String) {
    match value {
        value if value.to_bits() == NULL_BITS => (Kind::NullLogprob, "null".to_owned()),
        value if value.is_nan() => (Kind::NanLogprob, "NaN".to_owned()),
        value if value.is_infinite() => (Kind::InfiniteLogprob, value.to_string()),
        value if options.is_filler(value) => {
            (Kind::FillerOnSampledToken, format!("{value}, which stands for none in this format"))
        }
        value if value <= SENTINEL => (Kind::SentinelLogprob, format!("{value}, which engines write for none")),
        value => (Kind::PositiveLogprob, format!("{value}, above zero")),
    }
}
