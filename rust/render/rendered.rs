//! A rendered conversation, and its views per token. What few callers ask for is made when it is asked for, once.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::{RenderSettings, Renderer, Seam, Seams, seams};
use crate::author::{Author, Span, authors};
use crate::mask::{AssistantSpans, Flag, Masker};
use crate::message::{Conversation, Data};
use crate::template::{FieldNames, RenderedText};
use crate::tokenizer::Encoded;
use crate::{Result, TokenId};

/// What a rendering was made from, kept for what is made later.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    renderer: Renderer,
    conversation: Conversation,
    settings: RenderSettings,
    masker: Arc<Masker>,
}

impl Origin {
    pub(super) fn new(
        renderer: &Renderer,
        conversation: &Conversation,
        settings: RenderSettings,
        masker: Arc<Masker>,
    ) -> Self {
        Self { renderer: renderer.clone(), conversation: conversation.clone(), settings, masker }
    }
}

/// A rendered and encoded conversation.
#[derive(Debug, Clone)]
pub struct Rendered {
    /// The text and the author of each byte.
    pub text: RenderedText,
    /// The ids.
    pub token_ids: Vec<TokenId>,
    /// The byte of the text where each token's first byte lies.
    pub starts: Vec<u32>,
    /// The role of each message; empty where it has none.
    pub roles: Vec<Arc<str>>,
    origin: Option<Origin>,
    tagged: bool,
    assistants: OnceLock<Vec<AssistantSpans>>,
    seams: OnceLock<Result<Vec<Seam>>>,
}

impl Rendered {
    pub(super) fn new(text: RenderedText, encoded: Encoded, origin: Origin) -> Self {
        let role = |message: &Data| message.get("role").and_then(Data::as_text).unwrap_or_default().into();
        Self {
            text,
            token_ids: encoded.ids,
            starts: encoded.starts,
            roles: origin.conversation.messages.iter().map(role).collect(),
            tagged: origin.masker.has_generation_tags(),
            origin: Some(origin),
            assistants: OnceLock::new(),
            seams: OnceLock::new(),
        }
    }

    /// A rendering from its parts, as they were stored.
    pub(super) fn from_parts(
        text: RenderedText,
        encoded: Encoded,
        roles: Vec<Arc<str>>,
        (assistants, seams): (Vec<AssistantSpans>, Vec<Seam>),
        tagged: bool,
    ) -> Self {
        Self {
            text,
            token_ids: encoded.ids,
            starts: encoded.starts,
            roles,
            origin: None,
            tagged,
            assistants: assistants.into(),
            seams: Ok(seams).into(),
        }
    }

    /// Runs of authors that partition the text.
    pub fn spans(&self) -> &[Span] {
        &self.text.spans
    }

    /// The names of the fields in the spans.
    pub fn fields(&self) -> &FieldNames {
        &self.text.fields
    }

    /// The author of each token: that of its first byte.
    pub fn authors(&self) -> impl Iterator<Item = Author> {
        authors(&self.text.spans, &self.starts)
    }

    /// Per token, the message whose value or scaffold it is; -1 for frame, tools and documents.
    pub fn message_index(&self) -> Vec<i32> {
        self.authors().map(Author::message_index).collect()
    }

    /// Per token, whether a field of a message wrote it, its role aside.
    pub fn is_content(&self) -> Vec<bool> {
        let roles: Vec<bool> = self.text.fields.all().iter().map(|name| &**name == "role").collect();
        let is_content = |author| match author {
            Author::Value(_, field) => !roles.get(usize::from(field.0)).copied().unwrap_or(false),
            _ => false,
        };
        self.authors().map(is_content).collect()
    }

    /// What a policy would have sampled, for each message of role `assistant`.
    pub fn assistant_spans(&self) -> &[AssistantSpans] {
        self.assistants.get_or_init(|| match &self.origin {
            Some(origin) => origin.masker.assistant_spans(&origin.conversation, &origin.settings.options, &self.text),
            None => Vec::new(),
        })
    }

    /// Per token, whether a policy would have sampled it.
    ///
    /// Where the template has `{% generation %}` tags, a token counts that overlaps one of their ranges, as in
    /// transformers; elsewhere one whose first byte lies in [`Self::assistant_spans`].
    pub fn assistant_mask(&self) -> Vec<bool> {
        let assistants = self.assistant_spans();
        // A prefill is a prompt, though it stands inside a generation block; transformers refuses to make a mask of it.
        let prefilled = assistants.iter().any(|assistant| assistant.flags.contains(&Flag::Prefill));
        if self.tagged && !prefilled {
            return self.overlap_mask(&self.text.generation_spans);
        }
        self.mask_of_sampled(assistants.iter().flat_map(|assistant| assistant.spans.iter().cloned()).collect())
    }

    /// The mask of some of the ranges that [`Self::assistant_spans`] gives, by the rule of [`Self::assistant_mask`].
    pub(super) fn mask_of_sampled(&self, ranges: Vec<Range<u32>>) -> Vec<bool> {
        if self.tagged { self.overlap_mask(&ranges) } else { self.mask_of(ranges) }
    }

    /// Whether the ranges come from `{% generation %}` tags.
    pub(super) fn has_generation_tags(&self) -> bool {
        self.tagged
    }

    /// Per token, whether its first byte lies in one of the ranges.
    pub fn mask_of(&self, mut ranges: Vec<Range<u32>>) -> Vec<bool> {
        ranges.sort_unstable_by_key(|range| range.start);
        let mut ranges = ranges.into_iter().peekable();
        let mut inside = |start: &u32| {
            while ranges.next_if(|range| range.end <= *start).is_some() {}
            ranges.peek().is_some_and(|range| range.start <= *start)
        };
        self.starts.iter().map(&mut inside).collect()
    }

    /// Per token, whether it overlaps one of the ranges, in one pass over both as transformers does it.
    fn overlap_mask(&self, ranges: &[Range<u32>]) -> Vec<bool> {
        let size = self.text.text.len() as u32;
        let mut current = 0;
        let mut overlaps = |token: usize| {
            let start = self.starts[token];
            let end = self.starts.get(token + 1).copied().unwrap_or(size);
            while ranges.get(current).is_some_and(|range| start >= range.end) {
                current += 1;
            }
            ranges.get(current).is_some_and(|range| end > range.start)
        };
        (0..self.starts.len()).map(&mut overlaps).collect()
    }

    /// Where ids differ between the whole text and the text cut where sampling begins and ends.
    pub fn seams(&self) -> Result<&[Seam]> {
        self.seams.get_or_init(|| self.find_seams()).as_deref().map_err(Clone::clone)
    }

    fn find_seams(&self) -> Result<Vec<Seam>> {
        let Some(origin) = &self.origin else { return Ok(Vec::new()) };
        let assistants = self.assistant_spans();
        let own = Encoded { ids: self.token_ids.clone(), starts: self.starts.clone() };
        let cuts = match origin.settings.seams {
            Seams::Parity => seams::cuts(assistants),
            Seams::Rollout => Vec::new(),
        };
        let other = origin.renderer.encode_pieces(&self.text, &origin.conversation, &origin.settings, &cuts)?;
        let (parity, rollout) = if cuts.is_empty() { (&other, &own) } else { (&own, &other) };
        Ok(seams::compare(parity, rollout, self.text.text.len() as u32, assistants))
    }
}
