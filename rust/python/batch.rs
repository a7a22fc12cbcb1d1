//! `_core.Table`: the rows of a [`Batch`] as Python sees them.

#![expect(clippy::needless_pass_by_value, reason = "pyo3 hands arguments over by value")]

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, StructArray};
use arrow_buffer::Buffer;
use arrow_schema::{ArrowError, Field, FieldRef, Schema};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyTuple};
use pyo3_arrow::buffer::PyArrowBuffer;
use pyo3_arrow::ffi::{ArrayIterator, to_array_pycapsules, to_schema_pycapsule, to_stream_pycapsule};
use pyo3_arrow::input::AnyRecordBatch;

use super::dlpack::Column;
use super::error::to_python;
use super::gil::detached;
use super::group::PyGroup;
use super::rows::{row_from, row_into};
use crate::arrow::{Batch, BatchEstimator, Damage, Rewards, ToCome, Writer, schema};
use crate::pack::Pool;
use crate::row::Row;
use crate::{Error, Result};

/// A table `tokentape.trajectories`.
#[pyclass(frozen, module = "tokentape._core")]
pub(super) struct Table(pub(super) Batch);

#[pymethods]
impl Table {
    #[staticmethod]
    #[pyo3(signature = (data, *, validate))]
    fn from_arrow(py: Python<'_>, data: &Bound<'_, PyAny>, validate: bool) -> PyResult<Self> {
        let (found, batches) = import(py, data)?;
        let batch = detached(py, || checked(Batch::from_record_batches(&found, &batches)?, validate))?;
        Ok(Self(batch))
    }

    #[staticmethod]
    #[pyo3(signature = (rows, *, validate))]
    fn from_rows(py: Python<'_>, rows: &Bound<'_, PyAny>, validate: bool) -> PyResult<Self> {
        let rows: Vec<Row> =
            rows.try_iter()?.enumerate().map(|(i, row)| row_from(i, &row?)).collect::<PyResult<_>>()?;
        Ok(Self(detached(py, || checked(Batch::from_rows(&rows)?, validate))?))
    }

    #[staticmethod]
    fn from_groups(py: Python<'_>, groups: Vec<PyRef<'_, PyGroup>>) -> PyResult<Self> {
        let groups: Vec<_> = groups.iter().map(|group| group.group().clone()).collect();
        let rows = || groups.iter().map(|group| group.rows()).collect::<Result<Vec<_>>>();
        Ok(Self(detached(py, || Batch::from_rows(&rows()?.concat()))?))
    }

    #[staticmethod]
    fn from_stream(py: Python<'_>, stream: PyArrowBuffer) -> PyResult<Self> {
        Ok(Self(detached(py, || Batch::from_stream(stream.into_inner()))?))
    }

    #[staticmethod]
    #[pyo3(signature = (file, *, validate))]
    fn from_file(py: Python<'_>, file: PyArrowBuffer, validate: bool) -> PyResult<Option<Self>> {
        let read = || match Batch::from_file(file.as_ref()) {
            Ok(batch) => checked(batch, validate).map(Some),
            Err(Damage::Compressed) => Ok(None),
            Err(Damage::Refused(error)) => Err(error),
        };
        Ok(detached(py, read)?.map(Self))
    }

    #[staticmethod]
    fn concat(py: Python<'_>, parts: Vec<PyRef<'_, Self>>) -> PyResult<Self> {
        let parts: Vec<Batch> = parts.iter().map(|part| part.0.clone()).collect();
        Ok(Self(detached(py, || Batch::concat(&parts))?))
    }

    fn write_file(&self, py: Python<'_>, path: std::path::PathBuf) -> PyResult<()> {
        let written = py.detach(|| self.0.write_file(File::create(path)?));
        written.map_err(|error| write_error(py, error))
    }

    /// The rows as an Arrow IPC stream: an object of the buffer protocol.
    fn to_stream(&self, py: Python<'_>) -> PyResult<PyArrowBuffer> {
        let joined = py.detach(|| Ok(joined(&self.0.stream()?)));
        joined.map(PyArrowBuffer::new).map_err(|error| write_error(py, error))
    }

    /// The flat values of a column that has no nulls; of a list column those of all rows.
    fn column(&self, py: Python<'_>, name: &str) -> PyResult<Option<Column>> {
        let combined = detached(py, || self.0.combined())?;
        let [batch] = combined.record_batches() else { return Ok(None) };
        Ok(batch.column_by_name(name).and_then(values_of).as_ref().and_then(Column::new))
    }

    fn validate(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || self.0.validate())
    }

    /// Advantages from an estimator by name, or from one float32 value per row or per token.
    #[pyo3(signature = (how, *, rewards, values, discount, trace))]
    fn with_advantages(
        &self,
        py: Python<'_>,
        how: AdvantagesArgument<'_>,
        rewards: Option<RewardsArgument<'_>>,
        values: Option<numpy::PyReadonlyArray1<'_, f32>>,
        discount: f64,
        trace: f64,
    ) -> PyResult<Self> {
        let rewards = RewardsArgument::read(py, rewards)?;
        let values = values.map(|values| Ok::<_, PyErr>(values.as_slice()?.to_vec())).transpose()?;
        let given = ToCome { rewards, values, discount, trace };
        let estimator = how.into_estimator(py, self.0.len(), given)?;
        Ok(Self(detached(py, || self.0.with_advantages(&estimator))?))
    }

    fn filter(&self, py: Python<'_>, keep: numpy::PyReadonlyArray1<'_, bool>) -> PyResult<Self> {
        let keep = keep.as_slice()?;
        Ok(Self(detached(py, || self.0.filter(keep))?))
    }

    fn take(&self, py: Python<'_>, rows: Vec<usize>) -> PyResult<Self> {
        Ok(Self(detached(py, || self.0.take(&rows))?))
    }

    fn slice(&self, start: usize, length: usize) -> Self {
        Self(self.0.slice(start, length))
    }

    fn combined(&self, py: Python<'_>) -> PyResult<Self> {
        Ok(Self(detached(py, || self.0.combined())?))
    }

    fn row<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyDict>> {
        let (batch, local) = self.0.locate(index).map_err(|error| to_python(py, &error))?;
        row_into(py, &self.0.record_batches()[batch], local)
    }

    fn tokens(&self, py: Python<'_>) -> PyResult<usize> {
        detached(py, || self.0.tokens())
    }

    #[getter]
    fn column_names(&self) -> Vec<&str> {
        self.0.schema().fields().iter().map(|field| field.name().as_str()).collect()
    }

    fn __len__(&self) -> usize {
        self.0.len()
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
        let arrays: Vec<_> = self.0.record_batches().iter().map(|batch| Ok(struct_array(batch))).collect();
        let reader = Box::new(ArrayIterator::new(arrays, struct_field(self.0.schema())));
        Ok(to_stream_pycapsule(py, reader, requested_schema)?)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let combined = detached(py, || self.0.combined())?;
        let [batch] = combined.record_batches() else {
            let error = Error::schema("the batch has more values than one Arrow array holds: use __arrow_c_stream__");
            return Err(to_python(py, &error));
        };
        Ok(to_array_pycapsules(py, struct_field(self.0.schema()), &struct_array(batch), requested_schema)?)
    }
}

/// The values of a list column without null lists, or a column of numbers itself.
pub(super) fn values_of(column: &ArrayRef) -> Option<ArrayRef> {
    let Some(list) = column.as_list_opt::<i32>() else { return Some(column.clone()) };
    let (from, to) = (list.value_offsets().first()?, list.value_offsets().last()?);
    (list.null_count() == 0).then(|| list.values().slice(*from as usize, (to - from) as usize))
}

/// An Arrow IPC file that grows batch by batch.
#[pyclass(frozen, module = "tokentape._core")]
pub(super) struct TableWriter(Mutex<Option<Writer<File>>>);

#[pymethods]
impl TableWriter {
    #[new]
    fn open(py: Python<'_>, path: std::path::PathBuf, like: &Bound<'_, Table>) -> PyResult<Self> {
        let writer =
            File::create(path).map_err(ArrowError::from).and_then(|file| Writer::new(file, like.get().0.schema()));
        Ok(Self(Mutex::new(Some(writer.map_err(|error| write_error(py, error))?))))
    }

    fn write(&self, py: Python<'_>, table: &Bound<'_, Table>) -> PyResult<()> {
        let table = &table.get().0;
        let written = py.detach(|| self.lock().as_mut().map_or_else(|| Err(closed()), |writer| writer.write(table)));
        written.map_err(|error| write_error(py, error))
    }

    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        let finished = py.detach(|| self.lock().take().map_or_else(|| Err(closed()), Writer::finish));
        finished.map_err(|error| write_error(py, error))
    }
}

impl TableWriter {
    fn lock(&self) -> MutexGuard<'_, Option<Writer<File>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn closed() -> ArrowError {
    ArrowError::SchemaError(String::from("the file is closed"))
}

/// The name of an estimator, or values: one a row, or one a token.
#[derive(FromPyObject)]
pub(super) enum AdvantagesArgument<'py> {
    Name(String),
    Values(numpy::PyReadonlyArray1<'py, f32>),
}

impl AdvantagesArgument<'_> {
    fn into_estimator(self, py: Python<'_>, rows: usize, to_come: ToCome) -> PyResult<BatchEstimator> {
        match self {
            Self::Name(name) if name == "reinforce_pp" => Ok(BatchEstimator::ReinforcePlusPlus(to_come)),
            Self::Name(name) if name == "reinforce_pp_baseline" => Ok(BatchEstimator::ReinforcePlusPlusBaseline),
            Self::Name(name) if name == "gae" => Ok(BatchEstimator::Gae(to_come)),
            Self::Name(name) if name == "whiten" => Ok(BatchEstimator::Whiten),
            Self::Name(name) => {
                let error = Error::value(format!(
                    "how={name:?} is none of \"reinforce_pp\", \"reinforce_pp_baseline\", \"gae\", \"whiten\", or an array"
                ));
                Err(to_python(py, &error))
            }
            Self::Values(values) if values.len()? == rows => Ok(BatchEstimator::Rows(values.as_slice()?.to_vec())),
            Self::Values(values) => Ok(BatchEstimator::Tokens(values.as_slice()?.to_vec())),
        }
    }
}

/// Where rewards come from: "turns", or one value a token.
#[derive(FromPyObject)]
pub(super) enum RewardsArgument<'py> {
    Name(String),
    Values(numpy::PyReadonlyArray1<'py, f32>),
}

impl RewardsArgument<'_> {
    fn read(py: Python<'_>, argument: Option<Self>) -> PyResult<Rewards> {
        match argument {
            None => Ok(Rewards::Rows),
            Some(Self::Name(name)) if name == "turns" => Ok(Rewards::Turns),
            Some(Self::Name(name)) => {
                Err(to_python(py, &Error::value(format!("rewards={name:?} is neither \"turns\" nor an array"))))
            }
            Some(Self::Values(values)) => Ok(Rewards::Tokens(values.as_slice()?.to_vec())),
        }
    }
}

/// The schema of `tokentape.trajectories`, as a capsule of the Arrow C data interface.
#[pyfunction]
pub(super) fn trajectories_schema(py: Python<'_>) -> PyResult<Bound<'_, PyCapsule>> {
    Ok(to_schema_pycapsule(py, schema::trajectories().as_ref())?)
}

/// A record batch as an array of structs, as the C data interface carries it.
pub(super) fn struct_array(batch: &RecordBatch) -> ArrayRef {
    Arc::new(StructArray::from(batch.clone()))
}

/// The field of [`struct_array`], with the metadata of the schema.
pub(super) fn struct_field(schema: &Schema) -> FieldRef {
    Arc::new(Field::new_struct("", schema.fields().clone(), false).with_metadata(schema.metadata().clone()))
}

fn checked(batch: Batch, validate: bool) -> Result<Batch> {
    if validate {
        batch.validate()?;
    }
    Ok(batch)
}

/// The schema and record batches of any object of the Arrow `PyCapsule` interface.
fn import(py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<(Schema, Vec<RecordBatch>)> {
    let refused = |error: &PyErr| {
        let kind = data.get_type().name().map_or_else(|_| String::from("object"), |name| name.to_string());
        let error = Error::schema(format!(
            "cannot read a table from {kind}: {}; pass a table or record batch of pyarrow, polars, nanoarrow, duckdb \
             or any object with __arrow_c_stream__ or __arrow_c_array__",
            error.value(py)
        ));
        to_python(py, &error)
    };
    // On a hostile schema the importer panics: names that are no UTF-8, types that do not exist.
    let reader =
        catch_unwind(AssertUnwindSafe(|| data.extract::<AnyRecordBatch>().and_then(AnyRecordBatch::into_reader)));
    let reader =
        reader.unwrap_or_else(|_| Err(PyValueError::new_err("its schema is damaged"))).map_err(|e| refused(&e))?;
    let schema = reader.schema().as_ref().clone();
    // The producer of the stream may be Python code: it is drained with the GIL held.
    let batches = catch_unwind(AssertUnwindSafe(|| reader.collect::<std::result::Result<Vec<_>, ArrowError>>()));
    let batches = batches.unwrap_or_else(|_| Err(ArrowError::CDataInterface(String::from("its arrays are damaged"))));
    let batches =
        batches.map_err(|error| to_python(py, &Error::schema(format!("the Arrow stream failed: {error}"))))?;
    Ok((schema, batches))
}

/// Buffers of streams that were sent: whoever encodes group after group touches no fresh pages.
static STREAMS: Pool = Pool::new(2);
/// A stream that is larger than this is not kept for the next one.
const KEPT_STREAM: usize = 1 << 25;

/// The parts of a stream side by side.
fn joined(parts: &[Buffer]) -> Buffer {
    let length = parts.iter().map(Buffer::len).sum();
    let mut bytes = STREAMS.take(length);
    let mut rest = bytes.as_slice_mut();
    for part in parts {
        let (place, after) = rest.split_at_mut(part.len());
        place.copy_from_slice(part);
        rest = after;
    }
    let whole: Buffer = bytes.into();
    if whole.len() <= KEPT_STREAM {
        STREAMS.keep(&whole);
    }
    whole.slice_with_length(0, length)
}

fn write_error(py: Python<'_>, error: ArrowError) -> PyErr {
    match error {
        ArrowError::IoError(_, error) => error.into(),
        ArrowError::ExternalError(error) => PyOSError::new_err(error.to_string()),
        error => to_python(py, &Error::schema(format!("the table cannot be written: {error}"))),
    }
}
