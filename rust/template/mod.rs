//! The chat-template engine: Jinja as transformers 5.24 configures it, with the author of every byte.
//!
//! *Invariants.* The text equals that of transformers for the same input, or the error has the class that transformers
//! raises. Spans partition the text; changing the content of message *i* changes only bytes whose author is *i*, or whose
//! value depends on it through the template's logic.

mod access;
mod arguments;
mod ast;
mod call;
mod characters;
mod clock;
mod compare;
mod continuation;
mod dump;
mod entities;
mod escape;
mod evaluate;
mod failure;
mod filters;
mod format;
mod frame;
mod generator;
mod globals;
mod lexer;
mod literal;
mod loops;
mod methods;
mod names;
mod number;
mod options;
mod parser;
mod render;
mod resolver;
mod resume;
mod symbols;
mod tests;
mod text;
mod unicode;
mod unread;
mod value;

use std::borrow::Cow;
use std::sync::Arc;

pub use clock::Clock;
pub use options::{ContinueFinalMessage, FieldNames, Limits, RenderOptions, RenderedText};
pub use resume::{Checkpoint, Resumable};

use ast::Tree;
use names::Given;
use render::{Renderer, Rendering};
use resume::{Parts, Recorded, Recorder};
use text::{Run, final_author};
use value::{Fields, Message, Reads};

use crate::author::Span;
use crate::message::{Conversation, Data};
use crate::{Error, Result};

/// A compiled chat template. Cheap to clone, and shared freely between threads.
#[derive(Debug, Clone)]
pub struct Template(Arc<Compiled>);

#[derive(Debug)]
struct Compiled {
    source: Box<str>,
    tree: Tree,
    unread: unread::Unread,
    /// Whether a rendering may go on from an earlier one.
    resumes: bool,
}

impl Template {
    /// Compiles a template, or says at which line and column it is broken.
    pub fn compile(source: &str) -> Result<Self> {
        let mut tree = parser::parse(&lexer::normalised(source))?;
        resolver::resolve(&mut tree)?;
        let resumes = resume::is_possible(source, &tree);
        Ok(Self(Arc::new(Compiled { source: source.into(), tree, unread: unread::Unread::default(), resumes })))
    }

    /// The source that was compiled.
    pub fn source(&self) -> &str {
        &self.0.source
    }

    /// The names that the template takes from the arguments of the rendering, from special tokens, or from the globals.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.0.tree.arguments.iter().map(|name| &**name)
    }

    /// Renders a conversation, normalised as transformers does it.
    pub fn render(&self, conversation: &Conversation, options: &RenderOptions) -> Result<RenderedText> {
        self.render_with(conversation, options, 0, |_, _, _| None).map(|(text, _)| text)
    }

    /// Renders a conversation with a recorder, and returns what it noted. The first `known` messages are dicts, and
    /// normalised.
    fn render_with(
        &self,
        conversation: &Conversation,
        options: &RenderOptions,
        known: usize,
        recorder: impl for<'a> FnOnce(&'a [Message<'a>], &'a Fields, &'a Reads) -> Option<Recorder<'a>>,
    ) -> Result<(RenderedText, Option<(Recorded, Parts)>)> {
        check_documents(conversation)?;
        let mut messages = normalised_messages(conversation, known)?;
        let continued = continuation::prepare(&mut messages, &options.continue_final_message, self.source())?;
        let (fields, reads) = (Fields::default(), Reads::default());
        let numbered = numbered(&messages, &fields, &reads);
        let given = Given { messages: &numbered, conversation, options };
        let renderer = Renderer::new(&self.0.tree, given, options.now, options.limits);
        let (result, in_hand) = renderer.recording(recorder(&numbered, &fields, &reads)).run();
        let Rendering { out, generations, mut recorded } = result.map_err(|error| in_message(error, in_hand))?;
        let (text, runs) = out.into_parts();
        let spans = recorded.as_mut().map(|recorded| std::mem::take(&mut recorded.spans)).unwrap_or_default();
        let mut text = finished(text, &runs, spans, &generations, fields.names());
        if let Some(continued) = continued {
            continued.cut(&mut text)?;
        }
        let normalised = match messages {
            Cow::Borrowed(_) => None,
            Cow::Owned(messages) => Some(messages),
        };
        Ok((text, recorded.map(|recorded| (recorded, Parts { normalised, runs, generations }))))
    }
}

/// transformers takes documents as a list of dicts only.
fn check_documents(conversation: &Conversation) -> Result<()> {
    let documents = match &conversation.documents {
        None | Some(Data::Null) => return Ok(()),
        Some(documents) => documents,
    };
    let dicts = documents.as_items().is_some_and(|items| items.iter().all(|item| item.as_dict().is_some()));
    if dicts || matches!(documents, Data::Dict(dict) if dict.is_empty()) || documents.as_text() == Some("") {
        return Ok(());
    }
    Err(failure::type_error("documents are a list of dicts with 'title' and 'text' keys"))
}

/// The messages as transformers makes them; they are the caller's own where that changes nothing.
fn normalised_messages(conversation: &Conversation, known: usize) -> Result<Cow<'_, [Data]>> {
    let messages = &conversation.messages;
    if let Some((index, message)) =
        messages.iter().enumerate().skip(known).find(|(_, message)| message.as_dict().is_none())
    {
        let type_name = message.type_name();
        return Err(failure::type_error(format!("message {index} is a {type_name}; messages are dicts")));
    }
    if messages.iter().skip(known).all(crate::message::is_normalised) {
        return Ok(Cow::Borrowed(messages));
    }
    Ok(messages.iter().map(|message| crate::message::normalised_message(message).into_owned()).collect())
}

/// The messages as templates see them: each knows its index.
fn numbered<'a>(messages: &'a [Data], fields: &'a Fields, reads: &'a Reads) -> Vec<Message<'a>> {
    let mut numbered = Vec::with_capacity(messages.len());
    for (index, message) in messages.iter().enumerate() {
        if let Data::Dict(dict) = message {
            numbered.push(Message { dict, index: index as u32, fields, reads });
        }
    }
    numbered
}

/// Says which message was in hand, except where the template itself speaks.
fn in_message(error: Error, in_hand: Option<u32>) -> Error {
    match in_hand {
        Some(index) => error.in_message(index),
        None => error,
    }
}

/// More spans than there are, for a rendering that goes on.
const ROOM: usize = 16;

/// The rendering of a text with these runs, the spans of the first of which are known.
fn finished(
    text: String,
    runs: &[Run],
    mut spans: Vec<Span>,
    generations: &[(usize, usize)],
    fields: Vec<Arc<str>>,
) -> RenderedText {
    let generation_spans = render::generation_spans(&text, generations);
    let (mut from, mut argument_spans) = (spans.last().map_or(0, |span| span.end), Vec::new());
    let span = |run: &Run| {
        let (start, end) = (std::mem::replace(&mut from, run.end), run.end);
        let (author, given) = final_author(run.mark);
        if given {
            argument_spans.push(start..end);
        }
        Span { start, end, author }
    };
    let new = &runs[spans.len()..];
    if spans.capacity() < runs.len() {
        // A rendering that goes on from this one finds room behind.
        spans.reserve(new.len() + new.len() / 2 + ROOM);
    }
    spans.extend(new.iter().map(span));
    // Neighbours are by different authors, but for what arguments wrote.
    if !argument_spans.is_empty() {
        spans.dedup_by(|next, last| {
            let joins = next.author == last.author;
            last.end = if joins { next.end } else { last.end };
            joins
        });
    }
    RenderedText { text, spans, generation_spans, argument_spans, fields: FieldNames(fields) }
}
