//! The one place where errors and warnings of the engine become Python's: the classes live in `tokentape.errors`.

use std::ffi::CString;

use pyo3::prelude::*;

use crate::{Error, ErrorKind};

/// The Python class of a kind, by its name in `tokentape.errors`.
fn class_name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Template => "TemplateError",
        ErrorKind::Render => "RenderError",
        ErrorKind::Tokenizer => "TokenizerError",
        ErrorKind::Trajectory => "TrajectoryError",
        ErrorKind::Bridge => "BridgeError",
        ErrorKind::Budget => "BudgetError",
        ErrorKind::Schema => "SchemaError",
        ErrorKind::Value => "ArgumentError",
    }
}

/// The Python exception for an error of the engine.
pub(super) fn to_python(py: Python<'_>, error: &Error) -> PyErr {
    build(py, error).unwrap_or_else(|import_error| import_error)
}

fn build(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let class = py.import("tokentape.errors")?.getattr(class_name(error.kind()))?;
    let exception = class.call1((error.to_string(),))?;
    if matches!(error.kind(), ErrorKind::Template | ErrorKind::Render) {
        exception.setattr("kind", error.class())?;
        exception.setattr("line", error.line())?;
        exception.setattr("message_index", error.message_index())?;
    }
    Ok(PyErr::from_value(exception))
}

/// Warns with a class of `tokentape.errors`, at the caller's line.
pub(super) fn warn(py: Python<'_>, class: &str, message: &str) -> PyResult<()> {
    let class = py.import("tokentape.errors")?.getattr(class)?;
    PyErr::warn(py, &class, &CString::new(message)?, 1)
}
