//! The vocabulary of the fast path: symbols to begin with, merges, and whole pretokens.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::bytes::letters;
use super::file::{File, Refusal};
use super::merges::Merges;
use super::spaces::Pairs;
use crate::TokenId;

type Ids<'a> = HashMap<&'a str, TokenId, RandomState>;

/// What one pretoken begins with.
#[derive(Debug)]
pub(super) enum Symbols {
    /// One symbol a byte.
    Bytes(Box<[TokenId; 256]>),
    /// One symbol a character, with `▁` for a space; a character that is no token is spelled in bytes.
    Characters { ids: HashMap<char, TokenId, RandomState>, bytes: Box<[TokenId; 256]>, pairs: Pairs },
}

/// The vocabulary.
#[derive(Debug)]
pub(super) struct Vocabulary {
    pub(super) symbols: Symbols,
    pub(super) merges: Merges,
    /// Pretokens that are taken whole; empty where merges decide.
    pub(super) whole: HashMap<Box<[u8]>, TokenId, RandomState>,
}

impl Vocabulary {
    /// A byte-level vocabulary.
    pub(super) fn byte_level(file: &File<'_>) -> Result<Self, Refusal> {
        let ids = ids(file);
        let mut symbols = Box::new([0; 256]);
        let mut decode = HashMap::with_hasher(RandomState::default());
        for (letter, byte) in letters() {
            let id = ids.get(letter.encode_utf8(&mut [0; 4]) as &str);
            symbols[usize::from(byte)] = *id.ok_or_else(|| format!("the vocabulary has no token for byte {byte}"))?;
            decode.insert(letter, byte);
        }
        let mut whole = HashMap::with_hasher(RandomState::default());
        if file.ignore_merges() {
            let bytes = |text: &str| text.chars().map(|letter| decode.get(&letter).copied()).collect::<Option<_>>();
            whole.extend(ids.iter().filter_map(|(text, id)| Some((bytes(text)?, *id))));
        }
        Ok(Self { symbols: Symbols::Bytes(symbols), merges: merges(file, &ids)?, whole })
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
        if file.model.merges.iter().any(|merge| [&merge.0.0, &merge.1.0].iter().any(|text| spells_byte(text))) {
            return Err("a merge joins tokens of single bytes".to_owned());
        }
        let single = |text: &str| text.chars().next().filter(|letter| letter.len_utf8() == text.len());
        let characters = ids.iter().filter_map(|(text, id)| Some((single(text)?, *id))).collect();
        let symbols = Symbols::Characters { ids: characters, bytes, pairs: pairs(file) };
        let whole = HashMap::with_hasher(RandomState::default());
        Ok(Self { symbols, merges: merges(file, &ids)?, whole })
    }
}

fn ids<'f>(file: &'f File<'_>) -> Ids<'f> {
    file.model.vocab.0.iter().map(|(text, id)| (text.0.as_ref(), *id)).collect()
}

fn merges(file: &File<'_>, ids: &Ids<'_>) -> Result<Merges, Refusal> {
    let mut joined = String::new();
    let mut list = Vec::with_capacity(file.model.merges.len());
    for merge in &file.model.merges {
        let (left, right) = (merge.0.0.as_ref(), merge.1.0.as_ref());
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
        pairs.add(&merge.0.0, &merge.1.0);
    }
    pairs
}
