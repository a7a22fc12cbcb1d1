//! What of the fast path does not depend on added tokens: made of a `tokenizer.json`, or read where it was kept.

use super::AddedToken;
use super::added::Matcher;
use super::bpe::Merged;
use super::cache::Cache;
use super::fast::{Cut, Fast};
use super::file::{File, Refusal, Shape};
use super::key::Short;
use super::normalize;
use super::segments::Segments;
use super::stored::Stored;
use super::vocab::Vocabulary;
use crate::TokenId;

/// The fast path without its added tokens.
#[derive(Debug)]
pub(super) struct Compiled {
    /// The file without its vocabulary and merges.
    settings: String,
    /// The number of tokens in the file, and the largest id.
    pub(super) tokens: usize,
    pub(super) largest: Option<TokenId>,
    cut: Cut,
    vocabulary: Vocabulary,
    first: First,
}

/// Pretokens that are known from the start, in a row.
#[derive(Debug, Default)]
struct First {
    bytes: Vec<u8>,
    /// The ids, and the byte of the pretoken where each begins.
    ids: Vec<TokenId>,
    starts: Vec<u32>,
    /// For each pretoken, where its bytes and its ids end.
    ends: Vec<(u32, u32)>,
}

impl Compiled {
    /// Compiles a file; or says why there is no fast path for it.
    pub(super) fn new(file: &File<'_>) -> Result<Self, Refusal> {
        let shape = file.shape()?;
        let vocabulary = match shape {
            Shape::ByteLevel { .. } => Vocabulary::byte_level(file)?,
            Shape::Spaces { .. } => Vocabulary::byte_fallback(file)?,
        };
        let mut first = First::default();
        vocabulary.each_first(file, |piece, merged| first.push(piece, merged));
        let entries = &file.model.vocab.0;
        let largest = entries.iter().map(|entry| entry.1).max();
        Ok(Self { settings: file.settings(), tokens: entries.len(), largest, cut: shape.into(), vocabulary, first })
    }

    /// The fast path, with the added tokens as the reference knows them.
    pub(super) fn with_added(self, added: &[AddedToken]) -> Result<Fast, Refusal> {
        let (mut normalised, raw): (Vec<_>, Vec<_>) = added.iter().cloned().partition(|token| token.normalized);
        match self.cut {
            Cut::ByteLevel { nfc: true, .. } => normalised.iter_mut().for_each(|token| {
                if let Some(normal) = normalize::nfc(&token.content) {
                    token.content = normal.text;
                }
            }),
            Cut::Spaces { prepend } => check_normalised(&normalised, prepend)?,
            Cut::ByteLevel { .. } => {}
        }
        Ok(Fast {
            raw: Matcher::new(raw),
            normalised: Matcher::new(normalised),
            cut: self.cut,
            vocabulary: self.vocabulary,
            cache: self.first.cache(),
            segments: Segments::new(),
        })
    }
}

impl From<Shape> for Cut {
    fn from(shape: Shape) -> Self {
        match shape {
            Shape::ByteLevel { splitter, nfc } => Self::ByteLevel { splitter, nfc },
            Shape::Spaces { prepend } => Self::Spaces { prepend },
        }
    }
}

impl First {
    fn push(&mut self, piece: &[u8], merged: Merged<'_>) {
        self.bytes.extend_from_slice(piece);
        self.ids.extend_from_slice(merged.ids);
        self.starts.extend_from_slice(merged.starts);
        self.ends.push((self.bytes.len() as u32, self.ids.len() as u32));
    }

    /// A cache that has met them.
    fn cache(&self) -> Cache {
        let cache = Cache::new();
        let mut from = (0, 0);
        for &(byte, id) in &self.ends {
            let to = (byte as usize, id as usize);
            let merged = Merged { ids: &self.ids[from.1..to.1], starts: &self.starts[from.1..to.1] };
            let piece = &self.bytes[from.0..to.0];
            cache.expect(Short::new(&self.bytes, from.0, to.0), piece, merged);
            from = to;
        }
        cache
    }

    /// Whether all ends lie where they can.
    fn is_laid_out(&self) -> bool {
        let sorted = self.ends.is_sorted_by(|one, other| one.0 <= other.0 && one.1 <= other.1);
        let last = self.ends.last().map_or((0, 0), |last| (last.0 as usize, last.1 as usize));
        sorted && last == (self.bytes.len(), self.ids.len()) && self.ids.len() == self.starts.len()
    }
}

impl Stored for Compiled {
    fn write(&self, out: &mut Vec<u8>) {
        self.settings.write(out);
        self.vocabulary.write(out);
        self.first.write(out);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        let settings = String::read(from)?;
        let shape = File::parse(settings.as_bytes()).ok()?.shape().ok()?;
        let (vocabulary, first) = Stored::read(from)?;
        Some(Self { settings, tokens: 0, largest: None, cut: shape.into(), vocabulary, first })
    }
}

impl Stored for First {
    fn write(&self, out: &mut Vec<u8>) {
        self.bytes.write(out);
        self.ids.write(out);
        self.starts.write(out);
        self.ends.write(out);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        let (bytes, ids) = Stored::read(from)?;
        let (starts, ends) = Stored::read(from)?;
        Some(Self { bytes, ids, starts, ends }).filter(Self::is_laid_out)
    }
}

/// Tokens of the normalised text are modelled only where the normaliser cannot touch them.
fn check_normalised(tokens: &[AddedToken], prepend: bool) -> Result<(), Refusal> {
    let touched = |token: &AddedToken| {
        prepend || token.lstrip || token.rstrip || token.single_word || token.content.contains([' ', '▁'])
    };
    match tokens.iter().find(|token| touched(token)) {
        Some(token) => Err(format!("the added token {:?} is matched after spaces have become ▁", token.content)),
        None => Ok(()),
    }
}
