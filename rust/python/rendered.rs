//! `Rendered`: text, ids and authors of a conversation. Arrays are made once, and read-only.

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyBytes;

use super::arrays::frozen;
use super::error::to_python;
use super::gil::detached;
use super::span::{PyAssistantSpans, PySeam, PySpan};
use crate::render::{CodePoints, Missing, Rendered, Turns};
use crate::{Error, TokenId};

/// The Python face of a [`Rendered`].
#[pyclass(frozen, name = "Rendered", module = "tokentape")]
pub(super) struct PyRendered {
    inner: Rendered,
    token_ids: PyOnceLock<Py<PyArray1<TokenId>>>,
}

impl PyRendered {
    pub(super) fn new(inner: Rendered) -> Self {
        Self { inner, token_ids: PyOnceLock::new() }
    }

    fn places(&self) -> CodePoints<'_> {
        CodePoints::new(&self.inner.text.text)
    }

    fn role(&self, message: u32) -> Option<String> {
        self.inner.roles.get(message as usize).filter(|role| !role.is_empty()).map(|role| (**role).to_owned())
    }
}

#[pymethods]
impl PyRendered {
    #[getter]
    fn text(&self) -> &str {
        &self.inner.text.text
    }

    #[getter]
    fn token_ids<'py>(&self, py: Python<'py>) -> &Bound<'py, PyArray1<TokenId>> {
        let make = || frozen(py, self.inner.token_ids.clone()).unbind();
        self.token_ids.get_or_init(py, make).bind(py)
    }

    #[getter]
    fn token_starts<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i32>> {
        let places = self.places();
        frozen(py, self.inner.starts.iter().map(|start| places.before(*start) as i32).collect())
    }

    #[getter]
    fn message_index<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i32>> {
        frozen(py, self.inner.message_index())
    }

    #[getter]
    fn is_content<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<bool>> {
        frozen(py, self.inner.is_content())
    }

    #[getter]
    fn assistant_mask<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<bool>>> {
        Ok(frozen(py, detached(py, || Ok(self.inner.assistant_mask()))?))
    }

    #[getter]
    fn assistant_spans(&self, py: Python<'_>) -> PyResult<Vec<PyAssistantSpans>> {
        let found = detached(py, || Ok(self.inner.assistant_spans()))?;
        let places = self.places();
        Ok(found.iter().map(|assistant| PyAssistantSpans::new(assistant, &places)).collect())
    }

    #[getter]
    fn spans(&self) -> Vec<PySpan> {
        let places = self.places();
        let span = |span| PySpan::new(span, &places, self.inner.fields(), |message| self.role(message));
        self.inner.spans().iter().map(span).collect()
    }

    #[getter]
    fn generation_spans(&self) -> Vec<(u32, u32)> {
        let places = self.places();
        let spans = self.inner.text.generation_spans.iter();
        spans.map(|span| (places.before(span.start), places.before(span.end))).collect()
    }

    #[getter]
    fn seams(&self, py: Python<'_>) -> PyResult<Vec<PySeam>> {
        let found = detached(py, || self.inner.seams())?;
        let places = self.places();
        Ok(found.iter().map(|seam| PySeam::new(seam, &places)).collect())
    }

    #[pyo3(signature = (*, turns=None, roles=None, missing="error"))]
    fn loss_mask<'py>(
        &self,
        py: Python<'py>,
        turns: Option<&Bound<'py, PyAny>>,
        roles: Option<Vec<String>>,
        missing: &str,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let turns = selected_turns(py, turns)?;
        let missing = choice(py, "missing", missing, &[("error", Missing::Error), ("skip", Missing::Skip)])?;
        let roles = roles.unwrap_or_else(|| vec!["assistant".to_owned()]);
        Ok(frozen(py, detached(py, || self.inner.loss_mask(&turns, &roles, missing))?))
    }

    fn explain(&self, py: Python<'_>, token: isize) -> PyResult<String> {
        let size = self.inner.token_ids.len();
        let index = if token < 0 { token + size as isize } else { token };
        let index = usize::try_from(index)
            .ok()
            .filter(|index| *index < size)
            .ok_or_else(|| to_python(py, &Error::value(format!("token {token}: the rendering has {size} tokens"))))?;
        detached(py, || Ok(self.inner.explain(index)))
    }

    fn __len__(&self) -> usize {
        self.inner.token_ids.len()
    }

    fn __repr__(&self) -> String {
        format!(
            "Rendered({} tokens, {} messages, {} bytes of text)",
            self.inner.token_ids.len(),
            self.inner.roles.len(),
            self.inner.text.text.len()
        )
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let state = detached(py, || self.inner.to_bytes())?;
        let restore = py.import("tokentape._core")?.getattr("Rendered")?.getattr("_from_bytes")?;
        Ok((restore, (PyBytes::new(py, &state),)))
    }

    #[staticmethod]
    fn _from_bytes(py: Python<'_>, state: &[u8]) -> PyResult<Self> {
        detached(py, || Rendered::from_bytes(state)).map(Self::new)
    }
}

/// `"all"`, `"last"`, or the indices of messages.
fn selected_turns(py: Python<'_>, turns: Option<&Bound<'_, PyAny>>) -> PyResult<Turns> {
    let Some(turns) = turns else { return Ok(Turns::All) };
    if let Ok(name) = turns.extract::<String>() {
        return choice(py, "turns", &name, &[("all", Turns::All), ("last", Turns::Last)]);
    }
    let wanted = turns
        .extract()
        .map_err(|_| to_python(py, &Error::value("turns: give \"all\", \"last\" or a list of message indices")))?;
    Ok(Turns::Messages(wanted))
}

/// The value of an argument that is one of a few names.
pub(super) fn choice<T: Clone>(py: Python<'_>, argument: &str, given: &str, known: &[(&str, T)]) -> PyResult<T> {
    let found = known.iter().find(|(name, _)| *name == given).map(|(_, value)| value.clone());
    found.ok_or_else(|| {
        let names: Vec<String> = known.iter().map(|(name, _)| format!("{name:?}")).collect();
        to_python(py, &Error::value(format!("{argument} is {given:?}: it is one of {}", names.join(", "))))
    })
}
