//! Conversations as plain data: messages, tools, documents and template arguments.
//!
//! Dicts keep their order and lists their identity, because a template can see both. What transformers does to a
//! conversation before it renders (drops keys whose value is None, copies reasoning fields) happens in
//! [`Conversation::normalised`], so that every caller sees the same data.

use std::sync::Arc;

use indexmap::IndexMap;

/// Plain data as a template sees it: what JSON can say, and integers of any size.
#[derive(Debug, Clone, Default)]
pub enum Data {
    /// `None`.
    #[default]
    Null,
    /// `True` or `False`.
    Bool(bool),
    /// An integer of 64 bits.
    Int(i64),
    /// A larger integer, in decimal digits.
    BigInt(Arc<str>),
    /// A float; not finite ones too.
    Float(f64),
    /// A text.
    Text(Arc<str>),
    /// A list.
    List(Arc<[Self]>),
    /// A dict in insertion order.
    Dict(Arc<Dict>),
}

/// A dict in insertion order. Keys are almost always texts; Python allows numbers, booleans and None as well.
pub type Dict = IndexMap<Key, Data>;

/// A key of a [`Dict`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Key {
    /// A text.
    Text(Arc<str>),
    /// `True` or `False`.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float, by its bits.
    Float(u64),
    /// `None`.
    Null,
}

/// Everything a template is rendered with, apart from its special tokens and the clock.
#[derive(Debug, Clone, Default)]
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
