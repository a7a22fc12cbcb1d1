//! The vocabulary of the fast path: symbols to begin with, merges, and whole pretokens.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::bpe::{Long, Merged};
use super::bytes::{byte_of, letters};
use super::file::{File, Refusal};
use super::lane::{self, Lane};
use super::merges::{MOST, Merge, Merges};
use super::spaces::{self, Pairs};
use super::stored::Stored;
use super::whole::Whole;
use crate::TokenId;

/// Tokens with smaller ids are met so often that they are known from the start, as far as there is room for them.
const FIRST: TokenId = 100_000;

type Ids<'a> = HashMap<&'a str, TokenId, RandomState>;

/// The symbols of bytes.
#[derive(Debug)]
pub(super) struct Bytes {
    pub(super) ids: [TokenId; 256],
    /// For each two bytes, what becomes of them.
    pub(super) pairs: Box<[Merge]>,
}

impl Bytes {
    fn new(ids: &[TokenId; 256], merges: &Merges) -> Box<Self> {
        let merge = |pair: usize| merges.get(ids[pair >> 8], ids[pair & 0xFF]);
        Box::new(Self { ids: *ids, pairs: (0..1 << 16).map(merge).collect() })
    }
}

/// What one pretoken begins with.
#[derive(Debug)]
pub(super) enum Symbols {
    /// One symbol a byte.
    Bytes(Box<Bytes>),
    /// One symbol a character, with `▁` for a space; a character that is no token is spelled in bytes.
    Characters { ids: HashMap<char, TokenId, RandomState>, bytes: Box<[TokenId; 256]>, pairs: Pairs },
}

impl Symbols {
    /// Calls with the symbols of a piece and the byte where each begins.
    fn each(&self, piece: &str, mut symbol: impl FnMut(TokenId, u32)) {
        match self {
            Self::Bytes(bytes) => {
                (0..).zip(piece.bytes()).for_each(|(at, byte)| symbol(bytes.ids[usize::from(byte)], at));
            }
            Self::Characters { ids, bytes, .. } => spaces::symbols(piece, ids, bytes, symbol),
        }
    }
}

/// The vocabulary.
#[derive(Debug)]
pub(super) struct Vocabulary {
    pub(super) symbols: Symbols,
    pub(super) merges: Merges,
    /// Pretokens that are taken whole; empty where merges decide.
    pub(super) whole: Whole,
}

impl Vocabulary {
    /// A byte-level vocabulary.
    pub(super) fn byte_level(file: &File<'_>) -> Result<Self, Refusal> {
        let ids = ids(file);
        let mut symbols = [0; 256];
        for (letter, byte) in letters() {
            let id = ids.get(letter.encode_utf8(&mut [0; 4]) as &str);
            symbols[usize::from(byte)] = *id.ok_or_else(|| format!("the vocabulary has no token for byte {byte}"))?;
        }
        let whole = if file.ignore_merges() { whole(file) } else { Whole::default() };
        let merges = merges(file, &ids)?;
        Ok(Self { symbols: Symbols::Bytes(Bytes::new(&symbols, &merges)), merges, whole })
    }

    /// A vocabulary of characters that falls back to bytes.
    pub(super) fn byte_fallback(file: &File<'_>) -> Result<Self, Refusal> {
        let ids = ids(file);
        let mut bytes = Box::new([0; 256]);
        for byte in 0..256_usize {
            let id = ids.get(format!("<0x{byte:02X}>").as_str());
            bytes[byte] = *id.ok_or_else(|| format!("the vocabulary has no token for byte {byte}"))?;
        }
        if !ids.contains_key("▁") {
            return Err("the vocabulary has no ▁".to_owned());
        }
        if file.model.merges.iter().any(|merge| [&merge.left.0, &merge.right.0].iter().any(|text| spells_byte(text))) {
            return Err("a merge joins tokens of single bytes".to_owned());
        }
        let single = |text: &str| text.chars().next().filter(|letter| letter.len_utf8() == text.len());
        let characters = ids.iter().filter_map(|(text, id)| Some((single(text)?, *id))).collect();
        let symbols = Symbols::Characters { ids: characters, bytes, pairs: pairs(file) };
        Ok(Self { symbols, merges: merges(file, &ids)?, whole: Whole::default() })
    }
}

impl Vocabulary {
    /// Merges up to [`lane::MOST`] pieces of at most [`lane::SHORT`] bytes, each in a lane of its own.
    pub(super) fn merge_short<'t>(&self, pieces: impl Iterator<Item = &'t str> + Clone, lanes: &mut [Lane]) {
        for (piece, lane) in pieces.clone().zip(&mut *lanes) {
            self.begin(piece, lane);
        }
        lane::merge(lanes, &self.merges);
        for (piece, lane) in pieces.zip(lanes) {
            lane.finish(piece.as_bytes());
        }
    }

    /// Lays a piece out for [`lane::merge`].
    fn begin(&self, piece: &str, lane: &mut Lane) {
        match (self.whole.get(piece.as_bytes()), &self.symbols) {
            (Some(id), _) => lane.take(id),
            (None, Symbols::Bytes(bytes)) => lane.fill(piece.as_bytes(), bytes),
            (None, Symbols::Characters { .. }) => {
                lane.begin();
                self.symbols.each(piece, |id, start| lane.push(id, start));
                lane.rank_all(&self.merges);
            }
        }
    }

    /// What a piece of any length becomes, with a `▁` before it if asked.
    pub(super) fn merge<'l>(&self, piece: &str, prepend: bool, long: &'l mut Long) -> Merged<'l> {
        long.begin();
        if prepend && let Symbols::Characters { ids, .. } = &self.symbols {
            long.push(ids.get(&'▁').copied().unwrap_or_default(), 0);
        }
        match self.whole.get(piece.as_bytes()) {
            Some(id) => long.push(id, 0),
            None => self.symbols.each(piece, |id, start| long.push(id, start)),
        }
        long.merged(&self.merges, piece.as_bytes())
    }

    /// Calls `piece` with what the first tokens of the vocabulary are made of, merged: they are the most frequent.
    pub(super) fn each_first(&self, file: &File<'_>, mut piece: impl FnMut(&[u8], Merged<'_>)) {
        let mut first: Vec<_> = file.model.vocab.0.iter().filter(|entry| entry.1 < FIRST).collect();
        first.sort_by_key(|entry| entry.1);
        let texts = first.into_iter().filter_map(|(text, _)| match &self.symbols {
            // No pretoken begins or ends inside a character.
            Symbols::Bytes(_) => String::from_utf8(spelled(&text.0)?).ok(),
            Symbols::Characters { .. } => Some(text.0.replace('▁', " ")),
        });
        let texts = texts.filter(|text| !text.is_empty());
        let (short, long): (Vec<_>, Vec<_>) = texts.partition(|text| text.len() <= lane::SHORT);
        let mut lanes = vec![Lane::default(); lane::MOST];
        for texts in short.chunks(lane::MOST) {
            let lanes = &mut lanes[..texts.len()];
            self.merge_short(texts.iter().map(String::as_str), lanes);
            texts.iter().zip(lanes).for_each(|(text, lane)| piece(text.as_bytes(), lane.merged()));
        }
        let mut merger = Long::default();
        for text in long {
            piece(text.as_bytes(), self.merge(&text, false, &mut merger));
        }
    }
}

impl Stored for Symbols {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Bytes(symbols) => {
                out.push(0);
                symbols.ids.write(out);
                symbols.pairs.write(out);
            }
            Self::Characters { ids, bytes, pairs } => {
                out.push(1);
                ids.iter().map(|(letter, id)| (*letter, *id)).collect::<Vec<_>>().write(out);
                bytes.write(out);
                pairs.write(out);
            }
        }
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        if u8::read(from)? == 0 {
            let (ids, pairs): ([TokenId; 256], Box<[Merge]>) = Stored::read(from)?;
            return (pairs.len() == 1 << 16).then(|| Self::Bytes(Box::new(Bytes { ids, pairs })));
        }
        let ids: Vec<(char, TokenId)> = Stored::read(from)?;
        let (bytes, pairs) = Stored::read(from)?;
        Some(Self::Characters { ids: ids.into_iter().collect(), bytes: Box::new(bytes), pairs })
    }
}

impl Stored for Vocabulary {
    fn write(&self, out: &mut Vec<u8>) {
        self.symbols.write(out);
        self.merges.write(out);
        self.whole.write(out);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        let (symbols, merges) = Stored::read(from)?;
        Some(Self { symbols, merges, whole: Stored::read(from)? })
    }
}

fn ids<'f>(file: &'f File<'_>) -> Ids<'f> {
    file.model.vocab.0.iter().map(|(text, id)| (text.0.as_ref(), *id)).collect()
}

/// The tokens of a byte-level vocabulary, by the bytes that they stand for.
fn whole(file: &File<'_>) -> Whole {
    let mut whole = Whole::with_capacity(file.model.vocab.0.len());
    for (text, id) in &file.model.vocab.0 {
        if let Some(bytes) = spelled(&text.0) {
            whole.insert(&bytes, *id);
        }
    }
    whole
}

/// The bytes that a text of letters stands for; none if one of them stands for no byte.
fn spelled(text: &str) -> Option<Vec<u8>> {
    text.chars().map(byte_of).collect()
}

fn merges(file: &File<'_>, ids: &Ids<'_>) -> Result<Merges, Refusal> {
    if file.model.merges.len() > MOST {
        return Err("the model has too many merges".to_owned());
    }
    let mut joined = String::new();
    let mut list = Vec::with_capacity(file.model.merges.len());
    for merge in &file.model.merges {
        let (left, right) = (merge.left.0.as_ref(), merge.right.0.as_ref());
        joined.clear();
        joined.push_str(left);
        joined.push_str(right);
        let id = |text: &str| ids.get(text).copied().ok_or_else(|| format!("the merge part {text:?} is no token"));
        list.push((id(left)?, id(right)?, id(&joined)?));
    }
    Ok(Merges::new(&list))
}

fn spells_byte(text: &str) -> bool {
    text.len() == 6 && text.starts_with("<0x") && text.ends_with('>')
}

/// The neighbours inside all that merges make.
fn pairs(file: &File<'_>) -> Pairs {
    let mut pairs = Pairs::new();
    for merge in &file.model.merges {
        pairs.add(&merge.left.0, &merge.right.0);
    }
    pairs
}
