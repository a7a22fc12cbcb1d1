//! Where a short text stands in another: for the few bytes behind a turn, and for the words that templates look for. The
//! search of the standard library prepares itself for long texts first, which takes longer than to look.

use memchr::{memchr, memmem};

/// So many places are tried; a text with more of them is searched as a long one.
const TRIED: usize = 32;

/// The first place of `part` in `text`, as `str::find` tells it.
pub(crate) fn find(text: &str, part: &str) -> Option<usize> {
    let (text, part) = (text.as_bytes(), part.as_bytes());
    let Some(first) = part.first() else { return Some(0) };
    let mut from = 0;
    for _ in 0..TRIED {
        let at = from + memchr(*first, text.get(from..)?)?;
        if text[at..].starts_with(part) {
            return Some(at);
        }
        from = at + 1;
    }
    memmem::find(text.get(from..)?, part).map(|at| from + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn a_place_is_that_of_the_standard_library(text in "[ab<é😀]{0,200}", part in "[ab<é😀]{0,4}") {
            proptest::prop_assert_eq!(find(&text, &part), text.find(&part));
        }
    }

    #[test]
    fn many_beginnings_are_no_place() {
        let text = "<".repeat(100);
        assert_eq!(find(&text, "<a"), None);
        assert_eq!(find(&(text + "a"), "<a"), Some(99));
    }
}
