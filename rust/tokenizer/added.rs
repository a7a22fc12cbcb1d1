//! Added tokens: the entries that are matched in the text before anything else.
//!
//! *Invariant*: of all matches the leftmost counts, of those the longest; the search goes on behind it.

use std::ops::Range;

use super::stored::Stored;
use super::trie::Trie;
use crate::{Result, TokenId};
use memchr::{memchr, memchr2, memchr3};

/// An added token and its flags, as `tokenizer.json` has them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "the five flags are the format's own")]
pub struct AddedToken {
    /// The id.
    pub id: TokenId,
    /// The text that is matched.
    pub content: String,
    /// Left out when special tokens are skipped in decoding.
    pub special: bool,
    /// White space before a match belongs to it.
    pub lstrip: bool,
    /// White space after a match belongs to it.
    pub rstrip: bool,
    /// Matched only where it is no part of a longer word.
    pub single_word: bool,
    /// Matched in the normalised text, not in the text as it was given.
    pub normalized: bool,
}

impl Stored for AddedToken {
    fn write(&self, out: &mut Vec<u8>) {
        self.id.write(out);
        self.content.write(out);
        [self.special, self.lstrip, self.rstrip, self.single_word, self.normalized].write(out);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        let (id, content) = Stored::read(from)?;
        let [special, lstrip, rstrip, single_word, normalized] = Stored::read(from)?;
        Some(Self { id, content, special, lstrip, rstrip, single_word, normalized })
    }
}

/// Where a match counts: everywhere, or only inside ranges of bytes of a text that the searched one is a part of.
#[derive(Debug, Clone, Copy)]
pub(super) enum Literal<'a> {
    All,
    Inside(&'a [Range<u32>], Place<'a>),
}

/// Where the searched text lies in the given one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Place<'a> {
    /// The byte where it begins.
    pub(super) base: u32,
    /// Where it was normalised: for each of its bytes, and for its end, the byte after `base`.
    pub(super) origin: Option<&'a [u32]>,
}

impl Place<'_> {
    #[inline]
    fn of(self, position: usize) -> u32 {
        self.base + self.origin.map_or(position as u32, |origin| origin[position])
    }
}

impl<'a> Literal<'a> {
    /// Ranges that are sorted and disjoint.
    pub(super) fn inside(ranges: &'a [Range<u32>]) -> Self {
        Self::Inside(ranges, Place::default())
    }

    /// The same for a text that lies at another place.
    pub(super) fn at<'b>(self, place: Place<'b>) -> Literal<'b>
    where
        'a: 'b,
    {
        match self {
            Self::All => Literal::All,
            Self::Inside(ranges, _) => Literal::Inside(ranges, place),
        }
    }

    fn holds(self, start: usize, end: usize) -> bool {
        let Self::Inside(ranges, place) = self else { return true };
        let (start, end) = (place.of(start), place.of(end));
        let after = ranges.partition_point(|range| range.start <= start);
        after > 0 && end <= ranges[after - 1].end
    }
}

/// A part of a text.
pub(super) enum Part {
    /// A token that was added, and the byte where it begins.
    Token(TokenId, usize),
    /// The spelling of an added token that does not count: it is encoded by itself.
    Refused(usize, usize),
    /// What is between.
    Plain(usize, usize),
}

/// A match: the token, the range of its content, and whether it counts.
#[derive(Clone, Copy)]
struct Match {
    index: usize,
    start: usize,
    end: usize,
    counts: bool,
}

/// Finds added tokens in texts.
#[derive(Debug)]
pub(super) struct Matcher {
    /// Sorted by content.
    tokens: Vec<AddedToken>,
    contents: Trie,
    first: FirstByte,
    /// For each byte, whether some entry begins with it.
    begins: Box<[bool; 256]>,
    /// For each byte, whether it may be behind the first of an entry.
    seconds: Box<[bool; 256]>,
}

/// The bytes with which the contents begin.
#[derive(Debug)]
enum FirstByte {
    None,
    One(u8),
    Two(u8, u8),
    Three(u8, u8, u8),
    Many,
}

impl Matcher {
    pub(super) fn new(mut tokens: Vec<AddedToken>) -> Self {
        tokens.retain(|token| !token.content.is_empty());
        tokens.sort_by(|one, other| one.content.cmp(&other.content));
        tokens.dedup_by(|one, other| one.content == other.content);
        let contents: Vec<&[u8]> = tokens.iter().map(|token| token.content.as_bytes()).collect();
        let mut distinct: Vec<u8> = contents.iter().map(|content| content[0]).collect();
        distinct.dedup();
        let begins = std::array::from_fn(|byte| distinct.contains(&(byte as u8)));
        let mut seconds = [false; 256];
        for content in &contents {
            match content.get(1) {
                Some(second) => seconds[usize::from(*second)] = true,
                // Whatever follows, a single byte is found.
                None => seconds = [true; 256],
            }
        }
        let first = match *distinct.as_slice() {
            [] => FirstByte::None,
            [one] => FirstByte::One(one),
            [one, two] => FirstByte::Two(one, two),
            [one, two, three] => FirstByte::Three(one, two, three),
            _ => FirstByte::Many,
        };
        let contents = Trie::new(&contents);
        Self { tokens, contents, first, begins: Box::new(begins), seconds: Box::new(seconds) }
    }

    /// Whether there is nothing to find.
    pub(super) fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Calls `part` with the parts of a text, in order. As in the reference, white space that one match has taken may
    /// be the beginning of another.
    pub(super) fn each(
        &self,
        text: &str,
        literal: Literal<'_>,
        mut part: impl FnMut(Part) -> Result<()>,
    ) -> Result<()> {
        let (mut from, mut done) = (0, 0);
        while let Some(found) = self.search(text.as_bytes(), from, literal) {
            from = found.end;
            let token = &self.tokens[found.index];
            if token.single_word && in_word(text, found.start, found.end) {
                continue;
            }
            let start = if token.lstrip { text[..found.start].trim_end().len().max(done) } else { found.start };
            let strips = token.rstrip && found.counts;
            let end = if strips { text.len() - text[found.end..].trim_start().len() } else { found.end };
            if done < start {
                part(Part::Plain(done, start))?;
            }
            // Nothing is left of a match whose text the one before has taken as its white space.
            if start < end {
                part(if found.counts { Part::Token(token.id, start) } else { Part::Refused(start, end) })?;
            }
            done = end;
        }
        if done < text.len() { part(Part::Plain(done, text.len())) } else { Ok(()) }
    }

    #[inline]
    fn search(&self, bytes: &[u8], mut from: usize, literal: Literal<'_>) -> Option<Match> {
        loop {
            from += self.candidate(bytes.get(from..)?)?;
            // Behind the last byte of the text is none: only a token of one byte fits there, and then all pass.
            let may_begin = self.seconds[usize::from(bytes.get(from + 1).copied().unwrap_or(0))];
            match if may_begin { self.longest(bytes, from, literal) } else { None } {
                Some(found) if found.counts => return Some(found),
                Some(found) => return Some(self.shortened(bytes, found, literal)),
                None => from += 1,
            }
        }
    }

    /// A match that does not count ends where one that counts begins: it hides none.
    fn shortened(&self, bytes: &[u8], refused: Match, literal: Literal<'_>) -> Match {
        let counts = |start: &usize| self.longest(bytes, *start, literal).is_some_and(|found| found.counts);
        let end = (refused.start + 1..refused.end).find(counts).unwrap_or(refused.end);
        Match { end, ..refused }
    }

    #[inline]
    fn candidate(&self, bytes: &[u8]) -> Option<usize> {
        match self.first {
            FirstByte::None => None,
            FirstByte::One(one) => memchr(one, bytes),
            FirstByte::Two(one, two) => memchr2(one, two, bytes),
            FirstByte::Three(one, two, three) => memchr3(one, two, three, bytes),
            FirstByte::Many => bytes.iter().position(|byte| self.begins[usize::from(*byte)]),
        }
    }

    /// The longest token at a position that counts; if none does, the longest.
    #[inline]
    fn longest(&self, bytes: &[u8], start: usize, literal: Literal<'_>) -> Option<Match> {
        let mut refused = None;
        for (index, length) in self.contents.prefixes(&bytes[start..]) {
            let end = start + length;
            let found = Match { index, start, end, counts: literal.holds(start, end) };
            if found.counts {
                return Some(found);
            }
            refused = refused.or(Some(found));
        }
        refused
    }
}

/// Whether a letter, digit or the like touches the range.
fn in_word(text: &str, start: usize, end: usize) -> bool {
    let word = |character: Option<char>| {
        character.is_some_and(|character| regex_syntax::try_is_word_character(character).unwrap_or(false))
    };
    word(text[..start].chars().next_back()) || word(text[end..].chars().next())
}
