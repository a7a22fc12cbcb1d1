//! Pretokens that wait to be looked up.

use super::cache::Cache;
use super::key::Short;

/// So many are cut off before the first of them is looked up: by then its entry is there.
pub(super) const LINE: usize = 64;

/// Pretokens in the order of the text.
#[derive(Debug)]
pub(super) struct Line {
    /// Where each begins and ends.
    pieces: [(u32, u32); LINE],
    /// What each is looked up by, and where.
    keys: [(Short, u32); LINE],
    count: usize,
}

impl Default for Line {
    fn default() -> Self {
        Self { pieces: [(0, 0); LINE], keys: [(Short::default(), 0); LINE], count: 0 }
    }
}

impl Line {
    /// Takes a pretoken in; whether there is room for another.
    #[inline]
    pub(super) fn push(&mut self, start: usize, end: usize) -> bool {
        self.pieces[self.count % LINE] = (start as u32, end as u32);
        self.count += 1;
        self.count < LINE
    }

    /// How many there are.
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.count.min(LINE)
    }

    /// Where one begins and ends.
    #[inline]
    pub(super) fn piece(&self, index: usize) -> (usize, usize) {
        let (start, end) = self.pieces[index];
        (start as usize, end as usize)
    }

    /// What one is looked up by, and where.
    #[inline]
    pub(super) fn key(&self, index: usize) -> (Short, u32) {
        self.keys[index]
    }

    /// Lays out keys, and fetches what stands at their places; `bytes` are those that the pretokens were cut from.
    #[inline(never)]
    pub(super) fn fetch(&mut self, bytes: &[u8], cache: &Cache) {
        let count = self.count();
        for (&(start, end), slot) in self.pieces[..count].iter().zip(&mut self.keys) {
            let (start, end) = (start as usize, end as usize);
            // Each branch writes its own: what a branch yields would go by the stack, and wait there for as long again.
            if let Some(key) = Short::within(bytes, start, end) {
                *slot = (key, cache.short.fetch(key));
            } else {
                *slot = cache.fetch(&bytes[start..end]);
            }
        }
    }

    /// Forgets all.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.count = 0;
    }
}
