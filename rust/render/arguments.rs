//! Template arguments that a template never reads: most are misspelt.

use crate::template::Template;

/// A warning about an argument that the template never reads, with the nearest names that it does.
pub fn unread_argument(name: &str, template: &Template) -> Option<String> {
    if template.variables().any(|known| known == name) {
        return None;
    }
    let mut near: Vec<&str> =
        template.variables().filter(|known| distance(name, known) <= name.len().div_ceil(4)).collect();
    near.sort_unstable();
    let hint = if near.is_empty() { String::new() } else { format!("; it reads {}", near.join(", ")) };
    Some(format!("the chat template never reads the argument {name:?}{hint}"))
}

/// How many characters must be inserted, removed or replaced to make one text the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    if one.chars().count().abs_diff(other.len()) > one.len() {
        return usize::MAX;
    }
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (above, character) in one.chars().enumerate() {
        let mut corner = above;
        row[0] = above + 1;
        for (column, candidate) in other.iter().enumerate() {
            let replaced = corner + usize::from(character != *candidate);
            corner = row[column + 1];
            row[column + 1] = replaced.min(corner + 1).min(row[column] + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use super::*;

    #[test]
    fn near_spellings_are_named() {
        let source = "{# enable_thinkin #}{% if enable_thinking is defined and enable_thinking %}x{% endif %}";
        let source = &Template::compile(source).unwrap();
        assert_eq!(unread_argument("enable_thinking", source), None);
        let warning = |name| unread_argument(name, source).unwrap_or_default();
        assert!(warning("enable_thinkin").ends_with("it reads enable_thinking"), "{}", warning("enable_thinkin"));
        assert!(warning("zzz").ends_with("\"zzz\""), "{}", warning("zzz"));
    }
}
