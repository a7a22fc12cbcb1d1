//! Who wrote a byte of a rendered text, or a token.
//!
//! *Invariant*: the spans of a rendering partition its text: each byte has exactly one author.

/// A field of a message, as an index into the [`FieldNames`] of the rendering.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Field(pub u16);

/// The author of a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Author {
    /// The template, while it handled no message.
    Frame,
    /// The template, while it handled message `i`.
    Scaffold(u32),
    /// A field of message `i`: the text was copied from there.
    Value(u32, Field),
    /// The `tools` argument.
    Tools,
    /// The `documents` argument.
    Documents,
}

impl Author {
    /// The message whose value or scaffold this is; `-1` for frame, tools and documents.
    pub fn message_index(self) -> i32 {
        match self {
            Self::Scaffold(message) | Self::Value(message, _) => message as i32,
            Self::Frame | Self::Tools | Self::Documents => -1,
        }
    }

    /// Whether the byte was copied from an argument, not written by the template.
    pub fn is_value(self) -> bool {
        !matches!(self, Self::Frame | Self::Scaffold(_))
    }
}

/// A run of bytes with one author: `start..end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
    /// Who wrote it.
    pub author: Author,
}

/// The author of each token that begins at one of these places, in order: that of its first byte.
pub(crate) fn authors<'s>(spans: &'s [Span], starts: &'s [u32]) -> impl Iterator<Item = Author> + 's {
    let first = starts.first().map_or(0, |start| spans.partition_point(|span| span.end <= *start));
    let mut spans = spans[first..].iter().peekable();
    starts.iter().map(move |start| {
        while spans.next_if(|span| span.end <= *start).is_some() {}
        spans.peek().map_or(Author::Frame, |span| span.author)
    })
}

/// The tokens where the message changes, each with the message from there on.
pub(crate) fn message_runs(indices: impl IntoIterator<Item = i32>) -> Vec<(usize, i32)> {
    let mut runs: Vec<(usize, i32)> = Vec::new();
    for (token, message) in indices.into_iter().enumerate() {
        if runs.last().is_none_or(|run| run.1 != message) {
            runs.push((token, message));
        }
    }
    runs
}
