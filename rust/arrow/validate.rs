//! What the contract says about values: every row is checked, and the first that breaks a rule is named.
//!
//! *Invariant*: in a row that passes, every per-token list has the length of `token_ids` or is null as a whole.

use arrow_array::Array;
use arrow_array::types::{Float32Type, Int32Type};
use serde::de::IgnoredAny;

use super::{Batch, View};
use crate::{Error, Result, threads};

/// Logprobs are at most zero; servers round, so this much above zero is taken as rounding.
const LOGPROB_TOLERANCE: f32 = 1e-4;

impl Batch {
    /// Checks every row against the contract: equal lengths, ids not negative, masks of 0 and 1, finite numbers,
    /// logprobs not above zero, turns and policy versions inside the row, JSON that parses.
    pub fn validate(&self) -> Result<()> {
        self.views()?.iter().try_for_each(|(start, view)| check_view(*start, view))
    }
}

fn check_view(start: usize, view: &View<'_>) -> Result<()> {
    let broken = |row| Some((row, check_row(view, row).err()?));
    if let Some((row, broken)) = threads::first(view.len(), view.tokens(), broken) {
        return Err(located(view, start, row, &broken));
    }
    check_json(view).map_err(|(row, broken)| located(view, start, row, &broken))
}

fn located(view: &View<'_>, start: usize, row: usize, broken: &str) -> Error {
    let id = view.text("trajectory_id").map_or("", |ids| ids.value(row));
    Error::schema(format!("row {} (trajectory {id:?}): {broken}", start + row))
}

type Check = std::result::Result<(), String>;

fn check_row(view: &View<'_>, row: usize) -> Check {
    let length = view.token_ids.length(row);
    if let Some((name, found)) = view.ragged(row) {
        return Err(format!("`{name}` has {found} values, `token_ids` has {length}: give one value per token"));
    }
    check_token_ids(view.token_ids.get(row).unwrap_or_default())?;
    let sampled = view.sampled_mask.get(row).unwrap_or_default();
    check_mask("sampled_mask", sampled)?;
    check_mask("loss_mask", view.loss_mask.get(row).unwrap_or_default())?;
    check_floats("loss_weight", view.loss_weight.get(row))?;
    check_floats("advantages", view.advantages.get(row))?;
    check_logprobs("logprobs", view.logprobs.get(row), sampled)?;
    check_logprobs("ref_logprobs", view.ref_logprobs.and_then(|lists| lists.get(row)), sampled)?;
    check_top_logprobs(view, row, sampled)?;
    check_message_index(view.message_index.get(row).unwrap_or_default())?;
    check_turns(view, row, length)?;
    check_versions(view, row, sampled)
}

/// Fails at the first value that `wrong` picks; the scan without a finding runs at memory speed.
fn none_of<T: Copy + std::fmt::Display>(name: &str, values: &[T], rule: &str, wrong: impl Fn(T) -> bool) -> Check {
    if !values.iter().fold(false, |any, value| any | wrong(*value)) {
        return Ok(());
    }
    let index = values.iter().position(|value| wrong(*value)).unwrap_or_default();
    Err(format!("`{name}` is {} at token {index}: {rule}", values[index]))
}

fn check_token_ids(values: &[i32]) -> Check {
    none_of("token_ids", values, "ids are not negative", |id| id < 0)
}

fn check_mask(name: &str, values: &[u8]) -> Check {
    none_of(name, values, "a mask is 0 or 1", |value| value > 1)
}

fn check_floats(name: &str, values: Option<&[f32]>) -> Check {
    let Some(values) = values else { return Ok(()) };
    none_of(name, values, "values are finite", |value| !value.is_finite())
}

fn check_logprobs(name: &str, values: Option<&[f32]>, sampled: &[u8]) -> Check {
    let Some(values) = values else { return Ok(()) };
    let wrong = |(value, sampled): (&f32, &u8)| *sampled == 1 && !(value.is_finite() && *value <= LOGPROB_TOLERANCE);
    match values.iter().zip(sampled).position(wrong) {
        None => Ok(()),
        Some(index) => Err(format!(
            "`{name}` is {} at sampled token {index}: a logprob is finite and not above zero",
            values[index]
        )),
    }
}

/// As many ids as logprobs at each token, and some at each sampled one.
fn check_top_logprobs(view: &View<'_>, row: usize, sampled: &[u8]) -> Check {
    let Some(top) = view.top_logprobs else { return Ok(()) };
    let Some(range) = top.range(row) else { return Ok(()) };
    let broken = |error: Error| error.message().to_owned();
    let ids = top.lists::<Int32Type>("ids").map_err(broken)?;
    let logprobs = top.lists::<Float32Type>("logprobs").map_err(broken)?;
    for (token, item) in range.enumerate() {
        let (ids, values) = (ids.get(item).unwrap_or_default(), logprobs.get(item).unwrap_or_default());
        let wrong = |value: &f32| !(value.is_finite() && *value <= LOGPROB_TOLERANCE);
        if ids.len() != values.len() || (ids.is_empty() && sampled[token] == 1) || values.iter().any(wrong) {
            return Err(format!(
                "`top_logprobs` has {} ids and {} logprobs at token {token}: a sampled token has as many of both, at \
                 least one, and a logprob is finite and not above zero",
                ids.len(),
                values.len()
            ));
        }
    }
    Ok(())
}

fn check_message_index(values: &[i32]) -> Check {
    none_of("message_index", values, "a message is counted from 0, and -1 is the frame", |value| value < -1)
}

fn check_turns(view: &View<'_>, row: usize, length: usize) -> Check {
    let range = view.turns.range(row).unwrap_or_default();
    let starts = view.turns.int32("start").map_err(|error| error.message().to_owned())?;
    let ends = view.turns.int32("end").map_err(|error| error.message().to_owned())?;
    let mut free = 0;
    for (turn, item) in range.enumerate() {
        let (start, end) = (starts[item], ends[item]);
        if start < free || end < start || end as usize > length {
            return Err(format!(
                "turn {turn} spans tokens {start}..{end}: turns follow one another inside the {length} tokens of the row"
            ));
        }
        free = end;
    }
    Ok(())
}

/// The runs of `policy_versions` cover exactly the sampled tokens.
fn check_versions(view: &View<'_>, row: usize, sampled: &[u8]) -> Check {
    let Some(range) = view.policy_versions.range(row) else { return Ok(()) };
    let starts = view.policy_versions.int32("start").map_err(|error| error.message().to_owned())?;
    let ends = view.policy_versions.int32("end").map_err(|error| error.message().to_owned())?;
    let (mut free, mut covered) = (0, 0);
    for (run, item) in range.enumerate() {
        let (start, end) = (starts[item], ends[item]);
        let tokens = (start >= free && start <= end).then(|| sampled.get(start as usize..end as usize)).flatten();
        let Some(tokens) = tokens.filter(|tokens| tokens.iter().all(|sampled| *sampled == 1)) else {
            return Err(format!(
                "policy version run {run} spans tokens {start}..{end}: runs cover sampled tokens only"
            ));
        };
        covered += tokens.len();
        free = end;
    }
    let total = sampled.iter().map(|sampled| usize::from(*sampled)).sum::<usize>();
    if covered == total {
        return Ok(());
    }
    Err(format!("`policy_versions` covers {covered} of {total} sampled tokens: its runs cover all of them"))
}

fn check_json(view: &View<'_>) -> std::result::Result<(), (usize, String)> {
    ["metrics", "messages", "tools", "provenance"].into_iter().try_for_each(|name| {
        let texts = view.text(name).map_err(|error| (0, error.message().to_owned()))?;
        let wrong = threads::first(texts.len(), texts.value_data().len(), |row| {
            let error = serde_json::from_str::<IgnoredAny>(texts.value(row)).err()?;
            Some((row, format!("`{name}` is not JSON text: {error}")))
        });
        wrong.map_or(Ok(()), Err)
    })
}
