//! The methods of Python's objects that templates can call, found by name, and those that the sandbox refuses.

mod case;
mod containers;
mod cut;
mod search;
mod translate;

use super::arguments::Args;
use super::render::Renderer;
use super::value::{Function, Value};
use crate::Result;

pub(super) use case::{capitalize, is_lower, is_upper, lower, upper};
pub(super) use cut::{lines, replace, rsplit, split, trim};
pub(super) use search::padded;

/// What a method does with its object and arguments.
type Call = for<'a> fn(&mut Renderer<'a>, &Value<'a>, Args<'a>) -> Result<Value<'a>>;

/// A method of a type.
#[derive(Debug, Clone, Copy)]
pub(super) struct Method {
    pub(super) name: &'static str,
    pub(super) call: Call,
}

impl PartialEq for Method {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// The method `name` of texts.
pub(super) fn find_text(name: &str) -> Option<Method> {
    let found = cut::find(name).or_else(|| case::find(name)).or_else(|| search::find(name));
    let (name, call) = found.or_else(|| translate::find(name))?;
    Some(Method { name, call })
}

/// The method `name` of an object.
pub(super) fn find(object: &Value<'_>, name: &str) -> Option<Method> {
    let (name, call): (&'static str, Call) = match object {
        Value::Text(_) => return find_text(name),
        Value::Dict(_) => containers::find_dict(name)?,
        Value::List(_) | Value::Tuple(_) | Value::Group(_) => containers::find_list(object, name)?,
        Value::Range(_) => containers::find_range(name)?,
        Value::Loop(_) => containers::find_loop(name)?,
        Value::Cycler(_) => containers::find_cycler(name)?,
        Value::Int(_) | Value::Bool(_) | Value::Big(_) | Value::Float(_) => containers::find_number(object, name)?,
        _ => return None,
    };
    Some(Method { name, call })
}

/// Whether a dict has a method of this name, which hides an item.
pub(super) fn is_dict_attribute(name: &str) -> bool {
    containers::find_dict(name).is_some() || is_dict_mutation(name) || name == "copy" || name == "fromkeys"
}

fn is_dict_mutation(name: &str) -> bool {
    matches!(name, "clear" | "pop" | "popitem" | "setdefault" | "update")
}

/// Whether the immutable sandbox refuses the method because it changes its object.
pub(super) fn mutates(object: &Value<'_>, name: &str) -> bool {
    match object {
        Value::Dict(_) => is_dict_mutation(name),
        Value::List(_) => {
            matches!(name, "append" | "clear" | "pop" | "reverse" | "insert" | "sort" | "extend" | "remove")
        }
        _ => false,
    }
}

/// The names that every Python object has.
const OBJECT: [&str; 24] = [
    "__class__",
    "__delattr__",
    "__dir__",
    "__doc__",
    "__eq__",
    "__format__",
    "__ge__",
    "__getattribute__",
    "__getstate__",
    "__gt__",
    "__hash__",
    "__init__",
    "__init_subclass__",
    "__le__",
    "__lt__",
    "__ne__",
    "__new__",
    "__reduce__",
    "__reduce_ex__",
    "__repr__",
    "__setattr__",
    "__sizeof__",
    "__str__",
    "__subclasshook__",
];

/// Whether the object has a Python attribute of this name with underscores.
pub(super) fn has_dunder(object: &Value<'_>, name: &str) -> bool {
    if OBJECT.contains(&name) {
        return true;
    }
    let sequence = ["__contains__", "__getitem__", "__iter__", "__len__", "__reversed__"].contains(&name);
    match object {
        Value::Text(_) => [
            "__add__",
            "__contains__",
            "__getitem__",
            "__getnewargs__",
            "__iter__",
            "__len__",
            "__mod__",
            "__mul__",
            "__rmod__",
            "__rmul__",
        ]
        .contains(&name),
        Value::Dict(_) => {
            sequence
                || ["__class_getitem__", "__delitem__", "__ior__", "__or__", "__ror__", "__setitem__"].contains(&name)
        }
        Value::List(_) => {
            sequence
                || [
                    "__add__",
                    "__class_getitem__",
                    "__delitem__",
                    "__iadd__",
                    "__imul__",
                    "__mul__",
                    "__rmul__",
                    "__setitem__",
                ]
                .contains(&name)
        }
        Value::Tuple(_) | Value::Group(_) => {
            (sequence && name != "__reversed__")
                || ["__add__", "__class_getitem__", "__getnewargs__", "__mul__", "__rmul__"].contains(&name)
        }
        Value::Int(_) | Value::Bool(_) | Value::Big(_) | Value::Float(_) => [
            "__abs__",
            "__add__",
            "__bool__",
            "__divmod__",
            "__float__",
            "__floordiv__",
            "__int__",
            "__mod__",
            "__mul__",
            "__neg__",
            "__pos__",
            "__pow__",
            "__radd__",
            "__round__",
            "__sub__",
            "__truediv__",
            "__trunc__",
        ]
        .contains(&name),
        Value::None => name == "__bool__",
        Value::Undefined(_) => [
            "__add__",
            "__bool__",
            "__call__",
            "__getattr__",
            "__getitem__",
            "__iter__",
            "__len__",
            "__module__",
            "__slots__",
        ]
        .contains(&name),
        Value::Range(_) => sequence || name == "__bool__",
        Value::Function(Function::Range | Function::RaiseException | Function::StrftimeNow | Function::Lipsum) => [
            "__annotations__",
            "__call__",
            "__closure__",
            "__code__",
            "__defaults__",
            "__dict__",
            "__globals__",
            "__kwdefaults__",
            "__module__",
            "__name__",
            "__qualname__",
        ]
        .contains(&name),
        Value::Method(_) => ["__call__", "__name__", "__qualname__", "__self__", "__text_signature__"].contains(&name),
        _ => ["__call__", "__dict__", "__module__", "__weakref__"].contains(&name),
    }
}

/// Calls a method.
pub(super) fn call<'a>(
    renderer: &mut Renderer<'a>,
    object: &Value<'a>,
    method: Method,
    args: Args<'a>,
) -> Result<Value<'a>> {
    (method.call)(renderer, object, args)
}
