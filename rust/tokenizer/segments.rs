//! The ids of texts between added tokens that came more than once: system prompts, tool schemas, the prompt of a group.
//!
//! *Invariant*: what is found is the encoding of that very text: whole texts are compared, not hashes. Memory is bounded,
//! and a text that comes once takes none. No lock is held while anybody works, and nobody waits for one: a place that is
//! not free at once is as good as empty.

use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

use foldhash::fast::RandomState;

use super::Encoded;

/// A shorter text is encoded as quickly as it is found.
const SHORTEST: usize = 512;
/// A longer one would take too much memory: with its ids, text takes some four times its size.
const LONGEST: usize = 1 << 16;
/// A hash looks at 16 bytes in so many places.
const WINDOWS: usize = 32;
/// So many are kept.
const KEPT: usize = 64;
/// So many hashes are remembered of texts that came once.
const SEEN: usize = 1 << 12;

/// A text and what it becomes; starts are counted from its first byte.
#[derive(Debug)]
pub(super) struct Segment {
    text: Box<str>,
    pub(super) encoded: Encoded,
}

/// What is known of a text.
pub(super) enum Known {
    /// Its encoding.
    Kept(Arc<Segment>),
    /// That it came before.
    Again(Hash),
    /// Nothing.
    Nothing,
}

/// The hash of a text.
#[derive(Clone, Copy)]
pub(super) struct Hash(u64);

/// The texts that are kept, for all threads.
#[derive(Debug)]
pub(super) struct Segments {
    state: RandomState,
    seen: Box<[AtomicU64]>,
    kept: Box<[RwLock<Option<Arc<Segment>>>]>,
}

impl Segments {
    pub(super) fn new() -> Self {
        Self {
            state: RandomState::default(),
            seen: (0..SEEN).map(|_| AtomicU64::new(0)).collect(),
            kept: (0..KEPT).map(|_| RwLock::new(None)).collect(),
        }
    }

    /// What is known of a text, which counts as seen from now on.
    #[inline]
    pub(super) fn find(&self, text: &str) -> Known {
        if (SHORTEST..=LONGEST).contains(&text.len()) { self.find_long(text) } else { Known::Nothing }
    }

    #[inline(never)]
    fn find_long(&self, text: &str) -> Known {
        // A hash of 0 is that of a place where none was written.
        let hash = self.hash(text.as_bytes()) | 1;
        let seen = &self.seen[hash as usize / 2 % SEEN];
        if seen.load(Ordering::Relaxed) != hash {
            seen.store(hash, Ordering::Relaxed);
            return Known::Nothing;
        }
        let kept = self.place(hash).try_read().ok().and_then(|kept| kept.clone());
        kept.filter(|kept| *kept.text == *text).map_or(Known::Again(Hash(hash)), Known::Kept)
    }

    /// Keeps a text that came again, in the place of another.
    pub(super) fn keep(&self, Hash(hash): Hash, text: &str, encoded: Encoded) -> Arc<Segment> {
        let segment = Arc::new(Segment { text: text.into(), encoded });
        let other = self.place(hash).try_write().ok().and_then(|mut kept| kept.replace(segment.clone()));
        // What was there is let go when the place is free again.
        drop(other);
        segment
    }

    /// A hash of some bytes here and there: texts that come once pay for it, so it has to cost nothing. Texts that differ
    /// elsewhere take each other's place.
    fn hash(&self, bytes: &[u8]) -> u64 {
        let mut hasher = self.state.build_hasher();
        hasher.write_usize(bytes.len());
        let windows = bytes.chunks_exact(bytes.len() / WINDOWS).filter_map(|part| part.first_chunk());
        for window in windows.chain(bytes.last_chunk()) {
            hasher.write_u128(u128::from_le_bytes(*window));
        }
        hasher.finish()
    }

    fn place(&self, hash: u64) -> &RwLock<Option<Arc<Segment>>> {
        &self.kept[(hash >> 32) as usize % KEPT]
    }
}

#[cfg(test)]
#[expect(clippy::panic, reason = "a test fails by it")]
mod tests {
    use super::*;

    fn encoded(id: i32) -> Encoded {
        Encoded { ids: vec![id], starts: vec![0] }
    }

    /// Keeps a text that came twice.
    fn keep(segments: &Segments, text: &str, id: i32) {
        assert!(matches!(segments.find(text), Known::Nothing));
        let Known::Again(hash) = segments.find(text) else { panic!("it came before") };
        segments.keep(hash, text, encoded(id));
    }

    #[test]
    fn a_text_is_kept_when_it_comes_again() {
        let segments = Segments::new();
        let text = "a".repeat(SHORTEST);
        keep(&segments, &text, 7);
        let Known::Kept(found) = segments.find(&text) else { panic!("it is kept") };
        assert_eq!(found.encoded, encoded(7));
        for length in [SHORTEST - 1, LONGEST + 1] {
            let text = "a".repeat(length);
            assert!(!(0..3).any(|_| !matches!(segments.find(&text), Known::Nothing)));
        }
    }

    #[test]
    fn a_hash_alone_finds_nothing() {
        let segments = Segments::new();
        let (one, other) = ("a".repeat(SHORTEST), "b".repeat(SHORTEST));
        let _ = segments.find(&one);
        let Known::Again(hash) = segments.find(&one) else { panic!("it came before") };
        // As if the other text had the same hash.
        segments.keep(hash, &other, encoded(7));
        assert!(matches!(segments.find(&one), Known::Again(_)));
    }

    #[test]
    fn texts_that_differ_where_no_hash_looks_are_not_taken_for_each_other() {
        let segments = Segments::new();
        let text = "a".repeat(100 * WINDOWS);
        keep(&segments, &text, 7);
        let other = format!("{}b{}", &text[..50], &text[51..]);
        let Known::Again(hash) = segments.find(&other) else { panic!("the hash is the same") };
        segments.keep(hash, &other, encoded(8));
        let Known::Kept(found) = segments.find(&other) else { panic!("it is kept") };
        assert_eq!(found.encoded, encoded(8));
        assert!(matches!(segments.find(&text), Known::Again(_)));
    }

    #[test]
    fn a_place_that_is_taken_is_as_good_as_empty() {
        let segments = Segments::new();
        let text = "a".repeat(SHORTEST);
        keep(&segments, &text, 7);
        let Known::Kept(_) = segments.find(&text) else { panic!("it is kept") };
        let guards: Vec<_> = segments.kept.iter().map(|kept| kept.try_write()).collect();
        let Known::Again(hash) = segments.find(&text) else { panic!("nobody waits") };
        assert_eq!(segments.keep(hash, &text, encoded(8)).encoded, encoded(8));
        drop(guards);
        let Known::Kept(found) = segments.find(&text) else { panic!("it is still kept") };
        assert_eq!(found.encoded, encoded(7));
    }

    #[test]
    fn texts_that_come_once_take_no_memory() {
        let segments = Segments::new();
        for number in 0..10_000 {
            let _ = segments.find(&format!("{number:0>600}"));
        }
        assert!(segments.kept.iter().all(|kept| kept.try_read().is_ok_and(|kept| kept.is_none())));
    }
}
