//! What Python says about characters, where Rust says something else.

use super::unicode::{DECIMALS, DIGITS, FOLDS, HIDDEN, LETTERS, NUMERALS, TITLE_LETTERS, TITLES};

/// `str.isspace` and `\s`: Unicode white space and the four separators of ASCII.
pub(super) fn is_space(char: char) -> bool {
    char.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&char)
}

/// The line ends of `str.splitlines`, of which `\r\n` is one.
pub(super) fn is_line_end(char: char) -> bool {
    matches!(char, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn within(table: &[(u32, u32)], char: char) -> Option<u32> {
    let code = char as u32;
    let (start, end) = table[..table.partition_point(|(start, _)| *start <= code)].last()?;
    (code <= *end).then_some(code - start)
}

fn mapped(table: &'static [(char, &'static str)], char: char) -> Option<&'static str> {
    table.binary_search_by_key(&char, |(known, _)| *known).ok().map(|at| table[at].1)
}

/// `str.isprintable`.
pub(super) fn is_printable(char: char) -> bool {
    if char.is_ascii() { (' '..='~').contains(&char) } else { within(&HIDDEN, char).is_none() }
}

/// `str.isalpha`.
pub(super) fn is_letter(char: char) -> bool {
    if char.is_ascii() { char.is_ascii_alphabetic() } else { within(&LETTERS, char).is_some() }
}

/// The value of a decimal digit of any script.
pub(super) fn decimal(char: char) -> Option<u32> {
    within(&DECIMALS, char)
}

/// `str.isdigit`.
pub(super) fn is_digit(char: char) -> bool {
    decimal(char).is_some() || within(&DIGITS, char).is_some()
}

/// `str.isnumeric`.
pub(super) fn is_numeric(char: char) -> bool {
    is_digit(char) || within(&NUMERALS, char).is_some()
}

/// `str.isalnum` of one character.
pub(super) fn is_alphanumeric(char: char) -> bool {
    is_letter(char) || is_numeric(char)
}

/// `\w`.
pub(super) fn is_word(char: char) -> bool {
    char == '_' || is_alphanumeric(char)
}

/// Whether a letter is in title case itself.
pub(super) fn is_title(char: char) -> bool {
    !char.is_ascii() && within(&TITLE_LETTERS, char).is_some()
}

/// Whether a letter has a case.
pub(super) fn is_cased(char: char) -> bool {
    char.is_lowercase() || char.is_uppercase() || is_title(char)
}

/// Appends a character in title case.
pub(super) fn push_title(char: char, out: &mut String) {
    match mapped(&TITLES, char) {
        Some(title) => out.push_str(title),
        None => out.extend(char.to_uppercase()),
    }
}

/// Appends a character as `str.casefold` has it.
pub(super) fn push_folded(char: char, out: &mut String) {
    match mapped(&FOLDS, char) {
        Some(folded) => out.push_str(folded),
        None => out.extend(char.to_lowercase()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_pythons() {
        assert!(is_digit('²') && !is_digit('½') && is_numeric('½') && decimal('٣') == Some(3));
        assert!(!is_printable('\u{ad}') && !is_printable('\u{2028}') && is_printable('é') && is_printable('😀'));
        assert!(is_letter('é') && !is_letter('1') && is_word('_') && is_space('\u{1c}') && !is_space('\u{200b}'));
    }

    #[test]
    fn titles_are_pythons() {
        let mut out = String::new();
        for char in ['ß', 'ǆ', 'a', 'ﬁ'] {
            push_title(char, &mut out);
        }
        assert_eq!(out, "SsǅAFi");
    }
}
