//! Runs of ASCII characters, eight bytes at a time.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// The topmost bit of every byte between two characters of ASCII, these included.
#[inline]
const fn between(word: u64, low: u8, high: u8) -> u64 {
    let seven = word & !HIGH;
    let from = seven + ONES * (0x80 - low as u64);
    let beyond = seven + ONES * (0x7F - high as u64);
    from & !beyond & !word & HIGH
}

/// The place after the run of bytes that a test marks; no further than eight bytes before the end of the text.
#[inline]
fn run(bytes: &[u8], mut position: usize, marks: impl Fn(u64) -> u64) -> usize {
    while let Some(word) = bytes.get(position..position + 8).and_then(|word| <[u8; 8]>::try_from(word).ok()) {
        let others = !marks(u64::from_le_bytes(word)) & HIGH;
        if others != 0 {
            return position + (others.trailing_zeros() / 8) as usize;
        }
        position += 8;
    }
    position
}

/// Past ASCII letters.
#[inline]
pub(super) fn letters(bytes: &[u8], position: usize) -> usize {
    run(bytes, position, |word| between(word | (ONES * 0x20), b'a', b'z'))
}

/// Past small ASCII letters.
#[inline]
pub(super) fn small(bytes: &[u8], position: usize) -> usize {
    run(bytes, position, |word| between(word, b'a', b'z'))
}

/// Past ASCII characters other than digits.
#[inline]
pub(super) fn without_digits(bytes: &[u8], position: usize) -> usize {
    run(bytes, position, |word| !between(word, b'0', b'9') & !word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_in_every_place() {
        for byte in 0..=255_u8 {
            for place in 0..8 {
                let stops = |run: fn(&[u8], usize) -> usize, fill: u8| {
                    let mut bytes = [fill; 16];
                    bytes[place] = byte;
                    run(&bytes, 0)
                };
                let expected = |is_inside: bool| if is_inside { 16 } else { place };
                assert_eq!(stops(letters, b'z'), expected(byte.is_ascii_alphabetic()), "{byte}");
                assert_eq!(stops(letters, b'A'), expected(byte.is_ascii_alphabetic()), "{byte}");
                assert_eq!(stops(small, b'a'), expected(byte.is_ascii_lowercase()), "{byte}");
                assert_eq!(stops(without_digits, b'/'), expected(byte.is_ascii() && !byte.is_ascii_digit()), "{byte}");
            }
        }
    }
}
