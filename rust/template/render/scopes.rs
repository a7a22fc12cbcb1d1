//! Statements with a scope or a buffer of their own: set, filter and generation blocks, `with`, blocks, macros.

use std::rc::Rc;

use super::super::ast::{Block, Expr, Macro, Scope, Slot, Target, Variable};
use super::super::failure::type_error;
use super::super::frame::Frame;
use super::super::text::Text;
use super::super::value::{Undefined, Value};
use super::{Flow, Renderer};
use crate::Result;

impl<'a> Renderer<'a> {
    pub(super) fn run_set_block(
        &mut self,
        target: &'a Target,
        filter: Option<&'a Expr>,
        scope: &'a Scope,
        exported: bool,
    ) -> Result<Flow> {
        let (text, flow) = self.in_buffer(|renderer| renderer.run_scope_inside(scope))?;
        if flow != Flow::Next {
            return Ok(flow);
        }
        let text = text.with_safety(self.autoescape);
        let value = match filter {
            None => Value::Text(text),
            Some(filter) => self.evaluate_filter_on(filter, Value::Text(text))?,
        };
        self.assign(target, value)?;
        self.leave(&scope.loads);
        if exported {
            self.export(target);
        }
        Ok(Flow::Next)
    }

    pub(super) fn run_filter_block(&mut self, filter: &'a Expr, scope: &'a Scope) -> Result<Flow> {
        let (text, flow) = self.in_buffer(|renderer| renderer.run_scope_inside(scope))?;
        if flow != Flow::Next {
            return Ok(flow);
        }
        let text = text.with_safety(self.autoescape);
        let value = self.evaluate_filter_on(filter, Value::Text(text))?;
        self.leave(&scope.loads);
        // Jinja joins what the filter gives to the rest as it is.
        let Value::Text(text) = &value else {
            return Err(type_error(format!("a filter block writes a str, {} found", value.type_name())));
        };
        self.push_written(text);
        self.check_size(self.out.len())?;
        Ok(Flow::Next)
    }

    pub(super) fn run_with(&mut self, targets: &'a [(Target, Expr)], scope: &'a Scope) -> Result<Flow> {
        self.enter(&scope.loads);
        for (target, value) in targets {
            let value = self.evaluate(value)?;
            self.assign(target, value)?;
        }
        let flow = self.run_body(&scope.body)?;
        self.leave(&scope.loads);
        Ok(flow)
    }

    /// The span of a generation block starts at what was written when the outermost statement that buffers began.
    pub(super) fn run_generation(&mut self, scope: &'a Scope, unset: &[Slot]) -> Result<()> {
        for slot in unset {
            self.frame.set(*slot, Value::Undefined(Undefined::Hint("No caller defined".into())));
        }
        let outermost = self.written.is_none();
        let start = *self.written.get_or_insert(self.out.len());
        let from = self.out.len();
        let result = self.run_scope(scope);
        if outermost {
            self.written = None;
        }
        result?;
        let characters = self.out.as_str()[from..].chars().count();
        self.generations.push((start, characters));
        Ok(())
    }

    pub(super) fn run_autoescape(&mut self, enabled: &'a Expr, scope: &'a Scope) -> Result<Flow> {
        self.enter(&scope.loads);
        let enabled = self.evaluate(enabled)?.is_true();
        let outer = std::mem::replace(&mut self.autoescape, enabled);
        let flow = self.run_body(&scope.body);
        self.autoescape = outer;
        self.leave(&scope.loads);
        flow
    }

    pub(in super::super) fn autoescape(&self) -> bool {
        self.autoescape
    }

    pub(super) fn run_block_statement(&mut self, index: usize) -> Result<()> {
        let Some((block, outer)) = self.enter_block(index) else { return Ok(()) };
        let result = self.nested(|renderer| renderer.run_scope(&block.scope));
        self.frame = outer;
        result.map(drop)
    }

    /// A block called through `self`.
    pub(in super::super) fn call_block(&mut self, index: usize) -> Result<Text<'a>> {
        let Some(block) = self.tree.blocks.get(index) else { return Ok(Text::own("")) };
        self.in_function(block_frame(block), |renderer| renderer.run_scope(&block.scope).map(drop))
    }

    /// The index of a block by its name.
    pub(in super::super) fn find_block(&self, name: &str) -> Option<usize> {
        self.tree.blocks.iter().position(|block| &*block.name == name)
    }

    pub(super) fn enter_block(&mut self, index: usize) -> Option<(&'a Block, Rc<Frame<'a>>)> {
        let block = self.tree.blocks.get(index)?;
        let outer = std::mem::replace(&mut self.frame, block_frame(block));
        Some((block, outer))
    }

    pub(in super::super) fn run_macro(&mut self, variable: &'a Variable, definition: &'a Macro, exported: bool) {
        self.keep_frame();
        let value = self.macro_value(definition);
        self.frame.set(variable.slot, value.clone());
        if exported {
            self.exported.push((&variable.name, value));
        }
    }

    pub(super) fn run_load(&mut self, template: &'a Expr) -> Result<()> {
        self.evaluate(template)?;
        Err(type_error("no loader for this environment specified"))
    }
}

/// The variables of a block.
fn block_frame<'a>(block: &Block) -> Rc<Frame<'a>> {
    let frame = Frame::new(block.slots, None);
    if let Some(slot) = block.self_slot {
        frame.set(slot, Value::Template);
    }
    frame
}
