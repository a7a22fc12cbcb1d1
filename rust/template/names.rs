//! The names that templates read and do not assign, and what stands for each in a rendering.
//!
//! The variables that every rendering has go before the caller's, those before special tokens, and those before the
//! functions of the environment.

use std::sync::Arc;

use super::RenderOptions;
use super::globals;
use super::text::GIVEN;
use super::value::{Function, List, Message, Value};
use crate::author::Author;
use crate::message::{Conversation, Data};

/// A name that a template takes from the arguments of the rendering, from special tokens, or from the globals.
#[derive(Debug, Clone)]
pub(super) struct FreeName {
    pub(super) name: Box<str>,
    meaning: Meaning,
}

#[derive(Debug, Clone, Copy)]
enum Meaning {
    Messages,
    Tools,
    Documents,
    GenerationPrompt,
    /// What the caller says, else the function of this name.
    Given(Option<Function>),
}

impl FreeName {
    pub(super) fn new(name: Box<str>) -> Self {
        let meaning = match &*name {
            "messages" => Meaning::Messages,
            "tools" => Meaning::Tools,
            "documents" => Meaning::Documents,
            "add_generation_prompt" => Meaning::GenerationPrompt,
            name => Meaning::Given(globals::find(name)),
        };
        Self { name, meaning }
    }
}

/// What a rendering is given.
#[derive(Debug, Clone, Copy)]
pub(super) struct Given<'a> {
    pub(super) messages: &'a [Message<'a>],
    pub(super) conversation: &'a Conversation,
    pub(super) options: &'a RenderOptions,
}

impl<'a> Given<'a> {
    /// The value of a name; one that nothing stands for has none.
    pub(super) fn value(&self, name: &FreeName) -> Value<'a> {
        match name.meaning {
            Meaning::Messages => Value::List(List::Messages(self.messages)),
            Meaning::Tools => optional(self.conversation.tools.as_ref(), Author::Tools),
            Meaning::Documents => optional(self.conversation.documents.as_ref(), Author::Documents),
            Meaning::GenerationPrompt => Value::Bool(self.options.add_generation_prompt),
            Meaning::Given(function) => {
                self.find(&name.name).or_else(|| function.map(Value::Function)).unwrap_or(Value::Missing)
            }
        }
    }

    fn find(&self, name: &str) -> Option<Value<'a>> {
        let special = find(&self.options.special_tokens, name);
        // An argument that stands for a special token may be one.
        let author = if special.is_some() { None } else { Some(GIVEN) };
        let given = find(&self.conversation.arguments, name).map(|value| Value::from_data(value, author));
        given.or_else(|| special.map(|value| Value::from_data(value, None)))
    }
}

fn optional(data: Option<&Data>, author: Author) -> Value<'_> {
    data.map_or(Value::None, |data| Value::from_data(data, Some(author)))
}

fn find<'a>(pairs: &'a [(Arc<str>, Data)], name: &str) -> Option<&'a Data> {
    pairs.iter().rev().find(|(known, _)| **known == *name).map(|(_, value)| value)
}
