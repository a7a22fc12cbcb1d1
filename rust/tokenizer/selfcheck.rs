//! Both paths over a probe corpus, when a tokenizer loads.
//!
//! *Invariant*: the fast path is used only where it gave the reference's ids and starts for every probe.

use super::added::Literal;
use super::fast::Fast;
use super::file::Refusal;
use super::reference::Reference;
use super::{AddedToken, Encoded};

/// Beyond this many added tokens, a sample is probed.
const MOST_TOKENS: usize = 256;

/// What is hard about text: scripts, spaces, contractions, digits, combining marks, controls, joined emoji, code.
const PROBES: &[&str] = &[
    "",
    " ",
    "\n",
    "Hello, world! It's 2024 and I'd say we'll've been there.",
    "HE'LL SAY 'Twas n'ſ'Llx O'Reilly's camelCaseXMLHttp",
    "a  b   c\t\td \n e\r\n\r\nf\n\n\n  g \u{a0}\u{2003}\u{85}h\u{200b}",
    "1 12 123 1234 12345 ٣٤٥ ½ Ⅷ ²³ १२३४",
    "def f(x):\n    return {\"a\": [1, 2.5e-10], 'b': None}  # !@#$%^&*()_+-=[]{}|;:<>?/~`\\\n",
    "日本語のテキスト、カタカナ・と漢字。中文文本,一二三 한국어 텍스트 ไทย العربية हिन्दी עברית Ελληνικά русский",
    "e\u{301} é A\u{30a} Å \u{212b} ﬁ ǆ ǅ ʰ \u{1ac2} \u{1100}\u{1161}\u{11a8} a\u{327}\u{301} \u{301}x \u{3099}",
    "👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪 🙂🙂 \u{1f9ff} \u{e0001}",
    "\0\u{1}\u{7f}\u{80}\u{feff}\u{fffd}\u{10ffff}\u{378}",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "================================================================================================================",
    "▁▁ ▁a▁ b > c>  d",
    "  leading and trailing  ",
    "https://example.org/a/b?c=d&e=f#g //comment\n///\r\n/",
    "<|im_start|>user\nhi<|im_end|>\n<|im_sta <|endoftext| <think>\n\n</think>\n\n[INST] x [/INST]</s><s>",
];

/// The reason not to use the fast path, if a probe tells the two apart.
pub(super) fn run(fast: &Fast, reference: &Reference, added: &[AddedToken]) -> Result<(), Refusal> {
    for probe in PROBES {
        compare(fast, reference, probe)?;
    }
    let step = added.len().div_ceil(MOST_TOKENS).max(1);
    for tokens in added.iter().step_by(step).collect::<Vec<_>>().chunks(16) {
        compare(fast, reference, &around(tokens))?;
    }
    Ok(())
}

/// Added tokens with neighbours: letters, spaces, line ends, one another, and cut short.
fn around(tokens: &[&AddedToken]) -> String {
    let mut text = String::new();
    for token in tokens {
        let content = &token.content;
        let short = content.char_indices().next_back().map_or("", |(last, _)| &content[..last]);
        for part in ["x", content, "y ", content, " \n\n", content, content, "  ", short, " z\u{301}", content, "é"] {
            text.push_str(part);
        }
    }
    text
}

fn compare(fast: &Fast, reference: &Reference, text: &str) -> Result<(), Refusal> {
    let mut ours = Encoded::default();
    let theirs = reference.encode_with_offsets(text).map_err(|error| error.to_string())?;
    fast.encode::<true>(text, Literal::All, &mut ours).map_err(|error| error.to_string())?;
    if ours == theirs {
        return Ok(());
    }
    let same = ours.ids.iter().zip(&theirs.ids).take_while(|(one, other)| one == other).count();
    Err(format!("the fast path differs from the reference at token {same} of {text:?}"))
}
