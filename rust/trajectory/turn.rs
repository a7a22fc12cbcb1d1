//! One generation of the policy.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::columns::Origin;

/// A generation: the tokens `start..end`, of one act or of several chunks.
#[derive(Debug, Clone)]
pub struct Turn {
    /// First token.
    pub start: u32,
    /// One past the last token.
    pub end: u32,
    /// The message it became, -1 without a template.
    pub message: i32,
    /// Why the engine stopped.
    pub finish_reason: Arc<str>,
    /// Its own reward, shared by every fragment and fork that holds the turn.
    pub reward: TurnReward,
    /// The act that began it: the same in every fragment and fork that holds the turn.
    pub origin: Origin,
}

impl Turn {
    /// The tokens of the turn.
    pub fn range(&self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A reward that several holders of one turn see alike.
#[derive(Debug, Clone)]
pub struct TurnReward(Arc<AtomicU64>);

/// The bits of a NaN say that no reward was given; a given reward is finite.
const UNSET: u64 = u64::MAX;

impl TurnReward {
    /// A cell with `reward` in it.
    pub fn new(reward: Option<f64>) -> Self {
        Self(Arc::new(AtomicU64::new(encode(reward))))
    }

    /// The reward, if one was given.
    pub fn get(&self) -> Option<f64> {
        let bits = self.0.load(Ordering::Relaxed);
        (bits != UNSET).then(|| f64::from_bits(bits))
    }

    /// Gives the reward, or takes it back; the caller has checked that it is finite.
    pub(super) fn set(&self, reward: Option<f64>) {
        self.0.store(encode(reward), Ordering::Relaxed);
    }
}

fn encode(reward: Option<f64>) -> u64 {
    reward.map_or(UNSET, f64::to_bits)
}
