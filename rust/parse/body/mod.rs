//! From the text of a call to its name and arguments: one file for each way of writing them.

mod json;
pub(super) mod literal;
mod named;
mod tagged;

use std::borrow::Cow;
use std::ops::Range;

use super::compiled::{CompiledBody, CompiledCalls};
use super::message::Status;
use super::schema::Tools;
use super::wire::Alphabet;
use crate::message::Data;

/// An attempt at a call, as the body shows it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Attempt {
    pub(super) name: Option<String>,
    pub(super) arguments: Option<Data>,
    pub(super) status: Status,
    pub(super) id: Option<String>,
    /// Its place in the body.
    pub(super) place: Range<usize>,
}

impl Attempt {
    fn failed(status: Status, name: Option<String>, place: Range<usize>) -> Self {
        Self { name, arguments: None, status, id: None, place }
    }
}

/// The text between the marks of a call, or of a block of calls.
#[derive(Debug, Clone, Copy)]
pub(super) struct Region<'a> {
    pub(super) bytes: &'a [u8],
    /// Whether a mark closed it.
    pub(super) closed: bool,
    pub(super) alphabet: &'a Alphabet,
    pub(super) tools: &'a Tools,
}

impl<'a> Region<'a> {
    fn text(&self, range: Range<usize>) -> Cow<'a, str> {
        self.alphabet.text(&self.bytes[range])
    }

    fn whole(&self) -> Range<usize> {
        0..self.bytes.len()
    }

    /// What an attempt that does not parse is: cut, if nothing closed it.
    fn broken(&self, status: Status) -> Status {
        if self.closed { status } else { Status::Unclosed }
    }

    /// The status of a call whose name and arguments are read.
    fn called(&self, name: &str) -> Status {
        if self.tools.knows(name) { Status::Ok } else { Status::UnknownTool }
    }
}

/// The attempts in a region, at least one.
pub(super) fn read(calls: &CompiledCalls, region: Region<'_>) -> Vec<Attempt> {
    match &calls.body {
        CompiledBody::Json { name, arguments, as_text } => json::read(
            &json::Keys { name, arguments, as_text: *as_text, marked: !calls.open.is_empty() },
            calls,
            region,
        ),
        CompiledBody::Named { separators, index } => vec![named::read(separators, index, calls, region)],
        CompiledBody::Tagged(tags) => vec![tagged::read(tags, calls, region)],
        CompiledBody::Literal { suffix, quotes, bracket, assign, all_quoted } => {
            let (quotes, all_quoted) = (quotes.as_ref(), *all_quoted);
            let signs = literal::Signs { suffix, quotes, bracket: *bracket, assign: *assign, all_quoted };
            literal::read(signs, calls, region)
        }
    }
}

/// A turn that is all calls, or none.
pub(super) fn whole_turn(calls: &CompiledCalls, region: Region<'_>) -> Option<Vec<Attempt>> {
    let bytes = region.bytes.trim_ascii();
    let region = Region { bytes, ..region };
    let attempts = read(calls, region);
    let is_call = |attempt: &Attempt| match attempt.status {
        Status::Ok | Status::UnknownTool => attempt.arguments.is_some(),
        // A call whose arguments have no names is still no prose.
        Status::Malformed => attempt.name.as_deref().is_some_and(|name| region.tools.declares(name)),
        _ => false,
    };
    let end = attempts.last().map_or(0, |attempt| attempt.place.end);
    let rest = bytes.get(end..).unwrap_or_default();
    let closed = rest.iter().all(|byte| byte.is_ascii_whitespace() || b"];,".contains(byte));
    (closed && attempts.iter().all(is_call)).then_some(attempts)
}

/// The call in the body of a part that is addressed to a tool.
pub(super) fn addressed(name: &str, region: Region<'_>) -> Attempt {
    let place = region.whole();
    let text = region.text(place.clone());
    let name = Some(name.to_owned());
    if !region.closed {
        return Attempt::failed(Status::Unclosed, name, place);
    }
    match Data::read_whole(&text) {
        Some(arguments @ Data::Dict(_)) => {
            let status = region.called(name.as_deref().unwrap_or_default());
            Attempt { name, arguments: Some(arguments), status, id: None, place }
        }
        Some(_) => Attempt::failed(Status::Malformed, name, place),
        None => Attempt::failed(Status::InvalidJson, name, place),
    }
}
