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
