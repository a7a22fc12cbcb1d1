//! The texts that nearly every message holds. There is one object of each, which messages and templates share: that two
//! texts are the same mostly shows by their address.

use std::sync::{Arc, LazyLock};

static COMMON: LazyLock<[Arc<str>; 16]> = LazyLock::new(|| {
    [
        "role",
        "content",
        "user",
        "assistant",
        "tool",
        "system",
        "tool_calls",
        "type",
        "function",
        "name",
        "arguments",
        "id",
        "tool_call_id",
        "text",
        "description",
        "parameters",
    ]
    .map(Arc::from)
});

/// The common texts.
#[cfg(feature = "python")]
pub(crate) fn common() -> &'static [Arc<str>] {
    &*COMMON
}

/// The object of a common text, or a new one.
pub(crate) fn shared(text: &str) -> Arc<str> {
    let is_common = |common: &&Arc<str>| common.len() == text.len() && ***common == *text;
    COMMON.iter().find(is_common).map_or_else(|| text.into(), Arc::clone)
}

/// Equality of texts that mostly are one object, or differ in length or in the first byte.
pub(crate) fn same_text(one: &str, other: &str) -> bool {
    let first = |text: &str| text.as_bytes().first().copied();
    one.len() == other.len() && (std::ptr::eq(one, other) || (first(one) == first(other) && one == other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_texts_are_one_object_and_others_are_equal_all_the_same() {
        assert!(Arc::ptr_eq(&shared("role"), &shared("role")));
        assert!(!Arc::ptr_eq(&shared("rolf"), &shared("rolf")));
        for (one, other) in [("role", "role"), ("", ""), ("role", "rolf"), ("role", "roles"), ("é", "è")] {
            assert_eq!(same_text(&shared(one), &String::from(other)), one == other);
        }
    }
}
