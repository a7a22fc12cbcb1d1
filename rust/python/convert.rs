//! Python objects as plain data, and back.
//!
//! What transformers makes of an object before a template sees it: mappings, lists and tuples stay what they are;
//! dataclasses and pydantic models become dicts; numpy scalars and subclasses of the plain types lose their extra methods;
//! anything else becomes the text `<TypeName>`. Messages, tools and documents may also come as JSON text or bytes.

use std::sync::Arc;

use pyo3::exceptions::{PyRecursionError, PyUnicodeEncodeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple, PyType};

use super::error::to_python;
use crate::message::{Conversation, Data, Dict, Key, common, shared};
use crate::{Error, ErrorKind};

/// Deeper data is refused: it is cyclic, or nothing a template could print.
const DEPTH: usize = 200;

/// Plain data of a Python object.
pub(super) fn data(object: &Bound<'_, PyAny>) -> PyResult<Data> {
    Converter::new(object.py()).data(object, 0).map_err(|error| explained(object.py(), "", error))
}

/// Messages as plain data.
pub(super) fn messages(object: &Bound<'_, PyAny>) -> PyResult<Vec<Data>> {
    if let Some(text) = json_text(object)? {
        let parsed = from_json(object.py(), &text)?;
        let Some(items) = parsed.as_items() else { return Err(no_messages(object.py(), parsed.type_name())) };
        return Ok(items.to_vec());
    }
    let mut converter = Converter::new(object.py());
    if let Ok(list) = object.cast_exact::<PyList>() {
        return list.iter().enumerate().map(|(index, message)| converter.message(index, &message)).collect();
    }
    let object = object.getattr_opt(intern!(object.py(), "messages"))?.unwrap_or_else(|| object.clone());
    let items = object.try_iter().map_err(|_| no_messages(object.py(), &type_name(&object)))?;
    items.enumerate().map(|(index, message)| converter.message(index, &message?)).collect()
}

/// A conversation of Python objects.
pub(super) fn conversation(
    object: &Bound<'_, PyAny>,
    tools: Option<&Bound<'_, PyAny>>,
    documents: Option<&Bound<'_, PyAny>>,
    arguments: Vec<(Arc<str>, Data)>,
) -> PyResult<Conversation> {
    Ok(Conversation {
        messages: messages(object)?,
        tools: tools.map(tool_schemas).transpose()?,
        documents: documents.map(|documents| json_or_data("documents", documents)).transpose()?,
        arguments,
    })
}

/// Tools as schemas: dicts as they are, functions by their signature and docstring.
pub(super) fn tool_schemas(tools: &Bound<'_, PyAny>) -> PyResult<Data> {
    let py = tools.py();
    if json_text(tools)?.is_some() {
        return json_or_data("tools", tools);
    }
    let mut converter = Converter::new(py);
    let schemas = tools.try_iter()?.enumerate().map(|(index, tool)| {
        let tool = tool?;
        let place = format!("tool {index}: ");
        if tool.cast::<PyDict>().is_ok() {
            return converter.data(&tool, 0).map_err(|error| explained(py, &place, error));
        }
        let schema =
            py.import(intern!(py, "tokentape.tools"))?.call_method1(intern!(py, "function_schema"), (&tool,))?;
        converter.data(&schema, 0).map_err(|error| explained(py, &place, error))
    });
    Ok(Data::from(schemas.collect::<PyResult<Vec<_>>>()?))
}

fn json_or_data(name: &str, object: &Bound<'_, PyAny>) -> PyResult<Data> {
    if let Some(text) = json_text(object)? {
        return from_json(object.py(), &text);
    }
    let converted = Converter::new(object.py()).data(object, 0);
    converted.map_err(|error| explained(object.py(), &format!("{name}: "), error))
}

/// JSON given as text or bytes.
fn json_text(object: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    if let Ok(text) = object.cast::<PyString>() {
        return text.to_str().map(|text| Some(text.to_owned()));
    }
    let bytes = match (object.cast::<PyBytes>(), object.cast::<PyByteArray>()) {
        (Ok(bytes), _) => bytes.as_bytes().to_vec(),
        (_, Ok(bytes)) => bytes.to_vec(),
        _ => return Ok(None),
    };
    let text = String::from_utf8(bytes);
    text.map(Some).map_err(|error| to_python(object.py(), &Error::value(format!("not UTF-8: {error}"))))
}

fn from_json(py: Python<'_>, text: &str) -> PyResult<Data> {
    Data::from_json(text).map_err(|error| to_python(py, &error))
}

fn type_name(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "object".to_owned(), |name| name.to_string())
}

fn no_messages(py: Python<'_>, given: &str) -> PyErr {
    let message = format!("messages is a {given}: give a list of dicts with role and content, or JSON text");
    to_python(py, &Error::new(ErrorKind::Render, message).with_class("TypeError"))
}

/// A conversion error as a rendering error of the class that Python raises, at its place.
fn explained(py: Python<'_>, place: &str, error: PyErr) -> PyErr {
    let class = if error.is_instance_of::<PyUnicodeEncodeError>(py) {
        "UnicodeEncodeError"
    } else if error.is_instance_of::<PyRecursionError>(py) {
        "RecursionError"
    } else if error.is_instance_of::<pyo3::exceptions::PyValueError>(py) {
        "ValueError"
    } else if error.is_instance_of::<pyo3::exceptions::PyTypeError>(py) {
        "TypeError"
    } else {
        return error;
    };
    let message = match class {
        "UnicodeEncodeError" => "a text holds a lone surrogate, which no file and no tokenizer can hold".to_owned(),
        _ => error.value(py).to_string(),
    };
    to_python(py, &Error::new(ErrorKind::Render, format!("{place}{message}")).with_class(class))
}

/// The texts that nearly every message holds, each with the one object that Python keeps of it: an object is known by its
/// address, which says where to look for it.
struct Common([Option<(Py<PyString>, Arc<str>)>; Self::PLACES]);

impl Common {
    const PLACES: usize = 64;

    fn new(py: Python<'_>) -> Self {
        let mut found = Self([const { None }; Self::PLACES]);
        for text in common() {
            let object = PyString::intern(py, text);
            let mut place = Self::place(&object);
            while found.0[place].is_some() {
                place = (place + 1) % Self::PLACES;
            }
            found.0[place] = Some((object.unbind(), text.clone()));
        }
        found
    }

    /// Objects lie at multiples of 16 bytes.
    fn place(text: &Bound<'_, PyString>) -> usize {
        let address = text.as_ptr().addr() >> 4;
        (address ^ (address >> 6)) % Self::PLACES
    }

    fn find(&self, text: &Bound<'_, PyString>) -> Option<&Arc<str>> {
        let mut place = Self::place(text);
        while let Some((object, known)) = &self.0[place] {
            if object.is(text) {
                return Some(known);
            }
            place = (place + 1) % Self::PLACES;
        }
        None
    }
}

fn common_texts(py: Python<'_>) -> &'static Common {
    static TEXTS: PyOnceLock<Common> = PyOnceLock::new();
    TEXTS.get_or_init(py, || Common::new(py))
}

/// One conversion, which makes the text of each key once.
struct Converter<'py> {
    common: &'static Common,
    /// Keys of dicts are mostly a few interned strings; each is held here, so its address stays its own.
    keys: Vec<(Bound<'py, PyString>, Arc<str>)>,
}

/// More keys than this are not remembered.
const KEYS: usize = 24;

impl<'py> Converter<'py> {
    fn new(py: Python<'py>) -> Self {
        Self { common: common_texts(py), keys: Vec::new() }
    }

    /// The text of one of the common objects.
    fn common(&self, text: &Bound<'py, PyString>) -> Option<&'static Arc<str>> {
        self.common.find(text)
    }

    fn message(&mut self, index: usize, message: &Bound<'py, PyAny>) -> PyResult<Data> {
        let place = |error| explained(message.py(), &format!("message {index}: "), error);
        let data = self.data(message, 0).map_err(place)?;
        if let Data::Dict(_) = data {
            return Ok(data);
        }
        let message_text =
            format!("message {index} is a {}: messages are dicts, dataclasses or pydantic models", type_name(message));
        Err(to_python(message.py(), &Error::new(ErrorKind::Render, message_text).with_class("TypeError")))
    }

    fn data(&mut self, object: &Bound<'py, PyAny>, depth: usize) -> PyResult<Data> {
        if let Ok(text) = object.cast_exact::<PyString>() {
            return Ok(Data::from(text.to_str()?));
        }
        if object.is_none() {
            return Ok(Data::Null);
        }
        if depth > DEPTH {
            return Err(PyRecursionError::new_err(format!(
                "the data is cyclic or nested more than {DEPTH} levels deep"
            )));
        }
        if let Ok(dict) = object.cast_exact::<PyDict>() {
            return self.dict(dict, depth);
        }
        if let Ok(list) = object.cast_exact::<PyList>() {
            let items = list.iter().map(|item| self.data(&item, depth + 1));
            return Ok(Data::List(items.collect::<PyResult<Vec<_>>>()?.into()));
        }
        self.rare(object, depth)
    }

    fn dict(&mut self, dict: &Bound<'py, PyDict>, depth: usize) -> PyResult<Data> {
        let mut entries = Vec::with_capacity(dict.len());
        for (key, value) in dict {
            let key = self.key(&key)?;
            let known = value.cast_exact::<PyString>().ok().and_then(|text| self.common(text));
            let value = match known {
                Some(text) => Data::Text(text.clone()),
                None => self.data(&value, depth + 1)?,
            };
            entries.push((key, value));
        }
        Ok(Data::from(Dict::from_unique(entries)))
    }

    fn key(&mut self, key: &Bound<'py, PyAny>) -> PyResult<Key> {
        if let Ok(text) = key.cast_exact::<PyString>() {
            if let Some(known) = self.common(text) {
                return Ok(Key::Text(known.clone()));
            }
            if let Some((_, known)) = self.keys.iter().find(|(known, _)| known.is(text)) {
                return Ok(Key::Text(known.clone()));
            }
            let name = shared(text.to_str()?);
            if self.keys.len() < KEYS {
                self.keys.push((text.clone(), name.clone()));
            }
            return Ok(Key::Text(name));
        }
        Ok(match self.data(key, 0)? {
            Data::Null => Key::Null,
            Data::Bool(flag) => Key::Bool(flag),
            Data::Int(number) => Key::Int(number),
            Data::Float(number) => Key::Float(number.to_bits()),
            Data::Text(text) => Key::Text(text),
            other => {
                let message =
                    format!("a key of a dict is a {}: keys are texts, numbers, booleans or None", other.type_name());
                return Err(pyo3::exceptions::PyTypeError::new_err(message));
            }
        })
    }

    /// What is no exact text, None, dict or list.
    fn rare(&mut self, object: &Bound<'py, PyAny>, depth: usize) -> PyResult<Data> {
        let py = object.py();
        if let Ok(flag) = object.cast_exact::<PyBool>() {
            return Ok(Data::Bool(flag.is_true()));
        }
        if object.cast::<PyInt>().is_ok() {
            return integer(object);
        }
        if let Ok(number) = object.cast::<PyFloat>() {
            return Ok(Data::Float(number.value()));
        }
        if let Ok(text) = object.cast::<PyString>() {
            return Ok(Data::from(text.to_str()?));
        }
        if let Ok(mapping) = object.cast::<PyMapping>() {
            let entries = PyDict::new(py);
            for entry in mapping.items()?.iter() {
                let (key, value): (Bound<'py, PyAny>, Bound<'py, PyAny>) = entry.extract()?;
                entries.set_item(key, value)?;
            }
            return self.dict(&entries, depth);
        }
        if let Ok(items) = object.cast::<PyTuple>() {
            let items = items.iter().map(|item| self.data(&item, depth + 1));
            return Ok(Data::Tuple(items.collect::<PyResult<Vec<_>>>()?.into()));
        }
        if let Ok(items) = object.cast::<PyList>() {
            let items = items.iter().map(|item| self.data(&item, depth + 1));
            return Ok(Data::List(items.collect::<PyResult<Vec<_>>>()?.into()));
        }
        self.object(object, depth)
    }

    /// numpy scalars, dataclasses, pydantic models, and the placeholder for everything else.
    fn object(&mut self, object: &Bound<'py, PyAny>, depth: usize) -> PyResult<Data> {
        static GENERIC: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        let py = object.py();
        if object.is_instance(GENERIC.import(py, "numpy", "generic")?)? {
            return self.data(&object.call_method0(intern!(py, "item"))?, depth + 1);
        }
        let is_type = object.cast::<PyType>().is_ok();
        if !is_type && object.hasattr(intern!(py, "__dataclass_fields__"))? {
            let fields = py.import(intern!(py, "dataclasses"))?.call_method1(intern!(py, "fields"), (object,))?;
            let entries = PyDict::new(py);
            for field in fields.try_iter()? {
                let name = field?.getattr(intern!(py, "name"))?.cast_into::<PyString>()?;
                entries.set_item(&name, object.getattr(&name)?)?;
            }
            return self.dict(&entries, depth);
        }
        if let Some(dump) = object.getattr_opt(intern!(py, "model_dump"))?.filter(Bound::is_callable) {
            return self.data(&dump.call0()?, depth + 1);
        }
        Ok(Data::from(format!("<{}>", type_name(object))))
    }
}

fn integer(object: &Bound<'_, PyAny>) -> PyResult<Data> {
    if let Ok(number) = object.extract::<i64>() {
        return Ok(Data::Int(number));
    }
    let plain = object.py().get_type::<PyInt>().call1((object,))?;
    Ok(Data::BigInt(plain.str()?.to_str()?.into()))
}

/// A Python object of plain data.
pub(super) fn to_py<'py>(py: Python<'py>, value: &Data) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Data::Null => py.None().into_bound(py),
        Data::Bool(flag) => PyBool::new(py, *flag).to_owned().into_any(),
        Data::Int(number) => number.into_pyobject(py)?.into_any(),
        Data::BigInt(digits) => py.get_type::<PyInt>().call1((&**digits,))?,
        Data::Float(number) => PyFloat::new(py, *number).into_any(),
        Data::Text(text) => PyString::new(py, text).into_any(),
        Data::List(items) => {
            let items = items.iter().map(|item| to_py(py, item)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, items)?.into_any()
        }
        Data::Tuple(items) => {
            let items = items.iter().map(|item| to_py(py, item)).collect::<PyResult<Vec<_>>>()?;
            PyTuple::new(py, items)?.into_any()
        }
        Data::Dict(dict) => {
            let entries = PyDict::new(py);
            for (key, value) in dict.iter() {
                entries.set_item(to_py(py, &Data::from(key))?, to_py(py, value)?)?;
            }
            entries.into_any()
        }
    })
}
