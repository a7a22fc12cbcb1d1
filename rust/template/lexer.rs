//! Source text to tokens, with Jinja's rules for white space around tags as transformers sets them.
//!
//! A block tag or comment eats the one newline behind it (`trim_blocks`) and the white space before it on its line
//! (`lstrip_blocks`); `-` eats all white space on its side and `+` keeps it.

use super::characters::is_space;
use super::literal;

/// A token. Offsets are bytes into the normalised source.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Data(Box<str>),
    VariableBegin,
    VariableEnd,
    BlockBegin,
    BlockEnd,
    Name(Box<str>),
    Text(Box<str>),
    Integer(Box<str>),
    Float(f64),
    /// An operator or bracket, by its characters.
    Operator(&'static str),
    End,
}

/// Why the source is not a template, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SyntaxError {
    pub(super) offset: usize,
    pub(super) message: String,
}

/// The tokens up to the end of the source, or up to an error.
#[derive(Debug)]
pub(super) struct Tokens {
    pub(super) tokens: Vec<(Token, usize)>,
    pub(super) error: Option<SyntaxError>,
}

/// Longer operators come first.
const OPERATORS: [&str; 26] = [
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".",
    ":", "|", ",", ";",
];

/// The source with `\n` for every line break, and without the last one.
pub(super) fn normalised(source: &str) -> String {
    let mut text = source.replace("\r\n", "\n").replace('\r', "\n");
    if text.ends_with('\n') {
        text.pop();
    }
    text
}

/// Splits a normalised source into tokens.
pub(super) fn tokenize(source: &str) -> Tokens {
    let mut lexer = Lexer { source, at: 0, line_starting: true, tokens: Vec::new() };
    let error = lexer.root().err();
    let end = error.as_ref().map_or(source.len(), |error| error.offset);
    lexer.tokens.push((Token::End, end));
    Tokens { tokens: lexer.tokens, error }
}

struct Lexer<'s> {
    source: &'s str,
    at: usize,
    /// Whether the last tag consumed a line break at its end.
    line_starting: bool,
    tokens: Vec<(Token, usize)>,
}

type Step<T = ()> = Result<T, SyntaxError>;

impl<'s> Lexer<'s> {
    fn rest(&self) -> &'s str {
        &self.source[self.at..]
    }

    fn fail<T>(&self, offset: usize, message: impl Into<String>) -> Step<T> {
        let message = message.into();
        debug_assert!(offset <= self.source.len());
        Err(SyntaxError { offset, message })
    }

    fn push(&mut self, token: Token, offset: usize) {
        self.tokens.push((token, offset));
    }

    fn root(&mut self) -> Step {
        while let Some(start) = self.next_tag() {
            let data = start..start + 2;
            let sign = self.source[data.end..].chars().next().filter(|sign| matches!(sign, '-' | '+'));
            let open = &self.source[data];
            self.data(start, sign, open == "{{");
            self.at = start + 2 + sign.map_or(0, char::len_utf8);
            match open {
                "{#" => self.comment()?,
                "{{" => self.tag(start, Token::VariableBegin, Token::VariableEnd)?,
                _ => match self.raw_start(start) {
                    Some(end) => self.raw(end)?,
                    None => self.tag(start, Token::BlockBegin, Token::BlockEnd)?,
                },
            }
        }
        let rest = self.rest();
        self.push_data(rest);
        Ok(())
    }

    fn next_tag(&self) -> Option<usize> {
        let bytes = self.source.as_bytes();
        let mut at = self.at;
        while let Some(found) = self.source[at..].find('{') {
            if matches!(bytes.get(at + found + 1), Some(b'{' | b'%' | b'#')) {
                return Some(at + found);
            }
            at += found + 1;
        }
        None
    }

    /// Emits the text before a tag, shortened as the tag's sign says.
    fn data(&mut self, tag: usize, sign: Option<char>, variable: bool) {
        let text = &self.source[self.at..tag];
        let kept = match sign {
            Some('-') => text.trim_end_matches(is_space),
            Some(_) => text,
            None if variable => text,
            None => {
                let line = text.rfind('\n').map_or(0, |at| at + 1);
                let blank = text[line..].chars().all(is_space);
                if blank && (line > 0 || self.line_starting) { &text[..line] } else { text }
            }
        };
        self.push_data(kept);
    }

    fn push_data(&mut self, text: &str) {
        if !text.is_empty() {
            self.push(Token::Data(text.into()), self.at);
        }
    }

    /// Moves behind a tag that ends at `end`.
    fn finish(&mut self, end: usize) {
        self.line_starting = self.source[..end].ends_with('\n') && end > self.at;
        self.at = end;
    }

    /// The end of a closing sequence at `at` (`%}`, `-%}`, `+%}`), with the white space it eats.
    fn closing(&self, at: usize, close: &str, plus: bool, trim: bool) -> Option<usize> {
        let rest = &self.source[at..];
        if let Some(after) = rest.strip_prefix('-').and_then(|rest| rest.strip_prefix(close)) {
            return Some(self.source.len() - after.trim_start_matches(is_space).len());
        }
        if plus && rest.strip_prefix('+').is_some_and(|rest| rest.starts_with(close)) {
            return Some(at + 1 + close.len());
        }
        let after = rest.strip_prefix(close)?;
        let newline = usize::from(trim && after.starts_with('\n'));
        Some(at + close.len() + newline)
    }

    fn comment(&mut self) -> Step {
        let start = self.at;
        let Some(found) = self.source[start..].find("#}") else {
            return self.fail(start, "missing end of comment");
        };
        let close = start + found;
        let signed = close > start && matches!(self.source.as_bytes()[close - 1], b'-' | b'+');
        let end = self.closing(close - usize::from(signed), "#}", true, true).unwrap_or(close + 2);
        self.finish(end);
        Ok(())
    }

    /// If the block tag at `start` is `raw`, where its content begins.
    fn raw_start(&self, start: usize) -> Option<usize> {
        let rest = self.rest().trim_start_matches(is_space).strip_prefix("raw")?.trim_start_matches(is_space);
        debug_assert!(start < self.at);
        self.closing(self.source.len() - rest.len(), "%}", false, false)
    }

    fn raw(&mut self, content: usize) -> Step {
        self.finish(content);
        let mut from = content;
        while let Some(found) = self.source[from..].find("{%") {
            let tag = from + found;
            let sign = self.source[tag + 2..].chars().next().filter(|sign| matches!(sign, '-' | '+'));
            let inner = &self.source[tag + 2 + sign.map_or(0, char::len_utf8)..];
            let word =
                inner.trim_start_matches(is_space).strip_prefix("endraw").map(|rest| rest.trim_start_matches(is_space));
            if let Some(end) = word.and_then(|rest| self.closing(self.source.len() - rest.len(), "%}", true, true)) {
                self.data(tag, sign, false);
                self.finish(end);
                return Ok(());
            }
            from = tag + 2;
        }
        self.fail(content, "missing end of raw block")
    }

    /// The tokens of a `{{ }}` or `{% %}` tag.
    fn tag(&mut self, start: usize, begin: Token, end: Token) -> Step {
        let block = end == Token::BlockEnd;
        let close = if block { "%}" } else { "}}" };
        self.push(begin, start);
        let mut open: Vec<&'static str> = Vec::new();
        loop {
            if open.is_empty()
                && let Some(after) = self.closing(self.at, close, block, block)
            {
                self.push(end, self.at);
                self.finish(after);
                return Ok(());
            }
            let rest = self.rest();
            let Some(first) = rest.chars().next() else { return Ok(()) };
            if is_space(first) {
                self.at += rest.len() - rest.trim_start_matches(is_space).len();
            } else if !self.number(rest) && !self.name(rest)? && !self.text(rest)? {
                self.operator(first, &mut open)?;
            }
        }
    }

    fn number(&mut self, rest: &str) -> bool {
        let after_dot = self.source[..self.at].ends_with('.');
        let Some((token, length)) = literal::number(rest, after_dot) else { return false };
        self.push(token, self.at);
        self.at += length;
        true
    }

    fn name(&mut self, rest: &str) -> Step<bool> {
        let word = |char: char| char == '_' || char.is_alphanumeric();
        let length = rest.find(|char| !word(char)).unwrap_or(rest.len());
        let name = &rest[..length];
        let Some(first) = name.chars().next() else { return Ok(false) };
        if first != '_' && !first.is_alphabetic() {
            return self.fail(self.at, "invalid character in identifier");
        }
        self.push(Token::Name(name.into()), self.at);
        self.at += length;
        Ok(true)
    }

    fn text(&mut self, rest: &str) -> Step<bool> {
        let Some(quote @ ('\'' | '"')) = rest.chars().next() else { return Ok(false) };
        let mut escaped = false;
        let close = rest.char_indices().skip(1).find(|(_, char)| {
            let closes = *char == quote && !escaped;
            escaped = *char == '\\' && !escaped;
            closes
        });
        let Some((close, _)) = close else { return Ok(false) };
        match literal::unescaped(&rest[1..close]) {
            Ok(text) => self.push(Token::Text(text.into()), self.at),
            Err(message) => return self.fail(self.at, message),
        }
        self.at += close + 1;
        Ok(true)
    }

    fn operator(&mut self, first: char, open: &mut Vec<&'static str>) -> Step {
        let rest = self.rest();
        let Some(operator) = OPERATORS.into_iter().find(|operator| rest.starts_with(operator)) else {
            return self.fail(self.at, format!("unexpected character {first:?}"));
        };
        match operator {
            "{" => open.push("}"),
            "(" => open.push(")"),
            "[" => open.push("]"),
            "}" | ")" | "]" => match open.pop() {
                None => return self.fail(self.at, format!("unexpected '{operator}'")),
                Some(expected) if expected != operator => {
                    return self.fail(self.at, format!("unexpected '{operator}', expected '{expected}'"));
                }
                Some(_) => {}
            },
            _ => {}
        }
        self.push(Token::Operator(operator), self.at);
        self.at += operator.len();
        Ok(())
    }
}
