//! The lazy filters: map, select, reject and their attribute forms.

use super::super::arguments::Args;
use super::super::evaluate::unknown;
use super::super::failure::raise;
use super::super::generator::{Generator, Kind, Source};
use super::super::number::parse_integer;
use super::super::render::Renderer;
use super::super::text::Text;
use super::super::value::Value;
use super::super::{characters, tests};
use super::Call;
use crate::Result;

pub(super) fn find(name: &str) -> Option<Call> {
    Some(match name {
        "map" => |renderer, value, args| Ok(map(renderer, &value, args)),
        "select" => |renderer, value, args| Ok(select(renderer, &value, args, false, true)),
        "reject" => |renderer, value, args| Ok(select(renderer, &value, args, false, false)),
        "selectattr" => |renderer, value, args| Ok(select(renderer, &value, args, true, true)),
        "rejectattr" => |renderer, value, args| Ok(select(renderer, &value, args, true, false)),
        _ => return None,
    })
}

/// The parts of an attribute like `"a.0.b"`; parts of digits are indices.
pub(super) fn path<'a>(attribute: &Value<'a>) -> Vec<Value<'a>> {
    match attribute {
        Value::None => Vec::new(),
        Value::Text(text) => parts(text),
        attribute => vec![attribute.clone()],
    }
}

fn parts<'a>(text: &Text<'a>) -> Vec<Value<'a>> {
    let dot = Text::borrowed(".", None);
    let part = |part: Text<'a>| {
        let digits = !part.is_empty() && part.as_str().chars().all(characters::is_digit);
        let number = if digits { parse_integer(part.as_str(), 10) } else { None };
        number.map_or(Value::Text(part), super::super::number::integer)
    };
    super::super::methods::split(text, Some(&dot), usize::MAX).into_iter().map(part).collect()
}

/// The attributes of `sort`, several with commas between them.
pub(super) fn paths(attribute: Option<Value<'_>>) -> Vec<Vec<Value<'_>>> {
    match attribute {
        Some(Value::Text(text)) => {
            let comma = Text::borrowed(",", None);
            let names = super::super::methods::split(&text, Some(&comma), usize::MAX);
            names.iter().map(parts).collect()
        }
        Some(attribute) => vec![path(&attribute)],
        None => vec![Vec::new()],
    }
}

/// A generator over a value; what cannot be iterated over fails when the first item is asked for.
pub(super) fn lazy<'a>(renderer: &mut Renderer<'a>, value: &Value<'a>, kind: Kind<'a>) -> Value<'a> {
    match renderer.iterate(value) {
        Ok(source) => Generator::value(source, kind),
        Err(error) => Generator::value(Source::Empty, Kind::Failing(error)),
    }
}

/// The same, empty without a look at `value` if that is false.
fn lazy_if_true<'a>(renderer: &mut Renderer<'a>, value: &Value<'a>, kind: Result<Kind<'a>>) -> Value<'a> {
    if !value.is_true() {
        return Generator::value(Source::Empty, Kind::Plain("generator"));
    }
    match kind {
        Ok(kind) => lazy(renderer, value, kind),
        Err(error) => Generator::value(Source::Empty, Kind::Failing(error)),
    }
}

fn map<'a>(renderer: &mut Renderer<'a>, value: &Value<'a>, args: Args<'a>) -> Value<'a> {
    let kind = map_kind(args);
    lazy_if_true(renderer, value, kind)
}

fn map_kind(mut args: Args<'_>) -> Result<Kind<'_>> {
    if args.positional.is_empty() {
        let Some(attribute) = args.take("attribute") else {
            return Err(argument_error("map requires a filter argument".into()));
        };
        let default = args.take("default").filter(|default| !matches!(default, Value::None));
        if let Some((name, _)) = args.named.first() {
            return Err(argument_error(format!("Unexpected keyword argument '{}'", name.as_str())));
        }
        return Ok(Kind::Attribute { path: path(&attribute), default });
    }
    let name = args.positional.remove(0);
    match name.as_str().and_then(super::find) {
        Some(filter) => Ok(Kind::Filter { filter, args }),
        None => Ok(Kind::Failing(unknown("filter", name.as_str().unwrap_or("?")))),
    }
}

fn argument_error(message: String) -> crate::Error {
    raise("FilterArgumentError", message)
}

fn select<'a>(
    renderer: &mut Renderer<'a>,
    value: &Value<'a>,
    args: Args<'a>,
    attribute: bool,
    keep: bool,
) -> Value<'a> {
    let kind = select_kind(args, attribute, keep);
    lazy_if_true(renderer, value, kind)
}

fn select_kind(mut args: Args<'_>, attribute: bool, keep: bool) -> Result<Kind<'_>> {
    let path = if attribute {
        if args.positional.is_empty() {
            return Err(argument_error("Missing parameter for attribute name".into()));
        }
        path(&args.positional.remove(0))
    } else {
        Vec::new()
    };
    if args.positional.is_empty() {
        return Ok(Kind::Select { path, test: None, keep });
    }
    let name = args.positional.remove(0);
    match name.as_str().and_then(tests::find) {
        Some(test) => Ok(Kind::Select { path, test: Some((test, args)), keep }),
        None => Ok(Kind::Failing(unknown("test", name.as_str().unwrap_or("?")))),
    }
}
