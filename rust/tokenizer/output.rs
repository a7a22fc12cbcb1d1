//! What the fast path has found of a text, with gaps where pretokens are still to be merged.
//!
//! *Invariant*: once it is settled, all ids stand in the order of the text. The gaps of one time lie in one ground.

use super::Encoded;
use super::bpe::Merged;
use super::cache::{Cache, Few, Many};
use super::key::Short;
use super::lane::{self, Lane};
use super::vocab::Vocabulary;
use crate::TokenId;

/// So many pretokens are cut off before the first of them is looked up: by then its entry is there.
pub(super) const LINE: usize = 32;
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

/// What pretokens are looked up by, and where.
pub(super) type Keys = [(Short, u32); LINE];

/// What a line of pretokens becomes: up to three ids each.
struct Page {
    ids: [TokenId; 3 * LINE],
    starts: [u32; 3 * LINE],
}

impl Page {
    const EMPTY: Self = Self { ids: [0; 3 * LINE], starts: [0; 3 * LINE] };
}

/// A pretoken that is not in the cache, met once or more.
struct Missing {
    key: Short,
    start: u32,
    end: u32,
}

/// A place where a missing pretoken stands.
struct Gap {
    /// The number of ids before it, without those of other gaps.
    before: usize,
    /// The byte where the pretoken begins.
    start: u32,
    /// Which one it is.
    missing: usize,
}

/// Ids, and starts if asked for; and what is used again from line to line.
pub(super) struct Output<'o, const STARTS: bool> {
    out: &'o mut Encoded,
    pub(super) keys: Keys,
    page: Page,
    missing: Vec<Missing>,
    gaps: Vec<Gap>,
    lanes: Vec<Lane>,
}

impl<'o, const STARTS: bool> Output<'o, STARTS> {
    pub(super) fn new(out: &'o mut Encoded) -> Self {
        Self {
            out,
            keys: [(Short::default(), 0); LINE],
            page: Page::EMPTY,
            missing: Vec::new(),
            gaps: Vec::new(),
            lanes: Vec::new(),
        }
    }

    /// Adds an id.
    #[inline]
    pub(super) fn push(&mut self, id: TokenId, start: impl FnOnce() -> u32) {
        self.out.ids.push(id);
        if STARTS {
            self.out.starts.push(start());
        }
    }

    /// Writes three ids to a place of the page, of which those that are meant count: that costs no branch. The place
    /// behind them.
    #[inline]
    pub(super) fn write(&mut self, at: usize, entry: Few, ground: &Ground<'_>, start: u32) -> usize {
        if let Some(place) = self.page.ids.get_mut(at..).and_then(<[_]>::first_chunk_mut) {
            *place = entry.ids();
        }
        if STARTS && let Some(place) = self.page.starts.get_mut(at..).and_then(<[_]>::first_chunk_mut) {
            let [one, two, three] = entry.starts();
            let of = |inside: u32| ground.place((start + inside) as usize);
            *place = [of(one), of(two), of(three)];
        }
        at + entry.len()
    }

    /// Adds what was written to the page.
    #[inline]
    pub(super) fn push_page(&mut self, count: usize) {
        self.out.ids.extend_from_slice(&self.page.ids[..count]);
        if STARTS {
            self.out.starts.extend_from_slice(&self.page.starts[..count]);
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
        let missing = self.missing.iter().position(same).unwrap_or(self.missing.len());
        if missing == self.missing.len() {
            self.missing.push(Missing { key, start: start as u32, end: end as u32 });
        }
        self.gaps.push(Gap { before: self.out.ids.len(), start: start as u32, missing });
        self.missing.len() < lane::MOST && self.gaps.len() < GAPS
    }

    /// Merges what is missing, and fills the gaps.
    #[inline(never)]
    pub(super) fn settle(&mut self, ground: &Ground<'_>, vocabulary: &Vocabulary, cache: &Cache) {
        if self.gaps.is_empty() {
            return;
        }
        let text = |missing: &Missing| &ground.text[missing.start as usize..missing.end as usize];
        let count = self.missing.len();
        if self.lanes.len() < count {
            self.lanes.resize(count, Lane::default());
        }
        vocabulary.merge_short(self.missing.iter().map(text), &mut self.lanes[..count]);
        for (missing, lane) in self.missing.iter().zip(&self.lanes) {
            cache.remember(missing.key, text(missing).as_bytes(), lane.merged());
        }
        self.fill_gaps(ground);
        self.missing.clear();
        self.gaps.clear();
    }

    /// Makes room for what was missing, from the end on, and writes it there.
    fn fill_gaps(&mut self, ground: &Ground<'_>) {
        let Encoded { ids, starts } = &mut *self.out;
        let lengths = self.gaps.iter().map(|gap| self.lanes[gap.missing].merged().ids.len());
        let mut shift: usize = lengths.sum();
        let mut end = ids.len();
        ids.resize(end + shift, 0);
        if STARTS {
            starts.resize(end + shift, 0);
        }
        for gap in self.gaps.iter().rev() {
            let merged = self.lanes[gap.missing].merged();
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
