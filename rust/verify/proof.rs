//! The proof of a row: everything that was not sampled is what the template writes, and what was sampled is what the
//! messages record.
//!
//! The prompt is rendered again from the messages before the first turn; each tail is derived again behind the turn
//! before it, from the messages as they were then. Nothing that was sampled is encoded for this.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::Array;
use rayon::prelude::*;

use super::canonical;
use super::fault::{Fault, Found, Kind, Level};
use super::provenance::{Known, Other};
use super::tape::{self, Tape};
use super::texts;
use crate::arrow::{Batch, View};
use crate::bridge::Bridge;
use crate::message::Conversation;
use crate::render::Renderer;
use crate::trajectory::Dialogue;
use crate::{Error, Result, TokenId, threads};

/// How many ids of each side a fault shows.
const SHOWN: usize = 12;

/// Proves rows with one model.
#[derive(Debug)]
pub struct Prover {
    known: Known,
}

impl Prover {
    /// A prover with this template and tokenizer.
    pub fn new(renderer: Renderer) -> Self {
        Self { known: Known::new(renderer) }
    }

    /// What is wrong with the rows of a batch, the first of which is row `base`; facts about them included.
    pub fn prove(&self, batch: &Batch, base: usize) -> Result<Vec<Fault>> {
        let mut faults = Vec::new();
        let mut start = base;
        for (_, view) in batch.views()? {
            let rows = (0..view.len()).into_par_iter();
            let found =
                threads::shared(|| rows.map(|row| self.row(&view, row, start + row)).collect::<Result<Vec<_>>>())?;
            faults.extend(found.into_iter().flatten());
            start += view.len();
        }
        Ok(faults)
    }

    fn row(&self, view: &View<'_>, row: usize, number: usize) -> Result<Vec<Fault>> {
        let mut found = Found::new(number);
        let text = |name: &str| Ok::<_, Error>(view.text(name)?.value(row));
        let tape = Tape::new(view, row);
        let outside = self.known.outside(tape.ids);
        match self.known.dialogue(text("provenance")?, text("messages")?, text("tools")?) {
            Err(unproven) => found.row(unproven.kind, "provenance", unproven.message),
            Ok(_) if outside => {}
            Ok((dialogue, other)) => {
                let fork = view.text("parent_id")?;
                let kind = view.text("fork_kind")?;
                let fork =
                    (!fork.is_null(row)).then(|| (view.fork_at(row).unwrap_or_default() as usize, kind.value(row)));
                if let Some(proof) = Proof::new(&dialogue, view, row, tape.ids, &mut found) {
                    proof.check(fork, &mut found);
                }
                if let Some(other) = other {
                    explained(&mut found, &other);
                }
            }
        }
        Ok(found.faults)
    }
}

/// What is wrong with a row that was made with another file is that; a row that holds all the same only smells.
fn explained(found: &mut Found, other: &Other) {
    let Other { changed, what, recorded } = other;
    let wrong = found.faults.iter().find(|fault| fault.kind.level() == Level::Fault).cloned();
    let Some(mut fault) = wrong else {
        let message = format!("the row was made with the {what} {recorded}, and holds with this model's");
        found.row(Kind::OtherFile, "provenance", message);
        return;
    };
    fault.kind = *changed;
    fault.message = format!("the row was made with the {what} {recorded}, not this model's: {}", fault.message);
    found.faults = vec![fault];
}

/// One generation: its tokens, and the message it became.
#[derive(Debug, Clone)]
pub(super) struct Turn {
    pub(super) tokens: Range<usize>,
    pub(super) message: usize,
}

/// One row and its conversation.
pub(super) struct Proof<'a> {
    pub(super) dialogue: &'a Dialogue,
    pub(super) ids: &'a [TokenId],
    pub(super) turns: Vec<Turn>,
}

impl<'a> Proof<'a> {
    /// A proof to be made; none where the row has no turns, or turns that are no turns of these messages.
    fn new(dialogue: &'a Dialogue, view: &View<'a>, row: usize, ids: &'a [TokenId], found: &mut Found) -> Option<Self> {
        let count = dialogue.conversation.messages.len();
        let (mut turns, mut at, mut message) = (Vec::new(), 0, 0);
        for turn in tape::turns(view, row) {
            let tokens = usize::try_from(turn.tokens.start).ok()?..usize::try_from(turn.tokens.end).ok()?;
            if tokens.start < at || tokens.end < tokens.start || tokens.end > ids.len() {
                return None;
            }
            let own = usize::try_from(turn.message).ok().filter(|own| *own >= message && *own < count);
            let Some(own) = own else {
                let text = format!("a turn became message {}, and the row has {count} messages", turn.message);
                found.row(Kind::MessagesDisagree, "messages", text);
                return None;
            };
            (at, message) = (tokens.end, own + 1);
            turns.push(Turn { tokens, message: own });
        }
        if turns.is_empty() {
            found.row(Kind::Unproven, "turns", "the row has no turns");
            return None;
        }
        Some(Self { dialogue, ids, turns })
    }

    fn check(&self, fork: Option<(usize, &str)>, found: &mut Found) {
        let before = found.faults.len();
        let Some(first) = self.prompt(fork, found) else { return };
        for turn in first..self.turns.len() {
            if let Err(error) = self.tail(turn, found) {
                self.cannot(&error, found);
                return;
            }
        }
        self.texts(first, found);
        if found.faults.len() == before
            && let Err(error) = canonical::note(self, found)
        {
            self.cannot(&error, found);
        }
    }

    fn cannot(&self, error: &Error, found: &mut Found) {
        let count = self.dialogue.conversation.messages.len();
        let message = format!("the template cannot print the {count} messages of the row: {}", error.message());
        found.row(Kind::CannotRender, "messages", message);
    }

    /// Proves the ids before the first turn, and says which turn that is. A fragment begins with what the template
    /// printed when it left its parent, sampled turns included; a branch may belong to one that does.
    fn prompt(&self, fork: Option<(usize, &str)>, found: &mut Found) -> Option<usize> {
        let own = |at: usize| self.turns.iter().position(|turn| turn.tokens.start >= at);
        let first = match fork {
            Some((at, "history" | "compaction")) => own(at).unwrap_or(self.turns.len() - 1),
            _ => 0,
        };
        let expected = match self.rendered(first) {
            Ok(expected) => expected,
            Err(error) => {
                self.cannot(&error, found);
                return None;
            }
        };
        let prompt = &self.ids[..self.turns[first].tokens.start];
        if prompt == expected {
            return Some(first);
        }
        let later = if fork.is_some() { first + 1..self.turns.len() } else { 0..0 };
        for turn in later {
            if self.rendered(turn).is_ok_and(|expected| self.ids[..self.turns[turn].tokens.start] == expected) {
                return Some(turn);
            }
        }
        let doubled = prompt.len() > 1 && prompt[0] == prompt[1] && expected.first() == Some(&prompt[0]);
        if doubled && expected.get(1) != Some(&prompt[0]) {
            found.tokens(Kind::DoubledBos, "token_ids", 1..2, "the token that begins the text stands twice");
            return None;
        }
        self.differs(Kind::PromptDiffers, 0..prompt.len(), &expected, found);
        None
    }

    /// The prompt of a turn, as the template writes it.
    fn rendered(&self, turn: usize) -> Result<Vec<TokenId>> {
        let conversation = self.until(self.turns[turn].message);
        Ok(self.dialogue.renderer.render(&conversation, &self.dialogue.settings(true))?.token_ids)
    }

    /// The conversation up to a message.
    pub(super) fn until(&self, message: usize) -> Arc<Conversation> {
        let conversation = &*self.dialogue.conversation;
        Arc::new(Conversation { messages: conversation.messages[..message].to_vec(), ..conversation.clone() })
    }

    /// Proves the ids behind a turn.
    fn tail(&self, index: usize, found: &mut Found) -> Result<()> {
        let turn = &self.turns[index];
        let count = self.dialogue.conversation.messages.len();
        let next = self.turns.get(index + 1);
        let region = turn.tokens.end..next.map_or(self.ids.len(), |next| next.tokens.start);
        if next.is_none() && region.is_empty() {
            if turn.message + 1 < count {
                let message = format!("the row ends with message {}, and {count} messages are recorded", turn.message);
                found.row(Kind::MessagesDisagree, "messages", message);
            }
            return Ok(());
        }
        let expected = self.derived(turn, next.map_or(count, |next| next.message), next.is_some())?;
        if self.ids[region.clone()] == expected {
            return Ok(());
        }
        // What an observation that is not the last writes ends with a generation prompt.
        if next.is_none() && self.ids[region.clone()] == self.derived(turn, count, true)? {
            return Ok(());
        }
        self.differs(Kind::TailDiffers, region, &expected, found);
        Ok(())
    }

    fn derived(&self, turn: &Turn, until: usize, prompt: bool) -> Result<Vec<TokenId>> {
        let bridge = Bridge {
            renderer: &self.dialogue.renderer,
            settings: &self.dialogue.settings(prompt),
            conversation: &self.until(until),
            message: turn.message,
            turn: &self.ids[turn.tokens.clone()],
            from: None,
        };
        Ok(bridge.tail()?.0.token_ids)
    }

    fn differs(&self, kind: Kind, region: Range<usize>, expected: &[TokenId], found: &mut Found) {
        let recorded = &self.ids[region.clone()];
        let at = recorded.iter().zip(expected).take_while(|(one, two)| one == two).count();
        let message = format!(
            "the template writes {:?} here, the row has {:?}",
            self.shown(&expected[at..]),
            self.shown(&recorded[at..])
        );
        let token = region.start + at;
        found.tokens(kind, "token_ids", token..(token + 1).max(region.end), message);
    }

    fn shown(&self, ids: &[TokenId]) -> String {
        let tokenizer = self.dialogue.renderer.tokenizer();
        tokenizer.decode(&ids[..ids.len().min(SHOWN)], false).unwrap_or_default()
    }

    /// What was sampled is what the messages say.
    fn texts(&self, first: usize, found: &mut Found) {
        for turn in &self.turns[first..] {
            let message = &self.dialogue.conversation.messages[turn.message];
            let Ok(sampled) = self.dialogue.sampled_message(&self.ids[turn.tokens.clone()]) else { continue };
            if let Some(what) = texts::difference(&sampled, message) {
                let text = format!("message {} is not what was sampled: {what}", turn.message);
                found.tokens(Kind::TextDiffers, "messages", turn.tokens.clone(), text);
            }
        }
    }
}
