//! The filters behind `|`, found by name.

#![expect(
    clippy::needless_pass_by_value,
    reason = "every filter has one signature, which gives it its value and arguments"
)]

mod links;
mod lists;
mod markup;
mod numbers;
mod pretty;
mod select;
mod texts;
mod wrap;

use std::borrow::Cow;

use super::arguments::{Args, flag, integer, required, text};
use super::dump::{JsonStyle, json, soft, to_text};
use super::failure::type_error;
use super::methods::lower;
use super::render::Renderer;
use super::text::Mark;
use super::value::{Undefined, Value};
use crate::Result;

pub(super) use lists::length_of;

type Call = for<'a> fn(&mut Renderer<'a>, Value<'a>, Args<'a>) -> Result<Value<'a>>;

/// A filter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Filter {
    pub(super) call: Call,
}

/// The filter of a name.
pub(super) fn find(name: &str) -> Option<Filter> {
    let call: Call = match name {
        "default" | "d" => default,
        "string" => |_, value, args| {
            args.none("string")?;
            soft(&value).map(Value::Text)
        },
        "tojson" => tojson,
        "attr" => attr,
        _ => texts::find(name)
            .or_else(|| lists::find(name))
            .or_else(|| select::find(name))
            .or_else(|| numbers::find(name))
            .or_else(|| markup::find(name))
            .or_else(|| links::find(name))
            .or_else(|| wrap::find(name))
            .or_else(|| pretty::find(name))?,
    };
    Some(Filter { call })
}

/// A text in lower case, for comparing without regard to case; other values as they are.
pub(super) fn folded(value: Value<'_>, case_sensitive: bool) -> Value<'_> {
    match value {
        Value::Text(text) if !case_sensitive => Value::Text(lower(&text)),
        value => value,
    }
}

/// Who a text counts as written by that a filter makes of a whole value: the first author in it. What a message says
/// is never taken for the template's own text.
fn author_of(value: &Value<'_>) -> Mark {
    match value {
        Value::Text(text) => text.first_author(),
        Value::List(items) | Value::Tuple(items) => {
            items.owner().or_else(|| items.iter().find_map(|item| author_of(&item)))
        }
        Value::Dict(map) | Value::View(_, map) => {
            map.owner().or_else(|| map.entries().find_map(|(key, value)| author_of(&key).or_else(|| author_of(&value))))
        }
        _ => None,
    }
}

fn hint<'a>(text: &str) -> Value<'a> {
    Value::Undefined(Undefined::Hint(text.into()))
}

fn default<'a>(_: &mut Renderer<'a>, value: Value<'a>, args: Args<'a>) -> Result<Value<'a>> {
    let [other, boolean] = args.bind("default", ["default_value", "boolean"], 0)?;
    let replace = value.is_undefined() || (flag(boolean.as_ref(), false) && !value.is_true());
    Ok(if replace { other.unwrap_or_else(|| Value::literal("")) } else { value })
}

fn attr<'a>(renderer: &mut Renderer<'a>, value: Value<'a>, args: Args<'a>) -> Result<Value<'a>> {
    let [name] = args.bind("attr", ["name"], 1)?;
    let name = text("attr", required(name))?;
    if let Value::Loop(state) = &value
        && let Some(found) = renderer.loop_property(state, name.as_str())?
    {
        return Ok(found);
    }
    let found = super::access::real_attribute(&value, name.as_str())?;
    Ok(found.unwrap_or_else(|| Value::Undefined(Undefined::attribute(value.type_name(), name.as_str()))))
}

/// `json.dumps`, with its parameters in transformers' order.
fn tojson<'a>(renderer: &mut Renderer<'a>, value: Value<'a>, args: Args<'a>) -> Result<Value<'a>> {
    let [ensure_ascii, indent, separators, sort_keys] =
        args.bind("tojson", ["ensure_ascii", "indent", "separators", "sort_keys"], 0)?;
    let indent = match indent {
        None | Some(Value::None) => None,
        Some(Value::Text(text)) => Some(text.as_str().to_owned()),
        Some(count) => {
            let count = usize::try_from(integer(&count)?).unwrap_or(0);
            renderer.check_size(count)?;
            Some(" ".repeat(count))
        }
    };
    let (comma, colon) = match separators {
        None | Some(Value::None) => (if indent.is_some() { "," } else { ", " }.into(), ": ".into()),
        Some(pair) => separator_pair(renderer, &pair)?,
    };
    let style = JsonStyle {
        ensure_ascii: flag(ensure_ascii.as_ref(), false),
        indent,
        comma,
        colon,
        sort_keys: flag(sort_keys.as_ref(), false),
    };
    json(&value, &style).map(Value::Text)
}

type Separator = Cow<'static, str>;

fn separator_pair<'a>(renderer: &mut Renderer<'a>, pair: &Value<'a>) -> Result<(Separator, Separator)> {
    let items = renderer.collect(pair)?;
    let [comma, colon] = items.as_slice() else {
        return Err(super::failure::value_error(format!("two separators are needed, got {}", items.len())));
    };
    match (comma.as_str(), colon.as_str()) {
        (Some(comma), Some(colon)) => Ok((comma.to_owned().into(), colon.to_owned().into())),
        _ => Err(type_error("separators are texts")),
    }
}
