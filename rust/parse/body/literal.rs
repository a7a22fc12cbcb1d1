//! Values as programming languages write them, Python's and JSON's alike, and calls in brackets.

use super::{Attempt, Region};
use crate::message::{Data, Dict, Key};
use crate::parse::compiled::{CompiledCalls, trim_start};
use crate::parse::message::Status;
use crate::parse::wire::Alphabet;

/// Deeper values are refused.
const DEPTH: usize = 100;

/// The signs of a format.
#[derive(Debug, Clone, Copy)]
pub(super) struct Signs<'a> {
    /// What stands between the name and the bracket.
    pub(super) suffix: &'a str,
    /// What stands around texts, beside quotation marks.
    pub(super) quotes: Option<&'a (Vec<u8>, Vec<u8>)>,
    pub(super) bracket: u8,
    pub(super) assign: u8,
    /// Whether the template puts all values between the signs of texts.
    pub(super) all_quoted: bool,
}

/// The value of a text, if it is one whole literal.
pub(in crate::parse) fn value(text: &str) -> Option<Data> {
    let alphabet = Alphabet::default();
    let mut reader = Reader { bytes: text.as_bytes(), at: 0, quotes: None, alphabet: &alphabet };
    let value = reader.value(0)?;
    reader.skip_space();
    (reader.at == text.len()).then_some(value)
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    quotes: Option<&'a (Vec<u8>, Vec<u8>)>,
    alphabet: &'a Alphabet,
}

impl Reader<'_> {
    fn skip_space(&mut self) {
        self.at = self.bytes.len() - trim_start(&self.bytes[self.at..]).len();
    }

    fn peek(&mut self) -> Option<u8> {
        self.skip_space();
        self.bytes.get(self.at).copied()
    }

    fn take(&mut self, wanted: u8) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    fn value(&mut self, depth: usize) -> Option<Data> {
        if depth > DEPTH {
            return None;
        }
        let next = self.peek()?;
        if let Some(text) = self.quoted() {
            return Some(text.into());
        }
        match next {
            b'"' | b'\'' => self.string(next).map(Data::from),
            b'[' | b'(' => self.list(depth),
            b'{' => self.dict(depth).map(Data::from),
            b'-' | b'0'..=b'9' => self.number(),
            _ => self.word(),
        }
    }

    /// A text between the format's own signs.
    fn quoted(&mut self) -> Option<String> {
        let (open, close) = self.quotes?;
        let rest = self.bytes[self.at..].strip_prefix(&**open)?;
        let end = rest.windows(close.len().max(1)).position(|window| window == close)?;
        self.at += open.len() + end + close.len();
        Some(self.alphabet.text(&rest[..end]).into_owned())
    }

    /// A text between quotation marks, with the escapes of Python and JSON.
    fn string(&mut self, quote: u8) -> Option<String> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = &self.bytes[self.at..];
            let end = rest.iter().position(|byte| *byte == quote || *byte == b'\\')?;
            out.push_str(&self.alphabet.text(&rest[..end]));
            self.at += end + 1;
            if rest[end] == quote {
                return Some(out);
            }
            self.escape(&mut out)?;
        }
    }

    /// What follows a backslash.
    fn escape(&mut self, out: &mut String) -> Option<()> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        match byte {
            b'n' => out.push('\n'),
            b't' => out.push('\t'),
            b'r' => out.push('\r'),
            b'b' => out.push('\u{8}'),
            b'f' => out.push('\u{c}'),
            b'\\' | b'"' | b'\'' | b'/' => out.push(char::from(byte)),
            b'\n' => {}
            b'x' => out.push(char::from_u32(self.digits(2)?)?),
            b'u' => out.push(self.unicode()?),
            b'U' => out.push(char::from_u32(self.digits(8)?)?),
            _ => {
                out.push('\\');
                self.at -= 1;
            }
        }
        Some(())
    }

    fn digits(&mut self, count: usize) -> Option<u32> {
        let digits = std::str::from_utf8(self.bytes.get(self.at..self.at + count)?).ok()?;
        let digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(digits)?;
        self.at += count;
        u32::from_str_radix(digits, 16).ok()
    }

    /// A character, or the two halves of one.
    fn unicode(&mut self) -> Option<char> {
        let high = self.digits(4)?;
        if let Some(character) = char::from_u32(high) {
            return Some(character);
        }
        self.bytes[self.at..].starts_with(b"\\u").then(|| self.at += 2)?;
        let low = self.digits(4)?;
        char::decode_utf16([high as u16, low as u16]).next()?.ok()
    }

    fn list(&mut self, depth: usize) -> Option<Data> {
        let close = if self.bytes[self.at] == b'[' { b']' } else { b')' };
        self.at += 1;
        let mut items = Vec::new();
        while !self.take(close) {
            items.push(self.value(depth + 1)?);
            if !self.take(b',') && self.peek()? != close {
                return None;
            }
        }
        Some(items.into())
    }

    fn dict(&mut self, depth: usize) -> Option<Dict> {
        self.at += 1;
        let mut entries = Dict::new();
        while !self.take(b'}') {
            let key = self.key(b':')?;
            self.take(b':').then_some(())?;
            entries.insert(key, self.value(depth + 1)?);
            if !self.take(b',') && self.peek()? != b'}' {
                return None;
            }
        }
        Some(entries)
    }

    /// A key: a text, or the bare words before `assign`.
    fn key(&mut self, assign: u8) -> Option<Key> {
        let next = self.peek()?;
        if let Some(text) = self.quoted() {
            return Some(Key::from(&*text));
        }
        if matches!(next, b'"' | b'\'') {
            return self.string(next).map(|text| Key::from(&*text));
        }
        let rest = &self.bytes[self.at..];
        let end = rest.iter().position(|byte| *byte == assign || b",(){}[]\"'\n".contains(byte))?;
        if rest[end] != assign || end == 0 {
            return None;
        }
        self.at += end;
        Some(Key::from(self.alphabet.text(&rest[..end]).trim()))
    }

    fn number(&mut self) -> Option<Data> {
        let rest = &self.bytes[self.at..];
        let length = rest.iter().position(|byte| !b"+-.eE0123456789".contains(byte)).unwrap_or(rest.len());
        let digits = std::str::from_utf8(&rest[..length]).ok()?;
        let value = Data::from_json(digits).ok()?;
        self.at += length;
        Some(value)
    }

    fn word(&mut self) -> Option<Data> {
        let rest = &self.bytes[self.at..];
        let length = rest.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_').unwrap_or(rest.len());
        let value = match &rest[..length] {
            b"true" | b"True" => Data::Bool(true),
            b"false" | b"False" => Data::Bool(false),
            b"null" | b"None" => Data::Null,
            _ => return None,
        };
        self.at += length;
        Some(value)
    }
}

/// Calls in brackets, one or several, in a list or not.
pub(super) fn read(signs: Signs<'_>, calls: &CompiledCalls, region: Region<'_>) -> Vec<Attempt> {
    let mut rest = region.bytes;
    for piece in calls.lead.pieces() {
        rest = trim_start(rest);
        rest = rest.strip_prefix(piece).unwrap_or(rest);
    }
    let start = region.bytes.len() - rest.len();
    let mut reader = Reader { bytes: region.bytes, at: start, quotes: signs.quotes, alphabet: region.alphabet };
    let mut attempts = Vec::new();
    reader.take(b'[');
    loop {
        while reader.take(b',') || reader.take(b';') {}
        let listed = reader.take(b']');
        let rest = &region.bytes[reader.at..];
        let rest = calls.trail.skip(rest).unwrap_or_else(|| trim_start(rest));
        if rest.is_empty() || listed && !region.closed {
            break;
        }
        let begin = reader.at;
        let attempt = reader.call(signs, region);
        let failed = attempt.arguments.is_none();
        attempts.push(attempt);
        if failed || reader.at == begin {
            break;
        }
    }
    if attempts.is_empty() {
        let whole = region.whole();
        attempts.push(Attempt::failed(region.broken(Status::Malformed), None, whole));
    }
    attempts
}

impl Reader<'_> {
    /// A name with its arguments. After a failure the reader stands where it was.
    fn call(&mut self, signs: Signs<'_>, region: Region<'_>) -> Attempt {
        self.skip_space();
        let start = self.at;
        let whole = start..self.bytes.len();
        let rest = &self.bytes[start..];
        let length = rest.iter().position(|byte| !is_name_byte(*byte)).unwrap_or(rest.len());
        let name = self.alphabet.text(&rest[..length]);
        let name = name.strip_suffix(signs.suffix).unwrap_or(&name).trim_end_matches('.').to_owned();
        self.at += length;
        if name.is_empty() || !self.take(signs.bracket) {
            self.at = start;
            return Attempt::failed(region.broken(Status::Malformed), None, whole);
        }
        let before = self.at;
        let typed =
            |arguments: Dict| if signs.all_quoted { retyped(&name, &arguments, region) } else { Some(arguments) };
        match self.arguments(signs).and_then(typed) {
            Some(arguments) if region.closed || self.is_followed() => {
                let status = region.called(&name);
                Attempt { name: Some(name), arguments: Some(arguments.into()), status, id: None, place: start..self.at }
            }
            Some(_) => Attempt::failed(Status::Unclosed, Some(name), whole),
            None => {
                self.at = before;
                let positional = self.value(0).is_some();
                self.at = start;
                let status = if positional { Status::Malformed } else { Status::InvalidJson };
                Attempt::failed(region.broken(status), Some(name), whole)
            }
        }
    }

    /// Whether something shows that a call is whole: the list goes on or ends.
    fn is_followed(&mut self) -> bool {
        self.peek().is_some_and(|next| matches!(next, b',' | b']' | b';' | b'`') || is_name_byte(next))
    }

    fn arguments(&mut self, signs: Signs<'_>) -> Option<Dict> {
        let close = if signs.bracket == b'{' { b'}' } else { b')' };
        let mut entries = Dict::new();
        while !self.take(close) {
            let key = self.key(signs.assign)?;
            self.take(signs.assign).then_some(())?;
            entries.insert(key, self.value(0)?);
            // After a bracket or a quotation mark one template leaves the comma out.
            let ended = b"\"']}".contains(&self.bytes[self.at - 1]);
            if !self.take(b',') && !ended && self.peek()? != close {
                return None;
            }
        }
        Some(entries)
    }
}

/// Texts as the values that their declared types say; none if one does not fit.
fn retyped(tool: &str, arguments: &Dict, region: Region<'_>) -> Option<Dict> {
    if !region.tools.declares(tool) {
        return Some(arguments.clone());
    }
    let tool = region.tools.tool(tool);
    let typed = arguments.iter().map(|(key, value)| match (key.as_text(), value.as_text()) {
        (Some(name), Some(text)) => Some((key.clone(), tool.typed(name, text)?)),
        _ => Some((key.clone(), value.clone())),
    });
    typed.collect()
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_.-:/".contains(&byte) || byte >= 0x80 && byte != 0xFF
}
