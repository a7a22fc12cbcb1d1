//! Values as text: `str`, `repr` and `json.dumps`.
//!
//! A container with an author gives its whole dump to that author. In any other dump each text keeps its own authors,
//! and quotes, numbers and punctuation are the template's. An escape has the author of the character it stands for.

mod json;

use std::fmt::Write;

use super::failure::limit_error;
use super::text::{Mark, Text, Writer};
use super::value::{Function, List, Map, Value, View};
use super::{characters, number};
use crate::Result;

pub(super) use json::{JsonStyle, json};

/// Containers nested deeper are refused.
const DEPTH: usize = 400;

/// `str(value)`; a safe text becomes a plain one.
pub(super) fn to_text<'a>(value: &Value<'a>) -> Result<Text<'a>> {
    match value {
        Value::Text(text) => Ok(text.clone().with_safety(false)),
        value => {
            let mut writer = Writer::default();
            write_text(value, &mut writer)?;
            Ok(writer.finish())
        }
    }
}

/// The text of a value where texts stay as they are, safe or not.
pub(super) fn soft<'a>(value: &Value<'a>) -> Result<Text<'a>> {
    match value {
        Value::Text(text) => Ok(text.clone()),
        value => to_text(value),
    }
}

/// Appends `str(value)`.
pub(super) fn write_text(value: &Value<'_>, out: &mut Writer) -> Result<()> {
    match value {
        Value::Text(text) => out.push_text(text),
        Value::Missing | Value::Undefined(_) => {}
        value => write_repr(value, out, None, 0)?,
    }
    Ok(())
}

/// `repr(value)`.
pub(super) fn repr<'a>(value: &Value<'a>) -> Result<Text<'a>> {
    let mut writer = Writer::default();
    write_repr(value, &mut writer, None, 0)?;
    Ok(writer.finish())
}

fn write_repr(value: &Value<'_>, out: &mut Writer, owner: Mark, depth: usize) -> Result<()> {
    if depth > DEPTH {
        return Err(limit_error("containers are nested too deeply to print"));
    }
    match value {
        Value::Text(text) => write_text_repr(text, out, owner),
        Value::List(items) => write_items(items, out, owner, depth, "[", "]")?,
        Value::Tuple(items) => write_items(items, out, owner, depth, "(", if items.len() == 1 { ",)" } else { ")" })?,
        Value::Group(group) => {
            let pair = List::new(vec![group.0.clone(), group.1.clone()]);
            write_items(&pair, out, owner, depth, "(", ")")?;
        }
        Value::Dict(map) => write_map(map, out, owner, depth)?,
        Value::View(view, map) => write_view(*view, map, out, depth)?,
        Value::Namespace(fields) => {
            let fields: Vec<_> =
                fields.borrow().iter().map(|(key, value)| (Value::Text(key.clone()), value.clone())).collect();
            out.push("<Namespace ", None);
            write_map(&Map::build(fields)?, out, None, depth + 1)?;
            out.push(">", None);
        }
        value => {
            let shown = scalar(value)?;
            out.push(&shown, owner);
        }
    }
    Ok(())
}

/// What has no texts inside.
fn scalar(value: &Value<'_>) -> Result<String> {
    Ok(match value {
        Value::Missing | Value::Undefined(_) => "Undefined".into(),
        Value::None => "None".into(),
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        Value::Int(number) => number.to_string(),
        Value::Big(number) => number::digits_of(number)?,
        Value::Float(number) => {
            let mut shown = String::new();
            crate::number::push_float(*number, &mut shown);
            shown
        }
        Value::Range(range) if range.step == 1 => format!("range({}, {})", range.start, range.stop),
        Value::Range(range) => format!("range({}, {}, {})", range.start, range.stop, range.step),
        Value::Macro(value) if value.definition.name.is_empty() => "<Macro 'caller'>".into(),
        Value::Macro(value) => format!("<Macro '{}'>", value.definition.name),
        Value::Loop(state) => state.shown(),
        // Python shows addresses here, which no template can mean.
        Value::Method(method) => format!("<built-in method {} of {} object>", method.1.name, method.0.type_name()),
        Value::Function(Function::Namespace) => {
            "<class 'transformers.utils.chat_template_utils._cached_compile_jinja_template.<locals>.TemplateNamespace'>"
                .into()
        }
        Value::Template => "<TemplateReference None>".into(),
        Value::Bytes(bytes) => bytes_repr(bytes),
        value => format!("<{} object>", value.type_name()),
    })
}

fn write_items(items: &List<'_>, out: &mut Writer, owner: Mark, depth: usize, open: &str, close: &str) -> Result<()> {
    let owner = owner.or(items.owner());
    out.push(open, owner);
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(", ", owner);
        }
        write_repr(&item, out, owner, depth + 1)?;
    }
    out.push(close, owner);
    Ok(())
}

fn write_map(map: &Map<'_>, out: &mut Writer, owner: Mark, depth: usize) -> Result<()> {
    let owner = owner.or(map.owner());
    out.push("{", owner);
    for (index, (key, value)) in map.entries().enumerate() {
        if index > 0 {
            out.push(", ", owner);
        }
        write_repr(&key, out, owner, depth + 1)?;
        out.push(": ", owner);
        write_repr(&value, out, owner, depth + 1)?;
    }
    out.push("}", owner);
    Ok(())
}

fn write_view(view: View, map: &Map<'_>, out: &mut Writer, depth: usize) -> Result<()> {
    let (name, items): (_, Vec<Value<'_>>) = match view {
        View::Keys => ("dict_keys(", map.keys().collect()),
        View::Values => ("dict_values(", map.entries().map(|(_, value)| value).collect()),
        View::Items => ("dict_items(", map.entries().map(|(key, value)| Value::tuple(vec![key, value])).collect()),
    };
    out.push(name, None);
    write_items(&List::new(items), out, None, depth + 1, "[", "]")?;
    out.push(")", None);
    Ok(())
}

fn write_text_repr(text: &Text<'_>, out: &mut Writer, owner: Mark) {
    let str = text.as_str();
    let quote = if str.contains('\'') && !str.contains('"') { '"' } else { '\'' };
    let mut buffer = [0; 4];
    if text.is_safe() {
        out.push("Markup(", owner);
    }
    out.push(quote.encode_utf8(&mut buffer), owner);
    let plain = |byte| (b' '..=b'~').contains(&byte) && byte != b'\\' && byte != quote as u8;
    write_escaped(text, out, owner, plain, |char, shown| escape(char, quote, shown));
    out.push(quote.encode_utf8(&mut buffer), owner);
    if text.is_safe() {
        out.push(")", owner);
    }
}

/// Appends a text, the characters of which `escape` may replace; it says whether it did. It is not asked about those
/// whose first byte is `plain`.
fn write_escaped(
    text: &Text<'_>,
    out: &mut Writer,
    owner: Mark,
    plain: impl Fn(u8) -> bool,
    escape: impl Fn(char, &mut String) -> bool,
) {
    let str = text.as_str();
    let (mut start, mut at, mut shown) = (0, 0, String::new());
    while let Some(skipped) = str.as_bytes()[at..].iter().position(|byte| !plain(*byte)) {
        at += skipped;
        let Some(char) = str[at..].chars().next() else { break };
        shown.clear();
        if escape(char, &mut shown) {
            push_owned(text, start..at, out, owner);
            out.push(&shown, owner.or_else(|| text.mark_at(at)));
            start = at + char.len_utf8();
        }
        at += char.len_utf8();
    }
    push_owned(text, start..str.len(), out, owner);
}

fn push_owned(text: &Text<'_>, range: std::ops::Range<usize>, out: &mut Writer, owner: Mark) {
    match owner {
        Some(_) => out.push(&text.as_str()[range], owner),
        None => out.push_range(text, range),
    }
}

/// The escape of a character in `repr`, if it has one.
fn escape(char: char, quote: char, shown: &mut String) -> bool {
    match char {
        '\\' => shown.push_str("\\\\"),
        '\n' => shown.push_str("\\n"),
        '\r' => shown.push_str("\\r"),
        '\t' => shown.push_str("\\t"),
        char if char == quote => {
            shown.push('\\');
            shown.push(char);
        }
        char if characters::is_printable(char) => return false,
        char => drop(match char as u32 {
            code @ 0..0x100 => write!(shown, "\\x{code:02x}"),
            code @ 0x100..0x1_0000 => write!(shown, "\\u{code:04x}"),
            code => write!(shown, "\\U{code:08x}"),
        }),
    }
    true
}

/// `repr` of bytes.
fn bytes_repr(bytes: &[u8]) -> String {
    let quote = if bytes.contains(&b'\'') && !bytes.contains(&b'"') { '"' } else { '\'' };
    let mut shown = format!("b{quote}");
    for byte in bytes {
        match byte {
            0x80.. => drop(write!(shown, "\\x{byte:02x}")),
            byte if escape(*byte as char, quote, &mut shown) => {}
            byte => shown.push(*byte as char),
        }
    }
    shown.push(quote);
    shown
}

/// `ascii(value)`: `repr` with everything beyond ASCII escaped.
pub(super) fn ascii<'a>(value: &Value<'a>) -> Result<Text<'a>> {
    let shown = repr(value)?;
    let mut writer = Writer::default();
    write_escaped(
        &shown,
        &mut writer,
        None,
        |byte| byte.is_ascii(),
        |char, shown| {
            if char.is_ascii() {
                return false;
            }
            let _ = match char as u32 {
                code @ 0..0x100 => write!(shown, "\\x{code:02x}"),
                code @ 0x100..0x1_0000 => write!(shown, "\\u{code:04x}"),
                code => write!(shown, "\\U{code:08x}"),
            };
            true
        },
    );
    Ok(writer.finish())
}
