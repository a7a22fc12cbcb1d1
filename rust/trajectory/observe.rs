//! `observe`: what the environment says goes behind what the policy sampled.

use std::sync::Arc;

use super::dialogue::Dialogue;
use super::{Stage, Trajectory};
use crate::author::message_runs;
use crate::bridge::{Bridge, Tail};
use crate::columns::Columns;
use crate::message::{Conversation, Data};
use crate::render::Seams;
use crate::row::Fork;
use crate::template::Checkpoint;
use crate::trajectory::Identity;
use crate::{Error, ErrorKind, Result};

/// An observation that was prepared on a snapshot, and is not yet part of the trajectory.
#[derive(Debug)]
pub struct Observation {
    last: bool,
    conversation: Arc<Conversation>,
    content: Content,
    checkpoint: Option<Checkpoint>,
}

#[derive(Debug)]
enum Content {
    /// The tape goes on.
    Tail(Tail),
    /// A new fragment begins, with these columns.
    Fragment { columns: Box<Columns>, at: usize, kind: &'static str },
}

impl Trajectory {
    /// A trajectory that begins with a conversation, rendered with a generation prompt.
    pub fn start(mut dialogue: Dialogue, identity: Identity) -> Result<Self> {
        dialogue.settings.seams = Seams::Rollout;
        dialogue.check(&dialogue.conversation.messages, 0)?;
        let settings = dialogue.settings(true);
        let beginning = dialogue.renderer.begin_from(&dialogue.conversation, &settings, None)?;
        let mut columns = Columns::default();
        columns.observe(&beginning.token_ids, message_runs(beginning.message_index.iter().copied()));
        let vocabulary = Some(dialogue.renderer.tokenizer().vocab_size());
        let mut trajectory = Self::begin(identity, columns, vocabulary);
        trajectory.dialogue = Some(dialogue);
        trajectory.checkpoint = beginning.checkpoint;
        Ok(trajectory)
    }

    /// Adds messages behind the open turn. Returns the fragment that goes on, where that is not this trajectory.
    pub fn observe(&mut self, messages: &[Data], last: bool) -> Result<Option<Self>> {
        let observation = self.prepare(messages, last)?;
        Ok(self.apply(observation))
    }

    /// What [`Self::apply`] does for an observation, without changing anything yet.
    pub fn prepare(&self, messages: &[Data], last: bool) -> Result<Observation> {
        let dialogue = self.expect_acted("observe", messages, last)?;
        let turn = self.open_turn();
        let message = dialogue.conversation.messages.len();
        dialogue.check(messages, message + 1)?;
        let sampled = dialogue.sampled_message(&turn)?;
        let conversation = dialogue.extended([sampled].into_iter().chain(messages.iter().cloned()));
        if let Some(kind) = self.rewriting(dialogue, &conversation, message, !last)? {
            let (content, checkpoint) = self.fragment(dialogue, &conversation, !last, kind)?;
            return Ok(Observation { last, conversation, content, checkpoint });
        }
        let settings = dialogue.settings(!last);
        let bridge = Bridge {
            renderer: &dialogue.renderer,
            settings: &settings,
            conversation: &conversation,
            message,
            turn: &turn,
            from: self.checkpoint.as_ref(),
        };
        let (tail, checkpoint) = bridge.tail().map_err(|error| self.explain(error, dialogue))?;
        self.expect_one_tail(dialogue, &bridge, &tail)?;
        Ok(Observation { last, conversation, content: Content::Tail(tail), checkpoint })
    }

    /// Makes a prepared observation part of the trajectory.
    pub fn apply(&mut self, observation: Observation) -> Option<Self> {
        let Observation { last, conversation, content, checkpoint } = observation;
        let stage = if last { Stage::Finished } else { Stage::Prompted };
        match content {
            Content::Tail(tail) => {
                if tail.seam {
                    self.seams.push(self.len() as u32);
                }
                self.columns.observe(&tail.token_ids, tail.messages);
                self.enter(stage, conversation, checkpoint);
                None
            }
            Content::Fragment { columns, at, kind } => {
                let mut fragment = self.supersede(*columns, at, kind);
                fragment.enter(stage, conversation, checkpoint);
                Some(fragment)
            }
        }
    }

    fn enter(&mut self, stage: Stage, conversation: Arc<Conversation>, checkpoint: Option<Checkpoint>) {
        self.stage = stage;
        // A template without such a place in this conversation may have one in the next.
        self.checkpoint = checkpoint.or_else(|| self.checkpoint.take()).filter(|_| stage != Stage::Finished);
        if let Some(dialogue) = &mut self.dialogue {
            dialogue.conversation = conversation;
            dialogue.explicit = None;
        }
        if stage == Stage::Finished {
            self.columns.shrink();
        }
    }

    /// Replaces the conversation by another, such as a summary: a new fragment of the same rollout.
    pub fn compact(&mut self, messages: Vec<Data>) -> Result<Self> {
        let Some(dialogue) = &self.dialogue else {
            return Err(Error::trajectory(
                "compact: there is no chat template; start a trajectory of the same rollout",
            ));
        };
        self.expect_open("compact")?;
        dialogue.check(&messages, 0)?;
        let conversation = Arc::new(Conversation { messages, ..Conversation::clone(&dialogue.conversation) });
        let (content, checkpoint) = self.fragment(dialogue, &conversation, true, "compaction")?;
        self.apply(Observation { last: false, conversation, content, checkpoint })
            .ok_or_else(|| Error::trajectory("compact: no fragment began"))
    }

    /// The columns of a fragment: what the template prints now, with the facts of the common prefix.
    fn fragment(
        &self,
        dialogue: &Dialogue,
        conversation: &Arc<Conversation>,
        prompt: bool,
        kind: &'static str,
    ) -> Result<(Content, Option<Checkpoint>)> {
        let settings = dialogue.settings(prompt);
        let from = self.checkpoint.as_ref();
        let beginning = dialogue.renderer.begin_from(conversation, &settings, from)?;
        let (old, new) = (self.columns.token_ids(), beginning.token_ids);
        let at = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
        let mut columns = self.columns.inherit(at);
        columns.observe(&new[at..], message_runs(beginning.message_index[at..].iter().copied()));
        Ok((Content::Fragment { columns: Box::new(columns), at, kind }, beginning.checkpoint))
    }

    /// The fragment that goes on from here; this one is closed.
    fn supersede(&mut self, columns: Columns, at: usize, kind: &'static str) -> Self {
        self.columns.shrink();
        self.checkpoint = None;
        self.stage = Stage::Superseded;
        let identity = self.identity.fragment();
        let fork = Fork { parent_id: self.identity.id.to_string(), at: at as i32, kind: kind.into() };
        let mut turns = self.turns.clone();
        turns.retain(|turn| turn.end as usize <= at);
        let seams = self.seams.iter().copied().filter(|seam| (*seam as usize) < at).collect();
        Self {
            seams,
            identity,
            fork: Some(fork),
            parent: Some(Arc::new(self.clone())),
            columns,
            turns,
            epoch: 0,
            ..self.clone()
        }
    }

    /// What the template does to history in `conversation`, if the trajectory forks there; an error if it must not.
    fn rewriting(
        &self,
        dialogue: &Dialogue,
        conversation: &Conversation,
        message: usize,
        prompt: bool,
    ) -> Result<Option<&'static str>> {
        use super::dialogue::History;
        if dialogue.history == History::Keep {
            return Ok(None);
        }
        let Some(rewrite) = super::history::rewrite(dialogue, conversation, message, prompt)? else { return Ok(None) };
        if dialogue.history == History::Fork {
            return Ok(Some("history"));
        }
        Err(Error::new(
            ErrorKind::Bridge,
            format!(
                "observe, turn {}: the template prints earlier text otherwise than before ({}), at byte {} of the rendered \
                 conversation, in message {message} or before it; use history=\"keep\" or history=\"fork\"",
                self.turns.len() - 1,
                rewrite.class.name(),
                rewrite.byte
            ),
        ))
    }

    /// The ids of the open turn, with what was appended to it by hand.
    pub(super) fn open_turn(&self) -> Vec<crate::TokenId> {
        self.turns.last().map_or_else(Vec::new, |turn| self.columns.ids_in(turn.start as usize..self.len()))
    }

    fn expect_acted(&self, operation: &str, messages: &[Data], last: bool) -> Result<&Dialogue> {
        match (self.stage, &self.dialogue) {
            (Stage::Finished | Stage::Superseded, _) => Err(self.refuse(operation)),
            (_, None) => Err(Error::trajectory(format!(
                "{operation}: the trajectory has no chat template; append ids by hand, or start it from a chat"
            ))),
            (Stage::Prompted, _) => Err(Error::trajectory(format!(
                "{operation}: it is the policy's move after turn {}; pass all new messages in one call",
                self.turns.len() as i64 - 1
            ))),
            (Stage::Acted, _) if messages.is_empty() && !last => {
                Err(Error::value(format!("{operation}: no messages; pass at least one, or final=True")))
            }
            (Stage::Acted, Some(dialogue)) => Ok(dialogue),
        }
    }

    /// A template that cannot print what follows a raw text may need the message that the text stands for.
    fn explain(&self, error: Error, dialogue: &Dialogue) -> Error {
        if error.kind() != ErrorKind::Render || dialogue.explicit.is_some() {
            return error;
        }
        Error::new(
            ErrorKind::Bridge,
            format!(
                "observe, turn {}: the template refuses the new messages behind the sampled text as plain content: {}; if \
                 they belong to tool calls in the turn, pass act(..., message=chat.parse(token_ids))",
                self.turns.len() - 1,
                error.message()
            ),
        )
    }
}
