//! The Python extension module `tokentape._core`: a thin layer that converts, releases the GIL, and maps errors.

mod error;
mod gil;

use pyo3::prelude::*;

/// The engine of tokentape.
#[pymodule(gil_used = false)]
mod _core {
    use super::*;

    /// `"release"`, or `"debug"` for a build that is many times slower.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("build_profile", if cfg!(debug_assertions) { "debug" } else { "release" })
    }
}
