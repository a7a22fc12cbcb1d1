//! Methods of texts that change or ask about case and character classes. A character keeps its author through a change;
//! one that becomes several gives its author to each.

use super::super::arguments::Args;
use super::super::characters::{
    decimal, is_alphanumeric, is_cased, is_digit, is_letter, is_numeric, is_printable, is_space, is_title, push_folded,
    push_title,
};
use super::super::text::{Text, Writer};
use super::super::value::Value;
use super::Call;
use super::cut::this;
use crate::Result;

pub(super) fn find(name: &str) -> Option<(&'static str, Call)> {
    Some(match name {
        "upper" => ("upper", |_, object, args| change(object, args, "upper", upper)),
        "lower" => ("lower", |_, object, args| change(object, args, "lower", lower)),
        "title" => ("title", |_, object, args| change(object, args, "title", title)),
        "capitalize" => ("capitalize", |_, object, args| change(object, args, "capitalize", capitalize)),
        "swapcase" => ("swapcase", |_, object, args| change(object, args, "swapcase", swapcase)),
        "casefold" => ("casefold", |_, object, args| change(object, args, "casefold", casefold)),
        "isalpha" => ("isalpha", |_, object, args| ask(object, args, |text| every(text, is_letter))),
        "isalnum" => ("isalnum", |_, object, args| ask(object, args, |text| every(text, is_alphanumeric))),
        "isdecimal" => {
            ("isdecimal", |_, object, args| ask(object, args, |text| every(text, |char| decimal(char).is_some())))
        }
        "isdigit" => ("isdigit", |_, object, args| ask(object, args, |text| every(text, is_digit))),
        "isnumeric" => ("isnumeric", |_, object, args| ask(object, args, |text| every(text, is_numeric))),
        "isspace" => ("isspace", |_, object, args| ask(object, args, |text| every(text, is_space))),
        "isascii" => ("isascii", |_, object, args| ask(object, args, str::is_ascii)),
        "isprintable" => ("isprintable", |_, object, args| ask(object, args, |text| text.chars().all(is_printable))),
        "isidentifier" => ("isidentifier", |_, object, args| ask(object, args, is_identifier)),
        "islower" => ("islower", |_, object, args| ask(object, args, is_lower)),
        "isupper" => ("isupper", |_, object, args| ask(object, args, is_upper)),
        "istitle" => ("istitle", |_, object, args| ask(object, args, is_titled)),
        _ => return None,
    })
}

fn change<'a>(
    object: &Value<'a>,
    args: Args<'a>,
    name: &str,
    change: for<'t> fn(&Text<'t>) -> Text<'t>,
) -> Result<Value<'a>> {
    args.none(name)?;
    Ok(Value::Text(change(this(object)?)))
}

fn ask<'a>(object: &Value<'a>, args: Args<'a>, holds: fn(&str) -> bool) -> Result<Value<'a>> {
    args.none("str method")?;
    Ok(Value::Bool(holds(this(object)?.as_str())))
}

fn every(text: &str, holds: impl Fn(char) -> bool) -> bool {
    !text.is_empty() && text.chars().all(holds)
}

/// Rewrites a text character by character.
fn rewritten<'a>(text: &Text<'_>, mut push: impl FnMut(char, &mut String)) -> Text<'a> {
    let mut writer = Writer::with_capacity(text.len());
    match text.single_mark() {
        Some(mark) => writer.write_with(mark, |out| text.as_str().chars().for_each(|char| push(char, out))),
        None => {
            for (at, char) in text.as_str().char_indices() {
                writer.write_with(text.mark_at(at), |out| push(char, out));
            }
        }
    }
    writer.finish().with_safety(text.is_safe())
}

pub(in super::super) fn upper<'a>(text: &Text<'a>) -> Text<'a> {
    rewritten(text, |char, out| out.extend(char.to_uppercase()))
}

/// The lower case of each character of a text in turn; a final sigma depends on its place.
fn lower_characters(text: &str) -> impl FnMut(char, &mut String) + use<> {
    let lowered: Vec<char> = text.to_lowercase().chars().collect();
    let mut lowered = lowered.into_iter();
    move |char, out| out.extend(lowered.by_ref().take(char.to_lowercase().count()))
}

pub(in super::super) fn lower<'a>(text: &Text<'a>) -> Text<'a> {
    if text.as_str().is_ascii() {
        return rewritten(text, |char, out| out.push(char.to_ascii_lowercase()));
    }
    rewritten(text, lower_characters(text.as_str()))
}

/// Rewrites with `push`, which gets each character and what its lower case would be.
fn with_lower<'a>(text: &Text<'_>, mut push: impl FnMut(char, &str, &mut String)) -> Text<'a> {
    let mut lower = lower_characters(text.as_str());
    let mut lowered = String::new();
    rewritten(text, move |char, out| {
        lowered.clear();
        lower(char, &mut lowered);
        push(char, &lowered, out);
    })
}

pub(in super::super) fn title<'a>(text: &Text<'a>) -> Text<'a> {
    let mut after_cased = false;
    with_lower(text, move |char, lowered, out| {
        if after_cased {
            out.push_str(lowered);
        } else {
            push_title(char, out);
        }
        after_cased = is_cased(char);
    })
}

pub(in super::super) fn capitalize<'a>(text: &Text<'a>) -> Text<'a> {
    let mut first = true;
    with_lower(text, move |char, lowered, out| {
        if std::mem::take(&mut first) {
            push_title(char, out);
        } else {
            out.push_str(lowered);
        }
    })
}

fn swapcase<'a>(text: &Text<'a>) -> Text<'a> {
    with_lower(text, |char, lowered, out| {
        if char.is_uppercase() {
            out.push_str(lowered);
        } else if char.is_lowercase() {
            out.extend(char.to_uppercase());
        } else {
            out.push(char);
        }
    })
}

fn casefold<'a>(text: &Text<'a>) -> Text<'a> {
    rewritten(text, push_folded)
}

fn is_identifier(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|char| char == '_' || char.is_alphabetic())
        && chars.all(|char| char == '_' || char.is_alphanumeric())
}

/// `str.islower`.
pub(in super::super) fn is_lower(text: &str) -> bool {
    text.chars().any(char::is_lowercase) && !text.chars().any(|char| char.is_uppercase() || is_title(char))
}

/// `str.isupper`.
pub(in super::super) fn is_upper(text: &str) -> bool {
    text.chars().any(char::is_uppercase) && !text.chars().any(|char| char.is_lowercase() || is_title(char))
}

fn is_titled(text: &str) -> bool {
    let (mut cased, mut after_cased) = (false, false);
    for char in text.chars() {
        let start = char.is_uppercase() || is_title(char);
        if (start && after_cased) || (char.is_lowercase() && !after_cased) {
            return false;
        }
        after_cased = start || char.is_lowercase();
        cased |= after_cased;
    }
    cased
}
