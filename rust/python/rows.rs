//! One row between Python and the engine: a dict in, a dict with read-only numpy views out.

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Float32Type, Int32Type, Int64Type, UInt8Type};
use arrow_array::{Array, ArrayRef, ListArray, RecordBatch};
use numpy::{PyArray1, PyArrayDescrMethods, PyArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFloat, PyInt, PyList};
use pyo3_arrow::buffer::PyArrowBuffer;

use super::error::to_python;
use crate::Error;
use crate::row::{Fork, Row, TurnRow, VersionRun};
use crate::top_logprobs::TopLogprobs;

/// The row that a mapping with the column names of the contract describes.
pub(super) fn row_from(index: usize, row: &Bound<'_, PyAny>) -> PyResult<Row> {
    let source = Source { index, row };
    let token_ids: Vec<i32> = source.required("token_ids")?;
    let length = token_ids.len();
    let sampled_mask: Vec<u8> = source.list("sampled_mask")?.unwrap_or_else(|| vec![0; length]);
    Ok(Row {
        group_id: source.text("group_id", "")?,
        rollout_id: source.text("rollout_id", "")?,
        trajectory_id: source.text("trajectory_id", "")?,
        env: source.text("env", "")?,
        agent: source.value("agent")?,
        fork: fork(&source)?,
        loss_mask: source.list("loss_mask")?.unwrap_or_else(|| sampled_mask.clone()),
        loss_weight: source.list("loss_weight")?,
        logprobs: source.list("logprobs")?,
        ref_logprobs: source.list("ref_logprobs")?,
        top_logprobs: top_logprobs(&source)?,
        advantages: source.list("advantages")?,
        message_index: source.list("message_index")?.unwrap_or_else(|| vec![-1; length]),
        turns: source.items("turns")?.unwrap_or_default().iter().map(turn).collect::<PyResult<_>>()?,
        policy_versions: versions(&source)?,
        reward: source.value("reward")?,
        metrics: source.text("metrics", "{}")?,
        messages: source.text("messages", "[]")?,
        tools: source.text("tools", "[]")?,
        provenance: source.text("provenance", "{}")?,
        token_ids,
        sampled_mask,
    })
}

/// A mapping, and where it stands among its kind.
struct Source<'a, 'py> {
    index: usize,
    row: &'a Bound<'py, PyAny>,
}

impl<'py> Source<'_, 'py> {
    /// The value under a key; `None` where it is missing or None.
    fn get(&self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let value = self.row.call_method1("get", (name,))?;
        Ok((!value.is_none()).then_some(value))
    }

    fn value<T: for<'a> FromPyObject<'a, 'py, Error: Into<PyErr>>>(&self, name: &str) -> PyResult<Option<T>> {
        let Some(value) = self.get(name)? else { return Ok(None) };
        value.extract::<T>().map(Some).map_err(|error| self.refused(name, &error.into()))
    }

    fn text(&self, name: &str, default: &str) -> PyResult<String> {
        Ok(self.value(name)?.unwrap_or_else(|| default.to_owned()))
    }

    fn items(&self, name: &str) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
        self.value(name)
    }

    fn list<T: Number>(&self, name: &str) -> PyResult<Option<Vec<T>>> {
        let Some(value) = self.get(name)? else { return Ok(None) };
        numbers(&value).map(Some).map_err(|error| self.refused(name, &error))
    }

    fn required<T: Number>(&self, name: &str) -> PyResult<Vec<T>> {
        let missing = || to_python(self.row.py(), &Error::schema(format!("row {}: `{name}` is missing", self.index)));
        self.list(name)?.ok_or_else(missing)
    }

    fn refused(&self, name: &str, error: &PyErr) -> PyErr {
        let py = self.row.py();
        to_python(py, &Error::schema(format!("row {}: `{name}` cannot be read: {}", self.index, error.value(py))))
    }
}

/// A value of a per-token column.
trait Number: numpy::Element + Copy {
    /// The values of a list of plain numbers; `None` where one is of another kind or does not fit.
    fn of(list: &Bound<'_, PyList>) -> Option<Vec<Self>>;
}

impl Number for i32 {
    fn of(list: &Bound<'_, PyList>) -> Option<Vec<Self>> {
        // A tuple cannot change while it is read, so that its items need not be counted one by one.
        list.to_tuple().iter_borrowed().map(|item| Self::try_from(integer(&item)?).ok()).collect()
    }
}

impl Number for u8 {
    fn of(list: &Bound<'_, PyList>) -> Option<Vec<Self>> {
        // Python's own constructor, which refuses what is no integer from 0 to 255.
        Some(list.py().get_type::<PyBytes>().call1((list,)).ok()?.cast_into::<PyBytes>().ok()?.as_bytes().to_vec())
    }
}

impl Number for f32 {
    fn of(list: &Bound<'_, PyList>) -> Option<Vec<Self>> {
        let value = |item: Borrowed<'_, '_, PyAny>| Some(item.cast_exact::<PyFloat>().ok()?.value() as Self);
        list.to_tuple().iter_borrowed().map(value).collect()
    }
}

/// The value of a Python integer; `None` for other objects and for what does not fit.
///
/// `extract` would make a new reference to `__index__()` first, which takes three times as long.
fn integer(item: &Bound<'_, PyAny>) -> Option<i64> {
    let item = item.cast_exact::<PyInt>().ok()?;
    // SAFETY: the pointer is that of a live Python integer, and the thread holds the GIL.
    #[expect(unsafe_code, reason = "measured: lists of ids are read at twice the speed")]
    let value = unsafe { pyo3::ffi::PyLong_AsLong(item.as_ptr()) };
    let failed = value == -1 && PyErr::take(item.py()).is_some();
    (!failed).then_some(value)
}

/// The numbers of an array or sequence. Values keep their meaning: a float is no id, and nothing wraps around.
fn numbers<T: Number>(value: &Bound<'_, PyAny>) -> PyResult<Vec<T>> {
    let py = value.py();
    if let Ok(array) = value.cast::<PyArray1<T>>() {
        return Ok(array.readonly().as_array().to_vec());
    }
    // A list of plain numbers is read here, several times faster; numpy reads the rest, or says what is wrong.
    if let Ok(list) = value.cast_exact::<PyList>()
        && let Some(found) = T::of(list)
    {
        return Ok(found);
    }
    let numpy = py.import("numpy")?;
    let found = numpy.call_method1("asarray", (value,))?;
    let wanted = numpy::dtype::<T>(py);
    let empty = found.getattr("size")?.extract::<usize>()? == 0;
    if !empty && found.getattr("dtype")?.getattr("kind")?.extract::<String>()? == "f" && wanted.kind() != b'f' {
        return Err(PyTypeError::new_err("expected integers, found floats"));
    }
    let cast = found.call_method1("astype", (&wanted,))?;
    if !wanted.kind().eq(&b'f') && !empty && !numpy.call_method1("array_equal", (&cast, &found))?.is_truthy()? {
        return Err(PyTypeError::new_err(format!("a value does not fit into {wanted}")));
    }
    Ok(cast.cast::<PyArray1<T>>()?.readonly().as_array().to_vec())
}

fn fork(source: &Source<'_, '_>) -> PyResult<Option<Fork>> {
    let Some(parent_id) = source.value("parent_id")? else { return Ok(None) };
    let at = source.value("fork_at")?.unwrap_or_default();
    Ok(Some(Fork { parent_id, at, kind: source.text("fork_kind", "history")? }))
}

fn turn(item: &Bound<'_, PyAny>) -> PyResult<TurnRow> {
    let reward = item.call_method1("get", ("reward",))?;
    Ok(TurnRow {
        start: item.get_item("start")?.extract()?,
        end: item.get_item("end")?.extract()?,
        message: item.get_item("message")?.extract()?,
        finish_reason: item.get_item("finish_reason")?.extract()?,
        reward: reward.extract()?,
    })
}

fn top_logprobs(source: &Source<'_, '_>) -> PyResult<Option<TopLogprobs>> {
    let Some(items) = source.items("top_logprobs")? else { return Ok(None) };
    let mut top = TopLogprobs::default();
    for item in items {
        let ids: Vec<i32> = numbers(&item.get_item("ids")?).map_err(|error| source.refused("top_logprobs", &error))?;
        let values: Vec<f32> =
            numbers(&item.get_item("logprobs")?).map_err(|error| source.refused("top_logprobs", &error))?;
        if ids.len() != values.len() {
            let error = PyTypeError::new_err(format!("{} ids with {} logprobs", ids.len(), values.len()));
            return Err(source.refused("top_logprobs", &error));
        }
        top.push(ids.into_iter().zip(values));
    }
    Ok(Some(top))
}

fn versions(source: &Source<'_, '_>) -> PyResult<Option<Vec<VersionRun>>> {
    let Some(items) = source.items("policy_versions")? else { return Ok(None) };
    let runs = items.iter().map(|item| {
        let at = |name: &str| item.get_item(name);
        Ok(VersionRun {
            start: at("start")?.extract()?,
            end: at("end")?.extract()?,
            version: at("version")?.extract()?,
        })
    });
    runs.collect::<PyResult<_>>().map(Some)
}

/// A row as a dict: texts and numbers as they are, per-token columns as read-only numpy views of the Arrow buffers.
pub(super) fn row_into<'py>(py: Python<'py>, batch: &RecordBatch, row: usize) -> PyResult<Bound<'py, PyDict>> {
    let result = PyDict::new(py);
    for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        if let Some(value) = cell(py, column, row)? {
            result.set_item(field.name(), value)?;
        }
    }
    Ok(result)
}

/// One value; `None` for a type that the contract does not use.
fn cell<'py>(py: Python<'py>, column: &ArrayRef, row: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
    if column.is_null(row) {
        return Ok(Some(py.None().into_bound(py)));
    }
    if let Some(texts) = column.as_string_opt::<i32>() {
        return Ok(Some(texts.value(row).into_pyobject(py)?.into_any()));
    }
    if let Some(list) = column.as_list_opt::<i32>() {
        return list_cell(py, list, row);
    }
    if let Some(numbers) = column.as_primitive_opt::<Int32Type>() {
        return Ok(Some(numbers.value(row).into_pyobject(py)?.into_any()));
    }
    if let Some(numbers) = column.as_primitive_opt::<Int64Type>() {
        return Ok(Some(numbers.value(row).into_pyobject(py)?.into_any()));
    }
    let floats = column.as_primitive_opt::<Float32Type>();
    floats.map(|floats| Ok(floats.value(row).into_pyobject(py)?.into_any())).transpose()
}

fn list_cell<'py>(py: Python<'py>, list: &ListArray, row: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
    let values = list.value(row);
    if let Some(items) = values.as_struct_opt() {
        let names = items.column_names();
        let dicts = (0..items.len()).map(|item| {
            let dict = PyDict::new(py);
            for (name, column) in names.iter().zip(items.columns()) {
                dict.set_item(name, cell(py, column, item)?)?;
            }
            Ok(dict)
        });
        return Ok(Some(PyList::new(py, dicts.collect::<PyResult<Vec<_>>>()?)?.into_any()));
    }
    let view = numpy_of::<Int32Type>(py, &values).or_else(|| numpy_of::<UInt8Type>(py, &values));
    let view = view.or_else(|| numpy_of::<Float32Type>(py, &values)).or_else(|| numpy_of::<Int64Type>(py, &values));
    view.transpose()
}

/// A read-only numpy view of the values of a primitive array, if it has this type.
pub(super) fn numpy_of<'py, T>(py: Python<'py>, array: &ArrayRef) -> Option<PyResult<Bound<'py, PyAny>>>
where
    T: ArrowPrimitiveType<Native: numpy::Element>,
{
    let values = array.as_primitive_opt::<T>()?.values();
    let dtype = numpy::dtype::<T::Native>(py);
    Some((|| {
        let numpy = py.import("numpy")?;
        if values.is_empty() {
            return numpy.call_method1("empty", (0, dtype));
        }
        let buffer = Bound::new(py, PyArrowBuffer::new(values.inner().clone()))?;
        numpy.call_method1("frombuffer", (buffer, dtype))
    })())
}
