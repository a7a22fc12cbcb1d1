//! `wordwrap`: paragraphs wrapped as Python's `textwrap` wraps them.

use super::super::arguments::{Args, flag, integer_or, optional_text};
use super::super::characters::{is_digit, is_word};
use super::super::dump::soft;
use super::super::failure::{raise, value_error};
use super::super::methods::lines;
use super::super::render::Renderer;
use super::super::text::Text;
use super::super::value::Value;
use super::{Call, author_of};
use crate::Result;

pub(super) fn find(name: &str) -> Option<Call> {
    (name == "wordwrap").then_some(wordwrap as Call)
}

fn wordwrap<'a>(renderer: &mut Renderer<'a>, value: Value<'a>, args: Args<'a>) -> Result<Value<'a>> {
    let names = ["width", "break_long_words", "wrapstring", "break_on_hyphens"];
    let [width, long, separator, hyphens] = args.bind("wordwrap", names, 0)?;
    let width = integer_or(width.as_ref(), 79)?;
    let separator = optional_text("wordwrap", separator)?;
    let separator = separator.as_ref().map_or("\n", Text::as_str);
    if let Value::Undefined(undefined) = &value {
        return Err(undefined.error());
    }
    if value.as_text().is_none() {
        let message = format!("'{}' object has no attribute 'splitlines'", value.type_name());
        return Err(raise("AttributeError", message));
    }
    let text = soft(&value)?;
    let mut wrapped = Vec::new();
    for (start, end, _) in lines(text.as_str()) {
        if width <= 0 {
            return Err(value_error(format!("invalid width {width} (must be > 0)")));
        }
        let wrap =
            Wrap { width: width as usize, long: flag(long.as_ref(), true), hyphens: flag(hyphens.as_ref(), true) };
        wrapped.push(wrap.paragraph(&text.as_str()[start..end]).join(separator));
    }
    let wrapped = wrapped.join(separator);
    renderer.check_size(wrapped.len())?;
    Ok(Value::Text(Text::new(wrapped, author_of(&value))))
}

struct Wrap {
    width: usize,
    long: bool,
    hyphens: bool,
}

fn is_blank(char: char) -> bool {
    matches!(char, '\t' | '\n' | '\u{b}' | '\u{c}' | '\r' | ' ')
}

fn is_letter(char: char) -> bool {
    is_word(char) && !is_digit(char)
}

fn size(text: &[char]) -> usize {
    text.len()
}

impl Wrap {
    fn paragraph(&self, text: &str) -> Vec<String> {
        let chars: Vec<char> = text.chars().collect();
        let mut chunks: Vec<&[char]> = self.chunks(&chars);
        chunks.reverse();
        let mut lines: Vec<String> = Vec::new();
        while !chunks.is_empty() {
            let blank = |chunk: &[char]| chunk.iter().all(|char| is_blank(*char));
            if !lines.is_empty() && chunks.last().is_some_and(|chunk| blank(chunk)) {
                chunks.pop();
            }
            let (mut line, mut length): (Vec<&[char]>, usize) = (Vec::new(), 0);
            while let Some(chunk) = chunks.last().copied().filter(|chunk| length + size(chunk) <= self.width) {
                line.push(chunk);
                length += size(chunk);
                chunks.pop();
            }
            if let Some(chunk) = chunks.last().copied().filter(|chunk| size(chunk) > self.width) {
                self.break_long(chunk, &mut chunks, &mut line, length);
            }
            if line.last().is_some_and(|chunk| blank(chunk)) {
                line.pop();
            }
            if !line.is_empty() {
                lines.push(line.concat().into_iter().collect());
            }
        }
        lines
    }

    /// Puts what fits of a chunk that no line can hold onto the line.
    fn break_long<'c>(
        &self,
        chunk: &'c [char],
        chunks: &mut Vec<&'c [char]>,
        line: &mut Vec<&'c [char]>,
        length: usize,
    ) {
        let left = self.width.saturating_sub(length).max(usize::from(self.width < 1));
        if self.long {
            let mut end = left;
            if self.hyphens && chunk.len() > left {
                let hyphen = chunk[..left].iter().rposition(|char| *char == '-').filter(|at| *at > 0);
                if let Some(at) = hyphen.filter(|at| chunk[..*at].iter().any(|char| *char != '-')) {
                    end = at + 1;
                }
            }
            chunks.pop();
            line.push(&chunk[..end]);
            chunks.push(&chunk[end..]);
        } else if line.is_empty() {
            line.push(chunk);
            chunks.pop();
        }
    }

    /// White space and words; with hyphens, the parts of hyphenated words and dashes between words too.
    fn chunks<'c>(&self, chars: &'c [char]) -> Vec<&'c [char]> {
        let (mut chunks, mut start) = (Vec::new(), 0);
        while start < chars.len() {
            let end = self.chunk_end(chars, start);
            chunks.push(&chars[start..end]);
            start = end;
        }
        chunks
    }

    fn chunk_end(&self, chars: &[char], start: usize) -> usize {
        let run = |from: usize, holds: fn(char) -> bool| {
            chars[from..].iter().position(|char| !holds(*char)).map_or(chars.len(), |length| from + length)
        };
        if is_blank(chars[start]) {
            return run(start, is_blank);
        }
        if !self.hyphens {
            return run(start, |char| !is_blank(char));
        }
        let dashes = run(start, |char| char == '-');
        let before_dash = |at: usize| at > 0 && (is_word(chars[at - 1]) || "!\"'&.,?".contains(chars[at - 1]));
        let word_after = |at: usize| chars.get(at).is_some_and(|char| is_word(*char));
        if dashes >= start + 2 && before_dash(start) && word_after(dashes) {
            return dashes;
        }
        let mut at = start + 1;
        while at < chars.len() && !is_blank(chars[at]) {
            if chars[at] == '-' && breaks_behind(chars, at) {
                return at + 1;
            }
            let dashes = run(at, |char| char == '-');
            if dashes >= at + 2 && before_dash(at) && word_after(dashes) {
                return at;
            }
            at += 1;
        }
        at
    }
}

/// Whether a hyphen stands between letters so that a line may end behind it.
fn breaks_behind(chars: &[char], hyphen: usize) -> bool {
    let letter = |at: Option<usize>| at.and_then(|at| chars.get(at)).is_some_and(|char| is_letter(*char));
    let dash = |at: usize| chars.get(at) == Some(&'-');
    let back = |count: usize| hyphen.checked_sub(count);
    let behind = letter(back(1)) && (letter(back(2)) || (back(2).is_some_and(dash) && letter(back(3))));
    let ahead =
        letter(Some(hyphen + 1)) && (letter(Some(hyphen + 2)) || (dash(hyphen + 2) && letter(Some(hyphen + 3))));
    behind && ahead
}
