//! What a model said: reasoning, content, and attempts at tool calls, each with its status.

use std::ops::Range;
use std::sync::Arc;

use crate::message::{Data, Dict};

/// What became of an attempt at a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// Closed, well formed, and the tool is known: safe to run.
    Ok,
    /// Closed, but the arguments do not parse or do not fit the declared type.
    InvalidJson,
    /// The output ended inside the call.
    Unclosed,
    /// Well formed, but no declared tool has the name.
    UnknownTool,
    /// Closed, but of the wrong shape.
    Malformed,
}

impl Status {
    /// The name of the status, as Python writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::InvalidJson => "invalid_json",
            Self::Unclosed => "unclosed",
            Self::UnknownTool => "unknown_tool",
            Self::Malformed => "malformed",
        }
    }
}

/// An attempt at a tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The name of the tool, as far as it could be read.
    pub name: Option<String>,
    /// The arguments, a dict, if they could be read.
    pub arguments: Option<Data>,
    /// What became of it.
    pub status: Status,
    /// The text of the attempt, without the marks around it.
    pub raw: String,
    /// The id that was sampled with the call, or one made from its place.
    pub id: String,
    /// The sampled tokens of the attempt, marks included.
    pub tokens: Range<usize>,
}

/// What a turn says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Message {
    /// The reasoning; empty if its block is, none if there is no block.
    pub reasoning: Option<String>,
    /// The content, without white space around it.
    pub content: String,
    /// The attempts at calls, in order.
    pub tool_calls: Vec<Arc<ToolCall>>,
    /// False if the output ends inside reasoning.
    pub reasoning_complete: bool,
    /// Whether a stop token was sampled.
    pub finished: bool,
    /// Whether the template wants arguments as JSON text.
    pub arguments_as_text: bool,
}

impl Message {
    /// The message as a conversation holds it.
    ///
    /// Calls whose arguments could be read are its tool calls; the text of any other attempt ends its content, so that
    /// the next prompt shows it.
    pub fn to_data(&self) -> Data {
        let mut content = self.content.clone();
        let mut calls = Vec::new();
        for call in &self.tool_calls {
            match (&call.name, &call.arguments) {
                (Some(name), Some(arguments)) if matches!(call.status, Status::Ok | Status::UnknownTool) => {
                    calls.push(self.call_data(call, name, arguments));
                }
                _ => {
                    content.push_str(if content.is_empty() { "" } else { "\n" });
                    content.push_str(&call.raw);
                }
            }
        }
        let mut fields: Dict = [("role", Data::from("assistant")), ("content", content.into())].into_iter().collect();
        if let Some(reasoning) = self.reasoning.as_ref().filter(|reasoning| !reasoning.is_empty()) {
            fields.insert("reasoning_content", reasoning.clone().into());
        }
        if !calls.is_empty() {
            fields.insert("tool_calls", calls.into());
        }
        fields.into()
    }

    fn call_data(&self, call: &ToolCall, name: &str, arguments: &Data) -> Data {
        let arguments = if self.arguments_as_text { arguments.to_json().into() } else { arguments.clone() };
        let function: Dict = [("name", Data::from(name)), ("arguments", arguments)].into_iter().collect();
        let entries = [("id", Data::from(&*call.id)), ("type", "function".into()), ("function", function.into())];
        entries.into_iter().collect::<Dict>().into()
    }
}

/// The id of a call that was sampled without one: nine letters and digits, as some templates demand.
pub(super) fn call_id(index: usize) -> String {
    format!("call{:05}", index + 1)
}

/// A piece of a turn that is settled: what follows cannot change it.
#[derive(Debug, Clone, PartialEq)]
pub enum Delta {
    /// More reasoning.
    Reasoning(String),
    /// More content.
    Content(String),
    /// A call that has ended.
    Call(Arc<ToolCall>),
    /// What was given as content so far is reasoning: its end came without a beginning, and no prompt was given.
    ContentWasReasoning,
}
