//! The fast path: byte-level and byte-fallback BPE without the reference's intermediate objects.
//!
//! *Invariant*: the same ids and starts as the reference; [`super::selfcheck`] tries it at load.

use super::added::{Literal, Matcher, Part, Place};
use super::bpe::Scratch;
use super::cache::{Cache, Entry, Long, Short};
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
    /// The byte of the given text for the first byte of a character of this one.
    #[inline]
    fn place(&self, position: usize) -> u32 {
        self.base + self.origin.map_or(position as u32, |origin| origin[position])
    }
}

/// So many pretokens are cut off before the first of them is looked up: by then its entry is there.
const LINE: usize = 32;

/// A pretoken that waits to be looked up.
#[derive(Clone, Copy, Default)]
struct Waiting {
    start: u32,
    end: u32,
    /// Its place in the table of short pretokens.
    place: u32,
    /// The key that no text has, if it is longer.
    key: Short,
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

    /// Writes room for three, and takes back what was not meant: that costs no branch.
    #[inline]
    fn push_entry(&mut self, entry: Entry, plain: &Plain<'_>, start: usize) {
        let count = self.out.ids.len() + entry.len();
        self.out.ids.extend_from_slice(&entry.ids());
        self.out.ids.truncate(count);
        if STARTS {
            let inside = entry.starts();
            let starts = match plain.origin {
                None => inside.map(|inside| plain.base + start as u32 + inside),
                Some(origin) => inside.map(|inside| plain.base + origin[start + inside as usize]),
            };
            self.out.starts.extend_from_slice(&starts);
            self.out.starts.truncate(count);
        }
    }

    fn push_merged(&mut self, plain: &Plain<'_>, start: usize) {
        self.out.ids.extend_from_slice(&self.scratch.ids);
        if STARTS {
            self.out.starts.extend(self.scratch.starts.iter().map(|inside| plain.place(start + *inside as usize)));
        }
    }
}

/// What of the fast path does not depend on added tokens.
#[derive(Debug)]
pub(super) struct Compiled {
    cut: Cut,
    vocabulary: Vocabulary,
}

impl Compiled {
    /// Reads a file; or says why there is no fast path for it.
    pub(super) fn new(json: &[u8]) -> std::result::Result<Self, Refusal> {
        let file = File::parse(json)?;
        let (cut, vocabulary) = match file.shape()? {
            Shape::ByteLevel { splitter, nfc } => (Cut::ByteLevel { splitter, nfc }, Vocabulary::byte_level(&file)?),
            Shape::Spaces { prepend } => (Cut::Spaces { prepend }, Vocabulary::byte_fallback(&file)?),
        };
        Ok(Self { cut, vocabulary })
    }

    /// The fast path, with the added tokens as the reference knows them.
    pub(super) fn with_added(self, added: &[AddedToken]) -> std::result::Result<Fast, Refusal> {
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
            cache: Cache::new(),
        })
    }
}

impl Fast {
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
        let begin = self.prepended(plain, output);
        let mut line = [Waiting::default(); LINE];
        let mut count = 0;
        let piece = |start: usize, end: usize| {
            line[count] = self.waiting(bytes, start, end);
            count += 1;
            if count == LINE {
                self.serve(plain, &line, output);
                count = 0;
            }
        };
        match &self.cut {
            Cut::Spaces { .. } => self.spaces(plain, begin, piece),
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
        self.serve(plain, &line[..count], output);
    }

    /// The first piece, if a `▁` is put before it; and where the others begin.
    fn prepended<const STARTS: bool>(&self, plain: &Plain<'_>, output: &mut Output<'_, STARTS>) -> usize {
        let (Cut::Spaces { prepend: true }, Symbols::Characters { pairs, .. }) = (&self.cut, &self.vocabulary.symbols)
        else {
            return 0;
        };
        let end = pairs.next(plain.text, 0);
        self.merge(plain, 0, end, true, &mut output.scratch);
        output.scratch.starts_of_characters(&plain.text.as_bytes()[..end]);
        output.push_merged(plain, 0);
        end
    }

    fn spaces(&self, plain: &Plain<'_>, mut start: usize, mut piece: impl FnMut(usize, usize)) {
        let Symbols::Characters { pairs, .. } = &self.vocabulary.symbols else { return };
        while start < plain.text.len() {
            let end = pairs.next(plain.text, start);
            piece(start, end);
            start = end;
        }
    }

    /// Takes a pretoken in, and has its entry fetched.
    #[inline]
    fn waiting(&self, bytes: &[u8], start: usize, end: usize) -> Waiting {
        let key = Short::new(bytes, start, end).unwrap_or_default();
        let place = self.cache.short.place(key);
        self.cache.short.prefetch(place);
        Waiting { start: start as u32, end: end as u32, place, key }
    }

    #[inline]
    fn serve<const STARTS: bool>(&self, plain: &Plain<'_>, line: &[Waiting], output: &mut Output<'_, STARTS>) {
        for waiting in line {
            match self.cache.short.get(waiting.place, waiting.key) {
                Some(entry) => output.push_entry(entry, plain, waiting.start as usize),
                None => self.missed(plain, *waiting, output),
            }
        }
    }

    #[cold]
    fn missed<const STARTS: bool>(&self, plain: &Plain<'_>, waiting: Waiting, output: &mut Output<'_, STARTS>) {
        let (start, end) = (waiting.start as usize, waiting.end as usize);
        let piece = &plain.text.as_bytes()[start..end];
        let short = Some(waiting.key).filter(|key| *key != Short::default());
        let long = if short.is_none() { Long::new(piece) } else { None };
        if let Some(entry) = long.and_then(|key| self.cache.long.get(self.cache.long.place(key), key)) {
            return output.push_entry(entry, plain, start);
        }
        self.merge(plain, start, end, false, &mut output.scratch);
        output.scratch.starts_of_characters(piece);
        if let Some(entry) = Entry::new(&output.scratch.ids, &output.scratch.starts) {
            match (short, long) {
                (Some(key), _) => self.cache.short.put(key, entry),
                (None, Some(key)) => self.cache.long.put(key, entry),
                (None, None) => {}
            }
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
