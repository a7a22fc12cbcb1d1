//! Pretokens that are one token, whatever merges say.
//!
//! *Invariant*: each is there once; one that is named again has the later id, as in the reference.

use std::collections::HashMap;
use std::hint::select_unpredictable;

use foldhash::fast::RandomState;

use super::key::Short;
use super::prefetch::prefetch;
use super::stored::Stored;
use crate::TokenId;

/// So many keys share a line of the processor's cache.
const SLOTS: usize = 3;

/// Pretokens and their ids.
#[derive(Debug, Clone)]
#[repr(align(64))]
struct Bucket {
    /// Those that are free come last.
    keys: [Short; SLOTS],
    ids: [TokenId; SLOTS],
}

/// From bytes to ids.
#[derive(Debug, Default)]
pub(super) struct Whole {
    /// The short ones: what finds its bucket full is in a later one.
    short: Box<[Bucket]>,
    long: HashMap<Box<[u8]>, TokenId, RandomState>,
}

impl Whole {
    /// A table with room for so many; more than a third of it will be free, so that few buckets are full.
    pub(super) fn with_capacity(count: usize) -> Self {
        let bucket = Bucket { keys: [Short::default(); SLOTS], ids: [0; SLOTS] };
        Self { short: vec![bucket; count * 8 / 5 / SLOTS + 1].into(), long: HashMap::default() }
    }

    /// Adds a pretoken; there must be room.
    pub(super) fn insert(&mut self, piece: &[u8], id: TokenId) {
        let key = Short::of(piece);
        if key == Short::default() {
            self.long.insert(piece.into(), id);
        } else {
            self.insert_short(key, id);
        }
    }

    fn insert_short(&mut self, key: Short, id: TokenId) {
        if let Some((index, place)) = self.find(key) {
            let Bucket { keys, ids } = &mut self.short[index];
            (keys[place], ids[place]) = (key, id);
        }
    }

    /// The id of a pretoken.
    #[inline]
    pub(super) fn get(&self, piece: &[u8]) -> Option<TokenId> {
        let key = Short::of(piece);
        if key == Short::default() {
            return self.long.get(piece).copied();
        }
        let (index, place) = self.find(key)?;
        let Bucket { keys, ids } = &self.short[index];
        keys[place].same(key).then_some(ids[place])
    }

    /// Fetches what [`Self::get`] will read for the pretoken with this key.
    #[inline]
    pub(super) fn prefetch(&self, key: Short) {
        if !self.short.is_empty() {
            prefetch(&self.short, self.first(key));
        }
    }

    /// The bucket of a short pretoken and its place there, or the free one where it would be; none in a table without
    /// buckets.
    #[inline]
    fn find(&self, key: Short) -> Option<(usize, usize)> {
        let mut index = self.first(key);
        loop {
            let keys = &self.short.get(index)?.keys;
            // Which of them it is cannot be guessed, so no branch asks.
            let mut found = SLOTS;
            for (place, other) in keys.iter().enumerate().rev() {
                found = select_unpredictable(other.same(key) | other.same(Short::default()), place, found);
            }
            if found < SLOTS {
                return Some((index, found));
            }
            index = (index + 1) % self.short.len();
        }
    }

    /// Where the search for a key begins.
    #[inline]
    fn first(&self, key: Short) -> usize {
        ((u128::from(key.hash()) * self.short.len() as u128) >> 64) as usize
    }
}

impl Stored for Whole {
    fn write(&self, out: &mut Vec<u8>) {
        let short = self.short.iter().flat_map(|bucket| bucket.keys.iter().zip(&bucket.ids));
        let short = short.filter(|(key, _)| **key != Short::default());
        short.map(|(key, id)| (*key, *id)).collect::<Vec<_>>().write(out);
        self.long.iter().map(|(piece, id)| (piece.clone(), *id)).collect::<Vec<_>>().write(out);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        let short: Vec<(Short, TokenId)> = Stored::read(from)?;
        let long: Vec<(Box<[u8]>, TokenId)> = Stored::read(from)?;
        if short.is_empty() && long.is_empty() {
            return Some(Self::default());
        }
        let mut whole = Self::with_capacity(short.len());
        for (key, id) in short {
            whole.insert_short(key, id);
        }
        whole.long = long.into_iter().collect();
        Some(whole)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use super::*;

    fn table(count: i32) -> Whole {
        let mut whole = Whole::with_capacity(count as usize);
        for id in 0..count {
            whole.insert(format!("word {id}").as_bytes(), id);
        }
        whole
    }

    #[test]
    fn each_has_its_id_and_others_none() {
        let mut whole = table(1000);
        whole.insert(b"word 7", 2000);
        for id in 0..1000 {
            assert_eq!(whole.get(format!("word {id}").as_bytes()), Some(if id == 7 { 2000 } else { id }));
        }
        for other in [&b""[..], b"word", b"word 1000", b"word 7 "] {
            assert_eq!(whole.get(other), None);
        }
        assert_eq!(Whole::default().get(b"word"), None);
    }

    #[test]
    fn what_is_read_is_searchable_or_nothing() {
        let mut bytes = Vec::new();
        table(20).write(&mut bytes);
        assert_eq!(Whole::read(&mut &*bytes).unwrap().get(b"word 19"), Some(19));
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 0x81;
            if let Some(whole) = Whole::read(&mut &*changed) {
                let _ = (whole.get(b"word 3"), whole.get(b"none"));
            }
        }
    }
}
