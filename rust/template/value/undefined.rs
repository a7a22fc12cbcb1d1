//! Values that are not there: printed as nothing, false, empty; any other use of them is an error that says why.

use std::rc::Rc;

use super::super::failure::raise;
use crate::Error;

/// Why a value is not there.
#[derive(Debug, Clone)]
pub(in super::super) enum Undefined<'a> {
    /// A variable of this name.
    Name(&'a str),
    /// An attribute of an object of this type.
    Attribute { of: &'static str, name: Rc<str> },
    /// The same, for a name that the template spells.
    Literal { of: &'static str, name: &'a str },
    /// An attribute that the sandbox does not let templates reach.
    Unsafe(Rc<str>),
    /// In words.
    Hint(Rc<str>),
}

impl Undefined<'_> {
    /// The error of using it.
    pub(in super::super) fn error(&self) -> Error {
        match self {
            Self::Name(name) => undefined_error(format!("'{name}' is undefined")),
            Self::Attribute { of, name } => undefined_error(missing_attribute(of, name)),
            Self::Literal { of, name } => undefined_error(missing_attribute(of, name)),
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
