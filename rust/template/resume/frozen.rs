//! Values apart from the rendering that computed them: to compare with those of another rendering, and to go on with.
//!
//! *Invariant*: two values that freeze to the same are the same to a template, given that the conversations they come
//! from hold the same objects. Where that cannot be said of a value (it holds state, or is an iterator), it has no frozen
//! form.

use super::super::text::{Mark, Run, Text};
use super::super::value::{Function, List, Map, Message, Namespace, Range, Value};

/// A value without its lifetime.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Frozen {
    Missing,
    None,
    Bool(bool),
    Int(i64),
    Float(u64),
    Text(String, Vec<Run>, bool),
    Range(Range),
    Function(Function),
    /// In words: what is undefined is known by them.
    Undefined(String),
    /// A macro, by its place in the template.
    Macro(usize),
    Message(u32),
    /// Messages from one of this index on; how many there are is noted when it is read.
    Messages(u32),
    /// A list, tuple or dict of the conversation, by its address.
    Given(usize, usize, Mark),
    List(Vec<Self>, Mark),
    Tuple(Vec<Self>, Mark),
    Dict(Vec<(Self, Self)>),
    Namespace(Fields),
}

/// The fields of a namespace.
pub(super) type Fields = Vec<(String, Frozen)>;

/// Values nested deeper than this have no frozen form.
const DEPTH: usize = 8;

impl Frozen {
    pub(super) fn of(value: &Value<'_>) -> Option<Self> {
        Self::at(value, DEPTH)
    }

    fn at(value: &Value<'_>, depth: usize) -> Option<Self> {
        let depth = depth.checked_sub(1)?;
        Some(match value {
            Value::Missing => Self::Missing,
            Value::None => Self::None,
            Value::Bool(flag) => Self::Bool(*flag),
            Value::Int(number) => Self::Int(*number),
            Value::Float(number) => Self::Float(number.to_bits()),
            Value::Text(text) => Self::Text(text.as_str().to_owned(), text.runs().collect(), text.is_safe()),
            Value::Range(range) => Self::Range(*range),
            Value::Function(function) => Self::Function(*function),
            Value::Undefined(undefined) => Self::Undefined(format!("{undefined:?}")),
            Value::Macro(value) => Self::Macro(std::ptr::from_ref(value.definition).addr()),
            Value::List(items) => Self::items(items, depth, Self::List)?,
            Value::Tuple(items) => Self::items(items, depth, Self::Tuple)?,
            Value::Dict(map) => Self::map(map, depth)?,
            Value::Namespace(fields) => {
                let fields = fields.borrow();
                let field =
                    |(name, value): &(Text<'_>, Value<'_>)| Some((name.as_str().to_owned(), Self::at(value, depth)?));
                Self::Namespace(fields.iter().map(field).collect::<Option<_>>()?)
            }
            _ => return None,
        })
    }

    /// A value inside a list, tuple or dict. A namespace has no frozen form there: what is put into it would go unseen,
    /// since only those that variables hold are looked at when an iteration is over.
    fn inside(value: &Value<'_>, depth: usize) -> Option<Self> {
        Self::at(value, depth).filter(|frozen| !matches!(frozen, Self::Namespace(_)))
    }

    fn items(items: &List<'_>, depth: usize, form: fn(Vec<Self>, Mark) -> Self) -> Option<Self> {
        match items {
            List::Messages(messages) => messages.first().map(|message| Self::Messages(message.index)),
            List::Data(items, mark) => Some(Self::Given(items.as_ptr().addr(), items.len(), *mark)),
            List::Reversed(_) | List::Built(_) | List::Picked(_) => {
                let frozen = items.iter().map(|item| Self::inside(&item, depth)).collect::<Option<_>>()?;
                Some(form(frozen, items.owner()))
            }
        }
    }

    fn map(map: &Map<'_>, depth: usize) -> Option<Self> {
        match map {
            Map::Message(message) => Some(Self::Message(message.index)),
            Map::Data(dict, mark) => Some(Self::Given(std::ptr::from_ref(*dict).addr(), usize::MAX, *mark)),
            Map::Built(_) => {
                let entry = |(key, value)| Some((Self::inside(&key, depth)?, Self::inside(&value, depth)?));
                map.entries().map(entry).collect::<Option<_>>().map(Self::Dict)
            }
        }
    }

    /// Whether a value freezes to this, where a look tells; `false` says nothing.
    pub(super) fn is(&self, value: &Value<'_>) -> bool {
        match (self, value) {
            (Self::Missing, Value::Missing) | (Self::None, Value::None) => true,
            (Self::Bool(one), Value::Bool(two)) => one == two,
            (Self::Int(one), Value::Int(two)) => one == two,
            (Self::Function(one), Value::Function(two)) => one == two,
            (Self::Text(one, runs, safe), Value::Text(two)) => {
                one == two.as_str() && *safe == two.is_safe() && two.runs().eq(runs.iter().copied())
            }
            (Self::Macro(place), Value::Macro(two)) => *place == std::ptr::from_ref(two.definition).addr(),
            (Self::Messages(first), Value::List(List::Messages(messages))) => {
                messages.first().is_some_and(|message| message.index == *first)
            }
            (
                Self::Given(place, length, mark),
                Value::List(List::Data(items, two)) | Value::Tuple(List::Data(items, two)),
            ) => (*place, *length, *mark) == (items.as_ptr().addr(), items.len(), *two),
            (Self::Namespace(one), Value::Namespace(two)) => two.try_borrow().is_ok_and(|two| Self::are(one, &two)),
            _ => false,
        }
    }

    /// The same of the fields of a namespace.
    pub(super) fn are(fields: &Fields, namespace: &Namespace<'_>) -> bool {
        let same = |((name, frozen), (own, value)): (&(String, Self), &(Text<'_>, Value<'_>))| {
            name == own.as_str() && frozen.is(value)
        };
        fields.len() == namespace.len() && fields.iter().zip(namespace.iter()).all(same)
    }

    /// As many messages as are in this value, from the first of the conversation on.
    pub(super) fn messages(&self) -> usize {
        match self {
            Self::Message(index) => *index as usize + 1,
            Self::List(items, _) | Self::Tuple(items, _) => items.iter().map(Self::messages).max().unwrap_or_default(),
            Self::Dict(entries) => entries.iter().map(|(_, value)| value.messages()).max().unwrap_or_default(),
            Self::Namespace(fields) => fields.iter().map(|(_, value)| value.messages()).max().unwrap_or_default(),
            _ => 0,
        }
    }

    /// Whether a rendering can go on with this value.
    pub(super) fn thaws(&self) -> bool {
        match self {
            Self::None | Self::Bool(_) | Self::Int(_) | Self::Float(_) | Self::Text(..) | Self::Message(_) => true,
            Self::List(items, _) | Self::Tuple(items, _) => items.iter().all(Self::thaws),
            _ => false,
        }
    }

    /// The value in a rendering of these messages; `None` if it cannot go on with it.
    pub(super) fn thawed<'a>(&self, messages: &'a [Message<'a>]) -> Option<Value<'a>> {
        let all = |items: &[Self]| items.iter().map(|item| item.thawed(messages)).collect::<Option<Vec<_>>>();
        Some(match self {
            Self::None => Value::None,
            Self::Bool(flag) => Value::Bool(*flag),
            Self::Int(number) => Value::Int(*number),
            Self::Float(bits) => Value::Float(f64::from_bits(*bits)),
            Self::Text(text, runs, safe) => Value::Text(Text::from_runs(text.clone(), runs.clone(), *safe)),
            Self::Message(index) => Value::Dict(Map::Message(messages.get(*index as usize)?)),
            Self::List(items, mark) => Value::List(List::owned(all(items)?, *mark)),
            Self::Tuple(items, mark) => Value::Tuple(List::owned(all(items)?, *mark)),
            _ => return None,
        })
    }
}
