//! Template arguments that a template never reads: most are misspelt.

use std::sync::{Arc, Mutex, PoisonError};

use super::Template;

/// The names of arguments that a template was found not to read, with what there is to say about each.
#[derive(Debug, Default)]
pub(super) struct Unread(Mutex<Vec<(Box<str>, Arc<str>)>>);

/// So many names are remembered.
const REMEMBERED: usize = 32;

impl Template {
    /// A warning about an argument that the template never reads, with the nearest names that it does.
    pub fn unread_argument(&self, name: &str) -> Option<Arc<str>> {
        if self.variables().any(|known| known == name) {
            return None;
        }
        let mut remembered = self.0.unread.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, warning)) = remembered.iter().find(|(known, _)| **known == *name) {
            return Some(warning.clone());
        }
        let warning: Arc<str> = self.unread_warning(name).into();
        if remembered.len() < REMEMBERED {
            remembered.push((name.into(), warning.clone()));
        }
        Some(warning)
    }

    fn unread_warning(&self, name: &str) -> String {
        let mut near: Vec<&str> =
            self.variables().filter(|known| distance(name, known) <= name.len().div_ceil(4)).collect();
        near.sort_unstable();
        let hint = if near.is_empty() { String::new() } else { format!("; it reads {}", near.join(", ")) };
        format!("the chat template never reads the argument {name:?}{hint}")
    }
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
        assert_eq!(source.unread_argument("enable_thinking"), None);
        let warning = |name| source.unread_argument(name).unwrap_or_default();
        assert_eq!(warning("zzz"), warning("zzz"));
        assert!(warning("enable_thinkin").ends_with("it reads enable_thinking"), "{}", warning("enable_thinkin"));
        assert!(warning("zzz").ends_with("\"zzz\""), "{}", warning("zzz"));
    }
}
