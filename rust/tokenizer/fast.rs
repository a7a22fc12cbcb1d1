//! The fast path: byte-level and byte-fallback BPE without the reference's intermediate objects.
//!
//! *Invariant*: the same ids and starts as the reference; [`super::selfcheck`] tries it at load.

use std::ops::Range;

use super::Encoded;
use super::added::{Literal, Matcher, Part, Place};
use super::bpe::Scratch;
use super::cache::{Cache, Few, Long, Many, Short};
use super::normalize::{self, Normalised};
use super::segments::{Known, Segments};
use super::split::Splitter;
use super::vocab::{Symbols, Vocabulary};
use crate::{Result, TokenId};

/// The compiled tokenizer.
#[derive(Debug)]
pub(super) struct Fast {
    /// Tokens that are matched in the text as given.
    pub(super) raw: Matcher,
    /// Tokens that are matched in the normalised text.
    pub(super) normalised: Matcher,
    pub(super) cut: Cut,
    pub(super) vocabulary: Vocabulary,
    pub(super) cache: Cache,
    pub(super) segments: Segments,
}

/// How plain text becomes pretokens.
#[derive(Debug)]
pub(super) enum Cut {
    ByteLevel { splitter: Splitter, nfc: bool },
    Spaces { prepend: bool },
}

/// A text that is being encoded: a part of the given one.
struct Plain<'a> {
    text: &'a str,
    /// The bytes of the text and what lies behind it, which may be read but changes nothing.
    reach: &'a [u8],
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

/// Pretokens that wait to be looked up.
struct Line {
    pieces: [(u32, u32); LINE],
    count: usize,
}

/// What they are looked up by, and where.
type Keys = [(Short, u32); LINE];

impl Line {
    const EMPTY: Self = Self { pieces: [(0, 0); LINE], count: 0 };

    /// Takes a pretoken in; whether there is room for another.
    #[inline]
    fn push(&mut self, start: usize, end: usize) -> bool {
        self.pieces[self.count % LINE] = (start as u32, end as u32);
        self.count += 1;
        self.count < LINE
    }
}

/// What a line of pretokens becomes: up to three ids each.
struct Page {
    ids: [TokenId; 3 * LINE],
    starts: [u32; 3 * LINE],
}

impl Page {
    const EMPTY: Self = Self { ids: [0; 3 * LINE], starts: [0; 3 * LINE] };

    /// Writes three ids, of which those that are meant count: that costs no branch. The place behind them.
    #[inline]
    fn write<const STARTS: bool>(&mut self, at: usize, entry: Few, plain: &Plain<'_>, start: u32) -> usize {
        if let Some(place) = self.ids.get_mut(at..).and_then(<[_]>::first_chunk_mut) {
            *place = entry.ids();
        }
        if STARTS && let Some(place) = self.starts.get_mut(at..).and_then(<[_]>::first_chunk_mut) {
            let [one, two, three] = entry.starts();
            let of = |inside: u32| plain.place((start + inside) as usize);
            *place = [of(one), of(two), of(three)];
        }
        at + entry.len()
    }
}

/// Ids, and starts if asked for; and what is used again from line to line.
struct Output<'o, const STARTS: bool> {
    out: &'o mut Encoded,
    scratch: Scratch,
    keys: Keys,
    page: Page,
}

impl<'o, const STARTS: bool> Output<'o, STARTS> {
    fn new(out: &'o mut Encoded) -> Self {
        Self { out, scratch: Scratch::default(), keys: [(Short::default(), 0); LINE], page: Page::EMPTY }
    }

    #[inline]
    fn push(&mut self, id: TokenId, start: impl FnOnce() -> u32) {
        self.out.ids.push(id);
        if STARTS {
            self.out.starts.push(start());
        }
    }

    /// Adds what was written to the page.
    #[inline]
    fn push_page(&mut self, count: usize) {
        self.out.ids.extend_from_slice(&self.page.ids[..count]);
        if STARTS {
            self.out.starts.extend_from_slice(&self.page.starts[..count]);
        }
    }

    fn push_merged(&mut self, plain: &Plain<'_>, start: usize) {
        self.out.ids.extend_from_slice(&self.scratch.ids);
        if STARTS {
            self.out.starts.extend(self.scratch.starts.iter().map(|inside| plain.place(start + *inside as usize)));
        }
    }

    /// Adds what a part of the given text becomes, which begins at the byte `base`.
    fn push_encoded(&mut self, encoded: &Encoded, base: u32) {
        self.out.ids.extend_from_slice(&encoded.ids);
        if STARTS {
            self.out.starts.extend(encoded.starts.iter().map(|start| base + start));
        }
    }

    fn push_many(&mut self, entry: Many, plain: &Plain<'_>, start: usize) {
        for (id, inside) in entry.each() {
            self.push(id, || plain.place(start + inside as usize));
        }
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
        let room = text.len() / 3 + 4;
        out.ids.reserve(room);
        if STARTS {
            out.starts.reserve(room);
        }
        let mut output = Output::<STARTS>::new(out);
        self.raw.each(text, literal, |part| {
            match part {
                Part::Token(id, start) => output.push(id, || start as u32),
                Part::Plain(start, end) => self.segment(text, start..end, literal, &mut output)?,
                Part::Refused(start, end) => self.refused(text, start..end, &mut output),
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

    /// A part of a text in which no added token counts.
    fn refused<const STARTS: bool>(&self, text: &str, range: Range<usize>, output: &mut Output<'_, STARTS>) {
        let base = range.start as u32;
        let plain = &text[range.clone()];
        match self.normalise(plain) {
            None => {
                self.plain(&Plain { text: plain, reach: &text.as_bytes()[range.start..], base, origin: None }, output);
            }
            Some(Normalised { text, origin }) => {
                self.plain(&Plain { text: &text, reach: text.as_bytes(), base, origin: Some(&origin) }, output);
            }
        }
    }

    /// A part of a text between added tokens. Nothing outside it matters to what it becomes, so one that comes again is
    /// encoded once.
    fn segment<const STARTS: bool>(
        &self,
        text: &str,
        range: Range<usize>,
        literal: Literal<'_>,
        output: &mut Output<'_, STARTS>,
    ) -> Result<()> {
        let part = &text[range.clone()];
        let stands_alone = self.normalised.is_empty() || matches!(literal, Literal::All);
        match if stands_alone { self.segments.find(part) } else { Known::Nothing } {
            Known::Nothing => self.fresh(text, range, literal, output)?,
            Known::Kept(segment) => output.push_encoded(&segment.encoded, range.start as u32),
            Known::Again(hash) => {
                let segment = self.segments.keep(hash, part, self.alone(part)?);
                output.push_encoded(&segment.encoded, range.start as u32);
            }
        }
        Ok(())
    }

    /// What a text between added tokens becomes.
    #[cold]
    fn alone(&self, text: &str) -> Result<Encoded> {
        let mut encoded = Encoded::default();
        let mut output = Output::<true>::new(&mut encoded);
        self.fresh(text, 0..text.len(), Literal::All, &mut output)?;
        Ok(encoded)
    }

    /// Encodes a part of a text between added tokens: normalises it, then looks for the tokens of the normalised text.
    fn fresh<const STARTS: bool>(
        &self,
        text: &str,
        range: Range<usize>,
        literal: Literal<'_>,
        output: &mut Output<'_, STARTS>,
    ) -> Result<()> {
        let base = range.start as u32;
        let changed = self.normalise(&text[range.clone()]);
        let (text, reach) = match &changed {
            None => (&text[range.clone()], &text.as_bytes()[range.start..]),
            Some(changed) => (changed.text.as_str(), changed.text.as_bytes()),
        };
        let origin = changed.as_ref().map(|changed| changed.origin.as_slice());
        self.normalised.each(text, literal.at(Place { base, origin }), |part| {
            match part {
                Part::Token(id, start) => {
                    output.push(id, || base + origin.map_or(start as u32, |origin| origin[start]));
                }
                Part::Plain(start, end) | Part::Refused(start, end) => {
                    let base = if origin.is_some() { base } else { base + start as u32 };
                    let origin = origin.map(|origin| &origin[start..end]);
                    self.plain(&Plain { text: &text[start..end], reach: &reach[start..], base, origin }, output);
                }
            }
            Ok(())
        })
    }

    #[inline(never)]
    fn plain<const STARTS: bool>(&self, plain: &Plain<'_>, output: &mut Output<'_, STARTS>) {
        let (bytes, range) = (plain.reach, 0..plain.text.len());
        let begin = self.prepended(plain, output);
        let mut line = Line::EMPTY;
        let piece = |start: usize, end: usize| {
            if !line.push(start, end) {
                self.serve(plain, &line, output);
                line.count = 0;
            }
        };
        match &self.cut {
            Cut::Spaces { .. } => self.spaces(plain, begin, piece),
            Cut::ByteLevel { splitter, .. } => splitter.each(bytes, range, piece),
        }
        self.serve(plain, &line, output);
    }

    /// The first piece, if a `▁` is put before it; and where the others begin.
    fn prepended<const STARTS: bool>(&self, plain: &Plain<'_>, output: &mut Output<'_, STARTS>) -> usize {
        let (Cut::Spaces { prepend: true }, Symbols::Characters { pairs, .. }) = (&self.cut, &self.vocabulary.symbols)
        else {
            return 0;
        };
        let end = pairs.next(plain.text, 0);
        self.vocabulary.merge_text(&plain.text[..end], true, &mut output.scratch);
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

    /// Looks pretokens up: first where all of them are, so that their entries are fetched, then one by one.
    fn serve<const STARTS: bool>(&self, plain: &Plain<'_>, line: &Line, output: &mut Output<'_, STARTS>) {
        let count = line.count.min(LINE);
        self.fetch(plain.reach, &line.pieces[..count], &mut output.keys);
        self.collect(plain, &line.pieces[..count], output);
    }

    /// Lays out keys, and fetches what stands at their places.
    #[inline(never)]
    fn fetch(&self, bytes: &[u8], pieces: &[(u32, u32)], keys: &mut Keys) {
        for (&(start, end), slot) in pieces.iter().zip(keys) {
            let key = Short::new(bytes, start as usize, end as usize);
            let place = self.cache.short.place(key);
            self.cache.short.prefetch(place);
            *slot = (key, place);
        }
    }

    /// Adds what pretokens become, whose keys are laid out.
    #[inline(never)]
    fn collect<const STARTS: bool>(&self, plain: &Plain<'_>, pieces: &[(u32, u32)], output: &mut Output<'_, STARTS>) {
        let mut at = 0;
        for (index, &(start, end)) in pieces.iter().enumerate().take(LINE) {
            let (key, place) = output.keys[index];
            let entry = self.cache.short.get(place, key);
            if let Some(entry) = entry.filter(|entry| entry.len() > 0) {
                at = output.page.write::<STARTS>(at, entry, plain, start);
            } else {
                output.push_page(at);
                at = 0;
                self.missed(plain, start as usize, end as usize, key, entry.is_some(), output);
            }
        }
        output.push_page(at);
    }

    #[cold]
    fn missed<const STARTS: bool>(
        &self,
        plain: &Plain<'_>,
        start: usize,
        end: usize,
        short: Short,
        is_many: bool,
        output: &mut Output<'_, STARTS>,
    ) {
        let piece = &plain.text.as_bytes()[start..end];
        if (is_many || short == Short::default())
            && let Some(entry) = Long::new(piece).and_then(|key| self.cache.long.get(self.cache.long.place(key), key))
        {
            return output.push_many(entry, plain, start);
        }
        match &self.vocabulary.symbols {
            Symbols::Bytes(bytes) => self.vocabulary.merge_bytes(piece, bytes, &mut output.scratch),
            Symbols::Characters { .. } => {
                self.vocabulary.merge_text(&plain.text[start..end], false, &mut output.scratch);
            }
        }
        output.scratch.starts_of_characters(piece);
        self.cache.remember(short, piece, &output.scratch);
        output.push_merged(plain, start);
    }
}
