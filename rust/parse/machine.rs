//! The reader of a turn, one push of tokens at a time.
//!
//! *Invariants.* A decision is made only when no later token can change it, so any split of the ids gives the same
//! message, and the deltas of a field, one behind the other, are the field. Each byte is looked at a bounded number of
//! times, so time is linear in the length of the turn.

mod calls;
mod header;
mod marks;

use std::sync::Arc;

use marks::Found;

use super::bytes::ByteSet;
use super::compiled::{Compiled, Match, Meaning, space};
use super::message::{Delta, Message, ToolCall};
use super::quotes::Quotes;
use super::schema::Tools;
use super::text::Growing;
use super::wire::{Wire, is_control};

/// What the reader is inside of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Content,
    Reasoning,
    /// A call, or a block of calls, of this way of writing.
    Call(usize),
    /// A header of a part.
    Header,
    /// The body of a part that is a call.
    Addressed,
    /// What may be calls without marks, or content: the whole turn decides.
    Held,
    Done,
}

/// The state of a turn that is read.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each says another thing about the turn")]
pub(super) struct Machine {
    compiled: Arc<Compiled>,
    tools: Tools,
    wire: Wire,
    mode: Mode,
    /// Where what the mode reads begins, marks included.
    start: usize,
    /// Behind its opening mark.
    body: usize,
    /// The first byte that is not looked at yet.
    at: usize,
    quotes: Quotes,
    /// A quotation mark was never closed: no string hides a mark any more.
    blind: bool,
    recipient: String,
    reasoning: Option<Growing>,
    content: Growing,
    calls: Vec<Arc<ToolCall>>,
    reasoning_ended: bool,
    /// Reasoning was opened by the prompt, and the sample may open it again.
    reopens: bool,
    /// Whether what the prompt holds is known.
    prompt_known: bool,
    finished: bool,
    /// What is settled and not handed out; none if nobody wants it.
    deltas: Option<Vec<Delta>>,
}

impl Machine {
    /// A reader after a prompt that ends with these bytes of an answer; none: as the template's own prompts do.
    pub(super) fn new(compiled: &Arc<Compiled>, tools: Tools, prefill: Option<&[u8]>) -> Self {
        let mode = if compiled.parts.is_some() { Mode::Header } else { Mode::Content };
        let mut machine = Self {
            compiled: compiled.clone(),
            tools,
            wire: Wire::default(),
            mode,
            start: 0,
            body: 0,
            at: 0,
            quotes: Quotes::default(),
            blind: false,
            recipient: String::new(),
            reasoning: None,
            content: Growing::default(),
            calls: Vec::new(),
            reasoning_ended: false,
            reopens: false,
            prompt_known: prefill.is_some(),
            finished: false,
            deltas: None,
        };
        let prefill = prefill.unwrap_or(&compiled.prefill).to_vec();
        machine.wire.bytes = prefill;
        machine.run(false);
        machine.forget_prefill();
        machine
    }

    /// What the prompt held already is no part of the message; what it opened stays open.
    fn forget_prefill(&mut self) {
        if self.mode == Mode::Done {
            // The prompt ends a turn: the answer is another one.
            self.mode = if self.compiled.parts.is_some() { Mode::Header } else { Mode::Content };
            self.go_on(self.wire.bytes.len());
        }
        self.content.clear();
        self.calls.clear();
        self.reopens = self.mode == Mode::Reasoning;
        self.finished = false;
        self.reasoning = self.reopens.then(Growing::default);
    }

    /// From here on, what is settled is noted.
    pub(super) fn with_deltas(mut self) -> Self {
        self.deltas = Some(Vec::new());
        self
    }

    pub(super) fn wire(&mut self) -> &mut Wire {
        &mut self.wire
    }

    pub(super) fn compiled(&self) -> &Arc<Compiled> {
        &self.compiled
    }

    /// Reads what has arrived, and gives what that settles.
    pub(super) fn advance(&mut self) -> Vec<Delta> {
        self.run(false);
        self.deltas.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Reads what is left, as nothing follows.
    pub(super) fn finish(mut self) -> (Message, Vec<Delta>) {
        self.run(true);
        let reasoning_open = self.mode == Mode::Reasoning;
        self.end_text();
        let message = Message {
            reasoning: self.reasoning.map(|reasoning| reasoning.text),
            content: self.content.text,
            tool_calls: self.calls,
            reasoning_complete: !reasoning_open && (self.mode != Mode::Done || self.reasoning_ended),
            finished: self.finished,
            arguments_as_text: self.compiled.arguments_as_text,
        };
        (message, self.deltas.unwrap_or_default())
    }

    fn run(&mut self, last: bool) {
        while self.mode != Mode::Done && self.step(last) {}
    }

    /// One decision; false if there is none to make.
    fn step(&mut self, last: bool) -> bool {
        if self.mode == Mode::Content && self.begins_held(last) {
            self.mode = Mode::Held;
            return true;
        }
        match self.mode {
            Mode::Header => self.header(last),
            Mode::Reasoning if self.reopens => self.reopen(last),
            _ => self.search(last),
        }
    }

    /// Whether the turn begins as one that is all calls, or none.
    fn begins_held(&self, last: bool) -> bool {
        let fresh = self.content.is_blank() && self.calls.is_empty() && self.at == self.start;
        if !fresh || self.compiled.parts.is_some() || !self.compiled.calls.iter().any(|calls| calls.open.is_empty()) {
            return false;
        }
        let begin = self.start + space(&self.wire.bytes[self.start..]);
        let rest = &self.wire.bytes[begin..];
        let special = || self.compiled.alphabet.special_at(rest).is_some() && self.known(begin, last) == Found::Nothing;
        matches!(rest.first(), Some(b'{' | b'[')) && self.known(begin, last) == Found::Nothing || special()
    }

    /// Leaves out a mark that opens reasoning once more.
    fn reopen(&mut self, last: bool) -> bool {
        let begin = self.at + space(&self.wire.bytes[self.at..]);
        let rest = &self.wire.bytes[begin..];
        let open = self.compiled.reasoning.as_ref().map(|(open, _)| open.at(rest));
        match open {
            Some(Match::Yes(length)) if length > 0 => (self.at, self.start) = (begin + length, begin + length),
            Some(Match::Partly) if !last => return false,
            _ if rest.is_empty() && !last => {
                self.go_on(begin);
                return false;
            }
            _ => {}
        }
        self.reopens = false;
        true
    }

    /// Looks for the next mark that counts here; the text before it is settled.
    fn search(&mut self, last: bool) -> bool {
        let compiled = self.compiled.clone();
        let seen = self.seen(&compiled);
        while let Some(at) = self.next_seen(seen) {
            let byte = self.wire.bytes[at];
            let hidden = self.quotes.hide();
            if hidden {
                self.quotes.passed |= self.closes(byte) && self.close_at(at).is_some();
            } else if seen.contains(byte) {
                match self.known(at, last) {
                    Found::Mark(meaning, length) => {
                        self.at = at;
                        self.settle(at);
                        self.enter(meaning, at, length);
                        return true;
                    }
                    Found::Wait => {
                        self.at = at;
                        self.settle(at);
                        return false;
                    }
                    Found::Nothing => {}
                }
            }
            self.quotes.see(byte);
            self.at = at + 1;
        }
        self.at = self.wire.bytes.len();
        self.settle(self.at);
        last && self.end_of_input()
    }

    /// The bytes that the mode must look at.
    fn seen<'c>(&self, compiled: &'c Compiled) -> &'c ByteSet {
        match self.mode {
            Mode::Call(index) => &compiled.calls[index].seen,
            Mode::Content if !self.calls.is_empty() && !self.content.has_begun() => &compiled.begins_behind_call,
            _ => &compiled.begins,
        }
    }

    /// The next of these bytes, or the one behind a backslash.
    fn next_seen(&self, seen: &ByteSet) -> Option<usize> {
        let rest = &self.wire.bytes[self.at..];
        let next = if self.quotes.sees_any() { (!rest.is_empty()).then_some(0) } else { seen.find(rest) };
        next.map(|next| self.at + next)
    }

    /// Gives text up to a place, where text is what is read.
    fn settle(&mut self, until: usize) {
        let bytes = &self.wire.bytes[self.start..until];
        let (field, make) = match self.mode {
            Mode::Content => (&mut self.content, Delta::Content as fn(String) -> Delta),
            Mode::Reasoning => (self.reasoning.get_or_insert_default(), Delta::Reasoning as fn(String) -> Delta),
            _ => return,
        };
        let before = field.text.len();
        field.push(&self.compiled.alphabet, bytes);
        give(&mut self.deltas, make, &field.text[before..]);
        self.start = until;
    }

    /// Ends the present pieces of text.
    fn end_text(&mut self) {
        let alphabet = &self.compiled.alphabet;
        let before = self.content.text.len();
        self.content.end(alphabet);
        give(&mut self.deltas, Delta::Content, &self.content.text[before..]);
        if let Some(reasoning) = &mut self.reasoning {
            let before = reasoning.text.len();
            reasoning.end(alphabet);
            give(&mut self.deltas, Delta::Reasoning, &reasoning.text[before..]);
        }
    }

    /// What to do about the end of the ids. True if there is more to read.
    fn end_of_input(&mut self) -> bool {
        let size = self.wire.bytes.len();
        match self.mode {
            Mode::Call(_) if self.quotes.passed => {
                // From here on marks count inside quotes too, so that no turn is read more than twice.
                self.blind = true;
                self.quotes = Quotes::blind();
                self.at = self.body;
                return true;
            }
            Mode::Call(index) => self.close_call(index, self.body..size, size, false),
            Mode::Addressed => self.close_addressed(size, size, false),
            Mode::Held => self.close_held(size, false),
            _ => {}
        }
        if !matches!(self.mode, Mode::Content | Mode::Reasoning | Mode::Header) {
            self.mode = Mode::Content;
        }
        self.start = size;
        false
    }

    fn enter(&mut self, meaning: Meaning, at: usize, length: usize) {
        let after = at + length;
        let control = is_control(&self.wire.bytes[at..]);
        match self.mode {
            Mode::Call(index) => {
                let own_close = self.compiled.calls[index].close.is_empty();
                let is_close = self.close_at(at).is_some();
                self.close_call(index, self.body..at, if is_close { after } else { at }, is_close || own_close);
                self.mode = Mode::Content;
                if is_close {
                    self.go_on(after);
                    return;
                }
            }
            Mode::Addressed => {
                self.close_addressed(at, at, true);
                self.mode = Mode::Content;
            }
            Mode::Held => self.close_held(at, true),
            _ => {}
        }
        match meaning {
            Meaning::Reasoning => {
                self.mode = Mode::Reasoning;
                self.reasoning = Some(Growing::default());
            }
            Meaning::ReasoningEnd => self.end_reasoning(),
            Meaning::Calls(index) => {
                self.end_text();
                self.mode = Mode::Call(index);
                let quotes_hide = self.compiled.calls[index].quotes_hide && !self.blind;
                self.quotes = if quotes_hide { Quotes::watching() } else { Quotes::blind() };
                (self.start, self.body, self.at) = (at, after, after);
                return;
            }
            Meaning::Frame => self.end_text(),
            Meaning::PartEnd => {
                self.end_text();
                self.reasoning_ended |= self.mode == Mode::Reasoning;
                self.mode = Mode::Content;
            }
            Meaning::Header => {
                self.end_text();
                self.mode = Mode::Header;
            }
            Meaning::Stop => {
                debug_assert!(
                    control || self.wire.bytes[after..].trim_ascii().is_empty(),
                    "a stop typed out ends nothing"
                );
                self.end_text();
                self.reasoning_ended = self.mode != Mode::Reasoning;
                self.finished = true;
                self.mode = Mode::Done;
            }
        }
        self.go_on(after);
    }

    fn go_on(&mut self, at: usize) {
        self.quotes = Quotes::blind();
        (self.start, self.body, self.at) = (at, at, at);
    }

    /// Reasoning ends, or it ends without having begun: then the prompt began it.
    fn end_reasoning(&mut self) {
        if self.mode != Mode::Reasoning {
            self.end_text();
            let content = std::mem::take(&mut self.content);
            if let Some(deltas) = self.deltas.as_mut().filter(|_| !content.text.is_empty()) {
                deltas.push(Delta::ContentWasReasoning);
            }
            self.reasoning = Some(content);
        }
        self.end_text();
        self.mode = Mode::Content;
        self.reasoning_ended = true;
    }
}

/// Notes a piece of text, if deltas are wanted.
fn give(deltas: &mut Option<Vec<Delta>>, make: impl FnOnce(String) -> Delta, text: &str) {
    if let Some(deltas) = deltas.as_mut().filter(|_| !text.is_empty()) {
        deltas.push(make(text.to_owned()));
    }
}
