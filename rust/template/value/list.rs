//! Lists and tuples: those of the conversation, the messages, and those that a template builds.
//!
//! *Invariant*: what a template learns of the messages goes through [`Reads`], so that a rendering of more messages
//! knows how far it can go the same way.

use std::cell::Cell;
use std::rc::Rc;

use super::super::text::Mark;
use super::Value;
use super::map::Message;
use crate::message::Data;

/// What a rendering has learned about the list of messages.
#[derive(Debug, Default)]
pub(in super::super) struct Reads {
    /// Something that may be otherwise when there are more messages.
    counted: Cell<bool>,
    /// As many messages as were looked at, from the first on.
    messages: Cell<usize>,
}

impl Reads {
    /// Notes that the number of messages was looked at.
    pub(in super::super) fn count(&self) {
        self.counted.set(true);
    }

    /// Notes that a message was looked at.
    pub(super) fn message(&self, index: u32) {
        self.messages.set(self.messages.get().max(index as usize + 1));
    }

    /// Whether the number of messages was looked at.
    pub(in super::super) fn counted(&self) -> bool {
        self.counted.get()
    }

    /// As many messages as were looked at, from the first on.
    pub(in super::super) fn messages(&self) -> usize {
        self.messages.get()
    }

    /// Begins anew with so many messages looked at.
    pub(in super::super) fn begin(&self, messages: usize) {
        self.counted.set(false);
        self.messages.set(messages);
    }
}

/// Notes that the number of these messages was looked at.
fn count_read(items: &[Message<'_>]) {
    if let Some(first) = items.first() {
        first.reads.count();
    }
}

/// A list or tuple, and the author of its whole dump if it has one.
#[derive(Debug, Clone)]
pub(in super::super) enum List<'a> {
    /// Inside a field, tools or documents, or a plain argument of the template (no author).
    Data(&'a [Data], Mark),
    /// Consecutive messages.
    Messages(&'a [Message<'a>]),
    /// Consecutive messages, last first.
    Reversed(Rc<Backwards<'a>>),
    Built(Rc<[Value<'a>]>),
    /// A slice of a field's list that is not one piece of it.
    Picked(Rc<(Box<[Value<'a>]>, Mark)>),
}

/// Consecutive messages, to be read from the last one on; whoever reverses them again makes another object.
#[derive(Debug)]
pub(in super::super) struct Backwards<'a>(&'a [Message<'a>]);

impl<'a> List<'a> {
    pub(in super::super) fn new(items: Vec<Value<'a>>) -> Self {
        Self::Built(items.into())
    }

    /// A new list whose dump has an author.
    pub(in super::super) fn owned(items: Vec<Value<'a>>, owner: Mark) -> Self {
        match owner {
            None => Self::new(items),
            owner => Self::Picked(Rc::new((items.into(), owner))),
        }
    }

    /// A new list of messages, last first.
    pub(in super::super) fn reversed(messages: &'a [Message<'a>]) -> Self {
        Self::Reversed(Rc::new(Backwards(messages)))
    }

    pub(in super::super) fn len(&self) -> usize {
        match self {
            Self::Data(items, _) => items.len(),
            Self::Messages(items) => {
                count_read(items);
                items.len()
            }
            Self::Reversed(items) => items.0.len(),
            Self::Built(items) => items.len(),
            Self::Picked(picked) => picked.0.len(),
        }
    }

    pub(in super::super) fn owner(&self) -> Mark {
        match self {
            Self::Data(_, owner) => *owner,
            Self::Picked(picked) => picked.1,
            Self::Messages(_) | Self::Reversed(_) | Self::Built(_) => None,
        }
    }

    pub(in super::super) fn get(&self, index: usize) -> Option<Value<'a>> {
        match self {
            Self::Data(items, owner) => items.get(index).map(|item| Value::from_data(item, *owner)),
            Self::Messages(items) => {
                let message = items.get(index);
                if message.is_none() {
                    count_read(items);
                }
                message.map(Value::from_message)
            }
            Self::Reversed(items) => items.0.iter().nth_back(index).map(Value::from_message),
            Self::Built(items) => items.get(index).cloned(),
            Self::Picked(picked) => picked.0.get(index).cloned(),
        }
    }

    /// What is learned of the messages, if these are messages.
    pub(in super::super) fn reads(&self) -> Option<&'a Reads> {
        self.messages()?.first().map(|message| message.reads)
    }

    /// The messages that this is, without a note of it.
    pub(in super::super) fn messages(&self) -> Option<&'a [Message<'a>]> {
        match self {
            Self::Messages(items) => Some(items),
            _ => None,
        }
    }

    pub(in super::super) fn iter(&self) -> impl DoubleEndedIterator<Item = Value<'a>> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// Items `start..end`, still borrowed where they were.
    pub(in super::super) fn slice(&self, start: usize, end: usize) -> Self {
        match self {
            Self::Data(items, owner) => Self::Data(&items[start..end], *owner),
            Self::Messages(items) => Self::Messages(&items[start..end]),
            Self::Reversed(items) => Self::reversed(&items.0[items.0.len() - end..items.0.len() - start]),
            Self::Built(items) => Self::Built(items[start..end].into()),
            Self::Picked(picked) => Self::owned(picked.0[start..end].to_vec(), picked.1),
        }
    }

    /// Whether both are the same object for Python's `is`, as far as a template can tell.
    pub(super) fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Data(a, _), Self::Data(b, _)) => std::ptr::eq(*a, *b),
            (Self::Messages(a), Self::Messages(b)) => {
                count_read(a);
                std::ptr::eq(*a, *b)
            }
            (Self::Reversed(a), Self::Reversed(b)) => Rc::ptr_eq(a, b),
            (Self::Built(a), Self::Built(b)) => Rc::ptr_eq(a, b),
            (Self::Picked(a), Self::Picked(b)) => Rc::ptr_eq(a, b),
            _ => false,
        }
    }
}
