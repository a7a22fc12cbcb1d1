//! Data as bytes and back, for the files of [`super::Store`].
//!
//! *Invariant*: [`Stored::read`] gives what [`Stored::write`] was given, or nothing; no bytes make it panic or take more
//! memory than they themselves do, but for a constant factor.

/// What can be written to a file and read again by the same build.
pub(super) trait Stored: Sized {
    /// Adds the bytes.
    fn write(&self, out: &mut Vec<u8>);

    /// Takes them off the front; none if they are something else.
    fn read(from: &mut &[u8]) -> Option<Self>;

    /// Takes so many off the front.
    fn read_many(from: &mut &[u8], count: usize) -> Option<Vec<Self>> {
        // Nothing is shorter than a byte, so a count that is wrong reserves no more than the file's size.
        let mut many = Vec::with_capacity(Some(count).filter(|count| *count <= from.len())?);
        for _ in 0..count {
            many.push(Self::read(from)?);
        }
        Some(many)
    }
}

/// The first bytes, taken off.
fn take<const COUNT: usize>(from: &mut &[u8]) -> Option<[u8; COUNT]> {
    let (first, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(*first)
}

macro_rules! number {
    ($($kind:ty),*) => {$(
        impl Stored for $kind {
            fn write(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            fn read(from: &mut &[u8]) -> Option<Self> {
                take(from).map(Self::from_le_bytes)
            }
        }
    )*};
}

number!(u32, i32, u64);

impl Stored for u8 {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(*self);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        take(from).map(|[byte]| byte)
    }

    fn read_many(from: &mut &[u8], count: usize) -> Option<Vec<Self>> {
        let (bytes, rest) = from.split_at_checked(count)?;
        *from = rest;
        Some(bytes.to_vec())
    }
}

impl Stored for usize {
    fn write(&self, out: &mut Vec<u8>) {
        (*self as u64).write(out);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        u64::read(from)?.try_into().ok()
    }
}

impl Stored for bool {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        match u8::read(from)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl Stored for char {
    fn write(&self, out: &mut Vec<u8>) {
        u32::from(*self).write(out);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        Self::from_u32(u32::read(from)?)
    }
}

impl<T: Stored> Stored for Vec<T> {
    fn write(&self, out: &mut Vec<u8>) {
        write_all(self, out);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        let count = usize::read(from)?;
        T::read_many(from, count)
    }
}

impl<T: Stored> Stored for Box<[T]> {
    fn write(&self, out: &mut Vec<u8>) {
        write_all(self, out);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        Vec::read(from).map(Vec::into_boxed_slice)
    }
}

/// The number of items, and the items.
fn write_all<T: Stored>(items: &[T], out: &mut Vec<u8>) {
    items.len().write(out);
    for item in items {
        item.write(out);
    }
}

impl Stored for String {
    fn write(&self, out: &mut Vec<u8>) {
        self.len().write(out);
        out.extend_from_slice(self.as_bytes());
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        Self::from_utf8(Vec::read(from)?).ok()
    }
}

impl<A: Stored, B: Stored> Stored for (A, B) {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
        self.1.write(out);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        Some((A::read(from)?, B::read(from)?))
    }
}

impl<T: Stored + std::fmt::Debug, const COUNT: usize> Stored for [T; COUNT] {
    fn write(&self, out: &mut Vec<u8>) {
        for item in self {
            item.write(out);
        }
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        T::read_many(from, COUNT)?.try_into().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Everything = (Vec<(u32, String)>, (Box<[u64]>, ([u8; 3], (Vec<bool>, (Vec<char>, usize)))));

    proptest::proptest! {
        #[test]
        fn what_is_written_is_read(
            pairs: Vec<(u32, String)>, words: Vec<u64>, three: [u8; 3], flags: Vec<bool>, letters: Vec<char>, size: usize,
        ) {
            let value: Everything = (pairs, (words.into(), (three, (flags, (letters, size)))));
            let mut bytes = Vec::new();
            value.write(&mut bytes);
            let mut rest = bytes.as_slice();
            assert_eq!(Everything::read(&mut rest), Some(value));
            assert!(rest.is_empty());
            for cut in (0..bytes.len()).step_by(1 + bytes.len() / 16) {
                assert_eq!(Everything::read(&mut &bytes[..cut]), None);
            }
        }

        #[test]
        fn other_bytes_are_nothing_worse(bytes: Vec<u8>) {
            _ = Everything::read(&mut bytes.as_slice());
        }
    }

    #[test]
    fn a_count_that_is_wrong_reserves_nothing() {
        assert_eq!(Vec::<String>::read(&mut u64::MAX.to_le_bytes().as_slice()), None);
    }
}
