//! Methods of dicts, lists, numbers, loops and cyclers.

use super::super::arguments::{Args, integer_or, required};
use super::super::compare::equal;
use super::super::failure::{type_error, value_error};
use super::super::number::{Number, value};
use super::super::render::Renderer;
use super::super::value::{List, Map, Value, View};
use super::Call;
use crate::Result;

pub(super) fn find_dict(name: &str) -> Option<(&'static str, Call)> {
    Some(match name {
        "get" => ("get", get),
        "items" => ("items", |_, object, args| view(object, args, "items", View::Items)),
        "keys" => ("keys", |_, object, args| view(object, args, "keys", View::Keys)),
        "values" => ("values", |_, object, args| view(object, args, "values", View::Values)),
        "copy" => ("copy", |_, object, args| {
            args.none("copy")?;
            Map::build(this(object)?.entries()).map(Value::Dict)
        }),
        "fromkeys" => ("fromkeys", |renderer, _, args| renderer.dict_from_keys(args)),
        _ => return None,
    })
}

fn this<'v, 'a>(object: &'v Value<'a>) -> Result<&'v Map<'a>> {
    match object {
        Value::Dict(map) => Ok(map),
        _ => Err(type_error("a dict method needs a dict")),
    }
}

fn view<'a>(object: &Value<'a>, args: Args<'a>, name: &str, view: View) -> Result<Value<'a>> {
    args.none(name)?;
    Ok(Value::View(view, this(object)?.clone()))
}

fn get<'a>(_: &mut Renderer<'a>, object: &Value<'a>, args: Args<'a>) -> Result<Value<'a>> {
    let [key, default] = args.bind("get", ["/key", "/default"], 1)?;
    let found = this(object)?.get(&required(key))?;
    Ok(found.or(default).unwrap_or(Value::None))
}

pub(super) fn find_list(object: &Value<'_>, name: &str) -> Option<(&'static str, Call)> {
    Some(match name {
        "count" => ("count", |_, object, args| {
            let [wanted] = args.bind("count", ["/value"], 1)?;
            let wanted = required(wanted);
            let mut count = 0;
            for item in items(object)?.iter() {
                count += i64::from(item.is_same(&wanted) || equal(&item, &wanted)?);
            }
            Ok(Value::Int(count))
        }),
        "index" => ("index", list_index),
        "copy" if matches!(object, Value::List(_)) => ("copy", |_, object, args| {
            args.none("copy")?;
            Ok(Value::list(items(object)?.iter().collect()))
        }),
        _ => return None,
    })
}

fn items<'a>(object: &Value<'a>) -> Result<List<'a>> {
    match object {
        Value::List(items) | Value::Tuple(items) => Ok(items.clone()),
        Value::Group(group) => Ok(List::new(vec![group.0.clone(), group.1.clone()])),
        _ => Err(type_error("a list method needs a list")),
    }
}

fn list_index<'a>(_: &mut Renderer<'a>, object: &Value<'a>, args: Args<'a>) -> Result<Value<'a>> {
    let [wanted, start, stop] = args.bind("index", ["/value", "/start", "/stop"], 1)?;
    let (wanted, items) = (required(wanted), items(object)?);
    let bounds =
        [Value::Int(integer_or(start.as_ref(), 0)?), Value::Int(integer_or(stop.as_ref(), i64::MAX)?), Value::None];
    let (first, _, count) = super::super::access::slice_indices(&bounds, items.len())?;
    for index in first as usize..first as usize + count {
        let Some(item) = items.get(index) else { break };
        if item.is_same(&wanted) || equal(&item, &wanted)? {
            return Ok(Value::Int(index as i64));
        }
    }
    Err(value_error("the value is not in the list"))
}

pub(super) fn find_range(name: &str) -> Option<(&'static str, Call)> {
    fn position<'a>(object: &Value<'a>, args: Args<'a>) -> Result<Option<i64>> {
        let [wanted] = args.bind("index", ["/value"], 1)?;
        let wanted = required(wanted);
        let Value::Range(range) = object else { return Ok(None) };
        for index in 0..range.len() {
            if equal(&Value::Int(range.get(index)), &wanted)? {
                return Ok(Some(index as i64));
            }
        }
        Ok(None)
    }
    Some(match name {
        "count" => ("count", |_, object, args| Ok(Value::Int(i64::from(position(object, args)?.is_some())))),
        "index" => ("index", |_, object, args| {
            position(object, args)?.map(Value::Int).ok_or_else(|| value_error("the value is not in the range"))
        }),
        _ => return None,
    })
}

pub(super) fn find_loop(name: &str) -> Option<(&'static str, Call)> {
    Some(match name {
        "cycle" => ("cycle", |_, object, args| {
            let Value::Loop(state) = object else { return Err(type_error("a loop is needed")) };
            let count = args.positional.len();
            if count == 0 {
                return Err(type_error("no items for cycling given"));
            }
            Ok(args.positional[state.index0() % count].clone())
        }),
        "changed" => ("changed", |_, object, args| {
            let Value::Loop(state) = object else { return Err(type_error("a loop is needed")) };
            state.changed(args.positional).map(Value::Bool)
        }),
        _ => return None,
    })
}

pub(super) fn find_cycler(name: &str) -> Option<(&'static str, Call)> {
    Some(match name {
        "next" => ("next", |_, object, args| {
            args.none("next")?;
            let Value::Cycler(cycler) = object else { return Err(type_error("a cycler is needed")) };
            let at = cycler.1.get();
            cycler.1.set((at + 1) % cycler.0.len().max(1));
            Ok(cycler.0.get(at).unwrap_or(Value::None))
        }),
        "reset" => ("reset", |_, object, args| {
            args.none("reset")?;
            if let Value::Cycler(cycler) = object {
                cycler.1.set(0);
            }
            Ok(Value::None)
        }),
        _ => return None,
    })
}

pub(super) fn find_number(object: &Value<'_>, name: &str) -> Option<(&'static str, Call)> {
    fn number<'a>(object: &Value<'a>, args: Args<'a>) -> Result<Number> {
        args.none("number method")?;
        Number::of(object).ok_or_else(|| type_error("a number is needed"))
    }
    let float = matches!(object, Value::Float(_));
    Some(match name {
        "is_integer" if float => ("is_integer", |_, object, args| {
            let number = number(object, args)?.float()?;
            Ok(Value::Bool(number.is_finite() && number.fract() == 0.0))
        }),
        "bit_length" if !float => ("bit_length", |_, object, args| {
            Ok(Value::Int(match number(object, args)? {
                Number::Int(number) => 64 - i64::from(number.unsigned_abs().leading_zeros()),
                Number::Big(number) => number.bits() as i64,
                Number::Float(_) => 0,
            }))
        }),
        "bit_count" if !float => ("bit_count", |_, object, args| {
            Ok(Value::Int(match number(object, args)? {
                Number::Int(number) => i64::from(number.unsigned_abs().count_ones()),
                Number::Big(number) => {
                    number.magnitude().iter_u64_digits().map(|digit| i64::from(digit.count_ones())).sum()
                }
                Number::Float(_) => 0,
            }))
        }),
        "conjugate" => ("conjugate", |_, object, args| number(object, args).map(value)),
        _ => return None,
    })
}
