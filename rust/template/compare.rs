//! Equality, order and hashing of values, as Python has them.

use std::cmp::Ordering;
use std::rc::Rc;

use num_traits::ToPrimitive;

use super::failure::{limit_error, type_error};
use super::number::Number;
use super::value::{HashKey, List, Map, Value, View};
use crate::Result;

/// Nested containers are compared so deep.
const DEPTH: usize = 300;

/// `left == right`.
pub(super) fn equal<'a>(left: &Value<'a>, right: &Value<'a>) -> Result<bool> {
    equal_at(left, right, 0)
}

fn equal_at<'a>(left: &Value<'a>, right: &Value<'a>, depth: usize) -> Result<bool> {
    if depth > DEPTH {
        return Err(limit_error("containers are nested too deeply to compare"));
    }
    Ok(match (left, right) {
        (Value::Text(a), Value::Text(b)) => a.as_str() == b.as_str(),
        (Value::Bytes(a), Value::Bytes(b)) => a == b,
        (Value::Undefined(_), Value::Undefined(_)) | (Value::None, Value::None) => true,
        (Value::List(a), Value::List(b)) | (Value::Tuple(a), Value::Tuple(b)) => equal_lists(a, b, depth)?,
        (Value::Group(a), Value::Group(b)) => equal_at(&a.0, &b.0, depth + 1)? && equal_at(&a.1, &b.1, depth + 1)?,
        (Value::Group(group), Value::Tuple(items)) | (Value::Tuple(items), Value::Group(group)) => {
            let pair = List::new(vec![group.0.clone(), group.1.clone()]);
            equal_lists(&pair, items, depth)?
        }
        (Value::Dict(a), Value::Dict(b)) => equal_maps(a, b, depth)?,
        (Value::Range(a), Value::Range(b)) => {
            a.len() == b.len() && (a.len() == 0 || (a.start == b.start && (a.len() == 1 || a.step == b.step)))
        }
        (Value::View(View::Keys, a), Value::View(View::Keys, b)) => {
            a.len() == b.len()
                && a.keys().try_fold(true, |all, key| Ok::<_, crate::Error>(all && b.get(&key)?.is_some()))?
        }
        (Value::Method(a), Value::Method(b)) => a.1 == b.1 && a.0.is_same(&b.0),
        (left, right) => match (Number::of(left), Number::of(right)) {
            (Some(a), Some(b)) => a.compare(&b) == Some(Ordering::Equal),
            _ => left.is_same(right),
        },
    })
}

fn equal_lists<'a>(a: &List<'a>, b: &List<'a>, depth: usize) -> Result<bool> {
    if a.len() != b.len() {
        return Ok(false);
    }
    for (a, b) in a.iter().zip(b.iter()) {
        if !a.is_same(&b) && !equal_at(&a, &b, depth + 1)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn equal_maps<'a>(a: &Map<'a>, b: &Map<'a>, depth: usize) -> Result<bool> {
    if a.len() != b.len() {
        return Ok(false);
    }
    for (key, value) in a.entries() {
        match b.get(&key)? {
            Some(other) if value.is_same(&other) || equal_at(&value, &other, depth + 1)? => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// How `left` and `right` are ordered, for the operator that is spelled `operator`; `None` if they are not (NaN).
pub(super) fn order<'a>(left: &Value<'a>, right: &Value<'a>, operator: &str) -> Result<Option<Ordering>> {
    order_at(left, right, operator, 0)
}

fn order_at<'a>(left: &Value<'a>, right: &Value<'a>, operator: &str, depth: usize) -> Result<Option<Ordering>> {
    if depth > DEPTH {
        return Err(limit_error("containers are nested too deeply to compare"));
    }
    match (left, right) {
        (Value::Text(a), Value::Text(b)) => return Ok(Some(a.as_str().cmp(b.as_str()))),
        (Value::Undefined(undefined), _) | (_, Value::Undefined(undefined)) => return Err(undefined.error()),
        (Value::List(a), Value::List(b)) | (Value::Tuple(a), Value::Tuple(b)) => {
            return order_lists(a, b, operator, depth);
        }
        (Value::Group(_) | Value::Tuple(_), Value::Group(_) | Value::Tuple(_)) => {
            return order_lists(&as_tuple(left), &as_tuple(right), operator, depth);
        }
        _ => {}
    }
    if let (Some(a), Some(b)) = (Number::of(left), Number::of(right)) {
        return Ok(a.compare(&b));
    }
    let (left, right) = (left.type_name(), right.type_name());
    Err(type_error(format!("'{operator}' not supported between instances of '{left}' and '{right}'")))
}

/// The items of a tuple or of a group, which is one.
fn as_tuple<'a>(value: &Value<'a>) -> List<'a> {
    match value {
        Value::Tuple(items) => items.clone(),
        Value::Group(group) => List::new(vec![group.0.clone(), group.1.clone()]),
        _ => List::new(Vec::new()),
    }
}

fn order_lists<'a>(a: &List<'a>, b: &List<'a>, operator: &str, depth: usize) -> Result<Option<Ordering>> {
    for (a, b) in a.iter().zip(b.iter()) {
        if !a.is_same(&b) && !equal_at(&a, &b, depth + 1)? {
            return order_at(&a, &b, operator, depth + 1);
        }
    }
    Ok(Some(a.len().cmp(&b.len())))
}

/// Sorts as Python's `sorted` does: stable, by keys that must be comparable.
pub(super) fn sort<'a>(mut items: Vec<(Value<'a>, Value<'a>)>, reverse: bool) -> Result<Vec<Value<'a>>> {
    let mut failure = None;
    items.sort_by(|(a, _), (b, _)| {
        if failure.is_some() {
            return Ordering::Equal;
        }
        match order(a, b, "<") {
            // Python asks only whether one is less: what cannot be ordered keeps its place.
            Ok(found) if reverse => found.unwrap_or(Ordering::Equal).reverse(),
            Ok(found) => found.unwrap_or(Ordering::Equal),
            Err(error) => {
                failure = Some(error);
                Ordering::Equal
            }
        }
    });
    failure.map_or_else(|| Ok(items.into_iter().map(|(_, item)| item).collect()), Err)
}

/// The key under which a dict keeps a value, or an error for what cannot be a key.
pub(super) fn hash_key(value: &Value<'_>) -> Result<HashKey> {
    Ok(match value {
        Value::Text(text) => HashKey::Text(text.as_str().into()),
        Value::None => HashKey::None,
        Value::Undefined(_) => HashKey::Undefined,
        Value::Tuple(items) => HashKey::Tuple(items.iter().map(|item| hash_key(&item)).collect::<Result<_>>()?),
        Value::Group(group) => HashKey::Tuple([hash_key(&group.0)?, hash_key(&group.1)?].into()),
        Value::List(_) | Value::Dict(_) | Value::View(..) | Value::Slice(_) => {
            return Err(type_error(format!("unhashable type: '{}'", value.type_name())));
        }
        value => match Number::of(value) {
            Some(number) => number_key(number),
            None => HashKey::Identity(identity(value)),
        },
    })
}

fn number_key(number: Number) -> HashKey {
    match number {
        Number::Int(number) => HashKey::Int(number),
        Number::Big(number) => number.to_i64().map_or_else(|| HashKey::Big(Rc::new(number)), HashKey::Int),
        Number::Float(number) => {
            let exact = number.fract() == 0.0 && number.abs() < 9e18;
            if exact { HashKey::Int(number as i64) } else { HashKey::Float(number.to_bits()) }
        }
    }
}

fn identity(value: &Value<'_>) -> usize {
    match value {
        Value::Namespace(inner) => Rc::as_ptr(inner).addr(),
        Value::Generator(inner) => Rc::as_ptr(inner).addr(),
        Value::Macro(inner) => Rc::as_ptr(inner).addr(),
        Value::Loop(inner) => Rc::as_ptr(inner).addr(),
        Value::Cycler(inner) => Rc::as_ptr(inner).addr(),
        Value::Joiner(inner) => Rc::as_ptr(inner).addr(),
        Value::Function(function) => *function as usize,
        Value::Range(range) => range.len(),
        _ => 0,
    }
}
