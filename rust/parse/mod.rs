//! Sampled ids to a message: reasoning, content, and tool calls with a status each.
//!
//! The format is learned from the chat template ([`Grammar`]), by rendering conversations and comparing; it may also be
//! declared. Control tokens are matched as ids: a marker that the model typed out is text.
//!
//! *Invariants.* A call has the status [`Status::Ok`] only if its marks closed it, its arguments parsed, and the tool is
//! known. Each sampled token belongs to one of content, reasoning, a call, or the marks around them. Parsing never fails,
//! whatever is sampled, and any split of the ids gives the same message.

mod body;
mod bytes;
mod compiled;
mod grammar;
mod learn;
mod machine;
mod message;
mod parts;
mod quotes;
mod schema;
mod text;
mod wire;
mod words;

use std::sync::{Arc, OnceLock};

use compiled::Compiled;
pub use grammar::{Body, Calls, Frame, Grammar, KEY, Literals, Parts, Tags};
use machine::Machine;
use memchr::memrchr_iter;
pub use message::{Delta, Message, Status, ToolCall};
pub use schema::{Declared, Tool, Tools};
use wire::Alphabet;

use crate::render::{RenderSettings, Renderer};
use crate::{Error, Result, TokenId};

/// What stands before the sampled ids.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Prompt<'a> {
    /// Not given: the template's own prompt with its default arguments.
    #[default]
    Default,
    /// The ids of the prompt, or of its end.
    Ids(&'a [TokenId]),
    /// The text of the prompt, or of its end.
    Text(&'a str),
    /// What the prompt holds of the answer, as [`Parser::opening`] found it.
    Opening(&'a Opening),
}

/// What a prompt holds of the answer already, such as a mark that opens reasoning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening(Vec<u8>);

/// So many tokens of a prompt are looked at, from its end.
pub const PROMPT_TOKENS: usize = 4096;
/// The answer mostly begins in so many of them.
pub const HEADER_TOKENS: usize = 16;

/// A grammar with the tokenizer whose ids it reads. Shared freely between threads.
#[derive(Debug)]
pub struct Parser {
    renderer: Renderer,
    grammar: Grammar,
    compiled: Arc<Compiled>,
}

impl Parser {
    /// A parser of the format that a template of the renderer writes: of several, the one that renders a conversation
    /// with or without tools, unless a name is given.
    pub fn learned(renderer: &Renderer, settings: &RenderSettings, with_tools: bool) -> Result<Self> {
        let masker = renderer.templates().select(settings.template.as_deref(), with_tools)?;
        let grammar = learn::learn(masker, &renderer.options(settings));
        Ok(Self::declared(renderer, grammar))
    }

    /// A parser of a declared format.
    pub fn declared(renderer: &Renderer, grammar: Grammar) -> Self {
        let mut complete = grammar.clone();
        // A mark that closes something within a turn ends no turn.
        let marks = Grammar { stops: Vec::new(), header: String::new(), prefill: String::new(), ..grammar.clone() };
        let marks = marks.texts();
        for stop in renderer.stop_tokens() {
            let text = &*stop.text;
            let is_mark = marks.iter().any(|mark| mark.contains(text));
            if !text.is_empty() && !is_mark && !grammar.stops.iter().any(|known| known == text) {
                complete.stops.push(text.to_owned());
            }
        }
        let alphabet = Alphabet::new(renderer.tokenizer(), &complete.texts());
        let compiled = Arc::new(Compiled::new(&complete, alphabet));
        Self { renderer: renderer.clone(), grammar, compiled }
    }

    /// The format.
    pub fn grammar(&self) -> &Grammar {
        &self.grammar
    }

    /// Reads the ids of one turn.
    ///
    /// # Errors
    ///
    /// An id is none of the tokenizer's. Nothing that a model can sample is an error.
    pub fn parse(&self, token_ids: &[TokenId], tools: Tools, prompt: Prompt<'_>) -> Result<Message> {
        let mut machine = self.machine(tools, prompt)?;
        machine.wire().push(&self.compiled.alphabet, self.renderer.tokenizer(), token_ids)?;
        Ok(machine.finish().0)
    }

    /// A turn that is read as its ids arrive.
    pub fn stream(self: &Arc<Self>, tools: Tools, prompt: Prompt<'_>) -> Result<ParseStream> {
        Ok(ParseStream { machine: Some(self.machine(tools, prompt)?.with_deltas()), parser: self.clone() })
    }

    fn machine(&self, tools: Tools, prompt: Prompt<'_>) -> Result<Machine> {
        let opening = match prompt {
            Prompt::Default => return Ok(Machine::new(&self.compiled, tools, None)),
            Prompt::Opening(opening) => return Ok(Machine::new(&self.compiled, tools, Some(&opening.0))),
            Prompt::Text(text) => self.opened(&self.compiled.alphabet.literal(text)),
            Prompt::Ids(ids) => match self.opening(&ids[ids.len().saturating_sub(HEADER_TOKENS)..])? {
                Some(Opening(opening)) => opening,
                None => self.opened(&self.on_wire(&ids[ids.len().saturating_sub(PROMPT_TOKENS)..])?),
            },
        };
        Ok(Machine::new(&self.compiled, tools, Some(&opening)))
    }

    /// What the last ids of a prompt hold of the answer, if they show where it begins: those before them do not count.
    pub fn opening(&self, end: &[TokenId]) -> Result<Option<Opening>> {
        let end = self.on_wire(end)?;
        Ok(self.behind_header(&end).map(|behind| Opening(behind.to_vec())))
    }

    fn on_wire(&self, prompt: &[TokenId]) -> Result<Vec<u8>> {
        let mut wire = wire::Wire::default();
        let pushed = wire.push(&self.compiled.alphabet, self.renderer.tokenizer(), prompt);
        pushed.map_err(|error| error.within("prompt"))?;
        Ok(wire.bytes)
    }

    /// What stands behind the last header that begins an answer.
    fn behind_header<'p>(&self, prompt: &'p [u8]) -> Option<&'p [u8]> {
        let header = &*self.compiled.header;
        memrchr_iter(*header.first()?, prompt).find_map(|at| prompt[at..].strip_prefix(header))
    }

    /// What the end of a prompt holds of the answer.
    fn opened(&self, prompt: &[u8]) -> Vec<u8> {
        if let Some(behind) = self.behind_header(prompt) {
            return behind.to_vec();
        }
        // The end of the prompt is not the one that was learned: what counts is whether it opens reasoning.
        let reasoning = self.compiled.reasoning.as_ref();
        let opened = reasoning.and_then(|(open, _)| open.last_in(prompt)).unwrap_or(prompt.len());
        let after = prompt[opened..].to_vec();
        let closes = reasoning.is_some_and(|(_, close)| close.find(&after).is_some());
        if closes { Vec::new() } else { after }
    }
}

/// The parsers of a renderer: learned when something is first read, from the template without and from the one with
/// tools, then shared.
#[derive(Debug, Clone, Default)]
pub struct Learned(Arc<[OnceLock<Arc<Parser>>; 2]>);

impl Learned {
    /// The parser for conversations with or without tools. All calls name the same renderer and settings.
    pub fn of(&self, renderer: &Renderer, settings: &RenderSettings, with_tools: bool) -> Result<Arc<Parser>> {
        let with_tools = with_tools || !renderer.templates().are_named();
        let known = &self.0[usize::from(with_tools)];
        if let Some(parser) = known.get() {
            return Ok(parser.clone());
        }
        let learn = |with_tools| Parser::learned(renderer, settings, with_tools);
        // A chat that has only a template for tools is asked about turns of that one.
        let learned = Arc::new(learn(with_tools).or_else(|_| learn(true))?);
        Ok(known.get_or_init(|| learned).clone())
    }
}

/// A turn that is read as its ids arrive.
#[derive(Debug)]
pub struct ParseStream {
    parser: Arc<Parser>,
    machine: Option<Machine>,
}

impl ParseStream {
    /// Takes the next ids, and gives what they settle. After an error the stream is as it was.
    pub fn push(&mut self, token_ids: &[TokenId]) -> Result<Vec<Delta>> {
        let machine = self.machine.as_mut().ok_or_else(finished)?;
        let alphabet = machine.compiled().alphabet.clone();
        machine.wire().push(&alphabet, self.parser.renderer.tokenizer(), token_ids)?;
        Ok(machine.advance())
    }

    /// Ends the turn: gives what is left, and the message.
    pub fn finish(&mut self) -> Result<(Message, Vec<Delta>)> {
        self.machine.take().map(Machine::finish).ok_or_else(finished)
    }
}

fn finished() -> Error {
    Error::value("the turn is finished: start another stream for the next turn")
}
