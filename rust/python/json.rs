//! Small JSON objects, such as metrics, between Python and the engine.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Map, Value};

use super::error::to_python;
use crate::Error;

/// A dict of plain data; floats must be finite.
pub(super) fn map(name: &str, object: &Bound<'_, PyAny>) -> PyResult<Map<String, Value>> {
    let py = object.py();
    let refuse = |what: String| {
        to_python(py, &Error::value(format!("{name}: {what}; give a dict with text keys, of numbers, texts and lists")))
    };
    let arguments = PyDict::new(py);
    arguments.set_item(intern!(py, "allow_nan"), false)?;
    arguments.set_item(intern!(py, "ensure_ascii"), false)?;
    let text: String = py
        .import(intern!(py, "json"))?
        .call_method(intern!(py, "dumps"), (object,), Some(&arguments))
        .map_err(|error| refuse(error.value(py).to_string()))?
        .extract()?;
    serde_json::from_str(&text).map_err(|error| refuse(error.to_string()))
}

/// A Python dict of its own.
pub(super) fn dict<'py>(py: Python<'py>, map: &Map<String, Value>) -> PyResult<Bound<'py, PyAny>> {
    loads(py, &Value::Object(map.clone()).to_string())
}

/// What JSON text says.
pub(super) fn loads<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import(intern!(py, "json"))?.call_method1(intern!(py, "loads"), (text,))
}
