//! HTML escapes: what a safe text does to a text that is added to it.

use super::text::{Text, Writer};

/// A text as `separator` takes it: escaped if `separator` is safe and the text is not.
pub(super) fn added_to<'a>(separator: &Text<'_>, text: &Text<'a>) -> Text<'a> {
    if separator.is_safe() { escaped(text) } else { text.clone() }
}

/// The text as a safe one: escaped unless it is safe already. An entity has the author of its character.
pub(super) fn escaped<'a>(text: &Text<'a>) -> Text<'a> {
    if text.is_safe() || !text.as_str().contains(['&', '<', '>', '\'', '"']) {
        return text.clone().with_safety(true);
    }
    let mut writer = Writer::with_capacity(text.len() + 16);
    let mut start = 0;
    for (at, char) in text.as_str().char_indices() {
        let Some(entity) = entity(char) else { continue };
        writer.push_range(text, start..at);
        writer.push(entity, text.mark_at(at));
        start = at + 1;
    }
    writer.push_range(text, start..text.len());
    writer.finish().with_safety(true)
}

fn entity(char: char) -> Option<&'static str> {
    Some(match char {
        '&' => "&amp;",
        '<' => "&lt;",
        '>' => "&gt;",
        '\'' => "&#39;",
        '"' => "&#34;",
        _ => return None,
    })
}
