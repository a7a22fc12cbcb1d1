//! Errors of templates: the class that transformers raises, and the place.

use crate::{Error, ErrorKind};

/// Why a template does not compile.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) class: &'static str,
    pub(super) message: String,
    pub(super) line: u32,
    pub(super) column: Option<u32>,
}

impl Failure {
    pub(super) fn at_line(class: &'static str, line: u32, message: impl Into<String>) -> Self {
        Self { class, message: message.into(), line, column: None }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        let Failure { class, message, line, column } = failure;
        let place = column.map_or_else(|| format!("line {line}"), |column| format!("line {line}, column {column}"));
        Self::new(ErrorKind::Template, format!("the chat template does not compile: {message} ({place})"))
            .with_class(class)
            .at_line(line)
    }
}

/// A rendering error of the class that Python raises.
pub(super) fn raise(class: &'static str, message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Render, message).with_class(class)
}

/// Something of the wrong type.
pub(super) fn type_error(message: impl Into<String>) -> Error {
    raise("TypeError", message)
}

/// Something of the right type and the wrong value.
pub(super) fn value_error(message: impl Into<String>) -> Error {
    raise("ValueError", message)
}

/// More than the limits of the rendering allow.
pub(super) fn limit_error(message: impl Into<String>) -> Error {
    raise("RecursionError", message)
}
