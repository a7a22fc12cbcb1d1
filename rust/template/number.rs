//! Python's arithmetic: integers of any size, floats, booleans as integers.

use std::cmp::Ordering;
use std::rc::Rc;

use num_bigint::BigInt;
use num_traits::{FromPrimitive, Num, Pow, Signed, ToPrimitive, Zero};

use super::ast::{BinaryOp, Const};
use super::failure::{limit_error, raise, type_error, value_error};
use super::value::Value;
use crate::Result;

/// Python refuses to write or read integers of more decimal digits.
pub(super) const DIGITS_LIMIT: usize = 4300;
/// Larger results of `**` and `*` are refused: they take minutes and hold the machine's memory.
const BITS: u64 = 1 << 20;

/// A number.
#[derive(Debug, Clone)]
pub(super) enum Number {
    Int(i64),
    Big(BigInt),
    Float(f64),
}

impl Number {
    /// The number that a value is.
    pub(super) fn of(value: &Value<'_>) -> Option<Self> {
        match value {
            Value::Bool(flag) => Some(Self::Int(i64::from(*flag))),
            Value::Int(number) => Some(Self::Int(*number)),
            Value::Big(number) => Some(Self::Big((**number).clone())),
            Value::Float(number) => Some(Self::Float(*number)),
            _ => None,
        }
    }

    fn big(&self) -> BigInt {
        match self {
            Self::Int(number) => BigInt::from(*number),
            Self::Big(number) => number.clone(),
            Self::Float(_) => BigInt::zero(),
        }
    }

    /// As a float, or an error for an integer beyond all floats.
    pub(super) fn float(&self) -> Result<f64> {
        match self {
            Self::Int(number) => Ok(nearest_float(*number)),
            Self::Big(number) => {
                let float = number.to_f64().filter(|float| float.is_finite());
                float.ok_or_else(|| raise("OverflowError", "int too large to convert to float"))
            }
            Self::Float(number) => Ok(*number),
        }
    }

    fn is_float(&self) -> bool {
        matches!(self, Self::Float(_))
    }

    pub(super) fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => Some(a.cmp(b)),
            (Self::Float(a), Self::Float(b)) => a.partial_cmp(b),
            (Self::Float(a), b) => b.compare_float(*a).map(Ordering::reverse),
            (a, Self::Float(b)) => a.compare_float(*b),
            (a, b) => Some(a.big().cmp(&b.big())),
        }
    }

    /// Exact, also where the integer has no float.
    fn compare_float(&self, float: f64) -> Option<Ordering> {
        if float.is_nan() {
            return None;
        }
        if float.is_infinite() {
            return Some(if float > 0.0 { Ordering::Less } else { Ordering::Greater });
        }
        let whole = BigInt::from_f64(float.trunc())?;
        let fraction = float.fract().partial_cmp(&0.0)?;
        Some(self.big().cmp(&whole).then(fraction.reverse()))
    }
}

/// `float(number)`.
#[expect(clippy::cast_precision_loss, reason = "Python rounds to the nearest float too")]
fn nearest_float(number: i64) -> f64 {
    number as f64
}

/// The value of an integer.
pub(super) fn integer<'a>(number: BigInt) -> Value<'a> {
    number.to_i64().map_or_else(|| Value::Big(Rc::new(number)), Value::Int)
}

/// The value of decimal digits with an optional sign; None if they are not digits.
pub(super) fn big_from_digits<'a>(digits: &str) -> Value<'a> {
    digits.parse().map_or(Value::None, integer)
}

/// The constant of an integer literal, prefix included.
pub(super) fn integer_from_literal(literal: &str) -> Const {
    let lower = literal.to_ascii_lowercase();
    let (digits, radix) = match lower.get(..2) {
        Some("0x") => (&lower[2..], 16),
        Some("0o") => (&lower[2..], 8),
        Some("0b") => (&lower[2..], 2),
        _ => (&*lower, 10),
    };
    match i64::from_str_radix(digits, radix) {
        Ok(number) => Const::Int(number),
        Err(_) => Const::Big(BigInt::from_str_radix(digits, radix).unwrap_or_default().to_string().into()),
    }
}

/// The decimal digits of an integer, which Python refuses beyond [`DIGITS_LIMIT`].
pub(super) fn digits_of(number: &BigInt) -> Result<String> {
    let digits = number.to_string();
    if digits.trim_start_matches('-').len() > DIGITS_LIMIT {
        return Err(value_error(format!("an integer of more than {DIGITS_LIMIT} digits cannot be written as text")));
    }
    Ok(digits)
}

/// Reads an integer as `int(text, base)` does; `None` if it is none.
pub(super) fn parse_integer(text: &str, base: u32) -> Option<BigInt> {
    let text = text.trim_matches(super::characters::is_space);
    let (negative, body) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = body.to_ascii_lowercase();
    let prefixed = [("0x", 16), ("0o", 8), ("0b", 2)]
        .into_iter()
        .find(|(prefix, radix)| lower.starts_with(prefix) && (base == *radix || base == 0));
    let (digits, radix) = match prefixed {
        Some((prefix, radix)) => (lower[2..].strip_prefix('_').unwrap_or(&lower[prefix.len()..]), radix),
        None if base == 0
            && lower.len() > 1
            && lower.starts_with('0')
            && !lower.trim_matches(['0', '_']).is_empty() =>
        {
            return None;
        }
        None => (&*lower, if base == 0 { 10 } else { base }),
    };
    let ascii: String = digits.chars().map(|char| decimal_digit(char).unwrap_or(char)).collect();
    let broken = ascii.is_empty() || ascii.starts_with('_') || ascii.ends_with('_') || ascii.contains("__");
    let clean = ascii.replace('_', "");
    if broken || !clean.chars().all(|char| char.is_digit(radix)) || (radix == 10 && clean.len() > DIGITS_LIMIT) {
        return None;
    }
    let number = BigInt::from_str_radix(&clean, radix).ok()?;
    Some(if negative { -number } else { number })
}

/// Reads a float as `float(text)` does.
pub(super) fn parse_float(text: &str) -> Option<f64> {
    let text = text.trim_matches(super::characters::is_space);
    let ascii: String = text.chars().map(|char| decimal_digit(char).unwrap_or(char)).collect();
    let body = ascii.trim_start_matches(['+', '-']);
    if ascii.len() - body.len() > 1 {
        return None;
    }
    let word = body.to_ascii_lowercase();
    if !matches!(&*word, "inf" | "infinity" | "nan") && !is_float_text(&word) {
        return None;
    }
    ascii.replace('_', "").parse().ok()
}

fn is_float_text(word: &str) -> bool {
    let separated = |text: &str| {
        let bytes = text.as_bytes();
        (0..bytes.len()).all(|at| {
            let digit = |at: Option<&u8>| at.is_some_and(u8::is_ascii_digit);
            bytes[at] != b'_' || (at > 0 && digit(bytes.get(at - 1)) && digit(bytes.get(at + 1)))
        })
    };
    word.starts_with(|char: char| char.is_ascii_digit() || char == '.')
        && word.chars().all(|char| char.is_ascii_digit() || matches!(char, '.' | 'e' | '+' | '-' | '_'))
        && separated(word)
}

/// The ASCII digit of a decimal digit of any script.
fn decimal_digit(char: char) -> Option<char> {
    let value = super::characters::decimal(char)?;
    char::from_digit(value, 10)
}

/// An arithmetic operation on numbers.
pub(super) fn binary<'a>(operator: BinaryOp, left: &Number, right: &Number) -> Result<Value<'a>> {
    if operator == BinaryOp::Div || left.is_float() || right.is_float() {
        return float_operation(operator, left, right);
    }
    if let (Number::Int(a), Number::Int(b)) = (left, right)
        && let Some(result) = small_operation(operator, *a, *b)
    {
        return Ok(Value::Int(result));
    }
    big_operation(operator, &left.big(), &right.big())
}

fn small_operation(operator: BinaryOp, a: i64, b: i64) -> Option<i64> {
    match operator {
        BinaryOp::Add => a.checked_add(b),
        BinaryOp::Sub => a.checked_sub(b),
        BinaryOp::Mul => a.checked_mul(b),
        BinaryOp::FloorDiv => (b != 0).then(|| floor_div(a, b)).flatten(),
        BinaryOp::Mod => (b != 0)
            .then(|| a.checked_rem(b).map(|rest| if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }))
            .flatten(),
        BinaryOp::Pow => u32::try_from(b).ok().and_then(|exponent| a.checked_pow(exponent)),
        BinaryOp::Div => None,
    }
}

fn floor_div(a: i64, b: i64) -> Option<i64> {
    let quotient = a.checked_div(b)?;
    let exact = a % b == 0;
    Some(if !exact && (a < 0) != (b < 0) { quotient - 1 } else { quotient })
}

fn division_by_zero() -> crate::Error {
    raise("ZeroDivisionError", "division by zero")
}

fn big_operation<'a>(operator: BinaryOp, a: &BigInt, b: &BigInt) -> Result<Value<'a>> {
    let result = match operator {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul if a.bits() + b.bits() > BITS => return Err(limit_error("an integer grows too large")),
        BinaryOp::Mul => a * b,
        BinaryOp::FloorDiv | BinaryOp::Mod => {
            if b.is_zero() {
                return Err(division_by_zero());
            }
            let (quotient, rest) = (a / b, a % b);
            let adjust = !rest.is_zero() && rest.is_negative() != b.is_negative();
            match operator {
                BinaryOp::FloorDiv if adjust => quotient - 1,
                BinaryOp::FloorDiv => quotient,
                _ if adjust => rest + b,
                _ => rest,
            }
        }
        BinaryOp::Pow | BinaryOp::Div => return big_power(a, b),
    };
    Ok(integer(result))
}

fn big_power<'a>(a: &BigInt, b: &BigInt) -> Result<Value<'a>> {
    if b.is_negative() {
        if a.is_zero() {
            return Err(raise("ZeroDivisionError", "0.0 cannot be raised to a negative power"));
        }
        let base = Number::Big(a.clone()).float()?;
        return Ok(Value::Float(base.powf(Number::Big(b.clone()).float()?)));
    }
    let exponent = b.to_u64().filter(|exponent| a.bits() <= 1 || a.bits().saturating_mul(*exponent) <= BITS);
    let exponent = exponent.ok_or_else(|| limit_error("an integer grows too large"))?;
    Ok(integer(Pow::pow(a, exponent)))
}

fn float_operation<'a>(operator: BinaryOp, left: &Number, right: &Number) -> Result<Value<'a>> {
    let (a, b) = (left.float()?, right.float()?);
    if b == 0.0 && matches!(operator, BinaryOp::Div | BinaryOp::FloorDiv | BinaryOp::Mod) {
        return Err(division_by_zero());
    }
    let result = match operator {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        BinaryOp::Div => exact_quotient(left, right).unwrap_or(a / b),
        BinaryOp::FloorDiv => float_divmod(a, b).0,
        BinaryOp::Mod => float_divmod(a, b).1,
        BinaryOp::Pow => float_power(a, b)?,
    };
    Ok(Value::Float(result))
}

/// The quotient of integers that have no exact float, rounded once.
fn exact_quotient(left: &Number, right: &Number) -> Option<f64> {
    const EXACT: u64 = 53;
    if left.is_float() || right.is_float() || (left.big().bits() <= EXACT && right.big().bits() <= EXACT) {
        return None;
    }
    let (a, b) = (left.big(), right.big());
    if a.is_zero() {
        return None;
    }
    let shift = 66 + b.bits() as i64 - a.bits() as i64;
    let scaled = if shift >= 0 { (a << shift) / &b } else { a / (b << -shift) };
    Some(scaled.to_f64()? * 2f64.powi(i32::try_from(-shift).ok()?))
}

/// Python's `divmod` of floats.
pub(super) fn float_divmod(a: f64, b: f64) -> (f64, f64) {
    let mut rest = a % b;
    let mut quotient = (a - rest) / b;
    if rest == 0.0 {
        rest = 0f64.copysign(b);
    } else if (b < 0.0) != (rest < 0.0) {
        rest += b;
        quotient -= 1.0;
    }
    if quotient == 0.0 {
        return (0f64.copysign(a / b), rest);
    }
    let floor = quotient.floor();
    (if quotient - floor > 0.5 { floor + 1.0 } else { floor }, rest)
}

fn float_power(a: f64, b: f64) -> Result<f64> {
    if a == 0.0 && b < 0.0 {
        return Err(raise("ZeroDivisionError", "0.0 cannot be raised to a negative power"));
    }
    if a < 0.0 && a.is_finite() && b.is_finite() && b.fract() != 0.0 {
        return Err(type_error("the power is a complex number, which templates cannot use"));
    }
    let result = a.powf(b);
    if result.is_infinite() && a.is_finite() && b.is_finite() {
        return Err(raise("OverflowError", "the result is too large for a float"));
    }
    Ok(result)
}

/// `int(float)`: towards zero.
pub(super) fn truncated<'a>(number: f64) -> Result<Value<'a>> {
    if number.is_nan() {
        return Err(value_error("cannot convert float NaN to integer"));
    }
    if number.is_infinite() {
        return Err(raise("OverflowError", "cannot convert float infinity to integer"));
    }
    Ok(integer(BigInt::from_f64(number.trunc()).unwrap_or_default()))
}

/// `-number`.
pub(super) fn negative<'a>(number: Number) -> Value<'a> {
    match number {
        Number::Int(number) => number.checked_neg().map_or_else(|| integer(-BigInt::from(number)), Value::Int),
        Number::Big(number) => integer(-number),
        Number::Float(number) => Value::Float(-number),
    }
}

/// The value of a number.
pub(super) fn value<'a>(number: Number) -> Value<'a> {
    match number {
        Number::Int(number) => Value::Int(number),
        Number::Big(number) => integer(number),
        Number::Float(number) => Value::Float(number),
    }
}
