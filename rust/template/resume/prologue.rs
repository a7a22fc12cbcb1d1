//! What a template does before it looks at how many messages there are: its first statements, which print what tools and
//! system prompt give.
//!
//! A rendering of more messages takes them over without computing them. That changes nothing, since these statements
//! depend on the arguments of the rendering and on the messages they looked at, all of which are the same, and leave
//! nothing behind but output, `{% generation %}` spans and the variables outside every scope.

use std::sync::Arc;

use super::super::Result;
use super::super::ast::{Slot, Stmt};
use super::super::render::{Flow, Renderer};
use super::super::text::Writer;
use super::Recorder;
use super::frozen::Frozen;
use super::point::{Checkpoint, Noted};
use crate::message::{Conversation, Data};

/// The end of a statement outside every scope, and what the rendering holds there.
#[derive(Debug)]
pub(super) struct Prologue {
    /// So many statements are over.
    statements: usize,
    /// As many messages were looked at.
    pub(super) messages: usize,
    pub(super) written: usize,
    generations: usize,
    fields: usize,
    iterations: u64,
    /// The variables that are not as they were where the template began, but for its macros.
    assigned: Vec<(Slot, Frozen)>,
}

/// How far a rendering notes its first statements.
#[derive(Debug, Default)]
pub(super) struct Opening {
    /// The variables where the template begins; `None` once no later statement can be noted.
    initial: Option<Vec<Frozen>>,
    /// What is to be taken over, until the template begins; then what was noted last.
    last: Option<Arc<Prologue>>,
    /// So many statements were taken over.
    taken_over: usize,
    /// What they wrote, once the loop over messages goes on behind it elsewhere.
    writer: Option<Writer>,
}

impl Opening {
    /// Of a rendering that goes on from another.
    pub(super) fn of(from: Option<&Checkpoint>, conversation: &Conversation) -> Self {
        let last = from.and_then(|from| from.0.noted.prologue(&conversation.messages)).cloned();
        Self { last, ..Self::default() }
    }

    /// What was noted, what the statements wrote that were taken over, and how many they were.
    pub(super) fn finish(self) -> (Option<Arc<Prologue>>, Option<Writer>, usize) {
        (self.last, self.writer, self.taken_over)
    }

    /// Keeps what the statements wrote that were taken over, for the next rendering; `out` begins with it.
    pub(super) fn keep(&mut self, out: Writer) {
        if let (Some(prologue), 1..) = (&self.last, self.taken_over) {
            self.writer = Some(out.cut(prologue.written));
        }
    }

    /// Notes no later statement: what a loop over messages learns of their number is known to the loop alone.
    pub(super) fn close(&mut self) {
        self.initial = None;
    }
}

impl Noted {
    /// The first statements that a rendering of these messages would do the same way.
    fn prologue(&self, messages: &[Data]) -> Option<&Arc<Prologue>> {
        self.prologue.as_ref().filter(|prologue| self.begins_with(messages, prologue.messages))
    }
}

impl<'a> Renderer<'a> {
    /// Runs the statements of the template, but for those that an earlier rendering did.
    pub(in super::super) fn run_template(&mut self) -> Result<()> {
        let scope = self.top_scope();
        self.enter(&scope.loads);
        let first = self.begin_template(&scope.body);
        for (index, statement) in scope.body.iter().enumerate().skip(first) {
            if self.run_statement(statement)? != Flow::Next {
                break;
            }
            self.end_statement(&scope.body[..=index]);
        }
        Ok(())
    }

    /// Takes over the first statements of an earlier rendering; returns how many.
    fn begin_template(&mut self, body: &'a [Stmt]) -> usize {
        let Some(mut recorder) = self.recorder.take() else {
            self.out = Writer::for_output();
            return 0;
        };
        let taken_over = self.take_over(&mut recorder, body);
        if taken_over.is_none() {
            self.out = Writer::for_output();
            let state = self.top_slots().map(|slot| self.frame.with(slot, Frozen::of));
            recorder.opening = Opening { initial: state.collect(), ..Opening::default() };
        }
        self.recorder = Some(recorder);
        taken_over.unwrap_or_default()
    }

    fn take_over(&mut self, recorder: &mut Recorder<'a>, body: &'a [Stmt]) -> Option<usize> {
        let point = recorder.from.clone()?;
        let prologue = recorder.opening.last.take()?;
        let thawed = prologue.assigned.iter().map(|(slot, frozen)| Some((*slot, frozen.thawed(recorder.messages)?)));
        let thawed = thawed.collect::<Option<Vec<_>>>()?;
        let too_many = prologue.iterations > self.limits().iterations;
        if too_many || !self.take_numbers(&point, recorder, prologue.generations, prologue.fields) {
            return None;
        }
        self.out = recorder.written.as_mut()?.opening(prologue.written);
        let statements = prologue.statements;
        for statement in &body[..statements] {
            if let Stmt::Macro { variable, definition, exported } = statement {
                self.run_macro(variable, definition, *exported);
            }
        }
        for (slot, value) in thawed {
            self.frame.set(slot, value);
        }
        self.iterations = prologue.iterations;
        recorder.reads.begin(prologue.messages);
        recorder.opening = Opening { last: Some(prologue), taken_over: statements, ..Opening::default() };
        Some(statements)
    }

    /// Notes where the template stands behind a statement, as long as it has not looked at how many messages there are.
    fn end_statement(&mut self, done: &'a [Stmt]) {
        let Some(mut recorder) = self.recorder.take() else { return };
        if recorder.reads.counted() {
            recorder.opening.close();
        }
        if let Some(initial) = &recorder.opening.initial
            && !matches!(done, [.., Stmt::Output(_)])
        {
            match self.assigned(initial, done) {
                Some(assigned) => {
                    recorder.opening.last = Some(Arc::new(Prologue {
                        statements: done.len(),
                        messages: recorder.reads.messages(),
                        written: self.out.len(),
                        generations: self.generations.len(),
                        fields: recorder.fields.len(),
                        iterations: self.iterations,
                        assigned,
                    }));
                }
                None => recorder.opening.close(),
            }
        }
        self.recorder = Some(recorder);
    }

    /// The variables that are not as they were, if a rendering can go on with all of them.
    fn assigned(&self, initial: &[Frozen], done: &[Stmt]) -> Option<Vec<(Slot, Frozen)>> {
        let mut assigned = Vec::new();
        for (slot, before) in self.top_slots().zip(initial) {
            let now = self.frame.with(slot, Frozen::of)?;
            if now == *before || is_macro_of(&now, slot, done) {
                continue;
            }
            if !now.thaws() {
                return None;
            }
            assigned.push((slot, now));
        }
        Some(assigned)
    }
}

/// Whether a variable holds the macro that the last of the statements gave it that defines one of its name.
fn is_macro_of(value: &Frozen, slot: Slot, done: &[Stmt]) -> bool {
    let Frozen::Macro(place) = value else { return false };
    let definition = done.iter().rev().find_map(|statement| match statement {
        Stmt::Macro { variable, definition, .. } if variable.slot == slot => Some(definition),
        _ => None,
    });
    definition.is_some_and(|definition| std::ptr::from_ref(&**definition).addr() == *place)
}
