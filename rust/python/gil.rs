//! One way out of Python and back: release the GIL, run, map the error.

use pyo3::prelude::*;

use crate::{Error, Result};

/// Runs `work` without the GIL, and turns its error into the Python exception of its kind.
///
/// A panic in `work` would be a fault of this library; it reaches Python as an exception (`PanicException`), never as an
/// abort.
pub(super) fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    py.detach(work).map_err(|error: Error| super::error::to_python(py, &error))
}
