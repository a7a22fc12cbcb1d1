//! Methods of texts that cut: strip, split, partition, and the joining that undoes them.

use super::super::arguments::{Args, flag, integer_or, optional_text, required, text};
use super::super::characters::{is_line_end, is_space};
use super::super::failure::{type_error, value_error};
use super::super::render::Renderer;
use super::super::text::{Text, Writer};
use super::super::value::Value;
use super::Call;
use crate::Result;

pub(super) fn find(name: &str) -> Option<(&'static str, Call)> {
    Some(match name {
        "strip" => ("strip", |_, object, args| strip(object, args, "strip", true, true)),
        "lstrip" => ("lstrip", |_, object, args| strip(object, args, "lstrip", true, false)),
        "rstrip" => ("rstrip", |_, object, args| strip(object, args, "rstrip", false, true)),
        "split" => ("split", |_, object, args| split_method(object, args, "split", split)),
        "rsplit" => ("rsplit", |_, object, args| split_method(object, args, "rsplit", rsplit)),
        "splitlines" => ("splitlines", splitlines_method),
        "partition" => {
            ("partition", |_, object, args| partition(object, args, "partition", |text, part| text.find(part)))
        }
        "rpartition" => {
            ("rpartition", |_, object, args| partition(object, args, "rpartition", |text, part| text.rfind(part)))
        }
        "removeprefix" => ("removeprefix", |_, object, args| {
            affix(object, args, "removeprefix", |text, affix| {
                text.strip_prefix(affix).map(|rest| text.len() - rest.len()..text.len())
            })
        }),
        "removesuffix" => ("removesuffix", |_, object, args| {
            affix(object, args, "removesuffix", |text, affix| text.strip_suffix(affix).map(|rest| 0..rest.len()))
        }),
        "join" => ("join", join),
        "replace" => ("replace", replace_method),
        _ => return None,
    })
}

/// The object of a text method.
pub(super) fn this<'v, 'a>(object: &'v Value<'a>) -> Result<&'v Text<'a>> {
    object.as_text().ok_or_else(|| type_error("a text method needs a text"))
}

fn strip<'a>(object: &Value<'a>, args: Args<'a>, name: &str, left: bool, right: bool) -> Result<Value<'a>> {
    let [chars] = args.bind(name, ["/chars"], 0)?;
    let chars = optional_text(name, chars)?;
    Ok(Value::Text(trim(this(object)?, chars.as_ref(), left, right)))
}

/// A text without the characters of a set (white space if not given) on its sides.
pub(in super::super) fn trim<'a>(text: &Text<'a>, chars: Option<&Text<'_>>, left: bool, right: bool) -> Text<'a> {
    let matches = |char: char| chars.map_or_else(|| is_space(char), |chars| chars.as_str().contains(char));
    let str = text.as_str();
    let start = if left { str.len() - str.trim_start_matches(matches).len() } else { 0 };
    let end = if right { start + str[start..].trim_end_matches(matches).len() } else { str.len() };
    text.slice(start..end)
}

type Split = for<'a> fn(&Text<'a>, Option<&Text<'_>>, usize) -> Vec<Text<'a>>;

fn split_method<'a>(object: &Value<'a>, args: Args<'a>, name: &str, split: Split) -> Result<Value<'a>> {
    let [separator, limit] = args.bind(name, ["sep", "maxsplit"], 0)?;
    let separator = optional_text(name, separator)?;
    if separator.as_ref().is_some_and(Text::is_empty) {
        return Err(value_error("empty separator"));
    }
    let limit = usize::try_from(integer_or(limit.as_ref(), -1)?).unwrap_or(usize::MAX);
    let pieces = split(this(object)?, separator.as_ref(), limit);
    Ok(Value::list(pieces.into_iter().map(Value::Text).collect()))
}

/// `text.split(separator, limit)`.
pub(in super::super) fn split<'a>(text: &Text<'a>, separator: Option<&Text<'_>>, limit: usize) -> Vec<Text<'a>> {
    let Some(separator) = separator else { return split_space(text, limit) };
    let (mut pieces, mut start) = (Vec::new(), 0);
    for (at, found) in text.as_str().match_indices(separator.as_str()).take(limit) {
        pieces.push(text.slice(start..at));
        start = at + found.len();
    }
    pieces.push(text.slice(start..text.len()));
    pieces
}

fn split_space<'a>(text: &Text<'a>, limit: usize) -> Vec<Text<'a>> {
    let str = text.as_str();
    let mut pieces = Vec::new();
    let mut at = str.len() - str.trim_start_matches(is_space).len();
    while at < str.len() {
        let word = if pieces.len() == limit { None } else { str[at..].find(is_space) };
        let end = word.map_or(str.len(), |length| at + length);
        // What is left at the limit keeps the spaces behind it.
        pieces.push(text.slice(at..end));
        at = str.len() - str[end..].trim_start_matches(is_space).len();
    }
    pieces
}

/// `text.rsplit(separator, limit)`.
pub(in super::super) fn rsplit<'a>(text: &Text<'a>, separator: Option<&Text<'_>>, limit: usize) -> Vec<Text<'a>> {
    let Some(separator) = separator else { return rsplit_space(text, limit) };
    let (mut pieces, mut end) = (Vec::new(), text.len());
    for (at, found) in text.as_str().rmatch_indices(separator.as_str()).take(limit) {
        pieces.push(text.slice(at + found.len()..end));
        end = at;
    }
    pieces.push(text.slice(0..end));
    pieces.reverse();
    pieces
}

fn rsplit_space<'a>(text: &Text<'a>, limit: usize) -> Vec<Text<'a>> {
    let str = text.as_str();
    let mut pieces = Vec::new();
    let mut end = str.trim_end_matches(is_space).len();
    while end > 0 {
        let last = if pieces.len() == limit {
            None
        } else {
            str[..end].char_indices().rev().find(|(_, char)| is_space(*char))
        };
        let start = last.map_or(0, |(at, char)| at + char.len_utf8());
        // What is left at the limit keeps the spaces before it.
        pieces.push(text.slice(start..end));
        end = str[..start].trim_end_matches(is_space).len();
    }
    pieces.reverse();
    pieces
}

fn splitlines_method<'a>(_: &mut Renderer<'a>, object: &Value<'a>, args: Args<'a>) -> Result<Value<'a>> {
    let [keep] = args.bind("splitlines", ["keepends"], 0)?;
    let keep = flag(keep.as_ref(), false);
    let text = this(object)?;
    let line = |(start, end, next)| Value::Text(text.slice(start..if keep { next } else { end }));
    Ok(Value::list(lines(text.as_str()).into_iter().map(line).collect()))
}

/// The lines of a text: start, end, and where the next line starts.
pub(in super::super) fn lines(text: &str) -> Vec<(usize, usize, usize)> {
    let (mut lines, mut start) = (Vec::new(), 0);
    while start < text.len() {
        let found = text[start..].char_indices().find(|(_, char)| is_line_end(*char));
        let (end, next) = match found {
            None => (text.len(), text.len()),
            Some((at, '\r')) if text[start + at..].starts_with("\r\n") => (start + at, start + at + 2),
            Some((at, char)) => (start + at, start + at + char.len_utf8()),
        };
        lines.push((start, end, next));
        start = next;
    }
    lines
}

fn partition<'a>(
    object: &Value<'a>,
    args: Args<'a>,
    name: &str,
    find: for<'t> fn(&'t str, &'t str) -> Option<usize>,
) -> Result<Value<'a>> {
    let [separator] = args.bind(name, ["/sep"], 1)?;
    let separator = text(name, required(separator))?;
    if separator.is_empty() {
        return Err(value_error("empty separator"));
    }
    let object = this(object)?;
    let length = object.len();
    let (first, second) = match find(object.as_str(), separator.as_str()) {
        Some(at) => (at, at + separator.len()),
        None if name == "partition" => (length, length),
        None => (0, 0),
    };
    let parts = [object.slice(0..first), object.slice(first..second), object.slice(second..length)];
    Ok(Value::tuple(parts.into_iter().map(Value::Text).collect()))
}

fn affix<'a>(
    object: &Value<'a>,
    args: Args<'a>,
    name: &str,
    rest: fn(&str, &str) -> Option<std::ops::Range<usize>>,
) -> Result<Value<'a>> {
    let [affix] = args.bind(name, ["/affix"], 1)?;
    let affix = text(name, required(affix))?;
    let object = this(object)?;
    let kept = rest(object.as_str(), affix.as_str()).unwrap_or(0..object.len());
    Ok(Value::Text(object.slice(kept)))
}

fn join<'a>(renderer: &mut Renderer<'a>, object: &Value<'a>, args: Args<'a>) -> Result<Value<'a>> {
    let [items] = args.bind("join", ["/iterable"], 1)?;
    let separator = this(object)?.clone();
    let mut writer = Writer::default();
    let mut source = renderer.iterate(&required(items)).map_err(|_| type_error("can only join an iterable"))?;
    let mut index = 0usize;
    while let Some(item) = renderer.next(&mut source)? {
        let Value::Text(item) = item else {
            return Err(type_error(format!(
                "sequence item {index}: expected str instance, {} found",
                item.type_name()
            )));
        };
        if index > 0 {
            writer.push_text(&separator);
        }
        writer.push_text(&super::super::escape::added_to(&separator, &item));
        renderer.check_size(writer.len())?;
        index += 1;
    }
    Ok(Value::Text(writer.finish().with_safety(separator.is_safe())))
}

fn replace_method<'a>(renderer: &mut Renderer<'a>, object: &Value<'a>, args: Args<'a>) -> Result<Value<'a>> {
    let [old, new, count] = args.bind("replace", ["/old", "/new", "/count"], 2)?;
    let count = integer_or(count.as_ref(), -1)?;
    let (old, new) = (text("replace", required(old))?, text("replace", required(new))?);
    let object = this(object)?;
    replace(renderer, object, &old, &super::super::escape::added_to(object, &new), count).map(Value::Text)
}

/// `text.replace(old, new, count)`.
pub(in super::super) fn replace<'a>(
    renderer: &Renderer<'a>,
    text: &Text<'a>,
    old: &Text<'_>,
    new: &Text<'_>,
    count: i64,
) -> Result<Text<'a>> {
    let limit = usize::try_from(count).unwrap_or(usize::MAX);
    let mut found = text.as_str().match_indices(old.as_str()).take(limit).peekable();
    if found.peek().is_none() {
        return Ok(text.clone());
    }
    let mut writer = Writer::with_capacity(text.len());
    let mut start = 0;
    for (at, matched) in found {
        writer.push_range(text, start..at);
        writer.push_text(new);
        renderer.check_size(writer.len())?;
        start = at + matched.len();
    }
    writer.push_range(text, start..text.len());
    Ok(writer.finish().with_safety(text.is_safe()))
}
