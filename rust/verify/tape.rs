//! One row as lint reads it: slices of the Arrow buffers, and runs of masks.

use std::ops::Range;

use arrow_array::cast::AsArray;

use crate::TokenId;
use crate::arrow::View;

/// The per-token columns of a row. The lists may have any lengths: checking that is lint's first work.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tape<'a> {
    pub(super) ids: &'a [TokenId],
    pub(super) sampled: &'a [u8],
    pub(super) loss: &'a [u8],
    pub(super) logprobs: Option<&'a [f32]>,
}

impl<'a> Tape<'a> {
    pub(super) fn new(view: &View<'a>, row: usize) -> Self {
        Self {
            ids: view.token_ids.get(row).unwrap_or_default(),
            sampled: view.sampled_mask.get(row).unwrap_or_default(),
            loss: view.loss_mask.get(row).unwrap_or_default(),
            logprobs: view.logprobs.get(row),
        }
    }

    pub(super) fn is_sampled(&self, token: usize) -> bool {
        self.sampled[token] != 0
    }

    /// Whether anything was sampled.
    pub(super) fn has_samples(&self) -> bool {
        self.sampled.iter().any(|sampled| *sampled != 0)
    }
}

/// The maximal runs of values that are not zero.
pub(super) fn runs(mask: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = mask[at..].iter().position(|value| *value != 0).map(|offset| at + offset) {
        let end = mask[start..].iter().position(|value| *value == 0).map_or(mask.len(), |offset| start + offset);
        found.push(start..end);
        at = end;
    }
    found
}

/// The maximal runs of tokens in `range` that `picks` picks.
pub(super) fn runs_where(range: Range<usize>, picks: impl Fn(usize) -> bool) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for token in range.filter(|token| picks(*token)) {
        match found.last_mut() {
            Some(last) if last.end == token => last.end = token + 1,
            _ => found.push(token..token + 1),
        }
    }
    found
}

/// One generation of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TurnSpan<'a> {
    pub(super) tokens: Range<i64>,
    pub(super) message: i32,
    pub(super) finish_reason: &'a str,
}

impl TurnSpan<'_> {
    /// Whether the turn was ended from outside, and so has no stop of its own.
    pub(super) fn was_cut(&self) -> bool {
        !matches!(self.finish_reason, "" | "stop" | "eos" | "stop_token" | "tool_calls" | "tool_call")
    }
}

/// The generations of a row; none where the column has another form than the contract says.
pub(super) fn turns<'a>(view: &View<'a>, row: usize) -> Vec<TurnSpan<'a>> {
    let Some(range) = view.turns.range(row) else { return Vec::new() };
    let numbers = |name| view.turns.int32(name).unwrap_or_default();
    let (starts, ends, messages) = (numbers("start"), numbers("end"), numbers("message"));
    let reasons = view.turns.items.column_by_name("finish_reason").and_then(|column| column.as_string_opt::<i32>());
    range
        .map(|item| TurnSpan {
            tokens: i64::from(starts[item])..i64::from(ends[item]),
            message: messages[item],
            finish_reason: reasons.map_or("", |reasons| reasons.value(item)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_maximal() {
        assert_eq!(runs(&[1, 1, 0, 1, 0]), [0..2, 3..4]);
        assert_eq!(runs_where(0..6, |token| token % 3 != 2), [0..2, 3..5]);
    }
}
