//! The fast path: byte-level and byte-fallback BPE without the reference's intermediate objects.
//!
//! *Invariant*: the same ids and starts as the reference; [`super::selfcheck`] tries it at load.

use super::added::{Literal, Matcher, Part, Place};
use super::bpe::Scratch;
use super::cache::{Cache, Entry, Key};
use super::file::{File, Refusal, Shape};
use super::normalize::{self, Normalised};
use super::spaces;
use super::split::{Split, Splitter};
use super::vocab::{Symbols, Vocabulary};
use super::{AddedToken, Encoded};
use crate::{Result, TokenId};

/// The compiled tokenizer.
#[derive(Debug)]
pub(super) struct Fast {
    /// Tokens that are matched in the text as given.
    raw: Matcher,
    /// Tokens that are matched in the normalised text.
    normalised: Matcher,
    cut: Cut,
    vocabulary: Vocabulary,
    cache: Cache,
}

/// How plain text becomes pretokens.
#[derive(Debug)]
enum Cut {
    ByteLevel { splitter: Splitter, nfc: bool },
    Spaces { prepend: bool },
}

/// A text that is being encoded: a part of the given one.
struct Plain<'a> {
    text: &'a str,
    /// The byte of the given text where this one begins.
    base: u32,
    /// For each byte, where its character begins in the part of the given text; none where that is the same text.
    origin: Option<&'a [u32]>,
}

impl Plain<'_> {
    /// The byte of the given text for a byte of this one: the first of its character.
    #[inline]
    fn place(&self, position: usize) -> u32 {
        match self.origin {
            Some(origin) => self.base + origin[position],
            None => self.base + character_start(self.text.as_bytes(), position) as u32,
        }
    }
}

#[inline]
fn character_start(bytes: &[u8], mut position: usize) -> usize {
    while bytes[position] & 0xC0 == 0x80 {
        position -= 1;
    }
    position
}

/// Ids, and starts if asked for.
struct Output<'o, const STARTS: bool> {
    out: &'o mut Encoded,
    scratch: Scratch,
}

impl<const STARTS: bool> Output<'_, STARTS> {
    #[inline]
    fn push(&mut self, id: TokenId, start: impl FnOnce() -> u32) {
        self.out.ids.push(id);
        if STARTS {
            self.out.starts.push(start());
        }
    }

    #[inline]
    fn push_entry(&mut self, entry: Entry, plain: &Plain<'_>, start: usize) {
        self.push(entry.id(0), || plain.place(start));
        for index in 1..entry.len() {
            self.push(entry.id(index), || plain.place(start + entry.start(index) as usize));
        }
    }

    fn push_merged(&mut self, plain: &Plain<'_>, start: usize) {
        self.out.ids.extend_from_slice(&self.scratch.ids);
        if STARTS {
            self.out.starts.extend(self.scratch.starts.iter().map(|inside| plain.place(start + *inside as usize)));
        }
    }
}

impl Fast {
    /// The fast path of a file, with its added tokens as the reference knows them; or why there is none.
    pub(super) fn new(json: &[u8], added: &[AddedToken]) -> std::result::Result<Self, Refusal> {
        let file = File::parse(json)?;
        let (cut, vocabulary) = match file.shape()? {
            Shape::ByteLevel { splitter, nfc } => (Cut::ByteLevel { splitter, nfc }, Vocabulary::byte_level(&file)?),
            Shape::Spaces { prepend } => (Cut::Spaces { prepend }, Vocabulary::byte_fallback(&file)?),
        };
        let (mut normalised, raw): (Vec<_>, Vec<_>) = added.iter().cloned().partition(|token| token.normalized);
        match cut {
            Cut::ByteLevel { nfc: true, .. } => normalised.iter_mut().for_each(|token| {
                if let Some(normal) = normalize::nfc(&token.content) {
                    token.content = normal.text;
                }
            }),
            Cut::Spaces { prepend } => check_normalised(&normalised, prepend)?,
            Cut::ByteLevel { .. } => {}
        }
        Ok(Self { raw: Matcher::new(raw), normalised: Matcher::new(normalised), cut, vocabulary, cache: Cache::new() })
    }

    /// What the path is, for people.
    pub(super) fn name(&self) -> String {
        match &self.cut {
            Cut::ByteLevel { splitter, .. } => format!("byte-level BPE, split {}", splitter.name()),
            Cut::Spaces { .. } => "BPE with byte fallback".to_owned(),
        }
    }

    /// Adds the ids of a text.
    pub(super) fn encode<const STARTS: bool>(&self, text: &str, literal: Literal<'_>, out: &mut Encoded) -> Result<()> {
        out.ids.reserve(text.len() / 4 + 4);
        if STARTS {
            out.starts.reserve(text.len() / 4 + 4);
        }
        let mut output = Output::<STARTS> { out, scratch: Scratch::default() };
        self.raw.each(text, literal, |part| {
            match part {
                Part::Token(id, start) => output.push(id, || start as u32),
                Part::Plain(start, end) => self.segment(&text[start..end], start, literal, &mut output)?,
                Part::Refused(start, end) => self.refused(&text[start..end], start, &mut output),
            }
            Ok(())
        })
    }

    /// The form of a text in which merges and the tokens of the normalised text are looked for, if it is another.
    fn normalise(&self, text: &str) -> Option<Normalised> {
        match self.cut {
            Cut::ByteLevel { nfc: true, .. } => normalize::nfc(text),
            _ => None,
        }
    }

    /// A text in which no added token counts.
    fn refused<const STARTS: bool>(&self, text: &str, base: usize, output: &mut Output<'_, STARTS>) {
        let changed = self.normalise(text);
        let text = changed.as_ref().map_or(text, |changed| changed.text.as_str());
        let origin = changed.as_ref().map(|changed| changed.origin.as_slice());
        self.plain(&Plain { text, base: base as u32, origin }, output);
    }

    /// A text between added tokens: normalise it, then look for the tokens of the normalised text.
    fn segment<const STARTS: bool>(
        &self,
        text: &str,
        base: usize,
        literal: Literal<'_>,
        output: &mut Output<'_, STARTS>,
    ) -> Result<()> {
        let changed = self.normalise(text);
        let text = changed.as_ref().map_or(text, |changed| changed.text.as_str());
        let origin = changed.as_ref().map(|changed| changed.origin.as_slice());
        let base = base as u32;
        self.normalised.each(text, literal.at(Place { base, origin }), |part| {
            match part {
                Part::Token(id, start) => {
                    output.push(id, || base + origin.map_or(start as u32, |origin| origin[start]));
                }
                Part::Plain(start, end) | Part::Refused(start, end) => {
                    let base = if origin.is_some() { base } else { base + start as u32 };
                    let origin = origin.map(|origin| &origin[start..end]);
                    self.plain(&Plain { text: &text[start..end], base, origin }, output);
                }
            }
            Ok(())
        })
    }

    fn plain<const STARTS: bool>(&self, plain: &Plain<'_>, output: &mut Output<'_, STARTS>) {
        let bytes = plain.text.as_bytes();
        let piece = |start: usize, end: usize| self.pretoken(plain, start, end, output);
        match &self.cut {
            Cut::Spaces { prepend } => self.spaces(plain, *prepend, output),
            Cut::ByteLevel { splitter, .. } => match splitter {
                Splitter::Gpt2(splitter) => splitter.each(bytes, piece),
                Splitter::Digit(splitter) => splitter.each(bytes, piece),
                Splitter::Digits(splitter) => splitter.each(bytes, piece),
                Splitter::O200k(splitter) => splitter.each(bytes, piece),
                Splitter::Tekken(splitter) => splitter.each(bytes, piece),
                Splitter::DeepSeek(splitter) => splitter.each(bytes, piece),
                Splitter::General(splitter) => splitter.each(bytes, piece),
            },
        }
    }

    fn spaces<const STARTS: bool>(&self, plain: &Plain<'_>, prepend: bool, output: &mut Output<'_, STARTS>) {
        let Symbols::Characters { joined, .. } = &self.vocabulary.symbols else { return };
        let mut start = 0;
        while start < plain.text.len() {
            let end = spaces::next(plain.text, start, joined);
            if prepend && start == 0 {
                self.merge(plain, start, end, true, &mut output.scratch);
                output.push_merged(plain, start);
            } else {
                self.pretoken(plain, start, end, output);
            }
            start = end;
        }
    }

    #[inline]
    fn pretoken<const STARTS: bool>(
        &self,
        plain: &Plain<'_>,
        start: usize,
        end: usize,
        output: &mut Output<'_, STARTS>,
    ) {
        let key = Key::new(plain.text.as_bytes(), start, end);
        match key.and_then(|key| self.cache.get(key)) {
            Some(entry) => output.push_entry(entry, plain, start),
            None => self.missed(plain, start, end, key, output),
        }
    }

    #[cold]
    fn missed<const STARTS: bool>(
        &self,
        plain: &Plain<'_>,
        start: usize,
        end: usize,
        key: Option<Key>,
        output: &mut Output<'_, STARTS>,
    ) {
        self.merge(plain, start, end, false, &mut output.scratch);
        if let (Some(key), Some(entry)) = (key, Entry::new(&output.scratch.ids, &output.scratch.starts)) {
            self.cache.put(key, entry);
        }
        output.push_merged(plain, start);
    }

    /// The ids of a pretoken, into the scratch; with a `▁` before it if asked.
    fn merge(&self, plain: &Plain<'_>, start: usize, end: usize, prepend: bool, scratch: &mut Scratch) {
        let piece = &plain.text.as_bytes()[start..end];
        scratch.begin();
        if let Some(id) = self.vocabulary.whole.get(piece) {
            scratch.push(*id, 0);
        } else {
            match &self.vocabulary.symbols {
                Symbols::Bytes(ids) => {
                    piece.iter().enumerate().for_each(|(at, byte)| scratch.push(ids[usize::from(*byte)], at as u32));
                }
                Symbols::Characters { ids, bytes, .. } => {
                    if prepend {
                        scratch.push(ids.get(&'▁').copied().unwrap_or_default(), 0);
                    }
                    spaces::symbols(&plain.text[start..end], ids, bytes, scratch);
                }
            }
        }
        scratch.merge(&self.vocabulary.merges);
    }
}

/// Tokens of the normalised text are modelled only where the normaliser cannot touch them.
fn check_normalised(tokens: &[AddedToken], prepend: bool) -> std::result::Result<(), Refusal> {
    let touched = |token: &AddedToken| {
        prepend || token.lstrip || token.rstrip || token.single_word || token.content.contains([' ', '▁'])
    };
    match tokens.iter().find(|token| touched(token)) {
        Some(token) => Err(format!("the added token {:?} is matched after spaces have become ▁", token.content)),
        None => Ok(()),
    }
}
