//! The tail after sampled ids: what the template writes behind a turn, for any template.
//!
//! *Invariant*: where the template is prefix-stable and the sampled ids are canonical, the ids before the tail and the
//! tail together equal a full render with the same settings. Nothing before the tail is encoded again.
//!
//! The whole conversation is rendered, because any template may look at all of it, but for the iterations that an earlier
//! rendering of the trajectory did the same way; only the text behind the turn's end is encoded. What is appended is
//! decided by the last id, never by a finish reason: after a stop id the tail alone; after any other id the token that
//! ends the turn first, and nothing before it.

use std::sync::Arc;

use crate::author::{Author, Span, authors, message_runs};
use crate::mask::TurnEnd;
use crate::message::Conversation;
use crate::render::{RenderSettings, Renderer};
use crate::template::{Checkpoint, RenderedText};
use crate::tokenizer::Encoded;
use crate::{Error, ErrorKind, Result, TokenId};

/// What goes behind a sampled turn; nothing of it was sampled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tail {
    /// The ids: the token that ends the turn, if the policy was cut before it, and what follows.
    pub token_ids: Vec<TokenId>,
    /// Which message the ids belong to: places among them where that changes.
    pub messages: Vec<(usize, i32)>,
    /// The turn was cut, and its end was added.
    pub closed: bool,
    /// The sampled stop is the first token of what follows, and stands in the ids once.
    pub merged: bool,
    /// The text that the ids stand for, without that of an end that was added.
    pub text: String,
    /// The tail begins at no added token: encoded with what stands before it, its ids might be others.
    pub seam: bool,
}

/// A sampled turn that is to be bridged.
#[derive(Debug, Clone, Copy)]
pub struct Bridge<'a> {
    /// The template and the tokenizer.
    pub renderer: &'a Renderer,
    /// The settings of the trajectory; whether a generation prompt follows is theirs too.
    pub settings: &'a RenderSettings,
    /// The conversation with the sampled message and the new ones.
    pub conversation: &'a Arc<Conversation>,
    /// The sampled message.
    pub message: usize,
    /// The ids of the turn: what was sampled, and what was appended to it by hand.
    pub turn: &'a [TokenId],
    /// A place in an earlier rendering of the trajectory, to go on from.
    pub from: Option<&'a Checkpoint>,
}

impl Bridge<'_> {
    /// Renders the conversation and encodes what follows the turn; with the place where the next rendering goes on.
    pub fn tail(&self) -> Result<(Tail, Option<Checkpoint>)> {
        let rendered = self.renderer.render_text_from(self.conversation, self.settings, self.from)?;
        let text = &rendered.text;
        let end = self.turn_end(text, rendered.before(self.message))?;
        let tail = match &end {
            TurnEnd::Marker(marker) => self.behind_marker(text, marker.start as u32, marker.end as u32),
            TurnEnd::Open(end) => self.behind_open_turn(text, *end as u32),
        };
        let tail = Tail { text: behind(text, &end).to_owned(), ..tail? };
        Ok((tail, rendered.into_checkpoint()))
    }

    /// Renders the conversation and gives the text that follows the turn, not encoded.
    pub fn text(&self) -> Result<String> {
        let rendered = self.renderer.render_text(self.conversation, self.settings)?;
        let end = self.turn_end(&rendered, 0)?;
        Ok(behind(&rendered, &end).to_owned())
    }

    /// The end of the turn, of which nothing stands before the byte `from`.
    fn turn_end(&self, rendered: &RenderedText, from: usize) -> Result<TurnEnd> {
        let masker = self.renderer.masker(self.conversation, self.settings)?;
        let stops: Vec<&str> = self.renderer.stop_tokens().iter().map(|stop| &*stop.text).collect();
        let options = self.renderer.options(self.settings);
        masker.turn_end(self.conversation, &options, rendered, (self.message as u32, from), &stops).ok_or_else(|| {
            Error::new(
                ErrorKind::Bridge,
                format!(
                    "observe: the template prints nothing of message {}, the sampled turn, nor of the message after it, \
                     so where its tail begins cannot be told; append ids by hand",
                    self.message
                ),
            )
        })
    }

    fn behind_marker(&self, rendered: &RenderedText, start: u32, end: u32) -> Result<Tail> {
        let encoded = self.encode(rendered, start)?;
        let count = encoded.starts.partition_point(|at| *at < end);
        let aligned = encoded.starts.get(count).copied().unwrap_or(rendered.text.len() as u32) == end;
        let (encoded, count) = if aligned { (encoded, count) } else { self.cut(rendered, start, end)? };
        let (marker, rest) = encoded.ids.split_at(count);
        let sampled_end = self.ends_with_stop() || self.turn.ends_with(marker);
        let alone = marker.len() == 1 && self.is_added(marker[0]);
        let begins_added = rest.first().is_none_or(|id| self.is_added(*id));
        let tail = Tail { closed: !sampled_end, seam: !(alone || begins_added), ..Tail::default() };
        let first = if tail.closed { 0 } else { count };
        Ok(tail.of(encoded, first, &rendered.spans))
    }

    /// The ids of a turn end that is no token of its own, how many they are, and those of what follows it.
    fn cut(&self, rendered: &RenderedText, start: u32, end: u32) -> Result<(Encoded, usize)> {
        let mut encoded =
            self.renderer.tokenizer().encode_with_offsets(&rendered.text[start as usize..end as usize])?;
        encoded.starts.iter_mut().for_each(|at| *at += start);
        let count = encoded.ids.len();
        let rest = self.encode(rendered, end)?;
        encoded.ids.extend(rest.ids);
        encoded.starts.extend(rest.starts);
        Ok((encoded, count))
    }

    fn behind_open_turn(&self, rendered: &RenderedText, end: u32) -> Result<Tail> {
        let encoded = self.encode(rendered, end)?;
        let first = encoded.ids.first().copied();
        let merged = self.ends_with_stop() && first.is_some() && first == self.turn.last().copied();
        let added = |id: Option<&TokenId>| id.is_none_or(|id| self.is_added(*id));
        let seam = !(added(self.turn.last()) || added(encoded.ids.first()));
        Ok(Tail { merged, seam, ..Tail::default() }.of(encoded, usize::from(merged), &rendered.spans))
    }

    fn encode(&self, rendered: &RenderedText, from: u32) -> Result<Encoded> {
        self.renderer.encode_from(rendered, self.conversation, self.settings, from)
    }

    fn ends_with_stop(&self) -> bool {
        let stops = self.renderer.stop_tokens();
        self.turn.last().is_some_and(|last| stops.binary_search_by_key(last, |stop| stop.id).is_ok())
    }

    fn is_added(&self, id: TokenId) -> bool {
        self.renderer.tokenizer().added_tokens().binary_search_by_key(&id, |added| added.id).is_ok()
    }
}

fn behind<'t>(rendered: &'t RenderedText, end: &TurnEnd) -> &'t str {
    match end {
        TurnEnd::Marker(marker) => &rendered.text[marker.end..],
        TurnEnd::Open(end) => &rendered.text[*end..],
    }
}

impl Tail {
    /// The same with the tokens from the `first` on, and the messages that wrote them.
    fn of(self, encoded: Encoded, first: usize, spans: &[Span]) -> Self {
        let Encoded { ids: mut token_ids, starts } = encoded;
        token_ids.drain(..first);
        let messages = message_runs(authors(spans, &starts[first..]).map(Author::message_index));
        Self { token_ids, messages, ..self }
    }
}
