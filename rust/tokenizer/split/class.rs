//! The class of a character, exactly as the regular expressions of the reference see it.
//!
//! *Invariant*: the bits of a character are what the reference's own regex engine and normaliser say about it. The table
//! is filled from them, a block of characters when the first of the block is seen, so no copy of the Unicode data can
//! grow old here. Filling it twice writes the same values: no lock is needed, and a fork cannot find one held.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU16, Ordering};

use onig::Regex;
use unicode_normalization_alignments::char::canonical_combining_class;
use unicode_normalization_alignments::{IsNormalized, is_nfc_quick};

/// Bits of a character.
pub(crate) type Class = u16;

/// `\p{Lu}\p{Lt}`
pub(crate) const UPPER: Class = 1;
/// `\p{Ll}`
pub(crate) const LOWER: Class = 1 << 1;
/// `\p{Lm}\p{Lo}`
pub(crate) const CASELESS: Class = 1 << 2;
/// `\p{L}`
pub(crate) const LETTER: Class = UPPER | LOWER | CASELESS;
/// `\p{M}`
pub(crate) const MARK: Class = 1 << 3;
/// `\p{N}`
pub(crate) const NUMBER: Class = 1 << 4;
/// `\s`
pub(crate) const SPACE: Class = 1 << 5;
/// `\p{P}\p{S}`
pub(crate) const SYMBOL: Class = 1 << 6;
/// `\r` and `\n`
pub(crate) const BREAK: Class = 1 << 7;
/// Ideographs and kana, as `DeepSeek`'s second split names them.
pub(crate) const KANA: Class = 1 << 8;
/// A text of such characters alone is in Unicode's form C.
pub(crate) const COMPOSED: Class = 1 << 9;
/// The entry of the table is filled; beyond the end of a text no bit is set.
const KNOWN: Class = 1 << 15;

const BLOCK: u32 = 64;

static TABLE: [AtomicU16; 0x11_0000] = [const { AtomicU16::new(0) }; 0x11_0000];

static ASCII: [Class; 128] = ascii();

const fn ascii() -> [Class; 128] {
    let mut table = [KNOWN | COMPOSED; 128];
    let mut byte = 0;
    while byte < 128 {
        table[byte] |= match byte as u8 {
            b'A'..=b'Z' => UPPER,
            b'a'..=b'z' => LOWER,
            b'0'..=b'9' => NUMBER,
            b'\r' | b'\n' => SPACE | BREAK,
            b'\t' | 0x0B | 0x0C | b' ' => SPACE,
            b'!'..=b'/' | b':'..=b'@' | b'['..=b'`' | b'{'..=b'~' => SYMBOL,
            _ => 0,
        };
        byte += 1;
    }
    table
}

/// The classes that the regex engine is asked for, in runs.
static QUESTIONS: LazyLock<Vec<(Regex, Class)>> = LazyLock::new(|| {
    let questions = [
        (r"[\p{Lu}\p{Lt}]+", UPPER),
        (r"\p{Ll}+", LOWER),
        (r"[\p{Lm}\p{Lo}]+", CASELESS),
        (r"\p{M}+", MARK),
        (r"\p{N}+", NUMBER),
        (r"\s+", SPACE),
        (r"[\p{P}\p{S}]+", SYMBOL),
        (r"[\r\n]+", BREAK),
        ("[一-龥\u{3040}-ゟ゠-ヿ]+", KANA),
    ];
    questions.into_iter().filter_map(|(text, class)| Some((Regex::new(text).ok()?, class))).collect()
});

/// Compiles what the table is filled with. Called when a tokenizer loads, so that encoding finds it done.
pub(crate) fn prepare() {
    LazyLock::force(&QUESTIONS);
}

/// The class of the character that starts at a byte, and its length; `(0, 0)` at the end of the text.
#[inline(always)]
#[expect(clippy::inline_always, reason = "measured: a call for every character halves the speed")]
pub(crate) fn at(bytes: &[u8], position: usize) -> (Class, usize) {
    match bytes.get(position) {
        None => (0, 0),
        Some(&byte) if byte < 128 => (ASCII[byte as usize], 1),
        Some(&byte) => wide(bytes, position, byte),
    }
}

#[inline(never)]
fn wide(bytes: &[u8], position: usize, first: u8) -> (Class, usize) {
    let (code, length) = decode(bytes, position, first);
    let class = TABLE[code as usize].load(Ordering::Relaxed);
    (if class == 0 { fill(code) } else { class }, length)
}

/// The code point that starts with a byte above 127; the text is UTF-8.
#[inline]
fn decode(bytes: &[u8], position: usize, first: u8) -> (u32, usize) {
    let rest = |index: usize| u32::from(bytes.get(position + index).copied().unwrap_or(0) & 0x3F);
    let first = u32::from(first);
    match first {
        0..0xE0 => ((first & 0x1F) << 6 | rest(1), 2),
        0xE0..0xF0 => ((first & 0x0F) << 12 | rest(1) << 6 | rest(2), 3),
        _ => (((first & 0x07) << 18 | rest(1) << 12 | rest(2) << 6 | rest(3)).min(0x10_FFFF), 4),
    }
}

/// Fills the block of a code point, and gives its class.
#[cold]
fn fill(code: u32) -> Class {
    let block = code / BLOCK * BLOCK;
    let characters: String = (block..block + BLOCK).filter_map(char::from_u32).collect();
    for (character, class) in characters.chars().zip(ask(&characters)) {
        TABLE[character as usize].store(class, Ordering::Relaxed);
    }
    TABLE[code as usize].load(Ordering::Relaxed)
}

/// The classes of the characters of a text.
fn ask(text: &str) -> Vec<Class> {
    let mut classes = vec![KNOWN; text.chars().count()];
    for (regex, class) in QUESTIONS.iter() {
        for (start, end) in regex.find_iter(text) {
            let first = text[..start].chars().count();
            let count = text[start..end].chars().count();
            classes[first..first + count].iter_mut().for_each(|bits| *bits |= class);
        }
    }
    for (character, class) in text.chars().zip(&mut classes) {
        let alone = std::iter::once(character);
        if is_nfc_quick(alone) == IsNormalized::Yes && canonical_combining_class(character) == 0 {
            *class |= COMPOSED;
        }
    }
    classes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ascii_is_what_the_regex_engine_says() {
        for code in 0..128_u8 {
            assert_eq!(vec![ASCII[code as usize]], ask(&char::from(code).to_string()), "{code}");
        }
    }

    #[test]
    fn composed_characters_stay_as_they_are() {
        use unicode_normalization_alignments::UnicodeNormalization;
        for character in (0..0x3_0000).filter_map(char::from_u32) {
            let text = character.to_string();
            if at(text.as_bytes(), 0).0 & COMPOSED != 0 {
                assert!(text.nfc().map(|pair| pair.0).eq(text.chars()), "{character:?}");
            }
        }
    }
}
