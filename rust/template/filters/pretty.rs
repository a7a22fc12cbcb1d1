//! `pprint`: `repr` with sorted keys, broken into lines where it is longer than a line; and `random`.

use std::hash::{BuildHasher, RandomState};

use super::super::arguments::Args;
use super::super::compare::sort;
use super::super::dump::repr;
use super::super::failure::raise;
use super::super::render::Renderer;
use super::super::text::Text;
use super::super::value::{List, Map, Value};
use super::{Call, hint};
use crate::Result;

const WIDTH: usize = 80;

pub(super) fn find(name: &str) -> Option<Call> {
    Some(match name {
        "pprint" => |renderer, value, args| {
            args.none("pprint")?;
            let mut out = String::new();
            Pretty { renderer }.write(&value, 0, 0, &mut out)?;
            Ok(Value::own(out))
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
