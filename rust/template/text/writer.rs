//! Texts that are being written.

use std::ops::Range;

use super::{Mark, Marks, Run, Text, written};

/// A text that is being written: the output of a template, of a buffer, or of a string operation.
///
/// *Invariant*: what stands behind the last run, if anything, is by `current`, who did not write the last run.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct Writer {
    text: String,
    runs: Vec<Run>,
    current: Mark,
}

impl Writer {
    pub(in super::super) fn with_capacity(bytes: usize) -> Self {
        Self { text: String::with_capacity(bytes), ..Self::default() }
    }

    /// A writer for a whole rendering.
    pub(in super::super) fn for_output() -> Self {
        Self { runs: Vec::with_capacity(32), ..Self::with_capacity(1024) }
    }

    /// A writer for what a statement writes into a value.
    pub(in super::super) fn for_buffer() -> Self {
        Self { runs: Vec::with_capacity(4), ..Self::with_capacity(256) }
    }

    /// A writer that goes on behind the first `bytes` bytes of a text of these runs, in the memory of both.
    pub(in super::super) fn going_on(mut text: String, mut runs: Vec<Run>, bytes: usize) -> Self {
        let before = runs.partition_point(|run| (run.end as usize) < bytes);
        let current = runs.get(before).and_then(|run| run.mark);
        runs.truncate(before);
        text.truncate(bytes);
        Self { text, runs, current }
    }

    /// The same, copied.
    pub(in super::super) fn beginning(text: &str, runs: &[Run], bytes: usize) -> Self {
        let runs = &runs[..runs.len().min(1 + runs.partition_point(|run| (run.end as usize) < bytes))];
        Self::going_on(text[..bytes].to_owned(), runs.to_vec(), bytes)
    }

    /// Takes back what stands behind the first `bytes` bytes.
    #[must_use]
    pub(in super::super) fn cut(self, bytes: usize) -> Self {
        let (text, runs) = self.into_parts();
        Self::going_on(text, runs, bytes)
    }

    /// Whether a text of these runs begins with what was written so far.
    pub(in super::super) fn is_prefix_of(&self, text: &str, runs: &[Run]) -> bool {
        let continues =
            |open: Run| runs.get(self.runs.len()).is_some_and(|run| run.mark == open.mark && run.end >= open.end);
        text.starts_with(&self.text) && runs.starts_with(&self.runs) && self.open().is_none_or(continues)
    }

    /// How many runs are closed.
    pub(in super::super) fn closed(&self) -> usize {
        self.runs.len()
    }

    pub(in super::super) fn len(&self) -> usize {
        self.text.len()
    }

    pub(in super::super) fn as_str(&self) -> &str {
        &self.text
    }

    /// Appends bytes of one author.
    pub(in super::super) fn push(&mut self, text: &str, mark: Mark) {
        if mark != self.current {
            self.turn_to(mark);
        }
        self.text.push_str(text);
    }

    /// What follows is by `mark`, who is not `current`.
    fn turn_to(&mut self, mark: Mark) {
        let end = self.text.len() as u32;
        match self.runs.last() {
            None if end == 0 => {}
            Some(last) if last.end == end && last.mark == mark => drop(self.runs.pop()),
            Some(last) if last.end == end => {}
            _ => self.runs.push(Run { end, mark: self.current }),
        }
        self.current = mark;
    }

    /// The run of `current`.
    fn open(&self) -> Option<Run> {
        let (start, end) = (self.runs.last().map_or(0, |run| run.end), self.text.len() as u32);
        (start < end).then_some(Run { end, mark: self.current })
    }

    /// Appends what `write` writes, all of it by one author.
    pub(in super::super) fn write_with(&mut self, mark: Mark, write: impl FnOnce(&mut String)) {
        self.push("", mark);
        write(&mut self.text);
    }

    /// Appends a text with its authors.
    pub(in super::super) fn push_text(&mut self, text: &Text<'_>) {
        self.push_as(text, |mark| mark);
    }

    /// Appends a text as it is written while a message is in hand.
    pub(in super::super) fn push_in(&mut self, text: &Text<'_>, in_hand: Option<u32>) {
        match in_hand {
            None => self.push_text(text),
            Some(message) => self.push_as(text, |mark| written(mark, message)),
        }
    }

    /// Appends a text, each mark of which is replaced.
    pub(in super::super) fn push_as(&mut self, text: &Text<'_>, mark: impl Fn(Mark) -> Mark) {
        let owned = match text {
            Text::Borrowed(text, only) => return self.push(text, mark(*only)),
            Text::Owned(owned) => owned,
        };
        match &owned.marks {
            Marks::One(only) => self.push(&owned.text, mark(*only)),
            Marks::Runs(runs) => {
                let mut start = 0;
                for run in runs {
                    let end = run.end as usize;
                    self.push(&owned.text[start..end], mark(run.mark));
                    start = end;
                }
            }
        }
    }

    /// Appends a range of a text with its authors.
    pub(in super::super) fn push_range(&mut self, text: &Text<'_>, range: Range<usize>) {
        match text.single_mark() {
            Some(mark) => self.push(&text.as_str()[range], mark),
            None => self.push_text(&text.slice(range)),
        }
    }

    /// Takes back what was written from the byte `start` on.
    pub(in super::super) fn take_back<'a>(&mut self, start: usize) -> Text<'a> {
        let whole = std::mem::take(self).finish();
        self.push_text(&whole.slice(0..start));
        whole.slice(start..whole.len())
    }

    /// The written text.
    pub(in super::super) fn finish<'a>(self) -> Text<'a> {
        let (text, runs) = self.into_parts();
        Text::from_runs(text, runs, false)
    }

    /// The written text and its runs.
    pub(in super::super) fn into_parts(mut self) -> (String, Vec<Run>) {
        let open = self.open();
        self.runs.extend(open);
        (self.text, self.runs)
    }
}
