//! Filters that make, use or remove HTML, and those that quote for addresses.

use std::fmt::Write;

use super::super::arguments::{Args, flag};
use super::super::dump::{soft, to_text};
use super::super::entities::unescaped;
use super::super::escape::escaped;
use super::super::failure::{raise, type_error, value_error};
use super::super::methods::split;
use super::super::render::Renderer;
use super::super::text::{Text, Writer};
use super::super::value::{Value, View};
use super::{Call, author_of};
use crate::Result;

pub(super) fn find(name: &str) -> Option<Call> {
    Some(match name {
        "safe" => |_, value, args| {
            args.none("safe")?;
            Ok(Value::Text(soft(&value)?.with_safety(true)))
        },
        "escape" | "e" => |_, value, args| {
            args.none("escape")?;
            Ok(Value::Text(escaped(&soft(&value)?)))
        },
        "forceescape" => |_, value, args| {
            args.none("forceescape")?;
            Ok(Value::Text(escaped(&to_text(&value)?)))
        },
        "striptags" => |_, value, args| {
            args.none("striptags")?;
            unescaped(&single_spaced(&without_tags(&to_text(&value)?))).map(Value::Text)
        },
        "xmlattr" => xmlattr,
        "urlencode" => urlencode,
        _ => return None,
    })
}

/// A text without tags and comments; one that is not closed stays, with all behind it.
fn without_tags<'a>(text: &Text<'a>) -> Text<'a> {
    let whole = text.as_str();
    let mut writer = Writer::with_capacity(whole.len());
    let mut kept = 0;
    while let Some(found) = whole[kept..].find('<') {
        let start = kept + found;
        let close = match whole[start..].strip_prefix("<!--") {
            Some(comment) => comment.find("-->").map(|at| start + 4 + at + 3),
            None => whole[start..].find('>').map(|at| start + at + 1),
        };
        let Some(end) = close else { break };
        writer.push_range(text, kept..start);
        kept = end;
    }
    writer.push_range(text, kept..whole.len());
    writer.finish()
}

/// A text whose words stand one space apart.
fn single_spaced<'a>(text: &Text<'a>) -> Text<'a> {
    let mut writer = Writer::with_capacity(text.len());
    for word in split(text, None, usize::MAX) {
        if writer.len() > 0 {
            writer.push(" ", None);
        }
        writer.push_text(&word);
    }
    writer.finish()
}

fn xmlattr<'a>(renderer: &mut Renderer<'a>, value: Value<'a>, args: Args<'a>) -> Result<Value<'a>> {
    let [autospace] = args.bind("xmlattr", ["autospace"], 0)?;
    let map = match &value {
        Value::Dict(map) => map,
        Value::Undefined(undefined) => return Err(undefined.error()),
        _ => return Err(raise("AttributeError", format!("'{}' object has no attribute 'items'", value.type_name()))),
    };
    let mut out = String::new();
    for (key, value) in map.entries() {
        if matches!(value, Value::None | Value::Undefined(_)) {
            continue;
        }
        let Value::Text(key) = key else { return Err(type_error("expected string or bytes-like object")) };
        if key.as_str().contains(|char: char| char.is_ascii_whitespace() || matches!(char, '\u{b}' | '/' | '>' | '=')) {
            return Err(value_error(format!("Invalid character in attribute name: '{}'", key.as_str())));
        }
        if !out.is_empty() {
            out.push(' ');
        }
        let _ = write!(out, "{}=\"{}\"", escaped(&key).as_str(), escaped(&soft(&value)?).as_str());
        renderer.check_size(out.len())?;
    }
    if flag(autospace.as_ref(), true) && !out.is_empty() {
        out.insert(0, ' ');
    }
    Ok(Value::Text(Text::new(out, author_of(&value)).with_safety(renderer.autoescape())))
}

fn urlencode<'a>(renderer: &mut Renderer<'a>, value: Value<'a>, args: Args<'a>) -> Result<Value<'a>> {
    args.none("urlencode")?;
    let author = author_of(&value);
    let whole = matches!(value, Value::Text(_)) || renderer.iterate(&value).is_err();
    if whole {
        return Ok(Value::Text(Text::new(quoted(to_text(&value)?.as_str(), true), author)));
    }
    let entries = match value {
        Value::Dict(map) => Value::View(View::Items, map),
        value => value,
    };
    let mut source = renderer.iterate(&entries)?;
    let mut out = String::new();
    while let Some(pair) = renderer.next(&mut source)? {
        let pair = renderer.unpack(&pair, 2)?;
        if !out.is_empty() {
            out.push('&');
        }
        let text = |index: usize| to_text(&pair[index]).map(|text| quoted(text.as_str(), false));
        let _ = write!(out, "{}={}", text(0)?, text(1)?);
        renderer.check_size(out.len())?;
    }
    Ok(Value::Text(Text::new(out, author)))
}

/// Bytes beyond the unreserved ones as `%XX`; in a query `/` too, and a space as `+`.
fn quoted(text: &str, path: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' | b'-' | b'~' => out.push(byte as char),
            b'/' if path => out.push('/'),
            b' ' if !path => out.push('+'),
            byte => drop(write!(out, "%{byte:02X}")),
        }
    }
    out
}
