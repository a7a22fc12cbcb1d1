//! `for` loops and their `loop` variable.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::ast::{For, LoopTest, Target};
use super::compare::equal;
use super::failure::type_error;
use super::frame::Frame;
use super::generator::Source;
use super::render::{Flow, Renderer};
use super::value::{List, Reads, Undefined, Value};
use crate::Result;

/// What `loop` knows.
#[derive(Debug)]
pub(super) struct LoopState<'a> {
    source: RefCell<Source<'a>>,
    /// Items taken from the source before their turn.
    ahead: RefCell<std::collections::VecDeque<Value<'a>>>,
    /// The length, where it is known without drawing the items.
    length: Cell<Option<usize>>,
    index0: Cell<usize>,
    current: RefCell<Value<'a>>,
    before: RefCell<Value<'a>>,
    last_changed: RefCell<Option<List<'a>>>,
    depth: usize,
    /// Whether its items are those that another loop has not come to.
    shared: bool,
    /// The loop itself, if it is recursive, with the frame around it.
    pub(super) recursive: Option<(&'a For, Rc<Frame<'a>>)>,
    /// What is learned of the messages, if they are what it goes over.
    reads: Option<&'a Reads>,
}

impl<'a> LoopState<'a> {
    fn new(
        source: Source<'a>,
        length: Option<usize>,
        depth: usize,
        recursive: Option<(&'a For, Rc<Frame<'a>>)>,
    ) -> Self {
        let reads = match &source {
            Source::Items(items, _) => items.reads(),
            _ => None,
        };
        Self {
            shared: matches!(source, Source::Running(_)),
            reads,
            source: RefCell::new(source),
            ahead: RefCell::default(),
            length: Cell::new(length),
            index0: Cell::new(usize::MAX),
            current: RefCell::new(Value::Missing),
            before: RefCell::new(Value::Missing),
            last_changed: RefCell::new(None),
            depth,
            recursive,
        }
    }

    /// Counted from 0; a loop that has not begun is before 0.
    pub(super) fn index0(&self) -> usize {
        self.index0.get()
    }

    fn index(&self) -> i64 {
        self.index0.get().wrapping_add(1) as i64
    }

    /// How deep this loop is in the recursion, counted from 1.
    pub(super) fn depth(&self) -> usize {
        self.depth + 1
    }

    pub(super) fn is_true(&self) -> bool {
        self.length.get() != Some(0)
    }

    /// Notes that the number of items was looked at.
    fn count(&self) {
        if let Some(reads) = self.reads {
            reads.count();
        }
    }

    /// Whether this is the last item of so many. That it is not stays so when there are more.
    fn is_last(&self, length: usize) -> bool {
        let last = self.index0.get().wrapping_add(1) >= length;
        if last {
            self.count();
        }
        last
    }

    /// Goes behind the first `index` items, as if they had had their turn.
    fn skip(&self, index: usize, before: Option<Value<'a>>) {
        self.index0.set(index.wrapping_sub(1));
        self.current.replace(before.unwrap_or(Value::Missing));
    }

    pub(super) fn shown(&self) -> String {
        self.count();
        let length = self.length.get().map_or_else(|| "?".to_owned(), |length| length.to_string());
        format!("<LoopContext {}/{length}>", self.index())
    }

    /// A property, if it can be told without a further item.
    pub(super) fn ready(&self, property: LoopProperty) -> Option<Value<'a>> {
        Some(match property {
            LoopProperty::Index => Value::Int(self.index()),
            LoopProperty::Index0 => Value::Int(self.index() - 1),
            LoopProperty::First => Value::Bool(self.index0.get() == 0),
            LoopProperty::Last if self.shared => return None,
            LoopProperty::Last => Value::Bool(self.is_last(self.length.get()?)),
        })
    }

    /// Properties that need no further item; [`Renderer::loop_property`] has the others.
    pub(super) fn property(&self, name: &str) -> Option<Value<'a>> {
        Some(match name {
            "index" => Value::Int(self.index()),
            "index0" => Value::Int(self.index() - 1),
            "first" => Value::Bool(self.index0.get() == 0),
            "depth" => Value::Int(self.depth as i64 + 1),
            "depth0" => Value::Int(self.depth as i64),
            "previtem" if self.index0.get() == 0 => hint("there is no previous item"),
            "previtem" => self.before.borrow().clone(),
            _ => return None,
        })
    }

    pub(super) fn changed(&self, values: Vec<Value<'a>>) -> Result<bool> {
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

/// An item that had its turn.
fn item_of<'a>(iterable: &Value<'a>, index: usize) -> Option<Value<'a>> {
    match iterable {
        Value::List(items) => items.get(index),
        _ => None,
    }
}

/// The properties of `loop` that templates ask for at every item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoopProperty {
    Index,
    Index0,
    First,
    Last,
}

impl LoopProperty {
    pub(super) fn find(name: &str) -> Option<Self> {
        Some(match name {
            "index" => Self::Index,
            "index0" => Self::Index0,
            "first" => Self::First,
            "last" => Self::Last,
            _ => return None,
        })
    }
}

fn hint<'a>(text: &str) -> Value<'a> {
    Value::Undefined(Undefined::Hint(text.into()))
}

impl<'a> Renderer<'a> {
    /// A property of `loop`, some of which draw items ahead of their turn.
    pub(super) fn loop_property(&mut self, state: &LoopState<'a>, name: &str) -> Result<Option<Value<'a>>> {
        Ok(Some(match name {
            "last" => Value::Bool(match state.length.get() {
                // What a loop over a running loop calls its length counts the items before, too.
                Some(length) if !state.shared => state.is_last(length),
                _ => self.peek(state)?.is_none(),
            }),
            "nextitem" => self.peek(state)?.unwrap_or_else(|| hint("there is no next item")),
            "length" => Value::Int(self.loop_length(state)? as i64),
            "revindex" => Value::Int(self.loop_length(state)? as i64 - state.index() + 1),
            "revindex0" => Value::Int(self.loop_length(state)? as i64 - state.index()),
            _ => return Ok(state.property(name)),
        }))
    }

    fn peek(&mut self, state: &LoopState<'a>) -> Result<Option<Value<'a>>> {
        if let Some(next) = state.ahead.borrow().front() {
            return Ok(Some(next.clone()));
        }
        let next = self.draw(state)?;
        state.ahead.borrow_mut().extend(next.clone());
        Ok(next)
    }

    fn draw(&mut self, state: &LoopState<'a>) -> Result<Option<Value<'a>>> {
        let mut source =
            state.source.try_borrow_mut().map_err(|_| type_error("a loop's condition reads its own loop"))?;
        self.next(&mut source)
    }

    /// The next item of a running loop, as a loop over it gets it: a pair with the loop itself.
    pub(super) fn next_running(&mut self, state: &Rc<LoopState<'a>>) -> Result<Option<Value<'a>>> {
        // Python counts the items when the loop is printed; here printing draws nothing.
        self.loop_length(state)?;
        if !self.advance(state)? {
            return Ok(None);
        }
        let item = state.current.borrow().clone();
        Ok(Some(Value::tuple(vec![item, Value::Loop(state.clone())])))
    }

    fn loop_length(&mut self, state: &LoopState<'a>) -> Result<usize> {
        state.count();
        if let Some(length) = state.length.get() {
            return Ok(length);
        }
        while let Some(item) = self.draw(state)? {
            self.count_iteration()?;
            state.ahead.borrow_mut().push_back(item);
        }
        let length = state.ahead.borrow().len() + state.index() as usize;
        state.length.set(Some(length));
        Ok(length)
    }

    fn advance(&mut self, state: &LoopState<'a>) -> Result<bool> {
        let drawn = state.ahead.borrow_mut().pop_front();
        let next = match drawn {
            Some(item) => Some(item),
            None => self.draw(state)?,
        };
        let Some(next) = next else { return Ok(false) };
        state.index0.set(state.index0.get().wrapping_add(1));
        let current = state.current.replace(next);
        state.before.replace(current);
        Ok(true)
    }

    /// Runs a loop.
    pub(super) fn run_for(&mut self, node: &'a For) -> Result<Flow> {
        let iterable = self.evaluate(&node.iterable)?;
        if node.recursive {
            let text = self.recurse(node, self.frame.clone(), &iterable, 0)?;
            self.write_value(&Value::Text(text))?;
            return Ok(Flow::Next);
        }
        self.run_loop(node, &iterable, 0, None)
    }

    /// One level of a recursive loop, rendered to a text.
    pub(super) fn recurse(
        &mut self,
        node: &'a For,
        outer: Rc<Frame<'a>>,
        iterable: &Value<'a>,
        depth: usize,
    ) -> Result<super::text::Text<'a>> {
        let frame = Frame::new(node.slots, Some(outer.clone()));
        self.in_function(frame, |renderer| renderer.run_loop(node, iterable, depth, Some((node, outer))).map(drop))
    }

    fn run_loop(
        &mut self,
        node: &'a For,
        iterable: &Value<'a>,
        depth: usize,
        recursive: Option<(&'a For, Rc<Frame<'a>>)>,
    ) -> Result<Flow> {
        let mut source = self.iterate(iterable)?;
        let length = match iterable {
            _ if node.test.is_some() => None,
            Value::Generator(_) => None,
            Value::Loop(running) => Some(self.loop_length(running)?),
            value => super::filters::length_of(value),
        };
        if let Some(test) = &node.test {
            self.enter(&test.loads);
            source = Source::Tested(Box::new(source), test, self.frame.clone());
        }
        let before = self.in_hand;
        let (first, ran) = if node.top { self.begin_messages(node, &mut source) } else { (0, false) };
        let result = match node.loop_slot {
            None => self.run_plain(node, &mut source, ran),
            Some(slot) => {
                let state = LoopState::new(source, length, depth, recursive);
                state.skip(first, first.checked_sub(1).and_then(|before| item_of(iterable, before)));
                self.run_with_state(node, &Rc::new(state), slot, ran)
            }
        };
        if node.top {
            self.end_messages();
        }
        // After an error the message stays in hand, so that the error can name it.
        let ran = result?;
        self.in_hand = before;
        self.leave(&node.scope.loads);
        match &node.otherwise {
            Some(otherwise) if !ran => self.run_scope(otherwise),
            _ => Ok(Flow::Next),
        }
    }

    /// Runs the body for each item; returns whether an iteration was completed.
    fn run_plain(&mut self, node: &'a For, source: &mut Source<'a>, mut ran: bool) -> Result<bool> {
        let outer = self.in_hand;
        while let Some(item) = self.next(source)? {
            self.take_in_hand(node, &item, outer);
            self.assign(&node.target, item)?;
            if self.run_iteration(node, &mut ran)? {
                break;
            }
        }
        Ok(ran)
    }

    fn run_with_state(
        &mut self,
        node: &'a For,
        state: &Rc<LoopState<'a>>,
        slot: super::ast::Slot,
        mut ran: bool,
    ) -> Result<bool> {
        let outer = self.in_hand;
        self.frame.set(slot, Value::Loop(state.clone()));
        while self.advance(state)? {
            let item = state.current.borrow().clone();
            self.take_in_hand(node, &item, outer);
            self.assign(&node.target, item)?;
            if self.run_iteration(node, &mut ran)? {
                break;
            }
        }
        self.frame.set(slot, Value::Missing);
        Ok(ran)
    }

    /// One iteration; returns whether it breaks. Only one that is neither broken nor continued counts for `else`.
    fn run_iteration(&mut self, node: &'a For, ran: &mut bool) -> Result<bool> {
        self.count_iteration()?;
        match self.run_scope_inside(&node.scope)? {
            Flow::Next => *ran = true,
            Flow::Continue => {}
            Flow::Break => return Ok(true),
        }
        if node.top {
            self.end_message(*ran);
        }
        Ok(false)
    }

    /// The message that a loop over messages handles.
    fn take_in_hand(&mut self, node: &For, item: &Value<'a>, outer: Option<u32>) {
        self.in_hand = match (&node.target, item.message_index()) {
            (Target::Name(_), Some(index)) => Some(index),
            _ => outer,
        };
    }

    /// The next item that passes the condition of a loop.
    pub(super) fn next_passing(
        &mut self,
        source: &mut Source<'a>,
        test: &'a LoopTest,
        frame: &Rc<Frame<'a>>,
    ) -> Result<Option<Value<'a>>> {
        while let Some(item) = self.next(source)? {
            self.count_iteration()?;
            let running = std::mem::replace(&mut self.frame, frame.clone());
            let tested = self.assign(&test.target, item).and_then(|()| self.evaluate(&test.test));
            let passed = tested.map(|value| value.is_true().then(|| self.target_value(&test.target)));
            self.frame = running;
            if let Some(item) = passed? {
                return Ok(Some(item));
            }
        }
        Ok(None)
    }

    /// What a target holds: for several names, a new tuple of their values.
    fn target_value(&self, target: &Target) -> Value<'a> {
        match target {
            Target::Name(variable) | Target::Field(variable, _) => self.frame.get(variable.slot),
            Target::Tuple(items) => Value::tuple(items.iter().map(|item| self.target_value(item)).collect()),
        }
    }
}
