//! Which marks count where the reader is.

use super::{Machine, Mode};
use crate::parse::compiled::{Match, Meaning};
use crate::parse::wire::control_length;

/// What stands at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// A mark of this meaning, so long.
    Mark(Meaning, usize),
    Nothing,
    /// More bytes decide.
    Wait,
}

/// Words in the names of tokens that end a turn.
const ENDS: [&str; 5] = ["end", "eo", "stop", "return", "</s>"];
/// Words in the names of marks that open the result of a call.
const RESULTS: [&str; 4] = ["response", "result", "observation", "output"];
/// A mark typed out is no longer.
const LONGEST_TAG: usize = 64;

/// The mark that bytes are, or begin to be.
fn tag_at(bytes: &[u8]) -> Option<(&str, usize)> {
    let bytes = bytes.get(..LONGEST_TAG).unwrap_or(bytes);
    let end = bytes.iter().position(|byte| *byte == b'>').map_or(bytes.len(), |end| end + 1);
    let is_mark = bytes[0] == b'<' && bytes[..end].iter().all(u8::is_ascii_graphic);
    let text = is_mark.then(|| std::str::from_utf8(&bytes[..end]).ok()).flatten()?;
    Some((text, end))
}

impl Machine {
    /// The close of the present call at a place.
    pub(super) fn close_at(&self, at: usize) -> Option<usize> {
        let Mode::Call(index) = self.mode else { return None };
        self.compiled.calls[index].close.length_at(&self.wire.bytes[at..])
    }

    pub(super) fn closes(&self, byte: u8) -> bool {
        matches!(self.mode, Mode::Call(index) if self.compiled.calls[index].close.first() == Some(byte))
    }

    /// What stands at a place, as far as it counts here.
    pub(super) fn known(&self, at: usize, last: bool) -> Found {
        let rest = &self.wire.bytes[at..];
        let mut found = Found::Nothing;
        if let Mode::Call(index) = self.mode {
            let close = &self.compiled.calls[index].close;
            match close.at(rest) {
                Match::Yes(length) if !close.is_empty() => return Found::Mark(Meaning::Frame, length),
                Match::Partly if !close.is_empty() && !last => return Found::Wait,
                _ => {}
            }
        }
        for (mark, meaning) in &self.compiled.marks {
            if mark.first() != rest.first().copied() || !self.counts(*meaning, mark.is_control(), at) {
                continue;
            }
            match mark.at(rest) {
                Match::Partly if !last => return Found::Wait,
                Match::Yes(length) => {
                    let text_stop = *meaning == Meaning::Stop && !mark.is_control();
                    match found {
                        _ if text_stop && !rest[length..].trim_ascii().is_empty() => {}
                        _ if text_stop && !last => return Found::Wait,
                        Found::Mark(_, known) if known >= length => {}
                        _ => found = Found::Mark(*meaning, length),
                    }
                }
                _ => {}
            }
        }
        if found == Found::Nothing { self.unknown_end(at, last) } else { found }
    }

    /// A special token that the grammar does not know ends the turn if it is the last and its name says so. What looks
    /// like a mark of a result does so right behind a call, special or not: some models stop where a result begins.
    fn unknown_end(&self, at: usize, last: bool) -> Found {
        let rest = &self.wire.bytes[at..];
        let behind_call = self.is_behind_call(at);
        let special = self.compiled.alphabet.special_at(rest).map(|text| (text, control_length()));
        let Some((text, length)) = special.or_else(|| behind_call.then(|| tag_at(rest)).flatten()) else {
            return Found::Nothing;
        };
        if rest.len() > length || self.compiled.marks.iter().any(|(mark, _)| mark.holds(&rest[..length])) {
            return Found::Nothing;
        }
        let lower = text.to_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        let ends = special.is_some() && says(&ENDS) || behind_call && says(&RESULTS);
        match (ends, last) {
            (true, true) => Found::Mark(Meaning::Stop, length),
            (true, false) => Found::Wait,
            (false, false) if special.is_none() && !text.ends_with('>') => Found::Wait,
            _ => Found::Nothing,
        }
    }

    /// Whether nothing but white space stands between the last call and this place.
    pub(super) fn is_behind_call(&self, at: usize) -> bool {
        self.mode == Mode::Content
            && !self.calls.is_empty()
            && !self.content.has_begun()
            && self.wire.bytes[self.start..at].trim_ascii().is_empty()
    }

    /// Whether a mark of this meaning counts where the reader is.
    fn counts(&self, meaning: Meaning, control: bool, at: usize) -> bool {
        let blank = || self.content.is_blank() && self.wire.bytes[self.start..at].trim_ascii().is_empty();
        let parts = self.compiled.parts.is_some();
        match (self.mode, meaning) {
            (Mode::Content, Meaning::Reasoning) => {
                blank() && self.calls.is_empty() && self.reasoning.is_none() && !self.reasoning_ended
            }
            (Mode::Content, Meaning::ReasoningEnd) => {
                let first = self.calls.is_empty() && self.reasoning.is_none() && !self.reasoning_ended;
                first && (blank() || !self.prompt_known)
            }
            (_, Meaning::Stop)
            | (Mode::Content, _)
            | (Mode::Reasoning | Mode::Addressed, Meaning::PartEnd | Meaning::Header) => true,
            (Mode::Reasoning, Meaning::ReasoningEnd) => !parts,
            (Mode::Call(index), Meaning::Calls(_)) => {
                let calls = &self.compiled.calls[index];
                calls.close.is_empty() || control || calls.quotes_hide
            }
            (Mode::Call(index), Meaning::Frame) => control || self.compiled.calls[index].close.is_empty(),
            (Mode::Call(_), Meaning::PartEnd | Meaning::Header) => control,
            _ => false,
        }
    }
}
