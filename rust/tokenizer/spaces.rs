//! Pieces and symbols where `▁` stands for a space, without making the text with `▁` in it.
//!
//! The reference merges a text between added tokens as one word. It is cut here between any two characters that no merge
//! of the vocabulary joins: no token spans such a place, and merges on one side do not depend on the other, so no id
//! changes.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;

use super::stored::Stored;
use crate::TokenId;

/// The pairs of neighbouring characters that some token has inside; a space is a `▁`.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    /// For each character of ASCII, those that follow it.
    ascii: Vec<[bool; 128]>,
    others: HashSet<(char, char), RandomState>,
}

impl Pairs {
    pub(super) fn new() -> Self {
        Self { ascii: vec![[false; 128]; 128], others: HashSet::default() }
    }

    /// Adds the pairs of a token.
    pub(super) fn add(&mut self, left: &str, right: &str) {
        let mut before = None;
        for letter in left.chars().chain(right.chars()).map(as_space) {
            if let Some(before) = before {
                match ascii_pair(before, letter) {
                    Some((one, two)) => self.ascii[one][two] = true,
                    None => _ = self.others.insert((before, letter)),
                }
            }
            before = Some(letter);
        }
    }

    fn holds(&self, one: char, two: char) -> bool {
        match ascii_pair(one, two) {
            Some((one, two)) => self.ascii[one][two],
            None => self.others.contains(&(one, two)),
        }
    }

    /// The end of the piece that begins at a byte.
    #[inline]
    pub(super) fn next(&self, text: &str, start: usize) -> usize {
        let bytes = text.as_bytes();
        let mut position = start;
        while let (Some(&one), Some(&two)) = (bytes.get(position), bytes.get(position + 1)) {
            if one >= 128 || two >= 128 {
                return self.next_wide(text, position);
            }
            position += 1;
            if !self.ascii[usize::from(one)][usize::from(two)] {
                return position;
            }
        }
        bytes.len()
    }

    /// The same from a character on, near others than ASCII.
    fn next_wide(&self, text: &str, start: usize) -> usize {
        let mut letters = text[start..].char_indices();
        let Some((_, mut before)) = letters.next() else { return text.len() };
        for (inside, letter) in letters {
            if !self.holds(as_space(before), as_space(letter)) {
                return start + inside;
            }
            before = letter;
        }
        text.len()
    }
}

impl Stored for Pairs {
    fn write(&self, out: &mut Vec<u8>) {
        self.ascii.write(out);
        self.others.iter().copied().collect::<Vec<_>>().write(out);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        let ascii: Vec<[bool; 128]> = Stored::read(from)?;
        let others: Vec<(char, char)> = Stored::read(from)?;
        (ascii.len() == 128).then(|| Self { ascii, others: others.into_iter().collect() })
    }
}

fn as_space(letter: char) -> char {
    if letter == '▁' { ' ' } else { letter }
}

fn ascii_pair(one: char, two: char) -> Option<(usize, usize)> {
    (one.is_ascii() && two.is_ascii()).then_some((one as usize, two as usize))
}

/// Calls `push` with the symbols of a piece, and the byte where each begins.
pub(super) fn symbols(
    piece: &str,
    ids: &HashMap<char, TokenId, RandomState>,
    bytes: &[TokenId; 256],
    mut push: impl FnMut(TokenId, u32),
) {
    for (at, letter) in piece.char_indices() {
        let letter = if letter == ' ' { '▁' } else { letter };
        if let Some(id) = ids.get(&letter) {
            push(*id, at as u32);
            continue;
        }
        let mut buffer = [0; 4];
        for (inside, byte) in letter.encode_utf8(&mut buffer).bytes().enumerate() {
            push(bytes[usize::from(byte)], (at + inside) as u32);
        }
    }
}
