//! One error type for the whole crate: what happened, where, and what to do.
//!
//! The Python package turns each [`ErrorKind`] into one exception class, in `rust/python/error.rs` and nowhere else.

use std::fmt;

/// The result of every fallible function of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The part of the library that refuses, and so the class of the Python exception.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A template does not compile.
    Template,
    /// A template compiles and cannot render this input.
    Render,
    /// A tokenizer does not load, or cannot encode or decode this input.
    Tokenizer,
    /// A trajectory or group refuses what it is given, or what it is asked in its present state.
    Trajectory,
    /// The tail after sampled ids cannot be determined without guessing.
    Bridge,
    /// A row does not fit a token budget.
    Budget,
    /// A table, file or message has another shape than the contract says.
    Schema,
    /// A plain argument is out of range or of the wrong form.
    Value,
}

/// An error: its kind, the message, and, for templates, the exception class that transformers raises and the place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inner {
    kind: ErrorKind,
    message: String,
    class: Option<&'static str>,
    line: Option<u32>,
    in_message: Option<u32>,
}

impl Error {
    /// An error of `kind` that says `message`: what, where, and what to do.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, message: message.into(), class: None, line: None, in_message: None }))
    }

    /// A [`ErrorKind::Value`] error.
    pub fn value(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Value, message)
    }

    /// A [`ErrorKind::Schema`] error.
    pub fn schema(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Schema, message)
    }

    /// A [`ErrorKind::Trajectory`] error.
    pub fn trajectory(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Trajectory, message)
    }

    /// The same error, with the name of the exception class that transformers raises for the same input.
    #[must_use]
    pub fn with_class(mut self, class: &'static str) -> Self {
        self.0.class = Some(class);
        self
    }

    /// The same error, at a line of the template (counted from 1); an inner line that is already known stays.
    #[must_use]
    pub fn at_line(mut self, line: u32) -> Self {
        self.0.line.get_or_insert(line);
        self
    }

    /// The same error, with the place it happened in before the message.
    #[must_use]
    pub fn within(mut self, place: &str) -> Self {
        self.0.message = format!("{place}: {}", self.0.message);
        self
    }

    /// The same error, raised while message `index` (counted from 0) was handled; an inner index stays.
    #[must_use]
    pub fn in_message(mut self, index: u32) -> Self {
        self.0.in_message.get_or_insert(index);
        self
    }

    /// The part of the library that refuses.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What happened, where, and what to do.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The exception class that transformers raises for the same input, for example `"UndefinedError"`.
    pub fn class(&self) -> Option<&'static str> {
        self.0.class
    }

    /// The line of the template, counted from 1.
    pub fn line(&self) -> Option<u32> {
        self.0.line
    }

    /// The message at fault, counted from 0.
    pub fn message_index(&self) -> Option<u32> {
        self.0.in_message
    }
}

/// The message, with the place in the template and the message of the conversation, where a rendering failed and the
/// template did not speak itself (`raise_exception`, whose words reach the caller unchanged).
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if self.0.kind != ErrorKind::Render || self.0.class == Some("TemplateError") {
            return Ok(());
        }
        match (self.0.line, self.0.in_message) {
            (Some(line), Some(message)) => write!(f, " (line {line} of the chat template, message {message})"),
            (Some(line), None) => write!(f, " (line {line} of the chat template)"),
            (None, Some(message)) => write!(f, " (message {message})"),
            (None, None) => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_line_wins() {
        let error = Error::new(ErrorKind::Render, "no").at_line(3).at_line(9);
        assert_eq!(error.line(), Some(3));
    }
}
