//! Filters on numbers.

use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive, Zero};

use super::super::arguments::{Args, flag, integer_or, number, required};
use super::super::ast::BinaryOp;
use super::super::failure::{raise, type_error};
use super::super::format::fixed;
use super::super::number::{self as numbers, Number, parse_float, parse_integer, truncated};
use super::super::render::Renderer;
use super::super::value::Value;
use super::Call;
use crate::Result;

pub(super) fn find(name: &str) -> Option<Call> {
    Some(match name {
        "abs" => |_, value, args| {
            args.none("abs")?;
            if let Value::Undefined(_) = value {
                return Err(type_error("bad operand type for abs(): 'Undefined'"));
            }
            Ok(match number("abs", &value)? {
                Number::Float(number) => Value::Float(number.abs()),
                negative if negative.compare(&Number::Int(0)) == Some(std::cmp::Ordering::Less) => {
                    numbers::negative(negative)
                }
                number => numbers::value(number),
            })
        },
        "int" => int,
        "float" => |_, value, args| {
            let [default] = args.bind("float", ["default"], 0)?;
            let found = to_float(&value)?;
            Ok(found.map(Value::Float).or(default).unwrap_or(Value::Float(0.0)))
        },
        "round" => round,
        "filesizeformat" => filesizeformat,
        _ => return None,
    })
}

/// `float(value)`; `None` for a `ValueError` or `TypeError`.
fn to_float(value: &Value<'_>) -> Result<Option<f64>> {
    match value {
        Value::Text(text) => Ok(parse_float(text.as_str())),
        Value::Undefined(undefined) => Err(undefined.error()),
        value => Number::of(value).map(|number| number.float()).transpose(),
    }
}

fn int<'a>(_: &mut Renderer<'a>, value: Value<'a>, args: Args<'a>) -> Result<Value<'a>> {
    let [default, base] = args.bind("int", ["default", "base"], 0)?;
    let base = integer_or(base.as_ref(), 10)?;
    let whole = match &value {
        Value::Text(text) => match u32::try_from(base).ok().filter(|base| *base == 0 || (2..=36).contains(base)) {
            Some(base) => parse_integer(text.as_str(), base).map(numbers::integer),
            None => None,
        },
        Value::Undefined(undefined) => return Err(undefined.error()),
        Value::Float(number) if number.is_infinite() => {
            return Err(raise("OverflowError", "cannot convert float infinity to integer"));
        }
        Value::Float(number) => truncated(*number).ok(),
        value => Number::of(value).map(numbers::value),
    };
    if let Some(whole) = whole {
        return Ok(whole);
    }
    let through_float = to_float(&value)?.and_then(|number| truncated(number).ok());
    Ok(through_float.or(default).unwrap_or(Value::Int(0)))
}

fn round<'a>(renderer: &mut Renderer<'a>, value: Value<'a>, args: Args<'a>) -> Result<Value<'a>> {
    let [precision, method] = args.bind("round", ["precision", "method"], 0)?;
    let precision = precision.unwrap_or(Value::Int(0));
    let method = method.as_ref().map_or(Some("common"), Value::as_str);
    match method {
        Some("common") => round_common(&value, &precision),
        Some(method @ ("ceil" | "floor")) => {
            let power = renderer.binary(BinaryOp::Pow, &Value::Int(10), &precision)?;
            let scaled = renderer.binary(BinaryOp::Mul, &value, &power)?;
            let whole = match Number::of(&scaled) {
                Some(Number::Float(number)) => {
                    truncated(if method == "ceil" { number.ceil() } else { number.floor() })?
                }
                Some(number) => numbers::value(number),
                None => return Err(type_error(format!("must be real number, not {}", scaled.type_name()))),
            };
            renderer.binary(BinaryOp::Div, &whole, &power)
        }
        _ => Err(raise("FilterArgumentError", "method must be common, ceil or floor")),
    }
}

/// Python's `round(value, precision)`: half to even, on the exact value.
fn round_common<'a>(value: &Value<'a>, precision: &Value<'a>) -> Result<Value<'a>> {
    if let Value::Undefined(_) = value {
        return Err(type_error("type Undefined doesn't define __round__ method"));
    }
    let number = Number::of(value)
        .ok_or_else(|| type_error(format!("type {} doesn't define __round__ method", value.type_name())))?;
    if let Value::None = precision {
        return match number {
            Number::Float(float) => truncated(float.round_ties_even()),
            number => Ok(numbers::value(number)),
        };
    }
    let digits = super::integer(precision)?;
    match number {
        Number::Float(float) => Ok(Value::Float(round_float(float, digits))),
        number if digits >= 0 => Ok(numbers::value(number)),
        number => Ok(numbers::integer(round_integer(&big(&number), digits.unsigned_abs()))),
    }
}

fn big(number: &Number) -> BigInt {
    match number {
        Number::Int(number) => BigInt::from(*number),
        Number::Big(number) => number.clone(),
        Number::Float(number) => BigInt::from(*number as i64),
    }
}

fn round_float(number: f64, digits: i64) -> f64 {
    if !number.is_finite() || digits > 330 {
        return number;
    }
    if digits >= 0 {
        let shown = fixed(number.abs(), digits as usize, false);
        return shown.parse::<f64>().unwrap_or(number).copysign(number);
    }
    if digits < -310 {
        return 0f64.copysign(number);
    }
    let whole =
        truncated(number).ok().and_then(|value| Number::of(&value)).map(|value| big(&value)).unwrap_or_default();
    let power = BigInt::from(10).pow(digits.unsigned_abs() as u32);
    let (quotient, rest) = (&whole / &power, (&whole % &power).abs());
    let half = &power / 2;
    let exact = number.fract() == 0.0;
    let up = rest > half || (rest == half && (!exact || (&quotient % 2) != BigInt::zero()));
    let sign = if number < 0.0 { -1 } else { 1 };
    let rounded = if up { quotient + sign } else { quotient } * power;
    rounded.to_f64().unwrap_or(number).abs().copysign(number)
}

fn round_integer(number: &BigInt, digits: u64) -> BigInt {
    if digits > 5000 {
        return BigInt::zero();
    }
    let power = BigInt::from(10).pow(digits as u32);
    let rest = ((number % &power) + &power) % &power;
    let down = number - &rest;
    let twice = &rest * 2;
    let up = twice > power || (twice == power && (&down / &power) % 2 != BigInt::zero());
    if up { down + power } else { down }
}

fn filesizeformat<'a>(_: &mut Renderer<'a>, value: Value<'a>, args: Args<'a>) -> Result<Value<'a>> {
    let [binary] = args.bind("filesizeformat", ["binary"], 0)?;
    let binary = flag(binary.as_ref(), false);
    let size = to_float(&value)?.ok_or_else(|| match &value {
        Value::Text(text) => raise("ValueError", format!("could not convert string to float: '{}'", text.as_str())),
        value => type_error(format!("float() argument must be a string or a real number, not '{}'", value.type_name())),
    })?;
    let base: f64 = if binary { 1024.0 } else { 1000.0 };
    let prefixes = if binary {
        ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"]
    } else {
        ["kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"]
    };
    if (size - 1.0).abs() < f64::EPSILON / 4.0 {
        return Ok(Value::literal("1 Byte"));
    }
    if size < base {
        let whole = required(Some(truncated(size)?));
        return Ok(Value::own(format!("{} Bytes", super::to_text(&whole)?.as_str())));
    }
    let mut unit = base;
    let mut prefix = "";
    for (index, name) in prefixes.into_iter().enumerate() {
        unit = base.powi(index as i32 + 2);
        prefix = name;
        if size < unit {
            break;
        }
    }
    Ok(Value::own(format!("{} {prefix}", fixed(base * size / unit, 1, false))))
}
