//! `json.dumps` with authors.

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
    pub(in super::super) comma: String,
    pub(in super::super) colon: String,
    pub(in super::super) sort_keys: bool,
}

/// `json.dumps(value)`.
pub(in super::super) fn json<'a>(value: &Value<'a>, style: &JsonStyle) -> Result<Text<'a>> {
    let mut writer = Writer::default();
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
            value => match literal(value)? {
                Some(shown) => out.push(&shown, owner),
                None => {
                    return Err(type_error(format!("Object of type {} is not JSON serializable", value.type_name())));
                }
            },
        }
        Ok(())
    }

    fn write_text(&self, text: &Text<'_>, out: &mut Writer, owner: Mark) {
        out.push("\"", owner);
        write_escaped(text, out, owner, |char, shown| escape(char, self.ensure_ascii, shown));
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
        for (index, (key, value)) in self.sorted(map)?.enumerate() {
            if index > 0 {
                out.push(&self.comma, owner);
            }
            self.line(out, owner, depth + 1);
            self.write_key(&key, out, owner)?;
            out.push(&self.colon, owner);
            self.write(&value, out, owner, depth + 1)?;
        }
        self.line(out, owner, depth);
        out.push("}", owner);
        Ok(())
    }

    fn sorted<'v, 'a: 'v>(&self, map: &'v Map<'a>) -> Result<Box<dyn Iterator<Item = (Value<'a>, Value<'a>)> + 'v>> {
        if !self.sort_keys {
            return Ok(Box::new(map.entries()));
        }
        let entries = map.entries().map(|(key, value)| (key.clone(), Value::tuple(vec![key, value]))).collect();
        let sorted = compare::sort(entries, false)?.into_iter();
        Ok(Box::new(sorted.filter_map(|pair| match pair {
            Value::Tuple(pair) => Some((pair.get(0)?, pair.get(1)?)),
            _ => None,
        })))
    }

    fn write_key(&self, key: &Value<'_>, out: &mut Writer, owner: Mark) -> Result<()> {
        if let Value::Text(text) = key {
            self.write_text(text, out, owner);
            return Ok(());
        }
        let Some(shown) = literal(key)? else {
            let message = format!("keys must be str, int, float, bool or None, not {}", key.type_name());
            return Err(type_error(message));
        };
        out.push("\"", owner);
        out.push(&shown, owner);
        out.push("\"", owner);
        Ok(())
    }
}

/// A number, boolean or None in JSON.
fn literal(value: &Value<'_>) -> Result<Option<String>> {
    Ok(Some(match value {
        Value::None => "null".into(),
        Value::Bool(flag) => flag.to_string(),
        Value::Float(number) if number.is_nan() => "NaN".into(),
        Value::Float(number) if number.is_infinite() => if *number > 0.0 { "Infinity" } else { "-Infinity" }.into(),
        Value::Int(_) | Value::Big(_) | Value::Float(_) => scalar(value)?,
        _ => return Ok(None),
    }))
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
