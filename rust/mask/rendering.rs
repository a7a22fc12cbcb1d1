//! A rendering as the mask reads it: which bytes are a message's own, which are foreign, where its region lies.

use std::ops::Range;

use crate::author::{Author, Span};
use crate::template::{FieldNames, RenderedText};

/// A rendering and its runs of authors.
pub(super) struct Rendering<'a> {
    pub(super) text: &'a str,
    spans: &'a [Span],
    fields: &'a FieldNames,
}

/// The part of a text that belongs to one message: `start..stop`, with the foreign values inside it as holes.
pub(super) struct Region {
    pub(super) start: usize,
    pub(super) stop: usize,
    pub(super) holes: Vec<Range<usize>>,
}

impl<'a> Rendering<'a> {
    pub(super) fn new(rendered: &'a RenderedText) -> Self {
        Self { text: &rendered.text, spans: &rendered.spans, fields: &rendered.fields }
    }

    /// Written by message `index`; its role and name belong to headers and do not count.
    pub(super) fn is_value(&self, author: Author, index: u32) -> bool {
        matches!(author, Author::Value(message, field)
            if message == index && !matches!(self.fields.name(field), "role" | "name"))
    }

    /// The runs that overlap `range`, cut to it.
    pub(super) fn runs(&self, range: Range<usize>) -> impl DoubleEndedIterator<Item = (Range<usize>, Author)> {
        let first = self.spans.partition_point(|span| span.end as usize <= range.start);
        let last = self.spans.partition_point(|span| (span.start as usize) < range.end).max(first);
        self.spans[first..last]
            .iter()
            .map(move |span| (range.start.max(span.start as usize)..range.end.min(span.end as usize), span.author))
    }

    /// The first byte of `range` whose author satisfies the test.
    pub(super) fn first(&self, range: Range<usize>, test: impl Fn(Author) -> bool) -> Option<usize> {
        let first = self.spans.partition_point(|span| span.end as usize <= range.start);
        let mut inside = self.spans[first..].iter().take_while(|span| (span.start as usize) < range.end);
        inside.find(|span| test(span.author)).map(|span| range.start.max(span.start as usize))
    }

    /// One past the last byte of `range` whose author satisfies the test.
    pub(super) fn after_last(&self, range: Range<usize>, test: impl Fn(Author) -> bool) -> Option<usize> {
        self.runs(range).rfind(|(_, author)| test(*author)).map(|(run, _)| run.end)
    }

    /// The end of the last byte before `stop` that is not the template's own, or 0.
    pub(super) fn after_data(&self, stop: usize) -> usize {
        self.after_last(0..stop, Author::is_value).unwrap_or(0)
    }

    /// Where the first byte at or after `from` stands that is not the template's own, or the end of the text.
    pub(super) fn next_data(&self, from: usize) -> usize {
        self.first(from..self.text.len(), Author::is_value).unwrap_or(self.text.len())
    }

    /// What the template wrote after the last byte that is not its own.
    pub(super) fn supplied(&self) -> &'a str {
        &self.text[self.after_data(self.text.len())..]
    }

    /// The first value byte of message `index` in `range`.
    pub(super) fn first_value(&self, index: u32, range: Range<usize>) -> Option<usize> {
        self.first(range, |author| self.is_value(author, index))
    }

    /// One past the last value byte of message `index` in `range`.
    pub(super) fn last_value(&self, index: u32, range: Range<usize>) -> Option<usize> {
        self.after_last(range, |author| self.is_value(author, index))
    }

    /// Where the scaffold of message `index` that begins at `from` ends, at most at `stop`.
    pub(super) fn scaffold_end(&self, index: u32, from: usize, stop: usize) -> usize {
        self.first(from..stop, |author| author != Author::Scaffold(index)).unwrap_or(stop)
    }

    /// The region of a message: from its first own byte to the first byte of another turn; `None` if nothing of it is
    /// in the text. A foreign value between two runs of the message's scaffold is a hole and does not end the region.
    pub(super) fn region(&self, index: u32) -> Option<Region> {
        self.region_from(index, 0)
    }

    /// The same, if nothing of the message stands before the byte `from`.
    pub(super) fn region_from(&self, index: u32, from: usize) -> Option<Region> {
        let start = self.first(from..self.text.len(), |author| is_own(author, index))?;
        let mut region = Region { start, stop: start, holes: Vec::new() };
        loop {
            region.stop =
                self.first(region.stop..self.text.len(), |author| is_foreign(author, index)).unwrap_or(self.text.len());
            let Some(end) = self.hole_end(index, region.stop) else { return Some(region) };
            region.holes.push(region.stop..end);
            region.stop = end;
        }
    }

    /// Where the hole that begins at `start` ends, if it is one.
    fn hole_end(&self, index: u32, start: usize) -> Option<usize> {
        let end = self.first(start..self.text.len(), |author| !is_foreign(author, index))?;
        let scaffold = Author::Scaffold(index);
        let values_only = self.runs(start..end).all(|(_, author)| author.is_value());
        let bytes = |at: usize| self.runs(at..at + 1).next().map(|(_, author)| author);
        (values_only && bytes(start - 1) == Some(scaffold) && bytes(end) == Some(scaffold)).then_some(end)
    }
}

fn is_own(author: Author, index: u32) -> bool {
    matches!(author, Author::Scaffold(message) | Author::Value(message, _) if message == index)
}

fn is_foreign(author: Author, index: u32) -> bool {
    author != Author::Frame && !is_own(author, index)
}
