//! One row of the table `tokentape.trajectories`: what a trajectory becomes when its group is written.
//!
//! *Invariant*: all per-token columns have the length of `token_ids`.

use crate::TokenId;
use crate::top_logprobs::TopLogprobs;

/// A row; the columns have the names and meanings of the Arrow contract.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Row {
    /// The group: one item, several rollouts.
    pub group_id: String,
    /// The episode this row is a fragment of.
    pub rollout_id: String,
    /// This fragment.
    pub trajectory_id: String,
    /// The environment that made it.
    pub env: String,
    /// Which of several agents of the rollout acted.
    pub agent: Option<String>,
    /// Where the fragment left its parent.
    pub fork: Option<Fork>,
    /// Literal ids.
    pub token_ids: Vec<TokenId>,
    /// 1 where the policy produced the token: a fact.
    pub sampled_mask: Vec<u8>,
    /// 1 where training uses the token: a choice.
    pub loss_mask: Vec<u8>,
    /// The choice in float; `None`: equal to the mask.
    pub loss_weight: Option<Vec<f32>>,
    /// One value per sampled token, 0.0 filler elsewhere; `None`: never recorded.
    pub logprobs: Option<Vec<f32>>,
    /// The same of a reference model; `None`: never recorded.
    pub ref_logprobs: Option<Vec<f32>>,
    /// The alternatives at each token, none where nothing was sampled; `None`: never recorded.
    pub top_logprobs: Option<TopLogprobs>,
    /// Per token; `None`: never assigned.
    pub advantages: Option<Vec<f32>>,
    /// The message a token belongs to, -1 for frame.
    pub message_index: Vec<i32>,
    /// Generations, in order.
    pub turns: Vec<TurnRow>,
    /// Runs that cover exactly the sampled tokens; `None`: never recorded.
    pub policy_versions: Option<Vec<VersionRun>>,
    /// The return of the rollout.
    pub reward: Option<f32>,
    /// JSON text.
    pub metrics: String,
    /// JSON text.
    pub messages: String,
    /// JSON text.
    pub tools: String,
    /// JSON text.
    pub provenance: String,
}

/// Where a fragment left its parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fork {
    /// The parent's `trajectory_id`.
    pub parent_id: String,
    /// The length of the common prefix in tokens.
    pub at: i32,
    /// `history`, `branch` or `compaction`.
    pub kind: String,
}

/// One generation: `start..end` in tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnRow {
    /// First sampled token.
    pub start: i32,
    /// One past the last.
    pub end: i32,
    /// The message it became.
    pub message: i32,
    /// Why it ended.
    pub finish_reason: String,
    /// Its own reward.
    pub reward: Option<f32>,
}

/// Sampled tokens `start..end` came from one version of the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionRun {
    /// First token.
    pub start: i32,
    /// One past the last.
    pub end: i32,
    /// The version, as the policy counts.
    pub version: i64,
}
