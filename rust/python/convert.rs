//! Python objects as plain data, and back, by way of JSON text.

use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::error::to_python;
use super::json;
use crate::message::{Conversation, Data};
use crate::{Error, ErrorKind};

/// Plain data of a Python object.
pub(super) fn data(object: &Bound<'_, PyAny>) -> PyResult<Data> {
    let py = object.py();
    let arguments = PyDict::new(py);
    arguments.set_item(intern!(py, "ensure_ascii"), false)?;
    let json = py.import(intern!(py, "json"))?;
    let text: String = json.call_method(intern!(py, "dumps"), (object,), Some(&arguments))?.extract()?;
    Data::from_json(&text).map_err(|error| to_python(py, &error))
}

/// A conversation of Python objects.
pub(super) fn conversation(
    messages: &Bound<'_, PyAny>,
    tools: Option<&Bound<'_, PyAny>>,
    documents: Option<&Bound<'_, PyAny>>,
    arguments: Vec<(Arc<str>, Data)>,
) -> PyResult<Conversation> {
    let list = data(messages)?;
    let Some(items) = list.as_items() else {
        let message = format!("messages is a {}: give a list of dicts with role and content", list.type_name());
        let error = Error::new(ErrorKind::Render, message).with_class("TypeError");
        return Err(to_python(messages.py(), &error));
    };
    Ok(Conversation {
        messages: items.to_vec(),
        tools: tools.map(data).transpose()?,
        documents: documents.map(data).transpose()?,
        arguments,
    })
}

/// A Python object of plain data.
pub(super) fn to_py<'py>(py: Python<'py>, value: &Data) -> PyResult<Bound<'py, PyAny>> {
    json::loads(py, &value.to_json())
}
