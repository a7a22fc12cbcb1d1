//! `pprint`: `repr` with sorted keys, broken into lines where it is longer than a line; and `random`.

use std::hash::{BuildHasher, RandomState};

use super::super::arguments::Args;
use super::super::characters::is_space;
use super::super::compare::sort;
use super::super::dump::repr;
use super::super::failure::raise;
use super::super::methods::lines;
use super::super::render::Renderer;
use super::super::text::Text;
use super::super::value::{List, Map, Value};
use super::{Call, author_of, hint};
use crate::Result;

const WIDTH: usize = 80;

pub(super) fn find(name: &str) -> Option<Call> {
    Some(match name {
        "pprint" => |renderer, value, args| {
            args.none("pprint")?;
            let mut out = String::new();
            let pretty = &mut Pretty { renderer };
            match &value {
                Value::Text(_) | Value::Bytes(_) => pretty.alone(&value, &mut out)?,
                value => pretty.write(value, 0, 0, &mut out)?,
            }
            Ok(Value::Text(Text::new(out, author_of(&value))))
        },
        "random" => random,
        _ => return None,
    })
}

fn random<'a>(_: &mut Renderer<'a>, value: Value<'a>, args: Args<'a>) -> Result<Value<'a>> {
    args.none("random")?;
    let Some(length) = super::length_of(&value) else {
        return Err(super::type_error(format!("object of type '{}' has no len()", value.type_name())));
    };
    if length == 0 {
        return Ok(hint("No random item, sequence was empty."));
    }
    let index = RandomState::new().hash_one(length) as usize % length;
    let item = super::super::access::subscript(&value, &Value::Int(index as i64))?;
    item.ok_or_else(|| raise("KeyError", index.to_string()))
}

struct Pretty<'r, 'a> {
    renderer: &'r mut Renderer<'a>,
}

impl<'a> Pretty<'_, 'a> {
    /// Writes a value that is nothing but a text, in brackets if it takes several lines.
    fn alone(&mut self, value: &Value<'a>, out: &mut String) -> Result<()> {
        let line = repr(value)?;
        if line.as_str().chars().count() <= WIDTH {
            out.push_str(line.as_str());
            return Ok(());
        }
        let pieces = pieces(value, 1, 1)?;
        match pieces.as_slice() {
            [piece] if !matches!(value, Value::Bytes(_)) => out.push_str(piece),
            pieces => {
                out.push('(');
                push_lines(pieces, 1, out);
                out.push(')');
            }
        }
        self.renderer.check_size(out.len())
    }

    /// Writes a value at an indentation, with `after` characters to follow on its last line.
    fn write(&mut self, value: &Value<'a>, indent: usize, after: usize, out: &mut String) -> Result<()> {
        let sorted = sorted(value)?;
        let line = repr(&sorted)?;
        self.renderer.check_size(out.len() + line.len())?;
        let fits = line.as_str().chars().count() + indent + after <= WIDTH;
        match &sorted {
            _ if fits => out.push_str(line.as_str()),
            Value::Dict(map) if map.len() > 0 => self.entries(map, indent, after, out)?,
            Value::List(items) if items.len() > 0 => self.items(items, indent, after, ("[", "]"), out)?,
            Value::Tuple(items) if items.len() == 1 => self.items(items, indent, after, ("(", ",)"), out)?,
            Value::Tuple(items) if items.len() > 0 => self.items(items, indent, after, ("(", ")"), out)?,
            value @ (Value::Text(_) | Value::Bytes(_)) => push_lines(&pieces(value, indent, after)?, indent, out),
            _ => out.push_str(line.as_str()),
        }
        Ok(())
    }

    fn entries(&mut self, map: &Map<'a>, indent: usize, after: usize, out: &mut String) -> Result<()> {
        out.push('{');
        for (index, (key, value)) in map.entries().enumerate() {
            if index > 0 {
                out.push_str(",\n");
                out.push_str(&" ".repeat(indent + 1));
            }
            let key: Text<'_> = repr(&key)?;
            out.push_str(key.as_str());
            out.push_str(": ");
            let last = index + 1 == map.len();
            let column = indent + 1 + key.as_str().chars().count() + 2;
            self.write(&value, column, if last { after + 1 } else { 1 }, out)?;
        }
        out.push('}');
        Ok(())
    }

    fn items(
        &mut self,
        items: &List<'a>,
        indent: usize,
        after: usize,
        (open, close): (&str, &str),
        out: &mut String,
    ) -> Result<()> {
        out.push_str(open);
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                out.push_str(",\n");
                out.push_str(&" ".repeat(indent + 1));
            }
            let last = index + 1 == items.len();
            self.write(&item, indent + 1, if last { after + close.len() } else { 1 }, out)?;
        }
        out.push_str(close);
        Ok(())
    }
}

fn push_lines(pieces: &[String], indent: usize, out: &mut String) {
    for (index, piece) in pieces.iter().enumerate() {
        if index > 0 {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
        }
        out.push_str(piece);
    }
}

/// A text that is longer than a line, as the lines of its `repr`; a safe text stays on one.
fn pieces(value: &Value<'_>, indent: usize, after: usize) -> Result<Vec<String>> {
    let width = WIDTH.saturating_sub(indent);
    match value {
        Value::Bytes(bytes) if bytes.len() > 4 => {
            let ends: Vec<usize> = (4..bytes.len()).step_by(4).chain([bytes.len()]).collect();
            // Where the bytes end at a fourth one, no part counts as the last.
            let last = if bytes.len() % 4 == 0 { 0 } else { after };
            gathered(&ends, (width, last), |start, end| repr(&Value::Bytes(bytes[start..end].into())))
        }
        Value::Text(text) if !text.is_safe() && !text.is_empty() => {
            let lines = lines(text.as_str());
            let mut pieces = Vec::new();
            for (index, (start, _, end)) in lines.iter().enumerate() {
                let after = if index + 1 == lines.len() { after } else { 0 };
                pieces.extend(wrapped(&text.slice(*start..*end), width, after)?);
            }
            Ok(pieces)
        }
        value => Ok(vec![repr(value)?.as_str().to_owned()]),
    }
}

/// A line of a text, broken behind white space where it is too long.
fn wrapped(line: &Text<'_>, width: usize, after: usize) -> Result<Vec<String>> {
    let whole = repr(&Value::Text(line.clone()))?;
    if whole.as_str().chars().count() + after <= width {
        return Ok(vec![whole.as_str().to_owned()]);
    }
    let (text, mut ends, mut at) = (line.as_str(), Vec::new(), 0);
    while at < text.len() {
        let space = text[at..].find(is_space).map_or(text.len(), |space| at + space);
        at = text[space..].find(|char| !is_space(char)).map_or(text.len(), |next| space + next);
        ends.push(at);
    }
    gathered(&ends, (width, after), |start, end| repr(&Value::Text(line.slice(start..end))))
}

/// As many parts on a line as fit, of parts that end at `ends`; the last part leaves room for what follows.
fn gathered<'t>(
    ends: &[usize],
    (width, after): (usize, usize),
    repr: impl Fn(usize, usize) -> Result<Text<'t>>,
) -> Result<Vec<String>> {
    let (mut pieces, mut start, mut before) = (Vec::new(), 0, 0);
    for (index, end) in ends.iter().enumerate() {
        let width = if index + 1 == ends.len() { width.saturating_sub(after) } else { width };
        if repr(start, *end)?.as_str().chars().count() > width && start < before {
            pieces.push(repr(start, before)?.as_str().to_owned());
            start = before;
        }
        before = *end;
    }
    if start < before {
        pieces.push(repr(start, before)?.as_str().to_owned());
    }
    Ok(pieces)
}

/// The value with the keys of its dicts in order, where they have one.
fn sorted<'a>(value: &Value<'a>) -> Result<Value<'a>> {
    Ok(match value {
        Value::Dict(map) => {
            let entries: Vec<_> = map.entries().collect();
            let keyed =
                entries.iter().map(|(key, value)| (key.clone(), Value::tuple(vec![key.clone(), value.clone()])));
            let ordered = sort(keyed.collect(), false).unwrap_or_else(|_| {
                entries.iter().map(|(key, value)| Value::tuple(vec![key.clone(), value.clone()])).collect()
            });
            let pair = |pair: Value<'a>| match pair {
                Value::Tuple(pair) => Some((pair.get(0)?, pair.get(1)?)),
                _ => None,
            };
            let entries = ordered.into_iter().filter_map(pair).map(|(key, value)| Ok((key, sorted(&value)?)));
            Value::Dict(Map::build(entries.collect::<Result<Vec<_>>>()?)?)
        }
        Value::List(items) => Value::list(items.iter().map(|item| sorted(&item)).collect::<Result<_>>()?),
        Value::Tuple(items) => Value::tuple(items.iter().map(|item| sorted(&item)).collect::<Result<_>>()?),
        value => value.clone(),
    })
}
