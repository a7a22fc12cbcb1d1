//! The ids of pretokens that were met before: one table for all threads, of fixed size.
//!
//! *Invariant*: an entry that is read is one that was written whole: a reader takes it only if its stamp is the same
//! before and after, and a writer that does not get the slot at once leaves it. So nobody waits, no lock is held, and a
//! fork in the middle of a write costs one slot.

use std::hint::select_unpredictable;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use super::bpe::Scratch;
use super::prefetch::prefetch;
use super::stored::Stored;
use crate::TokenId;

/// An id takes 21 bits, so three fit a word.
const ID_BITS: u32 = 21;
const ID_MASK: u64 = (1 << ID_BITS) - 1;
/// The bits of an id with where it begins, two of which fit a word.
const PLACED_BITS: u32 = ID_BITS + 6;
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
pub(super) type Long = Key<8>;

/// For each length, the bits that so many bytes have.
static MASKS: [u128; 16] = masks();

const fn masks() -> [u128; 16] {
    let mut masks = [0; 16];
    let mut length = 0;
    while length < 16 {
        masks[length] = (1 << (8 * length)) - 1;
        length += 1;
    }
    masks
}

impl Short {
    /// The key of `bytes[start..end]`; the one that no text has for more than 15.
    #[inline]
    pub(super) fn new(bytes: &[u8], start: usize, end: usize) -> Self {
        let length = end - start;
        let Some(mask) = MASKS.get(length) else { return Self::default() };
        let wide = match bytes.get(start..start + 16).and_then(|window| <[u8; 16]>::try_from(window).ok()) {
            Some(window) => u128::from_le_bytes(window) & mask,
            None => narrow(&bytes[start..end]),
        };
        Self([wide as u64, (wide >> 64) as u64 | (length as u64) << 56])
    }
}

impl Short {
    /// The key of a whole.
    #[inline]
    pub(super) fn of(piece: &[u8]) -> Self {
        Self::new(piece, 0, piece.len())
    }
}

impl Stored for Short {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        Stored::read(from).map(Self)
    }
}

impl Long {
    /// The key of a pretoken of at most 63 bytes.
    pub(super) fn new(piece: &[u8]) -> Option<Self> {
        let mut bytes = [0; 64];
        bytes[..63].get_mut(..piece.len())?.copy_from_slice(piece);
        bytes[63] = piece.len() as u8;
        let (words, _) = bytes.as_chunks::<8>();
        Some(Self(std::array::from_fn(|index| u64::from_le_bytes(words[index]))))
    }
}

impl<const WORDS: usize> Key<WORDS> {
    #[inline]
    pub(super) fn hash(self) -> u64 {
        let mut state = 0x9E37_79B9_7F4A_7C15;
        for pair in self.0.as_chunks::<2>().0 {
            let product = u128::from(pair[0] ^ state) * u128::from(pair[1] ^ 0xD1B5_4A32_D192_ED03);
            state = (product >> 64) as u64 ^ product as u64;
        }
        state
    }
}

/// Near the end of a text, where no 16 bytes are left to read.
#[inline(never)]
fn narrow(bytes: &[u8]) -> u128 {
    let mut window = [0; 16];
    window[..bytes.len()].copy_from_slice(bytes);
    u128::from_le_bytes(window)
}

/// The ids of a pretoken and where each begins, in so many words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry<const WORDS: usize> {
    words: [u64; WORDS],
    /// How many ids, in the lowest byte; of [`Few`], also where the second and the third begin, a byte each.
    shape: u32,
}

/// One to three ids.
pub(super) type Few = Entry<1>;
/// Up to 14 ids.
pub(super) type Many = Entry<7>;

impl<const WORDS: usize> Entry<WORDS> {
    /// How many ids.
    #[inline]
    pub(super) fn len(self) -> usize {
        (self.shape & 0xFF) as usize
    }
}

impl Few {
    /// What stands for more than three ids: they are in the other table.
    pub(super) const MANY: Self = Self { words: [0], shape: 0 };

    /// An entry of ids and where each begins; none if it does not fit.
    pub(super) fn new(ids: &[TokenId], starts: &[u32]) -> Option<Self> {
        if ids.is_empty() || ids.len() > 3 {
            return None;
        }
        let packed = ids.iter().rev().fold(0, |packed, id| packed << ID_BITS | u64::from(*id as u32));
        let second = starts.get(1).copied().unwrap_or(0);
        let third = starts.get(2).copied().unwrap_or(0);
        Some(Self { words: [packed], shape: ids.len() as u32 | second << 8 | third << 16 })
    }

    /// Room for three ids, of which the first [`Entry::len`] are meant.
    #[inline]
    pub(super) fn ids(self) -> [TokenId; 3] {
        let [packed] = self.words;
        let id = |index: u32| (packed >> (index * ID_BITS) & ID_MASK) as TokenId;
        [id(0), id(1), id(2)]
    }

    /// The byte of the pretoken where each of them begins.
    #[inline]
    pub(super) fn starts(self) -> [u32; 3] {
        [0, self.shape >> 8 & 0xFF, self.shape >> 16 & 0xFF]
    }
}

impl Many {
    /// An entry of ids and where each begins, in a pretoken of at most 63 bytes; none if it does not fit.
    pub(super) fn new(ids: &[TokenId], starts: &[u32]) -> Option<Self> {
        if ids.is_empty() || ids.len() > 14 {
            return None;
        }
        let mut words = [0; 7];
        for (index, (id, start)) in ids.iter().zip(starts).enumerate() {
            let placed = u64::from(*id as u32) | u64::from(*start) << ID_BITS;
            words[index / 2] |= placed << (PLACED_BITS * (index as u32 & 1));
        }
        Some(Self { words, shape: ids.len() as u32 })
    }

    /// The ids, each with the byte of the pretoken where it begins.
    pub(super) fn each(self) -> impl Iterator<Item = (TokenId, u32)> {
        (0..self.len()).map(move |index| {
            let placed = self.words[index / 2] >> (PLACED_BITS * (index as u32 & 1));
            ((placed & ID_MASK) as TokenId, (placed >> ID_BITS & 0x3F) as u32)
        })
    }
}

/// The upper half of a stamp is the shape of the entry, the lower half counts writes and is odd during one.
#[derive(Debug)]
struct Slot<const KEY: usize, const WORDS: usize> {
    stamp: AtomicU64,
    words: [AtomicU64; WORDS],
    key: [AtomicU64; KEY],
}

impl<const KEY: usize, const WORDS: usize> Default for Slot<KEY, WORDS> {
    fn default() -> Self {
        let key = std::array::from_fn(|_| AtomicU64::new(0));
        Self { stamp: AtomicU64::new(0), words: std::array::from_fn(|_| AtomicU64::new(0)), key }
    }
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "measured: a call for a word or two takes longer than the lookup")]
fn load<const WORDS: usize>(places: &[AtomicU64; WORDS]) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    let mut index = 0;
    while index < WORDS {
        words[index] = places[index].load(Ordering::Relaxed);
        index += 1;
    }
    words
}

impl<const KEY: usize, const WORDS: usize> Slot<KEY, WORDS> {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "measured: the same")]
    fn read(&self, key: Key<KEY>) -> Option<Entry<WORDS>> {
        let stamp = self.stamp.load(Ordering::Acquire);
        let (found, words) = (Key(load(&self.key)), load(&self.words));
        fence(Ordering::Acquire);
        let whole = stamp & 1 == 0 && self.stamp.load(Ordering::Relaxed) == stamp;
        (whole && found == key).then_some(Entry { words, shape: (stamp >> 32) as u32 })
    }

    fn is_empty(&self) -> bool {
        self.stamp.load(Ordering::Relaxed) == 0
    }

    fn write(&self, key: Key<KEY>, entry: Entry<WORDS>) {
        let stamp = self.stamp.load(Ordering::Relaxed);
        if stamp & 1 == 1
            || self.stamp.compare_exchange(stamp, stamp | 1, Ordering::Acquire, Ordering::Relaxed).is_err()
        {
            return;
        }
        fence(Ordering::Release);
        for (place, word) in self.key.iter().zip(key.0).chain(self.words.iter().zip(entry.words)) {
            place.store(word, Ordering::Relaxed);
        }
        let count = (stamp + 2) & COUNT_MASK;
        self.stamp.store(u64::from(entry.shape) << 32 | count, Ordering::Release);
    }
}

/// Two slots, in one line of the processor's cache if keys are short.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Bucket<const KEY: usize, const WORDS: usize>([Slot<KEY, WORDS>; 2]);

/// A table of keys of one length.
#[derive(Debug)]
pub(super) struct Table<const KEY: usize, const WORDS: usize>(Box<[Bucket<KEY, WORDS>]>);

impl<const KEY: usize, const WORDS: usize> Table<KEY, WORDS> {
    /// A table of so many buckets: a power of two.
    fn new(buckets: usize) -> Self {
        Self((0..buckets).map(|_| Bucket::default()).collect())
    }

    /// Where the entry of a key is looked for.
    #[inline]
    pub(super) fn place(&self, key: Key<KEY>) -> u32 {
        key.hash() as u32 & (self.0.len() as u32 - 1)
    }

    /// Fetches what [`Table::get`] will read there.
    #[inline]
    pub(super) fn prefetch(&self, place: u32) {
        prefetch(&self.0, place as usize);
    }

    /// The entry of a key at its place.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "measured: the same")]
    pub(super) fn get(&self, place: u32, key: Key<KEY>) -> Option<Entry<WORDS>> {
        let Bucket([first, second]) = self.0.get(place as usize)?;
        // Which of the two it is cannot be guessed, so no branch asks.
        select_unpredictable(load(&first.key) == key.0, first, second).read(key)
    }

    /// Writes an entry: into a free slot, else over one that the key decides.
    pub(super) fn put(&self, key: Key<KEY>, entry: Entry<WORDS>) {
        if let Some(Bucket([first, second])) = self.0.get(self.place(key) as usize) {
            let is_first = first.is_empty() || (!second.is_empty() && key.hash() >> 63 == 0);
            (if is_first { first } else { second }).write(key, entry);
        }
    }
}

/// The table of short pretokens of few tokens, and that of all others.
#[derive(Debug)]
pub(super) struct Cache {
    pub(super) short: Table<2, 1>,
    pub(super) long: Table<8, 7>,
}

impl Cache {
    /// Four megabytes and one: what is met often stays in the second-level cache of a core.
    pub(super) fn new() -> Self {
        Self { short: Table::new(1 << 16), long: Table::new(1 << 12) }
    }

    /// Keeps what a pretoken has become, where it fits: few tokens of few bytes in the first table, others in the
    /// second.
    pub(super) fn remember(&self, short: Short, piece: &[u8], merged: &Scratch) {
        let is_short = short != Short::default();
        let few = Few::new(&merged.ids, &merged.starts);
        if is_short {
            self.short.put(short, few.unwrap_or(Few::MANY));
        }
        if (!is_short || few.is_none())
            && let (Some(key), Some(entry)) = (Long::new(piece), Many::new(&merged.ids, &merged.starts))
        {
            self.long.put(key, entry);
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use super::*;

    fn find<const K: usize, const W: usize>(table: &Table<K, W>, key: Key<K>) -> Option<Entry<W>> {
        table.get(table.place(key), key)
    }

    #[test]
    fn an_entry_comes_back_as_it_was_written() {
        let cache = Cache::new().short;
        let text = b"abcdefgh";
        let key = Short::new(text, 0, 8);
        assert!(find(&cache, key).is_none());
        cache.put(key, Few::new(&[7, 200_000, 1], &[0, 3, 5]).unwrap());
        let entry = find(&cache, key).unwrap();
        assert_eq!((entry.len(), entry.ids(), entry.starts()), (3, [7, 200_000, 1], [0, 3, 5]));
        assert!(find(&cache, Short::new(text, 0, 7)).is_none());
        assert!(find(&cache, Short::default()).is_none());
    }

    #[test]
    fn a_key_is_the_bytes_and_their_number() {
        let text = b"ab\0\0ab\0\0ab\0\0ab\0\0ab";
        assert_eq!(Short::new(text, 0, 2), Short::new(text, 16, 18));
        assert_ne!(Short::new(text, 0, 2), Short::new(text, 0, 3));
        assert_eq!(Short::new(text, 0, 16), Short::default());
    }

    #[test]
    fn a_long_pretoken_of_many_tokens_comes_back() {
        let text = [b'-'; 64];
        assert_eq!(Long::new(&text), None);
        let ids: Vec<i32> = (0..14).map(|index| (1 << 21) - 1 - index).collect();
        let starts: Vec<u32> = (49..63).collect();
        assert_eq!(Many::new(&[0; 15], &[0; 15]), None);
        let table = Cache::new().long;
        table.put(Long::new(&text[..63]).unwrap(), Many::new(&ids, &starts).unwrap());
        let found = find(&table, Long::new(&text[..63]).unwrap()).unwrap();
        assert_eq!(found.each().unzip::<_, _, Vec<i32>, Vec<u32>>(), (ids, starts));
        assert!(find(&table, Long::new(&text[..62]).unwrap()).is_none());
    }

    #[test]
    fn threads_never_read_a_mixture() {
        let cache = Cache::new().short;
        let work = |offset: u64| {
            for round in 0..200_000_u64 {
                let number = (round.wrapping_mul(2_654_435_761) + offset) % 5_000;
                let text = format!("{number:08}");
                let key = Short::new(text.as_bytes(), 0, 8);
                match find(&cache, key) {
                    Some(entry) => assert_eq!(entry.ids()[..2], [number as i32, number as i32 + 1]),
                    None => cache.put(key, Few::new(&[number as i32, number as i32 + 1], &[0, 4]).unwrap()),
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
