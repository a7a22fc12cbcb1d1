//! What the fast path has found of a text, with gaps where pretokens are still to be merged.
//!
//! *Invariant*: once it is settled, all ids stand in the order of the text. The gaps of one time lie in one ground.

use std::cell::Cell;

use super::Encoded;
use super::bpe::Merged;
use super::cache::{Cache, Few, Many};
use super::key::Short;
use super::lane::{self, Lane};
use super::line::{LINE, Line};
use super::vocab::Vocabulary;
use crate::TokenId;

/// So many gaps are left before they are filled.
const GAPS: usize = 64;

/// The text in which pretokens are cut: the given one, or what a part of it is normalised to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ground<'a> {
    pub(super) text: &'a str,
    /// The byte of the given text where it begins.
    pub(super) base: u32,
    /// For each of its bytes, where its character begins in the part of the given text; none where that is the same.
    pub(super) origin: Option<&'a [u32]>,
}

impl<'a> Ground<'a> {
    /// The given text itself.
    pub(super) fn given(text: &'a str) -> Self {
        Self { text, base: 0, origin: None }
    }

    /// The byte of the given text for the first byte of a character.
    #[inline]
    pub(super) fn place(&self, position: usize) -> u32 {
        self.base + self.origin.map_or(position as u32, |origin| origin[position])
    }
}

/// What a line of pretokens becomes: up to three ids each.
#[derive(Debug)]
struct Page {
    ids: [TokenId; 3 * LINE],
    starts: [u32; 3 * LINE],
}

impl Default for Page {
    fn default() -> Self {
        Self { ids: [0; 3 * LINE], starts: [0; 3 * LINE] }
    }
}

/// A pretoken that is not in the cache, met once or more.
#[derive(Debug)]
struct Missing {
    key: Short,
    start: u32,
    end: u32,
}

/// A place where a missing pretoken stands.
#[derive(Debug)]
struct Gap {
    /// The number of ids before it, without those of other gaps.
    before: usize,
    /// The byte where the pretoken begins.
    start: u32,
    /// Which one it is.
    missing: usize,
}

/// What is used again from line to line, and by a thread from text to text.
#[derive(Debug, Default)]
struct Scratch {
    line: Line,
    page: Page,
    missing: Vec<Missing>,
    gaps: Vec<Gap>,
    lanes: Vec<Lane>,
}

thread_local! {
    /// That of the last text: to lay one out takes as long as a short text.
    static KEPT: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
}

/// Ids, and starts if asked for.
pub(super) struct Output<'o, const STARTS: bool> {
    out: &'o mut Encoded,
    scratch: &'o mut Scratch,
}

impl<'o, const STARTS: bool> Output<'o, STARTS> {
    /// Does some work that adds to `out`.
    pub(super) fn with<T>(out: &'o mut Encoded, work: impl FnOnce(&mut Output<'_, STARTS>) -> T) -> T {
        let mut scratch = KEPT.try_with(Cell::take).ok().flatten().unwrap_or_default();
        let result = work(&mut Output { out, scratch: &mut scratch });
        // What an error has left.
        scratch.line.clear();
        scratch.missing.clear();
        scratch.gaps.clear();
        // Where a thread that ends encodes, there is nothing to keep it in.
        let _ = KEPT.try_with(|kept| kept.set(Some(scratch)));
        result
    }

    /// The pretokens that wait.
    #[inline]
    pub(super) fn line(&mut self) -> &mut Line {
        &mut self.scratch.line
    }

    /// Adds an id.
    #[inline]
    pub(super) fn push(&mut self, id: TokenId, start: impl FnOnce() -> u32) {
        self.out.ids.push(id);
        if STARTS {
            self.out.starts.push(start());
        }
    }

    /// Writes three ids of a pretoken of the line to a place of the page, of which those that are meant count: that
    /// costs no branch. The place behind them.
    #[inline]
    pub(super) fn write(&mut self, at: usize, entry: Few, ground: &Ground<'_>, index: usize) -> usize {
        if let Some(place) = self.scratch.page.ids.get_mut(at..).and_then(<[_]>::first_chunk_mut) {
            *place = entry.ids();
        }
        if STARTS && let Some(place) = self.scratch.page.starts.get_mut(at..).and_then(<[_]>::first_chunk_mut) {
            let [one, two, three] = entry.starts();
            let (start, _) = self.scratch.line.piece(index);
            let of = |inside: u32| ground.place(start + inside as usize);
            *place = [of(one), of(two), of(three)];
        }
        at + entry.len()
    }

    /// Adds what was written to the page.
    #[inline]
    pub(super) fn push_page(&mut self, count: usize) {
        self.out.ids.extend_from_slice(&self.scratch.page.ids[..count]);
        if STARTS {
            self.out.starts.extend_from_slice(&self.scratch.page.starts[..count]);
        }
    }

    /// Adds what a pretoken becomes.
    pub(super) fn push_merged(&mut self, merged: Merged<'_>, ground: &Ground<'_>, start: usize) {
        self.out.ids.extend_from_slice(merged.ids);
        if STARTS {
            self.out.starts.extend(merged.starts.iter().map(|inside| ground.place(start + *inside as usize)));
        }
    }

    /// Adds what a part of the given text becomes, which begins at the byte `base`.
    pub(super) fn push_encoded(&mut self, encoded: &Encoded, base: u32) {
        self.out.ids.extend_from_slice(&encoded.ids);
        if STARTS {
            self.out.starts.extend(encoded.starts.iter().map(|start| base + start));
        }
    }

    /// Adds what a pretoken becomes that was met before.
    pub(super) fn push_many(&mut self, entry: Many, ground: &Ground<'_>, start: usize) {
        for (id, inside) in entry.each() {
            self.push(id, || ground.place(start + inside as usize));
        }
    }

    /// Leaves a gap for a pretoken of at most [`lane::SHORT`] bytes; whether there is room for another.
    pub(super) fn leave_gap(&mut self, start: usize, end: usize, key: Short) -> bool {
        // What comes once often comes again soon; those that are too long for a key are rare.
        let same = |missing: &Missing| key != Short::default() && missing.key == key;
        let missing = self.scratch.missing.iter().position(same).unwrap_or(self.scratch.missing.len());
        if missing == self.scratch.missing.len() {
            self.scratch.missing.push(Missing { key, start: start as u32, end: end as u32 });
        }
        self.scratch.gaps.push(Gap { before: self.out.ids.len(), start: start as u32, missing });
        self.scratch.missing.len() < lane::MOST && self.scratch.gaps.len() < GAPS
    }

    /// Merges what is missing, and fills the gaps.
    #[inline(never)]
    pub(super) fn settle(&mut self, ground: &Ground<'_>, vocabulary: &Vocabulary, cache: &Cache) {
        if self.scratch.gaps.is_empty() {
            return;
        }
        let text = |missing: &Missing| &ground.text[missing.start as usize..missing.end as usize];
        let count = self.scratch.missing.len();
        if self.scratch.lanes.len() < count {
            self.scratch.lanes.resize(count, Lane::default());
        }
        vocabulary.merge_short(self.scratch.missing.iter().map(text), &mut self.scratch.lanes[..count]);
        for (missing, lane) in self.scratch.missing.iter().zip(&self.scratch.lanes) {
            cache.remember(missing.key, text(missing).as_bytes(), lane.merged());
        }
        self.fill_gaps(ground);
        self.scratch.missing.clear();
        self.scratch.gaps.clear();
    }

    /// Makes room for what was missing, from the end on, and writes it there.
    fn fill_gaps(&mut self, ground: &Ground<'_>) {
        let Encoded { ids, starts } = &mut *self.out;
        let lengths = self.scratch.gaps.iter().map(|gap| self.scratch.lanes[gap.missing].merged().ids.len());
        let mut shift: usize = lengths.sum();
        let mut end = ids.len();
        ids.resize(end + shift, 0);
        if STARTS {
            starts.resize(end + shift, 0);
        }
        for gap in self.scratch.gaps.iter().rev() {
            let merged = self.scratch.lanes[gap.missing].merged();
            let behind = gap.before + shift;
            shift -= merged.ids.len();
            let range = gap.before + shift..behind;
            ids.copy_within(gap.before..end, behind);
            ids[range.clone()].copy_from_slice(merged.ids);
            if STARTS {
                starts.copy_within(gap.before..end, behind);
                let places = merged.starts.iter().map(|inside| ground.place((gap.start + inside) as usize));
                starts[range].iter_mut().zip(places).for_each(|(start, place)| *start = place);
            }
            end = gap.before;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_error_has_left_is_in_no_other_text() {
        let mut encoded = Encoded::default();
        Output::<true>::with(&mut encoded, |output| {
            output.line().push(0, 1);
            output.leave_gap(0, 1, Short::of(b"a"));
        });
        Output::<true>::with(&mut encoded, |output| {
            assert_eq!(output.line().count(), 0);
            assert!(output.scratch.missing.is_empty() && output.scratch.gaps.is_empty());
        });
    }
}
