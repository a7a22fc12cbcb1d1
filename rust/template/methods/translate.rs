//! `str.translate` and `str.maketrans`: texts rewritten character by character, by a table.

use super::super::access::subscript;
use super::super::arguments::{Args, required, text};
use super::super::failure::{type_error, value_error};
use super::super::render::Renderer;
use super::super::text::Writer;
use super::super::value::{Map, Value};
use super::Call;
use super::cut::this;
use crate::Result;

pub(super) fn find(name: &str) -> Option<(&'static str, Call)> {
    Some(match name {
        "translate" => ("translate", translate),
        "maketrans" => ("maketrans", make_table),
        _ => return None,
    })
}

/// A character that is replaced gives its author to what replaces it, unless that has one of its own.
fn translate<'a>(renderer: &mut Renderer<'a>, object: &Value<'a>, args: Args<'a>) -> Result<Value<'a>> {
    let [table] = args.bind("translate", ["/table"], 1)?;
    let (table, object) = (required(table), this(object)?);
    let mut writer = Writer::with_capacity(object.len());
    for (at, char) in object.as_str().char_indices() {
        let mark = object.mark_at(at);
        match subscript(&table, &Value::Int(i64::from(u32::from(char))))? {
            None => writer.push(char.encode_utf8(&mut [0; 4]), mark),
            Some(Value::None) => {}
            Some(Value::Text(text)) => writer.push_as(&text, |own| own.or(mark)),
            Some(code) => writer.push(character(&code)?.encode_utf8(&mut [0; 4]), mark),
        }
        renderer.check_size(writer.len())?;
    }
    Ok(Value::Text(writer.finish().with_safety(object.is_safe())))
}

fn character(code: &Value<'_>) -> Result<char> {
    let code = match code {
        Value::Int(code) => *code,
        Value::Bool(flag) => i64::from(*flag),
        Value::Big(_) => -1,
        _ => return Err(type_error("character mapping must return integer, None or str")),
    };
    let char = u32::try_from(code).ok().and_then(char::from_u32);
    char.ok_or_else(|| value_error("character mapping must be in range(0x110000), and no surrogate"))
}

fn make_table<'a>(_: &mut Renderer<'a>, _: &Value<'a>, args: Args<'a>) -> Result<Value<'a>> {
    let [from, to, removed] = args.bind("maketrans", ["/x", "/y", "/z"], 1)?;
    let from = required(from);
    let Some(to) = to else { return from_dict(&from) };
    let Value::Text(from) = from else {
        return Err(type_error("first maketrans argument must be a string if there is a second argument"));
    };
    let to = text("maketrans", to)?;
    let removed = removed.map(|removed| text("maketrans", removed)).transpose()?;
    if from.as_str().chars().count() != to.as_str().chars().count() {
        return Err(value_error("the first two maketrans arguments must have equal length"));
    }
    let code = |char: char| Value::Int(i64::from(u32::from(char)));
    let replaced = from.as_str().chars().zip(to.as_str().chars()).map(|(from, to)| (code(from), code(to)));
    let removed = removed.iter().flat_map(|text| text.as_str().chars()).map(|char| (code(char), Value::None));
    Map::build(replaced.chain(removed)).map(Value::Dict)
}

fn from_dict<'a>(given: &Value<'a>) -> Result<Value<'a>> {
    let Value::Dict(map) = given else {
        return Err(type_error("if you give only one argument to maketrans it must be a dict"));
    };
    let entries: Result<Vec<_>> = map.entries().map(|(key, value)| Ok((key_of(key)?, value))).collect();
    Map::build(entries?).map(Value::Dict)
}

fn key_of(key: Value<'_>) -> Result<Value<'_>> {
    match key {
        Value::Int(_) | Value::Bool(_) | Value::Big(_) => Ok(key),
        Value::Text(text) => {
            let mut chars = text.as_str().chars();
            match (chars.next(), chars.next()) {
                (Some(char), None) => Ok(Value::Int(i64::from(u32::from(char)))),
                _ => Err(value_error("string keys in translate table must be of length 1")),
            }
        }
        _ => Err(type_error("keys in translate table must be strings or integers")),
    }
}
