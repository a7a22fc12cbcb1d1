//! Which path encodes, and why.

use std::fmt;

/// Which path encodes, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Engine {
    /// The fast path: what it is.
    Fast(String),
    /// The reference path, because the fast one does not model the tokenizer: what of it.
    Reference(String),
    /// The reference path, because the fast one gave other ids for a probe at load: which.
    Disagrees(String),
}

impl Engine {
    /// Whether the fast path is in use.
    pub fn is_fast(&self) -> bool {
        matches!(self, Self::Fast(_))
    }

    /// What a user should know: the fast path has a fault.
    pub fn warning(&self) -> Option<String> {
        match self {
            Self::Disagrees(difference) => Some(format!(
                "{difference}; so the tokenizers library encodes in its place: ids are right, and encoding is slower by \
                 far. Please report the tokenizer"
            )),
            _ => None,
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fast(name) => write!(f, "fast: {name}"),
            Self::Reference(reason) | Self::Disagrees(reason) => write!(f, "reference: {reason}"),
        }
    }
}
