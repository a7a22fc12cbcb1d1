//! What an earlier rendering leaves: the place in it from which one of more messages can go on.

use std::sync::{Arc, Mutex, PoisonError};

use super::super::text::{Run, Writer};
use super::super::{RenderOptions, RenderedText, Template};
use super::Boundary;
use super::prologue::Prologue;
use super::written::Written;
use crate::message::{Conversation, Data, same};

/// A text, and the place from which a rendering of more messages can go on.
#[derive(Debug, Clone)]
pub struct Resumable {
    /// What was rendered.
    pub text: RenderedText,
    pub(super) runs: Vec<Run>,
    /// What the first statements wrote, where it was taken over.
    pub(super) opening: Option<Writer>,
    pub(super) before: Before,
    pub(super) noted: Option<Box<Noted>>,
    /// How many iterations were taken over from the rendering before.
    pub taken_over: usize,
    /// How many statements outside every scope were, from the first on.
    pub statements: usize,
}

/// The text that was taken over from a rendering of so many messages.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Before {
    pub(super) bytes: usize,
    pub(super) messages: usize,
}

/// A place in a rendering from which one of more messages can go on.
#[derive(Debug, Clone)]
pub struct Checkpoint(pub(super) Arc<Point>);

/// What a rendering noted, with its whole text and the names of its fields: what lies behind the place is not looked at.
#[derive(Debug)]
pub(super) struct Point {
    pub(super) noted: Box<Noted>,
    pub(super) fields: Vec<Arc<str>>,
    /// `None` once a rendering went on with it; who comes later renders in full.
    written: Mutex<Option<Written>>,
}

/// What a rendering noted of itself and of the place where it stood.
#[derive(Debug, Clone)]
pub(super) struct Noted {
    pub(super) template: Template,
    pub(super) options: RenderOptions,
    pub(super) conversation: Arc<Conversation>,
    /// The messages as the template saw them, where they are not the caller's own: addresses in frozen values stay
    /// theirs.
    pub(super) normalised: Option<Vec<Data>>,
    pub(super) generations: Vec<(usize, usize)>,
    pub(super) prologue: Option<Arc<Prologue>>,
    pub(super) boundary: Boundary,
}

impl Resumable {
    pub(super) fn without_place(text: RenderedText) -> Self {
        let before = Before::default();
        Self { text, runs: Vec::new(), opening: None, before, noted: None, taken_over: 0, statements: 0 }
    }

    /// A byte before which nothing of a message stands: what was taken over has nothing of messages that came later.
    pub fn before(&self, message: usize) -> usize {
        if message >= self.before.messages { self.before.bytes } else { 0 }
    }

    /// Whether [`Self::before`] is wrong of any message.
    pub(crate) fn is_mixed(&self) -> bool {
        let Before { bytes, messages } = self.before;
        let taken_over = self.text.spans.iter().take_while(|span| (span.start as usize) < bytes);
        taken_over.map(|span| span.author.message_index()).any(|message| message >= messages as i32)
    }

    /// Where the next rendering can go on; `None` if the template shows no such place.
    pub fn checkpoint(&self) -> Option<Checkpoint> {
        self.noted.as_ref()?;
        self.clone().into_checkpoint()
    }

    /// The same, where the text is needed no more.
    pub fn into_checkpoint(mut self) -> Option<Checkpoint> {
        let noted = self.noted?;
        let fields = std::mem::take(&mut self.text.fields.0);
        let opening = self.opening.or_else(|| {
            let bytes = noted.prologue.as_ref()?.written;
            Some(Writer::beginning(&self.text.text, &self.runs, bytes))
        });
        let written = Mutex::new(Some(Written::new(self.text, self.runs, opening)));
        Some(Checkpoint(Arc::new(Point { noted, fields, written })))
    }
}

impl Point {
    /// Gives back what was taken and not gone on with.
    pub(super) fn put_back(&self, written: Written) {
        *self.written.lock().unwrap_or_else(PoisonError::into_inner) = Some(written);
    }
}

impl Checkpoint {
    /// What was written, to go on with: itself where nobody else holds the place, else a copy.
    pub(super) fn take(&self) -> Option<Written> {
        let mut written = self.0.written.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::strong_count(&self.0) == 1 { written.take() } else { written.clone() }
    }

    /// So many messages, from the first on, are known to be normalised.
    pub(super) fn normalised(&self) -> usize {
        let Noted { normalised, boundary, .. } = &*self.0.noted;
        if normalised.is_some() { 0 } else { boundary.messages }
    }

    /// Whether a rendering has the same beginning.
    pub(super) fn fits(&self, template: &Template, conversation: &Conversation, options: &RenderOptions) -> bool {
        let noted = &self.0.noted;
        let (before, messages) = (&noted.conversation, noted.boundary.messages);
        let optional = |one: &Option<Data>, two: &Option<Data>| match (one, two) {
            (None, None) => true,
            (Some(one), Some(two)) => same(one, two),
            _ => false,
        };
        let arguments = before.arguments.iter().zip(&conversation.arguments);
        Arc::ptr_eq(&noted.template.0, &template.0)
            && same_options(&noted.options, options)
            && optional(&before.tools, &conversation.tools)
            && optional(&before.documents, &conversation.documents)
            && before.arguments.len() == conversation.arguments.len()
            && arguments.into_iter().all(|(one, two)| one.0 == two.0 && same(&one.1, &two.1))
            && noted.begins_with(&conversation.messages, messages)
    }
}

impl Noted {
    /// Whether the first `count` of these messages are those that were rendered.
    pub(super) fn begins_with(&self, messages: &[Data], count: usize) -> bool {
        let before = &self.conversation.messages;
        messages.len() >= count && before.iter().zip(messages).take(count).all(|(one, two)| same(one, two))
    }
}

fn same_options(one: &RenderOptions, two: &RenderOptions) -> bool {
    one.add_generation_prompt == two.add_generation_prompt
        && one.continue_final_message == two.continue_final_message
        && Arc::ptr_eq(&one.special_tokens, &two.special_tokens)
        && one.now == two.now
        && one.limits == two.limits
}

/// What a point needs of a rendering beside its text.
#[derive(Debug)]
pub(in super::super) struct Parts {
    pub(in super::super) normalised: Option<Vec<Data>>,
    pub(in super::super) runs: Vec<Run>,
    pub(in super::super) generations: Vec<(usize, usize)>,
}
