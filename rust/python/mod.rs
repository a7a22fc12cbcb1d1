//! The Python extension module `tokentape._core`: a thin layer that converts, releases the GIL, and maps errors.

mod arrays;
mod audit;
mod batch;
mod chat;
mod convert;
mod dlpack;
mod error;
mod gil;
mod group;
mod json;
mod many;
mod merge;
mod options;
mod pack;
mod parse;
mod rendered;
mod rows;
mod saved;
mod span;
mod stream;
mod template;
mod trajectory;
mod turn;
mod verify;

/// The engine of tokentape.
#[pyo3::pymodule(gil_used = false)]
mod _core {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::audit::PyAudit;
    #[pymodule_export]
    use super::batch::{Table, TableWriter, trajectories_schema};
    #[pymodule_export]
    use super::chat::PyChat;
    #[pymodule_export]
    use super::dlpack::Column;
    #[pymodule_export]
    use super::group::PyGroup;
    #[pymodule_export]
    use super::merge::merge;
    #[pymodule_export]
    use super::pack::{PyPackedBatch, PyPacking, pack, plan_bins};
    #[pymodule_export]
    use super::parse::{PyMessage, PyParseStream, PyToolCall};
    #[pymodule_export]
    use super::rendered::PyRendered;
    #[pymodule_export]
    use super::span::{PyAssistantSpans, PySeam, PySpan};
    #[pymodule_export]
    use super::stream::PyTextStream;
    #[pymodule_export]
    use super::template::{PyChatTemplate, PyRenderedText};
    #[pymodule_export]
    use super::trajectory::PyTrajectory;
    #[pymodule_export]
    use super::turn::{PyDivergence, PyTurn};
    #[pymodule_export]
    use super::verify::{PyLinter, PyProver};

    /// `"release"`, or `"debug"` for a build that is many times slower.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("build_profile", if cfg!(debug_assertions) { "debug" } else { "release" })
    }
}
