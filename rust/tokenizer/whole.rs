//! Pretokens that are one token, whatever merges say.
//!
//! *Invariant*: each is there once; one that is named again has the later id, as in the reference.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

use super::stored::Stored;
use crate::TokenId;

/// A slot without a pretoken.
const FREE: u32 = u32::MAX;

/// A table from bytes to ids, with open addressing: three arrays, whatever the number of pretokens.
#[derive(Debug, Default)]
pub(super) struct Whole {
    /// The pretokens in a row.
    bytes: Vec<u8>,
    /// For each, where its bytes end, and its id.
    entries: Vec<(u32, TokenId)>,
    /// Numbers of pretokens; at least a third is free.
    slots: Vec<u32>,
}

impl Whole {
    /// A table with room for so many.
    pub(super) fn with_capacity(count: usize) -> Self {
        let slots = vec![FREE; (count * 3 / 2 + 2).next_power_of_two()];
        Self { bytes: Vec::with_capacity(8 * count), entries: Vec::with_capacity(count), slots }
    }

    /// Adds a pretoken; there must be room.
    pub(super) fn insert(&mut self, piece: &[u8], id: TokenId) {
        let Some(slot) = self.find(piece) else { return };
        if let Some(entry) = self.entries.get_mut(self.slots[slot] as usize) {
            entry.1 = id;
            return;
        }
        self.slots[slot] = self.entries.len() as u32;
        self.bytes.extend_from_slice(piece);
        self.entries.push((self.bytes.len() as u32, id));
    }

    /// The id of a pretoken.
    #[inline]
    pub(super) fn get(&self, piece: &[u8]) -> Option<TokenId> {
        let index = self.slots[self.find(piece)?];
        self.entries.get(index as usize).map(|entry| entry.1)
    }

    /// The slot of a pretoken, or the free one where it would be; none in a table without slots.
    #[inline]
    fn find(&self, piece: &[u8]) -> Option<usize> {
        let last = self.slots.len().checked_sub(1)?;
        let mut slot = FixedState::default().hash_one(piece) as usize & last;
        while self.slots[slot] != FREE && self.piece(self.slots[slot] as usize) != piece {
            slot = (slot + 1) & last;
        }
        Some(slot)
    }

    fn piece(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.entries[index - 1].0 };
        &self.bytes[start as usize..self.entries[index].0 as usize]
    }

    /// Whether every search ends, and inside the bytes.
    fn is_laid_out(&self) -> bool {
        let last = self.entries.last().map_or(0, |last| last.0 as usize);
        let sorted = self.entries.is_sorted_by_key(|entry| entry.0) && last == self.bytes.len();
        let inside = |slot: &u32| *slot == FREE || (*slot as usize) < self.entries.len();
        let searchable = self.slots.len().is_power_of_two() && self.slots.contains(&FREE);
        sorted && (self.slots.is_empty() || searchable) && self.slots.iter().all(inside)
    }
}

impl Stored for Whole {
    fn write(&self, out: &mut Vec<u8>) {
        self.bytes.write(out);
        self.entries.write(out);
        self.slots.write(out);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        let (bytes, entries) = Stored::read(from)?;
        let slots = Stored::read(from)?;
        Some(Self { bytes, entries, slots }).filter(Self::is_laid_out)
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
