//! Byte offsets as code points: the engine counts bytes, Python counts code points.

/// The places of a text, in both units.
#[derive(Debug, Clone)]
pub struct CodePoints<'a> {
    text: &'a str,
    /// Code points before every 64th byte; empty where the text is ASCII.
    blocks: Vec<u32>,
}

const BLOCK: usize = 64;

fn begins_character(byte: u8) -> bool {
    (byte as i8) >= -0x40
}

fn count(bytes: &[u8]) -> u32 {
    bytes.iter().filter(|byte| begins_character(**byte)).count() as u32
}

impl<'a> CodePoints<'a> {
    /// The places of `text`.
    pub fn new(text: &'a str) -> Self {
        if text.is_ascii() {
            return Self { text, blocks: Vec::new() };
        }
        let counts = text.as_bytes().chunks(BLOCK).scan(0, |before, block| {
            let start = *before;
            *before += count(block);
            Some(start)
        });
        Self { text, blocks: counts.collect() }
    }

    /// The code points before a byte. Inside a character, that character counts; a byte past the end counts from there.
    pub fn before(&self, byte: u32) -> u32 {
        let at = (byte as usize).min(self.text.len());
        let beyond = byte - at as u32;
        if self.blocks.is_empty() {
            return at as u32 + beyond;
        }
        let block = (at / BLOCK).min(self.blocks.len() - 1);
        self.blocks[block] + count(&self.text.as_bytes()[block * BLOCK..at]) + beyond
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_agree_with_counting() {
        let text = "aé\u{1f600}b".repeat(50);
        let places = CodePoints::new(&text);
        for (index, (byte, _)) in text.char_indices().enumerate() {
            assert_eq!(places.before(byte as u32), index as u32);
        }
        assert_eq!(places.before(text.len() as u32), 200);
        assert_eq!(places.before(text.len() as u32 + 3), 203);
        assert_eq!(CodePoints::new("").before(0), 0);
    }
}
