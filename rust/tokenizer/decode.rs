//! Ids to text, a few at a time.
//!
//! *Invariant*: what `push` gave so far and what `finish` gives, one behind the other, is the text that the
//! `tokenizers` library decodes from all the ids at once; wherever the ids were cut.

use super::Tokenizer;
use super::pieces::{Joining, Kind, Piece};
use crate::{Result, TokenId};

/// Room for the bytes of a token.
const BYTES_PER_TOKEN: usize = 5;

const REPLACEMENT: char = char::REPLACEMENT_CHARACTER;

/// The state of a text that is decoded as its tokens arrive.
///
/// Text is given as soon as later tokens cannot change it: bytes that may be the beginning of a character wait for its
/// rest. Where the tokenizer's decoder is neither of byte-level BPE nor of BPE with byte fallback, later tokens may
/// change all that stands before them, and the whole text is given by [`TextStream::finish`].
#[derive(Debug, Clone, Default)]
pub struct TextStream {
    skip_special_tokens: bool,
    /// Spaces left out where the text begins; none is any more once the text has begun.
    stripped: usize,
    begun: bool,
    /// Bytes that wait for what completes them.
    waiting: Vec<u8>,
    /// Ids that wait for the end.
    held: Vec<TokenId>,
    count: usize,
}

impl TextStream {
    /// A stream before its first token.
    pub fn new(skip_special_tokens: bool) -> Self {
        Self { skip_special_tokens, ..Self::default() }
    }

    /// Takes the next ids, and gives the text that they settle. After an error the stream is as it was before.
    pub fn push(&mut self, tokenizer: &Tokenizer, token_ids: &[TokenId]) -> Result<String> {
        tokenizer.check_ids(token_ids, self.count)?;
        let mut text = String::new();
        match tokenizer.pieces() {
            Some(pieces) => {
                let skip = self.skip_special_tokens;
                let known = token_ids.iter().filter_map(|id| pieces.get(*id));
                self.add(pieces.joining, known.filter(|piece| !(skip && piece.special)), &mut text);
            }
            None => self.held.extend_from_slice(token_ids),
        }
        self.count += token_ids.len();
        Ok(text)
    }

    /// Gives what still waits: no token follows. The stream is then as it was before its first token.
    pub fn finish(&mut self, tokenizer: &Tokenizer) -> Result<String> {
        let mut text = String::new();
        match tokenizer.pieces() {
            Some(pieces) => match pieces.joining {
                Joining::Bytes => text.push_str(&String::from_utf8_lossy(&self.waiting)),
                Joining::Runs { strip } => self.end_run(strip, &mut text),
            },
            None => text = tokenizer.decode_whole(&self.held, self.skip_special_tokens)?,
        }
        *self = Self::new(self.skip_special_tokens);
        Ok(text)
    }

    fn add<'a>(&mut self, joining: Joining, pieces: impl Iterator<Item = Piece<'a>>, text: &mut String) {
        match joining {
            Joining::Bytes => {
                let mut bytes = std::mem::take(&mut self.waiting);
                bytes.reserve(BYTES_PER_TOKEN * pieces.size_hint().1.unwrap_or(0));
                pieces.for_each(|piece| bytes.extend_from_slice(piece.bytes));
                self.settle(&bytes, text);
            }
            Joining::Runs { strip } => pieces.for_each(|piece| {
                if piece.kind == Kind::Byte {
                    self.waiting.extend_from_slice(piece.bytes);
                } else {
                    self.end_run(strip, text);
                    self.write(strip, &String::from_utf8_lossy(piece.bytes), text);
                }
            }),
        }
    }

    /// Writes whole characters and U+FFFD; keeps the beginning of a character that may yet be completed.
    fn settle(&mut self, bytes: &[u8], text: &mut String) {
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            let invalid = chunk.invalid();
            if chunks.peek().is_none() && may_be_completed(invalid) {
                self.waiting = invalid.to_vec();
            } else if !invalid.is_empty() {
                text.push(REPLACEMENT);
            }
        }
    }

    /// Writes a run of single-byte tokens: as text, or as one U+FFFD a byte.
    fn end_run(&mut self, strip: usize, text: &mut String) {
        if self.waiting.is_empty() {
            return;
        }
        let run = String::from_utf8(std::mem::take(&mut self.waiting))
            .unwrap_or_else(|error| REPLACEMENT.to_string().repeat(error.as_bytes().len()));
        self.write(strip, &run, text);
    }

    /// Writes text, without the spaces that are left out where all begins.
    fn write(&mut self, strip: usize, new: &str, text: &mut String) {
        let mut rest = new;
        while !self.begun && self.stripped < strip && rest.starts_with(' ') {
            rest = &rest[1..];
            self.stripped += 1;
        }
        self.begun |= !rest.is_empty();
        text.push_str(rest);
    }
}

/// Whether bytes are the beginning of a character.
fn may_be_completed(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use super::*;
    use crate::tokenizer::tests::byte_level;

    /// The texts of a stream that is cut at one place, and of the whole.
    fn check(tokenizer: &Tokenizer, ids: &[TokenId], skip: bool) {
        let whole = tokenizer.decode_whole(ids, skip).unwrap();
        for cut in 0..=ids.len() {
            let mut stream = TextStream::new(skip);
            let parts = [&ids[..cut], &ids[cut..]].map(|part| stream.push(tokenizer, part).unwrap());
            assert_eq!(parts.concat() + &stream.finish(tokenizer).unwrap(), whole, "cut at {cut} of {ids:?}");
        }
        let mut stream = TextStream::new(skip);
        let parts: String = ids.iter().map(|id| stream.push(tokenizer, &[*id]).unwrap()).collect();
        assert_eq!(parts + &stream.finish(tokenizer).unwrap(), whole, "{ids:?}");
    }

    /// Single bytes, `▁a`, a space alone, and a special token; the decoder of Llama 2.
    fn byte_fallback() -> Tokenizer {
        let mut vocab: serde_json::Map<String, serde_json::Value> =
            (0..256).map(|byte| (format!("<0x{byte:02X}>"), byte.into())).collect();
        vocab.extend([("▁a".to_owned(), 256.into()), ("▁".to_owned(), 257.into())]);
        let json = serde_json::json!({"version": "1.0", "added_tokens": [{"id": 258, "content": "<s>", "special": true,
            "single_word": false, "lstrip": false, "rstrip": false, "normalized": false}],
            "decoder": {"type": "Sequence", "decoders": [
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"},
                {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
            "model": {"type": "BPE", "vocab": vocab, "merges": [], "byte_fallback": true}});
        Tokenizer::from_json(json.to_string().as_bytes()).unwrap()
    }

    proptest::proptest! {
        #[test]
        fn any_cut_gives_the_whole_text(
            ids in proptest::collection::vec(proptest::sample::select(vec![
                0, 32, 97, 0xC3, 0xA9, 0xE5, 0x8F, 0xAB, 0xF0, 0x9F, 0x98, 0x80, 0xFF, 256, 257,
            ]), 0..14),
            skip in proptest::bool::ANY,
        ) {
            check(&byte_level(), &ids, skip);
            check(&byte_fallback(), &ids, skip);
        }
    }

    #[test]
    fn a_character_is_given_when_its_last_byte_arrives() {
        let tokenizer = byte_level();
        let ids = tokenizer.encode("é😀").unwrap();
        let mut stream = TextStream::new(false);
        let parts: Vec<String> = ids.iter().map(|id| stream.push(&tokenizer, &[*id]).unwrap()).collect();
        assert_eq!(parts, ["", "é", "", "", "", "😀"]);
    }

    #[test]
    fn an_unknown_id_changes_nothing() {
        let tokenizer = byte_level();
        let mut stream = TextStream::new(false);
        let ids = tokenizer.encode("ab").unwrap();
        stream.push(&tokenizer, &ids).unwrap();
        let error = stream.push(&tokenizer, &[ids[0], 999]).unwrap_err();
        assert!(error.message().starts_with("token 3: "), "{error}");
        assert_eq!(stream.push(&tokenizer, &ids[1..]).unwrap(), "b");
    }
}
