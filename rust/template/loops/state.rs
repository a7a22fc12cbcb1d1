//! What `loop` knows: where the loop stands, and the items around the current one.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use super::super::ast::For;
use super::super::compare::equal;
use super::super::frame::Frame;
use super::super::generator::Source;
use super::super::value::{List, Reads, Undefined, Value};
use crate::Result;

/// What `loop` knows.
#[derive(Debug)]
pub(in super::super) struct LoopState<'a> {
    pub(super) items: Items<'a>,
    /// The length, where it is known without drawing the items.
    pub(super) length: Cell<Option<usize>>,
    pub(super) index0: Cell<usize>,
    last_changed: RefCell<Option<List<'a>>>,
    depth: usize,
    /// Whether its items are those that another loop has not come to.
    pub(super) shared: bool,
    /// The loop itself, if it is recursive, with the frame around it.
    pub(in super::super) recursive: Option<(&'a For, Rc<Frame<'a>>)>,
    /// What is learned of the messages, if they are what it goes over.
    reads: Option<&'a Reads>,
}

/// Where the items of a loop come from.
#[derive(Debug)]
pub(super) enum Items<'a> {
    /// A list, any item of which can be looked at.
    Listed(List<'a>),
    /// All else: each item is drawn once.
    Drawn(Box<Drawn<'a>>),
}

/// What is drawn from a source. Each part is borrowed apart: the condition of a loop may look at the loop while an item
/// is drawn.
#[derive(Debug)]
pub(super) struct Drawn<'a> {
    pub(super) source: RefCell<Source<'a>>,
    /// Items taken from the source before their turn.
    pub(super) ahead: RefCell<VecDeque<Value<'a>>>,
    pub(super) current: RefCell<Value<'a>>,
    pub(super) before: RefCell<Value<'a>>,
}

impl<'a> Items<'a> {
    fn of(source: Source<'a>) -> Self {
        match source {
            Source::Items(items, _) => Self::Listed(items),
            source => Self::Drawn(Box::new(Drawn {
                source: RefCell::new(source),
                ahead: RefCell::default(),
                current: RefCell::new(Value::Missing),
                before: RefCell::new(Value::Missing),
            })),
        }
    }
}

impl<'a> LoopState<'a> {
    pub(super) fn new(
        source: Source<'a>,
        length: Option<usize>,
        depth: usize,
        recursive: Option<(&'a For, Rc<Frame<'a>>)>,
    ) -> Self {
        let shared = matches!(source, Source::Running(_));
        let items = Items::of(source);
        let reads = match &items {
            Items::Listed(items) => items.reads(),
            Items::Drawn(_) => None,
        };
        Self {
            items,
            shared,
            reads,
            length: Cell::new(length),
            index0: Cell::new(usize::MAX),
            last_changed: RefCell::new(None),
            depth,
            recursive,
        }
    }

    /// Counted from 0; a loop that has not begun is before 0.
    pub(in super::super) fn index0(&self) -> usize {
        self.index0.get()
    }

    pub(super) fn index(&self) -> i64 {
        self.index0.get().wrapping_add(1) as i64
    }

    /// How deep this loop is in the recursion, counted from 1.
    pub(in super::super) fn depth(&self) -> usize {
        self.depth + 1
    }

    pub(in super::super) fn is_true(&self) -> bool {
        self.length.get() != Some(0)
    }

    /// Notes that the number of items was looked at.
    pub(super) fn count(&self) {
        if let Some(reads) = self.reads {
            reads.count();
        }
    }

    /// Whether this is the last item of so many. That it is not stays so when there are more.
    pub(super) fn is_last(&self, length: usize) -> bool {
        let last = self.index0.get().wrapping_add(1) >= length;
        if last {
            self.count();
        }
        last
    }

    /// Goes behind the first `index` items of a list, as if they had had their turn.
    pub(super) fn skip(&self, index: usize) {
        self.index0.set(index.wrapping_sub(1));
    }

    /// The item that had its turn before the current one.
    fn before(&self) -> Value<'a> {
        match &self.items {
            Items::Listed(items) => items.get(self.index0.get().wrapping_sub(1)).unwrap_or(Value::Missing),
            Items::Drawn(drawn) => drawn.before.borrow().clone(),
        }
    }

    pub(in super::super) fn shown(&self) -> String {
        self.count();
        let length = self.length.get().map_or_else(|| "?".to_owned(), |length| length.to_string());
        format!("<LoopContext {}/{length}>", self.index())
    }

    /// The place of the current item, if the property is that.
    pub(in super::super) fn place(&self, property: LoopProperty) -> Option<i64> {
        match property {
            LoopProperty::Index => Some(self.index()),
            LoopProperty::Index0 => Some(self.index() - 1),
            LoopProperty::First | LoopProperty::Last => None,
        }
    }

    /// A property, if it can be told without a further item.
    pub(in super::super) fn ready(&self, property: LoopProperty) -> Option<Value<'a>> {
        Some(match property {
            LoopProperty::Index | LoopProperty::Index0 => Value::Int(self.place(property)?),
            LoopProperty::First => Value::Bool(self.index0.get() == 0),
            LoopProperty::Last if self.shared => return None,
            LoopProperty::Last => Value::Bool(self.is_last(self.length.get()?)),
        })
    }

    /// Properties that need no further item; [`Renderer::loop_property`] has the others.
    pub(in super::super) fn property(&self, name: &str) -> Option<Value<'a>> {
        Some(match name {
            "index" => Value::Int(self.index()),
            "index0" => Value::Int(self.index() - 1),
            "first" => Value::Bool(self.index0.get() == 0),
            "depth" => Value::Int(self.depth as i64 + 1),
            "depth0" => Value::Int(self.depth as i64),
            "previtem" if self.index0.get() == 0 => hint("there is no previous item"),
            "previtem" => self.before(),
            _ => return None,
        })
    }

    pub(in super::super) fn changed(&self, values: Vec<Value<'a>>) -> Result<bool> {
        self.count();
        let values = List::new(values);
        let mut last = self.last_changed.borrow_mut();
        let same = match &*last {
            Some(last) => equal(&Value::Tuple(last.clone()), &Value::Tuple(values.clone()))?,
            None => false,
        };
        if !same {
            *last = Some(values);
        }
        Ok(!same)
    }
}

/// The properties of `loop` that templates ask for at every item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum LoopProperty {
    Index,
    Index0,
    First,
    Last,
}

impl LoopProperty {
    pub(in super::super) fn find(name: &str) -> Option<Self> {
        Some(match name {
            "index" => Self::Index,
            "index0" => Self::Index0,
            "first" => Self::First,
            "last" => Self::Last,
            _ => return None,
        })
    }
}

pub(super) fn hint<'a>(text: &str) -> Value<'a> {
    Value::Undefined(Undefined::Hint(text.into()))
}
