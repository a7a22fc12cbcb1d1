//! `_core.Linter` and `_core.Prover`: rows in, faults out.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;

use super::batch::Table;
use super::chat::PyChat;
use super::gil::detached;
use crate::verify::{Fault, LintOptions, Linter, Markers, Prover};
use crate::{Result, TokenId};

/// Kind, level, row, first token, end, column, message.
type Found = (&'static str, &'static str, usize, Option<usize>, Option<usize>, &'static str, String);

/// A [`Linter`].
#[pyclass(frozen, name = "Linter", module = "tokentape._core")]
pub(super) struct PyLinter(Mutex<Linter>);

impl PyLinter {
    fn lock(&self) -> MutexGuard<'_, Linter> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyLinter {
    #[new]
    #[pyo3(signature = (chat=None, *, filler=0.0, needs_logprobs=false, max_length=None, pads=None))]
    fn new(
        py: Python<'_>,
        chat: Option<&PyChat>,
        filler: f32,
        needs_logprobs: bool,
        max_length: Option<usize>,
        pads: Option<Vec<TokenId>>,
    ) -> PyResult<Self> {
        let renderer = chat.map(PyChat::renderer);
        let markers = || -> Result<Markers> { Ok(renderer.map_or_else(Markers::default, Markers::of)) };
        let mut markers = detached(py, markers)?;
        let stops = markers.stops.clone();
        markers.pads.extend(pads.into_iter().flatten().filter(|pad| !stops.contains(pad)));
        let options = LintOptions { markers, filler, needs_logprobs, max_length };
        Ok(Self(Mutex::new(Linter::new(options))))
    }

    fn lint(&self, py: Python<'_>, table: &Table) -> PyResult<Vec<Found>> {
        let faults = detached(py, || self.lock().lint(&table.0))?;
        Ok(faults.into_iter().map(found).collect())
    }

    fn finish(&self, py: Python<'_>) -> PyResult<Vec<Found>> {
        let faults = detached(py, || Ok(self.lock().finish()))?;
        Ok(faults.into_iter().map(found).collect())
    }

    #[getter]
    fn rows(&self) -> usize {
        self.lock().rows()
    }

    #[getter]
    fn tokens(&self) -> usize {
        self.lock().tokens()
    }

    #[getter]
    fn stop_token_ids(&self) -> Vec<TokenId> {
        self.lock().markers().stops.clone()
    }
}

/// A [`Prover`].
#[pyclass(frozen, name = "Prover", module = "tokentape._core")]
pub(super) struct PyProver(Prover);

#[pymethods]
impl PyProver {
    #[new]
    fn new(chat: &PyChat) -> Self {
        Self(Prover::new(chat.renderer().clone()))
    }

    fn prove(&self, py: Python<'_>, table: &Table, first_row: usize) -> PyResult<Vec<Found>> {
        let faults = detached(py, || self.0.prove(&table.0, first_row))?;
        Ok(faults.into_iter().map(found).collect())
    }
}

fn found(fault: Fault) -> Found {
    let (start, end) = fault.tokens.map_or((None, None), |tokens| (Some(tokens.start), Some(tokens.end)));
    (fault.kind.name(), fault.kind.level().name(), fault.row, start, end, fault.column, fault.message)
}
