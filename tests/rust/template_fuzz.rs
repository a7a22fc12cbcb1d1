//! Mutated templates and conversations: whatever comes, the engine answers with a text or an error, soon and in bounds.
//!
//! The work is done in child processes with 512 MB of memory; an input that takes more than a second fails. A failure
//! names its seed, and `TOKENTAPE_FUZZ_SEED=SEED` runs that input alone. `TOKENTAPE_FUZZ_SECONDS` says how long to go on.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, fs};

use tokentape::message::{Conversation, Data, Dict, Key};
use tokentape::template::{ContinueFinalMessage, Limits, RenderOptions, Template};

use crate::corpus;

/// Renderings of one compiled template.
const RENDERINGS: u64 = 24;
/// What one input may take in the long run, which has its core to itself.
const SLOWEST: Duration = Duration::from_secs(1);

/// Pieces of the language that mutations insert.
const PIECES: &[&str] = &[
    "{{",
    "}}",
    "{%",
    "%}",
    "{%-",
    "-%}",
    "{#",
    "#}",
    "{{-",
    "-}}",
    "{%+",
    "|",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    ".",
    "~",
    "+",
    "-",
    "*",
    "**",
    "//",
    "%",
    "=",
    "==",
    "!=",
    "<",
    " in ",
    " not ",
    " is ",
    " and ",
    " or ",
    " if ",
    " else ",
    "for x in ",
    "endfor",
    "endif",
    "{% for x in messages recursive %}",
    "{{ loop(x) }}",
    "{% endfor %}",
    "{% if x %}",
    "{% endif %}",
    "{% macro f(a=f) %}{{ f() }}{% endmacro %}{{ f() }}",
    "{% set x = x ~ x %}",
    "{% raw %}",
    "{% endraw %}",
    "{% generation %}",
    "{% endgeneration %}",
    "{% break %}",
    "loop",
    "messages",
    "namespace(x=messages)",
    "caller",
    "'",
    "\"",
    "\\x",
    "\\N{DASH}",
    "1e999",
    "99999999999999999999999",
    "range(99999)",
    "|list|tojson(indent=99)",
    "[::-1]",
    "|batch(2)",
    "'%99999999d' % 1",
    "\u{0}",
    "é",
    "\u{1f600}",
];

/// A small generator of chance (xorshift).
struct Chance(u64);

impl Chance {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    fn pick<'t, T>(&mut self, items: &'t [T]) -> &'t T {
        &items[self.below(items.len())]
    }
}

/// What mutations begin with.
struct Seeds {
    templates: Vec<String>,
    conversations: Vec<Conversation>,
}

impl Seeds {
    fn read(folder: &Path) -> Self {
        let mut paths: Vec<_> =
            fs::read_dir(folder.join("templates")).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        let jinja = paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == "jinja"));
        let mut cases: Vec<_> = corpus::cases(folder).into_iter().collect();
        cases.sort_by(|(a, _), (b, _)| a.cmp(b));
        Self {
            templates: jinja.map(|path| fs::read_to_string(path).unwrap()).collect(),
            conversations: cases.into_iter().map(|(_, case)| case.conversation).collect(),
        }
    }

    fn template(&self, chance: &mut Chance) -> String {
        let mut source = chance.pick(&self.templates).clone();
        for _ in 0..chance.below(3) {
            source = self.mutated(&source, chance);
        }
        source
    }

    fn mutated(&self, source: &str, chance: &mut Chance) -> String {
        let (start, end) = range(source, chance);
        let (before, inside, after) = (&source[..start], &source[start..end], &source[end..]);
        match chance.below(6) {
            0 => format!("{before}{after}"),
            1 => format!("{before}{inside}{inside}{after}"),
            2 | 3 => format!("{before}{}{after}", chance.pick(PIECES)),
            4 => format!("{before}{}{inside}{after}", chance.pick(PIECES)),
            _ => {
                let other = chance.pick(&self.templates);
                let (from, to) = range(other, chance);
                format!("{before}{}{after}", &other[from..to])
            }
        }
    }

    fn conversation(&self, chance: &mut Chance) -> Conversation {
        let mut conversation = chance.pick(&self.conversations).clone();
        for message in &mut conversation.messages {
            if chance.below(3) == 0 {
                *message = changed(message, chance, 0);
            }
        }
        if chance.below(8) == 0 {
            conversation.tools = conversation.tools.as_ref().map(|tools| changed(tools, chance, 0));
        }
        conversation
    }
}

/// A short range of a text, on character boundaries.
fn range(text: &str, chance: &mut Chance) -> (usize, usize) {
    let boundary = |mut at: usize| {
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let start = chance.below(text.len() + 1);
    let longest = if chance.below(4) == 0 { 400 } else { 12 };
    let length = chance.below(longest);
    (boundary(start), boundary((start + length).min(text.len())).max(boundary(start)))
}

/// A value with some parts replaced.
fn changed(value: &Data, chance: &mut Chance, depth: usize) -> Data {
    if depth > 0 && chance.below(4) == 0 {
        return strange(chance);
    }
    match value {
        Data::Dict(dict) => {
            let kept = dict.iter().filter(|_| chance.below(8) > 0).cloned().collect::<Vec<_>>();
            kept.into_iter().map(|(key, value)| (key, changed(&value, chance, depth + 1))).collect::<Dict>().into()
        }
        Data::List(items) => items.iter().map(|item| changed(item, chance, depth + 1)).collect::<Vec<_>>().into(),
        value => value.clone(),
    }
}

fn strange(chance: &mut Chance) -> Data {
    match chance.below(12) {
        0 => Data::Null,
        1 => Data::Bool(true),
        2 => Data::Int(i64::MIN),
        3 => Data::BigInt("123456789012345678901234567890".into()),
        4 => Data::Float(f64::NAN),
        5 => Data::Float(1e300),
        6 => Data::from(""),
        7 => Data::from("</think>\u{2028}é\u{1f600}\u{0}<tool_call>".repeat(1 + chance.below(40))),
        8 => (0..chance.below(200)).fold(Data::from("x"), |inner, _| Data::from(vec![inner])),
        9 => Data::from(vec![Data::Int(1), Data::from("text"), Data::Null]),
        10 => Data::from((0..30).map(|key| (Key::from(&*format!("k{key}")), Data::Int(key))).collect::<Dict>()),
        _ => Data::Tuple(vec![Data::from("a"), Data::Float(-0.0)].into()),
    }
}

/// One template and its renderings; returns how often the engine was run.
fn run(seeds: &Seeds, seed: u64) -> u64 {
    let mut chance = Chance::new(seed);
    let source = seeds.template(&mut chance);
    let Ok(template) = timed(seed, || Template::compile(&source)) else { return 1 };
    let limits = Limits { iterations: 100_000, output: 1 << 22, ..Limits::default() };
    for _ in 0..RENDERINGS {
        let conversation = seeds.conversation(&mut chance);
        let continued = match chance.below(8) {
            0 => ContinueFinalMessage::Content,
            1 => ContinueFinalMessage::Field("thinking".into()),
            _ => ContinueFinalMessage::No,
        };
        let options = RenderOptions {
            add_generation_prompt: chance.below(2) == 0,
            continue_final_message: continued,
            limits,
            now: Some(corpus::CLOCK),
            ..RenderOptions::default()
        };
        if let Ok(rendered) = timed(seed, || template.render(&conversation, &options)) {
            let end = rendered.spans.last().map_or(0, |span| span.end as usize);
            assert_eq!(end, rendered.text.len(), "seed {seed}: spans do not cover the text");
            let joined = rendered.spans.windows(2).all(|pair| pair[0].end == pair[1].start);
            assert!(joined, "seed {seed}: spans do not partition the text");
        }
    }
    1 + RENDERINGS
}

fn timed<T>(seed: u64, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    let taken = start.elapsed();
    let long_run = env::var_os("TOKENTAPE_FUZZ_FIRST").is_some();
    assert!(!long_run || taken < SLOWEST, "seed {seed}: {taken:?}");
    result
}

#[test]
fn a_few_mutated_templates_are_answered() {
    let Some(folder) = corpus::folder() else { return };
    let seeds = Seeds::read(&folder);
    let (first, count) = env::var("TOKENTAPE_FUZZ_SEED").map_or((0, 300), |seed| (seed.parse().unwrap(), 1));
    let runs: u64 = (first..first + count).map(|seed| run(&seeds, seed)).sum();
    corpus::report(&format!("{runs} mutated inputs answered"));
}

/// The child's part: templates from a seed on, until the time is over.
#[test]
#[ignore = "long: the child of the test below"]
fn fuzz_child() {
    let (Some(folder), Ok(first)) = (corpus::folder(), env::var("TOKENTAPE_FUZZ_FIRST")) else { return };
    let seconds: u64 = env::var("TOKENTAPE_FUZZ_SECONDS").map_or(60, |seconds| seconds.parse().unwrap());
    let (seeds, start) = (Seeds::read(&folder), Instant::now());
    let (mut runs, mut seed) = (0, first.parse::<u64>().unwrap());
    while start.elapsed() < Duration::from_secs(seconds) {
        fs::write(env::var("TOKENTAPE_FUZZ_NOTE").unwrap(), format!("{seed} {runs}")).unwrap();
        for _ in 0..1000 {
            runs += run(&seeds, seed);
            seed += 1;
        }
    }
    fs::write(env::var("TOKENTAPE_FUZZ_NOTE").unwrap(), format!("{seed} {runs}")).unwrap();
}

#[test]
#[ignore = "long: mutates for as long as TOKENTAPE_FUZZ_SECONDS says"]
fn mutated_templates_are_answered_in_bounds() {
    if corpus::folder().is_none() {
        return;
    }
    let first = env::var("TOKENTAPE_FUZZ_FIRST").unwrap_or_else(|_| "1000000".to_owned());
    let note = env::temp_dir().join(format!("tokentape-fuzz-{}", std::process::id()));
    let child =
        format!("ulimit -v 524288; exec {:?} --ignored --exact template_fuzz::fuzz_child", env::current_exe().unwrap());
    let output = Command::new("sh")
        .args(["-c", &child])
        .env("TOKENTAPE_FUZZ_FIRST", &first)
        .env("TOKENTAPE_FUZZ_NOTE", &note)
        .output()
        .unwrap();
    let reached = fs::read_to_string(&note).unwrap_or_default();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "from seed {first}; the batch of 1000 from {reached} (seed, runs): {shown}");
    let _ = fs::remove_file(&note);
    corpus::report(&format!(
        "mutated inputs from seed {first} answered within 512 MB and 1 s each; last seed and runs: {reached}"
    ));
}
