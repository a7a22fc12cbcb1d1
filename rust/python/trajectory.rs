//! `Trajectory` and `Turn`: a shared snapshot that one writer at a time replaces.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyType};

use super::arrays::{self, frozen, frozen_mask};
use super::chat::PyChat;
use super::convert;
use super::error::to_python;
use super::gil::detached;
use super::json;
use super::saved;
use super::turn::{PyDivergence, PyTurn};
use crate::trajectory::{Act, Dialogue, Identity, Stage, Trajectory, Turn};
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

    /// A trajectory that begins with a conversation.
    pub(super) fn start(py: Python<'_>, dialogue: Dialogue, identity: Identity) -> PyResult<Self> {
        detached(py, || Trajectory::start(dialogue, identity)).map(Self::new)
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

    #[pyo3(signature = (token_ids, logprobs=None, *, finish_reason="stop", policy_version=None, message=None, continues=false, logprob_kind=None, reference_logprobs=None, top_logprobs=None))]
    #[expect(clippy::too_many_arguments, reason = "the arguments of the Python method")]
    fn act(
        slf: &Bound<'_, Self>,
        token_ids: &Bound<'_, PyAny>,
        logprobs: Option<&Bound<'_, PyAny>>,
        finish_reason: &str,
        policy_version: Option<i64>,
        message: Option<&Bound<'_, PyAny>>,
        continues: bool,
        logprob_kind: Option<&str>,
        reference_logprobs: Option<&Bound<'_, PyAny>>,
        top_logprobs: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyTurn> {
        let ids = arrays::token_ids("act", token_ids)?;
        let values = logprobs.map(|values| arrays::floats("logprobs", values)).transpose()?;
        let reference = reference_logprobs.map(|values| arrays::floats("reference_logprobs", values)).transpose()?;
        let top = top_logprobs.map(|top| arrays::top_logprobs("top_logprobs", top)).transpose()?;
        let act = Act {
            token_ids: &ids,
            logprobs: values.as_deref(),
            reference_logprobs: reference.as_deref(),
            top_logprobs: top.as_ref(),
            finish_reason,
            policy_version,
            logprob_kind,
            message: message.map(convert::data).transpose()?,
            continues,
        };
        let (origin, start) = slf.get().change(slf.py(), |trajectory| {
            let turn = trajectory.act(&act)?;
            trajectory.turn(turn).map(|turn| (turn.origin.clone(), turn.start))
        })?;
        Ok(PyTurn { trajectory: slf.clone().unbind(), origin, start })
    }

    #[pyo3(signature = (messages, *, r#final=false))]
    fn observe(slf: &Bound<'_, Self>, messages: &Bound<'_, PyAny>, r#final: bool) -> PyResult<Py<Self>> {
        let messages = convert::conversation(messages, None, None, Vec::new())?.messages;
        let own = slf.get();
        let fragment = detached(slf.py(), || {
            let _writer = own.begin_change()?;
            let observation = own.snapshot().prepare(&messages, r#final)?;
            Ok(Arc::make_mut(&mut own.lock()).apply(observation))
        })?;
        fragment.map_or_else(|| Ok(slf.clone().unbind()), |fragment| Py::new(slf.py(), Self::new(fragment)))
    }

    fn compact(&self, messages: &Bound<'_, PyAny>) -> PyResult<Self> {
        let given = convert::conversation(messages, None, None, Vec::new())?.messages;
        self.change(messages.py(), |trajectory| trajectory.compact(given)).map(Self::new)
    }

    fn divergence(&self, py: Python<'_>) -> PyResult<Option<PyDivergence>> {
        let snapshot = self.snapshot();
        Ok(detached(py, || snapshot.divergence())?.map(PyDivergence))
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
    fn reference_logprobs<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f32>>> {
        let snapshot = self.snapshot();
        let columns = snapshot.columns();
        columns.has_reference().then(|| frozen(py, columns.reference_logprobs()))
    }

    #[getter]
    fn top_logprobs<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        let snapshot = self.snapshot();
        let columns = snapshot.columns();
        columns.has_top().then(|| arrays::alternatives(py, &columns.top_logprobs())).transpose()
    }

    #[getter]
    fn message_index<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i32>> {
        frozen(py, self.snapshot().columns().message_index())
    }

    #[getter]
    fn seams(&self) -> Vec<u32> {
        self.snapshot().seams().to_vec()
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
    fn tools<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::loads(py, &self.snapshot().tools_json())
    }

    #[getter]
    fn nbytes(&self) -> usize {
        self.snapshot().columns().bytes()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, saved::State)> {
        let restore = slf.get_type().getattr("_restore")?;
        Ok((restore, saved::save(slf.py(), &slf.get().snapshot())))
    }

    #[classmethod]
    fn _restore(
        class: &Bound<'_, PyType>,
        fragments: Vec<saved::Fragment>,
        chat: Option<Bound<'_, PyChat>>,
    ) -> PyResult<Self> {
        saved::restore(class.py(), fragments, chat).map(Self::new)
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

/// Who a new trajectory is.
pub(super) fn identity(rollout: Option<&PyTrajectory>, agent: Option<String>, id: Option<String>) -> Identity {
    let mut identity = Identity::new(id.map(Arc::from));
    if let Some(rollout) = rollout {
        identity.rollout_id = Arc::clone(&rollout.snapshot().identity().rollout_id);
    }
    Identity { agent: agent.map(Arc::from), ..identity }
}
