//! `template % values`.

use super::super::arguments::integer;
use super::super::dump::{ascii, repr, to_text};
use super::super::escape::escaped;
use super::super::failure::{limit_error, raise, type_error, value_error};
use super::super::number::{Number, truncated};
use super::super::text::{Text, Writer};
use super::super::value::{List, Value};
use super::spec::{Spec, WIDEST};
use crate::Result;

/// `template % values`, each piece with its authors. A safe template escapes the values.
pub(in super::super) fn percent<'a>(template: &Text<'a>, values: &Value<'a>) -> Result<Text<'a>> {
    let items = match values {
        Value::Tuple(items) => items.clone(),
        Value::Group(group) => List::new(vec![group.0.clone(), group.1.clone()]),
        value => List::new(vec![value.clone()]),
    };
    let mapped = matches!(values, Value::Dict(_) | Value::List(_) | Value::Range(_) | Value::Undefined(_));
    let mut formatter = Formatter { template, values, items, next: 0, out: Writer::default() };
    formatter.run()?;
    if formatter.next < formatter.items.len() && !mapped {
        return Err(type_error("not all arguments converted during string formatting"));
    }
    Ok(formatter.out.finish().with_safety(template.is_safe()))
}

struct Formatter<'f, 'a> {
    template: &'f Text<'a>,
    values: &'f Value<'a>,
    items: List<'a>,
    next: usize,
    out: Writer,
}

impl<'a> Formatter<'_, 'a> {
    fn run(&mut self) -> Result<()> {
        let text = self.template.as_str();
        let mut start = 0;
        while let Some(found) = text[start..].find('%') {
            let at = start + found;
            self.out.push_range(self.template, start..at);
            start = self.directive(at)?;
        }
        self.out.push_range(self.template, start..text.len());
        Ok(())
    }

    fn take(&mut self) -> Result<Value<'a>> {
        let value = self.items.get(self.next).ok_or_else(|| type_error("not enough arguments for format string"))?;
        self.next += 1;
        Ok(value)
    }

    /// Writes the directive at `at` and returns where it ends.
    fn directive(&mut self, at: usize) -> Result<usize> {
        let text = self.template.as_str();
        let mut rest = &text[at + 1..];
        let key = match rest.strip_prefix('(') {
            None => None,
            Some(inner) => {
                let end = closing(inner).ok_or_else(|| value_error("incomplete format key"))?;
                rest = &inner[end + 1..];
                Some(&inner[..end])
            }
        };
        let mut spec = Spec { align: Some('>'), ..Spec::default() };
        rest = self.flags(rest, &mut spec)?;
        rest = rest.strip_prefix(['h', 'l', 'L']).unwrap_or(rest);
        let kind = rest.chars().next().ok_or_else(|| value_error("incomplete format"))?;
        let end = text.len() - rest.len() + kind.len_utf8();
        if kind == '%' {
            self.out.push("%", self.template.mark_at(end - 1));
            return Ok(end);
        }
        let value = match key {
            Some(key) => self.keyed(key)?,
            None => self.take()?,
        };
        self.write(kind, spec, &value)?;
        Ok(end)
    }

    fn keyed(&mut self, key: &str) -> Result<Value<'a>> {
        let map = match self.values {
            Value::Dict(map) => map,
            Value::Undefined(undefined) => return Err(undefined.error()),
            _ => return Err(type_error("format requires a mapping")),
        };
        self.next = self.items.len();
        map.get_text(key).ok_or_else(|| raise("KeyError", format!("'{key}'")))
    }

    /// Reads flags, width and precision.
    fn flags<'t>(&mut self, text: &'t str, spec: &mut Spec) -> Result<&'t str> {
        let mut rest = text;
        while let Some(flag) = rest.chars().next().filter(|flag| "#0- +".contains(*flag)) {
            match flag {
                '#' => spec.alternate = true,
                '0' => spec.zero = true,
                '-' => spec.align = Some('<'),
                '+' => spec.sign = Some('+'),
                _ => spec.sign = spec.sign.or(Some(' ')),
            }
            rest = &rest[1..];
        }
        let (width, after) = self.amount(rest)?;
        if width.is_some_and(|width| width < 0) {
            spec.align = Some('<');
        }
        spec.width = checked_width(width.map_or(0, i64::unsigned_abs))?;
        rest = after;
        if let Some(after) = rest.strip_prefix('.') {
            let (precision, after) = self.amount(after)?;
            spec.precision = Some(checked_width(u64::try_from(precision.unwrap_or(0)).unwrap_or(0))?);
            rest = after;
        }
        Ok(rest)
    }

    fn amount<'t>(&mut self, text: &'t str) -> Result<(Option<i64>, &'t str)> {
        if let Some(rest) = text.strip_prefix('*') {
            let value = self.take()?;
            if Number::of(&value).is_none() {
                return Err(type_error("* wants int"));
            }
            return Ok((Some(integer(&value)?), rest));
        }
        let digits = text.len() - text.trim_start_matches(|char: char| char.is_ascii_digit()).len();
        let amount = if digits == 0 { None } else { Some(text[..digits].parse().unwrap_or(i64::MAX)) };
        Ok((amount, &text[digits..]))
    }

    fn write(&mut self, kind: char, mut spec: Spec, value: &Value<'a>) -> Result<()> {
        if matches!(kind, 's' | 'r' | 'a') {
            spec.zero = false;
            return self.write_text(kind, &spec, value);
        }
        if kind == 'c' {
            return self.write_character(&spec, value);
        }
        let number = Number::of(value).ok_or_else(|| wrong_type(kind, value));
        if spec.zero && spec.align == Some('>') {
            spec.align = Some('=');
        }
        let shown = match kind {
            'd' | 'i' | 'u' => integral(&mut spec, &whole(number?)?, 'd')?,
            'o' | 'x' | 'X' => {
                let number = number?;
                if matches!(number, Number::Float(_)) {
                    return Err(wrong_type(kind, value));
                }
                integral(&mut spec, &number, kind)?
            }
            'e' | 'E' | 'f' | 'F' | 'g' | 'G' => {
                spec.kind = Some(kind);
                spec.number(&Number::Float(number?.float()?))?
            }
            _ => return Err(value_error(format!("unsupported format character '{kind}'"))),
        };
        self.out.push(&shown, None);
        Ok(())
    }

    fn write_text(&mut self, kind: char, spec: &Spec, value: &Value<'a>) -> Result<()> {
        let text = match kind {
            's' if self.template.is_safe() => match value {
                Value::Text(text) => escaped(text),
                value => escaped(&to_text(value)?),
            },
            's' => to_text(value)?,
            'r' => repr(value)?,
            _ => ascii(value)?,
        };
        let text = if kind != 's' && self.template.is_safe() { escaped(&text) } else { text };
        self.out.push_text(&spec.text(&text.with_safety(false))?);
        Ok(())
    }

    fn write_character(&mut self, spec: &Spec, value: &Value<'a>) -> Result<()> {
        let char = match value {
            Value::Text(text) if text.as_str().chars().count() == 1 => text.as_str().to_owned(),
            Value::Int(_) | Value::Bool(_) | Value::Big(_) => {
                let char = u32::try_from(integer(value)?).ok().and_then(char::from_u32);
                char.ok_or_else(|| raise("OverflowError", "%c arg not in range(0x110000)"))?.to_string()
            }
            _ => return Err(type_error("%c requires int or char")),
        };
        let plain = Spec { precision: None, zero: false, sign: None, alternate: false, ..spec.clone() };
        self.out.push_text(&plain.text(&Text::own(char))?.marked(None));
        Ok(())
    }
}

/// The place of the bracket that closes a key.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, char) in text.char_indices() {
        match char {
            '(' => depth += 1,
            ')' if depth == 0 => return Some(at),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn checked_width(width: u64) -> Result<usize> {
    let width = usize::try_from(width).ok().filter(|width| *width <= WIDEST);
    width.ok_or_else(|| limit_error("a formatted field is too wide"))
}

fn wrong_type(kind: char, value: &Value<'_>) -> crate::Error {
    if let (Value::Undefined(undefined), false) = (value, matches!(kind, 'o' | 'x' | 'X')) {
        return undefined.error();
    }
    type_error(format!("%{kind} format: a number is required, not {}", value.type_name()))
}

fn whole(number: Number) -> Result<Number> {
    match number {
        Number::Float(number) => Number::of(&truncated(number)?).ok_or_else(|| type_error("a number is required")),
        number => Ok(number),
    }
}

/// An integer; a precision is a least number of digits.
fn integral(spec: &mut Spec, number: &Number, kind: char) -> Result<String> {
    spec.kind = Some(kind);
    let Some(digits) = spec.precision.take() else { return spec.number(number) };
    let bare = Spec { kind: spec.kind, alternate: spec.alternate, ..Spec::default() }.number(number)?;
    let (sign, body) = bare.strip_prefix('-').map_or(("", &*bare), |body| ("-", body));
    let split = if spec.alternate && kind != 'd' { 2 } else { 0 };
    let (prefix, body) = body.split_at(split);
    let sign = if sign.is_empty() { spec.sign.map_or(String::new(), String::from) } else { sign.to_owned() };
    let shown = format!("{sign}{prefix}{body:0>digits$}");
    let field =
        Spec { align: spec.align.filter(|align| *align != '=').or(Some('>')), width: spec.width, ..Spec::default() };
    Ok(field.text(&Text::own(shown))?.as_str().to_owned())
}
