//! `json.dumps` with authors.

use std::borrow::Cow;
use std::fmt::Write;

use super::super::compare;
use super::super::failure::{limit_error, type_error};
use super::super::text::{Mark, Text, Writer};
use super::super::value::{List, Map, Value};
use super::{DEPTH, scalar, write_escaped};
use crate::Result;

/// The options of `json.dumps`.
#[derive(Debug)]
pub(in super::super) struct JsonStyle {
    pub(in super::super) ensure_ascii: bool,
    /// What one level is indented by.
    pub(in super::super) indent: Option<String>,
    pub(in super::super) comma: Cow<'static, str>,
    pub(in super::super) colon: Cow<'static, str>,
    pub(in super::super) sort_keys: bool,
}

/// `json.dumps(value)`.
pub(in super::super) fn json<'a>(value: &Value<'a>, style: &JsonStyle) -> Result<Text<'a>> {
    let mut writer = Writer::for_buffer();
    style.write(value, &mut writer, None, 0)?;
    Ok(writer.finish())
}

impl JsonStyle {
    fn write(&self, value: &Value<'_>, out: &mut Writer, owner: Mark, depth: usize) -> Result<()> {
        if depth > DEPTH {
            return Err(limit_error("containers are nested too deeply for JSON"));
        }
        match value {
            Value::Text(text) => self.write_text(text, out, owner),
            Value::List(items) | Value::Tuple(items) => self.write_items(items, out, owner, depth)?,
            Value::Group(group) => {
                self.write_items(&List::new(vec![group.0.clone(), group.1.clone()]), out, owner, depth)?;
            }
            Value::Dict(map) => self.write_map(map, out, owner, depth)?,
            value => {
                if !write_literal(value, out, owner)? {
                    return Err(type_error(format!("Object of type {} is not JSON serializable", value.type_name())));
                }
            }
        }
        Ok(())
    }

    fn write_text(&self, text: &Text<'_>, out: &mut Writer, owner: Mark) {
        let plain = |byte| byte >= b' ' && byte != b'"' && byte != b'\\' && !(self.ensure_ascii && byte > b'~');
        if owner.is_some() && all(text.as_str(), plain) {
            out.write_with(owner, |out| {
                out.push('"');
                out.push_str(text.as_str());
                out.push('"');
            });
            return;
        }
        out.push("\"", owner);
        write_escaped(text, out, owner, plain, |char, shown| escape(char, self.ensure_ascii, shown));
        out.push("\"", owner);
    }

    fn line(&self, out: &mut Writer, owner: Mark, depth: usize) {
        if let Some(indent) = &self.indent {
            out.push("\n", owner);
            for _ in 0..depth {
                out.push(indent, owner);
            }
        }
    }

    fn write_items(&self, items: &List<'_>, out: &mut Writer, owner: Mark, depth: usize) -> Result<()> {
        let owner = owner.or(items.owner());
        if items.len() == 0 {
            out.push("[]", owner);
            return Ok(());
        }
        out.push("[", owner);
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                out.push(&self.comma, owner);
            }
            self.line(out, owner, depth + 1);
            self.write(&item, out, owner, depth + 1)?;
        }
        self.line(out, owner, depth);
        out.push("]", owner);
        Ok(())
    }

    fn write_map(&self, map: &Map<'_>, out: &mut Writer, owner: Mark, depth: usize) -> Result<()> {
        let owner = owner.or(map.owner());
        if map.len() == 0 {
            out.push("{}", owner);
            return Ok(());
        }
        out.push("{", owner);
        let mut write_entry = |index, key: &Value<'_>, value: &Value<'_>| {
            if index > 0 {
                out.push(&self.comma, owner);
            }
            self.line(out, owner, depth + 1);
            self.write_key(key, out, owner)?;
            out.push(&self.colon, owner);
            self.write(value, out, owner, depth + 1)
        };
        if self.sort_keys {
            for (index, pair) in sorted(map)?.into_iter().enumerate() {
                let Value::Tuple(pair) = pair else { continue };
                let (Some(key), Some(value)) = (pair.get(0), pair.get(1)) else { continue };
                write_entry(index, &key, &value)?;
            }
        } else {
            for (index, (key, value)) in map.entries().enumerate() {
                write_entry(index, &key, &value)?;
            }
        }
        self.line(out, owner, depth);
        out.push("}", owner);
        Ok(())
    }

    fn write_key(&self, key: &Value<'_>, out: &mut Writer, owner: Mark) -> Result<()> {
        if let Value::Text(text) = key {
            self.write_text(text, out, owner);
            return Ok(());
        }
        out.push("\"", owner);
        if !write_literal(key, out, owner)? {
            let message = format!("keys must be str, int, float, bool or None, not {}", key.type_name());
            return Err(type_error(message));
        }
        out.push("\"", owner);
        Ok(())
    }
}

/// Whether all bytes are plain. Those of a chunk are looked at together, without a branch for each.
fn all(text: &str, plain: impl Fn(u8) -> bool) -> bool {
    text.as_bytes().chunks(32).all(|chunk| chunk.iter().fold(true, |all, byte| all & plain(*byte)))
}

/// The entries of a dict as pairs, in the order of their keys.
fn sorted<'a>(map: &Map<'a>) -> Result<Vec<Value<'a>>> {
    compare::sort(map.entries().map(|(key, value)| (key.clone(), Value::tuple(vec![key, value]))).collect(), false)
}

/// Writes a number, boolean or None; returns whether the value is one.
fn write_literal(value: &Value<'_>, out: &mut Writer, owner: Mark) -> Result<bool> {
    match value {
        Value::None => out.push("null", owner),
        Value::Bool(flag) => out.push(if *flag { "true" } else { "false" }, owner),
        Value::Float(number) if number.is_nan() => out.push("NaN", owner),
        Value::Float(number) if number.is_infinite() => {
            out.push(if *number > 0.0 { "Infinity" } else { "-Infinity" }, owner);
        }
        Value::Int(number) => out.write_with(owner, |text| {
            let _ = write!(text, "{number}");
        }),
        Value::Big(_) | Value::Float(_) => out.push(&scalar(value)?, owner),
        _ => return Ok(false),
    }
    Ok(true)
}

fn escape(char: char, ensure_ascii: bool, shown: &mut String) -> bool {
    match char {
        '"' => shown.push_str("\\\""),
        '\\' => shown.push_str("\\\\"),
        '\n' => shown.push_str("\\n"),
        '\r' => shown.push_str("\\r"),
        '\t' => shown.push_str("\\t"),
        '\u{8}' => shown.push_str("\\b"),
        '\u{c}' => shown.push_str("\\f"),
        char if char < ' ' => drop(write!(shown, "\\u{:04x}", char as u32)),
        char if ensure_ascii && char > '~' => {
            for unit in char.encode_utf16(&mut [0; 2]) {
                let _ = write!(shown, "\\u{unit:04x}");
            }
        }
        _ => return false,
    }
    true
}
