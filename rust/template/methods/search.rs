//! Methods of texts that search, count, pad and format.

use super::super::access::{byte_of, slice_indices};
use super::super::arguments::{Args, integer, optional_text, required, text};
use super::super::failure::{type_error, value_error};
use super::super::format;
use super::super::render::Renderer;
use super::super::text::{Text, Writer};
use super::super::value::Value;
use super::Call;
use super::cut::this;
use crate::Result;

pub(super) fn find(name: &str) -> Option<(&'static str, Call)> {
    Some(match name {
        "startswith" => {
            ("startswith", |_, object, args| ends(object, args, "startswith", |text, affix| text.starts_with(affix)))
        }
        "endswith" => {
            ("endswith", |_, object, args| ends(object, args, "endswith", |text, affix| text.ends_with(affix)))
        }
        "find" => ("find", |_, object, args| place(object, args, "find", |text, part| text.find(part))),
        "rfind" => ("rfind", |_, object, args| place(object, args, "rfind", |text, part| text.rfind(part))),
        "index" => ("index", |_, object, args| index(object, args, "index", |text, part| text.find(part))),
        "rindex" => ("rindex", |_, object, args| index(object, args, "rindex", |text, part| text.rfind(part))),
        "count" => ("count", count),
        "center" => ("center", |renderer, object, args| pad(renderer, object, args, "center")),
        "ljust" => ("ljust", |renderer, object, args| pad(renderer, object, args, "ljust")),
        "rjust" => ("rjust", |renderer, object, args| pad(renderer, object, args, "rjust")),
        "zfill" => ("zfill", zfill),
        "expandtabs" => ("expandtabs", expandtabs),
        "format" => ("format", |renderer, object, args| format::braces(renderer, this(object)?, args).map(Value::Text)),
        "format_map" => ("format_map", format_map),
        "encode" => ("encode", |_, object, args| {
            let [encoding, _] = args.bind("encode", ["encoding", "errors"], 0)?;
            let encoding = optional_text("encode", encoding)?
                .map_or_else(|| "utf8".into(), |name| name.as_str().to_ascii_lowercase().replace(['-', '_'], ""));
            match &*encoding {
                "utf8" => Ok(Value::Bytes(this(object)?.as_str().as_bytes().into())),
                _ => Err(type_error("only UTF-8 is supported in chat templates")),
            }
        }),
        _ => return None,
    })
}

/// The part of a text between two bounds counted in characters; `None` if the start lies behind the end of the text.
fn window<'t, 'a>(text: &'t str, start: Option<Value<'a>>, end: Option<Value<'a>>) -> Result<Option<(usize, &'t str)>> {
    if start.is_none() && end.is_none() {
        return Ok(Some((0, text)));
    }
    let length = text.chars().count();
    let beyond = matches!(start, Some(Value::Int(start)) if start > length as i64);
    let bounds = [start.unwrap_or(Value::None), end.unwrap_or(Value::None), Value::None];
    let (first, _, count) = slice_indices(&bounds, length)?;
    let from = byte_of(text, first as usize);
    let inverted = matches!(&bounds[1], Value::Int(end) if (if *end < 0 { end + length as i64 } else { *end }) < first);
    if beyond || inverted {
        return Ok(None);
    }
    Ok(Some((from, &text[from..from + byte_of(&text[from..], count)])))
}

fn ends<'a>(object: &Value<'a>, args: Args<'a>, name: &str, holds: fn(&str, &str) -> bool) -> Result<Value<'a>> {
    let [affix, start, end] = args.bind(name, ["/affix", "/start", "/end"], 1)?;
    let window = window(this(object)?.as_str(), start, end)?;
    let matches = |affix: &str| window.is_some_and(|(_, text)| holds(text, affix));
    match required(affix) {
        Value::Text(affix) => Ok(Value::Bool(matches(affix.as_str()))),
        Value::Tuple(affixes) => {
            for affix in affixes.iter() {
                if matches(text(name, affix)?.as_str()) {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        }
        affix => Err(type_error(format!("{name} first arg must be str or a tuple of str, not {}", affix.type_name()))),
    }
}

fn found<'a>(
    object: &Value<'a>,
    args: Args<'a>,
    name: &str,
    find: for<'t> fn(&'t str, &'t str) -> Option<usize>,
) -> Result<Option<usize>> {
    let [part, start, end] = args.bind(name, ["/sub", "/start", "/end"], 1)?;
    let part = text(name, required(part))?;
    let object = this(object)?.as_str();
    let Some((from, window)) = window(object, start, end)? else { return Ok(None) };
    Ok(find(window, part.as_str()).map(|at| object[..from + at].chars().count()))
}

fn place<'a>(
    object: &Value<'a>,
    args: Args<'a>,
    name: &str,
    find: for<'t> fn(&'t str, &'t str) -> Option<usize>,
) -> Result<Value<'a>> {
    Ok(Value::Int(found(object, args, name, find)?.map_or(-1, |at| at as i64)))
}

fn index<'a>(
    object: &Value<'a>,
    args: Args<'a>,
    name: &str,
    find: for<'t> fn(&'t str, &'t str) -> Option<usize>,
) -> Result<Value<'a>> {
    let at = found(object, args, name, find)?.ok_or_else(|| value_error("substring not found"))?;
    Ok(Value::Int(at as i64))
}

fn count<'a>(_: &mut Renderer<'a>, object: &Value<'a>, args: Args<'a>) -> Result<Value<'a>> {
    let [part, start, end] = args.bind("count", ["/sub", "/start", "/end"], 1)?;
    let part = text("count", required(part))?;
    let window = window(this(object)?.as_str(), start, end)?;
    Ok(Value::Int(window.map_or(0, |(_, text)| text.matches(part.as_str()).count() as i64)))
}

fn pad<'a>(renderer: &mut Renderer<'a>, object: &Value<'a>, args: Args<'a>, name: &str) -> Result<Value<'a>> {
    let [width, fill] = args.bind(name, ["/width", "/fillchar"], 1)?;
    let width = integer(&required(width))?;
    let fill = optional_text(name, fill)?;
    let fill = fill.as_ref().map_or(" ", Text::as_str);
    if fill.chars().count() != 1 {
        return Err(type_error("The fill character must be exactly one character long"));
    }
    padded(renderer, this(object)?, width, fill, name).map(Value::Text)
}

/// A text in a field of a width; the padding is the template's.
pub(in super::super) fn padded<'a>(
    renderer: &Renderer<'a>,
    text: &Text<'a>,
    width: i64,
    fill: &str,
    how: &str,
) -> Result<Text<'a>> {
    let length = text.as_str().chars().count();
    let missing = usize::try_from(width).unwrap_or(0).saturating_sub(length);
    if missing == 0 {
        return Ok(text.clone());
    }
    renderer.check_size(missing.saturating_mul(fill.len()))?;
    let left = match how {
        "ljust" => 0,
        "rjust" => missing,
        // Python puts the odd one on the left where the width is odd too.
        _ => missing / 2 + (missing & (width as usize) & 1),
    };
    let mut writer = Writer::with_capacity(text.len() + missing * fill.len());
    writer.push(&fill.repeat(left), None);
    writer.push_text(text);
    writer.push(&fill.repeat(missing - left), None);
    Ok(writer.finish().with_safety(text.is_safe()))
}

fn zfill<'a>(renderer: &mut Renderer<'a>, object: &Value<'a>, args: Args<'a>) -> Result<Value<'a>> {
    let [width] = args.bind("zfill", ["/width"], 1)?;
    let object = this(object)?;
    let text = object.as_str();
    let missing = usize::try_from(integer(&required(width))?).unwrap_or(0).saturating_sub(text.chars().count());
    renderer.check_size(missing)?;
    let sign = usize::from(text.starts_with(['+', '-']));
    let mut writer = Writer::with_capacity(text.len() + missing);
    writer.push_range(object, 0..sign);
    writer.push(&"0".repeat(missing), None);
    writer.push_range(object, sign..text.len());
    Ok(Value::Text(writer.finish().with_safety(object.is_safe())))
}

fn expandtabs<'a>(renderer: &mut Renderer<'a>, object: &Value<'a>, args: Args<'a>) -> Result<Value<'a>> {
    let [size] = args.bind("expandtabs", ["tabsize"], 0)?;
    let size = usize::try_from(size.map_or(Ok(8), |size| integer(&size))?).unwrap_or(0);
    let object = this(object)?;
    let (mut writer, mut start, mut column) = (Writer::with_capacity(object.len()), 0, 0);
    for (at, char) in object.as_str().char_indices() {
        if char == '\t' {
            let width = if size == 0 { 0 } else { size - column % size };
            renderer.check_size(writer.len() + width)?;
            writer.push_range(object, start..at);
            writer.push(&" ".repeat(width), None);
            start = at + 1;
            column += width;
        } else {
            column = if matches!(char, '\n' | '\r') { 0 } else { column + 1 };
        }
    }
    writer.push_range(object, start..object.len());
    Ok(Value::Text(writer.finish().with_safety(object.is_safe())))
}

fn format_map<'a>(renderer: &mut Renderer<'a>, object: &Value<'a>, args: Args<'a>) -> Result<Value<'a>> {
    let [mapping] = args.bind("format_map", ["/mapping"], 1)?;
    let Value::Dict(map) = required(mapping) else { return Err(type_error("format_map() needs a dict")) };
    let named = map.entries().filter_map(|(key, value)| key.as_text().map(|key| (key.clone(), value))).collect();
    format::braces(renderer, this(object)?, Args { positional: Vec::new(), named }).map(Value::Text)
}
