//! Conversations as plain data: messages, tools, documents and template arguments.
//!
//! Dicts keep their order and lists their identity, because a template can see both. What transformers does to a
//! conversation before it renders (drops keys whose value is None, copies reasoning fields) happens in
//! [`Conversation::normalised`], so that every caller sees the same data.

mod common;
mod dict;
mod json;
mod read;

use std::borrow::Cow;
use std::sync::Arc;

#[cfg(feature = "python")]
pub(crate) use common::common;
pub(crate) use common::{same_text, shared};
pub use dict::{Dict, Key};

/// Plain data as a template sees it: what JSON can say, tuples, and integers of any size.
///
/// Equality is that of the representation: `Int(1)` is neither `Float(1.0)` nor `Bool(true)`.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Data {
    /// `None`.
    #[default]
    Null,
    /// `True` or `False`.
    Bool(bool),
    /// An integer of 64 bits.
    Int(i64),
    /// A larger integer, in decimal digits with an optional sign.
    BigInt(Arc<str>),
    /// A float; not finite ones too.
    Float(f64),
    /// A text.
    Text(Arc<str>),
    /// A list.
    List(Arc<[Self]>),
    /// A tuple.
    Tuple(Arc<[Self]>),
    /// A dict in insertion order.
    Dict(Arc<Dict>),
}

impl Data {
    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The dict, if it is one.
    pub fn as_dict(&self) -> Option<&Dict> {
        match self {
            Self::Dict(dict) => Some(dict),
            _ => None,
        }
    }

    /// The items of a list or tuple.
    pub fn as_items(&self) -> Option<&[Self]> {
        match self {
            Self::List(items) | Self::Tuple(items) => Some(items),
            _ => None,
        }
    }

    /// The value under a text key, if this is a dict that has it.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.as_dict()?.get(key)
    }

    /// The name of its Python type.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "NoneType",
            Self::Bool(_) => "bool",
            Self::Int(_) | Self::BigInt(_) => "int",
            Self::Float(_) => "float",
            Self::Text(_) => "str",
            Self::List(_) => "list",
            Self::Tuple(_) => "tuple",
            Self::Dict(_) => "dict",
        }
    }
}

impl From<&str> for Data {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Data {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<Dict> for Data {
    fn from(dict: Dict) -> Self {
        Self::Dict(Arc::new(dict))
    }
}

impl From<Vec<Self>> for Data {
    fn from(items: Vec<Self>) -> Self {
        Self::List(items.into())
    }
}

/// Whether both are one object, or equal where that is told at once. `false` says nothing.
pub(crate) fn same(one: &Data, two: &Data) -> bool {
    match (one, two) {
        (Data::List(one), Data::List(two)) | (Data::Tuple(one), Data::Tuple(two)) => Arc::ptr_eq(one, two),
        (Data::Dict(one), Data::Dict(two)) => Arc::ptr_eq(one, two),
        (Data::Float(one), Data::Float(two)) => one.to_bits() == two.to_bits(),
        (Data::List(_) | Data::Tuple(_) | Data::Dict(_), _) => false,
        (one, two) => one == two,
    }
}

/// The names a message's reasoning is passed under; the first is the one that chat templates read.
pub const REASONING_FIELDS: [&str; 3] = ["reasoning_content", "thinking", "reasoning"];

/// Everything a template is rendered with, apart from its special tokens and the clock.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conversation {
    /// The messages, each a [`Data::Dict`].
    pub messages: Vec<Data>,
    /// The tools: `None` reaches the template as a defined None.
    pub tools: Option<Data>,
    /// The documents, likewise.
    pub documents: Option<Data>,
    /// Further template arguments, in the order given.
    pub arguments: Vec<(Arc<str>, Data)>,
}

impl Conversation {
    /// A conversation of messages alone.
    pub fn new(messages: Vec<Data>) -> Self {
        Self { messages, ..Self::default() }
    }

    /// The conversation as transformers hands it to a template: message keys whose value is None are dropped, and the
    /// first filled reasoning field is copied to `reasoning_content` and, where absent, to `thinking`.
    ///
    /// Rendering does this itself; it is idempotent. A message that is no dict is left as it is.
    #[must_use]
    pub fn normalised(&self) -> Self {
        let messages = self.messages.iter().map(|message| normalised_message(message).into_owned()).collect();
        Self { messages, ..self.clone() }
    }
}

/// A message without None-valued keys and with its reasoning under the names that templates read.
pub(crate) fn normalised_message(message: &Data) -> Cow<'_, Data> {
    let Some(dict) = message.as_dict() else { return Cow::Borrowed(message) };
    let reasoning = REASONING_FIELDS.iter().find_map(|&name| dict.get(name).filter(|value| **value != Data::Null));
    match reasoning {
        None if is_normalised(message) => Cow::Borrowed(message),
        None => Cow::Owned(Data::from(filled(dict).collect::<Dict>())),
        Some(reasoning) => Cow::Owned(Data::from(with_reasoning(dict, reasoning))),
    }
}

/// Whether normalising certainly changes nothing.
pub(crate) fn is_normalised(message: &Data) -> bool {
    let changes = |(key, value): &(Key, Data)| matches!(value, Data::Null) || is_reasoning(key);
    message.as_dict().is_none_or(|dict| !dict.iter().any(changes))
}

fn is_reasoning(key: &Key) -> bool {
    key.as_text().is_some_and(|name| matches!(name, "reasoning_content" | "thinking" | "reasoning"))
}

fn filled(dict: &Dict) -> impl Iterator<Item = (Key, Data)> {
    dict.iter().filter(|(_, value)| *value != Data::Null).cloned()
}

/// `thinking` comes first even where the message has it already, and then keeps its own value.
fn with_reasoning(dict: &Dict, reasoning: &Data) -> Dict {
    let mut result = Dict::with_capacity(dict.len() + 2);
    result.insert("thinking", reasoning.clone());
    for (key, value) in filled(dict) {
        result.insert(key, value);
    }
    result.insert("reasoning_content", reasoning.clone());
    result
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use super::*;

    fn normalised(json: &str) -> String {
        normalised_message(&Data::from_json(json).unwrap()).to_json()
    }

    #[test]
    fn none_is_dropped_at_message_level_only() {
        let shown = normalised(r#"{"role": "user", "content": null, "x": {"y": null}}"#);
        assert_eq!(shown, r#"{"role": "user", "x": {"y": null}}"#);
    }

    #[test]
    fn reasoning_reaches_both_names_and_thinking_comes_first() {
        let shown = normalised(r#"{"role": "assistant", "reasoning": "r"}"#);
        assert_eq!(shown, r#"{"thinking": "r", "role": "assistant", "reasoning": "r", "reasoning_content": "r"}"#);
    }

    #[test]
    fn an_empty_reasoning_content_hides_a_filled_alias() {
        let shown = normalised(r#"{"reasoning_content": "", "thinking": "t"}"#);
        assert_eq!(shown, r#"{"thinking": "t", "reasoning_content": ""}"#);
    }

    #[test]
    fn normalising_twice_changes_nothing() {
        let message = Data::from_json(r#"{"a": null, "reasoning": "r", "thinking": "t"}"#).unwrap();
        let once = normalised_message(&message).into_owned();
        assert_eq!(normalised_message(&once).into_owned(), once);
    }
}
