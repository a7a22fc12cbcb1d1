//! The ids of pretokens that were met before: one table for all threads, of fixed size.
//!
//! *Invariant*: an entry that is read is one that was written whole: a reader takes it only if its stamp is the same
//! before and after, and a writer that does not get the slot at once leaves it. So nobody waits, no lock is held, and a
//! fork in the middle of a write costs one slot.

use std::cmp::Ordering;
use std::hint::select_unpredictable;
use std::sync::atomic::{AtomicU64, Ordering as Atomic, fence};

use super::bpe::Merged;
use super::key::{Key, Long, Short};
use super::prefetch::prefetch;
use crate::TokenId;

/// An id takes 21 bits, so three fit a word.
const ID_BITS: u32 = 21;
const ID_MASK: u64 = (1 << ID_BITS) - 1;
/// The bits of an id with where it begins, two of which fit a word.
const PLACED_BITS: u32 = ID_BITS + 6;
/// In a shape, that the ids are in the other table.
const MANY: u32 = 1 << 25;
/// In a shape, that the entry was known before anybody asked.
const EARLY: u32 = 1 << 24;
/// The bits of a stamp that count its writes.
const COUNT_MASK: u64 = 0xFFFF_FFFF;

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
    /// What stands for an entry that is not there.
    pub(super) const NOTHING: Self = Self { words: [0], shape: 0 };
    /// What stands for more than three ids: they are in the other table.
    pub(super) const MANY: Self = Self { words: [0], shape: MANY };

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

    /// Whether the ids are in the other table.
    pub(super) fn is_many(self) -> bool {
        self.shape & MANY != 0
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
        words[index] = places[index].load(Atomic::Relaxed);
        index += 1;
    }
    words
}

impl<const KEY: usize, const WORDS: usize> Slot<KEY, WORDS> {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "measured: the same")]
    fn read(&self, key: Key<KEY>) -> Option<Entry<WORDS>> {
        // A stamp that is odd is never met again without the bit.
        let stamp = self.stamp.load(Atomic::Acquire) & !1;
        let (found, words) = (Key(load(&self.key)), load(&self.words));
        fence(Atomic::Acquire);
        let whole = self.stamp.load(Atomic::Relaxed) == stamp;
        (found.same(key) & whole).then_some(Entry { words, shape: (stamp >> 32) as u32 })
    }

    fn is_empty(&self) -> bool {
        self.stamp.load(Atomic::Relaxed) == 0
    }

    /// How little is lost if it is written over: most of one that is free, then of an early one, the later its ids the
    /// more.
    fn rarity(&self) -> u64 {
        let stamp = self.stamp.load(Atomic::Relaxed);
        if stamp == 0 {
            return u64::MAX;
        }
        if (stamp >> 32) as u32 & EARLY == 0 { 0 } else { self.words[0].load(Atomic::Relaxed) }
    }

    fn write(&self, key: Key<KEY>, entry: Entry<WORDS>) {
        let stamp = self.stamp.load(Atomic::Relaxed);
        if stamp & 1 == 1 || self.stamp.compare_exchange(stamp, stamp | 1, Atomic::Acquire, Atomic::Relaxed).is_err() {
            return;
        }
        fence(Atomic::Release);
        for (place, word) in self.key.iter().zip(key.0).chain(self.words.iter().zip(entry.words)) {
            place.store(word, Atomic::Relaxed);
        }
        let count = (stamp + 2) & COUNT_MASK;
        self.stamp.store(u64::from(entry.shape) << 32 | count, Atomic::Release);
    }
}

/// Two slots, in one line of the processor's cache if keys are short.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Bucket<const KEY: usize, const WORDS: usize>([Slot<KEY, WORDS>; 2]);

/// A table of keys of one length.
#[derive(Debug)]
pub(super) struct Table<const KEY: usize, const WORDS: usize, const SIZE: usize>(Box<[Bucket<KEY, WORDS>; SIZE]>);

impl<const KEY: usize, const WORDS: usize, const SIZE: usize> Table<KEY, WORDS, SIZE> {
    /// An empty table of `SIZE` buckets: a power of two.
    fn new() -> Self {
        let buckets: Vec<_> = (0..SIZE).map(|_| Bucket::default()).collect();
        match buckets.into_boxed_slice().try_into() {
            Ok(buckets) => Self(buckets),
            Err(_) => unreachable!("there are as many as were asked for"),
        }
    }

    /// The place of a key, where its entry is fetched.
    #[inline]
    pub(super) fn fetch(&self, key: Key<KEY>) -> u32 {
        let place = Self::place(key);
        prefetch(self.0.as_slice(), place);
        place as u32
    }

    /// The entry of a key.
    pub(super) fn find(&self, key: Key<KEY>) -> Option<Entry<WORDS>> {
        self.get(Self::place(key) as u32, key)
    }

    /// The entry of a key at its place.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "measured: the same")]
    pub(super) fn get(&self, place: u32, key: Key<KEY>) -> Option<Entry<WORDS>> {
        let Bucket([first, second]) = &self.0[place as usize % SIZE];
        // Which of the two it is cannot be guessed, so no branch asks.
        select_unpredictable(Key(load(&first.key)).same(key), first, second).read(key)
    }

    #[inline]
    fn place(key: Key<KEY>) -> usize {
        key.hash() as usize % SIZE
    }

    /// Writes an entry: into a free slot, else over one that nobody may have asked for, else over one that the key
    /// decides.
    pub(super) fn put(&self, key: Key<KEY>, entry: Entry<WORDS>) {
        let Bucket([first, second]) = &self.0[Self::place(key)];
        let is_first = match first.rarity().cmp(&second.rarity()) {
            Ordering::Less => false,
            Ordering::Greater => true,
            Ordering::Equal => key.hash() >> 63 == 0,
        };
        (if is_first { first } else { second }).write(key, entry);
    }

    /// Writes an entry that nobody has asked for yet, if there is a free slot.
    pub(super) fn put_early(&self, key: Key<KEY>, mut entry: Entry<WORDS>) {
        let Bucket([first, second]) = &self.0[Self::place(key)];
        entry.shape |= EARLY;
        if let Some(free) = [first, second].into_iter().find(|slot| slot.is_empty()) {
            free.write(key, entry);
        }
    }
}

/// The table of short pretokens of few tokens, and that of all others.
#[derive(Debug)]
pub(super) struct Cache {
    pub(super) short: Table<2, 1, { 1 << 16 }>,
    pub(super) long: Table<8, 7, { 1 << 12 }>,
}

impl Cache {
    /// Four megabytes and one: what is met often stays in the second-level cache of a core.
    pub(super) fn new() -> Self {
        Self { short: Table::new(), long: Table::new() }
    }

    /// What any pretoken is looked up by in the first table, and where; its entry is fetched from either.
    #[cold]
    #[inline(never)]
    pub(super) fn fetch(&self, piece: &[u8]) -> (Short, u32) {
        let short = Short::of(piece);
        if short == Short::default()
            && let Some(key) = Long::new(piece)
        {
            self.long.fetch(key);
        }
        (short, self.short.fetch(short))
    }

    /// Keeps what a pretoken becomes that nobody has asked for yet: if there is room, but for the few that are long.
    pub(super) fn expect(&self, short: Short, piece: &[u8], merged: Merged<'_>) {
        match Few::new(merged.ids, merged.starts) {
            Some(few) if short != Short::default() => self.short.put_early(short, few),
            _ => self.remember(short, piece, merged),
        }
    }

    /// Keeps what a pretoken has become, where it fits: few tokens of few bytes in the first table, others in the
    /// second.
    pub(super) fn remember(&self, short: Short, piece: &[u8], merged: Merged<'_>) {
        let is_short = short != Short::default();
        match Few::new(merged.ids, merged.starts) {
            Some(few) if is_short => self.short.put(short, few),
            _ => {
                let (Some(key), Some(entry)) = (Long::new(piece), Many::new(merged.ids, merged.starts)) else { return };
                self.long.put(key, entry);
                if is_short {
                    self.short.put(short, Few::MANY);
                }
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use super::*;

    #[test]
    fn an_entry_comes_back_as_it_was_written() {
        let cache = Cache::new().short;
        let text = b"abcdefgh";
        let key = Short::new(text, 0, 8);
        assert!(cache.find(key).is_none());
        cache.put(key, Few::new(&[7, 200_000, 1], &[0, 3, 5]).unwrap());
        let entry = cache.find(key).unwrap();
        assert_eq!((entry.len(), entry.ids(), entry.starts()), (3, [7, 200_000, 1], [0, 3, 5]));
        assert!(cache.find(Short::new(text, 0, 7)).is_none());
        assert!(cache.find(Short::default()).is_none());
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
        let found = table.find(Long::new(&text[..63]).unwrap()).unwrap();
        assert_eq!(found.each().unzip::<_, _, Vec<i32>, Vec<u32>>(), (ids, starts));
        assert!(table.find(Long::new(&text[..62]).unwrap()).is_none());
    }

    #[test]
    fn what_nobody_asked_for_gives_way_and_takes_nothing_away() {
        let table = Table::<2, 1, 1>::new();
        let key = |byte: u8| Short::of(&[byte]);
        let entry = |id: TokenId| Few::new(&[id], &[0]).unwrap();
        let has = |byte: u8| table.find(key(byte)).is_some();
        (0..3).for_each(|byte| table.put_early(key(byte), entry(TokenId::from(byte))));
        assert_eq!([0, 1, 2].map(has), [true, true, false]);
        table.put(key(3), entry(3));
        assert_eq!([0, 1, 3].map(has), [true, false, true], "the later id is the rarer");
        table.put(key(4), entry(4));
        table.put_early(key(0), entry(0));
        assert_eq!([0, 3, 4].map(has), [false, true, true]);
        assert_eq!(table.find(key(4)).unwrap().ids()[0], 4);
    }

    #[test]
    fn what_fits_neither_table_is_kept_in_none() {
        let text = b"abcdefghijklmno";
        let (short, long) = (Short::of(text), Long::new(text).unwrap());
        let (ids, starts): (Vec<TokenId>, Vec<u32>) = (0..15).zip(0..).unzip();
        let cache = Cache::new();
        cache.remember(short, text, Merged { ids: &ids, starts: &starts });
        assert!(cache.short.find(short).is_none() && cache.long.find(long).is_none());
        cache.remember(short, text, Merged { ids: &ids[..14], starts: &starts[..14] });
        assert!(cache.short.find(short).unwrap().is_many());
        assert!(cache.long.find(long).unwrap().each().eq(ids.into_iter().zip(starts).take(14)));
    }

    #[test]
    fn threads_never_read_a_mixture() {
        let cache = Cache::new().short;
        let work = |offset: u64| {
            for round in 0..200_000_u64 {
                let number = (round.wrapping_mul(2_654_435_761) + offset) % 5_000;
                let text = format!("{number:08}");
                let key = Short::new(text.as_bytes(), 0, 8);
                match cache.find(key) {
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
