//! [`Data`] from JSON text and to JSON text, as Python's `json` module reads and writes it.

use std::fmt::Write;
use std::sync::Arc;

use super::{Data, Dict, Key};
use crate::{Error, Result};

impl Data {
    /// Reads JSON text. Integers of any size and the order of keys are kept; of a repeated key the last value counts.
    pub fn from_json(text: &str) -> Result<Self> {
        if let Some(value) = Self::read_whole(text) {
            return Ok(value);
        }
        serde_json::from_str(text).map(Self::from_value).map_err(|error| Error::value(format!("not JSON: {error}")))
    }

    /// What a parsed JSON value says.
    pub(crate) fn from_value(value: serde_json::Value) -> Self {
        match value {
            serde_json::Value::Null => Self::Null,
            serde_json::Value::Bool(flag) => Self::Bool(flag),
            serde_json::Value::Number(number) => number_from(number.as_str()),
            serde_json::Value::String(text) => Self::from(text),
            serde_json::Value::Array(items) => items.into_iter().map(Self::from_value).collect::<Vec<_>>().into(),
            serde_json::Value::Object(entries) => {
                let entries = entries.into_iter().map(|(key, value)| (Key::from(&*key), Self::from_value(value)));
                entries.collect::<Dict>().into()
            }
        }
    }

    /// Writes JSON text on one line, as `json.dumps(value, ensure_ascii=False)`.
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        write(self, &mut out);
        out
    }
}

pub(super) fn number_from(digits: &str) -> Data {
    if digits.contains(['.', 'e', 'E']) {
        return Data::Float(digits.parse().unwrap_or(f64::NAN));
    }
    digits.parse().map_or_else(|_| Data::BigInt(Arc::from(digits)), Data::Int)
}

fn write(value: &Data, out: &mut String) {
    match value {
        Data::Null => out.push_str("null"),
        Data::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Data::Int(number) => drop(write!(out, "{number}")),
        Data::BigInt(digits) => out.push_str(digits),
        Data::Float(number) => write_float(*number, out),
        Data::Text(text) => write_text(text, out),
        Data::List(items) | Data::Tuple(items) => write_items(items, out),
        Data::Dict(dict) => write_dict(dict, out),
    }
}

fn write_items(items: &[Data], out: &mut String) {
    out.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        write(item, out);
    }
    out.push(']');
}

fn write_dict(dict: &Dict, out: &mut String) {
    out.push('{');
    for (index, (key, value)) in dict.iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        match key {
            Key::Text(text) => write_text(text, out),
            key => {
                out.push('"');
                write(&Data::from(key), out);
                out.push('"');
            }
        }
        out.push_str(": ");
        write(value, out);
    }
    out.push('}');
}

impl From<&Key> for Data {
    fn from(key: &Key) -> Self {
        match key {
            Key::Text(text) => Self::Text(text.clone()),
            Key::Bool(flag) => Self::Bool(*flag),
            Key::Int(number) => Self::Int(*number),
            Key::Float(bits) => Self::Float(f64::from_bits(*bits)),
            Key::Null => Self::Null,
        }
    }
}

/// Python writes the non-finite floats by name.
fn write_float(number: f64, out: &mut String) {
    if number.is_nan() {
        out.push_str("NaN");
    } else if number.is_infinite() {
        out.push_str(if number > 0.0 { "Infinity" } else { "-Infinity" });
    } else {
        crate::number::push_float(number, out);
    }
}

fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            char if char < ' ' => drop(write!(out, "\\u{:04x}", char as u32)),
            char => out.push(char),
        }
    }
    out.push('"');
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use super::*;

    #[test]
    fn json_round_trips_as_python_writes_it() {
        let text = r#"{"a": [1, 1.0, 1e-07, 123456789012345678901234567890, "é\n\u0001\""], "b": {}, "c": null}"#;
        assert_eq!(Data::from_json(text).unwrap().to_json(), text);
    }

    #[test]
    fn broken_json_is_an_error() {
        assert!(Data::from_json("{").is_err());
    }
}
