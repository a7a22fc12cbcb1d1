//! Where a call stands in a rendering, and how its name and arguments are written.

use std::ops::Range;

use serde_json::Value;

use super::probe::{KEYS, NAMES, value};

/// A call in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shape {
    /// From its first slot to its last: name and arguments, or the JSON that holds both.
    pub(super) core: Range<usize>,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// JSON that holds both, and the keys to each.
    Json { name: Vec<String>, arguments: Vec<String>, as_text: bool },
    /// A name and, after the text between, JSON arguments.
    Named { between: Range<usize> },
    /// A name, keys and values.
    Slots { name: Range<usize>, keys: [Range<usize>; 2], values: [Range<usize>; 2] },
}

/// The JSON value that a text begins with, and its length.
pub(super) fn json_start(text: &str) -> Option<(Value, usize)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let value = values.next()?.ok()?;
    Some((value, values.byte_offset()))
}

/// Call number `number` of a probe, with the arguments [`super::probe::texts`].
pub(super) fn find(text: &str, number: usize) -> Option<Shape> {
    let values = [value(number, 0), value(number, 1)];
    let first = text.find(&values[0])?;
    let arguments = enclosing(text, first, |value| is_arguments(value, &values));
    let inner = arguments.as_ref().map_or(first, |range| range.start);
    let holds = |value: &Value| paths(value, number, &values).is_some();
    if let Some(core) = enclosing(text, inner, holds) {
        let (object, _) = json_start(&text[core.clone()])?;
        let (name, arguments, as_text) = paths(&object, number, &values)?;
        return Some(Shape { core, kind: Kind::Json { name, arguments, as_text } });
    }
    if let Some(arguments) = arguments {
        let name = text[..arguments.start].rfind(NAMES[number])?;
        let between = name + NAMES[number].len()..arguments.start;
        return Some(Shape { core: name..arguments.end, kind: Kind::Named { between } });
    }
    slots(text, number, &values)
}

fn slots(text: &str, number: usize, values: &[String; 2]) -> Option<Shape> {
    let place = |at: usize, word: &str| at..at + word.len();
    let first = place(text.find(&values[0])?, &values[0]);
    let second = place(first.end + text[first.end..].find(&values[1])?, &values[1]);
    let keys = [
        place(text[..first.start].rfind(KEYS[0])?, KEYS[0]),
        place(first.end + text[first.end..second.start].rfind(KEYS[1])?, KEYS[1]),
    ];
    let name = place(text[..keys[0].start].rfind(NAMES[number])?, NAMES[number]);
    Some(Shape { core: name.start..second.end, kind: Kind::Slots { name, keys, values: [first, second] } })
}

/// The smallest JSON object around a place that fits.
fn enclosing(text: &str, at: usize, fits: impl Fn(&Value) -> bool) -> Option<Range<usize>> {
    let opens = text[..at].char_indices().rev().filter(|(_, character)| *character == '{').map(|(open, _)| open);
    for open in opens.chain(text[at..].starts_with('{').then_some(at)).take(24) {
        if let Some((value, length)) = json_start(&text[open..])
            && open + length > at
            && fits(&value)
        {
            return Some(open..open + length);
        }
    }
    None
}

fn is_arguments(value: &Value, values: &[String; 2]) -> bool {
    value.as_object().is_some_and(|object| {
        object.len() == values.len()
            && KEYS.iter().zip(values).all(|(key, expected)| object.get(*key).and_then(Value::as_str) == Some(expected))
    })
}

type Paths = (Vec<String>, Vec<String>, bool);

/// The keys that lead to name and arguments in an object that holds both.
fn paths(value: &Value, number: usize, values: &[String; 2]) -> Option<Paths> {
    let is_object = |value: &Value| is_arguments(value, values);
    let is_text = |value: &Value| {
        value.as_str().and_then(|text| serde_json::from_str(text).ok()).is_some_and(|value| is_object(&value))
    };
    let object = value.as_object()?;
    if object.get(NAMES[number]).is_some_and(is_object) {
        return Some((Vec::new(), Vec::new(), false));
    }
    let (arguments, as_text) =
        path(value, &is_object).map(|path| (path, false)).or_else(|| path(value, &is_text).map(|path| (path, true)))?;
    let name = path(value, &|value: &Value| value.as_str() == Some(NAMES[number]))?;
    Some((name, arguments, as_text))
}

/// The keys to the first value that fits, objects only.
fn path(value: &Value, fits: &impl Fn(&Value) -> bool) -> Option<Vec<String>> {
    for (key, inner) in value.as_object()? {
        if fits(inner) {
            return Some(vec![key.clone()]);
        }
        if let Some(mut rest) = path(inner, fits) {
            rest.insert(0, key.clone());
            return Some(rest);
        }
    }
    None
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_told_apart() {
        let arguments = format!(r#"{{"{}": "vaaqxl", "{}": "vabqxl"}}"#, KEYS[0], KEYS[1]);
        let json = format!(r#"<t>{{"name": "{}", "arguments": {arguments}}}</t>"#, NAMES[0]);
        let found = find(&json, 0).unwrap();
        assert_eq!(&json[found.core], &json[3..json.len() - 4]);
        let named = format!("<t>{}<s>{arguments}</t>", NAMES[0]);
        assert!(matches!(find(&named, 0).unwrap().kind, Kind::Named { between } if &named[between.clone()] == "<s>"));
        let slots = format!("{}({}=vaaqxl, {}=vabqxl)", NAMES[0], KEYS[0], KEYS[1]);
        assert!(matches!(find(&slots, 0).unwrap().kind, Kind::Slots { .. }));
    }
}
