//! The ends of calls: from a stretch of the wire to attempts.

use std::ops::Range;
use std::sync::Arc;

use super::{Machine, Mode};
use crate::parse::body::{self, Attempt, Region};
use crate::parse::compiled::space;
use crate::parse::message::{Delta, Status, ToolCall, call_id};
use crate::parse::wire::control_length;

impl Machine {
    fn region(&self, range: Range<usize>, closed: bool) -> Region<'_> {
        Region { bytes: &self.wire.bytes[range], closed, alphabet: &self.compiled.alphabet, tools: &self.tools }
    }

    pub(super) fn close_call(&mut self, index: usize, range: Range<usize>, end: usize, closed: bool) {
        let region = self.region(range.clone(), closed);
        let attempts = body::read(&self.compiled.calls[index], region);
        self.add_calls(attempts, range.start, self.start..end);
    }

    pub(super) fn close_addressed(&mut self, until: usize, end: usize, closed: bool) {
        let region = self.region(self.body..until, closed);
        let attempt = body::addressed(&self.recipient, region);
        self.add_calls(vec![attempt], self.body, self.start..end);
    }

    /// Decides about a turn that began as calls without marks.
    pub(super) fn close_held(&mut self, until: usize, closed: bool) {
        let begin = self.start + space(&self.wire.bytes[self.start..until]);
        let special = self.compiled.alphabet.special_at(&self.wire.bytes[begin..until]).is_some();
        let begin = if special { begin + control_length() } else { begin };
        let region = self.region(begin..until, true);
        let ways = self.compiled.calls.iter().filter(|calls| calls.open.is_empty());
        let attempts = ways.into_iter().find_map(|calls| body::whole_turn(calls, region));
        self.mode = Mode::Content;
        match attempts {
            Some(mut attempts) => {
                if !closed {
                    for attempt in &mut attempts {
                        attempt.status = Status::Unclosed;
                    }
                }
                self.add_calls(attempts, begin, self.start..until);
            }
            None => self.settle(until),
        }
        self.start = until;
    }

    /// Adds attempts whose places are counted from `base`; the first and last have the marks around them all.
    fn add_calls(&mut self, attempts: Vec<Attempt>, base: usize, marks: Range<usize>) {
        let count = attempts.len();
        for (index, attempt) in attempts.into_iter().enumerate() {
            let place = base + attempt.place.start..base + attempt.place.end;
            let start = if index == 0 { marks.start } else { place.start };
            let end = if index + 1 == count { marks.end } else { place.end };
            let raw = self.compiled.alphabet.text(&self.wire.bytes[place]).trim().to_owned();
            let call = Arc::new(ToolCall {
                name: attempt.name,
                arguments: attempt.arguments,
                status: attempt.status,
                raw,
                id: attempt.id.unwrap_or_else(|| call_id(self.calls.len())),
                tokens: self.wire.tokens(start..end),
            });
            if let Some(deltas) = &mut self.deltas {
                deltas.push(Delta::Call(call.clone()));
            }
            self.calls.push(call);
        }
    }
}
