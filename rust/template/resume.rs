//! A rendering that goes on from an earlier one of the same conversation with fewer messages.
//!
//! *Invariant*: what is taken over from the earlier rendering is what this one would compute itself. A template is
//! deterministic, and an iteration over messages knows only its item, the variables outside the loop, and what it reads
//! of the list of messages. So the iterations up to a place can be skipped if
//!
//! - template, options, tools, documents and arguments are the same, and so are all messages that were looked at;
//! - what is written before the loop, and all variables where it begins, are the same as they were;
//! - none of these iterations learned anything that more messages could make otherwise: how many there are, that an item
//!   is the last one, that there is none at an index ([`Reads`](super::value::Reads) notes it).
//!
//! What is before the loop is computed anew, but for the first statements of the template ([`prologue`]), and so is all
//! that is behind the place. What an iteration changes and leaves behind is output, `{% generation %}` spans and the
//! fields of namespaces; assignments in a loop do not outlive it.

mod frozen;
mod point;
mod prologue;
mod written;

use std::sync::Arc;

use super::ast::{For, Slot, Tree};
use super::generator::Source;
use super::render::Renderer;
use super::text::{Text, Writer};
use super::value::{Fields as FieldNumbers, Message, Reads, Value};
use super::{ContinueFinalMessage, RenderOptions, Template};
use crate::author::Span;
use crate::message::Conversation;
use frozen::{Fields, Frozen};
use point::{Before, Noted, Point};
use prologue::{Opening, Prologue};
use written::Written;

pub use point::{Checkpoint, Resumable};

pub(super) use point::Parts;

/// How a loop over messages began.
#[derive(Debug)]
struct Entry {
    /// The loop, by its place in the template.
    node: usize,
    /// The first message, and how many there are.
    first: u32,
    length: usize,
    written: usize,
    generations: usize,
    /// The variables outside every scope.
    state: Arc<[Frozen]>,
}

/// The end of an iteration.
#[derive(Debug, Clone)]
struct Boundary {
    entry: Arc<Entry>,
    /// So many iterations are over, and whether one of them was completed.
    next: usize,
    ran: bool,
    written: usize,
    generations: usize,
    fields: usize,
    iterations: u64,
    /// So many messages were looked at.
    messages: usize,
    namespaces: Arc<[(Slot, Fields)]>,
}

/// What a rendering notes, so that another can go on from it.
#[derive(Debug)]
pub(super) struct Recorder<'a> {
    messages: &'a [Message<'a>],
    fields: &'a FieldNumbers,
    reads: &'a Reads,
    from: Option<Arc<Point>>,
    /// What the earlier rendering wrote, until this one goes on with it.
    written: Option<Written>,
    /// The spans of what was taken over.
    spans: Vec<Span>,
    before: Before,
    opening: Opening,
    running: Option<Running>,
    boundary: Option<Boundary>,
    taken_over: usize,
}

/// The loop over messages under way.
#[derive(Debug)]
struct Running {
    entry: Arc<Entry>,
    next: usize,
    /// Iterations before the loop.
    iterations: u64,
}

/// What a recorded rendering leaves.
#[derive(Debug)]
pub(super) struct Recorded {
    prologue: Option<Arc<Prologue>>,
    /// What the first statements wrote, where another rendering need not copy it.
    opening: Option<Writer>,
    boundary: Option<Boundary>,
    /// The spans of what was taken over.
    pub(super) spans: Vec<Span>,
    before: Before,
    taken_over: usize,
    statements: usize,
}

/// Whether renderings of a template can be taken up.
pub(super) fn is_possible(source: &str, tree: &Tree) -> bool {
    // The identity of texts would show that they were copied; what is drawn by lot is drawn again.
    tree.blocks.is_empty() && !["sameas", "random"].iter().any(|name| source.contains(name))
}

/// Whether a rendering with these options can be taken up: nothing in it depends on the moment, or on the final message.
fn can_resume(template: &Template, options: &RenderOptions) -> bool {
    template.0.resumes && options.now.is_some() && options.continue_final_message == ContinueFinalMessage::No
}

impl Template {
    /// Renders a conversation, going on from an earlier rendering where that changes nothing. The result is always that
    /// of [`Self::render`].
    pub fn render_from(
        &self,
        conversation: &Arc<Conversation>,
        options: &RenderOptions,
        from: Option<&Checkpoint>,
    ) -> crate::Result<Resumable> {
        if !can_resume(self, options) {
            let text = self.render(conversation, options)?;
            return Ok(Resumable::without_place(text));
        }
        let from = from.filter(|from| from.fits(self, conversation, options));
        let written = from.and_then(Checkpoint::take);
        let from = from.filter(|_| written.is_some());
        let known = from.map_or(0, Checkpoint::normalised);
        let (text, kept) = self.render_with(conversation, options, known, |messages, fields, reads| {
            Some(Recorder {
                messages,
                fields,
                reads,
                from: from.map(|from| from.0.clone()),
                written,
                spans: Vec::new(),
                before: Before::default(),
                opening: Opening::of(from, conversation),
                running: None,
                boundary: None,
                taken_over: 0,
            })
        })?;
        let Some((recorded, Parts { normalised, runs, generations })) = kept else {
            return Ok(Resumable::without_place(text));
        };
        let Recorded { prologue, opening, boundary, before, taken_over, statements, .. } = recorded;
        let noted = boundary.map(|boundary| {
            let (template, options, conversation) = (self.clone(), options.clone(), conversation.clone());
            Box::new(Noted { template, options, conversation, normalised, generations, prologue, boundary })
        });
        Ok(Resumable { text, runs, opening, before, noted, taken_over, statements })
    }
}

impl<'a> Renderer<'a> {
    /// A loop outside every scope begins: where it goes on, and whether an iteration before that was completed.
    pub(super) fn begin_messages(&mut self, node: &For, source: &mut Source<'a>) -> (usize, bool) {
        let Some(mut recorder) = self.recorder.take() else { return (0, false) };
        let Source::Items(items, at) = source else {
            self.recorder = Some(recorder);
            return (0, false);
        };
        if items.messages().is_some() {
            recorder.opening.close();
        }
        let entry = items.messages().and_then(|messages| self.entry(node, messages, recorder.from.as_deref()));
        let place = entry.map(|entry| {
            let (next, ran) = self.go_on(&mut recorder, entry);
            *at = next;
            (next, ran)
        });
        self.recorder = Some(recorder);
        place.unwrap_or((0, false))
    }

    fn entry(&self, node: &For, messages: &[Message<'a>], from: Option<&Point>) -> Option<Entry> {
        let before = from.map(|point| &point.noted.boundary.entry.state).filter(|state| self.is_in(state));
        let state = before.cloned().map_or_else(
            || self.top_slots().map(|slot| self.frame.with(slot, Frozen::of)).collect::<Option<_>>(),
            Some,
        )?;
        Some(Entry {
            node: std::ptr::from_ref(node).addr(),
            first: messages.first()?.index,
            length: messages.len(),
            written: self.out.len(),
            generations: self.generations.len(),
            state,
        })
    }

    /// Whether the variables outside every scope are these, where a look tells.
    fn is_in(&self, state: &[Frozen]) -> bool {
        self.top_slots().zip(state).all(|(slot, frozen)| self.frame.with(slot, |value| frozen.is(value)))
    }

    /// Takes over what an earlier rendering did from here on, if it did it from the same state.
    fn go_on(&mut self, recorder: &mut Recorder<'a>, entry: Entry) -> (usize, bool) {
        let before = self.iterations;
        let from = recorder.from.clone();
        let resumed = from.filter(|point| self.begins(point, &entry, recorder) && self.restore(point, recorder));
        let known = entry.state.iter().map(Frozen::messages).max().unwrap_or_default();
        let messages = resumed.as_ref().map_or(known, |point| point.noted.boundary.messages);
        let (entry, next, ran) = resumed.map_or_else(
            || (Arc::new(entry), 0, false),
            |point| {
                let boundary = &point.noted.boundary;
                recorder.boundary = Some(boundary.clone());
                recorder.taken_over += boundary.next;
                (boundary.entry.clone(), boundary.next, boundary.ran)
            },
        );
        recorder.reads.begin(messages);
        recorder.running = Some(Running { entry, next, iterations: before });
        (next, ran)
    }

    /// Whether an earlier rendering stood here as this one does.
    fn begins(&self, point: &Point, entry: &Entry, recorder: &Recorder<'a>) -> bool {
        let before = &*point.noted.boundary.entry;
        before.node == entry.node
            && before.first == entry.first
            && before.length <= entry.length
            && before.written == entry.written
            && (Arc::ptr_eq(&before.state, &entry.state) || before.state == entry.state)
            && point.noted.generations[..before.generations] == self.generations
            && recorder.written.as_ref().is_some_and(|written| written.begins_with(&self.out))
            && self.iterations.saturating_add(point.noted.boundary.iterations) <= self.limits().iterations
    }

    /// Makes what the iterations of an earlier rendering did part of this one.
    fn restore<'p>(&mut self, point: &'p Point, recorder: &mut Recorder<'a>) -> bool {
        let boundary = &point.noted.boundary;
        let namespace = |(slot, fields): &'p (Slot, Fields)| match self.frame.get(*slot) {
            Value::Namespace(namespace) => Some((namespace, fields)),
            _ => None,
        };
        let Some(namespaces) = boundary.namespaces.iter().map(namespace).collect::<Option<Vec<_>>>() else {
            return false;
        };
        if !self.take_numbers(point, recorder, boundary.generations, boundary.fields) {
            return false;
        }
        let Some(written) = recorder.written.take() else { return false };
        let (out, spans) = written.go_on(boundary.written);
        recorder.spans = spans;
        recorder.before = Before { bytes: boundary.written, messages: point.noted.conversation.messages.len() };
        recorder.opening.keep(std::mem::replace(&mut self.out, out));
        for (namespace, fields) in namespaces {
            if Frozen::are(fields, &namespace.borrow()) {
                continue;
            }
            for (name, frozen) in fields {
                // What does not thaw is as it was where the loop began.
                if let Some(value) = frozen.thawed(recorder.messages) {
                    let _old = namespace.borrow_mut().set(Text::own(name.as_str()), value);
                }
            }
        }
        self.iterations += point.noted.boundary.iterations;
        true
    }

    /// Takes over spans of generation and the numbers of fields of an earlier rendering, if its text is at hand and this
    /// one has numbered the same fields so far.
    fn take_numbers(&mut self, point: &Point, recorder: &Recorder<'a>, generations: usize, fields: usize) -> bool {
        if recorder.written.is_none() || !recorder.fields.go_on_with(&point.fields[..fields]) {
            return false;
        }
        self.generations.clear();
        self.generations.extend_from_slice(&point.noted.generations[..generations]);
        true
    }

    /// An iteration of a loop outside every scope is over.
    pub(super) fn end_message(&mut self, ran: bool) {
        let Some(mut recorder) = self.recorder.take() else { return };
        if let Some(running) = &mut recorder.running {
            running.next += 1;
            if recorder.reads.counted() {
                recorder.running = None;
            } else if let Some(namespaces) = self.namespaces_at(&running.entry, recorder.boundary.as_ref()) {
                recorder.boundary = Some(Boundary {
                    entry: running.entry.clone(),
                    next: running.next,
                    ran,
                    written: self.out.len(),
                    generations: self.generations.len(),
                    fields: recorder.fields.len(),
                    iterations: self.iterations - running.iterations,
                    messages: recorder.reads.messages(),
                    namespaces,
                });
            }
        }
        self.recorder = Some(recorder);
    }

    /// The loop is over.
    pub(super) fn end_messages(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            recorder.running = None;
        }
    }

    /// The fields of namespaces as they are now; `None` if a rendering could not go on with them.
    fn namespaces_at(&self, entry: &Arc<Entry>, last: Option<&Boundary>) -> Option<Arc<[(Slot, Fields)]>> {
        let unchanged = |(slot, fields): &(Slot, Fields)| {
            self.frame.with(*slot, |value| {
                matches!(value, Value::Namespace(namespace)
                    if namespace.try_borrow().is_ok_and(|namespace| Frozen::are(fields, &namespace)))
            })
        };
        if let Some(last) = last.filter(|last| Arc::ptr_eq(&last.entry, entry))
            && last.namespaces.iter().all(unchanged)
        {
            return Some(last.namespaces.clone());
        }
        let mut namespaces = Vec::new();
        for (slot, before) in self.top_slots().zip(entry.state.iter()) {
            let Frozen::Namespace(before) = before else { continue };
            let Frozen::Namespace(fields) = self.frame.with(slot, Frozen::of)? else { return None };
            let goes_on = |field: &(String, Frozen)| field.1.thaws() || before.contains(field);
            if !fields.iter().all(goes_on) {
                return None;
            }
            namespaces.push((slot, fields));
        }
        Some(namespaces.into())
    }
}

impl Recorder<'_> {
    /// What is left once the template is done.
    pub(super) fn finish(mut self) -> Recorded {
        if let (Some(from), Some(written)) = (&self.from, self.written.take()) {
            from.put_back(written);
        }
        let (prologue, opening, statements) = self.opening.finish();
        let Self { boundary, spans, before, taken_over, .. } = self;
        Recorded { prologue, opening, boundary, spans, before, taken_over, statements }
    }
}
