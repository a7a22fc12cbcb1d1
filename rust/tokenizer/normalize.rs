//! Unicode's form C, with exactly the tables of the reference.

use unicode_normalization_alignments::UnicodeNormalization;

use super::split::class::{self, COMPOSED};

/// A text in form C that differs from the one it was made from.
#[derive(Debug)]
pub(super) struct Normalised {
    /// The text.
    pub(super) text: String,
    /// For each of its bytes, the byte of the original where its character begins; and the length of the original.
    pub(super) origin: Vec<u32>,
}

/// The form C of a text, if it differs from the text.
pub(super) fn nfc(text: &str) -> Option<Normalised> {
    if text.is_ascii() || all_composed(text.as_bytes()) || text.nfc().map(|pair| pair.0).eq(text.chars()) {
        return None;
    }
    let mut out = Normalised { text: String::with_capacity(text.len()), origin: Vec::with_capacity(text.len()) };
    let mut rest = text.chars();
    let (mut offset, mut last) = (0, 0);
    for (character, change) in text.nfc() {
        // A positive change is a further character made from the one before; a negative one takes as many more away.
        let begin = if change > 0 { last } else { offset as u32 };
        if change <= 0 {
            let taken = rest.by_ref().take(1 + change.unsigned_abs());
            let sizes: Vec<usize> = taken.map(char::len_utf8).collect();
            let size: usize = sizes.iter().sum();
            last = (offset + size - sizes.last().copied().unwrap_or(0)) as u32;
            offset += size;
        }
        out.origin.extend(std::iter::repeat_n(begin, character.len_utf8()));
        out.text.push(character);
    }
    out.origin.push(text.len() as u32);
    Some(out)
}

fn all_composed(bytes: &[u8]) -> bool {
    let mut position = 0;
    while position < bytes.len() {
        if let Some(ascii) = bytes.get(position..position + 16).filter(|some| some.is_ascii()) {
            position += ascii.len();
            continue;
        }
        let (class, length) = class::at(bytes, position);
        if class & COMPOSED == 0 {
            return false;
        }
        position += length;
    }
    true
}
