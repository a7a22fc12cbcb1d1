//! `_core.Column`: the flat values of one column, handed over by `DLPack` without a copy.
//!
//! *Invariant*: the memory lives until the last consumer has called the deleter of its tensor; nothing of it is ever
//! written here.

#![expect(unsafe_code, reason = "DLPack is a C interface: structs behind pointers, freed by a callback")]

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Float32Type, Int32Type, Int64Type, UInt8Type};
use arrow_array::{Array, ArrayRef};
use arrow_buffer::Buffer;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use super::rows::numpy_of;

const CPU: (i32, i32) = (1, 0);
const SIGNED: u8 = 0;
const UNSIGNED: u8 = 1;
const FLOAT: u8 = 2;
const COPIED: u64 = 1 << 1;
const OLD: &CStr = c"dltensor";
const NEW: &CStr = c"dltensor_versioned";

#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    dimensions: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// `DLManagedTensor` of `DLPack` before version 1.
#[repr(C)]
struct Managed {
    tensor: Tensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Self)>,
}

/// `DLManagedTensorVersioned` of `DLPack` 1.
#[repr(C)]
struct Versioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Self)>,
    flags: u64,
    tensor: Tensor,
}

/// What a tensor keeps alive: the memory, and its shape and strides.
struct Held {
    buffer: Buffer,
    shape: [i64; 1],
    strides: [i64; 1],
}

/// The flat values of a column.
#[pyclass(frozen, module = "tokentape._core")]
pub(super) struct Column {
    buffer: Buffer,
    values: ArrayRef,
    code: u8,
    width: usize,
}

impl Column {
    /// The values of a primitive array; `None` for other arrays, and where values are null.
    pub(super) fn new(values: &ArrayRef) -> Option<Self> {
        fn of<T: ArrowPrimitiveType>(values: &ArrayRef, code: u8) -> Option<Column> {
            let buffer = values.as_primitive_opt::<T>()?.values().inner().clone();
            Some(Column { buffer, values: values.clone(), code, width: size_of::<T::Native>() })
        }
        let found = of::<Int32Type>(values, SIGNED).or_else(|| of::<UInt8Type>(values, UNSIGNED));
        let found = found.or_else(|| of::<Float32Type>(values, FLOAT)).or_else(|| of::<Int64Type>(values, SIGNED));
        found.filter(|_| values.null_count() == 0)
    }

    fn tensor(&self, copy: bool) -> (Tensor, *mut c_void) {
        let buffer = if copy { Buffer::from_slice_ref(self.buffer.as_slice()) } else { self.buffer.clone() };
        let held = Box::new(Held { buffer, shape: [self.values.len() as i64], strides: [1] });
        let data = if self.values.is_empty() { std::ptr::null() } else { held.buffer.as_ptr() };
        let held = Box::leak(held);
        let tensor = Tensor {
            data: data.cast_mut().cast(),
            device_type: CPU.0,
            device_id: CPU.1,
            dimensions: 1,
            code: self.code,
            bits: (8 * self.width) as u8,
            lanes: 1,
            shape: held.shape.as_mut_ptr(),
            strides: held.strides.as_mut_ptr(),
            byte_offset: 0,
        };
        (tensor, std::ptr::from_mut(held).cast())
    }
}

#[pymethods]
impl Column {
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        if dl_device.is_some_and(|device| device != CPU) || stream.is_some() {
            return Err(PyBufferError::new_err(
                "the column is in main memory: import it there, then move the tensor to its device",
            ));
        }
        let copy = copy == Some(true);
        let (tensor, context) = self.tensor(copy);
        if max_version.is_some_and(|(major, _)| major >= 1) {
            let flags = if copy { COPIED } else { 0 };
            let deleter = Some(free_versioned as unsafe extern "C" fn(*mut Versioned));
            capsule(py, Versioned { major: 1, minor: 0, context, deleter, flags, tensor }, NEW, drop_versioned)
        } else {
            capsule(py, Managed { tensor, context, deleter: Some(free_managed) }, OLD, drop_managed)
        }
    }

    fn __dlpack_device__(slf: PyRef<'_, Self>) -> (i32, i32) {
        drop(slf);
        CPU
    }

    /// A read-only numpy view.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let found = numpy_of::<Int32Type>(py, &self.values).or_else(|| numpy_of::<UInt8Type>(py, &self.values));
        let found = found.or_else(|| numpy_of::<Float32Type>(py, &self.values));
        let found = found.or_else(|| numpy_of::<Int64Type>(py, &self.values));
        let view = found.unwrap_or_else(|| Err(PyBufferError::new_err("the column has no values of a fixed width")))?;
        if dtype.is_none() && copy != Some(true) {
            return Ok(view);
        }
        let dtype = dtype.map_or_else(|| view.getattr("dtype"), Ok)?;
        let options = PyDict::new(py);
        options.set_item("copy", copy == Some(true))?;
        view.call_method("astype", (dtype,), Some(&options))
    }

    fn __len__(&self) -> usize {
        self.values.len()
    }
}

/// A capsule over a managed tensor; `destructor` frees it if no consumer took it.
fn capsule<'py, T>(
    py: Python<'py>,
    managed: T,
    name: &'static CStr,
    destructor: unsafe extern "C" fn(*mut ffi::PyObject),
) -> PyResult<Bound<'py, PyCapsule>> {
    let pointer = NonNull::from(Box::leak(Box::new(managed))).cast();
    // SAFETY: the pointer is a leaked box; whoever takes the tensor calls its deleter once, else the destructor does.
    unsafe { PyCapsule::new_with_pointer_and_destructor(py, pointer, name, Some(destructor)) }
}

/// The tensor in a capsule that still has its first name: a consumer that takes it gives it another.
unsafe fn unclaimed<T>(capsule: *mut ffi::PyObject, name: &CStr) -> Option<NonNull<T>> {
    // SAFETY: Python passes the capsule whose destructor this is.
    unsafe {
        let own = ffi::PyCapsule_IsValid(capsule, name.as_ptr()) == 1;
        own.then(|| NonNull::new(ffi::PyCapsule_GetPointer(capsule, name.as_ptr()).cast())).flatten()
    }
}

unsafe extern "C" fn drop_managed(capsule: *mut ffi::PyObject) {
    // SAFETY: nobody took the tensor, so its box is still whole.
    unsafe { unclaimed(capsule, OLD).map_or((), |managed| free_managed(managed.as_ptr())) }
}

unsafe extern "C" fn drop_versioned(capsule: *mut ffi::PyObject) {
    // SAFETY: nobody took the tensor, so its box is still whole.
    unsafe { unclaimed(capsule, NEW).map_or((), |managed| free_versioned(managed.as_ptr())) }
}

unsafe extern "C" fn free_managed(managed: *mut Managed) {
    // SAFETY: the pointer and its context are boxes that `__dlpack__` leaked; a consumer calls the deleter once.
    unsafe { drop(Box::from_raw(Box::from_raw(managed).context.cast::<Held>())) }
}

unsafe extern "C" fn free_versioned(managed: *mut Versioned) {
    // SAFETY: as above.
    unsafe { drop(Box::from_raw(Box::from_raw(managed).context.cast::<Held>())) }
}
