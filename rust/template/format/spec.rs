//! The mini-language after the colon of a replacement field, and the numbers of `%`.

use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive};

use super::super::failure::{limit_error, raise, type_error, value_error};
use super::super::number::{Number, digits_of};
use super::super::text::{Text, Writer};
use super::super::value::Value;
use crate::Result;

/// Wider fields and more digits are refused.
pub(super) const WIDEST: usize = 1 << 20;

/// A parsed format specification.
#[derive(Debug, Clone, Default)]
pub(super) struct Spec {
    pub(super) fill: Option<char>,
    pub(super) align: Option<char>,
    pub(super) sign: Option<char>,
    pub(super) alternate: bool,
    pub(super) zero: bool,
    pub(super) width: usize,
    pub(super) grouping: Option<char>,
    pub(super) precision: Option<usize>,
    pub(super) kind: Option<char>,
    /// `z`: no negative zero.
    pub(super) plain_zero: bool,
}

impl Spec {
    /// Parses what stands after the colon.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut spec = Self::default();
        let mut chars = text.chars().peekable();
        let align = |char: &char| matches!(char, '<' | '>' | '=' | '^');
        let mut ahead = text.chars();
        if let (Some(fill), Some(second)) = (ahead.next(), ahead.next())
            && align(&second)
        {
            (spec.fill, spec.align) = (Some(fill), Some(second));
            chars.nth(1);
        } else {
            spec.align = chars.next_if(align);
        }
        spec.sign = chars.next_if(|char| matches!(char, '+' | '-' | ' '));
        spec.plain_zero = chars.next_if_eq(&'z').is_some();
        spec.alternate = chars.next_if_eq(&'#').is_some();
        spec.zero = spec.fill.is_none() && chars.next_if_eq(&'0').is_some();
        spec.width = number(&mut chars)?.unwrap_or(0);
        spec.grouping = chars.next_if(|char| matches!(char, ',' | '_'));
        if chars.next_if_eq(&'.').is_some() {
            spec.precision =
                Some(number(&mut chars)?.ok_or_else(|| value_error("Format specifier missing precision"))?);
        }
        spec.kind = chars.next();
        if chars.next().is_some() {
            return Err(value_error("Invalid format specifier"));
        }
        Ok(spec)
    }

    /// `format(text, spec)`; the padding is the template's.
    pub(super) fn text<'a>(&self, text: &Text<'a>) -> Result<Text<'a>> {
        if self.kind.is_some_and(|kind| kind != 's') {
            return Err(self.unknown("str"));
        }
        if self.sign.is_some()
            || self.align == Some('=')
            || self.grouping.is_some()
            || self.alternate
            || self.plain_zero
        {
            return Err(value_error("the format specifier is not allowed for texts"));
        }
        let end = self.precision.map_or(text.len(), |count| super::super::access::byte_of(text.as_str(), count));
        let cut = text.slice(0..end);
        let fill = self.fill.unwrap_or(if self.zero { '0' } else { ' ' });
        let missing = self.width.saturating_sub(cut.as_str().chars().count());
        let left = match self.align {
            Some('>') => missing,
            Some('^') => missing / 2,
            _ => 0,
        };
        let mut writer = Writer::with_capacity(cut.len() + missing);
        writer.push(&fill.to_string().repeat(left), None);
        writer.push_text(&cut);
        writer.push(&fill.to_string().repeat(missing - left), None);
        Ok(writer.finish())
    }

    fn unknown(&self, of: &str) -> crate::Error {
        let kind = self.kind.unwrap_or(' ');
        value_error(format!("Unknown format code '{kind}' for object of type '{of}'"))
    }

    /// `format(number, spec)`.
    pub(super) fn number(&self, number: &Number) -> Result<String> {
        match number {
            Number::Float(number) => self.float(*number),
            Number::Int(number) => self.integer(&BigInt::from(*number)),
            Number::Big(number) => self.integer(number),
        }
    }

    fn integer(&self, number: &BigInt) -> Result<String> {
        let (radix, prefix) = match self.kind {
            None | Some('d' | 'n') => (10, ""),
            Some('b') => (2, "0b"),
            Some('o') => (8, "0o"),
            Some('x') => (16, "0x"),
            Some('X') => (16, "0X"),
            Some('c') => return self.character(number),
            Some('e' | 'E' | 'f' | 'F' | 'g' | 'G' | '%') => return self.float(Number::Big(number.clone()).float()?),
            Some(_) => return Err(self.unknown("int")),
        };
        if self.precision.is_some() {
            return Err(value_error("Precision not allowed in integer format specifier"));
        }
        if self.grouping == Some(',') && radix != 10 {
            return Err(value_error("Cannot specify ',' with this format"));
        }
        let magnitude = number.abs();
        let mut digits = if radix == 10 { digits_of(&magnitude)? } else { magnitude.to_str_radix(radix) };
        if self.kind == Some('X') {
            digits.make_ascii_uppercase();
        }
        let prefix = if self.alternate { prefix } else { "" };
        let group = if radix == 10 { 3 } else { 4 };
        Ok(self.assemble(number.is_negative(), prefix, &digits, "", group))
    }

    fn character(&self, number: &BigInt) -> Result<String> {
        if self.sign.is_some() || self.precision.is_some() {
            return Err(value_error("Sign not allowed with integer format specifier 'c'"));
        }
        let char = number.to_u32().and_then(char::from_u32);
        let char = char.ok_or_else(|| raise("OverflowError", "%c arg not in range(0x110000)"))?;
        Ok(self.assemble(false, "", &char.to_string(), "", usize::MAX))
    }

    fn float(&self, number: f64) -> Result<String> {
        let kind = self.kind.unwrap_or(if self.precision.is_some() { '_' } else { 'r' });
        let magnitude = number.abs();
        let precision = self.precision.unwrap_or(6);
        let body = match kind {
            _ if !number.is_finite() => if number.is_nan() { "nan" } else { "inf" }.to_owned(),
            'r' => {
                let mut shown = String::new();
                crate::number::push_float(magnitude, &mut shown);
                shown
            }
            'f' | 'F' => fixed(magnitude, precision, self.alternate),
            '%' => fixed(magnitude * 100.0, precision, self.alternate),
            'e' | 'E' => exponent(magnitude, precision, self.alternate),
            'g' | 'G' | 'n' | '_' => general(magnitude, precision.max(1), self.alternate, kind == '_'),
            _ => return Err(self.unknown("float")),
        };
        let body = if matches!(kind, 'E' | 'F' | 'G') { body.to_ascii_uppercase() } else { body };
        let split = body.find(|char: char| !char.is_ascii_digit()).unwrap_or(body.len());
        let (digits, rest) = if number.is_finite() { body.split_at(split) } else { (&*body, "") };
        let rest = if kind == '%' { format!("{rest}%") } else { rest.to_owned() };
        let zero = self.plain_zero && !body.contains(|char: char| ('1'..='9').contains(&char)) && number.is_finite();
        Ok(self.assemble(
            number.is_sign_negative() && !number.is_nan() && !zero,
            "",
            digits,
            &rest,
            if number.is_finite() { 3 } else { usize::MAX },
        ))
    }

    /// Sign, prefix, digits and the rest in a field of the width.
    fn assemble(&self, negative: bool, prefix: &str, digits: &str, rest: &str, group: usize) -> String {
        let sign = match self.sign {
            _ if negative => "-",
            Some('+') => "+",
            Some(' ') => " ",
            _ => "",
        };
        let inner = self.align == Some('=') || (self.zero && self.align.is_none());
        let fill = self.fill.unwrap_or(if self.zero { '0' } else { ' ' });
        let taken = sign.len() + prefix.len() + rest.len();
        let padded = inner && fill == '0' && self.grouping.is_some();
        let digits = match self.grouping {
            None => digits.to_owned(),
            Some(separator) => {
                grouped(digits, separator, group, if padded { self.width.saturating_sub(taken) } else { 0 })
            }
        };
        let missing = self.width.saturating_sub(taken + digits.chars().count());
        let (left, middle, right) = match self.align {
            _ if inner => (0, missing, 0),
            Some('<') => (0, 0, missing),
            Some('^') => (missing / 2, 0, missing - missing / 2),
            _ => (missing, 0, 0),
        };
        let pad = |count| fill.to_string().repeat(count);
        format!("{}{sign}{prefix}{}{digits}{rest}{}", pad(left), pad(middle), pad(right))
    }
}

fn number(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<Option<usize>> {
    let mut found = None;
    while let Some(digit) = chars.next_if(char::is_ascii_digit) {
        let digit = digit as usize - '0' as usize;
        let value = found.unwrap_or(0usize).saturating_mul(10).saturating_add(digit);
        found = Some(value);
    }
    if found.is_some_and(|value| value > WIDEST) {
        return Err(limit_error("a formatted field is too wide"));
    }
    Ok(found)
}

/// Digits with a separator every `group`, filled with zeros to `width`.
fn grouped(digits: &str, separator: char, group: usize, width: usize) -> String {
    let mut reversed: Vec<char> = Vec::new();
    for (count, digit) in digits.chars().rev().chain(std::iter::repeat('0')).enumerate() {
        let full = count >= digits.len() && reversed.len() >= width;
        if full {
            break;
        }
        if count > 0 && count.is_multiple_of(group) {
            reversed.push(separator);
        }
        reversed.push(digit);
    }
    reversed.into_iter().rev().collect()
}

/// `%.{precision}f`.
pub(in super::super) fn fixed(magnitude: f64, precision: usize, point: bool) -> String {
    let shown = format!("{magnitude:.precision$}");
    if point && precision == 0 { shown + "." } else { shown }
}

fn exponent(magnitude: f64, precision: usize, point: bool) -> String {
    let shown = format!("{magnitude:.precision$e}");
    let (digits, exponent) = shown.split_once('e').unwrap_or((&shown, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
    let point = if point && precision == 0 { "." } else { "" };
    format!("{digits}{point}e{sign}{exponent:0>2}")
}

/// `%.{precision}g`; `dotted` keeps a digit after the point.
fn general(magnitude: f64, precision: usize, alternate: bool, dotted: bool) -> String {
    let scientific = format!("{magnitude:.*e}", precision - 1);
    let power: i64 = scientific.split_once('e').and_then(|(_, power)| power.parse().ok()).unwrap_or(0);
    let limit = precision as i64 - i64::from(dotted);
    if magnitude != 0.0 && (power < -4 || power >= limit) {
        let shown = exponent(magnitude, precision - 1, alternate);
        return if alternate { shown } else { without_zeros(&shown) };
    }
    let decimals = usize::try_from(precision as i64 - 1 - power).unwrap_or(0);
    let shown = fixed(magnitude, decimals, alternate);
    let shown = if alternate { shown } else { without_zeros(&shown) };
    if dotted && !shown.contains('.') { shown + ".0" } else { shown }
}

fn without_zeros(shown: &str) -> String {
    let (digits, exponent) = shown.find('e').map_or((shown, ""), |at| shown.split_at(at));
    let digits = if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits };
    format!("{digits}{exponent}")
}

/// `format(value, spec)` of anything but a text.
pub(super) fn format_value(value: &Value<'_>, spec: &str) -> Result<String> {
    match Number::of(value) {
        Some(number) => Spec::parse(spec)?.number(&number),
        None => Err(type_error(format!("unsupported format string passed to {}.__format__", value.type_name()))),
    }
}
