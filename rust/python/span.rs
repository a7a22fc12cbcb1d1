//! The small records that a rendering hands out. Offsets are code points.

use pyo3::prelude::*;

use crate::author::{Author, Span};
use crate::mask::AssistantSpans;
use crate::render::{CodePoints, Seam};
use crate::template::FieldNames;

/// A run of text with one author.
#[pyclass(frozen, eq, hash, name = "Span", module = "tokentape", get_all)]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct PySpan {
    start: u32,
    end: u32,
    kind: &'static str,
    message: i32,
    field: Option<String>,
    role: Option<String>,
}

impl PySpan {
    /// A span of a text; `role` gives the role of a message.
    pub(super) fn new(
        span: &Span,
        places: &CodePoints<'_>,
        fields: &FieldNames,
        role: impl Fn(u32) -> Option<String>,
    ) -> Self {
        let (kind, field) = match span.author {
            Author::Frame => ("frame", None),
            Author::Scaffold(_) => ("scaffold", None),
            Author::Value(_, field) => ("value", Some(fields.name(field).to_owned())),
            Author::Tools => ("value", Some("tools".to_owned())),
            Author::Documents => ("value", Some("documents".to_owned())),
        };
        let message = span.author.message_index();
        let role = u32::try_from(message).ok().and_then(role);
        Self { start: places.before(span.start), end: places.before(span.end), kind, message, field, role }
    }
}

#[pymethods]
impl PySpan {
    fn __repr__(&self) -> String {
        let message = if self.message < 0 { String::new() } else { format!(", message {}", self.message) };
        let part = |part: &Option<String>| part.as_ref().map_or_else(String::new, |part| format!(", {part}"));
        let (role, field) = (part(&self.role), part(&self.field));
        format!("Span({}:{}, {}{message}{role}{field})", self.start, self.end, self.kind)
    }
}

/// What a policy would have sampled of one assistant message.
#[pyclass(frozen, eq, name = "AssistantSpans", module = "tokentape", get_all)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PyAssistantSpans {
    message: u32,
    spans: Vec<(u32, u32)>,
    flags: Vec<&'static str>,
}

impl PyAssistantSpans {
    pub(super) fn new(assistant: &AssistantSpans, places: &CodePoints<'_>) -> Self {
        let spans = assistant.spans.iter().map(|span| (places.before(span.start), places.before(span.end)));
        let flags = assistant.flags.iter().map(|flag| flag.name());
        Self { message: assistant.message, spans: spans.collect(), flags: flags.collect() }
    }
}

#[pymethods]
impl PyAssistantSpans {
    fn __repr__(&self) -> String {
        format!("AssistantSpans(message={}, spans={:?}, flags={:?})", self.message, self.spans, self.flags)
    }
}

/// A place where the ids of the whole text differ from those of the text cut where sampling begins and ends.
#[pyclass(frozen, eq, name = "Seam", module = "tokentape", get_all)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PySeam {
    message: u32,
    start: u32,
    end: u32,
    parity_ids: Vec<i32>,
    rollout_ids: Vec<i32>,
}

impl PySeam {
    pub(super) fn new(seam: &Seam, places: &CodePoints<'_>) -> Self {
        Self {
            message: seam.message,
            start: places.before(seam.bytes.start),
            end: places.before(seam.bytes.end),
            parity_ids: seam.parity.clone(),
            rollout_ids: seam.rollout.clone(),
        }
    }
}

#[pymethods]
impl PySeam {
    fn __repr__(&self) -> String {
        format!(
            "Seam(message={}, {}:{}, parity_ids={:?}, rollout_ids={:?})",
            self.message, self.start, self.end, self.parity_ids, self.rollout_ids
        )
    }
}
