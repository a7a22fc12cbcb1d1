//! `template.format(…)` in the sandbox.

use super::super::access::{attribute_named, item};
use super::super::arguments::Args;
use super::super::dump::{ascii, repr, to_text};
use super::super::escape::escaped;
use super::super::failure::{raise, value_error};
use super::super::render::Renderer;
use super::super::text::{Mark, Text, Writer};
use super::super::value::Value;
use super::spec::{Spec, format_value};
use crate::Result;

/// `template.format(*args, **kwargs)`. Literal text has the author of the template, if that is one; a value keeps its
/// authors. A safe template escapes the values.
pub(in super::super) fn braces<'a>(renderer: &Renderer<'a>, template: &Text<'a>, args: Args<'a>) -> Result<Text<'a>> {
    let owner = template.single_mark().unwrap_or(None);
    let mut formatter =
        Formatter { args, numbering: Numbering::Open, safe: template.is_safe(), out: Writer::default() };
    formatter.run(template.as_str(), owner, 3)?;
    renderer.check_size(formatter.out.len())?;
    Ok(formatter.out.finish().with_safety(template.is_safe()))
}

struct Formatter<'a> {
    args: Args<'a>,
    numbering: Numbering,
    safe: bool,
    out: Writer,
}

/// How the fields of a template are numbered: not at all so far, by themselves, or by hand.
#[derive(Clone, Copy)]
enum Numbering {
    Open,
    Automatic(usize),
    Manual,
}

/// A replacement field: name, conversion, specification.
struct Field<'t> {
    name: &'t str,
    conversion: Option<char>,
    spec: &'t str,
}

impl<'a> Formatter<'a> {
    fn run(&mut self, text: &str, owner: Mark, depth: usize) -> Result<()> {
        if depth == 0 {
            return Err(value_error("Max string recursion exceeded"));
        }
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            self.out.push(&rest[..at], owner);
            let brace = &rest[at..=at];
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix(brace) {
                self.out.push(brace, owner);
                rest = after;
            } else if brace == "}" {
                return Err(value_error("Single '}' encountered in format string"));
            } else {
                let (field, after) = parse_field(rest)?;
                self.field(&field, depth)?;
                rest = after;
            }
        }
        self.out.push(rest, owner);
        Ok(())
    }

    fn field(&mut self, field: &Field<'_>, depth: usize) -> Result<()> {
        let value = self.value(field.name)?;
        let value = match field.conversion {
            None => value,
            Some('r') => Value::Text(repr(&value)?),
            Some('s') => Value::Text(to_text(&value)?),
            Some('a') => Value::Text(ascii(&value)?),
            Some(other) => return Err(value_error(format!("Unknown conversion specifier {other}"))),
        };
        let outer = std::mem::take(&mut self.out);
        self.run(field.spec, None, depth - 1)?;
        let spec = std::mem::replace(&mut self.out, outer);
        let shown = formatted(&value, spec.as_str(), self.safe)?;
        self.out.push_text(&shown);
        Ok(())
    }

    fn value(&mut self, name: &str) -> Result<Value<'a>> {
        let end = name.find(['.', '[']).unwrap_or(name.len());
        let mut value = self.argument(&name[..end])?;
        let mut rest = &name[end..];
        while let Some(first) = rest.chars().next() {
            if first == '.' {
                let length = rest[1..].find(['.', '[']).unwrap_or(rest.len() - 1);
                let part = &rest[1..=length];
                if part.is_empty() {
                    return Err(value_error("Empty attribute in format string"));
                }
                value = attribute_named(&value, part)?;
                rest = &rest[1 + length..];
            } else if first == '[' {
                let close = rest.find(']').ok_or_else(|| value_error("Missing ']' in format string"))?;
                let key = &rest[1..close];
                if key.is_empty() {
                    return Err(value_error("Empty attribute in format string"));
                }
                let key = key.parse().map_or_else(|_| Value::own(key), Value::Int);
                value = item(&value, &key)?;
                rest = &rest[close + 1..];
            } else {
                return Err(value_error("Only '.' or '[' may follow ']' in format field specifier"));
            }
        }
        Ok(value)
    }

    fn argument(&mut self, name: &str) -> Result<Value<'a>> {
        let index = if name.is_empty() {
            let next = match self.numbering {
                Numbering::Open => 0,
                Numbering::Automatic(next) => next,
                Numbering::Manual => {
                    return Err(switched("manual field specification to automatic field numbering"));
                }
            };
            self.numbering = Numbering::Automatic(next + 1);
            next
        } else if name.bytes().all(|byte| byte.is_ascii_digit()) {
            if let Numbering::Automatic(_) = self.numbering {
                return Err(switched("automatic field numbering to manual field specification"));
            }
            self.numbering = Numbering::Manual;
            name.parse().unwrap_or(usize::MAX)
        } else {
            let named = self.args.named.iter().find(|(known, _)| known.as_str() == name);
            return named.map(|(_, value)| value.clone()).ok_or_else(|| raise("KeyError", format!("'{name}'")));
        };
        let found = self.args.positional.get(index).cloned();
        found.ok_or_else(|| raise("IndexError", format!("Replacement index {index} out of range")))
    }
}

fn switched(how: &str) -> crate::Error {
    value_error(format!("cannot switch from {how}"))
}

fn formatted<'a>(value: &Value<'a>, spec: &str, safe: bool) -> Result<Text<'a>> {
    let shown = match value {
        Value::Text(text) if safe && text.is_safe() => {
            if !spec.is_empty() {
                return Err(value_error("a format specifier is not allowed for a safe text"));
            }
            return Ok(text.clone());
        }
        Value::Text(text) if spec.is_empty() => text.clone().with_safety(false),
        Value::Text(text) => Spec::parse(spec)?.text(text)?,
        value if spec.is_empty() => to_text(value)?,
        value => Text::own(format_value(value, spec)?),
    };
    Ok(if safe { escaped(&shown) } else { shown })
}

/// Parses a field after its opening brace, and returns what follows its closing one.
fn parse_field(text: &str) -> Result<(Field<'_>, &str)> {
    let end = field_end(text).ok_or_else(|| value_error("expected '}' before end of string"))?;
    let (body, rest) = (&text[..end], &text[end + 1..]);
    let mut bracket = false;
    let split = body.char_indices().find(|(_, char)| {
        bracket = (bracket || *char == '[') && *char != ']';
        !bracket && matches!(char, ':' | '!')
    });
    let Some((at, char)) = split else { return Ok((Field { name: checked(body)?, conversion: None, spec: "" }, rest)) };
    let name = checked(&body[..at])?;
    let after = &body[at + 1..];
    if char == ':' {
        return Ok((Field { name, conversion: None, spec: after }, rest));
    }
    let conversion =
        after.chars().next().ok_or_else(|| value_error("end of string while looking for conversion specifier"))?;
    let spec = match &after[conversion.len_utf8()..] {
        "" => "",
        spec => spec.strip_prefix(':').ok_or_else(|| value_error("expected ':' after conversion specifier"))?,
    };
    Ok((Field { name, conversion: Some(conversion), spec }, rest))
}

fn checked(name: &str) -> Result<&str> {
    if name.contains('{') { Err(value_error("unexpected '{' in field name")) } else { Ok(name) }
}

/// The place of the brace that closes a field.
fn field_end(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (at, char) in text.char_indices() {
        match char {
            '{' => depth += 1,
            '}' if depth == 0 => return Some(at),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}
