//! `_core.Packing` and `_core.PackedBatch`: plans and packed rows as Python sees them.

#![expect(clippy::needless_pass_by_value, reason = "pyo3 hands arguments over by value")]

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int32Type, Int64Type, UInt8Type};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyTuple};
use pyo3_arrow::ffi::{ArrayIterator, to_array_pycapsules, to_schema_pycapsule, to_stream_pycapsule};

use super::arrays::frozen;
use super::batch::{Table, struct_array, struct_field, values_of};
use super::dlpack::Column;
use super::error::to_python;
use super::gil::detached;
use super::rows::numpy_of;
use crate::pack::{Overlong, PackOptions, Packing, RowWork};
use crate::plan::{PlanOptions, Work, best_fit, plan};
use crate::tree::Sharing;
use crate::{Error, Result};

/// A planned packing; bins are filled on demand.
#[pyclass(frozen, name = "Packing", module = "tokentape._core")]
pub(super) struct PyPacking(Arc<Packing>);

/// One packed batch.
#[pyclass(frozen, name = "PackedBatch", module = "tokentape._core")]
pub(super) struct PyPackedBatch(RecordBatch);

/// The cost of rows: `(linear, quadratic)`, or one value a row.
#[derive(FromPyObject)]
pub(super) enum WorkArgument<'py> {
    Model((f64, f64)),
    Given(PyReadonlyArray1<'py, f64>),
}

impl WorkArgument<'_> {
    fn into_work(self) -> PyResult<RowWork> {
        Ok(match self {
            Self::Model((linear, quadratic)) => RowWork::Model(Work { linear, quadratic }),
            Self::Given(values) => RowWork::Given(values.as_slice()?.to_vec()),
        })
    }
}

/// Plans the packing of a table.
#[pyfunction]
#[pyo3(signature = (table, *, token_budget, ranks, overlong, align, pad_token_id, max_segments, work, sharing))]
#[expect(clippy::too_many_arguments, reason = "each is an option of the user")]
pub(super) fn pack(
    py: Python<'_>,
    table: &Bound<'_, Table>,
    token_budget: u32,
    ranks: u32,
    overlong: &str,
    align: u32,
    pad_token_id: i32,
    max_segments: Option<u32>,
    work: WorkArgument<'_>,
    sharing: Option<&str>,
) -> PyResult<PyPacking> {
    let sharing = match sharing {
        None => None,
        Some("whole") => Some(Sharing::Whole),
        Some("single_next") => Some(Sharing::SingleNext),
        Some("prompt") => Some(Sharing::Prompt),
        Some(other) => {
            let error =
                Error::value(format!("share_prefixes={other:?}: give True, False, \"single_next\" or \"prompt\""));
            return Err(to_python(py, &error));
        }
    };
    let overlong = Overlong::parse(overlong).map_err(|error| to_python(py, &error))?;
    let work = work.into_work()?;
    let options = PackOptions { token_budget, ranks, overlong, align, pad_token_id, max_segments, work, sharing };
    let batch = table.get().0.clone();
    Ok(PyPacking(Arc::new(detached(py, || Packing::new(batch, options))?)))
}

/// The bin of each length, as an int32 array, and the number of bins; with ranks, bin `step * ranks + rank`.
#[pyfunction]
#[pyo3(signature = (lengths, *, token_budget, ranks, max_segments, work))]
pub(super) fn plan_bins<'py>(
    py: Python<'py>,
    lengths: PyReadonlyArray1<'py, i32>,
    token_budget: u32,
    ranks: u32,
    max_segments: Option<u32>,
    work: WorkArgument<'_>,
) -> PyResult<(Bound<'py, numpy::PyArray1<i32>>, usize, f64)> {
    let lengths = lengths.as_slice()?;
    let work = work.into_work()?;
    let planned = detached(py, || bins_of(lengths, &work, PlanOptions { budget: token_budget, max_segments, ranks }))?;
    let (bin_of, bins, imbalance) = planned;
    Ok((numpy::PyArray1::from_vec(py, bin_of), bins, imbalance))
}

fn bins_of(lengths: &[i32], work: &RowWork, options: PlanOptions) -> Result<(Vec<i32>, usize, f64)> {
    let lengths = lengths.iter().map(|length| u32::try_from(*length)).collect::<std::result::Result<Vec<u32>, _>>();
    let lengths = lengths.map_err(|_| Error::value("a length is negative"))?;
    let (bins, imbalance) = if options.ranks == 1 {
        (best_fit(&lengths, options.budget, options.max_segments)?, 1.0)
    } else {
        let work = match work {
            RowWork::Model(work) => lengths.iter().map(|length| work.of(*length)).collect(),
            RowWork::Given(values) => values.clone(),
        };
        let plan = plan(&lengths, &work, options)?;
        (plan.bins, plan.imbalance)
    };
    let mut bin_of = vec![0_i32; lengths.len()];
    for (index, rows) in bins.iter().enumerate() {
        for row in rows {
            bin_of[*row as usize] = index as i32;
        }
    }
    Ok((bin_of, bins.len(), imbalance))
}

#[pymethods]
impl PyPacking {
    #[getter]
    fn ranks(&self) -> u32 {
        self.0.plan().ranks
    }

    #[getter]
    fn micro_steps(&self) -> u32 {
        self.0.plan().micro_steps
    }

    fn bin_tokens<'py>(&self, py: Python<'py>) -> Bound<'py, numpy::PyArray1<i32>> {
        frozen(py, self.0.bin_tokens())
    }

    fn rows_of(&self, bin: usize) -> Vec<usize> {
        self.0.rows_of(bin).collect()
    }

    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let report = self.0.report();
        let dict = PyDict::new(py);
        dict.set_item("rows", report.rows)?;
        dict.set_item("tokens", report.tokens)?;
        dict.set_item("padding", report.padding)?;
        dict.set_item("bins", self.0.bins())?;
        dict.set_item("lower_bound", report.lower_bound)?;
        dict.set_item("longest", report.longest)?;
        dict.set_item("loss_cleared", report.loss_cleared)?;
        dict.set_item("shared", report.shared)?;
        dict.set_item("merged", report.merged)?;
        dict.set_item("imbalance", self.0.plan().imbalance)?;
        dict.set_item("truncated", &report.truncated)?;
        let left_out: Vec<_> = report.left_out.iter().map(|(row, why, tokens)| (*row, why.name(), *tokens)).collect();
        dict.set_item("left_out", left_out)?;
        Ok(dict)
    }

    /// The bins from `start` on that are worth filling at once, filled.
    fn page(&self, py: Python<'_>, start: usize) -> PyResult<Vec<PyPackedBatch>> {
        let page = detached(py, || self.0.fill(self.0.page(start)))?;
        Ok((0..page.num_rows()).map(|bin| PyPackedBatch(page.slice(bin, 1))).collect())
    }

    /// One bin, filled.
    fn bin(&self, py: Python<'_>, index: usize) -> PyResult<PyPackedBatch> {
        Ok(PyPackedBatch(detached(py, || self.0.fill(index..index.saturating_add(1)))?))
    }

    fn __len__(&self) -> usize {
        self.0.bins()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Ok(to_schema_pycapsule(py, self.0.schema().as_ref())?)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let packing = self.0.clone();
        let mut start = 0;
        let pages = std::iter::from_fn(move || {
            let page = packing.page(start);
            (!page.is_empty()).then(|| {
                start = page.end;
                packing.fill(page).map(|batch| struct_array(&batch)).map_err(|e| arrow_error(&e))
            })
        });
        let reader = Box::new(ArrayIterator::new(pages, struct_field(self.0.schema())));
        Ok(to_stream_pycapsule(py, reader, requested_schema)?)
    }
}

fn arrow_error(error: &Error) -> arrow_schema::ArrowError {
    arrow_schema::ArrowError::ComputeError(error.message().to_owned())
}

#[pymethods]
impl PyPackedBatch {
    /// A column of the row: a flat read-only numpy view, or a number; None where the packing has no such column.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(column) = self.0.column_by_name(name) else { return Ok(None) };
        if let Some(numbers) = column.as_primitive_opt::<Int32Type>() {
            return Ok(Some(numbers.value(0).into_pyobject(py)?.into_any()));
        }
        let Some(values) = column.as_list_opt::<i32>().map(|list| list.value(0)) else { return Ok(None) };
        let view = numpy_of::<Int32Type>(py, &values).or_else(|| numpy_of::<UInt8Type>(py, &values));
        let view = view.or_else(|| numpy_of::<Float32Type>(py, &values)).or_else(|| numpy_of::<Int64Type>(py, &values));
        view.transpose()
    }

    /// A list column of the row for `DLPack`.
    fn values(&self, name: &str) -> Option<Column> {
        self.0
            .column_by_name(name)
            .filter(|column| column.as_list_opt::<i32>().is_some())
            .and_then(values_of)
            .as_ref()
            .and_then(Column::new)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Ok(to_schema_pycapsule(py, self.0.schema_ref().as_ref())?)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let field = struct_field(self.0.schema_ref());
        Ok(to_array_pycapsules(py, field, &struct_array(&self.0), requested_schema)?)
    }
}
