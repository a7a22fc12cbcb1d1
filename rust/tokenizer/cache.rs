//! The ids of pretokens that were met before: one table for all threads, of fixed size.
//!
//! *Invariant*: an entry that is read is one that was written whole: a reader takes it only if its stamp is the same
//! before and after, and a writer that does not get the slot at once leaves it. So nobody waits, no lock is held, and a
//! fork in the middle of a write costs one slot.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use crate::TokenId;

/// Two megabytes: the table fits the second-level cache of one core or the share of the third that it has.
const BUCKETS: usize = 1 << 15;
/// An id takes 21 bits, so three fit a word.
const ID_BITS: u32 = 21;
/// The bits of a stamp that count its writes.
const COUNT_MASK: u64 = 0xFFFF_FFFF;

/// A pretoken of at most 15 bytes, its length in the topmost byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key(u64, u64);

impl Key {
    /// The key of `bytes[start..end]`; none for longer ones.
    #[inline]
    pub(super) fn new(bytes: &[u8], start: usize, end: usize) -> Option<Self> {
        let length = end - start;
        if length > 15 {
            return None;
        }
        let wide = match bytes.get(start..start + 16).and_then(|window| <[u8; 16]>::try_from(window).ok()) {
            Some(window) => u128::from_le_bytes(window) & ((1 << (8 * length)) - 1),
            None => narrow(&bytes[start..end]),
        };
        Some(Self(wide as u64, (wide >> 64) as u64 | (length as u64) << 56))
    }

    #[inline]
    fn bucket(self) -> usize {
        let product = u128::from(self.0 ^ 0x9E37_79B9_7F4A_7C15) * u128::from(self.1 ^ 0xD1B5_4A32_D192_ED03);
        ((product >> 64) as u64 ^ product as u64) as usize % BUCKETS
    }
}

/// Near the end of a text, where no 16 bytes are left to read.
fn narrow(bytes: &[u8]) -> u128 {
    let mut window = [0; 16];
    window[..bytes.len()].copy_from_slice(bytes);
    u128::from_le_bytes(window)
}

/// The ids of a pretoken: one to three, with the length in bytes of the first and the second.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    ids: u64,
    /// Two bits: how many ids; then four bits each: the lengths.
    shape: u32,
}

impl Entry {
    /// An entry of ids and where each begins; none if it does not fit.
    pub(super) fn new(ids: &[TokenId], starts: &[u32]) -> Option<Self> {
        if ids.is_empty() || ids.len() > 3 || ids.iter().any(|id| *id >> ID_BITS != 0) {
            return None;
        }
        let packed = ids.iter().rev().fold(0, |packed, id| packed << ID_BITS | u64::from(*id as u32));
        let second = starts.get(1).copied().unwrap_or(0);
        let third = starts.get(2).copied().unwrap_or(0);
        Some(Self { ids: packed, shape: ids.len() as u32 | second << 2 | third << 6 })
    }

    /// How many ids.
    #[inline]
    pub(super) fn len(self) -> usize {
        (self.shape & 3) as usize
    }

    /// An id.
    #[inline]
    pub(super) fn id(self, index: usize) -> TokenId {
        (self.ids >> (ID_BITS * index as u32)) as TokenId & ((1 << ID_BITS) - 1)
    }

    /// The byte of the pretoken where an id begins.
    #[inline]
    pub(super) fn start(self, index: usize) -> u32 {
        match index {
            0 => 0,
            1 => self.shape >> 2 & 15,
            _ => self.shape >> 6 & 15,
        }
    }
}

/// The upper half of a stamp is the shape of the entry, the lower half counts writes and is odd during one.
#[derive(Debug, Default)]
struct Slot {
    stamp: AtomicU64,
    ids: AtomicU64,
    key: [AtomicU64; 2],
}

impl Slot {
    #[inline]
    fn read(&self, key: Key) -> Option<Entry> {
        let stamp = self.stamp.load(Ordering::Acquire);
        let found = Key(self.key[0].load(Ordering::Relaxed), self.key[1].load(Ordering::Relaxed));
        let ids = self.ids.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        let whole = stamp & 1 == 0 && self.stamp.load(Ordering::Relaxed) == stamp;
        (whole && found == key).then_some(Entry { ids, shape: (stamp >> 32) as u32 })
    }

    fn is_empty(&self) -> bool {
        self.stamp.load(Ordering::Relaxed) == 0
    }

    fn write(&self, key: Key, entry: Entry) {
        let stamp = self.stamp.load(Ordering::Relaxed);
        if stamp & 1 == 1
            || self.stamp.compare_exchange(stamp, stamp | 1, Ordering::Acquire, Ordering::Relaxed).is_err()
        {
            return;
        }
        fence(Ordering::Release);
        self.key[0].store(key.0, Ordering::Relaxed);
        self.key[1].store(key.1, Ordering::Relaxed);
        self.ids.store(entry.ids, Ordering::Relaxed);
        let count = (stamp + 2) & COUNT_MASK;
        self.stamp.store(u64::from(entry.shape) << 32 | count, Ordering::Release);
    }
}

#[derive(Debug, Default)]
#[repr(align(64))]
struct Bucket([Slot; 2]);

/// The table.
#[derive(Debug)]
pub(super) struct Cache(Box<[Bucket]>);

impl Cache {
    pub(super) fn new() -> Self {
        Self((0..BUCKETS).map(|_| Bucket::default()).collect())
    }

    /// The entry of a key.
    #[inline]
    pub(super) fn get(&self, key: Key) -> Option<Entry> {
        let bucket = self.0.get(key.bucket())?;
        bucket.0[0].read(key).or_else(|| bucket.0[1].read(key))
    }

    /// Writes an entry: into a free slot, else over one of the two.
    pub(super) fn put(&self, key: Key, entry: Entry) {
        if let Some(Bucket([first, second])) = self.0.get(key.bucket()) {
            let slot = if first.is_empty() { first } else { second };
            slot.write(key, entry);
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use super::*;

    #[test]
    fn an_entry_comes_back_as_it_was_written() {
        let cache = Cache::new();
        let text = b"abcdefgh";
        let key = Key::new(text, 0, 8).unwrap();
        assert!(cache.get(key).is_none());
        cache.put(key, Entry::new(&[7, 200_000, 1], &[0, 3, 5]).unwrap());
        let entry = cache.get(key).unwrap();
        let ids: Vec<_> = (0..entry.len()).map(|index| (entry.id(index), entry.start(index))).collect();
        assert_eq!(ids, [(7, 0), (200_000, 3), (1, 5)]);
        assert!(cache.get(Key::new(text, 0, 7).unwrap()).is_none());
    }

    #[test]
    fn a_key_is_the_bytes_and_their_number() {
        let text = b"ab\0\0ab\0\0ab\0\0ab\0\0ab";
        assert_eq!(Key::new(text, 0, 2), Key::new(text, 16, 18));
        assert_ne!(Key::new(text, 0, 2), Key::new(text, 0, 3));
        assert_eq!(Key::new(text, 0, 16), None);
    }

    #[test]
    fn threads_never_read_a_mixture() {
        let cache = Cache::new();
        let work = |offset: u64| {
            for round in 0..200_000_u64 {
                let number = (round.wrapping_mul(2_654_435_761) + offset) % 5_000;
                let text = format!("{number:08}");
                let key = Key::new(text.as_bytes(), 0, 8).unwrap();
                match cache.get(key) {
                    Some(entry) => assert_eq!((entry.id(0), entry.id(1)), (number as i32, number as i32 + 1)),
                    None => cache.put(key, Entry::new(&[number as i32, number as i32 + 1], &[0, 4]).unwrap()),
                }
            }
        };
        std::thread::scope(|scope| {
            for thread in 0..4 {
                scope.spawn(move || work(thread * 17));
            }
        });
    }
}
