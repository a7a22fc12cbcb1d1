//! Quotation marks in the text of a call: a mark inside a quoted string is part of the string.

/// Whether the reader is inside a quoted string.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the states of a scanner and what it saw")]
pub(super) struct Quotes {
    watching: bool,
    inside: bool,
    escaped: bool,
    /// Whether a mark was passed over inside a string.
    pub(super) passed: bool,
}

impl Quotes {
    /// Strings hide marks.
    pub(super) fn watching() -> Self {
        Self { watching: true, ..Self::default() }
    }

    /// Strings hide nothing.
    pub(super) fn blind() -> Self {
        Self::default()
    }

    /// Whether a mark here is hidden.
    pub(super) fn hide(self) -> bool {
        self.inside
    }

    /// Whether the next byte counts, whatever it is.
    pub(super) fn sees_any(self) -> bool {
        self.escaped
    }

    /// Takes the next byte: a quotation mark, a backslash or the byte behind one; others change nothing.
    pub(super) fn see(&mut self, byte: u8) {
        if !self.watching {
            return;
        }
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' if self.inside => self.escaped = true,
            b'"' => self.inside = !self.inside,
            _ => {}
        }
    }
}
