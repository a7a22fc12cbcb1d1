//! `Message`, `ToolCall` and `ParseStream`: what a model said.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use super::error::to_python;
use super::gil::detached;
use super::{arrays, convert, json};
use crate::parse::{Delta, Grammar, Message, ParseStream, Parser, Prompt, ToolCall, Tools, call_id};
use crate::{Error, TokenId};

/// An attempt at a tool call.
#[pyclass(frozen, name = "ToolCall", module = "tokentape")]
pub(super) struct PyToolCall {
    inner: ToolCall,
    index: usize,
}

#[pymethods]
impl PyToolCall {
    #[getter]
    fn name(&self) -> Option<&str> {
        self.inner.name.as_deref()
    }

    #[getter]
    fn arguments<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.inner.arguments.as_ref().map(|arguments| convert::to_py(py, arguments)).transpose()
    }

    #[getter]
    fn status(&self) -> &'static str {
        self.inner.status.name()
    }

    #[getter]
    fn raw(&self) -> &str {
        &self.inner.raw
    }

    #[getter]
    fn id(&self) -> String {
        self.inner.id.clone().unwrap_or_else(|| call_id(self.index))
    }

    #[getter]
    fn token_span(&self) -> (usize, usize) {
        (self.inner.tokens.start, self.inner.tokens.end)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let arguments =
            self.arguments(py)?.map_or_else(|| Ok("None".into()), |value| value.repr()?.extract::<String>());
        let name = self.name().map_or_else(|| "None".to_owned(), |name| format!("'{name}'"));
        Ok(format!("ToolCall(name={name}, arguments={}, status='{}')", arguments?, self.status()))
    }
}

/// What a turn says.
#[pyclass(frozen, name = "Message", module = "tokentape")]
pub(super) struct PyMessage {
    inner: Message,
}

#[pymethods]
impl PyMessage {
    #[classattr]
    fn role() -> &'static str {
        "assistant"
    }

    #[getter]
    fn content(&self) -> &str {
        &self.inner.content
    }

    #[getter]
    fn reasoning(&self) -> Option<&str> {
        self.inner.reasoning.as_deref()
    }

    #[getter]
    fn reasoning_content(&self) -> Option<&str> {
        self.inner.reasoning.as_deref()
    }

    #[getter]
    fn tool_calls<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let calls = self.inner.tool_calls.iter().enumerate();
        PyTuple::new(py, calls.map(|(index, call)| PyToolCall { inner: call.clone(), index }).collect::<Vec<_>>())
    }

    #[getter]
    fn reasoning_complete(&self) -> bool {
        self.inner.reasoning_complete
    }

    #[getter]
    fn finished(&self) -> bool {
        self.inner.finished
    }

    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        convert::to_py(py, &self.inner.to_data())
    }

    /// The name by which `render` and `act` ask an object for its fields.
    fn model_dump<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.to_dict(py)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| other.get().inner == self.inner)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let text = |text: &str| PyString::new(py, text).repr()?.extract::<String>();
        let reasoning = self.reasoning().map_or_else(|| Ok("None".to_owned()), text)?;
        let calls = self.tool_calls(py)?.repr()?.extract::<String>()?;
        Ok(format!("Message(content={}, reasoning={reasoning}, tool_calls={calls})", text(self.content())?))
    }
}

/// A turn that is read as its ids arrive.
#[pyclass(frozen, name = "ParseStream", module = "tokentape")]
pub(super) struct PyParseStream {
    inner: Mutex<ParseStream>,
}

#[pymethods]
impl PyParseStream {
    fn push<'py>(&self, py: Python<'py>, token_ids: &Bound<'_, PyAny>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let ids = arrays::token_ids("push", token_ids)?;
        let deltas = detached(py, || self.inner.lock().unwrap_or_else(PoisonError::into_inner).push(&ids))?;
        deltas.into_iter().map(|delta| delta_to_py(py, delta)).collect()
    }

    fn finish<'py>(&self, py: Python<'py>) -> PyResult<(PyMessage, Vec<Bound<'py, PyTuple>>)> {
        let (inner, deltas) = detached(py, || self.inner.lock().unwrap_or_else(PoisonError::into_inner).finish())?;
        let deltas = deltas.into_iter().map(|delta| delta_to_py(py, delta)).collect::<PyResult<_>>()?;
        Ok((PyMessage { inner }, deltas))
    }
}

/// A delta as a pair: its kind, and the text or the call.
fn delta_to_py(py: Python<'_>, delta: Delta) -> PyResult<Bound<'_, PyTuple>> {
    match delta {
        Delta::Reasoning(text) => ("reasoning", text).into_pyobject(py),
        Delta::Content(text) => ("content", text).into_pyobject(py),
        Delta::Call(call) => {
            let index = 0;
            ("tool_call", Py::new(py, PyToolCall { inner: call, index })?).into_pyobject(py)
        }
        Delta::ContentWasReasoning => ("content_was_reasoning", "").into_pyobject(py),
    }
}

/// What stands before the sampled ids, as Python gives it.
enum Given {
    Nothing,
    Ids(Vec<TokenId>),
    Text(String),
}

impl Given {
    /// Ids, a text, or a rendered prompt.
    fn read(prompt: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let Some(prompt) = prompt else { return Ok(Self::Nothing) };
        if let Ok(text) = prompt.extract::<String>() {
            return Ok(Self::Text(text));
        }
        let ids = prompt.getattr_opt("token_ids")?.unwrap_or_else(|| prompt.clone());
        arrays::token_ids("prompt", &ids).map(Self::Ids)
    }

    fn prompt(&self) -> Prompt<'_> {
        match self {
            Self::Nothing => Prompt::Default,
            Self::Ids(ids) => Prompt::Ids(ids),
            Self::Text(text) => Prompt::Text(text),
        }
    }
}

fn tools(tools: Option<&Bound<'_, PyAny>>) -> PyResult<Tools> {
    let schemas = tools.filter(|tools| !tools.is_none()).map(convert::tool_schemas).transpose()?;
    Ok(Tools::new(schemas.as_ref()))
}

/// Reads one turn.
pub(super) fn parse(
    py: Python<'_>,
    parser: &Parser,
    token_ids: &Bound<'_, PyAny>,
    declared: Option<&Bound<'_, PyAny>>,
    prompt: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyMessage> {
    let ids = arrays::token_ids("parse", token_ids)?;
    let (tools, prompt) = (tools(declared)?, Given::read(prompt)?);
    let inner = detached(py, || parser.parse(&ids, tools, prompt.prompt()))?;
    Ok(PyMessage { inner })
}

/// Begins to read a turn.
pub(super) fn stream(
    py: Python<'_>,
    parser: &Arc<Parser>,
    declared: Option<&Bound<'_, PyAny>>,
    prompt: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyParseStream> {
    let (tools, prompt) = (tools(declared)?, Given::read(prompt)?);
    let inner = detached(py, || parser.stream(tools, prompt.prompt()))?;
    Ok(PyParseStream { inner: Mutex::new(inner) })
}

/// A declared grammar: a dict of the form that `Chat.grammar` gives.
pub(super) fn grammar(declared: &Bound<'_, PyAny>) -> PyResult<Grammar> {
    let py = declared.py();
    let map = json::map("grammar", declared)?;
    let refuse = |error: serde_json::Error| {
        to_python(py, &Error::value(format!("grammar: {error}; give a dict of the form that Chat.grammar returns")))
    };
    serde_json::from_value(serde_json::Value::Object(map)).map_err(refuse)
}

/// A grammar as a dict.
pub(super) fn grammar_dict<'py>(py: Python<'py>, grammar: &Grammar) -> PyResult<Bound<'py, PyDict>> {
    let text = serde_json::to_string(grammar).map_err(|error| to_python(py, &Error::value(error.to_string())))?;
    Ok(json::loads(py, &text)?.cast_into::<PyDict>()?)
}
