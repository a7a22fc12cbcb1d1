//! Filters on lists and dicts as wholes.

use std::collections::HashSet;

use super::super::arguments::{Args, flag, integer, required};
use super::super::compare::{equal, order, sort};
use super::super::failure::{raise, type_error};
use super::super::generator::{Generator, Kind, Source};
use super::super::render::Renderer;
use super::super::value::{List, Value, View};
use super::select::{path, paths};
use super::{Call, folded, hint};
use crate::Result;

pub(super) fn find(name: &str) -> Option<Call> {
    Some(match name {
        "length" | "count" => |renderer, value, args| {
            args.none("len")?;
            if let Value::Loop(state) = &value {
                return Ok(renderer.loop_property(state, "length")?.unwrap_or(Value::None));
            }
            let length = length_of(&value);
            length
                .map(|length| Value::Int(length as i64))
                .ok_or_else(|| type_error(format!("object of type '{}' has no len()", value.type_name())))
        },
        "list" => |renderer, value, args| {
            args.none("list")?;
            renderer.collect(&value).map(Value::list)
        },
        "first" => |renderer, value, args| {
            args.none("first")?;
            let mut source = renderer.iterate(&value)?;
            Ok(renderer.next(&mut source)?.unwrap_or_else(|| hint("No first item, sequence was empty.")))
        },
        "last" => last,
        "reverse" => reverse,
        "items" => items,
        "dictsort" => dictsort,
        "sort" => sort_filter,
        "unique" => unique,
        "min" => |renderer, value, args| extreme(renderer, &value, args, "min"),
        "max" => |renderer, value, args| extreme(renderer, &value, args, "max"),
        "sum" => sum,
        "batch" => batch,
        "slice" => slice,
        "groupby" => groupby,
        _ => return None,
    })
}

/// Python's `len`, where the value has one.
pub(in super::super) fn length_of(value: &Value<'_>) -> Option<usize> {
    Some(match value {
        Value::Text(text) => text.as_str().chars().count(),
        Value::Bytes(bytes) => bytes.len(),
        Value::List(items) | Value::Tuple(items) => items.len(),
        Value::Dict(map) | Value::View(_, map) => map.len(),
        Value::Range(range) => range.len(),
        Value::Undefined(_) => 0,
        Value::Group(_) => 2,
        _ => return None,
    })
}

/// The items of a value that Python can go through backwards.
fn reversed<'a>(renderer: &mut Renderer<'a>, value: &Value<'a>) -> Result<Vec<Value<'a>>> {
    match value {
        Value::Text(_)
        | Value::Bytes(_)
        | Value::List(_)
        | Value::Tuple(_)
        | Value::Dict(_)
        | Value::View(..)
        | Value::Range(_)
        | Value::Group(_) => {
            let mut items = renderer.collect(value)?;
            items.reverse();
            Ok(items)
        }
        Value::Undefined(undefined) => Err(undefined.error()),
        _ => Err(type_error(format!("'{}' object is not reversible", value.type_name()))),
    }
}

fn last<'a>(renderer: &mut Renderer<'a>, value: Value<'a>, args: Args<'a>) -> Result<Value<'a>> {
    args.none("last")?;
    if let Value::Undefined(_) = value {
        return Ok(hint("No last item, sequence was empty."));
    }
    let first = reversed(renderer, &value)?.into_iter().next();
    Ok(first.unwrap_or_else(|| hint("No last item, sequence was empty.")))
}

fn reverse<'a>(renderer: &mut Renderer<'a>, value: Value<'a>, args: Args<'a>) -> Result<Value<'a>> {
    args.none("reverse")?;
    if let Value::Text(_) = &value {
        let whole = [Value::None, Value::None, Value::Int(-1)];
        return super::super::access::item(&value, &Value::Slice(std::rc::Rc::new(whole)));
    }
    let name = match &value {
        Value::List(_) => "list_reverseiterator",
        Value::Dict(_) => "dict_reversekeyiterator",
        Value::Range(_) => "range_iterator",
        Value::Generator(_) | Value::Loop(_) => {
            let mut items = renderer.collect(&value)?;
            items.reverse();
            return Ok(Value::list(items));
        }
        _ => "reversed",
    };
    if length_of(&value).is_none() {
        return Err(raise("FilterArgumentError", "argument must be iterable"));
    }
    let items = if value.is_undefined() { Vec::new() } else { reversed(renderer, &value)? };
    Ok(Generator::value(Source::Items(List::new(items), 0), Kind::Plain(name)))
}

fn items<'a>(_: &mut Renderer<'a>, value: Value<'a>, args: Args<'a>) -> Result<Value<'a>> {
    args.none("items")?;
    Ok(match value {
        Value::Undefined(_) => Generator::value(Source::Empty, Kind::Plain("generator")),
        Value::Dict(map) => Generator::value(Source::View(View::Items, map, 0), Kind::Plain("generator")),
        _ => Generator::value(Source::Empty, Kind::Failing(type_error("Can only get item pairs from a mapping."))),
    })
}

fn dictsort<'a>(_: &mut Renderer<'a>, value: Value<'a>, args: Args<'a>) -> Result<Value<'a>> {
    let [case_sensitive, by, reverse] = args.bind("dictsort", ["case_sensitive", "by", "reverse"], 0)?;
    let case_sensitive = flag(case_sensitive.as_ref(), false);
    let by_value = match by.as_ref().map(Value::as_str) {
        None | Some(Some("key")) => false,
        Some(Some("value")) => true,
        Some(_) => return Err(raise("FilterArgumentError", "You can only sort by either \"key\" or \"value\"")),
    };
    let map = match &value {
        Value::Dict(map) => map,
        Value::Undefined(undefined) => return Err(undefined.error()),
        _ => return Err(raise("AttributeError", format!("'{}' object has no attribute 'items'", value.type_name()))),
    };
    let keyed = map.entries().map(|(key, value)| {
        let by = if by_value { value.clone() } else { key.clone() };
        (folded(by, case_sensitive), Value::tuple(vec![key, value]))
    });
    sort(keyed.collect(), flag(reverse.as_ref(), false)).map(Value::list)
}

fn sort_filter<'a>(renderer: &mut Renderer<'a>, value: Value<'a>, args: Args<'a>) -> Result<Value<'a>> {
    let [reverse, case_sensitive, attribute] = args.bind("sort", ["reverse", "case_sensitive", "attribute"], 0)?;
    let (reverse, case_sensitive) = (flag(reverse.as_ref(), false), flag(case_sensitive.as_ref(), false));
    let paths = paths(attribute);
    let mut keyed = Vec::new();
    for item in renderer.collect(&value)? {
        let mut keys = Vec::with_capacity(paths.len());
        for path in &paths {
            keys.push(folded(renderer.read_path(item.clone(), path, None)?, case_sensitive));
        }
        keyed.push((Value::list(keys), item));
    }
    sort(keyed, reverse).map(Value::list)
}

fn unique<'a>(renderer: &mut Renderer<'a>, value: Value<'a>, args: Args<'a>) -> Result<Value<'a>> {
    let [case_sensitive, attribute] = args.bind("unique", ["case_sensitive", "attribute"], 0)?;
    let path = attribute.map_or_else(Vec::new, |attribute| path(&attribute));
    let kind = Kind::Unique { path, case_sensitive: flag(case_sensitive.as_ref(), false), seen: HashSet::default() };
    Ok(super::select::lazy(renderer, &value, kind))
}

fn extreme<'a>(renderer: &mut Renderer<'a>, value: &Value<'a>, args: Args<'a>, name: &str) -> Result<Value<'a>> {
    let [case_sensitive, attribute] = args.bind(name, ["case_sensitive", "attribute"], 0)?;
    let case_sensitive = flag(case_sensitive.as_ref(), false);
    let path = attribute.map_or_else(Vec::new, |attribute| path(&attribute));
    let mut best: Option<(Value<'a>, Value<'a>)> = None;
    for item in renderer.collect(value)? {
        let key = folded(renderer.read_path(item.clone(), &path, None)?, case_sensitive);
        let better = match &best {
            None => true,
            Some((known, _)) if name == "min" => order(&key, known, "<")?.is_some_and(std::cmp::Ordering::is_lt),
            Some((known, _)) => order(&key, known, ">")?.is_some_and(std::cmp::Ordering::is_gt),
        };
        if better {
            best = Some((key, item));
        }
    }
    Ok(best.map_or_else(|| hint("No aggregated item, sequence was empty."), |(_, item)| item))
}

fn sum<'a>(renderer: &mut Renderer<'a>, value: Value<'a>, args: Args<'a>) -> Result<Value<'a>> {
    let [attribute, start] = args.bind("sum", ["attribute", "start"], 0)?;
    let path = attribute.map_or_else(Vec::new, |attribute| path(&attribute));
    let mut total = start.unwrap_or(Value::Int(0));
    if let Value::Text(_) = total {
        return Err(type_error("sum() can't sum strings [use ''.join(seq) instead]"));
    }
    for item in renderer.collect(&value)? {
        let item = renderer.read_path(item, &path, None)?;
        total = renderer.binary(super::super::ast::BinaryOp::Add, &total, &item)?;
    }
    Ok(total)
}

fn batch<'a>(renderer: &mut Renderer<'a>, value: Value<'a>, args: Args<'a>) -> Result<Value<'a>> {
    let [size, fill] = args.bind("batch", ["linecount", "fill_with"], 1)?;
    let fill = fill.filter(|fill| !matches!(fill, Value::None));
    Ok(super::select::lazy(renderer, &value, Kind::Batch { size: integer(&required(size))?, fill }))
}

fn slice<'a>(renderer: &mut Renderer<'a>, value: Value<'a>, args: Args<'a>) -> Result<Value<'a>> {
    let [slices, fill] = args.bind("slice", ["slices", "fill_with"], 1)?;
    let slices = integer(&required(slices))?;
    let fill = fill.filter(|fill| !matches!(fill, Value::None));
    let failing = |error| Generator::value(Source::Empty, Kind::Failing(error));
    let items = match renderer.collect(&value) {
        Ok(items) => items,
        Err(error) => return Ok(failing(error)),
    };
    let Ok(count) = usize::try_from(slices) else {
        return Ok(Generator::value(Source::Empty, Kind::Plain("generator")));
    };
    if count == 0 {
        return Ok(failing(raise("ZeroDivisionError", "integer division or modulo by zero")));
    }
    renderer.check_size(count.saturating_mul(size_of::<Value<'_>>()))?;
    let (each, extra) = (items.len() / count, items.len() % count);
    let mut rest = items.into_iter();
    let mut columns = Vec::with_capacity(count);
    for index in 0..count {
        let mut column: Vec<_> = rest.by_ref().take(each + usize::from(index < extra)).collect();
        column.extend(fill.clone().filter(|_| index >= extra));
        columns.push(Value::list(column));
    }
    Ok(Generator::value(Source::Items(List::new(columns), 0), Kind::Plain("generator")))
}

fn groupby<'a>(renderer: &mut Renderer<'a>, value: Value<'a>, args: Args<'a>) -> Result<Value<'a>> {
    let [attribute, default, case_sensitive] = args.bind("groupby", ["attribute", "default", "case_sensitive"], 1)?;
    let default = default.filter(|default| !matches!(default, Value::None));
    let case_sensitive = flag(case_sensitive.as_ref(), false);
    let path = path(&required(attribute));
    let mut keyed = Vec::new();
    for item in renderer.collect(&value)? {
        let key = renderer.read_path(item.clone(), &path, default.as_ref())?;
        keyed.push((folded(key.clone(), case_sensitive), Value::tuple(vec![key, item])));
    }
    let mut groups: Vec<(Value<'a>, Value<'a>, Vec<Value<'a>>)> = Vec::new();
    for pair in sort(keyed, false)? {
        let Value::Tuple(pair) = pair else { continue };
        let (Some(key), Some(item)) = (pair.get(0), pair.get(1)) else { continue };
        let compared = folded(key.clone(), case_sensitive);
        match groups.last_mut() {
            Some((known, _, items)) if equal(known, &compared)? => items.push(item),
            _ => groups.push((compared, key, vec![item])),
        }
    }
    let group = |(_, key, items)| Value::Group(std::rc::Rc::new((key, Value::list(items))));
    Ok(Value::list(groups.into_iter().map(group).collect()))
}
