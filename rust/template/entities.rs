//! Character references of HTML: what Python's `html.unescape` makes of `&amp;`, `&#38;` and `&copy`.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::failure::value_error;
use super::number::DIGITS_LIMIT;
use super::text::{Text, Writer};
use crate::Result;

/// A name and the code points it stands for, one a line; written by `tests/tools/make_entity_table.py`.
const TABLE: &str = include_str!("entities.txt");

/// What the code points 0x80 to 0x9f mean: those of Windows-1252.
const WINDOWS: [u32; 32] = [
    0x20ac, 0x81, 0x201a, 0x192, 0x201e, 0x2026, 0x2020, 0x2021, 0x2c6, 0x2030, 0x160, 0x2039, 0x152, 0x8d, 0x17d,
    0x8f, 0x90, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014, 0x2dc, 0x2122, 0x161, 0x203a, 0x153, 0x9d,
    0x17e, 0x178,
];

/// A text whose references are the characters they stand for, each by the author of its `&`.
pub(super) fn unescaped<'a>(text: &Text<'a>) -> Result<Text<'a>> {
    let whole = text.as_str();
    let mut writer = Writer::with_capacity(whole.len());
    let mut start = 0;
    while let Some(found) = whole[start..].find('&') {
        let at = start + found;
        let Some((length, characters)) = reference(&whole[at + 1..])? else {
            writer.push_range(text, start..at + 1);
            start = at + 1;
            continue;
        };
        writer.push_range(text, start..at);
        writer.push(&characters, text.mark_at(at));
        start = at + 1 + length;
    }
    writer.push_range(text, start..whole.len());
    Ok(writer.finish())
}

/// The length of the reference that a text begins with, after the `&`, and what it stands for.
fn reference(text: &str) -> Result<Option<(usize, String)>> {
    let Some(number) = text.strip_prefix('#') else { return Ok(named(text)) };
    let (marks, digits, radix) = match number.strip_prefix(['x', 'X']) {
        Some(digits) => (2, digits, 16),
        None => (1, number, 10),
    };
    let count = digits.len() - digits.trim_start_matches(|char: char| char.is_digit(radix)).len();
    if count == 0 {
        return Ok(None);
    }
    if radix == 10 && count > DIGITS_LIMIT {
        return Err(value_error(format!("a character reference has {count} digits")));
    }
    let end = marks + count + usize::from(digits[count..].starts_with(';'));
    Ok(Some((end, character(&digits[..count], radix))))
}

fn character(digits: &str, radix: u32) -> String {
    let code = digits
        .chars()
        .fold(0u32, |code, digit| code.saturating_mul(radix).saturating_add(digit.to_digit(radix).unwrap_or(0)));
    let code = match code {
        0 => 0xfffd,
        0x80..=0x9f => WINDOWS[code as usize - 0x80],
        0x1..=0x8 | 0xb | 0xe..=0x1f | 0x7f | 0xfdd0..=0xfdef => return String::new(),
        code if code <= 0x10_ffff && code & 0xfffe == 0xfffe => return String::new(),
        code => code,
    };
    char::from_u32(code).unwrap_or('\u{fffd}').to_string()
}

/// A name with its `;`, or the longest of the old names without one that it begins with.
fn named(text: &str) -> Option<(usize, String)> {
    let ends = |char: char| matches!(char, '\t' | '\n' | '\u{c}' | ' ' | '<' | '&' | '#' | ';');
    let length: usize = text.chars().take_while(|char| !ends(*char)).take(32).map(char::len_utf8).sum();
    let end = length + usize::from(length > 0 && text[length..].starts_with(';'));
    let known = table();
    if let Some(characters) = known.get(&text[..end]) {
        return Some((end, characters.clone()));
    }
    let prefixes = text[..end].char_indices().map(|(at, _)| at).rev();
    prefixes.filter(|at| *at > 1).find_map(|at| known.get(&text[..at]).map(|characters| (at, characters.clone())))
}

fn table() -> &'static HashMap<&'static str, String> {
    static KNOWN: OnceLock<HashMap<&'static str, String>> = OnceLock::new();
    KNOWN.get_or_init(|| TABLE.lines().filter_map(|line| line.split_once(' ')).map(entry).collect())
}

fn entry((name, codes): (&'static str, &str)) -> (&'static str, String) {
    let code = |code: &str| u32::from_str_radix(code, 16).ok().and_then(char::from_u32);
    (name, codes.split(' ').filter_map(code).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_read_as_browsers_read_them() -> Result<()> {
        let cases = [
            ("&amp;&lt&#62;&#x3E", "&<>>"),
            ("&notit; &notin; &no", "¬it; ∉ &no"),
            ("&#x80;&#0;&#xd800;&#1;&#9999999999;", "€\u{fffd}\u{fffd}\u{fffd}"),
            ("& &; &# &#x; &é;", "& &; &# &#x; &é;"),
            ("&NotEqualTilde;", "≂̸"),
        ];
        for (source, expected) in cases {
            assert_eq!(unescaped(&Text::own(source))?.as_str(), expected, "{source}");
        }
        Ok(())
    }
}
