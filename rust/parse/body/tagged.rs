//! A name, and each argument between tags of its own.

use super::{Attempt, Region};
use crate::message::{Data, Dict};
use crate::parse::compiled::{CompiledCalls, CompiledTags, Mark, trim_start};
use crate::parse::message::Status;
use crate::parse::schema::Tool;
use crate::parse::wire::Alphabet;

/// Why a call has no arguments.
enum Fault {
    Shape,
    Value,
}

pub(super) fn read(tags: &CompiledTags, calls: &CompiledCalls, region: Region<'_>) -> Attempt {
    let size = region.bytes.len();
    let failed = |fault, name| Attempt::failed(region.broken(fault), name, 0..size);
    let Some(lead) = skip(&calls.lead, region.bytes) else { return failed(Status::Malformed, None) };
    let Some((name, rest)) = name(tags, calls, lead, region) else { return failed(Status::Malformed, None) };
    if !region.closed {
        return failed(Status::Unclosed, Some(name));
    }
    match arguments(tags, calls, &region.tools.tool(&name), rest, region) {
        Ok(arguments) => {
            let status = region.called(&name);
            Attempt { name: Some(name), arguments: Some(arguments.into()), status, id: None, place: 0..size }
        }
        Err(Fault::Shape) => failed(Status::Malformed, Some(name)),
        Err(Fault::Value) => failed(Status::InvalidJson, Some(name)),
    }
}

fn skip<'a>(mark: &Mark, bytes: &'a [u8]) -> Option<&'a [u8]> {
    if mark.is_empty() { Some(trim_start(bytes)) } else { mark.skip(bytes) }
}

/// The name, and what follows what closes it.
fn name<'a>(
    tags: &CompiledTags,
    calls: &CompiledCalls,
    bytes: &'a [u8],
    region: Region<'_>,
) -> Option<(String, &'a [u8])> {
    let first_piece = |mark: &Mark| mark.pieces().next().map(<[u8]>::to_vec);
    let mut ends: Vec<usize> = [&tags.name_close, &tags.key_open, &calls.trail]
        .into_iter()
        .filter_map(|mark| find(bytes, &first_piece(mark)?))
        .collect();
    ends.extend(bytes.iter().position(|byte| *byte == b'\n' || *byte == b'<'));
    let end = match ends.into_iter().min() {
        Some(end) => end,
        None if region.closed => bytes.len(),
        None => return None,
    };
    let name = region.alphabet.text(&bytes[..end]).trim().to_owned();
    let is_name =
        !name.is_empty() && !name.contains(|character: char| character.is_whitespace() || "<>{}\"".contains(character));
    is_name.then(|| (name, &bytes[end..]))
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    let first = *wanted.first()?;
    let places = bytes.iter().enumerate().filter(|(_, byte)| **byte == first);
    places.map(|(at, _)| at).find(|at| bytes[*at..].starts_with(wanted))
}

fn arguments(
    tags: &CompiledTags,
    calls: &CompiledCalls,
    tool: &Tool,
    bytes: &[u8],
    region: Region<'_>,
) -> Result<Dict, Fault> {
    let mut found = Dict::new();
    let mut rest = bytes;
    let mut first = true;
    while let Some((at, length)) = tags.key_open.find(rest) {
        if !is_frame(&rest[..at], tags, calls, first, region.alphabet) {
            return Err(Fault::Shape);
        }
        let (key, value, after) = argument(tags, &rest[at + length..], tool, region)?;
        found.insert(&*key, value);
        rest = after;
        first = false;
    }
    if is_frame(rest, tags, calls, first, region.alphabet) { Ok(found) } else { Err(Fault::Shape) }
}

/// Whether a stretch holds nothing but what the template writes between arguments: the end of the name or the trail,
/// whatever its numbers.
fn is_frame(bytes: &[u8], tags: &CompiledTags, calls: &CompiledCalls, first: bool, alphabet: &Alphabet) -> bool {
    let plain = |text: &str| -> String {
        text.chars().filter(|character| !character.is_whitespace() && !character.is_ascii_digit()).collect()
    };
    let text = plain(&alphabet.text(bytes));
    let close = |mark: &Mark| mark.pieces().map(|piece| plain(&alphabet.text(piece))).collect::<String>();
    let mut rest = text.as_str();
    if first {
        rest = rest.strip_prefix(&*close(&tags.name_close)).unwrap_or(rest);
    }
    rest.trim_matches(['>', '"']).is_empty()
        || calls.trail.pieces().any(|piece| rest == plain(&alphabet.text(piece)))
        || rest == close(&calls.trail)
}

/// One key and its value, from behind what opens the key.
fn argument<'a>(
    tags: &CompiledTags,
    bytes: &'a [u8],
    tool: &Tool,
    region: Region<'_>,
) -> Result<(String, Data, &'a [u8]), Fault> {
    let pieces: Vec<&[u8]> = tags.key_close.pieces().collect();
    let first = pieces.first().ok_or(Fault::Shape)?;
    let end = find(bytes, first).ok_or(Fault::Shape)?;
    let key = region.alphabet.text(&bytes[..end]).trim().to_owned();
    if key.is_empty() || key.contains(['\n', '<']) {
        return Err(Fault::Shape);
    }
    let length = tags.key_close.length_at(&bytes[end..]).ok_or(Fault::Shape)?;
    let mut value = &bytes[end + length..];
    let mut attribute = None;
    if !tags.value_open.is_empty() {
        let (at, length) = tags.value_open.find(value).ok_or(Fault::Shape)?;
        attribute = Some(region.alphabet.text(&value[..at]).trim().to_owned());
        value = &value[at + length..];
    }
    let (before, behind) = &tags.value_close;
    let mut close = before.clone();
    if let Some(behind) = behind {
        close.extend_from_slice(&bytes[..end]);
        close.extend_from_slice(behind);
    }
    let section = if tags.cdata { section_end(value) } else { 0 };
    let end = if close.is_empty() { None } else { find(&value[section..], &close) }.ok_or(Fault::Shape)? + section;
    let text = region.alphabet.text(unlined(tags, &value[..end]));
    let text = match text.strip_prefix(SECTION.0).and_then(|text| text.strip_suffix(SECTION.1)) {
        Some(inner) if tags.cdata => inner,
        _ => &*text,
    };
    let data = typed(tags, attribute.as_deref(), text, tool, &key).ok_or(Fault::Value)?;
    Ok((key, data, &value[end + close.len()..]))
}

/// A CDATA section: markup inside it is text.
const SECTION: (&str, &str) = ("<![CDATA[", "]]>");

/// Where a CDATA section at the beginning of a value ends.
fn section_end(value: &[u8]) -> usize {
    if !value.starts_with(SECTION.0.as_bytes()) {
        return 0;
    }
    find(value, SECTION.1.as_bytes()).unwrap_or(0)
}

/// A value without the line feeds that belong to its tags.
fn unlined<'a>(tags: &CompiledTags, bytes: &'a [u8]) -> &'a [u8] {
    let bytes = if tags.line_before { bytes.strip_prefix(b"\n").unwrap_or(bytes) } else { bytes };
    if tags.line_after { bytes.strip_suffix(b"\n").unwrap_or(bytes) } else { bytes }
}

/// The value of a text: what the attribute says goes before the schema.
fn typed(tags: &CompiledTags, attribute: Option<&str>, text: &str, tool: &Tool, key: &str) -> Option<Data> {
    match attribute {
        Some(attribute) if tags.text_attributes.iter().any(|known| known.trim() == attribute) => Some(text.into()),
        Some(attribute) if tags.other_attributes.iter().any(|known| known.trim() == attribute) => {
            super::literal::value(text.trim())
        }
        _ => tool.typed(key, text),
    }
}
