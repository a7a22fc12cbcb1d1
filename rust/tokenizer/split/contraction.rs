//! `'s|'t|'re|'ve|'m|'ll|'d`, with and without regard to case.

/// With `(?i)`, as the reference's regex engine folds: `ſ` is an `s`.
#[inline]
pub(super) fn folded(bytes: &[u8], start: usize) -> Option<usize> {
    let low = |index: usize| bytes.get(start + index).map_or(0, u8::to_ascii_lowercase);
    match (low(1), low(2)) {
        (b's' | b't' | b'm' | b'd', _) => Some(start + 2),
        (b'r' | b'v', b'e') | (b'l', b'l') | (0xC5, 0xBF) => Some(start + 3),
        _ => None,
    }
}

/// In small letters only.
#[inline]
pub(super) fn exact(bytes: &[u8], start: usize) -> Option<usize> {
    match bytes.get(start + 1..)? {
        [b's' | b't' | b'm' | b'd', ..] => Some(start + 2),
        [b'r' | b'v', b'e', ..] | [b'l', b'l', ..] => Some(start + 3),
        _ => None,
    }
}
