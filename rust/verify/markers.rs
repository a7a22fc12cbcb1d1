//! The ids that give a tape its structure: what ends a turn, what pads, what stands before a turn.

use std::collections::HashMap;
use std::ops::Range;

use super::tape::{Tape, runs};
use crate::TokenId;
use crate::message::{Conversation, Data, Dict};
use crate::render::{RenderSettings, Renderer};
use crate::template::RenderOptions;

/// No tokenizer that is known has more ids than this; without a model, a larger one is no id.
const LARGEST_VOCABULARY: usize = 1 << 19;

/// A marker that is learned must have been seen this often, and in so large a share of the turns.
const SEEN: usize = 3;
const SHARE: usize = 30;

/// So many ids before a turn are compared.
const HEADER: usize = 3;

/// The special ids of a tokenizer stand together: so near to a stop, an id is taken for one of them.
const NEAR: u32 = 64;

/// See the module's page. What is empty is not known, and is not checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Markers {
    /// The ids that end a turn.
    pub stops: Vec<TokenId>,
    /// The ids that pad, stops aside.
    pub pads: Vec<TokenId>,
    /// The last ids of a generation prompt.
    pub header: Vec<TokenId>,
    /// The largest id plus one.
    pub vocabulary: Option<usize>,
}

impl Markers {
    /// What a model knows: its stop tokens, its padding, its vocabulary, and how its generation prompt ends.
    pub fn of(renderer: &Renderer) -> Self {
        let tokenizer = renderer.tokenizer();
        let stops: Vec<TokenId> = renderer.stop_tokens().iter().map(|stop| stop.id).collect();
        let pad = renderer.special_tokens().iter().find(|(name, _)| &**name == "pad_token");
        let pad = pad.and_then(|(_, text)| tokenizer.id_of(text.as_text()?)).filter(|pad| !stops.contains(pad));
        Self {
            stops,
            pads: pad.into_iter().collect(),
            header: header(renderer).unwrap_or_default(),
            vocabulary: Some(tokenizer.vocab_size()),
        }
    }

    /// Whether an id ends a turn.
    pub(super) fn is_stop(&self, id: TokenId) -> bool {
        self.stops.contains(&id)
    }

    /// Whether an id pads.
    pub(super) fn is_pad(&self, id: TokenId) -> bool {
        self.pads.contains(&id)
    }

    /// Whether an id, which stands where padding may stand, could be padding.
    pub(super) fn may_pad(&self, id: TokenId) -> bool {
        if self.is_pad(id) {
            return true;
        }
        self.pads.is_empty() && self.stops.iter().any(|stop| stop.abs_diff(id) <= NEAR && *stop != id)
    }

    /// The number of ids that count as ids.
    pub(super) fn vocabulary(&self) -> usize {
        self.vocabulary.unwrap_or(LARGEST_VOCABULARY)
    }

    /// Whether the ids before `end` are a header.
    pub(super) fn header_ends(&self, ids: &[TokenId], end: usize) -> bool {
        !self.header.is_empty() && end <= ids.len() && ids[..end].ends_with(&self.header)
    }

    /// The end of the first header that begins inside `range` and ends in it too.
    pub(super) fn header_in(&self, ids: &[TokenId], range: Range<usize>) -> Option<usize> {
        (range.start + self.header.len()..=range.end).find(|end| self.header_ends(ids, *end))
    }

    /// What the tapes show: the ids that end many turns, and what stands before most of them.
    pub(super) fn learn<'a>(&mut self, tapes: impl Iterator<Item = Tape<'a>>) {
        let (mut ends, mut starts) = (Counts::default(), Counts::default());
        for tape in tapes.filter(|tape| tape.sampled.len() == tape.ids.len()) {
            for run in runs(tape.sampled) {
                ends.add(vec![tape.ids[run.end - 1]]);
                starts.add(tape.ids[run.start.saturating_sub(HEADER)..run.start].to_vec());
            }
        }
        if self.stops.is_empty() {
            self.stops = ends.frequent(SHARE).map(|ids| ids[0]).collect();
        }
        if self.header.is_empty() {
            self.header = starts.frequent(50).find(|ids| ids.len() == HEADER).cloned().unwrap_or_default();
        }
    }
}

/// The last ids of the generation prompt behind a user message; `None` where a template has none.
fn header(renderer: &Renderer) -> Option<Vec<TokenId>> {
    let message = [("role", Data::from("user")), ("content", Data::from("Hi"))];
    let message = Data::from(message.into_iter().collect::<Dict>());
    let conversation = Conversation { messages: vec![message], ..Conversation::default() };
    let render = |add_generation_prompt| {
        let options = RenderOptions { add_generation_prompt, ..RenderOptions::default() };
        renderer.render(&conversation, &RenderSettings { options, ..RenderSettings::default() }).ok()
    };
    let (asked, plain) = (render(true)?.token_ids, render(false)?.token_ids);
    let added = asked.strip_prefix(plain.as_slice())?;
    Some(added[added.len().saturating_sub(HEADER)..].to_vec())
}

#[derive(Default)]
struct Counts {
    of: HashMap<Vec<TokenId>, usize>,
    total: usize,
}

impl Counts {
    fn add(&mut self, ids: Vec<TokenId>) {
        *self.of.entry(ids).or_default() += 1;
        self.total += 1;
    }

    /// What makes up so many percent.
    fn frequent(&self, share: usize) -> impl Iterator<Item = &Vec<TokenId>> {
        let least = SEEN.max((self.total * share).div_ceil(100));
        self.of.iter().filter(move |(_, count)| **count >= least).map(|(ids, _)| ids)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tape<'a>(ids: &'a [TokenId], sampled: &'a [u8]) -> Tape<'a> {
        Tape { ids, sampled, loss: sampled, logprobs: None }
    }

    #[test]
    fn stops_and_headers_are_learned_from_many_turns_only() {
        let ids = [1, 2, 3, 7, 9, 1, 2, 3, 8, 9, 1, 2, 3, 6, 9];
        let sampled = [0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1];
        let mut markers = Markers::default();
        markers.learn([tape(&ids[..5], &sampled[..5])].into_iter());
        assert_eq!(markers, Markers::default());
        markers.learn([tape(&ids, &sampled)].into_iter());
        assert_eq!((markers.stops, markers.header), (vec![9], vec![1, 2, 3]));
    }
}
