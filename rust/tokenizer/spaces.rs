//! Pretokens and symbols where `▁` stands for a space, without making the text with `▁` in it.
//!
//! The reference merges a text between added tokens as one word. It is cut here before a run of spaces, where no merge
//! of the vocabulary crosses: that changes no id.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::bpe::Scratch;
use crate::TokenId;

/// The end of the piece that begins at a byte. `joined` are the characters that some token has before a space.
#[inline]
pub(super) fn next(text: &str, start: usize, joined: &[char]) -> usize {
    let bytes = text.as_bytes();
    let mut position = start + 1;
    while position < bytes.len() {
        let blank = bytes[position] == b' ' || bytes[position..].starts_with("▁".as_bytes());
        if blank && can_cut(text, position, joined) {
            return position;
        }
        position += 1;
    }
    bytes.len()
}

/// Whether no token spans a character and the space behind it.
fn can_cut(text: &str, position: usize, joined: &[char]) -> bool {
    let before = text[..position].chars().next_back();
    before.is_some_and(|letter| letter != ' ' && letter != '▁' && !joined.contains(&letter))
}

/// The symbols of a piece.
pub(super) fn symbols(
    piece: &str,
    ids: &HashMap<char, TokenId, RandomState>,
    bytes: &[TokenId; 256],
    scratch: &mut Scratch,
) {
    for (at, letter) in piece.char_indices() {
        let letter = if letter == ' ' { '▁' } else { letter };
        if let Some(id) = ids.get(&letter) {
            scratch.push(*id, at as u32);
            continue;
        }
        let mut buffer = [0; 4];
        for (inside, byte) in letter.encode_utf8(&mut buffer).bytes().enumerate() {
            scratch.push(bytes[usize::from(byte)], (at + inside) as u32);
        }
    }
}
