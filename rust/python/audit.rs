//! `Audit`: what a chat template does to a conversation.

use pyo3::prelude::*;

use super::json;
use crate::audit::Audit;

/// The Python face of an [`Audit`].
#[pyclass(frozen, name = "Audit", module = "tokentape")]
pub(super) struct PyAudit {
    inner: Audit,
}

impl PyAudit {
    pub(super) fn new(inner: Audit) -> Self {
        Self { inner }
    }
}

#[pymethods]
impl PyAudit {
    #[getter]
    fn prefix_stable(&self) -> bool {
        self.inner.is_prefix_stable()
    }

    fn to_json(&self) -> String {
        self.inner.to_json().to_string()
    }

    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::loads(py, &self.to_json())
    }

    fn __str__(&self) -> String {
        self.inner.to_words()
    }

    fn __repr__(&self) -> String {
        let stable = if self.inner.is_prefix_stable() { "True" } else { "False" };
        format!("Audit(template={:?}, prefix_stable={stable})", self.inner.template)
    }
}
