//! A grammar for one tokenizer: its texts on the wire, ready to be searched for.

use std::sync::Arc;

use memchr::{memchr_iter, memrchr_iter};

use super::bytes::ByteSet;
use super::grammar::{Body, Calls, Frame, Grammar, KEY, Literals};
use super::wire::{Alphabet, CONTROL, is_control};

/// A text of the grammar, cut at white space, which may be more or less in what is sampled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Mark(Vec<Vec<u8>>);

/// White space inside a mark may be so long.
const MOST_SPACE: usize = 64;

/// What came of comparing a mark with the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Match {
    /// It stands there, so long.
    Yes(usize),
    No,
    /// The wire ends before that can be told.
    Partly,
}

impl Mark {
    pub(super) fn new(alphabet: &Alphabet, text: &str) -> Self {
        Self(text.split_whitespace().map(|piece| alphabet.literal(piece)).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn first(&self) -> Option<u8> {
        self.0.first().and_then(|piece| piece.first()).copied()
    }

    /// Whether the mark begins with a control token: then no string can hold it.
    pub(super) fn is_control(&self) -> bool {
        self.0.first().is_some_and(|piece| is_control(piece))
    }

    /// Compares the mark with the beginning of `bytes`.
    pub(super) fn at(&self, bytes: &[u8]) -> Match {
        let mut at = 0;
        for (index, piece) in self.0.iter().enumerate() {
            if index > 0 {
                let gap = space(&bytes[at..]);
                if gap > MOST_SPACE {
                    return Match::No;
                }
                at += gap;
            }
            let rest = &bytes[at..];
            if rest.len() < piece.len() {
                return if piece.starts_with(rest) { Match::Partly } else { Match::No };
            }
            if !rest.starts_with(piece) {
                return Match::No;
            }
            at += piece.len();
        }
        Match::Yes(at)
    }

    /// The length of the mark at the beginning of `bytes`.
    pub(super) fn length_at(&self, bytes: &[u8]) -> Option<usize> {
        match self.at(bytes) {
            Match::Yes(length) if !self.is_empty() => Some(length),
            _ => None,
        }
    }

    /// The first place of the mark, and its length.
    pub(super) fn find(&self, bytes: &[u8]) -> Option<(usize, usize)> {
        let first = self.first()?;
        memchr_iter(first, bytes).find_map(|at| self.length_at(&bytes[at..]).map(|length| (at, length)))
    }

    /// The last place of the mark.
    pub(super) fn last_in(&self, bytes: &[u8]) -> Option<usize> {
        let first = self.first()?;
        memrchr_iter(first, bytes).find(|at| self.length_at(&bytes[*at..]).is_some())
    }

    /// Leaves out the mark at the beginning, and white space around it.
    pub(super) fn skip<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let bytes = trim_start(bytes);
        self.length_at(bytes).map(|length| trim_start(&bytes[length..]))
    }

    /// Whether these bytes are part of the mark.
    pub(super) fn holds(&self, bytes: &[u8]) -> bool {
        self.0.iter().any(|piece| piece.windows(bytes.len()).any(|window| window == bytes))
    }

    /// The pieces, each a mark of its own.
    pub(super) fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(Vec::as_slice)
    }
}

/// The number of bytes of white space that `bytes` begin with.
pub(super) fn space(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

pub(super) fn trim_start(bytes: &[u8]) -> &[u8] {
    &bytes[space(bytes)..]
}

/// A way of writing calls.
#[derive(Debug, Clone)]
pub(super) struct CompiledCalls {
    pub(super) open: Mark,
    pub(super) lead: Mark,
    pub(super) trail: Mark,
    pub(super) close: Mark,
    pub(super) body: CompiledBody,
    /// Whether marks inside quoted strings do not count: they are text, and so may be part of one.
    pub(super) quotes_hide: bool,
    /// The bytes that the reader must see inside such a call.
    pub(super) seen: ByteSet,
}

#[derive(Debug, Clone)]
pub(super) enum CompiledBody {
    Json { name: Vec<String>, arguments: Vec<String>, as_text: bool },
    Named { separators: Vec<Mark>, index: String },
    Tagged(Box<CompiledTags>),
    Literal { suffix: String, quotes: Option<(Vec<u8>, Vec<u8>)>, bracket: u8, assign: u8, all_quoted: bool },
}

#[derive(Debug, Clone)]
pub(super) struct CompiledTags {
    pub(super) name_close: Mark,
    pub(super) key_open: Mark,
    pub(super) key_close: Mark,
    pub(super) value_open: Mark,
    /// Before and, if the key is part of it, behind the key.
    pub(super) value_close: (Vec<u8>, Option<Vec<u8>>),
    pub(super) line_before: bool,
    pub(super) line_after: bool,
    pub(super) cdata: bool,
    pub(super) text_attributes: Vec<String>,
    pub(super) other_attributes: Vec<String>,
}

/// The marks of parts with headers.
#[derive(Debug, Clone)]
pub(super) struct CompiledParts {
    pub(super) header: Mark,
    pub(super) body: Mark,
    pub(super) ends: Vec<Mark>,
    pub(super) reasoning: String,
    pub(super) content: String,
    pub(super) recipient: Option<String>,
}

/// What a mark in the open means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Reasoning begins, if the turn has not.
    Reasoning,
    /// Reasoning ends.
    ReasoningEnd,
    /// Calls of this way begin.
    Calls(usize),
    /// Neither content nor call.
    Frame,
    /// A part ends.
    PartEnd,
    /// A header begins.
    Header,
    /// The turn ends.
    Stop,
}

/// A grammar for one tokenizer.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) alphabet: Arc<Alphabet>,
    /// Marks that count where content stands.
    pub(super) marks: Vec<(Mark, Meaning)>,
    /// Which bytes begin one of them, or a control token.
    pub(super) begins: ByteSet,
    /// The same, and what begins a mark of markup: right behind a call, it may be one of a result.
    pub(super) begins_behind_call: ByteSet,
    pub(super) reasoning: Option<(Mark, Mark)>,
    pub(super) parts: Option<CompiledParts>,
    pub(super) calls: Vec<CompiledCalls>,
    pub(super) arguments_as_text: bool,
    /// What is found last in the end of a prompt before the answer.
    pub(super) header: Vec<u8>,
    pub(super) prefill: Vec<u8>,
}

impl Compiled {
    pub(super) fn new(grammar: &Grammar, alphabet: Alphabet) -> Self {
        let mark = |text: &str| Mark::new(&alphabet, text);
        let calls: Vec<_> = grammar.calls.iter().map(|calls| compile_calls(calls, &alphabet)).collect();
        let parts = grammar.parts.as_ref().map(|parts| CompiledParts {
            header: mark(&parts.header),
            body: mark(&parts.body),
            ends: parts.ends.iter().map(|end| mark(end)).collect(),
            reasoning: parts.reasoning.clone(),
            content: parts.content.clone(),
            recipient: parts.recipient.clone(),
        });
        let reasoning = grammar.reasoning.as_ref().map(|Frame { open, close }| (mark(open), mark(close)));
        let header = grammar.header.split_whitespace().last().unwrap_or_default();
        // What ended the turn before it may be another token.
        let later = header.char_indices().skip(1).find(|(_, character)| *character == '<').map(|(at, _)| &header[at..]);
        let header = later.filter(|later| later.contains(char::is_alphabetic)).unwrap_or(header);
        let mut compiled = Self {
            marks: Vec::new(),
            begins: ByteSet::new([CONTROL]),
            begins_behind_call: ByteSet::new([]),
            reasoning,
            parts,
            calls,
            arguments_as_text: grammar.arguments_as_text,
            header: alphabet.literal(header),
            prefill: alphabet.literal(&grammar.prefill),
            alphabet: Arc::default(),
        };
        let stops = grammar.stops.iter().map(|stop| mark(stop));
        let frames = grammar.marks.iter().map(|text| mark(text));
        compiled.collect_marks(stops.collect(), frames.collect());
        compiled.alphabet = Arc::new(alphabet);
        compiled
    }

    fn collect_marks(&mut self, stops: Vec<Mark>, frames: Vec<Mark>) {
        let mut marks: Vec<(Mark, Meaning)> = stops.into_iter().map(|stop| (stop, Meaning::Stop)).collect();
        if let Some((open, close)) = &self.reasoning {
            marks.push((open.clone(), Meaning::Reasoning));
            marks.push((close.clone(), Meaning::ReasoningEnd));
        }
        if let Some(parts) = &self.parts {
            marks.extend(parts.ends.iter().map(|end| (end.clone(), Meaning::PartEnd)));
            marks.push((parts.header.clone(), Meaning::Header));
        }
        marks.extend(self.calls.iter().enumerate().map(|(index, calls)| (calls.open.clone(), Meaning::Calls(index))));
        marks.extend(frames.into_iter().map(|frame| (frame, Meaning::Frame)));
        marks.retain(|(mark, _)| !mark.is_empty());
        self.begins = self.begins.with(marks.iter().filter_map(|(mark, _)| mark.first()));
        self.begins_behind_call = self.begins.with([b'<']);
        for calls in &mut self.calls {
            let quotes: &[u8] = if calls.quotes_hide { b"\"\\" } else { b"" };
            calls.seen = self.begins.with(calls.close.first().into_iter().chain(quotes.iter().copied()));
        }
        self.marks = marks;
    }
}

fn compile_calls(calls: &Calls, alphabet: &Alphabet) -> CompiledCalls {
    let mark = |text: &str| Mark::new(alphabet, text);
    let body = match &calls.body {
        Body::Json { name, arguments, as_text } => {
            CompiledBody::Json { name: name.clone(), arguments: arguments.clone(), as_text: *as_text }
        }
        Body::Named { separators, index } => {
            CompiledBody::Named { separators: separators.iter().map(|text| mark(text)).collect(), index: index.clone() }
        }
        Body::Tagged(tags) => {
            let mut close = tags.value_close.split(KEY).map(|part| alphabet.literal(part));
            let value_close = (close.next().unwrap_or_default(), close.next());
            CompiledBody::Tagged(Box::new(CompiledTags {
                name_close: mark(&tags.name_close),
                key_open: mark(&tags.key_open),
                key_close: mark(&tags.key_close),
                value_open: mark(&tags.value_open),
                value_close,
                line_before: tags.line_before,
                line_after: tags.line_after,
                cdata: tags.cdata,
                text_attributes: tags.text_attributes.clone(),
                other_attributes: tags.other_attributes.clone(),
            }))
        }
        Body::Literal(literals) => compile_literals(literals, alphabet),
    };
    let close = mark(&calls.close);
    let quoted = match &body {
        CompiledBody::Tagged(_) => false,
        CompiledBody::Literal { quotes, .. } => quotes.is_none(),
        CompiledBody::Json { .. } | CompiledBody::Named { .. } => true,
    };
    let quotes_hide = quoted && !close.is_control();
    CompiledCalls {
        open: mark(&calls.open),
        lead: mark(&calls.lead),
        trail: mark(&calls.trail),
        close,
        body,
        quotes_hide,
        seen: ByteSet::new([]),
    }
}

fn compile_literals(literals: &Literals, alphabet: &Alphabet) -> CompiledBody {
    let open = literals.open.trim();
    let bracket = open.chars().last().filter(|last| matches!(last, '(' | '{' | '[')).unwrap_or('(');
    let quotes = literals.quotes.as_ref();
    CompiledBody::Literal {
        suffix: open.trim_end_matches(bracket).to_owned(),
        quotes: quotes.map(|quotes| (alphabet.literal(&quotes.open), alphabet.literal(&quotes.close))),
        bracket: bracket as u8,
        assign: if literals.assign.starts_with(':') { b':' } else { b'=' },
        all_quoted: literals.all_quoted,
    }
}
