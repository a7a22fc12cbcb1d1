//! What pretokens are looked up by: their bytes in a few words.
//!
//! *Invariant*: two keys are the same if and only if the pretokens are.

use super::stored::Stored;

/// The bytes of a pretoken with their number in the topmost byte, every other word turned by the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key<const WORDS: usize>(pub(super) [u64; WORDS]);

/// The key of a short pretoken: nearly all are.
pub(super) type Short = Key<2>;
/// The key of a longer one: runs of spaces, rules of dashes, long names.
pub(super) type Long = Key<8>;

/// The bits that are turned in the words of a pair, so that the product of both says much of either.
const TURNED: (u64, u64) = (0x9E37_79B9_7F4A_7C15, 0xD1B5_4A32_D192_ED03);

/// For each length, the bits of the two words that so many bytes have, and what is turned in the second; a row of four
/// words is found by a shift.
static MASKS: [[u64; 4]; 16] = masks();

const fn masks() -> [[u64; 4]; 16] {
    let mut masks = [[0; 4]; 16];
    let mut length = 0;
    while length < 16 {
        let bits = (1_u128 << (8 * length)) - 1;
        masks[length] = [bits as u64, (bits >> 64) as u64, TURNED.1 ^ (length as u64) << 56, 0];
        length += 1;
    }
    masks
}

impl Default for Short {
    /// The key that no text has.
    fn default() -> Self {
        Self([u64::MAX; 2])
    }
}

impl Short {
    /// The key of `bytes[start..end]`; the one that no text has for more than 15.
    #[inline]
    pub(super) fn new(bytes: &[u8], start: usize, end: usize) -> Self {
        Self::within(bytes, start, end).unwrap_or_else(|| Self::alone(&bytes[start..end]))
    }

    /// The same, of up to 15 bytes that begin 16 or more before the end of the text; of others none.
    #[inline]
    pub(super) fn within(bytes: &[u8], start: usize, end: usize) -> Option<Self> {
        let window = bytes.get(start..start + 16).and_then(<[_]>::first_chunk)?;
        let [first, second, turned, _] = MASKS.get(end - start)?;
        let (one, other) = words(window);
        Some(Self([one & first ^ TURNED.0, other & second ^ turned]))
    }

    /// The same, where nothing may be read behind it.
    #[inline(never)]
    fn alone(bytes: &[u8]) -> Self {
        if bytes.len() > 15 {
            return Self::default();
        }
        let mut window = [0; 16];
        window[..bytes.len()].copy_from_slice(bytes);
        window[15] = bytes.len() as u8;
        let (one, other) = words(&window);
        Self([one ^ TURNED.0, other ^ TURNED.1])
    }

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
        let turned = |index| if index % 2 == 0 { TURNED.0 } else { TURNED.1 };
        Some(Self(std::array::from_fn(|index| u64::from_le_bytes(words[index]) ^ turned(index))))
    }
}

impl<const WORDS: usize> Key<WORDS> {
    /// Whether two keys are the same: in registers, where the comparison of arrays may call another function.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "measured: a call for a word or two takes longer than the lookup")]
    pub(super) fn same(self, other: Self) -> bool {
        self.0.iter().zip(other.0).fold(0, |different, (one, other)| different | (one ^ other)) == 0
    }

    #[inline]
    pub(super) fn hash(self) -> u64 {
        let mut state = 0;
        for pair in self.0.as_chunks::<2>().0 {
            let product = u128::from(pair[0] ^ state) * u128::from(pair[1]);
            state = (product >> 64) as u64 ^ product as u64;
        }
        state
    }
}

#[inline]
fn words(window: &[u8; 16]) -> (u64, u64) {
    let number = u128::from_le_bytes(*window);
    (number as u64, (number >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_the_bytes_and_their_number() {
        let text = b"ab\0\0ab\0\0ab\0\0ab\0\0ab";
        assert_eq!(Short::new(text, 0, 2), Short::new(text, 16, 18));
        assert_ne!(Short::new(text, 0, 2), Short::new(text, 0, 3));
        assert_eq!(Short::new(text, 0, 16), Short::default());
    }
}
