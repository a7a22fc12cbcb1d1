//! Literals of the template language: numbers and the escapes of Python's string literals.

use std::fmt::Write;

use super::lexer::Token;

/// The number at the start of `rest` and its length.
pub(super) fn number(rest: &str, after_dot: bool) -> Option<(Token, usize)> {
    if !rest.starts_with(|char: char| char.is_ascii_digit()) {
        return None;
    }
    if let Some(length) = float_length(rest).filter(|_| !after_dot) {
        let digits = rest[..length].replace('_', "");
        return Some((Token::Float(digits.parse().ok()?), length));
    }
    let length = integer_length(rest);
    Some((Token::Integer(rest[..length].replace('_', "").into()), length))
}

/// The length of digits with single underscores between them.
fn digits(text: &str, digit: impl Fn(char) -> bool) -> usize {
    let mut length = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, char)) = chars.next() {
        let joined = char == '_' && at > 0 && chars.peek().is_some_and(|(_, next)| digit(*next));
        if !digit(char) && !joined {
            break;
        }
        length = at + 1;
    }
    length
}

fn decimal(text: &str) -> usize {
    digits(text, |char| char.is_ascii_digit())
}

fn float_length(rest: &str) -> Option<usize> {
    let whole = decimal(rest);
    let fraction = rest[whole..].strip_prefix('.').map_or(0, decimal);
    let mantissa = if fraction > 0 { whole + 1 + fraction } else { whole };
    let exponent = exponent_length(&rest[mantissa..]);
    (fraction > 0 || exponent > 0).then_some(mantissa + exponent)
}

fn exponent_length(rest: &str) -> usize {
    let Some(after) = rest.strip_prefix(['e', 'E']) else { return 0 };
    let unsigned = after.strip_prefix(['+', '-']).unwrap_or(after);
    match decimal(unsigned) {
        0 => 0,
        length => rest.len() - unsigned.len() + length,
    }
}

fn integer_length(rest: &str) -> usize {
    for (prefixes, radix) in [(["0b", "0B"], 2), (["0o", "0O"], 8), (["0x", "0X"], 16)] {
        if let Some(body) = prefixes.iter().find_map(|prefix| rest.strip_prefix(prefix)) {
            let skipped = usize::from(body.starts_with('_'));
            let length = digits(&body[skipped..], |char| char.is_digit(radix));
            if length > 0 {
                return 2 + skipped + length;
            }
        }
    }
    if rest.starts_with('0') { digits(rest, |char| char == '0') } else { decimal(rest) }
}

/// The text between two quotes, its escapes resolved as Python resolves them.
pub(super) fn unescaped(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = escape(&rest[at + 1..], &mut out)?;
    }
    out.push_str(rest);
    Ok(out)
}

/// Resolves the escape whose backslash stands before `text`, and returns what follows it.
fn escape<'t>(text: &'t str, out: &mut String) -> Result<&'t str, String> {
    let Some(code) = text.chars().next() else { return Err("\\ at end of string".into()) };
    let rest = &text[code.len_utf8()..];
    let simple = match code {
        '\n' => return Ok(rest),
        '\\' | '\'' | '"' => code,
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        '0'..='7' => return octal(text, out),
        'x' => return hexadecimal(rest, 2, out),
        'u' => return hexadecimal(rest, 4, out),
        'U' => return hexadecimal(rest, 8, out),
        'N' => return named(rest, out),
        _ => return Ok(unknown(code, rest, out)),
    };
    out.push(simple);
    Ok(rest)
}

/// An unknown escape stays. Python sees a character beyond ASCII here as its own escape, whose backslash is escaped.
fn unknown<'t>(code: char, rest: &'t str, out: &mut String) -> &'t str {
    out.push('\\');
    match code as u32 {
        0..0x80 => out.push(code),
        number @ 0x80..0x100 => drop(write!(out, "x{number:02x}")),
        number @ 0x100..0x1_0000 => drop(write!(out, "u{number:04x}")),
        number => drop(write!(out, "U{number:08x}")),
    }
    rest
}

fn octal<'t>(text: &'t str, out: &mut String) -> Result<&'t str, String> {
    let length = text.bytes().take(3).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
    push_code(u32::from_str_radix(&text[..length], 8).unwrap_or(0), out)?;
    Ok(&text[length..])
}

fn hexadecimal<'t>(rest: &'t str, length: usize, out: &mut String) -> Result<&'t str, String> {
    let digits = rest.get(..length).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let Some(digits) = digits else { return Err(format!("truncated escape, {length} digits expected")) };
    push_code(u32::from_str_radix(digits, 16).unwrap_or(u32::MAX), out)?;
    Ok(&rest[length..])
}

fn push_code(code: u32, out: &mut String) -> Result<(), String> {
    let char = char::from_u32(code).ok_or_else(|| match code {
        0xd800..0xe000 => "a lone surrogate cannot be written as text".to_owned(),
        _ => "illegal Unicode character".to_owned(),
    })?;
    out.push(char);
    Ok(())
}

fn named<'t>(rest: &'t str, out: &mut String) -> Result<&'t str, String> {
    let name = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
    let Some((name, rest)) = name else { return Err("malformed \\N character escape".into()) };
    let char = unicode_names2::character(name).ok_or("unknown Unicode character name")?;
    out.push(char);
    Ok(rest)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_pythons() {
        assert_eq!(unescaped(r"\t\x41\101\u00e9\U0001F600\/a\N{EM DASH}\0").unwrap(), "\tAAé😀\\/a—\0");
        assert_eq!(unescaped("a\\\nb\\é").unwrap(), "ab\\xe9");
        for broken in [r"\x4", r"\u12", r"\N{NO SUCH NAME}", r"\N", r"\ud800", r"\U00110000"] {
            assert!(unescaped(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn numbers_end_where_jinja_ends_them() {
        let cases = [("1.5x", 3), ("1.x", 1), ("1e5", 3), ("1e", 1), ("0x1F", 4), ("007", 2), ("1_000_", 5), ("0b", 1)];
        for (text, length) in cases {
            assert_eq!(number(text, false).map(|found| found.1), Some(length), "{text}");
        }
        assert_eq!(number("1.5", true), Some((Token::Integer("1".into()), 1)));
    }
}
