//! `Turn` and `Divergence`: views of a trajectory.

use std::sync::Arc;

use numpy::PyArray1;
use pyo3::prelude::*;

use super::arrays::frozen;
use super::error::to_python;
use super::gil::detached;
use super::trajectory::PyTrajectory;
use crate::Error;
use crate::columns::Origin;
use crate::trajectory::{Divergence, Trajectory, Turn};

/// The Python face of a [`Divergence`].
#[pyclass(frozen, name = "Divergence", module = "tokentape")]
pub(super) struct PyDivergence(pub(super) Divergence);

#[pymethods]
impl PyDivergence {
    #[getter]
    fn kind(&self) -> &'static str {
        self.0.class.name()
    }

    #[getter]
    fn token(&self) -> usize {
        self.0.token
    }

    #[getter]
    fn recorded(&self) -> &str {
        &self.0.recorded
    }

    #[getter]
    fn rendered(&self) -> &str {
        &self.0.rendered
    }

    fn __repr__(&self) -> String {
        let Divergence { class, token, recorded, rendered } = &self.0;
        format!("Divergence('{}', token {token}, recorded {recorded:?}, rendered {rendered:?})", class.name())
    }
}

/// The Python face of one [`Turn`], found again by the act that began it.
#[pyclass(frozen, name = "Turn", module = "tokentape")]
pub(super) struct PyTurn {
    pub(super) trajectory: Py<PyTrajectory>,
    pub(super) origin: Origin,
    pub(super) start: u32,
}

impl PyTurn {
    /// The trajectory as it is now, and the turn's index in it.
    fn find(&self, py: Python<'_>) -> PyResult<(Arc<Trajectory>, usize)> {
        let trajectory = self.trajectory.get().snapshot();
        let index = trajectory
            .turns()
            .iter()
            .position(|turn| turn.origin == self.origin && turn.start == self.start)
            .ok_or_else(|| {
            to_python(py, &Error::trajectory("the turn is no longer there: the trajectory was truncated"))
        })?;
        Ok((trajectory, index))
    }

    fn read<T>(&self, py: Python<'_>, read: impl FnOnce(&Trajectory, &Turn) -> T) -> PyResult<T> {
        let (trajectory, index) = self.find(py)?;
        Ok(read(&trajectory, &trajectory.turns()[index]))
    }
}

#[pymethods]
impl PyTurn {
    #[getter]
    fn index(&self, py: Python<'_>) -> PyResult<usize> {
        self.find(py).map(|(_, index)| index)
    }

    #[getter]
    fn start(&self, py: Python<'_>) -> PyResult<u32> {
        self.read(py, |_, turn| turn.start)
    }

    #[getter]
    fn end(&self, py: Python<'_>) -> PyResult<u32> {
        self.read(py, |_, turn| turn.end)
    }

    #[getter]
    fn token_ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<i32>>> {
        let ids = self.read(py, |trajectory, turn| trajectory.columns().ids_in(turn.range()))?;
        Ok(frozen(py, ids))
    }

    #[getter]
    fn logprobs<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray1<f32>>>> {
        let values =
            self.read(py, |trajectory, turn| trajectory.logprobs().map(|values| values[turn.range()].to_vec()))?;
        Ok(values.map(|values| frozen(py, values)))
    }

    #[getter]
    fn finish_reason(&self, py: Python<'_>) -> PyResult<String> {
        self.read(py, |_, turn| turn.finish_reason.to_string())
    }

    #[getter]
    fn message(&self, py: Python<'_>) -> PyResult<i32> {
        self.read(py, |_, turn| turn.message)
    }

    #[getter]
    fn reasoning_open(&self, py: Python<'_>) -> PyResult<bool> {
        let (trajectory, index) = self.find(py)?;
        detached(py, || trajectory.reasoning_open(index))
    }

    #[getter]
    fn reward(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        self.read(py, |_, turn| turn.reward.get())
    }

    #[setter]
    fn set_reward(&self, py: Python<'_>, reward: Option<f64>) -> PyResult<()> {
        let (trajectory, index) = self.find(py)?;
        trajectory.set_turn_reward(index, reward).map_err(|error| to_python(py, &error))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (trajectory, index) = self.find(py)?;
        let turn = &trajectory.turns()[index];
        Ok(format!("Turn({index}, tokens {}..{}, finish_reason='{}')", turn.start, turn.end, turn.finish_reason))
    }
}
