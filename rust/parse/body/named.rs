//! A name, and arguments as a JSON object.

use std::borrow::Cow;

use super::{Attempt, Region};
use crate::message::Data;
use crate::parse::compiled::{CompiledCalls, Mark, trim_start};
use crate::parse::message::Status;

pub(super) fn read(separators: &[Mark], index: &str, calls: &CompiledCalls, region: Region<'_>) -> Attempt {
    let size = region.bytes.len();
    let lead = calls.lead.skip(region.bytes).unwrap_or_else(|| trim_start(region.bytes));
    let start = size - lead.len();
    let first = separators.iter().filter_map(|separator| separator.find(lead)).map(|(at, _)| at).min();
    let end = first.or_else(|| lead.iter().position(|byte| matches!(byte, b'\n' | b'{')));
    let Some(end) = end else {
        // Without a separator all of it may be a name that is cut, or none at all.
        let status = region.broken(Status::Malformed);
        return Attempt::failed(status, None, 0..size);
    };
    let full = region.text(start..start + end).trim().to_owned();
    let name = without_index(&full, index).to_owned();
    let id = (name != full).then_some(full);
    let last = separators.iter().filter_map(|separator| separator.find(lead)).map(|(at, length)| at + length).max();
    let json_start = match last {
        Some(after) => start + after,
        None => start + end,
    };
    let json = trailed(&region.bytes[json_start..], calls, region);
    let json = fenced(json.trim());
    if name.is_empty() || name.contains(['\n', '{', '<']) {
        return Attempt::failed(region.broken(Status::Malformed), None, 0..size);
    }
    if !region.closed {
        return Attempt { id, ..Attempt::failed(Status::Unclosed, Some(name), 0..size) };
    }
    match Data::read_whole(json) {
        Some(arguments @ Data::Dict(_)) => {
            let status = region.called(&name);
            Attempt { name: Some(name), arguments: Some(arguments), status, id, place: 0..size }
        }
        Some(_) => Attempt::failed(Status::Malformed, Some(name), 0..size),
        None => Attempt::failed(Status::InvalidJson, Some(name), 0..size),
    }
}

/// The text without what may stand before the mark that closes.
fn trailed<'a>(bytes: &'a [u8], calls: &CompiledCalls, region: Region<'_>) -> Cow<'a, str> {
    let mut rest = bytes;
    let pieces: Vec<&[u8]> = calls.trail.pieces().collect();
    for piece in pieces.into_iter().rev() {
        let end = rest.trim_ascii_end();
        rest = end.strip_suffix(piece).unwrap_or(end);
    }
    region.alphabet.text(rest)
}

/// JSON out of a fence of Markdown.
fn fenced(text: &str) -> &str {
    let Some(inner) = text.strip_prefix("```") else { return text };
    let inner = inner.trim_start_matches(char::is_alphabetic).trim_start();
    inner.strip_suffix("```").unwrap_or(inner).trim_end()
}

/// A name without its running number and the name space before it.
fn without_index<'a>(name: &'a str, index: &str) -> &'a str {
    if index.is_empty() {
        return name;
    }
    match name.rsplit_once(index) {
        Some((start, number)) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => start,
        _ => name,
    }
}
