//! Which bytes of a block are of which class: 64 bytes, 16 or all of them at a time.
//!
//! *Invariant*: bit `i` of every number stands for byte `i` of the block, and both ways give the same bits.

use super::block::Rules;

/// The bits of each class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Classes {
    pub(super) letters: u64,
    /// Only where the rules look at case; so are the slashes.
    pub(super) capitals: u64,
    pub(super) digits: u64,
    /// The space alone.
    pub(super) space: u64,
    /// White space, line breaks among it.
    pub(super) white: u64,
    pub(super) breaks: u64,
    pub(super) apostrophes: u64,
    pub(super) slashes: u64,
    /// Below the space, white space among it, and the delete character; only where the rules look at them.
    pub(super) controls: u64,
    /// No ASCII.
    pub(super) wide: u64,
}

/// Whether the processor takes 64 bytes at a time.
pub(super) fn has_wide() -> bool {
    is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
}

impl Classes {
    /// The classes of a block. `WIDE` is for code that runs only if [`has_wide`] says so.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "measured: the rules are constants then")]
    #[expect(unsafe_code, reason = "measured: the split is several times as fast as byte by byte")]
    pub(super) fn of<const WIDE: bool>(rules: Rules, block: &[u8; 64]) -> Self {
        // SAFETY: every processor of this architecture has SSE2, and whoever asks for `WIDE` has asked for the rest.
        unsafe { if WIDE { Self::at_once(rules, block) } else { Self::by_sixteen(rules, block) } }
    }

    #[target_feature(enable = "sse2")]
    #[inline]
    fn by_sixteen(rules: Rules, block: &[u8; 64]) -> Self {
        use std::arch::x86_64::{
            __m128i, _mm_and_si128, _mm_cmpeq_epi8, _mm_cmpgt_epi8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x,
            _mm_set1_epi8,
        };
        let fill = |byte: u8| _mm_set1_epi8(byte as i8);
        // Bytes are compared as signed numbers, so those above ASCII are below all others.
        let range = |lane: __m128i, low: u8, high: u8| {
            _mm_and_si128(_mm_cmpgt_epi8(lane, fill(low - 1)), _mm_cmpgt_epi8(fill(high + 1), lane))
        };
        let mut classes = Self::default();
        for (index, lane) in block.as_chunks::<16>().0.iter().enumerate() {
            let wide = u128::from_le_bytes(*lane);
            let lane = _mm_set_epi64x((wide >> 64) as i64, wide as i64);
            let equal = |byte: u8| _mm_cmpeq_epi8(lane, fill(byte));
            let bits = |lane: __m128i| u64::from(_mm_movemask_epi8(lane) as u32) << (16 * index);
            classes.letters |= bits(range(_mm_or_si128(lane, fill(0x20)), b'a', b'z'));
            classes.digits |= bits(range(lane, b'0', b'9'));
            classes.space |= bits(equal(b' '));
            classes.white |= bits(_mm_or_si128(range(lane, b'\t', b'\r'), equal(b' ')));
            classes.breaks |= bits(_mm_or_si128(equal(b'\n'), equal(b'\r')));
            classes.apostrophes |= bits(equal(b'\''));
            classes.wide |= bits(lane);
            if rules.cased {
                classes.capitals |= bits(range(lane, b'A', b'Z'));
                classes.slashes |= bits(equal(b'/'));
            }
            if rules.no_controls {
                // As signed numbers, the bytes above ASCII are below the space, too.
                let below = _mm_cmpgt_epi8(fill(b' '), lane);
                classes.controls |= bits(_mm_or_si128(below, equal(0x7F))) & !bits(lane);
            }
        }
        classes
    }

    #[target_feature(enable = "avx512bw")]
    #[inline]
    fn at_once(rules: Rules, block: &[u8; 64]) -> Self {
        use std::arch::x86_64::{
            __m512i, _mm512_cmpeq_epi8_mask, _mm512_cmple_epu8_mask, _mm512_movepi8_mask, _mm512_or_si512,
            _mm512_set_epi64, _mm512_set1_epi8, _mm512_sub_epi8,
        };
        let fill = |byte: u8| _mm512_set1_epi8(byte as i8);
        let words = block.as_chunks::<8>().0;
        let word = |index: usize| i64::from_le_bytes(words[index]);
        let lane = _mm512_set_epi64(word(7), word(6), word(5), word(4), word(3), word(2), word(1), word(0));
        let range = |lane: __m512i, low: u8, high: u8| {
            _mm512_cmple_epu8_mask(_mm512_sub_epi8(lane, fill(low)), fill(high - low))
        };
        let equal = |byte: u8| _mm512_cmpeq_epi8_mask(lane, fill(byte));
        let space = equal(b' ');
        Self {
            letters: range(_mm512_or_si512(lane, fill(0x20)), b'a', b'z'),
            capitals: if rules.cased { range(lane, b'A', b'Z') } else { 0 },
            digits: range(lane, b'0', b'9'),
            space,
            white: range(lane, b'\t', b'\r') | space,
            breaks: equal(b'\n') | equal(b'\r'),
            apostrophes: equal(b'\''),
            slashes: if rules.cased { equal(b'/') } else { 0 },
            controls: if rules.no_controls { range(lane, 0, b' ' - 1) | equal(0x7F) } else { 0 },
            wide: _mm512_movepi8_mask(lane),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::block::Contractions;
    use super::*;

    #[test]
    fn both_ways_give_the_same_bits() {
        if !has_wide() {
            return;
        }
        let rules = |flag| Rules { digits: 1, contractions: Contractions::None, cased: flag, no_controls: flag };
        for rotation in 0..=255_u8 {
            let block = std::array::from_fn(|index| (index as u8).wrapping_mul(101).wrapping_add(rotation));
            for rules in [rules(false), rules(true)] {
                assert_eq!(Classes::of::<true>(rules, &block), Classes::of::<false>(rules, &block), "{block:?}");
            }
        }
    }
}
