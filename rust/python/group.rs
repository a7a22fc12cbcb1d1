//! `Group`: trajectories in, a group with returns and advantages out.

use std::sync::Arc;

use numpy::PyArray1;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyList, PyType};

use super::arrays::frozen;
use super::error::to_python;
use super::gil::detached;
use super::trajectory::PyTrajectory;
use crate::advantage::{Advantages, Estimator};
use crate::columns::Origin;
use crate::group::{Assigned, Group, ShareCredit, TurnKey};
use crate::trajectory::{Identity, Stage, Trajectory};
use crate::{Error, Result};

/// The Python face of a [`Group`].
#[pyclass(frozen, name = "Group", module = "tokentape")]
pub(super) struct PyGroup {
    group: Arc<Group>,
}

impl PyGroup {
    fn new(group: Group) -> Self {
        Self { group: Arc::new(group) }
    }

    /// The group, for other bindings.
    pub(super) fn group(&self) -> &Arc<Group> {
        &self.group
    }
}

#[pymethods]
impl PyGroup {
    #[new]
    #[pyo3(signature = (trajectories, *, id=None, env=""))]
    fn create(trajectories: &Bound<'_, PyAny>, id: Option<String>, env: &str) -> PyResult<Self> {
        let given = trajectories.try_iter()?.map(|given| Ok(given?.cast::<PyTrajectory>()?.get().snapshot()));
        let given = given.collect::<PyResult<Vec<Arc<Trajectory>>>>()?;
        let id = id.map_or_else(|| Identity::new(None).id, Arc::from);
        detached(trajectories.py(), || Group::new(id, env.into(), &given)).map(Self::new)
    }

    #[pyo3(
        signature = (how="grpo".into(), *, per_turn=false, share_credit="mean", ddof=1, eps=0.0),
        text_signature = "($self, how='grpo', *, per_turn=False, share_credit='mean', ddof=1, eps=0.0)"
    )]
    fn with_advantages(
        &self,
        py: Python<'_>,
        how: How,
        per_turn: bool,
        share_credit: &str,
        ddof: u32,
        eps: f64,
    ) -> PyResult<Self> {
        let raise = |error: Error| to_python(py, &error);
        let share = ShareCredit::parse(share_credit).map_err(raise)?;
        let estimator = how.estimator(py, ddof, eps)?;
        // An exception of the callable passes through as it is, not as an error of the engine.
        let mut raised = None;
        let estimate = |returns: &[f64]| {
            estimator.estimate(py, returns).unwrap_or_else(|error| {
                raised = Some(error);
                Ok(Advantages { values: vec![0.0; returns.len()], zero_variance: true })
            })
        };
        let group = if per_turn {
            self.group.with_turn_advantages(estimate)
        } else {
            self.group.with_advantages(share, estimate)
        };
        raised.map_or(Ok(()), Err)?;
        group.map(Self::new).map_err(raise)
    }

    fn with_env(&self, env: &str) -> Self {
        Self::new(self.group.with_env(env.into()))
    }

    #[getter]
    fn id(&self) -> &str {
        self.group.id()
    }

    #[getter]
    fn env(&self) -> &str {
        self.group.env()
    }

    #[getter]
    fn rollouts(&self) -> usize {
        self.group.rollouts()
    }

    #[getter]
    fn trajectories(&self) -> usize {
        self.group.trajectories().len()
    }

    #[getter]
    fn returns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let returns = self.group.returns().map_err(|error| to_python(py, &error))?;
        Ok(frozen(py, returns))
    }

    #[getter]
    fn advantages<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f64>>> {
        self.group.advantages().map(|values| frozen(py, values.to_vec()))
    }

    #[getter]
    fn zero_variance(&self) -> Option<bool> {
        self.group.zero_variance()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, State<'py>)> {
        let (py, group) = (slf.py(), &slf.get().group);
        let leaves = group.trajectories().iter().filter(|row| row.stage() != Stage::Superseded);
        let leaves = leaves.map(|row| Py::new(py, PyTrajectory::of(Arc::clone(row)))).collect::<PyResult<Vec<_>>>()?;
        let state = (PyList::new(py, leaves)?, group.id(), group.env(), group.assigned().map(saved));
        Ok((slf.get_type().getattr("_restore")?, (state.0, state.1.to_string(), state.2.to_string(), state.3)))
    }

    #[classmethod]
    fn _restore(
        _class: &Bound<'_, PyType>,
        leaves: &Bound<'_, PyAny>,
        id: String,
        env: &str,
        assigned: Option<Saved>,
    ) -> PyResult<Self> {
        let assigned = assigned.map(restored).transpose().map_err(|error| to_python(leaves.py(), &error))?;
        Ok(Self::new(Self::create(leaves, Some(id), env)?.group.with_assigned(assigned)))
    }

    fn __len__(&self) -> usize {
        self.group.trajectories().len()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let rows = self.group.trajectories().iter().map(|row| PyTrajectory::of(Arc::clone(row)));
        let rows = rows.map(|row| Py::new(py, row)).collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, rows)?.try_iter()
    }

    fn __getitem__(&self, index: isize) -> PyResult<PyTrajectory> {
        let rows = self.group.trajectories();
        let place = if index < 0 { index + rows.len() as isize } else { index };
        let row = usize::try_from(place).ok().and_then(|place| rows.get(place));
        row.map(|row| PyTrajectory::of(Arc::clone(row)))
            .ok_or_else(|| PyIndexError::new_err(format!("row {index} of a group of {} rows", rows.len())))
    }

    fn __repr__(&self) -> String {
        format!("Group(id='{}', {} rollouts, {} rows)", self.group.id(), self.rollouts(), self.trajectories())
    }
}

/// What a group is restored from.
type State<'py> = (Bound<'py, PyList>, String, String, Option<Saved>);

/// Assigned advantages: the share rule, values of units, values of turns by trajectory, epoch and start, the flag.
type Saved = (String, Vec<f64>, Option<Vec<(String, u32, u32, f64)>>, bool);

fn saved(assigned: Assigned) -> Saved {
    let turn = |((origin, start), value): (TurnKey, f64)| (origin.trajectory.to_string(), origin.epoch, start, value);
    let turns = assigned.turns.map(|turns| turns.into_iter().map(turn).collect());
    (assigned.share.name().into(), assigned.units, turns, assigned.zero_variance)
}

fn restored((share, units, turns, zero_variance): Saved) -> Result<Assigned> {
    let turn = |(trajectory, epoch, start, value): (String, u32, u32, f64)| {
        ((Origin { trajectory: trajectory.into(), epoch }, start), value)
    };
    let turns = turns.map(|turns| turns.into_iter().map(turn).collect());
    Ok(Assigned { share: ShareCredit::parse(&share)?, units, turns, zero_variance })
}

/// The name of an estimator, or a callable in its place.
#[derive(FromPyObject)]
enum How {
    Name(String),
    Callable(Py<PyAny>),
}

impl From<&str> for How {
    fn from(name: &str) -> Self {
        Self::Name(name.into())
    }
}

impl How {
    fn estimator(self, py: Python<'_>, ddof: u32, eps: f64) -> PyResult<Chosen> {
        let chosen = match self {
            Self::Callable(callable) if callable.bind(py).is_callable() => Ok(Chosen::Callable(callable)),
            Self::Callable(other) => Err(other.bind(py).to_string()),
            Self::Name(name) => match name.as_str() {
                "grpo" => Ok(Chosen::Named(Estimator::Grpo { ddof, eps })),
                "dr_grpo" => Ok(Chosen::Named(Estimator::DrGrpo)),
                "rloo" => Ok(Chosen::Named(Estimator::Rloo)),
                _ => Err(format!("'{name}'")),
            },
        };
        chosen.map_err(|what| {
            let message = format!("with_advantages: {what} is none of 'grpo', 'dr_grpo', 'rloo', nor a callable");
            to_python(py, &Error::value(message))
        })
    }
}

enum Chosen {
    Named(Estimator),
    Callable(Py<PyAny>),
}

impl Chosen {
    /// Outer error: an exception of the callable.
    fn estimate(&self, py: Python<'_>, returns: &[f64]) -> PyResult<Result<Advantages>> {
        match self {
            Self::Named(estimator) => Ok(Ok(estimator.estimate(returns))),
            Self::Callable(callable) => {
                let values: Vec<f64> = callable.call1(py, (frozen(py, returns.to_vec()),))?.extract(py)?;
                let zero_variance = values.iter().all(|value| *value == 0.0);
                Ok(Ok(Advantages { values, zero_variance }))
            }
        }
    }
}
