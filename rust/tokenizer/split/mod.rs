//! Text to pretokens: hand-written splitters for the patterns of the common families, and the reference's own regex
//! engine for every other.
//!
//! *Invariant*: a hand-written splitter is used only where the tokenizer has its pattern letter for letter.

#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "blocks are looked at with SSE2 or AVX-512"))]
mod block;
mod cl100k;
pub(crate) mod class;
#[cfg(target_arch = "x86_64")]
mod classes;
mod contraction;
mod deepseek;
mod eight;
mod general;
mod gpt2;
mod o200k;
mod space;

use std::ops::Range;

use self::cl100k::Cl100k;
use self::deepseek::DeepSeek;
use self::general::General;
pub(crate) use self::general::{Behavior, Stage};
use self::gpt2::Gpt2;
use self::o200k::O200k;

/// Something that cuts a text, which is UTF-8, into pieces.
pub(crate) trait Split {
    /// The end of the piece that begins at `start`, which is not the end of the text.
    fn next(&self, bytes: &[u8], start: usize) -> usize;

    /// Calls `piece` with the start and the end of every piece of a range, in order. What lies behind the range may be
    /// read, and changes nothing. `WIDE` is for code that runs only where the processor takes 64 bytes at a time.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "measured: what it is compiled for depends on the caller")]
    fn each<const WIDE: bool>(&self, bytes: &[u8], range: Range<usize>, mut piece: impl FnMut(usize, usize)) {
        let mut start = range.start;
        while start < range.end {
            let end = self.next(&bytes[..range.end], start);
            piece(start, end);
            start = end;
        }
    }
}

/// The splitter of a tokenizer.
#[derive(Debug)]
pub(crate) enum Splitter {
    /// GPT-2.
    Gpt2(Gpt2),
    /// Qwen.
    Digit(Cl100k<1>),
    /// cl100k, Llama 3.
    Digits(Cl100k<3>),
    /// o200k.
    O200k(O200k<3, true>),
    /// tekken.
    Tekken(O200k<1, false>),
    /// `DeepSeek`.
    DeepSeek(DeepSeek),
    /// Any other.
    General(General),
}

impl Splitter {
    /// The splitter of the stages of a pre-tokenizer.
    pub(crate) fn of(stages: Vec<Stage>) -> crate::Result<Self> {
        class::prepare();
        Ok(Self::known(&stages).unwrap_or(Self::General(General::new(stages)?)))
    }

    fn known(stages: &[Stage]) -> Option<Self> {
        let patterns: Option<Vec<&str>> = stages.iter().map(Stage::isolating).collect();
        match patterns?.as_slice() {
            [gpt2::PATTERN] => Some(Self::Gpt2(Gpt2)),
            [cl100k::PATTERN_1] => Some(Self::Digit(Cl100k)),
            [cl100k::PATTERN_3] => Some(Self::Digits(Cl100k)),
            [o200k::PATTERN] => Some(Self::O200k(O200k)),
            [o200k::TEKKEN] => Some(Self::Tekken(O200k)),
            patterns if patterns == deepseek::PATTERNS => Some(Self::DeepSeek(DeepSeek)),
            _ => None,
        }
    }

    /// Calls `piece` as [`Split::each`] does.
    #[cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "measured: a twentieth of the time of known text"))]
    pub(crate) fn each(&self, bytes: &[u8], range: Range<usize>, piece: impl FnMut(usize, usize)) {
        #[cfg(target_arch = "x86_64")]
        if classes::has_wide() {
            // SAFETY: the processor has been asked.
            return unsafe { self.each_wide(bytes, range, piece) };
        }
        self.each_of::<false>(bytes, range, piece);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512bw,bmi1,bmi2,lzcnt,popcnt")]
    fn each_wide(&self, bytes: &[u8], range: Range<usize>, piece: impl FnMut(usize, usize)) {
        self.each_of::<true>(bytes, range, piece);
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "measured: what it is compiled for depends on the caller")]
    fn each_of<const WIDE: bool>(&self, bytes: &[u8], range: Range<usize>, piece: impl FnMut(usize, usize)) {
        match self {
            Self::Gpt2(splitter) => splitter.each::<WIDE>(bytes, range, piece),
            Self::Digit(splitter) => splitter.each::<WIDE>(bytes, range, piece),
            Self::Digits(splitter) => splitter.each::<WIDE>(bytes, range, piece),
            Self::O200k(splitter) => splitter.each::<WIDE>(bytes, range, piece),
            Self::Tekken(splitter) => splitter.each::<WIDE>(bytes, range, piece),
            Self::DeepSeek(splitter) => splitter.each::<WIDE>(bytes, range, piece),
            Self::General(splitter) => splitter.each::<WIDE>(bytes, range, piece),
        }
    }

    /// What `ByteLevel` with `use_regex` does.
    pub(crate) fn gpt2_stage() -> Stage {
        Stage { pattern: gpt2::PATTERN.to_owned(), behavior: Behavior::Isolated, invert: false }
    }

    /// The name of the splitter, for people.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Gpt2(_) => "gpt2",
            Self::Digit(_) => "cl100k, single digits",
            Self::Digits(_) => "cl100k",
            Self::O200k(_) => "o200k",
            Self::Tekken(_) => "tekken",
            Self::DeepSeek(_) => "deepseek",
            Self::General(_) => "regex",
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use super::*;

    /// The pieces, which do not depend on what the processor can do.
    fn pieces(splitter: &Splitter, text: &str) -> Vec<(usize, usize)> {
        let (mut pieces, mut narrow) = (Vec::new(), Vec::new());
        // Nothing of what lies behind may count.
        let longer = format!("{text}s's \n");
        splitter.each(longer.as_bytes(), 0..text.len(), |start, end| pieces.push((start, end)));
        splitter.each_of::<false>(longer.as_bytes(), 0..text.len(), |start, end| narrow.push((start, end)));
        assert_eq!(pieces, narrow, "{text:?}");
        pieces
    }

    fn stages(patterns: &[&str]) -> Splitter {
        let stage = |text: &&str| Stage { pattern: (*text).to_owned(), behavior: Behavior::Isolated, invert: false };
        Splitter::General(General::new(patterns.iter().map(stage).collect()).unwrap())
    }

    /// Texts that reach every alternative: each code point between others of all classes, and short random mixtures.
    fn texts() -> Vec<String> {
        let mut texts = Vec::new();
        let spread = (0..0x3_0000_u32).filter(|code| *code < 0x3000 || code % 61 == 0).chain(0xE_0000..0xE_0200);
        for character in spread.filter_map(char::from_u32) {
            texts.push(format!("{character}"));
            texts.push(format!(
                "a{character}b '{character}x {character} 1{character}2!{character}?\n{character}\n A{character}"
            ));
        }
        let pool: Vec<char> =
            "aB1 \n\r\t'sſtRelLdm!/一あ々゠・\u{3099}é\u{301}ʰǅ\u{a0}\u{85}\u{200d}५🙂_-\u{1AC2}".chars().collect();
        mixtures(&pool, 60_000, 12, &mut texts);
        // Whole blocks of ASCII, and some that end early.
        mixtures(&"aB1 '\n/!".chars().collect::<Vec<_>>(), 10_000, 150, &mut texts);
        mixtures(&"aabcdeBC12  ''stTrelv\n\r\t/.(\0é".chars().collect::<Vec<_>>(), 10_000, 150, &mut texts);
        texts
    }

    fn mixtures(pool: &[char], count: usize, length: usize, texts: &mut Vec<String>) {
        let mut state = 7_u64;
        for _ in 0..count {
            let mut text = String::new();
            for _ in 0..length {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                text.push(pool[(state >> 33) as usize % pool.len()]);
            }
            texts.push(text);
        }
    }

    fn same(fast: &Splitter, patterns: &[&str]) {
        class::prepare();
        let general = stages(patterns);
        for text in texts() {
            assert_eq!(pieces(fast, &text), pieces(&general, &text), "{text:?}");
        }
    }

    #[test]
    fn gpt2_is_its_pattern() {
        same(&Splitter::Gpt2(Gpt2), &[gpt2::PATTERN]);
    }

    #[test]
    fn cl100k_is_its_pattern() {
        same(&Splitter::Digits(Cl100k), &[cl100k::PATTERN_3]);
        same(&Splitter::Digit(Cl100k), &[cl100k::PATTERN_1]);
    }

    #[test]
    fn o200k_is_its_pattern() {
        same(&Splitter::O200k(O200k), &[o200k::PATTERN]);
        same(&Splitter::Tekken(O200k), &[o200k::TEKKEN]);
    }

    #[test]
    fn deepseek_is_its_patterns() {
        same(&Splitter::DeepSeek(DeepSeek), &deepseek::PATTERNS);
    }
}
