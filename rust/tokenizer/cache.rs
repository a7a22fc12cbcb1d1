//! The ids of pretokens that were met before: one table for all threads, of fixed size.
//!
//! *Invariant*: an entry that is read is one that was written whole: a reader takes it only if its stamp is the same
//! before and after, and a writer that does not get the slot at once leaves it. So nobody waits, no lock is held, and a
//! fork in the middle of a write costs one slot.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use crate::TokenId;

/// An id takes 21 bits, so three fit a word.
const ID_BITS: u32 = 21;
/// The bits of a stamp that count its writes.
const COUNT_MASK: u64 = 0xFFFF_FFFF;

/// The bytes of a pretoken, less than eight a word, with their number in the topmost byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key<const WORDS: usize>([u64; WORDS]);

impl Default for Short {
    /// The key that no text has.
    fn default() -> Self {
        Self([u64::MAX; 2])
    }
}

/// The key of a short pretoken: nearly all are.
pub(super) type Short = Key<2>;
/// The key of a longer one: runs of spaces, rules of dashes, long names.
pub(super) type Long = Key<6>;

impl Short {
    /// The key of `bytes[start..end]`; none for more than 15.
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
        Some(Self([wide as u64, (wide >> 64) as u64 | (length as u64) << 56]))
    }
}

impl Long {
    /// The key of a pretoken of at most 47 bytes.
    pub(super) fn new(piece: &[u8]) -> Option<Self> {
        let mut bytes = [0; 48];
        bytes[..47].get_mut(..piece.len())?.copy_from_slice(piece);
        bytes[47] = piece.len() as u8;
        let (words, _) = bytes.as_chunks::<8>();
        Some(Self(std::array::from_fn(|index| u64::from_le_bytes(words[index]))))
    }
}

impl<const WORDS: usize> Key<WORDS> {
    #[inline]
    fn hash(self) -> u64 {
        let mut state = 0x9E37_79B9_7F4A_7C15;
        for pair in self.0.as_chunks::<2>().0 {
            let product = u128::from(pair[0] ^ state) * u128::from(pair[1] ^ 0xD1B5_4A32_D192_ED03);
            state = (product >> 64) as u64 ^ product as u64;
        }
        state
    }
}

/// Near the end of a text, where no 16 bytes are left to read.
#[cold]
fn narrow(bytes: &[u8]) -> u128 {
    let mut window = [0; 16];
    window[..bytes.len()].copy_from_slice(bytes);
    u128::from_le_bytes(window)
}

/// The ids of a pretoken, one to three, and where the second and the third begin.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    ids: u64,
    /// A byte each: how many ids, and the two places.
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
        Some(Self { ids: packed, shape: ids.len() as u32 | second << 8 | third << 16 })
    }

    /// How many ids.
    #[inline]
    pub(super) fn len(self) -> usize {
        (self.shape & 3) as usize
    }

    /// Room for three ids, of which the first [`Entry::len`] are meant.
    #[inline]
    pub(super) fn ids(self) -> [TokenId; 3] {
        let mask = (1 << ID_BITS) - 1;
        [self.ids & mask, self.ids >> ID_BITS & mask, self.ids >> (2 * ID_BITS) & mask].map(|id| id as TokenId)
    }

    /// The byte of the pretoken where each of them begins.
    #[inline]
    pub(super) fn starts(self) -> [u32; 3] {
        [0, self.shape >> 8 & 0xFF, self.shape >> 16 & 0xFF]
    }
}

/// The upper half of a stamp is the shape of the entry, the lower half counts writes and is odd during one.
#[derive(Debug)]
struct Slot<const WORDS: usize> {
    stamp: AtomicU64,
    ids: AtomicU64,
    key: [AtomicU64; WORDS],
}

impl<const WORDS: usize> Default for Slot<WORDS> {
    fn default() -> Self {
        let key = std::array::from_fn(|_| AtomicU64::new(0));
        Self { stamp: AtomicU64::new(0), ids: AtomicU64::new(0), key }
    }
}

impl<const WORDS: usize> Slot<WORDS> {
    #[inline]
    fn read(&self, key: Key<WORDS>) -> Option<Entry> {
        let stamp = self.stamp.load(Ordering::Acquire);
        let found = Key(std::array::from_fn(|index| self.key[index].load(Ordering::Relaxed)));
        let ids = self.ids.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        let whole = stamp & 1 == 0 && self.stamp.load(Ordering::Relaxed) == stamp;
        (whole && found == key).then_some(Entry { ids, shape: (stamp >> 32) as u32 })
    }

    fn is_empty(&self) -> bool {
        self.stamp.load(Ordering::Relaxed) == 0
    }

    fn write(&self, key: Key<WORDS>, entry: Entry) {
        let stamp = self.stamp.load(Ordering::Relaxed);
        if stamp & 1 == 1
            || self.stamp.compare_exchange(stamp, stamp | 1, Ordering::Acquire, Ordering::Relaxed).is_err()
        {
            return;
        }
        fence(Ordering::Release);
        for (place, word) in self.key.iter().zip(key.0) {
            place.store(word, Ordering::Relaxed);
        }
        self.ids.store(entry.ids, Ordering::Relaxed);
        let count = (stamp + 2) & COUNT_MASK;
        self.stamp.store(u64::from(entry.shape) << 32 | count, Ordering::Release);
    }
}

/// Two slots, in one line of the processor's cache if keys are short.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Bucket<const WORDS: usize>([Slot<WORDS>; 2]);

/// A table of keys of one length.
#[derive(Debug)]
pub(super) struct Table<const WORDS: usize>(Box<[Bucket<WORDS>]>);

impl<const WORDS: usize> Table<WORDS> {
    /// A table of so many buckets: a power of two.
    fn new(buckets: usize) -> Self {
        Self((0..buckets).map(|_| Bucket::default()).collect())
    }

    /// Where the entry of a key is looked for.
    #[inline]
    pub(super) fn place(&self, key: Key<WORDS>) -> u32 {
        key.hash() as u32 & (self.0.len() as u32 - 1)
    }

    /// Fetches what [`Table::get`] will read there.
    #[inline]
    #[cfg_attr(
        target_arch = "x86_64",
        expect(unsafe_code, reason = "measured: a quarter of the time is waiting for it")
    )]
    pub(super) fn prefetch(&self, place: u32) {
        #[cfg(target_arch = "x86_64")]
        if let Some(bucket) = self.0.get(place as usize) {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: a prefetch is a hint: it reads nothing that the program could see.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(bucket).cast()) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = place;
    }

    /// The entry of a key at its place.
    #[inline]
    pub(super) fn get(&self, place: u32, key: Key<WORDS>) -> Option<Entry> {
        let Bucket([first, second]) = self.0.get(place as usize)?;
        first.read(key).or_else(|| second.read(key))
    }

    /// Writes an entry: into a free slot, else over the second.
    pub(super) fn put(&self, key: Key<WORDS>, entry: Entry) {
        if let Some(Bucket([first, second])) = self.0.get(self.place(key) as usize) {
            let slot = if first.is_empty() { first } else { second };
            slot.write(key, entry);
        }
    }
}

/// The tables of short and of longer pretokens.
#[derive(Debug)]
pub(super) struct Cache {
    pub(super) short: Table<2>,
    pub(super) long: Table<6>,
}

impl Cache {
    /// Four megabytes, and a quarter of one: what is met often stays in the second-level cache of a core.
    pub(super) fn new() -> Self {
        Self { short: Table::new(1 << 16), long: Table::new(1 << 11) }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use super::*;

    fn find<const WORDS: usize>(table: &Table<WORDS>, key: Key<WORDS>) -> Option<Entry> {
        table.get(table.place(key), key)
    }

    #[test]
    fn an_entry_comes_back_as_it_was_written() {
        let cache = Cache::new().short;
        let text = b"abcdefgh";
        let key = Short::new(text, 0, 8).unwrap();
        assert!(find(&cache, key).is_none());
        cache.put(key, Entry::new(&[7, 200_000, 1], &[0, 3, 5]).unwrap());
        let entry = find(&cache, key).unwrap();
        assert_eq!((entry.len(), entry.ids(), entry.starts()), (3, [7, 200_000, 1], [0, 3, 5]));
        assert!(find(&cache, Short::new(text, 0, 7).unwrap()).is_none());
    }

    #[test]
    fn a_key_is_the_bytes_and_their_number() {
        let text = b"ab\0\0ab\0\0ab\0\0ab\0\0ab";
        assert_eq!(Short::new(text, 0, 2), Short::new(text, 16, 18));
        assert_ne!(Short::new(text, 0, 2), Short::new(text, 0, 3));
        assert_eq!(Short::new(text, 0, 16), None);
    }

    #[test]
    fn a_long_key_holds_up_to_47_bytes() {
        let text = [b'-'; 48];
        assert_eq!(Long::new(&text), None);
        let table = Cache::new().long;
        table.put(Long::new(&text[..47]).unwrap(), Entry::new(&[1, 2], &[0, 40]).unwrap());
        assert_eq!(find(&table, Long::new(&text[..47]).unwrap()).unwrap().starts(), [0, 40, 0]);
        assert!(find(&table, Long::new(&text[..46]).unwrap()).is_none());
    }

    #[test]
    fn threads_never_read_a_mixture() {
        let cache = Cache::new().short;
        let work = |offset: u64| {
            for round in 0..200_000_u64 {
                let number = (round.wrapping_mul(2_654_435_761) + offset) % 5_000;
                let text = format!("{number:08}");
                let key = Short::new(text.as_bytes(), 0, 8).unwrap();
                match find(&cache, key) {
                    Some(entry) => assert_eq!(entry.ids()[..2], [number as i32, number as i32 + 1]),
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
