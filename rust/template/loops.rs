//! `for` loops and their `loop` variable.

mod state;

use std::rc::Rc;

use super::ast::{For, LoopTest, Scope, Stmt, Target};
use super::failure::value_error;
use super::frame::Frame;
use super::generator::Source;
use super::render::{Flow, Renderer, at_line};
use super::value::Value;
use crate::Result;

use state::{Drawn, Items, hint};

pub(super) use state::{LoopProperty, LoopState};

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
        let drawn = match &state.items {
            Items::Listed(items) => return Ok(items.get(state.index0.get().wrapping_add(1))),
            Items::Drawn(drawn) => drawn,
        };
        if let Some(next) = drawn.ahead.borrow().front() {
            return Ok(Some(next.clone()));
        }
        let next = self.draw(drawn)?;
        drawn.ahead.borrow_mut().extend(next.clone());
        Ok(next)
    }

    fn draw(&mut self, drawn: &Drawn<'a>) -> Result<Option<Value<'a>>> {
        let mut source = drawn.source.try_borrow_mut().map_err(|_| value_error("generator already executing"))?;
        self.next(&mut source)
    }

    /// The next item of a running loop, as a loop over it gets it: a pair with the loop itself.
    pub(super) fn next_running(&mut self, state: &Rc<LoopState<'a>>) -> Result<Option<Value<'a>>> {
        // Python counts the items when the loop is printed; here printing draws nothing.
        self.loop_length(state)?;
        let item = self.advance(state)?;
        Ok(item.map(|item| Value::tuple(vec![item, Value::Loop(state.clone())])))
    }

    fn loop_length(&mut self, state: &LoopState<'a>) -> Result<usize> {
        state.count();
        if let Some(length) = state.length.get() {
            return Ok(length);
        }
        let Items::Drawn(drawn) = &state.items else { return Ok(0) };
        while let Some(item) = self.draw(drawn)? {
            self.count_iteration()?;
            drawn.ahead.borrow_mut().push_back(item);
        }
        let length = drawn.ahead.borrow().len() + state.index() as usize;
        state.length.set(Some(length));
        Ok(length)
    }

    /// Goes to the next item, and returns it.
    fn advance(&mut self, state: &LoopState<'a>) -> Result<Option<Value<'a>>> {
        let next = match &state.items {
            Items::Listed(items) => items.get(state.index0.get().wrapping_add(1)),
            Items::Drawn(drawn) => self.take(drawn)?,
        };
        if next.is_some() {
            state.index0.set(state.index0.get().wrapping_add(1));
        }
        Ok(next)
    }

    fn take(&mut self, drawn: &Drawn<'a>) -> Result<Option<Value<'a>>> {
        let ahead = drawn.ahead.borrow_mut().pop_front();
        let next = if ahead.is_some() { ahead } else { self.draw(drawn)? };
        if let Some(next) = &next {
            let current = drawn.current.replace(next.clone());
            drawn.before.replace(current);
        }
        Ok(next)
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
                state.skip(first);
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
        while let Some(item) = self.advance(state)? {
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
        match self.run_item(&node.scope)? {
            Flow::Next => *ran = true,
            Flow::Continue => {}
            Flow::Break => return Ok(true),
        }
        if node.top {
            self.end_message(*ran);
        }
        Ok(false)
    }

    /// The body of a loop for one item. One `if` without variables of its own is how templates look for a message.
    fn run_item(&mut self, scope: &'a Scope) -> Result<Flow> {
        match scope.body.as_slice() {
            [Stmt::If { branches, otherwise }] if scope.loads.is_empty() && otherwise.is_empty() => {
                let [(test, body, line)] = branches.as_slice() else { return self.run_body(&scope.body) };
                if at_line(*line, self.truth(test))? { self.run_body(body) } else { Ok(Flow::Next) }
            }
            _ => self.run_scope_inside(scope),
        }
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
