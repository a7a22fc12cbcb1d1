//! What each token adds to a decoded text, laid out by id.

use std::collections::HashSet;
use std::hash::BuildHasher;
use std::sync::OnceLock;

use foldhash::fast::FixedState;
use tokenizers::DecoderWrapper;

use super::AddedToken;
use super::bytes::TokenBytes;
use super::file::File;
use super::reference::Reference;
use super::stored::Stored;
use crate::TokenId;

/// A vocabulary with larger ids is decoded by the reference: the table has a slot for each id.
const MOST_IDS: usize = 1 << 24;

/// The letter that stands for a space.
const SPACE: &str = "▁";

/// How bytes become text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joining {
    /// The bytes of all tokens in a row; each maximal stretch that is no UTF-8 becomes one U+FFFD.
    Bytes,
    /// Text of its own for each token; a run of single-byte tokens that is no UTF-8 as a whole becomes one U+FFFD a
    /// byte. So many spaces are left out where the text begins.
    Runs {
        /// The most spaces that are left out.
        strip: usize,
    },
}

impl Joining {
    /// What the tokenizer's decoder does, if it is one of the two.
    fn of(decoder: &DecoderWrapper) -> Option<Self> {
        match decoder {
            DecoderWrapper::ByteLevel(_) => Some(Self::Bytes),
            DecoderWrapper::Sequence(sequence) => match sequence.get_decoders() {
                [DecoderWrapper::ByteLevel(_)] => Some(Self::Bytes),
                [replace, DecoderWrapper::ByteFallback(_), DecoderWrapper::Fuse(_)] if is_space(replace) => {
                    Some(Self::Runs { strip: 0 })
                }
                [replace, DecoderWrapper::ByteFallback(_), DecoderWrapper::Fuse(_), DecoderWrapper::Strip(strip)]
                    if is_space(replace) && strip.content == ' ' && strip.stop == 0 =>
                {
                    Some(Self::Runs { strip: strip.start })
                }
                _ => None,
            },
            _ => None,
        }
    }
}

/// Whether a decoder turns `▁` into a space, and does nothing else.
fn is_space(decoder: &DecoderWrapper) -> bool {
    serde_json::to_value(decoder).is_ok_and(|value| {
        value == serde_json::json!({"type": "Replace", "pattern": {"String": SPACE}, "content": " "})
    })
}

/// What a token adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// No token has the id.
    Missing,
    /// Text, or the bytes of text.
    Text,
    /// One byte, named by its number.
    Byte,
}

/// A token as the decoder sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece<'a> {
    pub(super) kind: Kind,
    pub(super) special: bool,
    pub(super) bytes: &'a [u8],
}

/// The pieces of all ids.
#[derive(Debug)]
pub(super) struct Pieces {
    pub(super) joining: Joining,
    bytes: Vec<u8>,
    /// For each id, where its bytes end, its kind, and whether skipping special tokens skips it.
    slots: Vec<(u32, Kind, bool)>,
    /// Hashes of the bytes of all pieces, laid out when one is first asked for.
    hashes: OnceLock<HashSet<u64, FixedState>>,
}

impl Pieces {
    /// The table of a tokenizer, unless its decoder is another than the two that are modelled.
    pub(super) fn new(reference: &Reference, count: usize, spelling: &TokenBytes) -> Option<Self> {
        let token = |id: usize| {
            let token = reference.token(id as TokenId)?;
            let special = reference.is_special(&token);
            Some((token, special))
        };
        Self::of(reference, (0..count).map(token), spelling)
    }

    /// The same from a file, which is quicker; none where the file leaves open which token an id means.
    pub(super) fn from_file(
        file: &File<'_>,
        reference: &Reference,
        added: &[AddedToken],
        count: usize,
        spelling: &TokenBytes,
    ) -> Option<Self> {
        let mut tokens = vec![None; count];
        for (text, id) in &file.model.vocab.0 {
            if tokens.get_mut(*id as usize)?.replace((&*text.0, false)).is_some() {
                return None;
            }
        }
        for token in added {
            *tokens.get_mut(token.id as usize)? = Some((&token.content, reference.is_special(&token.content)));
        }
        Self::of(reference, tokens.into_iter(), spelling)
    }

    /// The table of the tokens of all ids, and whether they are special.
    fn of(
        reference: &Reference,
        tokens: impl ExactSizeIterator<Item = Option<(impl AsRef<str>, bool)>>,
        spelling: &TokenBytes,
    ) -> Option<Self> {
        let joining = Joining::of(reference.decoder()?)?;
        if tokens.len() > MOST_IDS {
            return None;
        }
        let slots = Vec::with_capacity(tokens.len());
        let mut pieces = Self { joining, bytes: Vec::new(), slots, hashes: OnceLock::new() };
        for token in tokens {
            pieces.add(token, spelling);
        }
        Some(pieces)
    }

    fn add(&mut self, token: Option<(impl AsRef<str>, bool)>, spelling: &TokenBytes) {
        let (kind, special) = token.map_or((Kind::Missing, false), |(token, special)| {
            let token = token.as_ref();
            spelling.push(token, &mut self.bytes);
            let single = matches!(self.joining, Joining::Runs { .. }) && TokenBytes::names_a_byte(token);
            (if single { Kind::Byte } else { Kind::Text }, special)
        });
        self.slots.push((self.bytes.len() as u32, kind, special));
    }

    /// Whether some token may stand for just these bytes: none does if not.
    pub(super) fn may_hold(&self, bytes: &[u8]) -> bool {
        let hash = |bytes: &[u8]| FixedState::default().hash_one(bytes);
        let all = || (0..self.len()).filter_map(|id| Some(hash(self.get(id as TokenId)?.bytes))).collect();
        self.hashes.get_or_init(all).contains(&hash(bytes))
    }

    /// The number of ids.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The piece of an id, if a token has it.
    pub(super) fn get(&self, id: TokenId) -> Option<Piece<'_>> {
        let index = usize::try_from(id).ok()?;
        let &(end, kind, special) = self.slots.get(index).filter(|slot| slot.1 != Kind::Missing)?;
        let start = if index == 0 { 0 } else { self.slots[index - 1].0 };
        Some(Piece { kind, special, bytes: &self.bytes[start as usize..end as usize] })
    }
}

impl Stored for Pieces {
    fn write(&self, out: &mut Vec<u8>) {
        match self.joining {
            Joining::Bytes => None,
            Joining::Runs { strip } => Some(strip),
        }
        .map_or(0, |strip| strip + 1)
        .write(out);
        self.bytes.write(out);
        self.slots.iter().map(|slot| slot.0).collect::<Vec<_>>().write(out);
        self.slots.iter().map(|&(_, kind, special)| kind as u8 | u8::from(special) << 2).collect::<Vec<_>>().write(out);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        let joining = match usize::read(from)? {
            0 => Joining::Bytes,
            more => Joining::Runs { strip: more - 1 },
        };
        let bytes: Vec<u8> = Stored::read(from)?;
        let (ends, kinds): (Vec<u32>, Vec<u8>) = Stored::read(from)?;
        let is_laid_out =
            ends.is_sorted() && ends.len() == kinds.len() && ends.last().map_or(0, |end| *end as usize) == bytes.len();
        let kind = |kind: u8| match kind & 3 {
            0 => Kind::Missing,
            1 => Kind::Text,
            _ => Kind::Byte,
        };
        let slots = ends.into_iter().zip(kinds).map(|(end, about)| (end, kind(about), about >> 2 == 1)).collect();
        is_laid_out.then_some(Self { joining, bytes, slots, hashes: OnceLock::new() })
    }
}
