//! Changes apart from `act` and `observe`: unsampled ids by hand, forks, cuts, and what training shall use.

use serde_json::{Map, Value};

use super::{Logprobs, Stage, Trajectory, act};
use crate::row::Fork;
use crate::{Error, Result, TokenId};

impl Trajectory {
    /// Appends ids that nobody sampled. Without a template it is then the policy's move.
    pub fn append(&mut self, token_ids: &[TokenId]) -> Result<()> {
        self.expect_open("append")?;
        act::check_ids("append", token_ids, self.vocabulary)?;
        if !token_ids.is_empty() {
            self.columns.observe(token_ids, [(0, self.next_message())]);
            if self.dialogue.is_none() {
                self.stage = Stage::Prompted;
            }
        }
        Ok(())
    }

    /// Another rollout that shares the past.
    ///
    /// Both go on from here, and what they have in common is stored once.
    pub fn fork(&mut self) -> Result<Self> {
        self.expect_open("fork")?;
        let identity = self.identity.branch();
        let fork = Fork { parent_id: self.identity.id.to_string(), at: self.len() as i32, kind: "branch".into() };
        let columns = self.columns.fork();
        Ok(Self { identity, columns, fork: Some(fork), reward: None, epoch: 0, ..self.clone() })
    }

    /// Cuts everything after `length` tokens.
    ///
    /// A cut at the start of a turn makes it the policy's move again; a cut inside a turn leaves its first tokens.
    pub fn truncate(&mut self, length: usize) -> Result<()> {
        if self.stage == Stage::Superseded {
            return Err(self.refuse("truncate"));
        }
        if length == 0 || length > self.len() {
            return Err(Error::value(format!(
                "truncate: {length} is not between 1 and the {} tokens there are",
                self.len()
            )));
        }
        if length == self.len() {
            return Ok(());
        }
        self.stage = self.stage_after_cut(length as u32);
        self.columns.truncate(length);
        self.turns.retain(|turn| turn.start < length as u32);
        self.seams.retain(|seam| *seam < length as u32);
        if let Some(last) = self.turns.last_mut() {
            last.end = last.end.min(length as u32);
        } else {
            self.logprobs = Logprobs::Undecided;
        }
        self.epoch += 1;
        Ok(())
    }

    fn stage_after_cut(&self, length: u32) -> Stage {
        let acted = self.turns.iter().any(|turn| turn.start < length && length <= turn.end);
        if acted { Stage::Acted } else { Stage::Prompted }
    }

    /// Sets the return of the rollout, or takes it back.
    pub fn set_reward(&mut self, reward: Option<f64>) -> Result<()> {
        self.expect_current("reward")?;
        self.reward = reward.map(|value| finite("reward", value)).transpose()?;
        Ok(())
    }

    /// Sets the reward of one turn, for every fragment and fork that holds it.
    pub fn set_turn_reward(&self, turn: usize, reward: Option<f64>) -> Result<()> {
        let reward = reward.map(|value| finite(&format!("reward of turn {turn}"), value)).transpose()?;
        self.turn(turn)?.reward.set(reward);
        Ok(())
    }

    /// The turn of that index.
    pub fn turn(&self, index: usize) -> Result<&super::Turn> {
        self.turns.get(index).ok_or_else(|| {
            Error::trajectory(format!("turn {index} is no longer there: the trajectory has {} turns", self.turns.len()))
        })
    }

    /// Chooses which tokens training uses, 0 or 1 a token; `None` goes back to the sampled ones.
    pub fn set_loss_mask(&mut self, mask: Option<Vec<u8>>) -> Result<()> {
        self.expect_current("loss_mask")?;
        if let Some(mask) = &mask {
            self.expect_length("loss_mask", mask.len())?;
            if let Some(token) = mask.iter().position(|value| *value > 1) {
                return Err(Error::value(format!(
                    "loss_mask, token {token}: {} is neither 0 nor 1; weights go into loss_weight",
                    mask[token]
                )));
            }
        }
        self.columns.set_loss_mask(mask);
        Ok(())
    }

    /// Chooses the weight of each token, negative ones too; `None` goes back to the loss mask.
    pub fn set_loss_weight(&mut self, weight: Option<Vec<f32>>) -> Result<()> {
        self.expect_current("loss_weight")?;
        if let Some(weight) = &weight {
            self.expect_length("loss_weight", weight.len())?;
            if let Some(token) = weight.iter().position(|value| !value.is_finite()) {
                return Err(Error::value(format!("loss_weight, token {token}: {} is not finite", weight[token])));
            }
        }
        self.columns.set_loss_weight(weight);
        Ok(())
    }

    /// Replaces the metrics.
    pub fn set_metrics(&mut self, metrics: Map<String, Value>) -> Result<()> {
        self.expect_current("metrics")?;
        self.metrics = metrics;
        Ok(())
    }

    /// Adds to the provenance; what the trajectory knows by itself cannot be overwritten.
    pub fn note(&mut self, notes: Map<String, Value>) -> Result<()> {
        self.expect_current("note")?;
        self.notes.extend(notes);
        Ok(())
    }

    /// Nothing more comes: gives back the memory that was kept for growing.
    pub fn finish(&mut self) -> Result<()> {
        self.expect_current("finish")?;
        self.stage = Stage::Finished;
        self.checkpoint = None;
        self.columns.shrink();
        self.turns.shrink_to_fit();
        Ok(())
    }

    fn expect_length(&self, name: &str, length: usize) -> Result<()> {
        if length == self.len() {
            return Ok(());
        }
        Err(Error::value(format!("{name}: {length} values for {} tokens; give one value a token", self.len())))
    }

    fn expect_current(&self, operation: &str) -> Result<()> {
        if self.stage == Stage::Superseded { Err(self.refuse(operation)) } else { Ok(()) }
    }

    pub(super) fn expect_open(&self, operation: &str) -> Result<()> {
        match self.stage {
            Stage::Prompted | Stage::Acted => Ok(()),
            Stage::Finished | Stage::Superseded => Err(self.refuse(operation)),
        }
    }
}

/// A reward that fits the float32 column.
fn finite(name: &str, value: f64) -> Result<f64> {
    if (value as f32).is_finite() {
        return Ok(value);
    }
    Err(Error::value(format!(
        "{name}: {value} is not a finite float32; a reward that failed is no reward, drop the rollout"
    )))
}
