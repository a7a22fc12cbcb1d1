//! A template's grammar, learned by asking the template.
//!
//! The template renders conversations whose names, keys, values and texts are words that nobody writes
//! ([`probe`]). What stands around and between those words is the frame of each: [`frames`] finds the end of the prompt
//! and the frames of reasoning and content, [`calls`] those of calls. Nothing here knows a model or a format by name.

mod calls;
mod frames;
mod probe;
mod shape;
mod text;

use std::fmt::Write;
use std::sync::Arc;

use calls::{Around, Shown};
use probe::{After, Answer, CONTENT, NAMES, NEXT, Prober, RESULT, value};
use text::{has_tag, tags, without_start};

use super::grammar::{Body, Calls, Frame, Grammar, Parts};
use crate::mask::Masker;
use crate::message::Data;
use crate::template::{RenderOptions, Template};

/// The grammar of a template, as far as its renderings show it; `options` hold its special tokens.
pub(super) fn learn(masker: &Masker, options: &RenderOptions) -> Grammar {
    let template = masker.template();
    let prober = Prober { template, options: options.clone(), arguments: Vec::new() };
    let mut learner = Learner::new(masker, &prober);
    let mut shown = calls::shown(&prober, &learner.header);
    let repaired = shown.is_none().then(|| without_appends(template)).flatten();
    let repaired = repaired.as_ref().map(|template| Prober { template, ..prober.clone() });
    let prober = repaired.as_ref().unwrap_or(&prober);
    if repaired.is_some() {
        shown = calls::shown(prober, &learner.header);
    }
    learner.find_parts(prober, shown.as_ref());
    learner.find_reasoning(prober, shown.as_ref());
    learner.find_content();
    learner.find_plain_stop(prober);
    match shown {
        Some(shown) => learner.find_calls(prober, &shown),
        None => learner.grammar.notes.push("The template prints no tool call.".to_owned()),
    }
    learner.find_special_tools(prober);
    learner.finish()
}

/// A template without the statements that append to a list, which the sandbox refuses: they write nothing.
fn without_appends(template: &Template) -> Option<Template> {
    let mut rest = template.source();
    let mut source = String::with_capacity(rest.len());
    let mut changed = false;
    while let Some(start) = rest.find("{%") {
        let end = start + rest[start..].find("%}")? + 2;
        let statement = &rest[start..end];
        source.push_str(&rest[..start]);
        let inner = statement[2..statement.len() - 2].trim_matches(['-', '+']).trim();
        if inner.contains(".append(") && (inner.starts_with("set ") || inner.starts_with("do ")) {
            let mark = |sign: bool| if sign { "-" } else { "" };
            let (left, right) = (statement.starts_with("{%-"), statement.ends_with("-%}"));
            let _ = write!(source, "{{%{} set _ = none {}%}}", mark(left), mark(right));
            changed = true;
        } else {
            source.push_str(statement);
        }
        rest = &rest[end..];
    }
    source.push_str(rest);
    changed.then(|| Template::compile(&source).ok()).flatten()
}

/// What has been learned so far.
struct Learner<'a> {
    masker: &'a Masker,
    grammar: Grammar,
    header: String,
    /// The plain answer, from its first sampled character on.
    plain: Option<String>,
    /// What stands between reasoning and content, where both are shown.
    behind_reasoning: Option<String>,
    content: Frame,
}

impl<'a> Learner<'a> {
    fn new(masker: &'a Masker, prober: &Prober<'_>) -> Self {
        let prompt = prober.prompt();
        let plain = prober.answer(&Answer::text(CONTENT), After::Nothing);
        let header = frames::header(prompt.as_deref(), &plain.iter().map(String::as_str).collect::<Vec<_>>());
        let prefill = prompt.map(|prompt| frames::turn(&prompt, &header).to_owned()).unwrap_or_default();
        let plain = plain.map(|plain| frames::turn(&plain, &header).to_owned());
        let stops = masker.turn_ends().map(str::to_owned).collect();
        let grammar = Grammar { header: header.trim().to_owned(), prefill, stops, ..Grammar::default() };
        Self { masker, grammar, header, plain, behind_reasoning: None, content: Frame::default() }
    }

    /// What a plain answer begins with.
    fn plain_open(&self) -> &str {
        self.plain.as_deref().and_then(|plain| Some(&plain[..plain.find(CONTENT)?])).unwrap_or_default()
    }

    fn find_parts(&mut self, prober: &Prober<'_>, shown: Option<&Shown>) {
        let turn = |text: String| frames::turn(&text, &self.header).to_owned();
        let reasoned = Answer { reasoning: Some("reasoning_content"), ..Answer::text(CONTENT) };
        let reasoned = prober.answer(&reasoned, After::Nothing).map(turn);
        let beside = shown.and_then(|shown| {
            let answer = Answer { content: Some(CONTENT.into()), ..shown.answer(1) };
            prober.answer(&answer, After::Nothing).map(turn)
        });
        let last = value(0, 1);
        let several: Vec<(&str, &str, &str)> = [
            reasoned.as_deref().map(|text| (text, probe::REASONING, CONTENT)),
            shown.and_then(|shown| shown.two.as_deref()).map(|text| (text, &*last, NAMES[1])),
            beside.as_deref().map(|text| (text, CONTENT, NAMES[0])),
        ]
        .into_iter()
        .flatten()
        .collect();
        self.grammar.parts = frames::parts(&self.header, self.plain_open().trim(), &several);
    }

    fn find_reasoning(&mut self, prober: &Prober<'_>, shown: Option<&Shown>) {
        let calls = shown.map(|shown| shown.calls(1)).unwrap_or_default();
        let thinking = ["enable_thinking", "thinking"].map(|name| (Arc::from(name), Data::Bool(true)));
        let asked = Prober { arguments: thinking.to_vec(), ..prober.clone() };
        let found =
            [prober, &asked].into_iter().find_map(|prober| frames::reasoned(prober, &self.header, &calls, NAMES[0]));
        if let Some(parts) = &mut self.grammar.parts {
            let header = found.map(|found| found.open).unwrap_or_default();
            let header = header.trim().strip_suffix(&*parts.body).unwrap_or_default().trim().to_owned();
            parts.reasoning = header;
            return;
        }
        let source = self.masker.template().source();
        if let Some(found) = found {
            let frame = frames::reasoning_frame(&found.open, &found.close);
            self.behind_reasoning =
                found.beside_content.then(|| without_start(&found.close, &frame.close).unwrap_or_default().to_owned());
            self.grammar.reasoning = Some(frame);
            return;
        }
        self.grammar.reasoning = frames::shown_empty(&self.grammar.prefill, source)
            .or_else(|| frames::shown_empty(self.plain_open(), source))
            .or_else(|| frames::looked_for(source));
    }

    /// The beginning of a text without an empty block of reasoning, or its end alone.
    fn without_reasoning<'t>(&self, text: &'t str) -> &'t str {
        let Some(frame) = &self.grammar.reasoning else { return text };
        let inside = without_start(text, &frame.open).unwrap_or(text);
        without_start(inside, &frame.close).unwrap_or(inside)
    }

    fn find_content(&mut self) {
        if self.grammar.parts.is_some() {
            return;
        }
        let open = self.behind_reasoning.as_deref().unwrap_or_else(|| self.without_reasoning(self.plain_open()));
        let open = if has_tag(open) { open.trim().to_owned() } else { String::new() };
        self.content.open = open;
    }

    fn add_stop(&mut self, stop: &str) {
        if !self.grammar.stops.iter().any(|known| known == stop) {
            self.grammar.stops.push(stop.to_owned());
        }
    }

    fn known_stop(&self, text: &str) -> Option<usize> {
        self.grammar.stops.iter().filter_map(|stop| text.find(&**stop)).min()
    }

    /// What ends a plain answer, and what stands before it.
    fn find_plain_stop(&mut self, prober: &Prober<'_>) {
        let Some(plain) = self.plain.clone() else { return };
        let Some(start) = plain.find(CONTENT) else { return };
        let behind = &plain[start + CONTENT.len()..];
        let end = self.known_stop(behind).or_else(|| {
            let last = tags(behind).last()?;
            self.add_stop(&behind[last.clone()]);
            Some(last.start)
        });
        let before = behind[..end.unwrap_or(behind.len())].trim();
        if has_tag(before) {
            before.clone_into(&mut self.content.close);
        }
        if end.is_none() {
            let next = prober.answer(&Answer::text(CONTENT), After::User).unwrap_or_default();
            let start = next.find(CONTENT).map_or(next.len(), |at| at + CONTENT.len());
            let end = next[start..].find(NEXT).map_or(start, |at| start + at);
            if let Some(stop) = tags(&next[start..end]).next() {
                self.add_stop(&next[start..end][stop]);
            }
        }
    }

    fn find_calls(&mut self, prober: &Prober<'_>, shown: &Shown) {
        self.grammar.arguments_as_text = shown.manner.as_text;
        let Some(body) = calls::body(prober, &self.header, shown) else { return };
        let before = self.before_call(prober, shown);
        if let Some(before) = self.addressed(&before) {
            let last = before.split_whitespace().last().unwrap_or_default().to_owned();
            if let Some(parts) = &mut self.grammar.parts {
                parts.recipient = Some(last);
            }
            if let Some(stop) = tags(shown.behind()).next() {
                self.add_stop(&shown.behind()[stop]);
            }
            return;
        }
        let before = self.in_body(&before).to_owned();
        let mut around = self.around(shown, &before);
        self.split_turn_end(&mut around.section);
        let calls = self.calls(shown, &around, body);
        if !calls.open.is_empty() && around.section.open != calls.open && has_tag(&around.call.open) {
            let Around { section: Frame { open, close }, .. } = around.clone();
            self.grammar.marks.extend([open, close]);
        }
        self.find_call_stop(prober, shown, &around);
        self.grammar.calls.push(calls);
    }

    fn calls(&self, shown: &Shown, around: &Around, body: Body) -> Calls {
        let frame = self.grammar.reasoning.clone().unwrap_or_default();
        let (key, value) = match &body {
            Body::Tagged(tags) => (tags.key_open.clone(), tags.value_close.clone()),
            _ => Default::default(),
        };
        let others = [
            &*key,
            &value,
            &around.section.open,
            &around.section.close,
            &around.call.close,
            &frame.open,
            &frame.close,
            &self.content.open,
            &self.content.close,
        ];
        calls::calls(around, body, &others, shown)
    }

    /// What stands before a call, without what belongs to an empty content or empty reasoning.
    fn before_call(&self, prober: &Prober<'_>, shown: &Shown) -> String {
        let alone = self.without_reasoning(shown.before());
        let beside = Answer { content: Some(CONTENT.into()), ..shown.answer(1) };
        let beside = prober.answer(&beside, After::Nothing).and_then(|text| {
            let text = frames::turn(&text, &self.header);
            let content = text.find(CONTENT)? + CONTENT.len();
            let shape = shape::find(text, 0)?;
            (content <= shape.core.start).then(|| text[content..shape.core.start].to_owned())
        });
        let before = beside.map_or(alone, |beside| frames::shared_end(alone, &beside));
        let before = without_start(before, &self.content.open).unwrap_or(before);
        let closed = if self.content.close.is_empty() { None } else { self.empty_content(before) };
        closed.unwrap_or(before).to_owned()
    }

    /// A text without the end of an empty content before it.
    fn empty_content<'t>(&self, text: &'t str) -> Option<&'t str> {
        let first = tags(&self.content.close).next()?;
        let mut end = self.content.close.len();
        while end > first.start {
            if let Some(rest) = without_start(text, &self.content.close[..end]) {
                return Some(rest);
            }
            end = tags(&self.content.close).map(|tag| tag.end).filter(|tag| *tag < end).last()?;
        }
        None
    }

    /// What stands before the name in a header, if calls are addressed by headers.
    fn addressed<'t>(&self, before: &'t str) -> Option<&'t str> {
        let Parts { header, body, .. } = self.grammar.parts.as_ref()?;
        let before = before.rfind(&**header).map_or(before, |at| &before[at + header.len()..]);
        (!before.contains(&**body)).then_some(before)
    }

    /// What stands before a call in the body of a part.
    fn in_body<'t>(&self, before: &'t str) -> &'t str {
        let Some(parts) = &self.grammar.parts else { return before };
        before.rfind(&*parts.body).map_or(before, |at| &before[at + parts.body.len()..])
    }

    fn around(&self, shown: &Shown, before: &str) -> Around {
        let between = shown.two.as_deref().and_then(|two| {
            let (first, second) = (shape::find(two, 0)?, shape::find(two, 1)?);
            two.get(first.core.end..second.core.start)
        });
        let mut stops = self.grammar.stops.clone();
        stops.extend(self.grammar.parts.iter().flat_map(|parts| parts.ends.clone()));
        let between = between.map(|between| match self.known_end(between, &stops) {
            Some(at) => format!("{}{}", &between[..at], self.in_body(between)),
            None => between.to_owned(),
        });
        calls::around(before, shown.behind(), between.as_deref(), &stops)
    }

    /// Where the first part ends, in what stands between two calls of different parts.
    fn known_end(&self, between: &str, stops: &[String]) -> Option<usize> {
        self.grammar.parts.as_ref()?;
        stops.iter().filter_map(|stop| between.find(&**stop)).min()
    }

    fn find_call_stop(&mut self, prober: &Prober<'_>, shown: &Shown, around: &Around) {
        if let Some(at) = self.known_stop(&around.rest) {
            let before = around.rest[..at].trim();
            let shared = frames::shared_end(&self.content.close, before).to_owned();
            if has_tag(&shared) {
                self.content.close.truncate(self.content.close.len() - shared.len());
                self.grammar.marks.push(shared);
            }
            self.find_stop_before_result(prober, shown, around);
            return;
        }
        if let Some(stop) = tags(&around.rest).next() {
            self.add_stop(&around.rest[stop]);
            return;
        }
        let text = prober.answer(&shown.answer(1), After::Result).unwrap_or_default();
        let text = frames::turn(&text, &self.header);
        let Some(shape) = shape::find(text, 0) else { return };
        let behind = &text[shape.core.end..];
        let behind = without_start(behind, shown.behind()).unwrap_or_default();
        let behind = &behind[..behind.find(RESULT).unwrap_or(behind.len())];
        if let Some(stop) = tags(behind).next() {
            self.add_stop(&behind[stop]);
        }
    }

    /// What ends the content and what ends a block of calls may both hold what ends the turn: a mark of its own.
    fn split_turn_end(&mut self, section: &mut Frame) {
        let shared = frames::shared_end(&self.content.close, &section.close).to_owned();
        if has_tag(&shared) && shared.len() < self.content.close.len() && shared.len() < section.close.len() {
            self.content.close.truncate(self.content.close.len() - shared.len());
            section.close.truncate(section.close.len() - shared.len());
            self.grammar.marks.push(shared);
        }
    }

    /// Where a result follows at once, what opens it may stand in the place of the stop.
    fn find_stop_before_result(&mut self, prober: &Prober<'_>, shown: &Shown, around: &Around) {
        let closing = shown.behind().trim_end().strip_suffix(&*around.rest).unwrap_or_default();
        let text = prober.answer(&shown.answer(1), After::Result).unwrap_or_default();
        let text = frames::turn(&text, &self.header);
        let Some(shape) = shape::find(text, 0) else { return };
        let behind = without_start(&text[shape.core.end..], closing).unwrap_or_default();
        let behind = &behind[..behind.find(RESULT).unwrap_or(0)];
        let first = tags(behind).next().filter(|tag| tag.start == 0 && !closing.is_empty());
        if let Some(stop) = first.filter(|_| self.known_stop(behind) != Some(0)) {
            self.add_stop(&behind[stop]);
        }
    }

    /// Templates that take the names of some tools in a variable of their own may write their calls otherwise.
    fn find_special_tools(&mut self, prober: &Prober<'_>) {
        let variables: Vec<Arc<str>> = prober.template.variables().map(Arc::from).collect();
        for variable in variables.into_iter().filter(|name| name.ends_with("tools") && &**name != "tools") {
            let names = vec![Data::from(NAMES[0])].into();
            let special = Prober { arguments: vec![(variable, names)], ..prober.clone() };
            let Some(shown) = calls::shown(&special, &self.header) else { continue };
            let Some(body) = calls::body(&special, &self.header, &shown) else { continue };
            let before = self.before_call(&special, &shown);
            let around = self.around(&shown, &before);
            let calls = self.calls(&shown, &around, body);
            if !self.grammar.calls.contains(&calls) && !calls.open.is_empty() {
                self.find_call_stop(&special, &shown, &around);
                self.grammar.calls.push(calls);
            }
        }
    }

    fn finish(self) -> Grammar {
        let Self { mut grammar, content, .. } = self;
        grammar.marks.extend([content.open, content.close]);
        grammar.marks.retain(|mark| has_tag(mark));
        let mut known = Vec::new();
        grammar.marks.retain(|mark| {
            let new = !known.contains(mark) && !grammar.stops.contains(mark);
            known.push(mark.clone());
            new
        });
        let part_ends: Vec<String> = grammar.parts.iter().flat_map(|parts| parts.ends.clone()).collect();
        grammar.stops.retain(|stop| !part_ends.contains(stop));
        grammar
    }
}
