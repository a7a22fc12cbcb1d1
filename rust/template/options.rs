//! What a rendering takes beside the conversation, and what it gives.

use std::ops::Range;
use std::sync::Arc;

use super::Clock;
use crate::author::{Field, Span};
use crate::message::Data;

/// Whether the final message is left open, so that a policy continues it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ContinueFinalMessage {
    /// The final message is closed as any other.
    #[default]
    No,
    /// Its content is left open.
    Content,
    /// Another field is left open, for example `reasoning_content`.
    Field(Arc<str>),
}

/// What a template may use before it is stopped with an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Nested calls of macros, recursive loops and expressions.
    pub recursion: usize,
    /// Iterations of all loops together.
    pub iterations: u64,
    /// Bytes written, in the output and in buffers together, and held by one text.
    pub output: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { recursion: 200, iterations: 50_000_000, output: 1 << 30 }
    }
}

/// Settings of one rendering.
#[derive(Debug, Clone, Default)]
pub struct RenderOptions {
    /// The variable `add_generation_prompt`.
    pub add_generation_prompt: bool,
    /// Whether the final message is left open.
    pub continue_final_message: ContinueFinalMessage,
    /// Variables like `bos_token`; arguments of the conversation with the same name go before them.
    pub special_tokens: Arc<[(Arc<str>, Data)]>,
    /// The moment that `strftime_now` reads; the machine's local time if not given.
    pub now: Option<Clock>,
    /// What the template may use.
    pub limits: Limits,
}

/// The names of the message fields that a rendering took text from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldNames(pub(super) Vec<Arc<str>>);

impl FieldNames {
    /// Names, in the order of their [`Field`] numbers.
    pub fn new(names: Vec<Arc<str>>) -> Self {
        Self(names)
    }

    /// The name of a field.
    pub fn name(&self, field: Field) -> &str {
        self.0.get(field.0 as usize).map_or("", |name| name)
    }

    /// All names, in the order of their [`Field`] numbers.
    pub fn all(&self) -> &[Arc<str>] {
        &self.0
    }
}

/// A rendered conversation: text, the author of each byte, and what `{% generation %}` marks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RenderedText {
    /// The text.
    pub text: String,
    /// Runs of authors that partition the text; neighbours differ.
    pub spans: Vec<Span>,
    /// The ranges of `{% generation %}` as transformers counts them, in bytes. transformers does not shorten them where
    /// `continue_final_message` cuts the text: a place past the end counts its characters beyond it.
    pub generation_spans: Vec<Range<u32>>,
    /// The ranges copied from further arguments of the template. In `spans` they are the template's.
    pub argument_spans: Vec<Range<u32>>,
    /// The names of the fields in `spans`.
    pub fields: FieldNames,
}
