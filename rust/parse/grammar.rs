//! A grammar of sampled turns: what stands around reasoning, content and tool calls, as texts.
//!
//! It knows neither a template nor a tokenizer. It is learned from a template ([`super::learn`]) or declared, and is
//! compiled for a tokenizer before it reads ids ([`super::compiled`]).

use serde::{Deserialize, Serialize};

/// What opens and what closes something. White space at the borders is no part of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Frame {
    /// What opens it.
    pub open: String,
    /// What closes it.
    pub close: String,
}

impl Frame {
    /// A frame without white space around its texts.
    pub fn new(open: &str, close: &str) -> Self {
        Self { open: open.trim().to_owned(), close: close.trim().to_owned() }
    }
}

/// Turns that are made of parts, each with a header that says whom the part is for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Parts {
    /// What a header begins with.
    pub header: String,
    /// What ends a header and begins the body.
    pub body: String,
    /// What ends a body, if another part may follow.
    pub ends: Vec<String>,
    /// The header of reasoning, without `header` and `body`; empty if there is none.
    pub reasoning: String,
    /// The header of content.
    pub content: String,
    /// What stands before the name of a tool in the header of a call; none if calls are not addressed by header.
    pub recipient: Option<String>,
}

/// One way of writing tool calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calls {
    /// What begins a call, or a block of calls; empty if nothing does, and a call is the whole turn.
    #[serde(default)]
    pub open: String,
    /// What stands between `open` and the name.
    #[serde(default)]
    pub lead: String,
    /// What may stand between the arguments and `close`.
    #[serde(default)]
    pub trail: String,
    /// What ends a call or a block of calls; empty if the next mark or the end of the turn does.
    #[serde(default)]
    pub close: String,
    /// What is written in between.
    pub body: Body,
}

/// How name and arguments are written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "form", rename_all = "snake_case", deny_unknown_fields)]
pub enum Body {
    /// JSON objects that hold name and arguments, one or several, in a list or not.
    Json {
        /// The keys that lead to the name; empty if the name is itself the key of the arguments.
        name: Vec<String>,
        /// The keys that lead to the arguments.
        arguments: Vec<String>,
        /// Whether the arguments are JSON text inside the JSON.
        #[serde(default)]
        as_text: bool,
    },
    /// A name, and arguments as a JSON object.
    Named {
        /// The texts between name and arguments; a call id may stand between two of them.
        separators: Vec<String>,
        /// What stands between the name and a running number behind it; empty if there is none.
        #[serde(default)]
        index: String,
    },
    /// A name, and each argument between tags of its own.
    Tagged(Tags),
    /// A name, and arguments in brackets, as in a programming language.
    Literal(Literals),
}

/// The tags of [`Body::Tagged`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tags {
    /// What ends the name.
    pub name_close: String,
    /// What stands before a key.
    pub key_open: String,
    /// What ends a key.
    pub key_close: String,
    /// What stands before a value, after the attribute of the key if it has one.
    pub value_open: String,
    /// What ends a value; [`KEY`] in it stands for the key.
    pub value_close: String,
    /// Whether one line feed before a value belongs to the tags.
    pub line_before: bool,
    /// Whether one line feed behind a value does.
    pub line_after: bool,
    /// Whether a value may stand in a CDATA section.
    pub cdata: bool,
    /// What is written between `key_close` and `value_open` for a text, and for each other type; empty if nothing.
    pub text_attributes: Vec<String>,
    /// The same for all other types.
    pub other_attributes: Vec<String>,
}

/// Stands for the key in [`Tags::value_close`].
pub const KEY: char = '\u{1}';

/// The signs of [`Body::Literal`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Literals {
    /// What stands between the name and the first key.
    pub open: String,
    /// What stands between key and value.
    pub assign: String,
    /// What ends the arguments.
    pub close: String,
    /// Signs around a text other than quotation marks.
    pub quotes: Option<Frame>,
    /// Whether numbers and other values stand between the signs of texts as well.
    pub all_quoted: bool,
}

/// What a template's assistant turns look like after the prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Grammar {
    /// The end of a prompt, before whatever of the answer it holds already.
    pub header: String,
    /// What the prompt holds after the header, if nothing else is known about it.
    pub prefill: String,
    /// What stands around reasoning.
    pub reasoning: Option<Frame>,
    /// Marks that belong to neither content nor calls.
    pub marks: Vec<String>,
    /// Parts with headers, if turns are made of them.
    pub parts: Option<Parts>,
    /// The ways of writing calls.
    pub calls: Vec<Calls>,
    /// What ends the turn.
    pub stops: Vec<String>,
    /// Whether the template wants the arguments of a call as JSON text.
    pub arguments_as_text: bool,
    /// What could not be learned, in words.
    pub notes: Vec<String>,
}
