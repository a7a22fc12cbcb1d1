//! `Trajectory` and `Turn`: a shared snapshot that one writer at a time replaces.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::arrays::{self, frozen, frozen_mask};
use super::error::to_python;
use super::gil::detached;
use super::json;
use crate::columns::Origin;
use crate::trajectory::{Act, Identity, Stage, Trajectory, Turn};
use crate::{Error, Result};

/// The Python face of a [`Trajectory`].
///
/// Readers take the current snapshot. A writer holds `writer` from its checks to its change, so that a second writer
/// is refused instead of interleaved; `current` is locked only for moments, never while Python is needed.
#[pyclass(frozen, name = "Trajectory", module = "tokentape")]
pub(super) struct PyTrajectory {
    current: Mutex<Arc<Trajectory>>,
    writer: Mutex<()>,
}

impl PyTrajectory {
    pub(super) fn new(trajectory: Trajectory) -> Self {
        Self::of(Arc::new(trajectory))
    }

    pub(super) fn of(trajectory: Arc<Trajectory>) -> Self {
        Self { current: Mutex::new(trajectory), writer: Mutex::new(()) }
    }

    fn lock(&self) -> MutexGuard<'_, Arc<Trajectory>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the trajectory is now.
    pub(super) fn snapshot(&self) -> Arc<Trajectory> {
        Arc::clone(&self.lock())
    }

    fn begin_change(&self) -> Result<MutexGuard<'_, ()>> {
        self.writer.try_lock().map_err(|_| {
            Error::trajectory("two threads change this trajectory at once; give each its own fork, or a lock")
        })
    }

    /// Runs a change that is quick and needs no Python.
    fn change<T: Send>(&self, py: Python<'_>, change: impl FnOnce(&mut Trajectory) -> Result<T> + Send) -> PyResult<T> {
        detached(py, || {
            let _writer = self.begin_change()?;
            change(Arc::make_mut(&mut self.lock()))
        })
    }
}

#[pymethods]
impl PyTrajectory {
    #[classmethod]
    #[pyo3(signature = (token_ids, *, vocab_size=None, rollout=None, agent=None, id=None))]
    fn from_prompt(
        _class: &Bound<'_, PyType>,
        token_ids: &Bound<'_, PyAny>,
        vocab_size: Option<usize>,
        rollout: Option<&Self>,
        agent: Option<String>,
        id: Option<String>,
    ) -> PyResult<Self> {
        let ids = arrays::token_ids("from_prompt", token_ids)?;
        let identity = identity(rollout, agent, id);
        detached(token_ids.py(), || Trajectory::from_prompt(&ids, vocab_size, identity)).map(Self::new)
    }

    #[pyo3(signature = (token_ids, logprobs=None, *, finish_reason="stop", policy_version=None, continues=false, logprob_kind=None))]
    fn act(
        slf: &Bound<'_, Self>,
        token_ids: &Bound<'_, PyAny>,
        logprobs: Option<&Bound<'_, PyAny>>,
        finish_reason: &str,
        policy_version: Option<i64>,
        continues: bool,
        logprob_kind: Option<&str>,
    ) -> PyResult<PyTurn> {
        let ids = arrays::token_ids("act", token_ids)?;
        let values = logprobs.map(|values| arrays::floats("logprobs", values)).transpose()?;
        let act = Act {
            token_ids: &ids,
            logprobs: values.as_deref(),
            finish_reason,
            policy_version,
            logprob_kind,
            continues,
            message: None,
        };
        let (origin, start) = slf.get().change(slf.py(), |trajectory| {
            let turn = trajectory.act(&act)?;
            trajectory.turn(turn).map(|turn| (turn.origin.clone(), turn.start))
        })?;
        Ok(PyTurn { trajectory: slf.clone().unbind(), origin, start })
    }

    fn append(&self, token_ids: &Bound<'_, PyAny>) -> PyResult<()> {
        let ids = arrays::token_ids("append", token_ids)?;
        self.change(token_ids.py(), |trajectory| trajectory.append(&ids))
    }

    fn fork(&self, py: Python<'_>) -> PyResult<Self> {
        self.change(py, Trajectory::fork).map(Self::new)
    }

    fn truncate(&self, py: Python<'_>, length: usize) -> PyResult<()> {
        self.change(py, |trajectory| trajectory.truncate(length))
    }

    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        self.change(py, Trajectory::finish)
    }

    fn note(&self, notes: &Bound<'_, PyAny>) -> PyResult<()> {
        let map = json::map("note", notes)?;
        self.change(notes.py(), |trajectory| trajectory.note(map))
    }

    fn remaining(&self, max_length: usize) -> usize {
        self.snapshot().remaining(max_length)
    }

    #[getter]
    fn id(&self) -> String {
        self.snapshot().identity().id.to_string()
    }

    #[getter]
    fn rollout_id(&self) -> String {
        self.snapshot().identity().rollout_id.to_string()
    }

    #[getter]
    fn agent(&self) -> Option<String> {
        self.snapshot().identity().agent.as_deref().map(str::to_owned)
    }

    #[getter]
    fn parent_id(&self) -> Option<String> {
        self.snapshot().fork_point().map(|fork| fork.parent_id.clone())
    }

    #[getter]
    fn fork_at(&self) -> Option<i32> {
        self.snapshot().fork_point().map(|fork| fork.at)
    }

    #[getter]
    fn fork_kind(&self) -> Option<String> {
        self.snapshot().fork_point().map(|fork| fork.kind.clone())
    }

    #[getter]
    fn stage(&self) -> &'static str {
        match self.snapshot().stage() {
            Stage::Prompted => "prompted",
            Stage::Acted => "acted",
            Stage::Finished => "finished",
            Stage::Superseded => "superseded",
        }
    }

    #[getter]
    fn token_ids<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i32>> {
        frozen(py, self.snapshot().columns().token_ids())
    }

    #[getter]
    fn sampled_mask<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<bool>> {
        frozen_mask(py, &self.snapshot().columns().sampled_mask())
    }

    #[getter]
    fn loss_mask<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<bool>> {
        frozen_mask(py, &self.snapshot().columns().loss_mask())
    }

    #[setter]
    fn set_loss_mask(&self, py: Python<'_>, mask: Option<Bound<'_, PyAny>>) -> PyResult<()> {
        let mask = mask.map(|mask| arrays::mask("loss_mask", &mask)).transpose()?;
        self.change(py, |trajectory| trajectory.set_loss_mask(mask))
    }

    #[getter]
    fn loss_weight<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f32>>> {
        self.snapshot().columns().loss_weight().map(|weight| frozen(py, weight.to_vec()))
    }

    #[setter]
    fn set_loss_weight(&self, py: Python<'_>, weight: Option<Bound<'_, PyAny>>) -> PyResult<()> {
        let weight = weight.map(|weight| arrays::floats("loss_weight", &weight)).transpose()?;
        self.change(py, |trajectory| trajectory.set_loss_weight(weight))
    }

    #[getter]
    fn logprobs<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f32>>> {
        self.snapshot().logprobs().map(|values| frozen(py, values))
    }

    #[getter]
    fn message_index<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i32>> {
        frozen(py, self.snapshot().columns().message_index())
    }

    #[getter]
    fn turns(slf: &Bound<'_, Self>) -> Vec<PyTurn> {
        let snapshot = slf.get().snapshot();
        let turn =
            |turn: &Turn| PyTurn { trajectory: slf.clone().unbind(), origin: turn.origin.clone(), start: turn.start };
        snapshot.turns().iter().map(turn).collect()
    }

    #[getter]
    fn reward(&self) -> Option<f64> {
        self.snapshot().reward()
    }

    #[setter]
    fn set_reward(&self, py: Python<'_>, reward: Option<f64>) -> PyResult<()> {
        self.change(py, |trajectory| trajectory.set_reward(reward))
    }

    #[getter]
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::dict(py, self.snapshot().metrics())
    }

    #[setter]
    fn set_metrics(&self, metrics: &Bound<'_, PyAny>) -> PyResult<()> {
        let map = json::map("metrics", metrics)?;
        self.change(metrics.py(), |trajectory| trajectory.set_metrics(map))
    }

    #[getter]
    fn provenance<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let provenance = self.snapshot().provenance().map_err(|error| to_python(py, &error))?;
        json::dict(py, &provenance)
    }

    #[getter]
    fn messages<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let text = self.snapshot().messages_json().map_err(|error| to_python(py, &error))?;
        json::loads(py, &text)
    }

    #[getter]
    fn nbytes(&self) -> usize {
        self.snapshot().columns().bytes()
    }

    fn __len__(&self) -> usize {
        self.snapshot().len()
    }

    fn __repr__(&self) -> String {
        let trajectory = self.snapshot();
        format!(
            "Trajectory(id='{}', {} tokens, {} sampled, {} turns, {})",
            trajectory.identity().id,
            trajectory.len(),
            trajectory.columns().sampled_count(),
            trajectory.turns().len(),
            self.stage(),
        )
    }
}

fn identity(rollout: Option<&PyTrajectory>, agent: Option<String>, id: Option<String>) -> Identity {
    let mut identity = Identity::new(id.map(Arc::from));
    if let Some(rollout) = rollout {
        identity.rollout_id = Arc::clone(&rollout.snapshot().identity().rollout_id);
    }
    Identity { agent: agent.map(Arc::from), ..identity }
}

/// The Python face of one [`Turn`], found again by the act that began it.
#[pyclass(frozen, name = "Turn", module = "tokentape")]
pub(super) struct PyTurn {
    trajectory: Py<PyTrajectory>,
    origin: Origin,
    start: u32,
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
        self.read(py, |_, turn| turn.reasoning_open)
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
