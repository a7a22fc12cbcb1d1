//! A trajectory: the literal tokens of one rollout, or of a fragment of it, and which of them the policy sampled.
//!
//! *Invariant*: after `act`, `append` or `observe`, `token_ids[..before.len()] == before`; sampled spans equal the
//! policy's ids, id for id; logprobs are all or nothing per trajectory; no token is both sampled and observed.
//!
//! A trajectory is *prompted* (the policy may act) or *acted* (it may observe, or act again as the next chunk of the
//! same turn). Every operation checks first and changes afterwards: what fails leaves no trace.

mod act;
mod ambiguity;
mod change;
mod dialogue;
mod history;
mod identity;
mod merge;
mod observe;
mod rewriting;
mod saved;
mod turn;

use std::sync::Arc;

use serde_json::{Map, Value};

pub use act::Act;
pub use ambiguity::Reader;
pub use dialogue::{Dialogue, History};
pub use history::{Class, Divergence};
pub use identity::Identity;
pub use merge::{Record, merge, merged_identity};
pub use observe::Observation;
pub use rewriting::Rewriting;
pub use saved::{ChatObject, ChatParts, Saved};
pub use turn::{Turn, TurnReward};

use crate::columns::Columns;
use crate::mask;
use crate::message::Data;
use crate::row::Fork;
use crate::template::Checkpoint;
use crate::{Error, Result, TokenId};

/// Whose move it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The policy may act.
    Prompted,
    /// The environment may observe.
    Acted,
    /// Nothing more comes: the last observation was final, or a cut went through the middle of a message.
    Finished,
    /// A later fragment of the same rollout goes on from here.
    Superseded,
}

/// Whether logprobs are recorded, which the first act decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Logprobs {
    /// No act yet.
    Undecided,
    /// Never recorded.
    Absent,
    /// Recorded for every sampled token, of this kind.
    Recorded(Option<Arc<str>>),
}

/// See the module's page.
#[derive(Debug, Clone)]
pub struct Trajectory {
    identity: Identity,
    fork: Option<Fork>,
    parent: Option<Arc<Self>>,
    columns: Columns,
    turns: Vec<Turn>,
    stage: Stage,
    epoch: u32,
    reward: Option<f64>,
    metrics: Map<String, Value>,
    notes: Map<String, Value>,
    vocabulary: Option<usize>,
    logprobs: Logprobs,
    dialogue: Option<Dialogue>,
    /// Where the next rendering of the conversation goes on, while more can come.
    checkpoint: Option<Checkpoint>,
    /// Where a tail begins that is no added-token boundary.
    seams: Vec<u32>,
}

impl Trajectory {
    /// A trajectory without a template, for base-model completions: `token_ids` is the prompt.
    ///
    /// `vocabulary` is the largest id plus one; without it only negative ids are refused.
    pub fn from_prompt(token_ids: &[TokenId], vocabulary: Option<usize>, identity: Identity) -> Result<Self> {
        if token_ids.is_empty() {
            return Err(Error::value("from_prompt: the prompt is empty; give at least one id, such as the BOS"));
        }
        act::check_ids("the prompt", token_ids, vocabulary)?;
        let mut columns = Columns::default();
        columns.observe(token_ids, [(0, -1)]);
        Ok(Self::begin(identity, columns, vocabulary))
    }

    fn begin(identity: Identity, columns: Columns, vocabulary: Option<usize>) -> Self {
        Self {
            identity,
            fork: None,
            parent: None,
            columns,
            turns: Vec::new(),
            stage: Stage::Prompted,
            epoch: 0,
            reward: None,
            metrics: Map::new(),
            notes: Map::new(),
            vocabulary,
            logprobs: Logprobs::Undecided,
            dialogue: None,
            checkpoint: None,
            seams: Vec::new(),
        }
    }

    /// Who this is.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Where it left its parent, if it has one.
    pub fn fork_point(&self) -> Option<&Fork> {
        self.fork.as_ref()
    }

    /// The fragment of the same rollout that this one goes on from.
    pub fn parent(&self) -> Option<&Arc<Self>> {
        self.parent.as_ref()
    }

    /// The per-token columns.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// The generations, in order.
    pub fn turns(&self) -> &[Turn] {
        &self.turns
    }

    /// Whose move it is.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// The return of the rollout, if it was set here.
    pub fn reward(&self) -> Option<f64> {
        self.reward
    }

    /// Numbers and words to keep with the trajectory.
    pub fn metrics(&self) -> &Map<String, Value> {
        &self.metrics
    }

    /// The tokens at which an observation begins that is no added-token boundary: encoded together with what stands
    /// before them, they might be others.
    pub fn seams(&self) -> &[u32] {
        &self.seams
    }

    /// How many tokens there are.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Whether there is no token; only the default of a new type is, no trajectory.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// How many more tokens fit into `max_length`.
    pub fn remaining(&self, max_length: usize) -> usize {
        max_length.saturating_sub(self.len())
    }

    /// One logprob a token with 0.0 filler, or `None` if none were ever recorded.
    pub fn logprobs(&self) -> Option<Vec<f32>> {
        matches!(self.logprobs, Logprobs::Recorded(_)).then(|| self.columns.logprobs())
    }

    /// What the logprobs are, if the policy said so.
    pub fn logprob_kind(&self) -> Option<&str> {
        match &self.logprobs {
            Logprobs::Recorded(kind) => kind.as_deref(),
            Logprobs::Undecided | Logprobs::Absent => None,
        }
    }

    /// Where this came from: what was noted, and what the trajectory knows by itself, which wins.
    pub fn provenance(&self) -> Result<Map<String, Value>> {
        let mut provenance = self.notes.clone();
        if let Some(dialogue) = &self.dialogue {
            dialogue.provenance(&mut provenance)?;
        }
        provenance.insert("library_version".into(), env!("CARGO_PKG_VERSION").into());
        if !self.seams.is_empty() {
            provenance.insert("seams".into(), self.seams.clone().into());
        }
        if let Some(kind) = self.logprob_kind() {
            provenance.insert("logprob_kind".into(), kind.into());
        }
        Ok(provenance)
    }

    /// The conversation and its template, if there is one.
    pub fn dialogue(&self) -> Option<&Dialogue> {
        self.dialogue.as_ref()
    }

    /// The conversation so far, the open turn included.
    pub fn messages(&self) -> Result<Vec<Data>> {
        let Some(dialogue) = &self.dialogue else { return Ok(Vec::new()) };
        let mut messages = dialogue.conversation.messages.clone();
        // A fragment that another goes on from keeps its last turn open.
        if self.turns.last().is_some_and(|turn| turn.message == messages.len() as i32) {
            messages.push(dialogue.sampled_message(&self.open_turn())?);
        }
        Ok(messages)
    }

    /// The conversation as JSON text.
    pub fn messages_json(&self) -> Result<String> {
        Ok(Data::from(self.messages()?).to_json())
    }

    /// The tools as JSON text.
    pub fn tools_json(&self) -> String {
        let tools = self.dialogue.as_ref().and_then(|dialogue| dialogue.conversation.tools.as_ref());
        tools.map_or_else(|| "null".into(), Data::to_json)
    }

    /// Whether a turn was cut while its reasoning was open: no stop ends it, and the last reasoning marker of the
    /// generation prompt and the turn opens a block.
    pub fn reasoning_open(&self, turn: usize) -> Result<bool> {
        let Some(dialogue) = &self.dialogue else { return Ok(false) };
        let range = self.turn(turn)?.range();
        let ids = self.columns.ids_in(range.clone());
        if ids.last().is_some_and(|last| dialogue.is_stop(*last)) {
            return Ok(false);
        }
        let index = self.columns.message_index();
        let prompt = index[..range.start].iter().rev().take_while(|message| **message < 0).count();
        let whole = self.columns.ids_in(range.start - prompt..range.end);
        Ok(mask::reasoning_is_open(&dialogue.renderer.tokenizer().decode(&whole, false)?))
    }

    /// The message that the next sampled token belongs to.
    fn next_message(&self) -> i32 {
        self.dialogue.as_ref().map_or(-1, |dialogue| dialogue.conversation.messages.len() as i32)
    }

    fn refuse(&self, operation: &str) -> Error {
        let reason = match self.stage {
            Stage::Superseded => "a later fragment goes on from here; use the trajectory that observe returned",
            _ => "this trajectory is finished; fork before the last observation to go on from there",
        };
        Error::trajectory(format!("{operation}: {reason}"))
    }
}
