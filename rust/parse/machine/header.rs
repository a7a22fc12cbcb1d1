//! The header of a part: it says whom the part is for.

use super::marks::Found;
use super::{Machine, Mode};
use crate::parse::compiled::{Match, Meaning};
use crate::parse::parts::{Addressee, addressee};

impl Machine {
    /// Looks for the end of the header, and begins what it names.
    pub(super) fn header(&mut self, last: bool) -> bool {
        let Some(parts) = &self.compiled.parts else { return false };
        let bytes = &self.wire.bytes;
        while self.at < bytes.len() {
            match parts.body.at(&bytes[self.at..]) {
                Match::Yes(length) => {
                    let text = self.compiled.alphabet.text(&bytes[self.start..self.at]);
                    let after = self.at + length;
                    match addressee(parts, &text) {
                        Addressee::Reasoning => self.mode = Mode::Reasoning,
                        Addressee::Content => self.mode = Mode::Content,
                        Addressee::Tool(name) => (self.mode, self.recipient) = (Mode::Addressed, name),
                    }
                    let begin = self.start;
                    self.go_on(after);
                    if self.mode == Mode::Addressed {
                        self.start = begin;
                    }
                    if self.mode == Mode::Reasoning {
                        self.reasoning.get_or_insert_default();
                    }
                    return true;
                }
                Match::Partly if !last => return false,
                _ => {}
            }
            if let Found::Mark(meaning @ Meaning::Stop, length) = self.known(self.at, last) {
                self.enter(meaning, self.at, length);
                return true;
            }
            self.at += 1;
        }
        false
    }
}
