//! Values that are not there: printed as nothing, false, empty; any other use of them is an error that says why.

use std::rc::Rc;

use super::super::failure::raise;
use crate::Error;

/// Why a value is not there.
#[derive(Debug, Clone)]
pub(in super::super) enum Undefined<'a> {
    /// A variable of this name.
    Name(&'a str),
    /// A key of a dict that the template spells.
    Key(&'a str),
    /// An attribute of an object of this type.
    Attribute(Rc<(&'static str, Box<str>)>),
    /// An attribute that the sandbox does not let templates reach.
    Unsafe(Rc<str>),
    /// In words.
    Hint(Rc<str>),
}

impl Undefined<'_> {
    /// An attribute that an object of this type does not have.
    pub(in super::super) fn attribute(of: &'static str, name: &str) -> Self {
        Self::Attribute(Rc::new((of, name.into())))
    }

    /// The error of using it.
    pub(in super::super) fn error(&self) -> Error {
        match self {
            Self::Name(name) => undefined_error(format!("'{name}' is undefined")),
            Self::Key(name) => undefined_error(missing_attribute("dict", name)),
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
