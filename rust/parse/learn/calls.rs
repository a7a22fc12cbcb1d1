//! What a template writes around calls, between them, and between name and arguments.

use super::frames::turn;
use super::probe::{After, Answer, CONTENT, IDS, KEYS, Manner, NAMES, Prober, call, dict, texts};
use super::shape::{Kind, Shape, find};
use super::text::{common_end, common_start, has_tag, shortest_own, tags};
use crate::message::Data;
use crate::parse::grammar::{Body, Calls, Frame, KEY, Literals, Tags};

/// How a template writes calls, and the renderings that show it.
pub(super) struct Shown {
    pub(super) manner: Manner,
    /// The turn with one call.
    pub(super) one: String,
    pub(super) shape: Shape,
    /// The turn with two calls, if it can be rendered.
    pub(super) two: Option<String>,
}

impl Shown {
    pub(super) fn calls(&self, count: usize) -> Vec<Data> {
        (0..count).map(|number| call(number, &texts(number), self.manner)).collect()
    }

    /// What a turn with calls looks like with this content.
    pub(super) fn answer(&self, count: usize) -> Answer {
        Answer { content: self.manner.content.map(Data::from), reasoning: None, calls: self.calls(count) }
    }

    /// What stands before the call.
    pub(super) fn before(&self) -> &str {
        &self.one[..self.shape.core.start]
    }

    /// What stands behind it.
    pub(super) fn behind(&self) -> &str {
        &self.one[self.shape.core.end..]
    }
}

/// The manner in which a template writes calls, JSON before other forms.
pub(super) fn shown(prober: &Prober<'_>, header: &str) -> Option<Shown> {
    let mut best: Option<Shown> = None;
    for named_ids in [false, true] {
        for as_text in [false, true] {
            let contents = [Some(""), None, Some(CONTENT)];
            let found = contents
                .into_iter()
                .find_map(|content| try_manner(prober, header, Manner { as_text, content, named_ids }));
            if let Some(found) = found
                && best.as_ref().is_none_or(|best| has_quoted_keys(best) && !has_quoted_keys(&found))
            {
                best = Some(found);
            }
        }
        if best.is_some() {
            break;
        }
    }
    best
}

/// Whether keys are written as a dict of Python is printed: then the template wants another form of arguments.
fn has_quoted_keys(shown: &Shown) -> bool {
    matches!(&shown.shape.kind, Kind::Slots { keys, .. } if shown.one[..keys[0].start].ends_with('\''))
}

fn try_manner(prober: &Prober<'_>, header: &str, manner: Manner) -> Option<Shown> {
    let calls = |count: usize| (0..count).map(|number| call(number, &texts(number), manner)).collect();
    let answer =
        |count: usize| Answer { content: manner.content.map(Data::from), reasoning: None, calls: calls(count) };
    let one = prober.answer(&answer(1), After::Nothing)?;
    let one = turn(&one, header).to_owned();
    let shape = find(&one, 0)?;
    let two = prober.answer(&answer(2), After::Nothing).map(|two| turn(&two, header).to_owned());
    Some(Shown { manner, one, shape, two })
}

/// What stands around calls.
#[derive(Debug, Clone, Default)]
pub(super) struct Around {
    /// Before and behind all calls.
    pub(super) section: Frame,
    /// Before and behind each.
    pub(super) call: Frame,
    /// Behind the section: what ends the turn, and what else stands there.
    pub(super) rest: String,
}

/// Tells what belongs to each call from what belongs to all: `before` and `behind` one call, and between two.
pub(super) fn around(before: &str, behind: &str, between: Option<&str>, stops: &[String]) -> Around {
    let (own_open, own_close) = match between {
        None => (0, behind_until_stop(behind, stops)),
        Some(between) => {
            let open = common_end(before, between);
            let start = if open == before.len() { between.len() } else { common_end(between, before) };
            (open, common_start(behind, &between[..start]))
        }
    };
    let rest = &behind[own_close..];
    let section_open = before[..own_open].trim();
    let at = section_end(rest, section_open, stops);
    Around {
        section: Frame::new(section_open, &rest[..at]),
        call: Frame::new(&before[own_open..], &behind[..own_close]),
        rest: rest[at..].trim().to_owned(),
    }
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn behind_until_stop(behind: &str, stops: &[String]) -> usize {
    stops
        .iter()
        .filter_map(|stop| behind.find(&**stop))
        .min()
        .unwrap_or_else(|| tags(behind).last().map_or(behind.len(), |tag| tag.start))
}

/// Where the end of a section ends: before a known stop, else after as many tags as its beginning has.
fn section_end(rest: &str, open: &str, stops: &[String]) -> usize {
    if let Some(at) = stops.iter().filter_map(|stop| rest.find(&**stop)).min() {
        return at;
    }
    match tags(open).count() {
        0 => tags(rest).next().map_or(rest.len(), |tag| tag.start),
        count => tags(rest).nth(count - 1).map_or(rest.len(), |tag| tag.end),
    }
}

/// The way of writing calls, from what stands around them. `others` are the other marks of the template.
pub(super) fn calls(around: &Around, body: Body, others: &[&str], _shown: &Shown) -> Calls {
    let each = has_tag(&around.call.open);
    let open = if each { around.call.open.clone() } else { format!("{}{}", around.section.open, around.call.open) };
    let close = if each { around.call.close.clone() } else { format!("{}{}", around.call.close, around.section.close) };
    let (open, lead) = opening(&open, others, &body);
    let (trail, close) = closing(&close, &body);
    Calls { open, lead, trail, close, body }
}

/// The mark that opens, and what stands between it and the name.
fn opening(text: &str, others: &[&str], body: &Body) -> (String, String) {
    let text = text.trim();
    let last = tags(text).last().map_or(0, |tag| tag.end);
    let first_piece = text.split_whitespace().next().unwrap_or_default();
    let mark = if has_tag(first_piece) { first_piece.len() } else { last };
    // A tag may hold white space, as `<a b="` does.
    let mark = tags(text).find(|tag| tag.start < mark && mark < tag.end).map_or(mark, |tag| tag.end).min(last);
    // Where all marks begin with the same tag, the words behind it tell them apart.
    let shared = mark > 0 && others.iter().any(|other| other.starts_with(&text[..mark]) && !other.starts_with(text));
    let own = if shared && mark == last { text } else { shortest_own(&text[..mark], others) };
    let lead = text[own.len()..].trim();
    let lead = if matches!(body, Body::Tagged(_)) { lead } else { lead.trim_end_matches(['[', '{', ' ', '\n', '\t']) };
    (own.to_owned(), lead.to_owned())
}

/// What may stand before the mark that closes, and the mark. The end of the last value is no part of either.
fn closing<'a>(text: &'a str, body: &Body) -> (String, String) {
    let mut text = text.trim();
    let without = |text: &'a str, end: &str| text.strip_prefix(end).unwrap_or(text).trim_start();
    match body {
        Body::Tagged(tags) => text = without(text, &tags.value_close.replace(KEY, KEYS[1])),
        Body::Literal(literals) => {
            text = without(text, literals.quotes.as_ref().map_or("", |quotes| &*quotes.close));
            text = text.trim_start_matches(['"', '\'', ')', '}', ']', ',', ' ', '\n']);
        }
        _ => text = text.trim_start_matches(['}', ']', ',', ' ', '\n']),
    }
    let Some(last) = tags(text).last() else { return (text.to_owned(), String::new()) };
    let text = &text[..last.end];
    let start = text.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let start = tags(text).find(|tag| tag.start < start && start < tag.end).map_or(start, |tag| tag.start);
    let start = text.len() - text[start..].trim_start_matches('`').len();
    (text[..start].trim().to_owned(), text[start..].to_owned())
}

/// How name and arguments are written.
pub(super) fn body(prober: &Prober<'_>, header: &str, shown: &Shown) -> Option<Body> {
    match &shown.shape.kind {
        Kind::Json { name, arguments, as_text } => {
            Some(Body::Json { name: name.clone(), arguments: arguments.clone(), as_text: *as_text })
        }
        Kind::Named { between } => {
            let (index, rest) = running_number(&shown.one[between.clone()]);
            let separators = rest.split(IDS[0]).map(|part| part.trim().to_owned());
            Some(Body::Named { separators: separators.filter(|part| !part.is_empty()).collect(), index })
        }
        Kind::Slots { .. } => slotted(prober, header, shown),
    }
}

/// What stands before a number right behind the name, and the rest.
fn running_number(between: &str) -> (String, &str) {
    let digits = between.find(|character: char| character.is_ascii_digit());
    match digits.filter(|at| *at > 0 && *at <= 2 && !between[..*at].contains(['<', '[', '\n'])) {
        Some(at) => {
            let rest = between[at..].trim_start_matches(|character: char| character.is_ascii_digit());
            (between[..at].to_owned(), rest)
        }
        None => (String::new(), between),
    }
}

/// A value that is no text: 7351 in the probes.
const NUMBER: i64 = 7351;

/// The text before the number in `{first key: number}`, and between the number and a second key.
fn number_frame(prober: &Prober<'_>, header: &str, shown: &Shown) -> Option<(String, String)> {
    let arguments = dict([(KEYS[0], Data::Int(NUMBER)), (KEYS[1], Data::from(super::probe::value(0, 1)))]);
    let answer = Answer { calls: vec![call(0, &arguments, shown.manner)], ..shown.answer(1) };
    let text = prober.answer(&answer, After::Nothing)?;
    let text = turn(&text, header);
    let number = text.find("7351")?;
    let key = text[..number].rfind(KEYS[0])? + KEYS[0].len();
    let behind = number + 4;
    let next = behind + text[behind..].find(KEYS[1])?;
    Some((text[key..number].to_owned(), text[behind..next].to_owned()))
}

fn slotted(prober: &Prober<'_>, header: &str, shown: &Shown) -> Option<Body> {
    let Kind::Slots { name, keys, values } = &shown.shape.kind else { return None };
    let text = &shown.one;
    let before_key = &text[name.end..keys[0].start];
    let assign = &text[keys[0].end..values[0].start];
    let between = &text[values[0].end..keys[1].start];
    let (number_assign, number_between) =
        number_frame(prober, header, shown).unwrap_or_else(|| (assign.to_owned(), between.to_owned()));
    let in_brackets = before_key.trim_end().ends_with(['(', '{']);
    if in_brackets || matches!(number_between.trim(), "" | ",") || matches!(between.trim(), "" | ",") {
        return Some(Body::Literal(literals(before_key, assign, between, &number_assign)));
    }
    Some(Body::Tagged(tag_set(prober, header, shown, before_key, assign, between)))
}

fn literals(before_key: &str, assign: &str, between: &str, number_assign: &str) -> Literals {
    let open = before_key.trim();
    let bracket = open.chars().last().unwrap_or('(');
    let number_assign = number_assign.trim();
    let quote = assign.trim().strip_prefix(number_assign).unwrap_or_default();
    // Where numbers are put between the same signs as texts, the sign before them is the shortest assignment.
    let all_quoted = quote.is_empty() && number_assign.chars().count() > 1;
    let (number_assign, quote) = if all_quoted {
        number_assign.split_at(number_assign.chars().next().map_or(0, char::len_utf8))
    } else {
        (number_assign, quote)
    };
    let close_quote = between.trim().trim_end_matches(',').trim_end();
    let special = !matches!(quote, "" | "\"" | "'");
    Literals {
        open: open.to_owned(),
        assign: number_assign.to_owned(),
        close: if bracket == '{' { "}" } else { ")" }.to_owned(),
        quotes: special.then(|| Frame::new(quote, close_quote)),
        all_quoted,
    }
}

fn tag_set(prober: &Prober<'_>, header: &str, shown: &Shown, before_key: &str, assign: &str, between: &str) -> Tags {
    let shared = before_key[common_end(before_key, between)..].trim();
    let key_open = shared.trim_start_matches(['>', '"', '\'']).trim_start();
    let name_close = before_key.trim_end().strip_suffix(key_open).unwrap_or_default();
    let closing = between.trim_end().strip_suffix(key_open).unwrap_or(between);
    let (text_attributes, other_attributes, key_close, value_open) = attributes(prober, header, shown, assign);
    Tags {
        name_close: name_close.trim().to_owned(),
        key_open: key_open.to_owned(),
        key_close: key_close.trim().to_owned(),
        value_open: value_open.trim().to_owned(),
        value_close: closing.trim().replace(KEYS[0], &KEY.to_string()),
        line_before: assign.ends_with('\n'),
        line_after: closing.starts_with('\n'),
        cdata: prober.template.source().contains("<![CDATA["),
        text_attributes,
        other_attributes,
    }
}

/// What is written between key and value for each type, where that differs, and the texts around it.
fn attributes(
    prober: &Prober<'_>,
    header: &str,
    shown: &Shown,
    assign: &str,
) -> (Vec<String>, Vec<String>, String, String) {
    let mut others = Vec::new();
    for (value, sign) in typed_values() {
        let arguments = dict([(KEYS[0], value)]);
        let answer = Answer { calls: vec![call(0, &arguments, shown.manner)], ..shown.answer(1) };
        let Some(text) = prober.answer(&answer, After::Nothing) else { continue };
        let text = turn(&text, header);
        let found = text.rfind(sign).and_then(|at| {
            let name = text.rfind(NAMES[0])?;
            let key = text[..at].rfind(KEYS[0])? + KEYS[0].len();
            let at = if matches!(sign, "rue" | "ull") { at - 1 } else { at };
            (key > name).then(|| without_container(&text[key..at]).to_owned())
        });
        others.extend(found);
    }
    let same = |other: &String| other.trim() == assign.trim();
    if others.iter().all(same) {
        return (Vec::new(), Vec::new(), assign.to_owned(), String::new());
    }
    let start = others.iter().fold(assign.len(), |start, other| start.min(common_bytes(assign, other)));
    let start = word_start(assign, start);
    let end = others.iter().fold(assign.len() - start, |end, other| {
        end.min(common_bytes_back(&assign[start..], &other[start.min(other.len())..]))
    });
    let end = word_end(assign, assign.len() - end);
    let attribute = |text: &str| text.get(start..text.len().saturating_sub(assign.len() - end)).map(str::to_owned);
    let text_attribute = attribute(assign);
    let mut others: Vec<String> = others.iter().filter_map(|other| attribute(other)).collect();
    others.retain(|other| Some(other) != text_attribute.as_ref());
    others.sort_unstable();
    others.dedup();
    (text_attribute.into_iter().collect(), others, assign[..start].to_owned(), assign[end..].to_owned())
}

/// What a list or dict begins with, before its first text.
fn without_container(text: &str) -> &str {
    let signs = ["[\"", "['", "{\"", "{'"];
    signs.iter().find_map(|sign| text.strip_suffix(sign)).unwrap_or(text)
}

/// Values of each type, and what each is surely written with.
fn typed_values() -> [(Data, &'static str); 6] {
    [
        (Data::Int(NUMBER), "7351"),
        (Data::Float(1.375), "1.375"),
        (Data::Bool(true), "rue"),
        (Data::Null, "ull"),
        (vec![Data::from("laqxm")].into(), "laqxm"),
        (dict([("daqxn", Data::Int(1))]), "daqxn"),
    ]
}

fn common_bytes(one: &str, two: &str) -> usize {
    one.bytes().zip(two.bytes()).take_while(|(one, two)| one == two).count()
}

fn common_bytes_back(one: &str, two: &str) -> usize {
    one.bytes().rev().zip(two.bytes().rev()).take_while(|(one, two)| one == two).count()
}

fn word_start(text: &str, at: usize) -> usize {
    let at = floor(text, at.min(text.len()));
    text[..at].trim_end_matches(char::is_alphanumeric).len()
}

fn word_end(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    text.len() - text[at..].trim_start_matches(char::is_alphanumeric).len()
}
