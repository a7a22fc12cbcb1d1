//! Text that grows: white space around it is left out, and a character is given when it is whole.

use super::wire::Alphabet;

/// One field of a message, as it is read.
#[derive(Debug, Default)]
pub(super) struct Growing {
    pub(super) text: String,
    /// White space, or the beginning of a character, that later bytes decide about.
    held: Vec<u8>,
    /// Whether the present piece has begun.
    begun: bool,
}

impl Growing {
    /// Adds bytes; the text grows by what they settle.
    pub(super) fn push(&mut self, alphabet: &Alphabet, bytes: &[u8]) {
        let bytes = if self.has_begun() { bytes } else { bytes.trim_ascii_start() };
        let solid = bytes.trim_ascii_end().len();
        if solid == 0 {
            self.held.extend_from_slice(bytes);
        } else if self.held.is_empty() {
            let end = solid - unfinished(&bytes[..solid]);
            self.settle(alphabet, &bytes[..end]);
            self.held.extend_from_slice(&bytes[end..]);
        } else {
            let mut held = std::mem::take(&mut self.held);
            let solid = held.len() + solid;
            held.extend_from_slice(bytes);
            let end = solid - unfinished(&held[..solid]);
            self.settle(alphabet, &held[..end]);
            held.drain(..end);
            self.held = held;
        }
    }

    /// Ends the present piece: what follows is another one, on a line of its own.
    pub(super) fn end(&mut self, alphabet: &Alphabet) {
        let held = std::mem::take(&mut self.held);
        self.settle(alphabet, held.trim_ascii_end());
        self.begun = false;
    }

    fn settle(&mut self, alphabet: &Alphabet, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if !self.begun && !self.text.is_empty() {
            self.text.push('\n');
        }
        self.begun = true;
        alphabet.push_text(bytes, &mut self.text);
    }

    /// Whether there was nothing but white space.
    pub(super) fn is_blank(&self) -> bool {
        self.text.is_empty() && self.held.is_empty()
    }

    /// Whether the present piece has text.
    pub(super) fn has_begun(&self) -> bool {
        self.begun || !self.held.is_empty()
    }

    /// Forgets what was read, and whether a piece has begun.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// How many bytes at the end begin a character without completing it.
fn unfinished(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let byte = bytes[bytes.len() - back];
        let wanted = match byte {
            0xC0..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF7 => 4,
            0x80..=0xBF => continue,
            _ => return 0,
        };
        return if back < wanted { back } else { 0 };
    }
    0
}
