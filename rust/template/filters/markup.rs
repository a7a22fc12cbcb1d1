//! Filters that make, use or remove HTML, and those that quote for addresses.

use std::fmt::Write;

use super::super::arguments::{Args, flag};
use super::super::characters::is_space;
use super::super::dump::{soft, to_text};
use super::super::escape::escaped;
use super::super::failure::{raise, type_error, value_error};
use super::super::render::Renderer;
use super::super::text::Text;
use super::super::value::{Value, View};
use super::Call;
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
            let stripped = without_tags(to_text(&value)?.as_str());
            Ok(Value::Text(Text::own(unescaped(&stripped)).with_safety(false)))
        },
        "xmlattr" => xmlattr,
        "urlencode" => urlencode,
        "urlize" => |_, _, _| Err(type_error("the filter 'urlize' writes web pages, which no chat template can mean")),
        _ => return None,
    })
}

/// Tags and comments are dropped, and white space becomes single spaces.
fn without_tags(text: &str) -> String {
    let (mut kept, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(start) = rest.find('<') {
        let close = if rest[start..].starts_with("<!--") {
            rest[start + 4..].find("-->").map(|at| start + 4 + at + 3)
        } else {
            rest[start..].find('>').map(|at| start + at + 1)
        };
        let Some(end) = close else { break };
        kept.push_str(&rest[..start]);
        rest = &rest[end..];
    }
    kept.push_str(rest);
    kept.split(is_space).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Entities as the characters they stand for: the basic ones and numbers.
fn unescaped(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(start) = rest.find('&') {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let end = rest.find(';').filter(|end| *end <= 32);
        if let Some((char, end)) = end.and_then(|end| entity(&rest[1..end]).map(|char| (char, end))) {
            out.push(char);
            rest = &rest[end + 1..];
        } else {
            out.push('&');
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
    out
}

fn entity(name: &str) -> Option<char> {
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => '\u{a0}',
        "copy" => '©',
        "raquo" => '»',
        "laquo" => '«',
        "mdash" => '—',
        "ndash" => '–',
        "hellip" => '…',
        name => {
            let digits = name.strip_prefix('#')?;
            let code = match digits.strip_prefix(['x', 'X']) {
                Some(digits) => u32::from_str_radix(digits, 16).ok()?,
                None => digits.parse().ok()?,
            };
            char::from_u32(code)?
        }
    })
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
    Ok(Value::Text(Text::own(out).with_safety(renderer.autoescape())))
}

fn urlencode<'a>(renderer: &mut Renderer<'a>, value: Value<'a>, args: Args<'a>) -> Result<Value<'a>> {
    args.none("urlencode")?;
    let whole = matches!(value, Value::Text(_)) || renderer.iterate(&value).is_err();
    if whole {
        return Ok(Value::own(quoted(to_text(&value)?.as_str(), true)));
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
    Ok(Value::own(out))
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
