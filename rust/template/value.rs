//! What a template computes with: Python's values, texts that carry authors, and messages that know which one they are.
//!
//! Values borrow from the template and the conversation, so that reading a field copies nothing. A container that a
//! message field, the tools or the documents hold remembers its author; one that the template builds has none.

mod list;
mod map;
mod undefined;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use num_bigint::BigInt;

use super::ast;
use super::generator::Generator;
use super::loops::LoopState;
use super::methods::Method;
use super::text::{Mark, Text};
use crate::message::{Data, Key};

pub(super) use list::{List, Reads};
pub(super) use map::{Entries, Fields, HashKey, Map, Message, insert};
pub(super) use undefined::Undefined;

/// A value.
#[derive(Debug, Clone)]
pub(super) enum Value<'a> {
    /// A variable that has no value yet; templates never see it.
    Missing,
    Undefined(Undefined<'a>),
    None,
    Bool(bool),
    Int(i64),
    /// Beyond 64 bits.
    Big(Rc<BigInt>),
    Float(f64),
    Text(Text<'a>),
    /// An encoded text; templates can hardly do more than print it.
    Bytes(Rc<[u8]>),
    List(List<'a>),
    Tuple(List<'a>),
    Dict(Map<'a>),
    Range(Range),
    /// What `dict.keys()`, `.values()` and `.items()` give.
    View(View, Map<'a>),
    Namespace(Rc<RefCell<Namespace<'a>>>),
    Generator(Rc<RefCell<Generator<'a>>>),
    Macro(Rc<MacroValue<'a>>),
    Method(Rc<(Self, Method)>),
    Function(Function),
    Loop(Rc<LoopState<'a>>),
    Cycler(Rc<(List<'a>, Cell<usize>)>),
    Joiner(Rc<(Text<'a>, Cell<bool>)>),
    Slice(Rc<[Self; 3]>),
    /// A group of `groupby`: a tuple whose items have names.
    Group(Rc<(Self, Self)>),
    /// `self`, and a block of it by its index.
    Template,
    Block(usize),
}

/// The fields of a namespace. It has a few, and is asked for them by name all the time: a scan is quicker than a hash.
#[derive(Debug, Default)]
pub(super) struct Namespace<'a>(Vec<(Text<'a>, Value<'a>)>);

impl<'a> Namespace<'a> {
    /// A namespace of fields, no two of which have the same name.
    pub(super) fn from_unique(fields: Vec<(Text<'a>, Value<'a>)>) -> Self {
        Self(fields)
    }

    /// How many fields there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn get(&self, name: &str) -> Option<&Value<'a>> {
        self.0.iter().find(|(known, _)| known.as_str() == name).map(|(_, value)| value)
    }

    /// Sets a field, and returns the value it had.
    pub(super) fn set(&mut self, name: Text<'a>, value: Value<'a>) -> Option<Value<'a>> {
        if let Some((_, place)) = self.0.iter_mut().find(|(known, _)| known.as_str() == name.as_str()) {
            return Some(std::mem::replace(place, value));
        }
        self.0.push((name, value));
        None
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &(Text<'a>, Value<'a>)> {
        self.0.iter()
    }
}

/// The functions of the environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Range,
    Dict,
    DictFromKeys,
    Namespace,
    Lipsum,
    Cycler,
    Joiner,
    RaiseException,
    StrftimeNow,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum View {
    Keys,
    Values,
    Items,
}

/// `range(start, start + step * length, step)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) start: i64,
    pub(super) stop: i64,
    pub(super) step: i64,
}

impl Range {
    pub(super) fn len(&self) -> usize {
        let (from, to, step) = (i128::from(self.start), i128::from(self.stop), i128::from(self.step));
        let span = if step > 0 { to - from } else { from - to };
        if span <= 0 { 0 } else { ((span - 1) / step.abs() + 1) as usize }
    }

    pub(super) fn get(&self, index: usize) -> i64 {
        self.start.wrapping_add(self.step.wrapping_mul(index as i64))
    }
}

/// A macro with the variables around it.
#[derive(Debug)]
pub(super) struct MacroValue<'a> {
    pub(super) definition: &'a ast::Macro,
    pub(super) frame: Rc<super::frame::Frame<'a>>,
}

/// Values are moved more often than anything else is done with them.
const _: () = assert!(size_of::<Value<'_>>() <= 32);

impl<'a> Value<'a> {
    /// Data of one author.
    pub(super) fn from_data(data: &'a Data, owner: Mark) -> Self {
        match data {
            Data::Null => Self::None,
            Data::Bool(flag) => Self::Bool(*flag),
            Data::Int(number) => Self::Int(*number),
            Data::BigInt(digits) => super::number::big_from_digits(digits),
            Data::Float(number) => Self::Float(*number),
            Data::Text(text) => Self::Text(Text::borrowed(text, owner)),
            Data::List(items) => Self::List(List::Data(items, owner)),
            Data::Tuple(items) => Self::Tuple(List::Data(items, owner)),
            Data::Dict(dict) => Self::Dict(Map::Data(dict, owner)),
        }
    }

    /// A message, which is looked at thereby.
    fn from_message(message: &'a Message<'a>) -> Self {
        message.reads.message(message.index);
        Self::Dict(Map::Message(message))
    }

    /// A key of a dict of one author.
    pub(super) fn from_key(key: &'a Key, owner: Mark) -> Self {
        match key {
            Key::Text(text) => Self::Text(Text::borrowed(text, owner)),
            Key::Bool(flag) => Self::Bool(*flag),
            Key::Int(number) => Self::Int(*number),
            Key::Float(bits) => Self::Float(f64::from_bits(*bits)),
            Key::Null => Self::None,
        }
    }

    pub(super) fn from_const(constant: &'a ast::Const) -> Self {
        match constant {
            ast::Const::None => Self::None,
            ast::Const::Bool(flag) => Self::Bool(*flag),
            ast::Const::Int(number) => Self::Int(*number),
            ast::Const::Big(digits) => super::number::big_from_digits(digits),
            ast::Const::Float(number) => Self::Float(*number),
            ast::Const::Text(text) => Self::literal(text),
        }
    }

    /// A text of the template.
    pub(super) fn literal(text: &'a str) -> Self {
        Self::Text(Text::borrowed(text, None))
    }

    /// A new text of the template.
    pub(super) fn own(text: impl Into<String>) -> Self {
        Self::Text(Text::own(text))
    }

    pub(super) fn list(items: Vec<Self>) -> Self {
        Self::List(List::new(items))
    }

    pub(super) fn tuple(items: Vec<Self>) -> Self {
        Self::Tuple(List::new(items))
    }

    pub(super) fn as_text(&self) -> Option<&Text<'a>> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The text, if it is one that is only to be put together with others: not safe.
    pub(super) fn as_plain_text(&self) -> Option<&Text<'a>> {
        self.as_text().filter(|text| !text.is_safe())
    }

    pub(super) fn as_str(&self) -> Option<&str> {
        self.as_text().map(Text::as_str)
    }

    pub(super) fn is_undefined(&self) -> bool {
        matches!(self, Self::Undefined(_))
    }

    /// The message that this is, by its index.
    pub(super) fn message_index(&self) -> Option<u32> {
        match self {
            Self::Dict(Map::Message(message)) => Some(message.index),
            _ => None,
        }
    }

    /// The name of its Python type.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Missing | Self::Undefined(_) => "Undefined",
            Self::None => "NoneType",
            Self::Bool(_) => "bool",
            Self::Int(_) | Self::Big(_) => "int",
            Self::Float(_) => "float",
            Self::Text(text) if text.is_safe() => "Markup",
            Self::Text(_) => "str",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "list",
            Self::Tuple(_) => "tuple",
            Self::Dict(_) => "dict",
            Self::Range(_) => "range",
            Self::View(View::Keys, _) => "dict_keys",
            Self::View(View::Values, _) => "dict_values",
            Self::View(View::Items, _) => "dict_items",
            Self::Namespace(_) => "TemplateNamespace",
            Self::Generator(generator) => generator.borrow().type_name(),
            Self::Macro(_) => "Macro",
            Self::Method(_) => "builtin_function_or_method",
            Self::Function(function) => function.type_name(),
            Self::Loop(_) => "LoopContext",
            Self::Cycler(_) => "Cycler",
            Self::Joiner(_) => "Joiner",
            Self::Slice(_) => "slice",
            Self::Group(_) => "_GroupTuple",
            Self::Template => "TemplateReference",
            Self::Block(_) => "BlockReference",
        }
    }

    /// Python's truth of a value.
    pub(super) fn is_true(&self) -> bool {
        match self {
            Self::Missing | Self::Undefined(_) | Self::None => false,
            Self::Bool(flag) => *flag,
            Self::Int(number) => *number != 0,
            Self::Float(number) => *number != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::Bytes(bytes) => !bytes.is_empty(),
            Self::List(items) | Self::Tuple(items) => items.len() > 0,
            Self::Dict(map) | Self::View(_, map) => map.len() > 0,
            Self::Range(range) => range.len() > 0,
            Self::Loop(state) => state.is_true(),
            _ => true,
        }
    }

    /// Python's `is`.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::None, Self::None) | (Self::Template, Self::Template) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            // Python keeps one object for each small integer.
            (Self::Int(a), Self::Int(b)) => a == b && (-5..=256).contains(a),
            (Self::Text(a), Self::Text(b)) => {
                std::ptr::eq(a.as_str(), b.as_str()) || (a.len() < 2 && a.as_str() == b.as_str())
            }
            (Self::List(a), Self::List(b)) => a.same(b),
            (Self::Tuple(a), Self::Tuple(b)) => a.same(b) || (a.len() == 0 && b.len() == 0),
            (Self::Dict(a), Self::Dict(b)) => a.same(b),
            (Self::Namespace(a), Self::Namespace(b)) => Rc::ptr_eq(a, b),
            (Self::Generator(a), Self::Generator(b)) => Rc::ptr_eq(a, b),
            (Self::Macro(a), Self::Macro(b)) => Rc::ptr_eq(a, b),
            (Self::Loop(a), Self::Loop(b)) => Rc::ptr_eq(a, b),
            (Self::Cycler(a), Self::Cycler(b)) => Rc::ptr_eq(a, b),
            (Self::Joiner(a), Self::Joiner(b)) => Rc::ptr_eq(a, b),
            (Self::Group(a), Self::Group(b)) => Rc::ptr_eq(a, b),
            (Self::Function(a), Self::Function(b)) => a == b,
            _ => false,
        }
    }
}

impl Function {
    fn type_name(self) -> &'static str {
        match self {
            Self::Dict => "TemplateDict",
            Self::DictFromKeys => "method",
            Self::Namespace | Self::Cycler | Self::Joiner => "type",
            Self::Range | Self::Lipsum | Self::RaiseException | Self::StrftimeNow => "function",
        }
    }
}
