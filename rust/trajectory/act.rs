//! `act`: what the policy sampled goes onto the tape, verbatim, or not at all.

use std::sync::Arc;

use super::turn::{Turn, TurnReward};
use super::{Logprobs, Stage, Trajectory};
use crate::columns::{Columns, Origin, Sampled};
use crate::message::Data;
use crate::top_logprobs::TopLogprobs;
use crate::{Error, Result, TokenId};

/// Logprobs at or below this are what engines write when they have none (vLLM writes -9999.0).
const SENTINEL: f32 = -9999.0;

/// Logprobs above this are no rounding of a probability of one.
const LARGEST: f32 = 1e-4;

/// One completion, as an engine returned it.
#[derive(Debug, Clone, Default)]
pub struct Act<'a> {
    /// The sampled ids, the stop token included when the engine returns it.
    pub token_ids: &'a [TokenId],
    /// One value a sampled id; `None`: the engine recorded none. A null is passed as NaN, and refused.
    pub logprobs: Option<&'a [f32]>,
    /// Why the engine stopped, in its own word.
    pub finish_reason: &'a str,
    /// The logprobs of the same ids under a reference model.
    pub reference_logprobs: Option<&'a [f32]>,
    /// The likeliest alternatives at each sampled id.
    pub top_logprobs: Option<&'a TopLogprobs>,
    /// The policy version that sampled.
    pub policy_version: Option<i64>,
    /// What the logprobs are: `raw`, `processed`, or a word of one's own.
    pub logprob_kind: Option<&'a str>,
    /// The message that the ids stand for; without it their text is its content.
    pub message: Option<Data>,
    /// The next chunk of the turn before, not a turn of its own.
    pub continues: bool,
}

impl Trajectory {
    /// Records what the policy sampled, and returns the index of the turn.
    ///
    /// Refuses, and changes nothing, when it is not the policy's move, when the completion is empty, an id is outside
    /// the vocabulary, or the logprobs are not one finite value per id, all or none over the trajectory, of one kind.
    pub fn act(&mut self, act: &Act<'_>) -> Result<usize> {
        let turn = self.turn_of(act.continues)?;
        let place = format!("turn {turn}");
        if act.token_ids.is_empty() {
            return Err(Error::trajectory(format!(
                "{place}: the completion is empty; ask the policy again, or drop the rollout"
            )));
        }
        check_ids(&place, act.token_ids, self.vocabulary)?;
        let logprobs = self.check_logprobs(&place, act)?;
        self.check_reference(&place, act)?;
        self.check_top(&place, act)?;
        self.check_version(&place, act.policy_version)?;
        self.record(turn, act, logprobs);
        Ok(turn)
    }

    /// The index of the turn that an act would make or extend.
    fn turn_of(&self, continues: bool) -> Result<usize> {
        let next = self.turns.len();
        match (self.stage, continues) {
            (Stage::Prompted, false) => Ok(next),
            (Stage::Acted, true) => Ok(next - 1),
            (Stage::Acted, false) => Err(Error::trajectory(format!(
                "act: turn {} waits for an observation; call observe first, or act(..., continues=True) for the next \
                 chunk of the same turn",
                next - 1
            ))),
            (Stage::Prompted, true) => Err(Error::trajectory(
                "act(..., continues=True): no turn is open here; the first chunk of a turn is a plain act",
            )),
            (Stage::Finished | Stage::Superseded, _) => Err(self.refuse("act")),
        }
    }

    fn check_logprobs(&self, place: &str, act: &Act<'_>) -> Result<Logprobs> {
        let Some(values) = act.logprobs else {
            return match self.logprobs {
                Logprobs::Recorded(_) => Err(Error::trajectory(format!(
                    "{place}: no logprobs, though earlier turns have them; a trajectory records all or none"
                ))),
                Logprobs::Undecided | Logprobs::Absent => Ok(Logprobs::Absent),
            };
        };
        check_values(place, "logprob", values, act.token_ids.len())?;
        let kind = act.logprob_kind.map(Arc::from);
        match &self.logprobs {
            Logprobs::Undecided => Ok(Logprobs::Recorded(kind)),
            Logprobs::Absent => Err(Error::trajectory(format!(
                "{place}: logprobs, though earlier turns have none; a trajectory records all or none"
            ))),
            Logprobs::Recorded(earlier) if kind.is_some() && kind != *earlier => Err(Error::trajectory(format!(
                "{place}: logprobs of the kind {}, though earlier turns recorded {}; a trajectory holds one kind",
                quoted(kind.as_deref()),
                quoted(earlier.as_deref())
            ))),
            Logprobs::Recorded(earlier) => Ok(Logprobs::Recorded(earlier.clone())),
        }
    }

    fn check_reference(&self, place: &str, act: &Act<'_>) -> Result<()> {
        self.check_presence(place, "reference_logprobs", act.reference_logprobs.is_some(), Columns::has_reference)?;
        let Some(values) = act.reference_logprobs else { return Ok(()) };
        check_values(place, "reference logprob", values, act.token_ids.len())
    }

    fn check_top(&self, place: &str, act: &Act<'_>) -> Result<()> {
        self.check_presence(place, "top_logprobs", act.top_logprobs.is_some(), Columns::has_top)?;
        let Some(top) = act.top_logprobs else { return Ok(()) };
        let expected = act.token_ids.len();
        if top.len() != expected {
            let found = top.len();
            return Err(Error::trajectory(format!(
                "{place}: top_logprobs of {found} tokens for {expected} sampled ids; the length must be the same, nothing \
                 is padded or cut"
            )));
        }
        for token in 0..top.len() {
            let (ids, values) = top.get(token);
            let place = format!("{place}, top_logprobs of token {token}");
            if ids.is_empty() {
                return Err(Error::trajectory(format!(
                    "{place}: no alternatives; give at least one, or none anywhere"
                )));
            }
            check_ids(&place, ids, self.vocabulary)?;
            check_values(&place, "logprob", values, ids.len())?;
        }
        Ok(())
    }

    fn check_version(&self, place: &str, version: Option<i64>) -> Result<()> {
        let recorded = |columns: &Columns| columns.chunks().next().is_some_and(|chunk| chunk.version.is_some());
        self.check_presence(place, "policy_version", version.is_some(), recorded)
    }

    /// Refuses what only some turns have.
    fn check_presence(&self, place: &str, what: &str, given: bool, recorded: impl Fn(&Columns) -> bool) -> Result<()> {
        if self.columns.chunks().next().is_none() || recorded(&self.columns) == given {
            return Ok(());
        }
        let (now, before) = if given { ("", "none") } else { ("no ", "it") };
        Err(Error::trajectory(format!(
            "{place}: {now}{what}, though earlier turns have {before}; a trajectory records all or none"
        )))
    }

    fn record(&mut self, turn: usize, act: &Act<'_>, logprobs: Logprobs) {
        let origin = Origin { trajectory: Arc::clone(&self.identity.id), epoch: self.epoch };
        let start = self.columns.len() as u32;
        let message = self.next_message();
        let finish_reason: Arc<str> = act.finish_reason.into();
        let sampled = Sampled {
            token_ids: act.token_ids,
            logprobs: act.logprobs.unwrap_or_default(),
            reference_logprobs: act.reference_logprobs.unwrap_or_default(),
            top_logprobs: act.top_logprobs,
        };
        self.columns.sample(&sampled, message, origin.clone(), act.policy_version);
        let end = self.columns.len() as u32;
        if let Some(open) = self.turns.get_mut(turn) {
            open.end = end;
            open.finish_reason = finish_reason;
        } else {
            let reward = TurnReward::new(None);
            self.turns.push(Turn { start, end, message, finish_reason, reward, origin });
        }
        if let Some(dialogue) = &mut self.dialogue {
            dialogue.explicit.clone_from(&act.message);
        }
        self.logprobs = logprobs;
        self.stage = Stage::Acted;
    }
}

/// Refuses ids outside the vocabulary, or negative ones where it is not known.
pub(super) fn check_ids(place: &str, token_ids: &[TokenId], vocabulary: Option<usize>) -> Result<()> {
    let limit = vocabulary.map_or(i64::from(i32::MAX) + 1, |size| size as i64);
    match token_ids.iter().position(|id| !(0..limit).contains(&i64::from(*id))) {
        None => Ok(()),
        Some(token) => Err(Error::trajectory(format!(
            "{place}, token {token}: the id {} is outside the vocabulary of {limit} ids; the ids come from another \
             tokenizer, or were padded",
            token_ids[token]
        ))),
    }
}

fn check_values(place: &str, what: &str, values: &[f32], expected: usize) -> Result<()> {
    if values.len() != expected {
        return Err(Error::trajectory(format!(
            "{place}: {} {what}s for {expected} sampled ids; the length must be the same, nothing is padded or cut",
            values.len()
        )));
    }
    let reason = |value: f32| match value {
        value if value.is_nan() => Some("NaN or null"),
        value if value == f32::NEG_INFINITY => Some("-inf"),
        value if value <= SENTINEL => Some("a value that engines write when they have none"),
        value if value > LARGEST => Some("above zero"),
        _ => None,
    };
    match values.iter().enumerate().find_map(|(token, value)| Some((token, *value, reason(*value)?))) {
        None => Ok(()),
        Some((token, value, reason)) => Err(Error::trajectory(format!(
            "{place}, token {token}: the {what} {value} is {reason}; record what the engine sampled with, or no \
             logprobs at all"
        ))),
    }
}

fn quoted(kind: Option<&str>) -> String {
    kind.map_or_else(|| "none".into(), |kind| format!("'{kind}'"))
}
