//! `ChatTemplate`: a chat template without a tokenizer.

use std::ffi::CString;
use std::sync::Arc;

use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::convert;
use super::gil::detached;
use super::many;
use super::options::{Options, named_data};
use super::span::PySpan;
use crate::message::{Conversation, Data};
use crate::render::CodePoints;
use crate::template::{RenderOptions, RenderedText, Template};

/// The Python face of a [`Template`] with its special tokens.
#[pyclass(frozen, subclass, name = "ChatTemplate", module = "tokentape")]
pub(super) struct PyChatTemplate {
    template: Template,
    special_tokens: Arc<[(Arc<str>, Data)]>,
}

#[pymethods]
impl PyChatTemplate {
    #[new]
    #[pyo3(signature = (source, *, special_tokens=None))]
    fn new(py: Python<'_>, source: &str, special_tokens: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let special_tokens = special_tokens.map_or_else(|| Ok(Vec::new()), named_data)?.into();
        let template = detached(py, || Template::compile(source))?;
        Ok(Self { template, special_tokens })
    }

    #[pyo3(signature = (messages, *, tools=None, documents=None, add_generation_prompt=None, **options), text_signature = "(self, messages, *, tools=None, documents=None, add_generation_prompt=False, continue_final_message=False, now=None, template_kwargs=None, **kwargs)")]
    fn render<'py>(
        &self,
        messages: &Bound<'py, PyAny>,
        tools: Option<Bound<'py, PyAny>>,
        documents: Option<Bound<'py, PyAny>>,
        add_generation_prompt: Option<&Bound<'py, PyAny>>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<PyRenderedText> {
        let py = messages.py();
        let options = Options::read_template(py, options)?.with(tools, documents, add_generation_prompt)?;
        let conversation = options.conversation(messages)?;
        warn_unread(py, &self.template, &conversation)?;
        let settings = self.settings(&options);
        let text = detached(py, || self.template.render(&conversation, &settings))?;
        Ok(PyRenderedText { text, messages: conversation.messages })
    }

    #[pyo3(signature = (conversations, **options), text_signature = "(self, conversations, *, tools=None, documents=None, add_generation_prompt=False, continue_final_message=False, now=None, template_kwargs=None, **kwargs)")]
    fn render_batch(
        &self,
        py: Python<'_>,
        conversations: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Vec<PyRenderedText>> {
        let options = Options::read_template(py, options)?;
        let settings = self.settings(&options);
        let check = |conversation: &Conversation| warn_unread(py, &self.template, conversation);
        many::rendered(conversations, &options, check, |conversation| {
            let text = self.template.render(&conversation, &settings)?;
            Ok(PyRenderedText { text, messages: conversation.messages })
        })
    }

    #[getter]
    fn source(&self) -> &str {
        self.template.source()
    }

    #[getter]
    fn variables(&self) -> Vec<&str> {
        self.template.variables().collect()
    }

    #[getter]
    fn special_tokens<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tokens = PyDict::new(py);
        for (name, value) in self.special_tokens.iter() {
            tokens.set_item(&**name, convert::to_py(py, value)?)?;
        }
        Ok(tokens)
    }

    fn __repr__(&self) -> String {
        format!("ChatTemplate({} characters)", self.source().chars().count())
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<((&str,), Bound<'py, PyDict>)> {
        let named = PyDict::new(py);
        named.set_item("special_tokens", self.special_tokens(py)?)?;
        Ok(((self.source(),), named))
    }
}

impl PyChatTemplate {
    fn settings(&self, options: &Options<'_>) -> RenderOptions {
        RenderOptions { special_tokens: self.special_tokens.clone(), ..options.template_options().clone() }
    }
}

/// What a chat template writes.
#[pyclass(frozen, name = "RenderedText", module = "tokentape")]
pub(super) struct PyRenderedText {
    text: RenderedText,
    /// The messages, whose roles the spans name.
    messages: Vec<Data>,
}

#[pymethods]
impl PyRenderedText {
    #[getter]
    fn text(&self) -> &str {
        &self.text.text
    }

    #[getter]
    fn spans(&self) -> Vec<PySpan> {
        let places = CodePoints::new(&self.text.text);
        let role = |message: u32| self.messages.get(message as usize)?.get("role")?.as_text().map(str::to_owned);
        self.text.spans.iter().map(|span| PySpan::new(span, &places, &self.text.fields, role)).collect()
    }

    #[getter]
    fn generation_spans(&self) -> Vec<(u32, u32)> {
        let places = CodePoints::new(&self.text.text);
        self.text.generation_spans.iter().map(|span| (places.before(span.start), places.before(span.end))).collect()
    }

    fn __str__(&self) -> &str {
        &self.text.text
    }

    fn __repr__(&self) -> String {
        format!("RenderedText({} characters, {} spans)", self.text.text.chars().count(), self.text.spans.len())
    }
}

/// Warns of template arguments that the template never reads: most are misspelt.
pub(super) fn warn_unread(py: Python<'_>, template: &Template, conversation: &Conversation) -> PyResult<()> {
    for (name, _) in &conversation.arguments {
        if let Some(warning) = template.unread_argument(name) {
            PyErr::warn(py, &py.get_type::<PyUserWarning>(), &CString::new(&*warning)?, 1)?;
        }
    }
    Ok(())
}
