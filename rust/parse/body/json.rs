//! JSON objects that hold name and arguments: one, several, or a list of them.

use std::ops::Range;

use super::{Attempt, Region};
use crate::message::{Data, Dict};
use crate::parse::compiled::CompiledCalls;
use crate::parse::message::Status;

/// The keys that lead to name and arguments.
pub(super) struct Keys<'a> {
    pub(super) name: &'a [String],
    pub(super) arguments: &'a [String],
    pub(super) as_text: bool,
    /// Whether arguments may be left out: marks around the object say that it is a call.
    pub(super) marked: bool,
}

/// Names of the arguments that are understood beside the template's own.
const ARGUMENTS: [&str; 2] = ["arguments", "parameters"];
const IDS: [&str; 2] = ["id", "tool_call_id"];

pub(super) fn read(keys: &Keys<'_>, calls: &CompiledCalls, region: Region<'_>) -> Vec<Attempt> {
    let text = region.text(region.whole());
    let mut attempts = Vec::new();
    let mut at = skip_pieces(&text, calls, region);
    while let Some(start) = next_value(&text, at) {
        let Some((value, length)) = Data::read(&text[start..]) else {
            let name = keys.name_in(&text[start..]);
            attempts.push(Attempt::failed(region.broken(Status::InvalidJson), name, start..text.len()));
            return placed(attempts, &text, region);
        };
        let end = start + length;
        let mut attempt = keys.call(&value, start..end, region);
        if !region.closed && !is_followed(&text[end..]) {
            attempt = Attempt { status: Status::Unclosed, arguments: None, ..attempt };
        }
        attempts.push(attempt);
        at = end;
        if !text[at..].trim_start().starts_with([',', ';', ']', '{', '[']) {
            break;
        }
    }
    let rest = text[at..].trim_start_matches(|character: char| character.is_whitespace() || "],;".contains(character));
    let rest = calls.trail.skip(rest.as_bytes()).map_or(rest.len(), <[u8]>::len);
    if attempts.is_empty() {
        attempts.push(Attempt::failed(region.broken(Status::InvalidJson), None, 0..text.len()));
    } else if rest > 0 && region.closed {
        let name = attempts.pop().and_then(|attempt| attempt.name);
        let start = attempts.last().map_or(0, |attempt| attempt.place.end);
        attempts.push(Attempt::failed(Status::InvalidJson, name, start..text.len()));
    }
    placed(attempts, &text, region)
}

/// Places in the text are places on the wire, unless control tokens stand in it: then each attempt has the whole.
fn placed(attempts: Vec<Attempt>, text: &str, region: Region<'_>) -> Vec<Attempt> {
    if text.len() == region.bytes.len() {
        return attempts;
    }
    attempts.into_iter().map(|attempt| Attempt { place: region.whole(), ..attempt }).collect()
}

fn skip_pieces(text: &str, calls: &CompiledCalls, region: Region<'_>) -> usize {
    let mut rest = region.bytes;
    for piece in calls.lead.pieces() {
        rest = crate::parse::compiled::trim_start(rest);
        rest = rest.strip_prefix(piece).unwrap_or(rest);
    }
    let skipped = region.bytes.len() - rest.len();
    region.text(0..skipped).len().min(text.len())
}

/// Where the next value begins: behind separators and the bracket of a list.
fn next_value(text: &str, at: usize) -> Option<usize> {
    let rest = &text[at..];
    let skipped =
        rest.trim_start_matches(|character: char| character.is_whitespace() || ",;[".contains(character)).len();
    let start = text.len() - skipped;
    (!text[start..].is_empty() && !text[start..].starts_with(']')).then_some(start)
}

/// Whether something shows that a value is whole and the next one begins.
fn is_followed(rest: &str) -> bool {
    rest.trim_start().starts_with([',', ';', ']', '{'])
}

impl Keys<'_> {
    fn call(&self, value: &Data, place: Range<usize>, region: Region<'_>) -> Attempt {
        let malformed = |name: Option<String>, place| Attempt::failed(Status::Malformed, name, place);
        let Data::Dict(object) = value else { return malformed(None, place) };
        let (name, arguments) = if self.name.is_empty() {
            match object.entries() {
                [(name, arguments)] => (name.as_text(), Some(arguments)),
                _ => (None, None),
            }
        } else {
            (lookup(value, self.name).and_then(Data::as_text), self.arguments_in(value))
        };
        let Some(name) = name.filter(|name| !name.is_empty()) else { return malformed(None, place) };
        let name = name.to_owned();
        let arguments = match arguments {
            Some(Data::Text(text)) if self.as_text => match Data::read_whole(text) {
                Some(value @ Data::Dict(_)) => value,
                _ => return Attempt::failed(Status::InvalidJson, Some(name), place),
            },
            Some(value @ Data::Dict(_)) => value.clone(),
            None if self.marked => Dict::new().into(),
            _ => return malformed(Some(name), place),
        };
        let id = IDS.iter().find_map(|key| object.get(key)?.as_text()).map(str::to_owned);
        let status = region.called(&name);
        Attempt { name: Some(name), arguments: Some(arguments), status, id, place }
    }

    fn arguments_in<'v>(&self, value: &'v Data) -> Option<&'v Data> {
        let (last, path) = self.arguments.split_last()?;
        let holder = lookup(value, path)?;
        holder.get(last).or_else(|| ARGUMENTS.iter().find_map(|key| holder.get(key)))
    }

    /// The name in JSON that does not parse.
    fn name_in(&self, text: &str) -> Option<String> {
        let key = format!("\"{}\"", self.name.last()?);
        let rest = text[text.find(&key)? + key.len()..].trim_start().strip_prefix(':')?.trim_start();
        let name = rest.strip_prefix('"')?;
        let end = name.find(['"', '\\', '\n'])?;
        name[end..].starts_with('"').then(|| name[..end].to_owned())
    }
}

fn lookup<'v>(value: &'v Data, path: &[String]) -> Option<&'v Data> {
    path.iter().try_fold(value, |value, key| value.get(key))
}
