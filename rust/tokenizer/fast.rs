//! The fast path: byte-level and byte-fallback BPE without the reference's intermediate objects.
//!
//! *Invariant*: the same ids and starts as the reference; [`super::selfcheck`] tries it at load.

use std::ops::Range;

use super::Encoded;
use super::added::{Literal, Matcher, Part, Place};
use super::bpe;
use super::cache::{Cache, Few};
use super::key::{Long, Short};
use super::lane::SHORT;
use super::normalize::{self, Normalised};
use super::output::{Ground, Output};
use super::segments::{Known, Segments};
use super::split::Splitter;
use super::vocab::{Symbols, Vocabulary};
use crate::Result;

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
        let ground = Ground::given(text);
        Output::<STARTS>::with(out, |output| {
            self.raw.each(text, literal, |part| {
                match part {
                    Part::Token(id, start) => output.push(id, || start as u32),
                    Part::Plain(start, end) => self.segment(&ground, start..end, literal, output)?,
                    Part::Refused(start, end) => self.refused(&ground, start..end, output),
                }
                Ok(())
            })?;
            self.settle(&ground, output);
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

    /// Encodes a part of the given text in the form in which merges are looked for: as it stands, or on a ground of
    /// its own.
    fn in_normal_form<'o, const STARTS: bool, R>(
        &self,
        given: &Ground<'_>,
        range: Range<usize>,
        output: &mut Output<'o, STARTS>,
        encode: impl FnOnce(&Ground<'_>, Range<usize>, &mut Output<'o, STARTS>) -> R,
    ) -> R {
        let Some(Normalised { text, origin }) = self.normalise(&given.text[range.clone()]) else {
            return encode(given, range, output);
        };
        self.settle(given, output);
        let ground = Ground { text: &text, base: range.start as u32, origin: Some(&origin) };
        let encoded = encode(&ground, 0..text.len(), output);
        self.settle(&ground, output);
        encoded
    }

    /// A part of a text in which no added token counts.
    fn refused<const STARTS: bool>(&self, given: &Ground<'_>, range: Range<usize>, output: &mut Output<'_, STARTS>) {
        self.in_normal_form(given, range, output, |ground, range, output| self.plain(ground, range, output));
    }

    /// A part of a text between added tokens. Nothing outside it matters to what it becomes, so one that comes again is
    /// encoded once.
    fn segment<const STARTS: bool>(
        &self,
        given: &Ground<'_>,
        range: Range<usize>,
        literal: Literal<'_>,
        output: &mut Output<'_, STARTS>,
    ) -> Result<()> {
        let part = &given.text[range.clone()];
        let stands_alone = self.normalised.is_empty() || matches!(literal, Literal::All);
        match if stands_alone { self.segments.find(part) } else { Known::Nothing } {
            Known::Nothing => self.fresh(given, range, literal, output)?,
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
        let ground = Ground::given(text);
        Output::<true>::with(&mut encoded, |output| -> Result<()> {
            self.fresh(&ground, 0..text.len(), Literal::All, output)?;
            self.settle(&ground, output);
            Ok(())
        })?;
        Ok(encoded)
    }

    /// Encodes a part of a text between added tokens: normalises it, then looks for the tokens of the normalised text.
    fn fresh<const STARTS: bool>(
        &self,
        given: &Ground<'_>,
        range: Range<usize>,
        literal: Literal<'_>,
        output: &mut Output<'_, STARTS>,
    ) -> Result<()> {
        let base = range.start as u32;
        self.in_normal_form(given, range, output, |ground, range, output| {
            self.parts(ground, range, literal.at(Place { base, origin: ground.origin }), output)
        })
    }

    /// Looks for the tokens of the normalised text.
    fn parts<const STARTS: bool>(
        &self,
        ground: &Ground<'_>,
        range: Range<usize>,
        literal: Literal<'_>,
        output: &mut Output<'_, STARTS>,
    ) -> Result<()> {
        self.normalised.each(&ground.text[range.clone()], literal, |part| {
            match part {
                Part::Token(id, start) => output.push(id, || ground.place(range.start + start)),
                Part::Plain(start, end) | Part::Refused(start, end) => {
                    self.plain(ground, range.start + start..range.start + end, output);
                }
            }
            Ok(())
        })
    }

    #[inline(never)]
    fn plain<const STARTS: bool>(&self, ground: &Ground<'_>, range: Range<usize>, output: &mut Output<'_, STARTS>) {
        let begin = self.prepended(ground, range.clone(), output);
        let piece = |start: usize, end: usize| {
            if !output.line().push(start, end) {
                self.serve(ground, output);
            }
        };
        match &self.cut {
            Cut::Spaces { .. } => self.spaces(&ground.text[..range.end], begin, piece),
            Cut::ByteLevel { splitter, .. } => splitter.each(ground.text.as_bytes(), range, piece),
        }
        self.serve(ground, output);
    }

    /// The first piece, if a `▁` is put before it; and where the others begin.
    fn prepended<const STARTS: bool>(
        &self,
        ground: &Ground<'_>,
        range: Range<usize>,
        output: &mut Output<'_, STARTS>,
    ) -> usize {
        let (Cut::Spaces { prepend: true }, Symbols::Characters { pairs, .. }) = (&self.cut, &self.vocabulary.symbols)
        else {
            return range.start;
        };
        let end = pairs.next(&ground.text[..range.end], range.start);
        let piece = &ground.text[range.start..end];
        output.push_merged(self.vocabulary.merge(piece, true, &mut bpe::Long::default()), ground, range.start);
        end
    }

    fn spaces(&self, text: &str, mut start: usize, mut piece: impl FnMut(usize, usize)) {
        let Symbols::Characters { pairs, .. } = &self.vocabulary.symbols else { return };
        while start < text.len() {
            let end = pairs.next(text, start);
            piece(start, end);
            start = end;
        }
    }

    /// Looks up the pretokens that wait: first where all of them are, so that their entries are fetched, then one by
    /// one.
    fn serve<const STARTS: bool>(&self, ground: &Ground<'_>, output: &mut Output<'_, STARTS>) {
        output.line().fetch(ground.text.as_bytes(), &self.cache);
        self.collect(ground, output);
        output.line().clear();
    }

    /// Adds what pretokens become that were fetched.
    #[inline(never)]
    fn collect<const STARTS: bool>(&self, ground: &Ground<'_>, output: &mut Output<'_, STARTS>) {
        let mut at = 0;
        for index in 0..output.line().count() {
            let (key, place) = output.line().key(index);
            let entry = self.cache.short.get(place, key).unwrap_or(Few::NOTHING);
            if entry.len() > 0 {
                at = output.write(at, entry, ground, index);
            } else {
                output.push_page(at);
                at = 0;
                self.missed(ground, index, entry.is_many(), output);
            }
        }
        output.push_page(at);
    }

    #[cold]
    fn missed<const STARTS: bool>(
        &self,
        ground: &Ground<'_>,
        index: usize,
        is_many: bool,
        output: &mut Output<'_, STARTS>,
    ) {
        let ((start, end), (short, _)) = (output.line().piece(index), output.line().key(index));
        let piece = &ground.text[start..end];
        if (is_many || short == Short::default())
            && let Some(key) = Long::new(piece.as_bytes())
            && let Some(entry) = self.cache.long.find(key)
        {
            return output.push_many(entry, ground, start);
        }
        if piece.len() <= SHORT {
            self.vocabulary.whole.prefetch(short);
            if !output.leave_gap(start, end, short) {
                self.settle(ground, output);
            }
        } else {
            let mut long = bpe::Long::default();
            let merged = self.vocabulary.merge(piece, false, &mut long);
            self.cache.remember(short, piece.as_bytes(), merged);
            output.push_merged(merged, ground, start);
        }
    }

    /// Merges what is missing.
    fn settle<const STARTS: bool>(&self, ground: &Ground<'_>, output: &mut Output<'_, STARTS>) {
        output.settle(ground, &self.vocabulary, &self.cache);
    }
}
