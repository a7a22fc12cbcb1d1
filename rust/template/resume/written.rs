//! The text of a rendering, in whose memory one of more messages goes on.

use super::super::RenderedText;
use super::super::text::{Run, Writer};
use crate::author::Span;

/// What a rendering wrote. Whoever goes on from it alone takes it, and copies nothing.
#[derive(Debug, Clone)]
pub(super) struct Written {
    text: String,
    runs: Vec<Run>,
    /// The spans of the runs, one each; empty where they are not that.
    spans: Vec<Span>,
    /// What the first statements wrote, once more: it stands in the text until the loop over messages begins.
    opening: Option<Writer>,
}

impl Written {
    /// What a rendering wrote, the first `opening` bytes of it in its first statements.
    pub(super) fn new(rendered: RenderedText, runs: Vec<Run>, opening: Option<Writer>) -> Self {
        let RenderedText { text, spans, argument_spans, .. } = rendered;
        let spans = if argument_spans.is_empty() { spans } else { Vec::new() };
        Self { text, runs, spans, opening }
    }

    /// Whether this begins with what was written.
    pub(super) fn begins_with(&self, out: &Writer) -> bool {
        out.is_prefix_of(&self.text, &self.runs)
    }

    /// The first `bytes` bytes, to go on behind them while the rest is kept.
    pub(super) fn opening(&mut self, bytes: usize) -> Writer {
        let opening = self.opening.take().filter(|opening| opening.len() == bytes);
        opening.unwrap_or_else(|| Writer::beginning(&self.text, &self.runs, bytes))
    }

    /// The first `bytes` bytes, to go on behind them, and the spans of the runs that end before.
    pub(super) fn go_on(self, bytes: usize) -> (Writer, Vec<Span>) {
        let Self { text, runs, mut spans, .. } = self;
        let writer = Writer::going_on(text, runs, bytes);
        spans.truncate(writer.closed());
        (writer, spans)
    }
}
