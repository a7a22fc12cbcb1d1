//! What an earlier rendering leaves: the place in it from which one of more messages can go on.

use std::sync::Arc;

use super::super::text::Run;
use super::super::{FieldNames, RenderOptions, RenderedText, Template};
use super::Boundary;
use super::prologue::Prologue;
use crate::message::{Conversation, Data, same};

/// A text, and the place from which a rendering of more messages can go on.
#[derive(Debug, Clone)]
pub struct Resumable {
    /// What was rendered.
    pub text: RenderedText,
    pub(super) noted: Option<Box<Noted>>,
    /// How many iterations were taken over from the rendering before.
    pub taken_over: usize,
    /// How many statements outside every scope were, from the first on.
    pub statements: usize,
}

/// A place in a rendering from which one of more messages can go on.
#[derive(Debug, Clone)]
pub struct Checkpoint(pub(super) Arc<Point>);

/// What a rendering noted, with its whole text and the names of its fields: what lies behind the place is not looked at.
#[derive(Debug)]
pub(super) struct Point {
    pub(super) noted: Noted,
    pub(super) text: String,
    pub(super) fields: Vec<Arc<str>>,
}

/// What a rendering noted of itself and of the place where it stood.
#[derive(Debug, Clone)]
pub(super) struct Noted {
    pub(super) template: Template,
    pub(super) options: RenderOptions,
    pub(super) conversation: Conversation,
    pub(super) parts: Parts,
    pub(super) prologue: Option<Arc<Prologue>>,
    pub(super) boundary: Boundary,
}

impl Resumable {
    pub(super) fn without_place(text: RenderedText) -> Self {
        Self { text, noted: None, taken_over: 0, statements: 0 }
    }

    /// Where the next rendering can go on; `None` if the template shows no such place.
    pub fn checkpoint(&self) -> Option<Checkpoint> {
        let (noted, fields) = (Noted::clone(self.noted.as_ref()?), self.text.fields.0.clone());
        Some(Checkpoint(Arc::new(Point { noted, text: self.text.text.clone(), fields })))
    }

    /// The same, where the text is needed no more.
    pub fn into_checkpoint(self) -> Option<Checkpoint> {
        let RenderedText { text, fields: FieldNames(fields), .. } = self.text;
        Some(Checkpoint(Arc::new(Point { noted: *self.noted?, text, fields })))
    }
}

impl Checkpoint {
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
#[derive(Debug, Clone)]
pub(in super::super) struct Parts {
    /// The messages as the template saw them, where they are not the caller's own: addresses in frozen values stay
    /// theirs.
    pub(in super::super) _normalised: Option<Vec<Data>>,
    pub(in super::super) runs: Vec<Run>,
    pub(in super::super) generations: Vec<(usize, usize)>,
}
