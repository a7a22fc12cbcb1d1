//! `Message`, `ToolCall` and `ParseStream`: what a model said.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use numpy::PyUntypedArray;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use super::error::to_python;
use super::gil::detached;
use super::rendered::PyRendered;
use super::{arrays, convert, json};
use crate::parse::{
    Declared, Delta, Grammar, HEADER_TOKENS, Message, Opening, PROMPT_TOKENS, ParseStream, Parser, Prompt, Tool,
    ToolCall, Tools,
};
use crate::{Error, TokenId};

/// An attempt at a tool call.
#[pyclass(frozen, name = "ToolCall", module = "tokentape")]
pub(super) struct PyToolCall {
    inner: Arc<ToolCall>,
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
    fn id(&self) -> &str {
        &self.inner.id
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
        PyTuple::new(py, self.inner.tool_calls.iter().map(|call| PyToolCall { inner: call.clone() }))
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
        Delta::Call(inner) => ("tool_call", Py::new(py, PyToolCall { inner })?).into_pyobject(py),
        Delta::ContentWasReasoning => ("content_was_reasoning", "").into_pyobject(py),
    }
}

/// What stands before the sampled ids, as Python gives it.
enum Given {
    Nothing,
    Ids(Vec<TokenId>),
    Text(String),
    Opening(Opening),
}

impl Given {
    /// Ids, a text, or a rendered prompt. Of ids, no more than shows where the answer begins.
    fn read(parser: &Parser, prompt: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let Some(prompt) = prompt else { return Ok(Self::Nothing) };
        let py = prompt.py();
        if let Ok(text) = prompt.cast::<PyString>() {
            return Ok(Self::Text(text.to_str()?.to_owned()));
        }
        let rendered = prompt.cast::<PyRendered>().is_ok() || !is_sequence(prompt);
        let ids = if rendered { prompt.getattr_opt(intern!(py, "token_ids"))? } else { None };
        let ids = ids.as_ref().unwrap_or(prompt);
        let end = arrays::last_token_ids("prompt", ids, HEADER_TOKENS)?;
        if let Some(opening) = parser.opening(&end).map_err(|error| to_python(py, &error))? {
            return Ok(Self::Opening(opening));
        }
        arrays::last_token_ids("prompt", ids, PROMPT_TOKENS).map(Self::Ids)
    }

    fn prompt(&self) -> Prompt<'_> {
        match self {
            Self::Nothing => Prompt::Default,
            Self::Ids(ids) => Prompt::Ids(ids),
            Self::Text(text) => Prompt::Text(text),
            Self::Opening(opening) => Prompt::Opening(opening),
        }
    }
}

/// An array or a list, which has no prompt as an attribute.
fn is_sequence(object: &Bound<'_, PyAny>) -> bool {
    object.cast::<PyList>().is_ok() || object.cast::<PyUntypedArray>().is_ok()
}

fn tools(tools: Option<&Bound<'_, PyAny>>) -> PyResult<Tools> {
    let schemas = tools.map(convert::tool_schemas).transpose()?;
    Ok(Tools::new(schemas.as_ref()))
}

/// A list of schemas, each a dict; a tool is converted when a call names it.
#[derive(Debug)]
struct Schemas {
    list: Py<PyList>,
    /// Why a schema that was needed is no plain data.
    fault: Arc<OnceLock<PyErr>>,
}

impl Schemas {
    fn of(tools: &Bound<'_, PyAny>) -> Option<Self> {
        let list = tools.cast_exact::<PyList>().ok()?;
        let plain = list.iter().all(|tool| tool.cast_exact::<PyDict>().is_ok());
        plain.then(|| Self { list: list.clone().unbind(), fault: Arc::default() })
    }

    /// The last schema of this name.
    fn find<'py>(&self, py: Python<'py>, name: &str) -> Option<Bound<'py, PyAny>> {
        let named = |tool: &Bound<'py, PyAny>| {
            let tool = tool.cast::<PyDict>().ok()?;
            let function = tool.get_item(intern!(py, "function")).ok()?;
            let function = function.as_ref().map_or(Ok(tool), |function| function.cast::<PyDict>()).ok()?;
            Some(function.get_item(intern!(py, "name")).ok()??.cast::<PyString>().ok()?.to_str().ok()? == name)
        };
        self.list.bind(py).iter().filter(|tool| named(tool) == Some(true)).last()
    }
}

impl Declared for Schemas {
    fn declares(&self, name: &str) -> bool {
        Python::attach(|py| self.find(py, name).is_some())
    }

    fn tool(&self, name: &str) -> Option<Tool> {
        Python::attach(|py| match convert::data(&self.find(py, name)?) {
            Ok(schema) => Tool::of(&schema).map(|(_, tool)| tool),
            Err(error) => {
                let _ = self.fault.set(error);
                None
            }
        })
    }
}

/// A turn of so many tokens is read before another thread could take the GIL.
const SHORT_TURN: usize = 4096;

/// Reads one turn.
pub(super) fn parse(
    py: Python<'_>,
    parser: &Parser,
    token_ids: &Bound<'_, PyAny>,
    declared: Option<&Bound<'_, PyAny>>,
    prompt: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyMessage> {
    let ids = arrays::token_ids("parse", token_ids)?;
    let prompt = Given::read(parser, prompt)?;
    let schemas = declared.and_then(Schemas::of);
    let fault = schemas.as_ref().map(|schemas| schemas.fault.clone());
    let tools = match schemas {
        Some(schemas) => Tools::asked(schemas),
        None => tools(declared)?,
    };
    let work = || parser.parse(&ids, tools, prompt.prompt());
    let inner =
        if ids.len() < SHORT_TURN { work().map_err(|error| to_python(py, &error))? } else { detached(py, work)? };
    match fault.as_ref().and_then(|fault| fault.get()) {
        Some(error) => Err(error.clone_ref(py)),
        None => Ok(PyMessage { inner }),
    }
}

/// Begins to read a turn.
pub(super) fn stream(
    py: Python<'_>,
    parser: &Arc<Parser>,
    declared: Option<&Bound<'_, PyAny>>,
    prompt: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyParseStream> {
    let (tools, prompt) = (tools(declared)?, Given::read(parser, prompt)?);
    let inner = detached(py, || parser.stream(tools, prompt.prompt()))?;
    Ok(PyParseStream { inner: Mutex::new(inner) })
}

/// A declared grammar: a dict of the form that `Chat.grammar` gives, or a `response_template` of transformers.
pub(super) fn grammar(declared: &Bound<'_, PyAny>) -> PyResult<Grammar> {
    let py = declared.py();
    let foreign = declared.cast::<PyDict>().is_ok_and(|dict| dict.contains(intern!(py, "fields")).unwrap_or(false));
    let translated = if foreign {
        let module = py.import(intern!(py, "tokentape.response_template"))?;
        Some(module.call_method1(intern!(py, "response_grammar"), (declared,))?)
    } else {
        None
    };
    let map = json::map("grammar", translated.as_ref().unwrap_or(declared))?;
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
