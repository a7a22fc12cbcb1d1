//! Sampled ids as one line of bytes in which control tokens cannot be mistaken for their spelling.
//!
//! *Invariant*: a control token is four bytes that no text holds, so a search for it never finds its text typed out as
//! ordinary tokens, and a search for text never finds a control token. Every token knows where it ends.
//!
//! What each token is on the wire is laid out once for a grammar: a turn is then copied together, sixteen bytes a token.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use memchr::memchr;

use crate::tokenizer::Tokenizer;
use crate::{Result, TokenId};

/// Begins a control token; never part of UTF-8.
pub(super) const CONTROL: u8 = 0xFF;
/// The bytes of a control token.
const LENGTH: usize = 4;

/// The control tokens of a tokenizer, as far as a grammar or the tokenizer itself treats them as such.
#[derive(Debug, Default)]
pub(super) struct Alphabet {
    texts: Vec<Arc<str>>,
    by_id: HashMap<TokenId, usize>,
    /// Indices by the first byte of the text, longest text first.
    by_byte: HashMap<u8, Vec<usize>>,
    special: Vec<bool>,
    spellings: Spellings,
}

/// The bytes of the tokens with small ids, laid out by id.
#[derive(Debug, Default)]
struct Spellings {
    bytes: Vec<u8>,
    /// For each id, where its bytes begin and how many they are.
    places: Vec<(u32, u32)>,
}

/// Tokens with larger ids are spelled anew each time.
const MOST_IDS: usize = 1 << 20;
/// The length of a token that is not laid out.
const ABSENT: u32 = u32::MAX;
/// So many bytes are copied for a token that has no more.
const STRIDE: usize = 16;

impl Spellings {
    fn add(&mut self, spell: impl FnOnce(&mut Vec<u8>) -> bool) {
        let start = self.bytes.len();
        let spelled = spell(&mut self.bytes);
        let length = if spelled { (self.bytes.len() - start) as u32 } else { ABSENT };
        self.places.push((start as u32, length));
    }

    /// Adds the bytes of a token; false if they are not laid out.
    fn push(&self, id: TokenId, out: &mut Vec<u8>) -> bool {
        let place = usize::try_from(id).ok().and_then(|id| self.places.get(id));
        let Some(&(start, length)) = place.filter(|place| place.1 != ABSENT) else { return false };
        let (start, length) = (start as usize, length as usize);
        match self.bytes[start..].first_chunk::<STRIDE>() {
            // A copy of fixed size is one instruction; what follows the token is cut off again.
            Some(chunk) if length <= STRIDE => {
                let end = out.len() + length;
                out.extend_from_slice(chunk);
                out.truncate(end);
            }
            _ => out.extend_from_slice(&self.bytes[start..start + length]),
        }
        true
    }
}

impl Alphabet {
    /// The special tokens of the tokenizer, and those of its added tokens that stand in one of the texts.
    pub(super) fn new(tokenizer: &Tokenizer, texts: &[&str]) -> Self {
        let mut alphabet = Self::default();
        for token in tokenizer.added_tokens() {
            let content = token.content.trim();
            let used = || texts.iter().any(|text| text.contains(content));
            let is_word = content.chars().all(char::is_alphanumeric);
            if !content.is_empty() && (token.special || !is_word && used()) {
                alphabet.add(token.id, &token.content, token.special);
            }
        }
        for indices in alphabet.by_byte.values_mut() {
            indices.sort_by_key(|index| std::cmp::Reverse(alphabet.texts[*index].len()));
        }
        let mut spellings = Spellings::default();
        for id in 0..tokenizer.vocab_size().min(MOST_IDS) {
            spellings.add(|out| alphabet.spell(tokenizer, id as TokenId, out));
        }
        alphabet.spellings = spellings;
        alphabet
    }

    fn add(&mut self, id: TokenId, text: &str, special: bool) {
        let index = self.texts.len();
        self.texts.push(text.into());
        self.special.push(special);
        self.by_id.insert(id, index);
        self.by_byte.entry(text.as_bytes()[0]).or_default().push(index);
    }

    fn push_control(index: usize, out: &mut Vec<u8>) {
        let six = |shift: usize| 0x80 | ((index >> shift) & 0x3F) as u8;
        out.extend([CONTROL, six(12), six(6), six(0)]);
    }

    fn control_at(&self, bytes: &[u8]) -> Option<usize> {
        let [CONTROL, high, middle, low] = *bytes.first_chunk::<LENGTH>()? else { return None };
        let index = usize::from(high & 0x3F) << 12 | usize::from(middle & 0x3F) << 6 | usize::from(low & 0x3F);
        (index < self.texts.len()).then_some(index)
    }

    /// The text of a grammar on the wire: control tokens where the tokenizer would see them.
    pub(super) fn literal(&self, text: &str) -> Vec<u8> {
        let mut out = Vec::with_capacity(text.len());
        let mut rest = text;
        while let Some(first) = rest.as_bytes().first() {
            let indices = self.by_byte.get(first).map_or(&[][..], Vec::as_slice);
            if let Some(&index) = indices.iter().find(|index| rest.starts_with(&*self.texts[**index])) {
                Self::push_control(index, &mut out);
                rest = &rest[self.texts[index].len()..];
            } else {
                let length = rest.chars().next().map_or(1, char::len_utf8);
                out.extend_from_slice(&rest.as_bytes()[..length]);
                rest = &rest[length..];
            }
        }
        out
    }

    /// Spells a token on the wire; false if the tokenizer has none with the id.
    fn spell(&self, tokenizer: &Tokenizer, id: TokenId, out: &mut Vec<u8>) -> bool {
        if let Some(index) = self.by_id.get(&id) {
            Self::push_control(*index, out);
            return true;
        }
        let start = out.len();
        let known = tokenizer.push_token_bytes(id, out);
        if out[start..].contains(&CONTROL) {
            for byte in out.split_off(start) {
                let replacement = (byte == CONTROL).then_some("\u{FFFD}");
                out.extend_from_slice(replacement.map_or(&[byte], str::as_bytes));
            }
        }
        known
    }

    /// A token on the wire.
    fn push_token(&self, tokenizer: &Tokenizer, id: TokenId, out: &mut Vec<u8>) -> Result<()> {
        if self.spellings.push(id, out) || self.spell(tokenizer, id, out) {
            return Ok(());
        }
        Err(crate::tokenizer::failure(format!("the tokenizer has no token with the id {id}; pass ids of this model")))
    }

    /// The text of a stretch of the wire; what is no UTF-8 becomes U+FFFD.
    pub(super) fn text<'a>(&self, bytes: &'a [u8]) -> Cow<'a, str> {
        // Text that holds no control token is UTF-8 as it stands, and nothing else is.
        if let Ok(text) = std::str::from_utf8(bytes) {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(bytes.len());
        self.push_text(bytes, &mut out);
        Cow::Owned(out)
    }

    /// Adds the text of a stretch of the wire.
    pub(super) fn push_text(&self, bytes: &[u8], out: &mut String) {
        if let Ok(text) = std::str::from_utf8(bytes) {
            return out.push_str(text);
        }
        let mut rest = bytes;
        while let Some(at) = memchr(CONTROL, rest) {
            out.push_str(&String::from_utf8_lossy(&rest[..at]));
            match self.control_at(&rest[at..]) {
                Some(index) => out.push_str(&self.texts[index]),
                None => out.push(char::REPLACEMENT_CHARACTER),
            }
            rest = rest.get(at + LENGTH..).unwrap_or_default();
        }
        out.push_str(&String::from_utf8_lossy(rest));
    }

    /// The text of the special token that bytes begin with, if they begin with one.
    pub(super) fn special_at(&self, bytes: &[u8]) -> Option<&str> {
        let index = self.control_at(bytes)?;
        self.special[index].then(|| &*self.texts[index])
    }
}

/// Whether bytes begin with a control token.
pub(super) fn is_control(bytes: &[u8]) -> bool {
    bytes.first() == Some(&CONTROL)
}

/// The bytes of a control token.
pub(super) const fn control_length() -> usize {
    LENGTH
}

/// So many bytes a token has, more or less.
const BYTES: usize = 5;

/// Ids that have arrived, as bytes, and where each token ends.
#[derive(Debug, Default)]
pub(super) struct Wire {
    pub(super) bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl Wire {
    /// Adds tokens; after an error the wire is as it was.
    pub(super) fn push(&mut self, alphabet: &Alphabet, tokenizer: &Tokenizer, ids: &[TokenId]) -> Result<()> {
        let (bytes, ends) = (self.bytes.len(), self.ends.len());
        self.bytes.reserve(ids.len() * BYTES + STRIDE);
        self.ends.reserve(ids.len());
        for id in ids {
            if let Err(error) = alphabet.push_token(tokenizer, *id, &mut self.bytes) {
                let token = self.ends.len();
                self.bytes.truncate(bytes);
                self.ends.truncate(ends);
                return Err(error.within(&format!("token {token}")));
            }
            self.ends.push(self.bytes.len() as u32);
        }
        Ok(())
    }

    /// The tokens that have a byte in a stretch of the wire; those of a prefill are no tokens.
    pub(super) fn tokens(&self, range: Range<usize>) -> Range<usize> {
        let start = self.ends.partition_point(|end| *end as usize <= range.start);
        let end = self.ends.partition_point(|end| (*end as usize) < range.end) + 1;
        start..end.clamp(start, self.ends.len().max(start))
    }
}
