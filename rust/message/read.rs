//! A reader of JSON text that makes [`Data`] at once, for text that arrives many times a second.
//!
//! *Invariant*: it accepts what `serde_json` accepts, and nothing else; it stops at the same places.

use std::borrow::Cow;

use super::json::number_from;
use super::{Data, Dict, Key, shared};

/// Deeper text is refused, as by `serde_json`.
const DEPTH: usize = 127;

impl Data {
    /// The JSON value that a text begins with, and where it ends; none if there is no whole value.
    pub(crate) fn read(text: &str) -> Option<(Self, usize)> {
        let mut reader = Reader { text, at: 0 };
        let first = reader.peek()?;
        let value = reader.value(0)?;
        // What closes itself ends there; a number or a word goes on until something else begins.
        let closed = matches!(first, b'"' | b'[' | b'{');
        let next = text.as_bytes().get(reader.at);
        let ends = closed || next.is_none_or(|next| b" \n\t\r\"[]{},:".contains(next));
        ends.then_some((value, reader.at))
    }

    /// The JSON value that is the whole text.
    pub(crate) fn read_whole(text: &str) -> Option<Self> {
        let (value, end) = Self::read(text)?;
        text.as_bytes()[end..].iter().all(|byte| is_space(*byte)).then_some(value)
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\t' | b'\r')
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The next byte that is no white space.
    fn peek(&mut self) -> Option<u8> {
        while self.byte().is_some_and(is_space) {
            self.at += 1;
        }
        self.byte()
    }

    fn take(&mut self, wanted: u8) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    fn value(&mut self, depth: usize) -> Option<Data> {
        match self.peek()? {
            b'"' => self.string().map(|text| Data::Text(text.into())),
            b'{' => self.nested(depth, Self::dict),
            b'[' => self.nested(depth, Self::list),
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.word("true", Data::Bool(true)),
            b'f' => self.word("false", Data::Bool(false)),
            b'n' => self.word("null", Data::Null),
            _ => None,
        }
    }

    fn nested(&mut self, depth: usize, read: fn(&mut Self, usize) -> Option<Data>) -> Option<Data> {
        self.at += 1;
        (depth < DEPTH).then(|| read(self, depth + 1)).flatten()
    }

    fn list(&mut self, depth: usize) -> Option<Data> {
        let mut items = Vec::new();
        if self.take(b']') {
            return Some(items.into());
        }
        loop {
            items.push(self.value(depth)?);
            if self.take(b']') {
                return Some(items.into());
            }
            self.take(b',').then_some(())?;
        }
    }

    fn dict(&mut self, depth: usize) -> Option<Data> {
        let mut entries = Dict::new();
        if self.take(b'}') {
            return Some(entries.into());
        }
        loop {
            (self.peek()? == b'"').then_some(())?;
            let key = Key::Text(shared(&self.string()?));
            self.take(b':').then_some(())?;
            entries.insert(key, self.value(depth)?);
            if self.take(b'}') {
                return Some(entries.into());
            }
            self.take(b',').then_some(())?;
        }
    }

    /// A string: a stretch of the text, or a text of its own if it holds escapes.
    fn string(&mut self) -> Option<Cow<'a, str>> {
        self.at += 1;
        let mut out = Cow::Borrowed(self.stretch()?);
        while self.byte()? != b'"' {
            self.at += 1;
            let escaped = self.escape()?;
            let out = out.to_mut();
            out.push(escaped);
            out.push_str(self.stretch()?);
        }
        self.at += 1;
        Some(out)
    }

    /// The text up to a quotation mark or a backslash; control characters must not stand in it.
    fn stretch(&mut self) -> Option<&'a str> {
        let rest = &self.text[self.at..];
        let end = memchr::memchr2(b'"', b'\\', rest.as_bytes())?;
        self.at += end;
        rest[..end].bytes().all(|byte| byte >= b' ').then(|| &rest[..end])
    }

    /// What follows a backslash.
    fn escape(&mut self) -> Option<char> {
        let byte = self.byte()?;
        self.at += 1;
        Some(match byte {
            b'"' | b'\\' | b'/' => char::from(byte),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => self.unicode()?,
            _ => return None,
        })
    }

    /// A character, or the two halves of one.
    fn unicode(&mut self) -> Option<char> {
        let high = self.digits()?;
        if let Some(character) = char::from_u32(high.into()) {
            return Some(character);
        }
        self.text.get(self.at..)?.starts_with("\\u").then(|| self.at += 2)?;
        let low = self.digits()?;
        char::decode_utf16([high, low]).next()?.ok()
    }

    fn digits(&mut self) -> Option<u16> {
        let digits = self.text.get(self.at..self.at + 4)?;
        self.at += 4;
        let plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        plain.then(|| u16::from_str_radix(digits, 16).ok()).flatten()
    }

    fn number(&mut self) -> Option<Data> {
        let start = self.at;
        self.at += usize::from(self.byte()? == b'-');
        let leading = self.byte()?;
        let whole = self.skip_digits();
        if whole == 0 || whole > 1 && leading == b'0' {
            return None;
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            (self.skip_digits() > 0).then_some(())?;
        }
        if matches!(self.byte(), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.byte(), Some(b'+' | b'-')));
            (self.skip_digits() > 0).then_some(())?;
        }
        Some(number_from(&self.text[start..self.at]))
    }

    fn skip_digits(&mut self) -> usize {
        let start = self.at;
        while self.byte().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - start
    }

    fn word(&mut self, word: &str, value: Data) -> Option<Data> {
        let found = self.text.as_bytes()[self.at..].starts_with(word.as_bytes());
        self.at += word.len();
        found.then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    /// What `serde_json` reads at the beginning of a text.
    fn peer(text: &str) -> Option<(Data, usize)> {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        let value = values.next()?.ok()?;
        Some((Data::from_value(value), values.byte_offset()))
    }

    fn check(text: &str) {
        assert_eq!(Data::read(text), peer(text), "{text:?}");
        let whole = serde_json::from_str::<Value>(text).ok().map(Data::from_value);
        assert_eq!(Data::read_whole(text), whole, "{text:?}");
    }

    proptest! {
        #[test]
        fn pieces_of_json_read_as_the_peer_reads_them(pieces in proptest::collection::vec(proptest::sample::select(vec![
            "{", "}", "[", "]", ":", ",", "\"", "\"a\"", "\"b\":", "\\", "\\n", "\\u00e9", "\\ud83d", "\\ude00", "\\u12g4",
            "\\/", "é", "\u{1}", "\n", " ", "\t", "\u{a0}", "-", "0", "01", "12", ".", ".5", "e", "E+3", "1e400", "true", "nul",
            "null", "false", "9223372036854775808",
        ]), 0..9)) {
            check(&pieces.concat());
        }

        #[test]
        fn whole_values_read_as_the_peer_reads_them(text in "[\\[{]( ?(\"[a-c]{0,2}(\\\\[nu\"])?\"|-?[0-9]{1,3}|[:,\\]}])){0,8}") {
            check(&text);
        }
    }

    #[test]
    fn deep_text_is_refused_where_the_peer_refuses_it() {
        for depth in [126, 127, 128, 129] {
            check(&format!("{}{}", "[".repeat(depth), "]".repeat(depth)));
            check(&format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth)));
        }
    }
}
