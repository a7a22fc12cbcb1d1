//! `TextStream`: text as its tokens arrive.

use std::sync::Mutex;

use pyo3::prelude::*;

use super::arrays;
use super::error::to_python;
use crate::TokenId;
use crate::render::Renderer;
use crate::tokenizer::TextStream;

/// The state of a text that is decoded as its tokens arrive.
#[pyclass(frozen, name = "TextStream", module = "tokentape._core")]
pub(super) struct PyTextStream {
    renderer: Renderer,
    state: Mutex<TextStream>,
}

impl PyTextStream {
    pub(super) fn new(renderer: Renderer, skip_special_tokens: bool) -> Self {
        Self { renderer, state: Mutex::new(TextStream::new(skip_special_tokens)) }
    }

    fn with_state<T>(&self, py: Python<'_>, work: impl FnOnce(&mut TextStream) -> crate::Result<T>) -> PyResult<T> {
        // A panic cannot leave the state half changed, and no other thread holds the lock while it waits for anything.
        let mut state = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        work(&mut state).map_err(|error| to_python(py, &error))
    }
}

#[pymethods]
impl PyTextStream {
    fn push(&self, py: Python<'_>, token_ids: &Bound<'_, PyAny>) -> PyResult<String> {
        let ids = match token_ids.extract::<TokenId>() {
            Ok(id) => vec![id],
            Err(_) => arrays::token_ids("push", token_ids)?,
        };
        self.with_state(py, |state| state.push(self.renderer.tokenizer(), &ids))
    }

    fn finish(&self, py: Python<'_>) -> PyResult<String> {
        self.with_state(py, |state| state.finish(self.renderer.tokenizer()))
    }
}
