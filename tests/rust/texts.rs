//! Texts that are hard for tokenizers, made from a seed.

/// A generator of texts.
pub(crate) struct Texts<'a> {
    state: u64,
    added: &'a [String],
}

const WORDS: &[&str] = &[
    "the",
    "Tool",
    "assistant",
    " user",
    "It's",
    "we'LL",
    "don't",
    "x'ſ",
    "'re",
    "camelCase",
    "XMLHttp",
    "naïve",
    "straße",
    "日本語",
    "中文。",
    "カタカナ・",
    "한국어",
    "русский",
    "Ελληνικά",
    "العربية",
    "हिन्दी",
    "ไทย",
    "12345",
    "3.14",
    "٣٤٥",
    "½Ⅷ",
    "👩‍👩‍👧‍👦",
    "🏳️‍🌈",
    "🇩🇪",
    "e\u{301}",
    "\u{301}",
    "a\u{327}\u{301}",
    "\u{212b}",
    "ﬁ",
    "ǅ",
    "ʰ",
    "\u{1ac2}",
    "\u{1100}\u{1161}\u{11a8}",
    "{\"name\": \"f\", \"arguments\": {\"a\": 1}}",
    "def f(x):\n    return x\n",
    "```python\n",
    "https://a.b/c?d=e",
    "/// ",
    "\\n",
    "<tool",
    "<|im_",
    "<|end",
    "▁",
    "▁▁",
    "==========",
    "-----",
    "....",
    "#",
    "(",
    ")",
    "\"",
    "'",
    ",",
    "_",
];
const SPACES: &[&str] = &[
    " ",
    "  ",
    "   ",
    "\n",
    "\n\n",
    "\r\n",
    "\t",
    "\t\t",
    " \n ",
    "\u{a0}",
    "\u{2003}",
    "\u{85}",
    "\u{200b}",
    "\u{b}\u{c}",
    "\u{1c}",
];

impl<'a> Texts<'a> {
    pub(crate) fn new(seed: u64, added: &'a [String]) -> Self {
        Self { state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x1234_5678_9ABC_DEF1, added }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) as usize % bound
    }

    fn pick<'p>(&mut self, pool: &[&'p str]) -> &'p str {
        pool[self.below(pool.len())]
    }

    /// A text of up to forty parts; most are short.
    pub(crate) fn next(&mut self) -> String {
        let mut text = String::new();
        let most = if self.below(4) == 0 { 40 } else { 8 };
        for _ in 0..self.below(most) {
            match self.below(12) {
                0..5 => text.push_str(self.pick(WORDS)),
                5..7 => text.push_str(self.pick(SPACES)),
                7 => self.added_token(&mut text),
                8 => self.run(&mut text),
                9 => self.characters(&mut text),
                10 => text.extend(std::iter::repeat_n(' ', self.below(4))),
                _ => self.letters(&mut text),
            }
        }
        text
    }

    /// An added token, whole or cut short.
    fn added_token(&mut self, text: &mut String) {
        if self.added.is_empty() {
            return;
        }
        let content = &self.added[self.below(self.added.len())];
        let most = content.chars().count();
        let count = if self.below(4) == 0 { self.below(most) } else { most };
        text.extend(content.chars().take(count));
    }

    /// One part many times.
    fn run(&mut self, text: &mut String) {
        let part = if self.below(2) == 0 { self.pick(SPACES) } else { self.pick(WORDS) };
        let count = self.below(30);
        text.push_str(&part.repeat(count));
    }

    /// Any code points.
    fn characters(&mut self, text: &mut String) {
        for _ in 0..self.below(6) {
            let bound = [0x80, 0x800, 0x3000, 0x1_0000, 0x2_0000, 0x11_0000][self.below(6)];
            text.extend(char::from_u32(self.below(bound) as u32));
        }
    }

    fn letters(&mut self, text: &mut String) {
        for _ in 0..self.below(14) {
            let letter = char::from(b'a' + self.below(26) as u8);
            text.push(if self.below(6) == 0 { letter.to_ascii_uppercase() } else { letter });
        }
    }

    /// Long texts in which one part repeats.
    pub(crate) fn long(length: usize) -> Vec<String> {
        ["a", "=", " ", "\n", "ab", "日", "e\u{301}", "1", "👩‍", "\0", "'s", "▁", "xyzzy "]
            .iter()
            .map(|part| part.repeat(length / part.len()))
            .collect()
    }
}
