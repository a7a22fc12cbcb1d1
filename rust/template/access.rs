//! Attributes, items and slices of values, through the rules of Jinja's immutable sandbox.

use super::failure::{type_error, value_error};
use super::methods::{self, Method};
use super::number::Number;
use super::text::Text;
use super::value::{Function, List, Range, Undefined, Value};
use crate::Result;

/// The attribute a template reads with `object.name`: a method or property first, then an item.
pub(super) fn attribute<'a>(object: &Value<'a>, name: &'a str) -> Result<Value<'a>> {
    if let Value::Dict(map) = object
        && is_plain_key(name)
    {
        return Ok(map.get_text(name).unwrap_or(Value::Undefined(Undefined::key(name))));
    }
    if let Some(value) = real_attribute(object, name)? {
        return Ok(value);
    }
    match item(object, &Value::literal(name))? {
        Value::Undefined(_) => Ok(Value::Undefined(Undefined::missing(object, name))),
        value => Ok(value),
    }
}

/// Whether a name means nothing but a key on a dict: no method, nothing that the sandbox hides.
pub(super) fn is_plain_key(name: &str) -> bool {
    !methods::is_dict_attribute(name) && !name.starts_with('_')
}

/// What a dict without a key gives for it, where the name means nothing but a key.
pub(super) fn no_key(name: &str) -> Option<Value<'_>> {
    is_plain_key(name).then(|| Value::Undefined(Undefined::key(name)))
}

/// The same, for a name that the template does not spell.
pub(super) fn attribute_named<'a>(object: &Value<'a>, name: &str) -> Result<Value<'a>> {
    match real_attribute(object, name)? {
        Some(value) => Ok(value),
        None => item(object, &Value::own(name)),
    }
}

/// A Python attribute of the object; `None` if it has none of this name.
pub(super) fn real_attribute<'a>(object: &Value<'a>, name: &str) -> Result<Option<Value<'a>>> {
    if let Value::Undefined(undefined) = object {
        return if name.starts_with("__") && name.ends_with("__") {
            Ok(methods::has_dunder(object, name).then(|| unsafe_attribute(object, name)))
        } else {
            Err(undefined.error())
        };
    }
    if name.starts_with('_') {
        return Ok(methods::has_dunder(object, name).then(|| unsafe_attribute(object, name)));
    }
    if methods::mutates(object, name) {
        return Ok(Some(unsafe_attribute(object, name)));
    }
    if let Some(method) = methods::find(object, name) {
        return Ok(Some(Value::Method(std::rc::Rc::new((object.clone(), method)))));
    }
    Ok(property(object, name))
}

fn unsafe_attribute<'a>(object: &Value<'_>, name: &str) -> Value<'a> {
    let message = format!("access to attribute '{name}' of '{}' object is unsafe.", object.type_name());
    Value::Undefined(Undefined::Unsafe(message.into()))
}

fn property<'a>(object: &Value<'a>, name: &str) -> Option<Value<'a>> {
    match object {
        Value::Namespace(fields) => fields.borrow().get(name).cloned(),
        Value::Loop(state) => state.property(name),
        Value::Range(range) => match name {
            "start" => Some(Value::Int(range.start)),
            "stop" => Some(Value::Int(range.stop)),
            "step" => Some(Value::Int(range.step)),
            _ => None,
        },
        Value::Macro(value) => macro_property(value.definition, name),
        Value::Cycler(cycler) => match name {
            "items" => Some(Value::Tuple(cycler.0.clone())),
            "pos" => Some(Value::Int(cycler.1.get() as i64)),
            "current" => cycler.0.get(cycler.1.get()),
            _ => None,
        },
        Value::Joiner(joiner) => match name {
            "sep" => Some(Value::Text(joiner.0.clone())),
            "used" => Some(Value::Bool(joiner.1.get())),
            _ => None,
        },
        Value::Group(group) => match name {
            "grouper" => Some(group.0.clone()),
            "list" => Some(group.1.clone()),
            _ => None,
        },
        Value::Function(Function::Dict) if name == "fromkeys" => Some(Value::Function(Function::DictFromKeys)),
        Value::Int(_) | Value::Bool(_) | Value::Big(_) | Value::Float(_) => number_property(object, name),
        _ => None,
    }
}

fn macro_property<'a>(definition: &'a super::ast::Macro, name: &str) -> Option<Value<'a>> {
    Some(match name {
        "name" if definition.name.is_empty() => Value::None,
        "name" => Value::literal(&definition.name),
        "arguments" => Value::tuple(definition.parameters.iter().map(|p| Value::literal(&p.name)).collect()),
        "catch_kwargs" => Value::Bool(definition.kwargs.is_some()),
        "catch_varargs" => Value::Bool(definition.varargs.is_some()),
        "caller" => Value::Bool(definition.caller.is_some()),
        "explicit_caller" => Value::Bool(definition.parameters.iter().any(|p| &*p.name == "caller")),
        _ => return None,
    })
}

fn number_property<'a>(object: &Value<'a>, name: &str) -> Option<Value<'a>> {
    let integer = !matches!(object, Value::Float(_));
    Some(match name {
        "real" => super::number::value(Number::of(object)?),
        "imag" if integer => Value::Int(0),
        "imag" => Value::Float(0.0),
        "numerator" if integer => super::number::value(Number::of(object)?),
        "denominator" if integer => Value::Int(1),
        _ => return None,
    })
}

/// The item a template reads with `object[key]`: an item first, then an attribute.
pub(super) fn item<'a>(object: &Value<'a>, key: &Value<'a>) -> Result<Value<'a>> {
    // Under a text only a dict holds something: elsewhere it can be the name of an attribute, and nothing else.
    if key.as_text().is_none() || matches!(object, Value::Dict(_) | Value::Undefined(_)) {
        match subscript(object, key) {
            Ok(Some(value)) => return Ok(value),
            Err(error) if error.class() != Some("TypeError") => return Err(error),
            _ => {}
        }
    }
    if let Some(name) = key.as_text()
        && let Some(value) = real_attribute(object, name.as_str())?
    {
        return Ok(value);
    }
    Ok(Value::Undefined(missing_item(object, key)))
}

fn missing_item<'a>(object: &Value<'a>, key: &Value<'a>) -> Undefined<'a> {
    match key {
        Value::Text(Text::Borrowed(name, _)) => return Undefined::missing(object, name),
        Value::Text(name) => return Undefined::attribute(object.type_name(), name.as_str()),
        _ => {}
    }
    let shown = super::dump::repr(key).map_or_else(|_| "?".into(), |text| text.as_str().to_owned());
    Undefined::Hint(format!("{} object has no element {shown}", object.type_name()).into())
}

/// `object[key]` in Python; `None` for a missing key or index.
pub(super) fn subscript<'a>(object: &Value<'a>, key: &Value<'a>) -> Result<Option<Value<'a>>> {
    if let Value::Undefined(undefined) = object {
        return Err(undefined.error());
    }
    if let Value::Slice(bounds) = key {
        return slice(object, bounds).map(Some);
    }
    match object {
        Value::Dict(map) => map.get(key),
        Value::Text(text) => {
            let count = text.as_str().chars().count();
            Ok(position(key, count, "string")?.map(|index| Value::Text(character(text, index))))
        }
        Value::List(items) | Value::Tuple(items) => match key {
            // The length of a list of messages is not looked at without need.
            Value::Int(index) if *index >= 0 => Ok(items.get(*index as usize)),
            _ => Ok(position(key, items.len(), object.type_name())?.and_then(|index| items.get(index))),
        },
        Value::Bytes(bytes) => Ok(position(key, bytes.len(), "byte")?.map(|index| Value::Int(bytes[index].into()))),
        Value::Range(range) => Ok(position(key, range.len(), "range")?.map(|index| Value::Int(range.get(index)))),
        Value::Group(group) => Ok(match position(key, 2, "tuple")? {
            Some(0) => Some(group.0.clone()),
            Some(_) => Some(group.1.clone()),
            None => None,
        }),
        Value::Template => Ok(None),
        _ => Err(type_error(format!("'{}' object is not subscriptable", object.type_name()))),
    }
}

/// The index that a key means, counted from the end if negative; `None` if it is out of range.
fn position(key: &Value<'_>, length: usize, what: &str) -> Result<Option<usize>> {
    let index = match key {
        Value::Int(index) => *index,
        Value::Bool(flag) => i64::from(*flag),
        Value::Big(_) => return Ok(None),
        _ => {
            let message = format!("{what} indices must be integers or slices, not {}", key.type_name());
            return Err(type_error(message));
        }
    };
    let index = if index < 0 { index + length as i64 } else { index };
    Ok(usize::try_from(index).ok().filter(|index| *index < length))
}

/// The byte where a character of a text begins.
pub(super) fn byte_of(text: &str, character: usize) -> usize {
    if text.is_ascii() {
        return character.min(text.len());
    }
    text.char_indices().nth(character).map_or(text.len(), |(at, _)| at)
}

fn character<'a>(text: &Text<'a>, index: usize) -> Text<'a> {
    let start = byte_of(text.as_str(), index);
    let length = text.as_str()[start..].chars().next().map_or(0, char::len_utf8);
    text.slice(start..start + length)
}

/// A bound of a slice; `None` where it is left out.
fn bound(value: &Value<'_>) -> Result<Option<i64>> {
    match value {
        Value::None => Ok(None),
        Value::Int(number) => Ok(Some(*number)),
        Value::Bool(flag) => Ok(Some(i64::from(*flag))),
        Value::Big(number) => {
            use num_traits::Signed;
            Ok(Some(if number.is_negative() { i64::MIN / 2 } else { i64::MAX / 2 }))
        }
        _ => Err(type_error("slice indices must be integers or None or have an __index__ method")),
    }
}

/// The indices of a slice of `length` items: start, step, count.
pub(super) fn slice_indices(bounds: &[Value<'_>; 3], length: usize) -> Result<(i64, i64, usize)> {
    let step = bound(&bounds[2])?.unwrap_or(1);
    if step == 0 {
        return Err(value_error("slice step cannot be zero"));
    }
    let length = length as i64;
    let (low, high) = if step > 0 { (0, length) } else { (-1, length - 1) };
    let clamp = |bound: Option<i64>, default: i64| match bound {
        None => default,
        Some(at) if at < 0 => (at + length).max(low),
        Some(at) => at.min(high),
    };
    let start = clamp(bound(&bounds[0])?, if step > 0 { 0 } else { length - 1 });
    let end = clamp(bound(&bounds[1])?, if step > 0 { length } else { -1 });
    Ok((start, step, Range { start, stop: end, step }.len()))
}

/// `object[start:stop:step]`.
pub(super) fn slice<'a>(object: &Value<'a>, bounds: &[Value<'a>; 3]) -> Result<Value<'a>> {
    Ok(match object {
        Value::Undefined(undefined) => return Err(undefined.error()),
        Value::Text(text) => Value::Text(slice_text(text, bounds)?),
        Value::List(items) => Value::List(slice_list(items, bounds, true)?),
        Value::Tuple(items) => Value::Tuple(slice_list(items, bounds, false)?),
        Value::Range(range) => {
            let (start, step, count) = slice_indices(bounds, range.len())?;
            let first = range.start.wrapping_add(range.step.wrapping_mul(start));
            let step = range.step.wrapping_mul(step);
            Value::Range(Range { start: first, stop: first.wrapping_add(step.wrapping_mul(count as i64)), step })
        }
        Value::Group(group) => {
            let pair = List::new(vec![group.0.clone(), group.1.clone()]);
            Value::Tuple(slice_list(&pair, bounds, false)?)
        }
        Value::Dict(_) => return Err(type_error("unhashable type: 'slice'")),
        _ => return Err(type_error(format!("'{}' object is not subscriptable", object.type_name()))),
    })
}

/// Only a slice of a list remembers the author of the whole; one of a tuple is the template's.
fn slice_list<'a>(items: &List<'a>, bounds: &[Value<'a>; 3], keeps_owner: bool) -> Result<List<'a>> {
    let (start, step, count) = slice_indices(bounds, items.len())?;
    if step == 1 && (keeps_owner || items.owner().is_none()) {
        return Ok(items.slice(start as usize, start as usize + count));
    }
    if let (-1, Some(messages)) = (step, items.messages()) {
        let end = if count == 0 { 0 } else { start as usize + 1 };
        return Ok(List::reversed(&messages[end - count..end]));
    }
    let owner = if keeps_owner { items.owner() } else { None };
    let picked = (0..count).filter_map(|n| items.get((start + step * n as i64) as usize)).collect::<Vec<_>>();
    Ok(List::owned(picked, owner))
}

fn slice_text<'a>(text: &Text<'a>, bounds: &[Value<'a>; 3]) -> Result<Text<'a>> {
    let (start, step, count) = slice_indices(bounds, text.as_str().chars().count())?;
    if step == 1 || count == 0 {
        let from = byte_of(text.as_str(), start as usize);
        let to = from + byte_of(&text.as_str()[from..], count);
        return Ok(text.slice(from..to));
    }
    let places: Vec<usize> = text.as_str().char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let mut writer = super::text::Writer::with_capacity(count);
    for n in 0..count {
        let index = (start + step * n as i64) as usize;
        writer.push_range(text, places[index]..places[index + 1]);
    }
    Ok(writer.finish().with_safety(text.is_safe()))
}

/// The method that `object.name(…)` calls without making a bound method first.
pub(super) fn callable_method(object: &Value<'_>, name: &str) -> Option<Method> {
    if name.starts_with('_') || methods::mutates(object, name) {
        return None;
    }
    methods::find(object, name)
}
