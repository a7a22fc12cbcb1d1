//! From the spelling of a vocabulary entry to the bytes it stands for.

use std::sync::LazyLock;

use tokenizers::DecoderWrapper;

use super::reference::Reference;
use super::stored::Stored;

/// How a vocabulary spells bytes.
#[derive(Debug)]
pub(super) enum TokenBytes {
    /// One letter a byte (GPT-2's alphabet).
    Alphabet,
    /// Plain text, `▁` for a space, `<0x0A>` for a single byte.
    Fallback,
    /// Plain text.
    Plain,
}

impl TokenBytes {
    /// The spelling that the tokenizer's decoder undoes.
    pub(super) fn of(reference: &Reference) -> Self {
        match reference.decoder() {
            Some(decoder) if names_byte_level(decoder) => Self::Alphabet,
            Some(DecoderWrapper::Sequence(_) | DecoderWrapper::Metaspace(_) | DecoderWrapper::ByteFallback(_)) => {
                Self::Fallback
            }
            _ => Self::Plain,
        }
    }

    /// Whether an entry is spelt as the number of a byte.
    pub(super) fn names_a_byte(token: &str) -> bool {
        single_byte(token).is_some()
    }

    /// The bytes of an entry.
    pub(super) fn decode(&self, token: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.push(token, &mut bytes);
        bytes
    }

    /// Adds the bytes of an entry.
    pub(super) fn push(&self, token: &str, out: &mut Vec<u8>) {
        match self {
            Self::Alphabet => push_alphabet(token, out),
            Self::Fallback => match single_byte(token) {
                Some(byte) => out.push(byte),
                None => out.extend_from_slice(token.replace('▁', " ").as_bytes()),
            },
            Self::Plain => out.extend_from_slice(token.as_bytes()),
        }
    }
}

impl Stored for TokenBytes {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(match self {
            Self::Alphabet => 0,
            Self::Fallback => 1,
            Self::Plain => 2,
        });
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        match u8::read(from)? {
            0 => Some(Self::Alphabet),
            1 => Some(Self::Fallback),
            2 => Some(Self::Plain),
            _ => None,
        }
    }
}

/// GPT-2's alphabet: a printable Latin-1 byte is its own letter, the others take the letters from U+0100 on, in order.
pub(super) fn letters() -> impl Iterator<Item = (char, u8)> {
    let printable = |byte: u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let mut others = '\u{100}'..;
    (0..=u8::MAX).filter_map(move |byte| {
        let letter = if printable(byte) { Some(char::from(byte)) } else { others.next() };
        letter.map(|letter| (letter, byte))
    })
}

/// The byte of a letter of the alphabet.
#[inline]
pub(super) fn byte_of(letter: char) -> Option<u8> {
    /// By letter, of which U+0143 is the last.
    static BYTES: LazyLock<[Option<u8>; 0x144]> = LazyLock::new(|| {
        let mut bytes = [None; 0x144];
        for (letter, byte) in letters() {
            bytes[letter as usize] = Some(byte);
        }
        bytes
    });
    BYTES.get(letter as usize).copied().flatten()
}

fn names_byte_level(decoder: &DecoderWrapper) -> bool {
    match decoder {
        DecoderWrapper::ByteLevel(_) => true,
        DecoderWrapper::Sequence(sequence) => sequence.get_decoders().iter().any(names_byte_level),
        _ => false,
    }
}

/// An entry with a letter outside the alphabet stands for its own text.
fn push_alphabet(token: &str, out: &mut Vec<u8>) {
    let before = out.len();
    out.extend(token.chars().map_while(byte_of));
    if out.len() - before < token.chars().count() {
        out.truncate(before);
        out.extend_from_slice(token.as_bytes());
    }
}

fn single_byte(token: &str) -> Option<u8> {
    let digits = token.strip_prefix("<0x")?.strip_suffix('>')?;
    (digits.len() == 2).then(|| u8::from_str_radix(digits, 16).ok()).flatten()
}
