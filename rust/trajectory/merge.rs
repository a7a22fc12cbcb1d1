//! Records of single turns, as many servers and harnesses give them, into the fewest trajectories.
//!
//! *Invariant*: each record's prompt and completion stand in exactly one trajectory, id for id, and each sampled token
//! carries loss once.

use std::sync::Arc;

use super::{Act, Identity, Stage, Trajectory, act};
use crate::columns::Columns;
use crate::row::Fork;
use crate::{Error, Result, TokenId};

/// One turn: what the policy was given, and what it sampled.
#[derive(Debug, Clone, Default)]
pub struct Record<'a> {
    /// The whole prompt, literally.
    pub prompt: &'a [TokenId],
    /// The completion.
    pub act: Act<'a>,
    /// The turn's own reward.
    pub reward: Option<f64>,
}

/// Merges the records of one rollout, in the order they were sampled.
///
/// A record extends the longest trajectory whose ids are a full prefix of its prompt. Where there is none, it opens a
/// new one, which inherits the facts of the longest common prefix and carries no loss on it.
pub fn merge(records: &[Record<'_>], vocabulary: Option<usize>, rollout: &Identity) -> Result<Vec<Trajectory>> {
    let mut open: Vec<Trajectory> = Vec::new();
    for (index, record) in records.iter().enumerate() {
        place(&mut open, record, vocabulary, rollout)
            .map_err(|error| Error::new(error.kind(), format!("record {index}: {}", error.message())))?;
    }
    Ok(open)
}

fn place(open: &mut Vec<Trajectory>, record: &Record<'_>, vocabulary: Option<usize>, rollout: &Identity) -> Result<()> {
    let common = |trajectory: &Trajectory| common_prefix(&trajectory.columns.token_ids(), record.prompt);
    let shared: Vec<usize> = open.iter().map(common).collect();
    let full = (0..open.len()).filter(|index| shared[*index] == open[*index].len()).max_by_key(|index| shared[*index]);
    if let Some(index) = full {
        return extend(&mut open[index], record);
    }
    act::check_ids("the prompt", record.prompt, vocabulary)?;
    let nearest = (0..open.len()).max_by_key(|index| (shared[*index], std::cmp::Reverse(*index)));
    let mut trajectory = match nearest.filter(|index| shared[*index] > 0) {
        Some(index) => open[index].leave(shared[index], record.prompt),
        None => Trajectory::from_prompt(record.prompt, vocabulary, rollout.clone())?,
    };
    if !open.is_empty() && trajectory.identity.id == rollout.id {
        trajectory.identity = rollout.fragment();
    }
    extend(&mut trajectory, record)?;
    open.push(trajectory);
    Ok(())
}

/// Appends what the record's prompt has beyond the trajectory, and its completion.
fn extend(trajectory: &mut Trajectory, record: &Record<'_>) -> Result<()> {
    let observed = &record.prompt[trajectory.len()..];
    let mut act = record.act.clone();
    act.continues |= observed.is_empty() && trajectory.stage == Stage::Acted;
    let mut extended = trajectory.clone();
    extended.append(observed)?;
    let turn = extended.act(&act)?;
    if record.reward.is_some() {
        extended.set_turn_reward(turn, record.reward)?;
    }
    *trajectory = extended;
    Ok(())
}

fn common_prefix(one: &[TokenId], two: &[TokenId]) -> usize {
    one.iter().zip(two).take_while(|(one, two)| one == two).count()
}

impl Trajectory {
    /// A fragment of the same rollout that begins with `prompt`, of which the first `at` ids are inherited.
    fn leave(&mut self, at: usize, prompt: &[TokenId]) -> Self {
        let mut columns: Columns = self.columns.inherit(at);
        columns.observe(&prompt[at..], [(0, -1)]);
        let mut turns = self.turns.clone();
        turns.retain(|turn| turn.end as usize <= at);
        let fork = Fork { parent_id: self.identity.id.to_string(), at: at as i32, kind: "history".into() };
        Self {
            identity: self.identity.fragment(),
            fork: Some(fork),
            columns,
            turns,
            stage: Stage::Prompted,
            epoch: 0,
            reward: None,
            ..self.clone()
        }
    }
}

/// The identity that the first merged trajectory of a rollout has.
pub fn merged_identity(rollout_id: Option<Arc<str>>) -> Identity {
    let identity = Identity::new(None);
    match rollout_id {
        Some(rollout_id) => Identity { rollout_id, ..identity },
        None => identity,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(records: &[(&[TokenId], &[TokenId])]) -> Vec<Trajectory> {
        let act = |token_ids| Act { token_ids, ..Act::default() };
        let records: Vec<_> =
            records.iter().map(|(prompt, ids)| Record { prompt, act: act(ids), reward: None }).collect();
        merge(&records, None, &Identity::new(None)).unwrap_or_default()
    }

    #[test]
    fn turns_that_extend_become_one() {
        let merged = merged(&[(&[1], &[2]), (&[1, 2, 3], &[4]), (&[1, 2, 3, 4, 5], &[6])]);
        assert_eq!(merged.len(), 1);
        assert_eq!(merged[0].columns().token_ids(), [1, 2, 3, 4, 5, 6]);
        assert_eq!(merged[0].columns().sampled_mask(), [0, 1, 0, 1, 0, 1]);
        assert_eq!(merged[0].turns().len(), 3);
    }

    #[test]
    fn shared_tokens_train_once() {
        let merged = merged(&[(&[1], &[2, 3]), (&[1, 2, 3, 4], &[5]), (&[1, 2, 3, 7], &[8])]);
        assert_eq!(merged.len(), 2);
        assert_eq!(merged[1].columns().token_ids(), [1, 2, 3, 7, 8]);
        assert_eq!(merged[1].columns().sampled_mask(), [0, 1, 1, 0, 1]);
        assert_eq!(merged[1].columns().loss_mask(), [0, 0, 0, 0, 1]);
        assert_eq!(merged[0].identity().rollout_id, merged[1].identity().rollout_id);
    }

    #[test]
    fn a_resumed_chunk_is_the_same_turn() {
        let merged = merged(&[(&[1], &[2]), (&[1, 2], &[3])]);
        assert_eq!((merged.len(), merged[0].turns().len()), (1, 1));
    }
}
