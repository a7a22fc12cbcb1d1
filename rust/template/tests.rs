//! The tests behind `is`.

use super::arguments::{Args, required};
use super::ast::{BinaryOp, CompareOp};
use super::compare::{equal, hash_key};
use super::dump::to_text;
use super::filters;
use super::methods::{is_lower, is_upper};
use super::number::Number;
use super::render::Renderer;
use super::value::Value;
use crate::Result;

type Call = for<'a> fn(&mut Renderer<'a>, &Value<'a>, Args<'a>) -> Result<bool>;

/// A test.
#[derive(Debug, Clone, Copy)]
pub(super) enum Test {
    /// Takes no arguments and needs nothing but the value.
    Plain(fn(&Value<'_>) -> bool),
    Call(Call),
}

impl Test {
    /// Whether a value passes.
    pub(super) fn passes<'a>(self, renderer: &mut Renderer<'a>, value: &Value<'a>, args: Args<'a>) -> Result<bool> {
        match self {
            Self::Plain(holds) => plain(args, holds(value)),
            Self::Call(call) => call(renderer, value, args),
        }
    }
}

/// The test of a name.
pub(super) fn find(name: &str) -> Option<Test> {
    find_plain(name).map(Test::Plain).or_else(|| find_call(name).map(Test::Call))
}

fn find_plain(name: &str) -> Option<fn(&Value<'_>) -> bool> {
    let holds: fn(&Value<'_>) -> bool = match name {
        "defined" => |value| !value.is_undefined(),
        "undefined" => |value| value.is_undefined(),
        "none" => |value| matches!(value, Value::None),
        "boolean" => |value| matches!(value, Value::Bool(_)),
        "true" => |value| matches!(value, Value::Bool(true)),
        "false" => |value| matches!(value, Value::Bool(false)),
        "integer" => |value| matches!(value, Value::Int(_) | Value::Big(_)),
        "float" => |value| matches!(value, Value::Float(_)),
        "number" => |value| Number::of(value).is_some(),
        "string" => |value| matches!(value, Value::Text(_)),
        "mapping" => |value| matches!(value, Value::Dict(_)),
        "sequence" => is_sequence,
        "iterable" => is_iterable,
        "callable" => is_callable,
        "escaped" => |value| matches!(value, Value::Text(text) if text.is_safe()),
        _ => return None,
    };
    Some(holds)
}

fn find_call(name: &str) -> Option<Call> {
    let call: Call = match name {
        "lower" => |_, value, args| plain(args, is_lower(to_text(value)?.as_str())),
        "upper" => |_, value, args| plain(args, is_upper(to_text(value)?.as_str())),
        "odd" => |renderer, value, args| {
            args.none("odd")?;
            remainder_is(renderer, value, &Value::Int(2), 1)
        },
        "even" => |renderer, value, args| {
            args.none("even")?;
            remainder_is(renderer, value, &Value::Int(2), 0)
        },
        "divisibleby" => |renderer, value, args| {
            let [number] = args.bind("divisibleby", ["num"], 1)?;
            remainder_is(renderer, value, &required(number), 0)
        },
        "sameas" => |_, value, args| {
            let [other] = args.bind("sameas", ["other"], 1)?;
            Ok(value.is_same(&required(other)))
        },
        "in" => |renderer, value, args| {
            let [container] = args.bind("in", ["seq"], 1)?;
            renderer.contains(&required(container), value)
        },
        "filter" => |_, value, args| known(args, value, |name| filters::find(name).is_some()),
        "test" => |_, value, args| known(args, value, |name| find(name).is_some()),
        "==" | "eq" | "equalto" => |renderer, value, args| compare(renderer, CompareOp::Eq, value, args),
        "!=" | "ne" => |renderer, value, args| compare(renderer, CompareOp::Ne, value, args),
        ">" | "gt" | "greaterthan" => |renderer, value, args| compare(renderer, CompareOp::Gt, value, args),
        ">=" | "ge" => |renderer, value, args| compare(renderer, CompareOp::Ge, value, args),
        "<" | "lt" | "lessthan" => |renderer, value, args| compare(renderer, CompareOp::Lt, value, args),
        "<=" | "le" => |renderer, value, args| compare(renderer, CompareOp::Le, value, args),
        _ => return None,
    };
    Some(call)
}

fn plain(args: Args<'_>, holds: bool) -> Result<bool> {
    args.none("test")?;
    Ok(holds)
}

/// Whether a value is a known name; what cannot be a key of a dict cannot be looked up.
fn known<'a>(args: Args<'a>, value: &Value<'a>, is_known: fn(&str) -> bool) -> Result<bool> {
    hash_key(value)?;
    plain(args, value.as_str().is_some_and(is_known))
}

fn compare<'a>(renderer: &mut Renderer<'a>, operator: CompareOp, value: &Value<'a>, args: Args<'a>) -> Result<bool> {
    let [other] = args.bind("comparison", ["/a"], 1)?;
    renderer.holds(operator, value, &required(other))
}

fn remainder_is<'a>(renderer: &mut Renderer<'a>, value: &Value<'a>, divisor: &Value<'a>, wanted: i64) -> Result<bool> {
    let remainder = renderer.binary(BinaryOp::Mod, value, divisor)?;
    equal(&remainder, &Value::Int(wanted))
}

fn is_sequence(value: &Value<'_>) -> bool {
    matches!(
        value,
        Value::Text(_)
            | Value::Bytes(_)
            | Value::List(_)
            | Value::Tuple(_)
            | Value::Dict(_)
            | Value::Range(_)
            | Value::Group(_)
            | Value::Undefined(_)
    )
}

fn is_iterable(value: &Value<'_>) -> bool {
    is_sequence(value) || matches!(value, Value::View(..) | Value::Generator(_) | Value::Loop(_))
}

fn is_callable(value: &Value<'_>) -> bool {
    matches!(
        value,
        Value::Function(_)
            | Value::Macro(_)
            | Value::Method(_)
            | Value::Joiner(_)
            | Value::Loop(_)
            | Value::Block(_)
            | Value::Undefined(_)
    )
}
