//! Sets of bytes that are searched for: most of a turn is text that begins no mark.

use memchr::{memchr, memchr2, memchr3};

/// Some bytes, and the quickest way to find the next one of them.
#[derive(Debug, Clone)]
pub(super) struct ByteSet {
    few: Vec<u8>,
    member: [bool; 256],
}

impl ByteSet {
    pub(super) fn new(bytes: impl IntoIterator<Item = u8>) -> Self {
        let mut set = Self { few: Vec::new(), member: [false; 256] };
        for byte in bytes {
            set.insert(byte);
        }
        set
    }

    fn insert(&mut self, byte: u8) {
        if !std::mem::replace(&mut self.member[usize::from(byte)], true) {
            self.few.push(byte);
        }
    }

    /// This set with further bytes.
    pub(super) fn with(&self, bytes: impl IntoIterator<Item = u8>) -> Self {
        let mut set = self.clone();
        bytes.into_iter().for_each(|byte| set.insert(byte));
        set
    }

    pub(super) fn contains(&self, byte: u8) -> bool {
        self.member[usize::from(byte)]
    }

    /// The first place of one of the bytes.
    pub(super) fn find(&self, bytes: &[u8]) -> Option<usize> {
        match *self.few {
            [] => None,
            [one] => memchr(one, bytes),
            [one, two] => memchr2(one, two, bytes),
            [one, two, three] => memchr3(one, two, three, bytes),
            _ => bytes.iter().position(|byte| self.contains(*byte)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn the_first_member_is_found(wanted in proptest::collection::vec(0_u8..8, 0..6),
                                     bytes in proptest::collection::vec(0_u8..12, 0..80)) {
            let first = bytes.iter().position(|byte| wanted.contains(byte));
            proptest::prop_assert_eq!(ByteSet::new(wanted).find(&bytes), first);
        }
    }
}
