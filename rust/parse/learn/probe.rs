//! The conversations that a template is asked to render, with words in them that no template writes itself.

use std::sync::Arc;

use crate::message::Conversation;
use crate::message::{Data, Dict};
use crate::template::{RenderOptions, Template};

pub(super) const USER: &str = "uuqxa";
pub(super) const CONTENT: &str = "ccqxb";
pub(super) const REASONING: &str = "rrqxc";
pub(super) const RESULT: &str = "ttqxd";
pub(super) const NEXT: &str = "wwqxe";
pub(super) const NAMES: [&str; 2] = ["nnqxf", "mmqxg"];
/// In alphabetic order: some templates sort them.
pub(super) const KEYS: [&str; 2] = ["kaqxh", "kbqxi"];
pub(super) const IDS: [&str; 2] = ["idqxj0001", "idqxk0002"];

/// The value of a key in a call.
pub(super) fn value(call: usize, key: usize) -> String {
    format!("v{}{}qxl", char::from(b'a' + call as u8), char::from(b'a' + key as u8))
}

pub(super) fn dict<const N: usize>(entries: [(&str, Data); N]) -> Data {
    Data::from(entries.into_iter().collect::<Dict>())
}

fn message(role: &str, content: &str) -> Data {
    dict([("role", role.into()), ("content", content.into())])
}

/// How a template wants its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Manner {
    /// Arguments as JSON text, not as a dict.
    pub(super) as_text: bool,
    /// The content beside a call: none, empty, or [`CONTENT`].
    pub(super) content: Option<&'static str>,
    /// Whether the id of a call names its tool.
    pub(super) named_ids: bool,
}

/// An assistant message of a probe.
#[derive(Debug, Clone, Default)]
pub(super) struct Answer {
    pub(super) content: Option<Data>,
    /// A field with reasoning.
    pub(super) reasoning: Option<&'static str>,
    pub(super) calls: Vec<Data>,
}

impl Answer {
    pub(super) fn text(content: &str) -> Self {
        Self { content: Some(content.into()), ..Self::default() }
    }

    fn message(&self) -> Data {
        let mut fields: Dict = [("role", Data::from("assistant"))].into_iter().collect();
        if let Some(content) = &self.content {
            fields.insert("content", content.clone());
        }
        if let Some(field) = self.reasoning {
            fields.insert(field, REASONING.into());
        }
        if !self.calls.is_empty() {
            fields.insert("tool_calls", self.calls.clone().into());
        }
        fields.into()
    }
}

/// Call number `number`, with these arguments.
pub(super) fn call(number: usize, arguments: &Data, manner: Manner) -> Data {
    let name = NAMES[number];
    let id = if manner.named_ids { format!("functions.{name}:{number}") } else { IDS[number].to_owned() };
    let arguments = if manner.as_text { Data::from(arguments.to_json()) } else { arguments.clone() };
    let function = dict([("name", name.into()), ("arguments", arguments)]);
    dict([("id", id.into()), ("type", "function".into()), ("function", function)])
}

/// The arguments of the frame probes: two texts.
pub(super) fn texts(number: usize) -> Data {
    let entries = (0..KEYS.len()).map(|key| (KEYS[key], Data::from(value(number, key))));
    entries.collect::<Dict>().into()
}

fn tools() -> Data {
    let tool = |name: &str| {
        let property = || dict([("type", "string".into()), ("description", "d".into())]);
        let parameters = dict([
            ("type", "object".into()),
            ("properties", dict([(KEYS[0], property()), (KEYS[1], property())])),
            ("required", Vec::new().into()),
        ]);
        let function = dict([("name", name.into()), ("description", "d".into()), ("parameters", parameters)]);
        dict([("type", "function".into()), ("function", function)])
    };
    NAMES.map(tool).to_vec().into()
}

/// What follows the answer of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    Nothing,
    /// The result of the first call.
    Result,
    /// Another message of the user.
    User,
}

/// A template that is probed, with its settings.
#[derive(Debug, Clone)]
pub(super) struct Prober<'a> {
    pub(super) template: &'a Template,
    pub(super) options: RenderOptions,
    pub(super) arguments: Vec<(Arc<str>, Data)>,
}

impl Prober<'_> {
    /// The text behind the user's message, if that is shown.
    fn render(&self, messages: Vec<Data>, with_tools: bool, add_generation_prompt: bool) -> Option<String> {
        let tools = with_tools.then(tools);
        let conversation = Conversation { messages, tools, documents: None, arguments: self.arguments.clone() };
        let options = RenderOptions { add_generation_prompt, ..self.options.clone() };
        let rendered = self.template.render(&conversation, &options).ok()?;
        let user = rendered.text.rfind(USER)?;
        Some(rendered.text[user + USER.len()..].to_owned())
    }

    /// The first rendering of these: with tools, without.
    fn either(&self, messages: &[Data], add_generation_prompt: bool) -> Option<String> {
        let render = |with_tools| self.render(messages.to_vec(), with_tools, add_generation_prompt);
        render(true).or_else(|| render(false))
    }

    /// The generation prompt.
    pub(super) fn prompt(&self) -> Option<String> {
        self.either(&[message("user", USER)], true)
    }

    /// An answer, and what follows it.
    pub(super) fn answer(&self, answer: &Answer, after: After) -> Option<String> {
        let mut messages = vec![message("user", USER), answer.message()];
        match after {
            After::Nothing => {}
            After::Result => {
                let id = answer.calls.first().and_then(|call| call.get("id")).cloned().unwrap_or_default();
                let fields = [("role", "tool".into()), ("name", NAMES[0].into()), ("tool_call_id", id)];
                let mut result: Dict = fields.into_iter().collect();
                result.insert("content", RESULT.into());
                messages.push(result.into());
            }
            After::User => messages.push(message("user", NEXT)),
        }
        self.either(&messages, false)
    }
}
