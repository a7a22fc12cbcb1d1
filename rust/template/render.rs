//! Runs the statements of a template.
//!
//! Text of the template becomes scaffold of the message in hand, or stays open, at the moment it is *written*: when an
//! output statement puts it into the output or into a buffer. What is still open at the end is frame.

mod assign;
mod buffers;
mod scopes;
mod sums;

use std::ops::Range;
use std::rc::Rc;

use super::Clock;
use super::ast::{Expr, Load, Part, Scope, Slot, Stmt, Tree};
use super::dump::{to_text, write_text};
use super::escape::escaped;
use super::failure::{limit_error, raise};
use super::frame::Frame;
use super::names::{FreeName, Given};
use super::options::Limits;
use super::resume::{Recorded, Recorder};
use super::text::{Mark, Text, Writer, written};
use super::value::{Undefined, Value};
use crate::{Error, Result};

/// What follows a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    Next,
    Break,
    Continue,
}

/// A rendering under way.
#[derive(Debug)]
pub(super) struct Renderer<'a> {
    tree: &'a Tree,
    /// The values of the names that scopes load.
    resolved: Vec<Value<'a>>,
    pub(super) clock: Option<Clock>,
    limits: Limits,
    pub(super) out: Writer,
    pub(super) frame: Rc<Frame<'a>>,
    /// The index of the message in hand.
    pub(super) in_hand: Option<u32>,
    /// How much of the output was written when the statement began that now fills a buffer.
    written: Option<usize>,
    /// Start and length in characters of each `{% generation %}`.
    pub(super) generations: Vec<(usize, usize)>,
    /// Variables of the top level, for blocks.
    exported: Vec<(&'a str, Value<'a>)>,
    /// Frames and namespaces that may hold themselves, to be emptied at the end.
    kept: Vec<Rc<Frame<'a>>>,
    pub(super) namespaces: Vec<Value<'a>>,
    /// Operands of the sums that are being computed.
    pub(super) pieces: Vec<Value<'a>>,
    autoescape: bool,
    depth: usize,
    pub(super) iterations: u64,
    /// Bytes in the buffers around the running one.
    buffered: usize,
    /// What is noted for a rendering that goes on from this one.
    pub(super) recorder: Option<Box<Recorder<'a>>>,
}

/// What a rendering gives: the text with runs, and the generation blocks.
pub(super) struct Rendering {
    pub(super) out: Writer,
    pub(super) generations: Vec<(usize, usize)>,
    pub(super) recorded: Option<Recorded>,
}

impl<'a> Renderer<'a> {
    pub(super) fn new(tree: &'a Tree, given: Given<'a>, clock: Option<Clock>, limits: Limits) -> Self {
        Self {
            tree,
            resolved: tree.resolved.iter().map(|name| given.value(name)).collect(),
            clock,
            limits,
            out: Writer::default(),
            frame: Frame::new(tree.slots, None),
            in_hand: None,
            written: None,
            generations: Vec::new(),
            exported: Vec::new(),
            kept: Vec::new(),
            namespaces: Vec::new(),
            pieces: Vec::new(),
            autoescape: false,
            depth: 0,
            iterations: 0,
            buffered: 0,
            recorder: None,
        }
    }

    /// The same, which notes where another rendering can go on.
    pub(super) fn recording(self, recorder: Option<Recorder<'a>>) -> Self {
        Self { recorder: recorder.map(Box::new), ..self }
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The statements outside every scope.
    pub(super) fn top_scope(&self) -> &'a Scope {
        &self.tree.scope
    }

    /// The variables outside every scope.
    pub(super) fn top_slots(&self) -> impl Iterator<Item = Slot> + use<'a> {
        self.tree.scope.loads.iter().map(|(slot, _)| *slot)
    }

    /// Renders the whole template.
    pub(super) fn run(mut self) -> (Result<Rendering>, Option<u32>) {
        if let Some(slot) = self.tree.self_slot {
            self.frame.set(slot, Value::Template);
        }
        let result = self.run_template();
        self.release();
        let recorded = self.recorder.map(|recorder| recorder.finish());
        let rendering = Rendering { out: self.out, generations: self.generations, recorded };
        (result.map(|()| rendering), self.in_hand)
    }

    /// Breaks the cycles of values that hold the frame or namespace they are in.
    fn release(&mut self) {
        self.frame.clear();
        self.kept.iter().for_each(|frame| frame.clear());
        for namespace in std::mem::take(&mut self.namespaces) {
            if let Value::Namespace(fields) = namespace {
                let _old = std::mem::take(&mut *fields.borrow_mut());
            }
        }
    }

    /// Remembers that the running frame may hold itself.
    pub(super) fn keep_frame(&mut self) {
        self.kept.push(self.frame.clone());
    }

    #[inline]
    pub(super) fn count_iteration(&mut self) -> Result<()> {
        self.iterations += 1;
        if self.iterations > self.limits.iterations {
            return Err(limit_error(format!("more than {} iterations", self.limits.iterations)));
        }
        Ok(())
    }

    /// Refuses a text of so many bytes, or an output with them, if that is beyond the limit.
    #[inline]
    pub(super) fn check_size(&self, bytes: usize) -> Result<()> {
        if bytes.saturating_add(self.buffered) > self.limits.output {
            return Err(limit_error(format!("more than {} bytes of text", self.limits.output)));
        }
        Ok(())
    }

    /// Runs `work` one level deeper.
    pub(super) fn nested<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= self.limits.recursion {
            return Err(limit_error("maximum recursion depth exceeded"));
        }
        self.depth += 1;
        let result = work(self);
        self.depth -= 1;
        result
    }

    /// Gives the variables of a scope their first values.
    pub(super) fn enter(&mut self, loads: &'a [(Slot, Load)]) {
        for (slot, load) in loads {
            let value = match load {
                Load::Resolve(place) => self.resolve(*place as usize),
                Load::Alias(outer) => self.frame.get(*outer),
                Load::Undefined => Value::Missing,
            };
            self.frame.set(*slot, value);
        }
    }

    /// Takes the values of a scope's variables away again.
    pub(super) fn leave(&mut self, loads: &[(Slot, Load)]) {
        self.frame.unset(loads.iter().map(|(slot, _)| *slot));
    }

    /// The value of a name that a scope loads; in blocks, what the top level assigned goes first.
    fn resolve(&self, place: usize) -> Value<'a> {
        if !self.exported.is_empty()
            && let Some(FreeName { name, .. }) = self.tree.resolved.get(place)
            && let Some((_, value)) = self.exported.iter().rev().find(|(known, _)| **known == **name)
        {
            return value.clone();
        }
        self.resolved.get(place).cloned().unwrap_or(Value::Missing)
    }

    /// The value of a variable; one without a value is undefined.
    pub(super) fn load(&self, variable: &'a super::ast::Variable) -> Value<'a> {
        match self.frame.get(variable.slot) {
            Value::Missing => Value::Undefined(Undefined::Name(&variable.name)),
            value => value,
        }
    }

    pub(super) fn run_scope(&mut self, scope: &'a Scope) -> Result<Flow> {
        let flow = self.run_scope_inside(scope)?;
        self.leave(&scope.loads);
        Ok(flow)
    }

    /// The body of a scope whose variables keep their values: an iteration of a loop.
    pub(super) fn run_scope_inside(&mut self, scope: &'a Scope) -> Result<Flow> {
        self.enter(&scope.loads);
        self.run_body(&scope.body)
    }

    pub(super) fn run_body(&mut self, body: &'a [Stmt]) -> Result<Flow> {
        for stmt in body {
            match self.run_statement(stmt)? {
                Flow::Next => {}
                flow => return Ok(flow),
            }
        }
        Ok(Flow::Next)
    }

    pub(super) fn run_statement(&mut self, stmt: &'a Stmt) -> Result<Flow> {
        match stmt {
            Stmt::Output(parts) => self.run_output(parts)?,
            Stmt::Set { target, value, line, exported } => {
                at_line(*line, self.run_set(target, value, *exported))?;
            }
            Stmt::SetBlock { target, filter, scope, line, exported } => {
                return at_line(*line, self.run_set_block(target, filter.as_ref(), scope, *exported));
            }
            Stmt::For(node) => return at_line(node.line, self.run_for(node)),
            Stmt::If { branches, otherwise } => {
                for (test, body, line) in branches {
                    if at_line(*line, self.truth(test))? {
                        return self.run_body(body);
                    }
                }
                return self.run_body(otherwise);
            }
            Stmt::Macro { variable, definition, exported } => self.run_macro(variable, definition, *exported),
            Stmt::CallBlock { body, call } => at_line(call.line, self.run_call_block(body, call))?,
            Stmt::FilterBlock { filter, scope, line } => {
                return at_line(*line, self.run_filter_block(filter, scope));
            }
            Stmt::With { targets, scope, line } => return at_line(*line, self.run_with(targets, scope)),
            Stmt::Generation { scope, unset } => self.run_generation(scope, unset)?,
            Stmt::AutoEscape { enabled, scope, line } => {
                return at_line(*line, self.run_autoescape(enabled, scope));
            }
            Stmt::Block { name, index, required, line } => {
                if *required {
                    let error = raise("TemplateRuntimeError", format!("required block '{name}' not found"));
                    return Err(error.at_line(*line));
                }
                at_line(*line, self.run_block_statement(*index))?;
            }
            Stmt::Load { template, line, .. } => {
                at_line(*line, self.run_load(template))?;
            }
            Stmt::Break(_) => return Ok(Flow::Break),
            Stmt::Continue(_) => return Ok(Flow::Continue),
        }
        Ok(Flow::Next)
    }

    fn run_output(&mut self, parts: &'a [Part]) -> Result<()> {
        for part in parts {
            match part {
                Part::Text(text) => {
                    let mark = self.written_mark(None);
                    self.out.push(text, mark);
                }
                Part::Expr(expr, line) => {
                    at_line(*line, self.write_expr(expr))?;
                }
            }
        }
        self.check_size(self.out.len())
    }

    /// Writes an expression; the texts of a sum are written one by one, and a macro writes where it is called.
    fn write_expr(&mut self, expr: &'a Expr) -> Result<()> {
        match expr {
            Expr::Sum(operands) if !self.autoescape => return self.write_sum(operands),
            Expr::Call(node) if !self.autoescape => {
                if let Some(called) = self.called_macro(node) {
                    let args = self.evaluate_arguments(&node.arguments);
                    return at_line(node.line, args.and_then(|args| self.write_macro(&called, args)));
                }
            }
            _ => {}
        }
        let value = if self.autoescape { self.evaluate(expr).map(Some) } else { self.write_if_plain(expr) };
        match value.or_else(|error| constant_slice(expr, error).map(Some))? {
            Some(value) => self.write_value(&value),
            None => Ok(()),
        }
    }

    /// The author of a byte as it is written.
    fn written_mark(&self, mark: Mark) -> Mark {
        self.in_hand.map_or(mark, |message| written(mark, message))
    }

    /// Writes a value as an output statement does.
    pub(super) fn write_value(&mut self, value: &Value<'a>) -> Result<()> {
        if self.autoescape {
            let text = match value {
                Value::Text(text) => escaped(text),
                value => escaped(&to_text(value)?),
            };
            self.push_written(&text);
            return Ok(());
        }
        if let Value::Text(text) = value {
            self.push_written(text);
            return self.check_size(self.out.len());
        }
        if let Value::Loop(state) = value {
            // A printed loop shows its length, which may be known only when its items are.
            self.loop_property(state, "length")?;
        }
        if self.in_hand.is_none() {
            write_text(value, &mut self.out)?;
        } else {
            let text = to_text(value)?;
            self.push_written(&text);
        }
        self.check_size(self.out.len())
    }

    fn push_written(&mut self, text: &Text<'a>) {
        self.out.push_in(text, self.in_hand);
    }
}

/// Gives an error the line of its statement, unless it knows a line inside it.
pub(super) fn at_line<T>(line: u32, result: Result<T>) -> Result<T> {
    result.map_err(|error: Error| error.at_line(line))
}

/// Jinja computes constants when it compiles, by the rules of the sandbox: a slice of what has none is undefined there.
fn constant_slice<'a>(expr: &Expr, error: Error) -> Result<Value<'a>> {
    match expr {
        Expr::Item(pair)
            if error.class() == Some("TypeError") && matches!(**pair, (Expr::Const(_), Expr::Slice(_))) =>
        {
            Ok(Value::Undefined(Undefined::Hint("a slice of what has none".into())))
        }
        _ => Err(error),
    }
}

/// The byte ranges of generation blocks in the finished text.
pub(super) fn generation_spans(text: &str, generations: &[(usize, usize)]) -> Vec<Range<u32>> {
    generations
        .iter()
        .map(|(start, characters)| {
            let start = (*start).min(text.len());
            let mut inside = text[start..].char_indices().skip(*characters).map(|(at, _)| at);
            let end = inside.next().unwrap_or_else(|| {
                let missing = characters.saturating_sub(text[start..].chars().count());
                text.len() - start + missing
            });
            start as u32..(start + end) as u32
        })
        .collect()
}
