//! Filters on texts.

use super::super::access::byte_of;
use super::super::arguments::{Args, flag, integer, integer_or, optional_text, required, text};
use super::super::characters::{is_space, is_word};
use super::super::dump::{soft, to_text};
use super::super::failure::{raise, type_error};
use super::super::format;
use super::super::methods::{self, capitalize, lines, lower, padded, replace, trim, upper};
use super::super::render::Renderer;
use super::super::text::{Text, Writer};
use super::super::value::{List, Map, Value};
use super::Call;
use crate::Result;

pub(super) fn find(name: &str) -> Option<Call> {
    Some(match name {
        "upper" => |_, value, args| change(&value, args, upper),
        "lower" => |_, value, args| change(&value, args, lower),
        "capitalize" => |_, value, args| change(&value, args, capitalize),
        "title" => |_, value, args| change(&value, args, title),
        "trim" => |_, value, args| {
            let [chars] = args.bind("trim", ["chars"], 0)?;
            let chars = optional_text("strip", chars)?;
            Ok(Value::Text(trim(&soft(&value)?, chars.as_ref(), true, true)))
        },
        "replace" => replace_filter,
        "join" => join,
        "indent" => indent,
        "center" => |renderer, value, args| {
            let [width] = args.bind("center", ["width"], 0)?;
            let width = integer_or(width.as_ref(), 80)?;
            padded(renderer, &soft(&value)?, width, " ", "center").map(Value::Text)
        },
        "format" => format_filter,
        "truncate" => truncate,
        "wordcount" => |_, value, args| {
            args.none("wordcount")?;
            let text = soft(&value)?;
            Ok(Value::Int(text.as_str().split(|char| !is_word(char)).filter(|word| !word.is_empty()).count() as i64))
        },
        _ => return None,
    })
}

fn change<'a>(value: &Value<'a>, args: Args<'a>, change: for<'t> fn(&Text<'t>) -> Text<'t>) -> Result<Value<'a>> {
    args.none("filter")?;
    Ok(Value::Text(change(&soft(value)?)))
}

/// Words begin behind white space, hyphens and opening brackets.
fn title<'a>(value: &Text<'a>) -> Text<'a> {
    let splits = |char: char| is_space(char) || matches!(char, '-' | '(' | '{' | '[' | '<');
    let mut writer = Writer::with_capacity(value.len());
    let mut start = 0;
    while start < value.len() {
        let rest = &value.as_str()[start..];
        let between = rest.starts_with(splits);
        let end = start + rest.find(|char| splits(char) != between).unwrap_or(rest.len());
        let first = start + rest.chars().next().map_or(0, char::len_utf8);
        writer.push_text(&upper(&value.slice(start..first)));
        writer.push_text(&lower(&value.slice(first..end)));
        start = end;
    }
    writer.finish()
}

fn replace_filter<'a>(renderer: &mut Renderer<'a>, value: Value<'a>, args: Args<'a>) -> Result<Value<'a>> {
    let [old, new, count] = args.bind("replace", ["old", "new", "count"], 2)?;
    let count = match count {
        None | Some(Value::None) => -1,
        Some(count) => integer(&count)?,
    };
    let (value, old, new) = (to_text(&value)?, to_text(&required(old))?, to_text(&required(new))?);
    replace(renderer, &value, &old, &new, count).map(Value::Text)
}

fn join<'a>(renderer: &mut Renderer<'a>, value: Value<'a>, args: Args<'a>) -> Result<Value<'a>> {
    let [separator, attribute] = args.bind("join", ["d", "attribute"], 0)?;
    let separator = separator.map_or_else(|| Ok(Text::borrowed("", None)), |separator| to_text(&separator))?;
    let path = match attribute {
        None | Some(Value::None) => Vec::new(),
        Some(attribute) => super::select::path(&attribute),
    };
    let mut source = renderer.iterate(&value)?;
    let mut writer = Writer::default();
    let mut first = true;
    while let Some(item) = renderer.next(&mut source)? {
        renderer.count_iteration()?;
        if !std::mem::take(&mut first) {
            writer.push_text(&separator);
        }
        let item = renderer.read_path(item, &path, None)?;
        super::super::dump::write_text(&item, &mut writer)?;
        renderer.check_size(writer.len())?;
    }
    Ok(Value::Text(writer.finish()))
}

/// The lines of a text, each but the first with an indentation before it; line ends become `\n`.
fn indent<'a>(renderer: &mut Renderer<'a>, value: Value<'a>, args: Args<'a>) -> Result<Value<'a>> {
    let [width, first, blank] = args.bind("indent", ["width", "first", "blank"], 0)?;
    let (first, blank) = (flag(first.as_ref(), false), flag(blank.as_ref(), false));
    let indention = match width {
        None => Text::borrowed("    ", None),
        Some(Value::Text(text)) => text,
        Some(width) => {
            let width = usize::try_from(integer(&width)?).unwrap_or(0);
            renderer.check_size(width)?;
            Text::own(" ".repeat(width))
        }
    };
    let Value::Text(value) = value else {
        if let Value::Undefined(undefined) = &value {
            return Err(undefined.error());
        }
        // Python adds a line end first, which a list takes.
        let class = if matches!(value, Value::List(_)) { "AttributeError" } else { "TypeError" };
        return Err(raise(class, format!("indent() needs a text, not {}", value.type_name())));
    };
    let mut source = Writer::with_capacity(value.len() + 1);
    source.push_text(&value);
    source.push("\n", None);
    let (source, safe) = (source.finish(), value.is_safe());
    let indention = if safe && !indention.is_safe() { indention.with_safety(true) } else { indention };
    let mut writer = Writer::with_capacity(source.len() * 2);
    if first {
        writer.push_text(&indention);
    }
    let mut line_break = None;
    for (start, end, _) in lines(source.as_str()) {
        if let Some(mark) = line_break {
            writer.push("\n", mark);
            if blank || start < end {
                writer.push_text(&indention);
            }
        }
        writer.push_range(&source, start..end);
        renderer.check_size(writer.len())?;
        line_break = Some(source.mark_at(end));
    }
    Ok(Value::Text(writer.finish().with_safety(safe)))
}

fn format_filter<'a>(_: &mut Renderer<'a>, value: Value<'a>, args: Args<'a>) -> Result<Value<'a>> {
    let template = soft(&value)?;
    let values = match (args.positional.is_empty(), args.named.is_empty()) {
        (false, false) => {
            let message = "can't handle positional and keyword arguments at the same time";
            return Err(raise("FilterArgumentError", message));
        }
        (true, false) => {
            Value::Dict(Map::build(args.named.into_iter().map(|(name, value)| (Value::Text(name), value)))?)
        }
        _ => Value::Tuple(List::new(args.positional)),
    };
    format::percent(&template, &values).map(Value::Text)
}

fn truncate<'a>(_: &mut Renderer<'a>, value: Value<'a>, args: Args<'a>) -> Result<Value<'a>> {
    let [length, killwords, end, leeway] = args.bind("truncate", ["length", "killwords", "end", "leeway"], 0)?;
    let length = integer_or(length.as_ref(), 255)?;
    let end = end.map_or_else(|| Ok(Text::borrowed("...", None)), |end| text("truncate", end))?;
    let leeway = match leeway {
        None | Some(Value::None) => 5,
        Some(leeway) => integer(&leeway)?,
    };
    let end_length = end.as_str().chars().count() as i64;
    if length < end_length || leeway < 0 {
        return Err(raise("AssertionError", format!("expected length >= {end_length} and leeway >= 0")));
    }
    let Value::Text(text) = &value else {
        return match super::length_of(&value) {
            Some(count) if count as i64 <= length + leeway => Ok(value),
            _ => Err(type_error(format!("truncate() needs a text, not {}", value.type_name()))),
        };
    };
    if text.as_str().chars().count() as i64 <= length + leeway {
        return Ok(value);
    }
    let cut = text.slice(0..byte_of(text.as_str(), (length - end_length) as usize));
    let kept = if flag(killwords.as_ref(), false) {
        cut
    } else {
        methods::rsplit(&cut, Some(&Text::borrowed(" ", None)), 1).swap_remove(0)
    };
    let mut writer = Writer::with_capacity(kept.len() + end.len());
    writer.push_text(&kept);
    writer.push_text(&super::super::escape::added_to(text, &end));
    Ok(Value::Text(writer.finish().with_safety(text.is_safe())))
}
