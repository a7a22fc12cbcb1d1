//! The reference path: the `tokenizers` library itself, for every model type.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use tokenizers::{AddedVocabulary, DecoderWrapper, Tokenizer as Library};

use super::added::{Literal, Matcher, Part};
use super::compiled::Compiled;
use super::file::{File, Refusal};
use super::{AddedToken, Encoded, failure, library};
use crate::{Result, TokenId};

/// The library's tokenizer as loaded, and the same without added tokens.
#[derive(Debug)]
pub(super) struct Reference {
    library: Library,
    /// Made when a guarded text is first encoded: most users never need it.
    plain: OnceLock<Library>,
    matcher: OnceLock<Matcher>,
}

impl Reference {
    /// The reference of a `tokenizer.json`.
    pub(super) fn from_json(json: &[u8]) -> Result<Self> {
        Self::of(&File::parse(json), json)
    }

    /// The same of one that was parsed, if that worked.
    pub(super) fn of(file: &std::result::Result<File<'_>, Refusal>, json: &[u8]) -> Result<Self> {
        let known = file.as_ref().ok().and_then(|file| library::of(file).ok());
        let mut library = known.map_or_else(|| Library::from_bytes(json), Ok).map_err(|error| {
            failure(format!(
                "tokenizer.json: {error}; the file is truncated, or of a kind the tokenizers library does not know"
            ))
        })?;
        // What these three do to the ids (special tokens, cuts, padding) never happens here, and the first of them
        // would move offsets.
        library.with_post_processor(None::<tokenizers::PostProcessorWrapper>);
        library.with_padding(None);
        library.with_truncation(None).map_err(library_error)?;
        Ok(Self { library, plain: OnceLock::new(), matcher: OnceLock::new() })
    }

    pub(super) fn encode(&self, text: &str) -> Result<Vec<TokenId>> {
        let encoding = caught(|| self.library.encode_fast(text, false))?;
        Ok(to_ids(encoding.get_ids()))
    }

    pub(super) fn encode_with_offsets(&self, text: &str) -> Result<Encoded> {
        encode_with_offsets(&self.library, text)
    }

    /// Matches the added tokens as they are spelt. Where one does not count, its spelling is encoded by itself, and so is
    /// what is between matches.
    pub(super) fn encode_guarded(&self, text: &str, literal: &[Range<u32>]) -> Result<Encoded> {
        let matcher = self.matcher.get_or_init(|| Matcher::new(self.added_tokens()));
        let mut out = Encoded::default();
        matcher.each(text, Literal::inside(literal), |part| {
            match part {
                Part::Token(id, start) => {
                    out.ids.push(id);
                    out.starts.push(start as u32);
                }
                Part::Plain(start, end) | Part::Refused(start, end) => self.encode_plain(text, start..end, &mut out)?,
            }
            Ok(())
        })?;
        Ok(out)
    }

    /// The added tokens with the ids that the library gave them.
    pub(super) fn added_tokens(&self) -> Vec<AddedToken> {
        let tokens = self.library.get_added_tokens_decoder();
        let own = |(id, token): (u32, tokenizers::AddedToken)| AddedToken {
            id: id as TokenId,
            content: token.content,
            special: token.special,
            lstrip: token.lstrip,
            rstrip: token.rstrip,
            single_word: token.single_word,
            normalized: token.normalized,
        };
        let mut own: Vec<AddedToken> = tokens.into_iter().map(own).collect();
        own.sort_by_key(|token| token.id);
        own
    }

    fn encode_plain(&self, text: &str, range: Range<usize>, out: &mut Encoded) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let plain = self.plain.get_or_init(|| {
            let mut plain = self.library.clone();
            plain.with_added_vocabulary(AddedVocabulary::new());
            plain
        });
        let piece = encode_with_offsets(plain, &text[range.clone()])?;
        out.ids.extend(piece.ids);
        out.starts.extend(piece.starts.iter().map(|start| start + range.start as u32));
        Ok(())
    }

    pub(super) fn decode(&self, token_ids: &[TokenId], skip_special_tokens: bool) -> Result<String> {
        let ids: Vec<u32> = token_ids.iter().map(|id| *id as u32).collect();
        self.library.decode(&ids, skip_special_tokens).map_err(library_error)
    }

    pub(super) fn token(&self, id: TokenId) -> Option<String> {
        self.library.id_to_token(u32::try_from(id).ok()?)
    }

    /// Whether decoding without special tokens leaves a token out.
    pub(super) fn is_special(&self, token: &str) -> bool {
        self.library.get_added_vocabulary().is_special_token(token)
    }

    pub(super) fn id_of(&self, token: &str) -> Option<TokenId> {
        self.library.token_to_id(token).map(|id| id as TokenId)
    }

    /// One more than the largest id. The library tells it by a copy of its vocabulary; where the ids of the file are
    /// known, and no token is named twice, they say the same.
    pub(super) fn vocab_size(&self, known: Option<&Compiled>) -> usize {
        let same = known.filter(|known| known.tokens == self.library.get_vocab_size(false));
        let largest = match same {
            Some(known) => known.largest.max(self.added_tokens().last().map(|token| token.id)).map(|id| id as u32),
            None => self.library.get_vocab(true).into_values().max(),
        };
        largest.map_or(0, |id| id as usize + 1)
    }

    pub(super) fn decoder(&self) -> Option<&DecoderWrapper> {
        self.library.get_decoder()
    }

    pub(super) fn to_json(&self) -> Result<String> {
        self.library.to_string(false).map_err(library_error)
    }
}

fn encode_with_offsets(library: &Library, text: &str) -> Result<Encoded> {
    let encoding = caught(|| library.encode(text, false))?;
    let starts = encoding.get_offsets().iter().map(|offset| offset.0 as u32).collect();
    Ok(Encoded { ids: to_ids(encoding.get_ids()), starts })
}

fn to_ids(ids: &[u32]) -> Vec<TokenId> {
    ids.iter().map(|id| *id as TokenId).collect()
}

/// What the library gives; its panics, of which some added tokens with white space around them are known, are errors.
fn caught<T>(call: impl FnOnce() -> tokenizers::Result<T>) -> Result<T> {
    let called = catch_unwind(AssertUnwindSafe(call));
    called.unwrap_or_else(|_| Err("the tokenizers library panics on this text".into())).map_err(library_error)
}

fn library_error(error: impl std::fmt::Display) -> crate::Error {
    failure(format!("tokenizer: {error}"))
}
