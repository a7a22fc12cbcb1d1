//! Values that are not there: printed as nothing, false, empty; any other use of them is an error that says why.

use std::rc::Rc;

use super::super::failure::raise;
use super::Value;
use crate::Error;

/// Why a value is not there.
#[derive(Debug, Clone)]
pub(in super::super) enum Undefined<'a> {
    /// A variable of this name.
    Name(&'a str),
    /// A name that the template or a message spells, and what was asked for it.
    Missing(Holder, &'a str),
    /// An attribute of an object of this type.
    Attribute(Rc<(&'static str, Box<str>)>),
    /// An attribute that the sandbox does not let templates reach.
    Unsafe(Rc<str>),
    /// In words.
    Hint(Rc<str>),
}

/// What templates ask for fields, in vain, all the time: no other object is worth a kind of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Holder {
    Dict,
    Text,
    None,
}

impl<'a> Undefined<'a> {
    /// A key that a dict does not have.
    pub(in super::super) fn key(name: &'a str) -> Self {
        Self::Missing(Holder::Dict, name)
    }

    /// A name that an object does not have.
    pub(in super::super) fn missing(object: &Value<'a>, name: &'a str) -> Self {
        let holder = match object {
            Value::Dict(_) => Holder::Dict,
            Value::Text(text) if !text.is_safe() => Holder::Text,
            Value::None => Holder::None,
            object => return Self::attribute(object.type_name(), name),
        };
        Self::Missing(holder, name)
    }

    /// An attribute that an object of this type does not have.
    pub(in super::super) fn attribute(of: &'static str, name: &str) -> Self {
        Self::Attribute(Rc::new((of, name.into())))
    }

    /// The error of using it.
    pub(in super::super) fn error(&self) -> Error {
        match self {
            Self::Name(name) => undefined_error(format!("'{name}' is undefined")),
            Self::Missing(Holder::Dict, name) => undefined_error(missing_attribute("dict", name)),
            Self::Missing(Holder::Text, name) => undefined_error(missing_attribute("str", name)),
            Self::Missing(Holder::None, name) => undefined_error(missing_attribute("NoneType", name)),
            Self::Attribute(missing) => undefined_error(missing_attribute(missing.0, &missing.1)),
            Self::Unsafe(message) => raise("SecurityError", &**message),
            Self::Hint(hint) => undefined_error(&**hint),
        }
    }
}

fn missing_attribute(of: &str, name: &str) -> String {
    match of {
        "NoneType" => format!("'None' has no attribute '{name}'"),
        of => format!("'{of} object' has no attribute '{name}'"),
    }
}

fn undefined_error(message: impl Into<String>) -> Error {
    raise("UndefinedError", message)
}
