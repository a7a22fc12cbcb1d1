//! Arrays across the border: any sequence of numbers in, read-only numpy arrays out.

use numpy::npyffi::NPY_ARRAY_WRITEABLE;
use numpy::{Element, PyArray1, PyArrayMethods, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList};

use super::error::to_python;
use crate::top_logprobs::TopLogprobs;
use crate::{Error, TokenId};

/// Token ids from a numpy array, a buffer, a tensor or a sequence of integers.
pub(super) fn token_ids(name: &str, object: &Bound<'_, PyAny>) -> PyResult<Vec<TokenId>> {
    if let Some(ids) = plain_ids(object, usize::MAX) {
        return Ok(ids);
    }
    let Some(array) = flat_array(name, object, "iu")? else { return Ok(Vec::new()) };
    let wide: PyReadonlyArray1<'_, i64> = cast(&array, "int64")?;
    wide.as_array().iter().enumerate().map(|(token, id)| narrow(object.py(), name, token, *id)).collect()
}

/// The last of these token ids, at most so many: only they are converted.
pub(super) fn last_token_ids(name: &str, object: &Bound<'_, PyAny>, most: usize) -> PyResult<Vec<TokenId>> {
    if let Some(ids) = plain_ids(object, most) {
        return Ok(ids);
    }
    let mut ids = token_ids(name, object)?;
    ids.drain(..ids.len().saturating_sub(most));
    Ok(ids)
}

/// The last ids of an int32 array or of a list of plain integers; none if the object is anything else.
fn plain_ids(object: &Bound<'_, PyAny>, most: usize) -> Option<Vec<TokenId>> {
    if let Ok(list) = object.cast_exact::<PyList>() {
        // A tuple lends its items, which a list, since it may change, does not: that is half of the time.
        let count = list.len();
        let items = if count <= most { list.to_tuple() } else { list.get_slice(count - most, count).to_tuple() };
        let mut ids = Vec::with_capacity(items.len());
        for id in items.iter_borrowed() {
            ids.push(id.cast_exact::<PyInt>().ok()?.extract().ok()?);
        }
        return Some(ids);
    }
    let array = object.cast::<PyArray1<TokenId>>().ok()?;
    if array.len() <= most.max(SHORT) {
        let mut ids = array.to_vec().ok()?;
        ids.drain(..ids.len().saturating_sub(most));
        return Some(ids);
    }
    let array = array.try_readonly().ok()?;
    let ids = array.as_slice().ok()?;
    Some(ids[ids.len().saturating_sub(most)..].to_vec())
}

/// Up to this length, copying an array is quicker than asking whether anybody writes to it.
const SHORT: usize = 1024;

fn narrow(py: Python<'_>, name: &str, token: usize, id: i64) -> PyResult<TokenId> {
    TokenId::try_from(id).map_err(|_| {
        to_python(py, &Error::trajectory(format!("{name}, token {token}: the id {id} is outside any vocabulary")))
    })
}

/// Floats, likewise; `None` becomes NaN, which every reader refuses with the place.
pub(super) fn floats(name: &str, object: &Bound<'_, PyAny>) -> PyResult<Vec<f32>> {
    if let Ok(array) = object.extract::<PyReadonlyArray1<'_, f32>>() {
        return Ok(array.as_array().to_vec());
    }
    let Some(array) = flat_array(name, object, "fiuO")? else { return Ok(Vec::new()) };
    let wide: PyReadonlyArray1<'_, f64> = cast(&array, "float64")?;
    Ok(wide.as_array().iter().map(|value| *value as f32).collect())
}

/// A mask, likewise: booleans or small integers.
pub(super) fn mask(name: &str, object: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let Some(array) = flat_array(name, object, "biu")? else { return Ok(Vec::new()) };
    let wide: PyReadonlyArray1<'_, i64> = cast(&array, "int64")?;
    Ok(wide.as_array().iter().map(|value| u8::try_from(*value).unwrap_or(u8::MAX)).collect())
}

/// The object as a numpy array of one dimension and one of the given kinds; `None` if it is empty.
fn flat_array<'py>(name: &str, object: &Bound<'py, PyAny>, kinds: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = object.py();
    let refuse = |what: String| {
        to_python(py, &Error::value(format!("{name}: {what}; give a numpy array or a list with one number a token")))
    };
    let array = py
        .import(intern!(py, "numpy"))?
        .call_method1(intern!(py, "asarray"), (object,))
        .map_err(|error| refuse(error.to_string()))?;
    let dimensions: usize = array.getattr(intern!(py, "ndim"))?.extract()?;
    if dimensions != 1 {
        return Err(refuse(format!("an array of {dimensions} dimensions is not one sequence")));
    }
    if array.len()? == 0 {
        return Ok(None);
    }
    let kind: String = array.getattr(intern!(py, "dtype"))?.getattr(intern!(py, "kind"))?.extract()?;
    if kinds.contains(&kind) {
        return Ok(Some(array));
    }
    Err(refuse(format!("values of the type {}", array.getattr(intern!(py, "dtype"))?)))
}

fn cast<'py, T: Element>(array: &Bound<'py, PyAny>, kind: &str) -> PyResult<PyReadonlyArray1<'py, T>> {
    let cast = array.call_method1(intern!(array.py(), "astype"), (kind,))?;
    cast.extract()
}

/// Up to this number, copying values into an array of numpy's own is quicker than lending it the vector.
const FEW: usize = 256;

/// A read-only numpy array of `values`.
#[expect(unsafe_code, reason = "measured: the borrow checker of the numpy crate takes longer than a short text")]
pub(super) fn frozen<T: Element + Copy>(py: Python<'_>, values: Vec<T>) -> Bound<'_, PyArray1<T>> {
    let array = if values.len() <= FEW { PyArray1::from_slice(py, &values) } else { PyArray1::from_vec(py, values) };
    // SAFETY: the array is new and nobody else has it; clearing a flag of its header touches no data.
    unsafe { (*array.as_array_ptr()).fields.flags &= !NPY_ARRAY_WRITEABLE };
    array
}

/// A read-only numpy array of booleans.
pub(super) fn frozen_mask<'py>(py: Python<'py>, mask: &[u8]) -> Bound<'py, PyArray1<bool>> {
    frozen(py, mask.iter().map(|value| *value != 0).collect())
}

/// The alternatives at sampled ids: for each of them a mapping from id to logprob.
pub(super) fn top_logprobs(name: &str, object: &Bound<'_, PyAny>) -> PyResult<TopLogprobs> {
    let py = object.py();
    let refuse = |what: &PyErr| {
        let what = what.value(py);
        to_python(py, &Error::value(format!("{name}: {what}; give one mapping of ids to logprobs a sampled id")))
    };
    let mut top = TopLogprobs::default();
    for token in object.try_iter().map_err(|error| refuse(&error))? {
        let items = token?.call_method0("items").and_then(|items| items.try_iter()).map_err(|error| refuse(&error))?;
        let items: PyResult<Vec<(TokenId, f32)>> = items.map(|item| item?.extract()).collect();
        top.push(items.map_err(|error| refuse(&error))?);
    }
    Ok(top)
}

/// The alternatives at each token as a list of dicts; an empty dict where nothing was sampled.
pub(super) fn alternatives<'py>(py: Python<'py>, top: &TopLogprobs) -> PyResult<Bound<'py, PyList>> {
    let dicts = (0..top.len()).map(|token| {
        let (ids, logprobs) = top.get(token);
        let dict = PyDict::new(py);
        ids.iter().zip(logprobs).try_for_each(|(id, logprob)| dict.set_item(id, logprob))?;
        Ok(dict)
    });
    PyList::new(py, dicts.collect::<PyResult<Vec<_>>>()?)
}
