//! Whether a recorded message is what was sampled: the text itself, or what was read out of it.

use std::borrow::Cow;

use crate::message::Data;

/// Message fields that hold what was sampled; others (`role`, ids of calls) are the environment's.
const FIELDS: [&str; 5] = ["content", "reasoning_content", "reasoning", "thinking", "tool_calls"];
/// Keys inside calls that are not sampled text.
const GIVEN: [&str; 3] = ["id", "type", "index"];

/// What of a recorded message is not in the sampled text; `None` if all of it is.
///
/// A message without reading is the text. One that was parsed holds parts of it: each text of its fields must be there,
/// as it is or as JSON writes it, and the numbers of calls too.
pub(super) fn difference(sampled: &Data, recorded: &Data) -> Option<String> {
    let content = sampled.get("content").and_then(Data::as_text).unwrap_or_default();
    let only_text = recorded.as_dict().is_some_and(|dict| {
        dict.iter().all(|(key, value)| matches!(key.as_text(), Some("role" | "content")) || *value == Data::Null)
    });
    let text = recorded.get("content").and_then(Data::as_text);
    if only_text && text == Some(content) {
        return None;
    }
    let leaves = FIELDS.iter().filter_map(|field| Some((field, recorded.get(field)?)));
    for (field, value) in leaves {
        let mut missing = None;
        walk(value, &mut |leaf| {
            if missing.is_none() && !contains(content, leaf) {
                missing = Some(leaf.to_owned());
            }
        });
        if let Some(leaf) = missing {
            return Some(format!("`{field}` says {:?}, which is not in {:?}", shortened(&leaf), shortened(content)));
        }
    }
    // All that was sampled must be somewhere too: a text may be shorter than what was sampled only if it was parsed.
    let silent = only_text && text.is_some_and(|text| !is_reading(content, text));
    silent.then(|| {
        format!("`content` says {:?}, sampled was {:?}", shortened(text.unwrap_or_default()), shortened(content))
    })
}

/// Whether a text may be what a parser left of the sampled one: without reasoning, calls or spaces around it.
fn is_reading(sampled: &str, text: &str) -> bool {
    let (sampled, text) = (sampled.trim(), text.trim());
    sampled == text || sampled.contains(['<', '[', '{'])
}

fn walk(value: &Data, visit: &mut impl FnMut(&str)) {
    match value {
        Data::Text(text) => leaf(text, visit),
        Data::List(items) | Data::Tuple(items) => items.iter().for_each(|item| walk(item, visit)),
        Data::Dict(dict) => {
            for (key, value) in dict.iter().filter(|(key, _)| !key.as_text().is_some_and(|key| GIVEN.contains(&key))) {
                // Keys of arguments are sampled; those that the message format brings are not.
                let format = matches!(key.as_text(), Some("function" | "name" | "arguments" | "text" | "parameters"));
                if !format && let Some(key) = key.as_text() {
                    visit(key);
                }
                walk(value, visit);
            }
        }
        Data::Int(number) => visit(&number.to_string()),
        _ => {}
    }
}

/// A text, or the JSON that it holds: a call's arguments may be written with other spaces.
fn leaf(text: &str, visit: &mut impl FnMut(&str)) {
    let trimmed = text.trim();
    match trimmed.starts_with(['{', '[']).then(|| Data::from_json(trimmed)) {
        Some(Ok(data)) => walk(&data, visit),
        _ => visit(trimmed),
    }
}

fn contains(sampled: &str, leaf: &str) -> bool {
    leaf.is_empty() || sampled.contains(leaf) || sampled.contains(&*escaped(leaf))
}

/// The text as JSON writes it inside quotes.
fn escaped(text: &str) -> Cow<'_, str> {
    let json = Data::from(text).to_json();
    Cow::Owned(json[1..json.len() - 1].to_owned())
}

fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(60).collect();
    if short.len() < text.len() {
        short.push_str("...");
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(json: &str) -> Data {
        Data::from_json(json).unwrap_or_default()
    }

    #[test]
    fn a_message_is_the_text_or_what_was_read_out_of_it() {
        let sampled = data(r#"{"content": "<think>so</think>{\"name\": \"add\", \"arguments\": {\"a\": 12}}"}"#);
        let parsed = r#"{"role": "assistant", "reasoning_content": "so", "tool_calls":
            [{"id": "x1", "type": "function", "function": {"name": "add", "arguments": "{\"a\":12}"}}]}"#;
        assert_eq!(difference(&sampled, &data(parsed)), None);
        assert!(difference(&sampled, &data(&parsed.replace("12", "13"))).is_some());
        assert!(
            difference(&data(r#"{"content": "four"}"#), &data(r#"{"role": "assistant", "content": "fou"}"#)).is_some()
        );
    }
}
