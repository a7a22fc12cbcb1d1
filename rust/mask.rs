//! From authors to the assistant mask: which bytes of a rendering a policy would have sampled.
//!
//! *Invariants.* Spans of different messages do not overlap, hold no byte of another message's data, and cut no marker.
//!
//! With `{% generation %}` tags the template says it itself. Without, the rule is: of an assistant message, everything
//! after the generation prompt, up to and including the token that ends the turn; not the newline behind it, not an empty
//! reasoning block that the template injects, not another message's text inside it. No family of models is named
//! anywhere: the place where sampling begins comes from rendering the conversation up to the message with a generation
//! prompt, and the turn ends of a template come from a few renderings of plain turns, made once.

mod closing;
mod marker;
mod rendering;
mod start;
mod stops;
mod turn_end;

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

pub use closing::TurnEnd;
pub use marker::reasoning_is_open;
use marker::{before_marker, empty_reasoning, is_space, shaped_end};
use rendering::{Region, Rendering};
use start::{Fallback, fallback, prompt_end};

use crate::message::{Conversation, Data};
use crate::template::{ContinueFinalMessage, RenderOptions, RenderedText, Template};

/// What the mask of a message says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flag {
    /// The prompt ends where the message begins, and the message begins with the header all the same.
    HeaderNotInPrompt,
    /// The template prints another message inside this one; there may be two spans.
    Interrupted,
    /// The prompt is not part of the rendering, and the header before an answer is not in the message either.
    NoHeader,
    /// The rendering shows no token that ends the turn.
    NoTurnEnd,
    /// The rendering shows no text of the message.
    NoValue,
    /// The rendering shows nothing of the message: no span.
    NotRendered,
    /// The message is left open with `continue_final_message`, so it is a prompt: no span.
    Prefill,
    /// The policy saw another prompt than this rendering shows: the template rewrites history.
    PromptNotAligned,
    /// The prompt up to this message cannot be rendered alone.
    PromptRaises,
    /// The turn end was recognised by its shape; plain turns of the template do not show it.
    TurnEndByShape,
    /// It cannot be told where sampling began: no span.
    Undetermined,
}

impl Flag {
    const ALL: [Self; 11] = [
        Self::HeaderNotInPrompt,
        Self::Interrupted,
        Self::NoHeader,
        Self::NoTurnEnd,
        Self::NoValue,
        Self::NotRendered,
        Self::Prefill,
        Self::PromptNotAligned,
        Self::PromptRaises,
        Self::TurnEndByShape,
        Self::Undetermined,
    ];

    /// The flag of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|flag| flag.name() == name)
    }

    /// The name of the flag, as Python and files write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::HeaderNotInPrompt => "header_not_in_prompt",
            Self::Interrupted => "interrupted",
            Self::NoHeader => "no_header",
            Self::NoTurnEnd => "no_turn_end",
            Self::NoValue => "no_value",
            Self::NotRendered => "not_rendered",
            Self::Prefill => "prefill",
            Self::PromptNotAligned => "prompt_not_aligned",
            Self::PromptRaises => "prompt_raises",
            Self::TurnEndByShape => "turn_end_by_shape",
            Self::Undetermined => "undetermined",
        }
    }
}

/// What a policy would have sampled of one assistant message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssistantSpans {
    /// The message.
    pub message: u32,
    /// Bytes of the text, in order: none, one range, or two where the template prints another message in between.
    pub spans: Vec<Range<u32>>,
    /// What there is to say about them, sorted.
    pub flags: Vec<Flag>,
}

type Headers = Vec<(Vec<(Arc<str>, Data)>, Option<Arc<str>>)>;

/// The masks of one template: what was learned from its probes is kept.
#[derive(Debug)]
pub struct Masker {
    template: Template,
    special_tokens: Arc<[(Arc<str>, Data)]>,
    has_generation_tags: bool,
    shown_turn_ends: OnceLock<Vec<String>>,
    headers: Mutex<Headers>,
}

/// Headers are kept for so many different template arguments.
const KEPT_HEADERS: usize = 32;

impl Masker {
    /// A masker for a template that is rendered with these special tokens.
    pub fn new(template: Template, special_tokens: Arc<[(Arc<str>, Data)]>) -> Self {
        let has_generation_tags = has_generation_tags(template.source());
        Self {
            template,
            special_tokens,
            has_generation_tags,
            shown_turn_ends: OnceLock::new(),
            headers: Mutex::default(),
        }
    }

    /// The template.
    pub fn template(&self) -> &Template {
        &self.template
    }

    /// Whether the template marks what is generated with `{% generation %}`.
    pub fn has_generation_tags(&self) -> bool {
        self.has_generation_tags
    }

    /// The texts that end a turn: the end-of-sequence token, and what plain turns show.
    pub fn turn_ends(&self) -> impl Iterator<Item = &str> {
        let end = self.special_tokens.iter().find(|(name, _)| &**name == "eos_token");
        let end = end.and_then(|(_, token)| token.as_text());
        end.into_iter()
            .chain(self.shown_turn_ends().iter().map(|shown| &**shown).filter(move |shown| Some(*shown) != end))
    }

    /// The turn ends that plain turns of the template show.
    pub fn shown_turn_ends(&self) -> &[String] {
        self.shown_turn_ends.get_or_init(|| {
            let options = RenderOptions { special_tokens: self.special_tokens.clone(), ..RenderOptions::default() };
            turn_end::turn_ends(&self.template, &options)
        })
    }

    /// The spans of each message of role `assistant`, in order.
    ///
    /// `options` are those of the rendering. Where the template has `{% generation %}` tags, its spans are given to the
    /// messages they show; elsewhere the rule of this module applies.
    pub fn assistant_spans(
        &self,
        conversation: &Conversation,
        options: &RenderOptions,
        rendered: &RenderedText,
    ) -> Vec<AssistantSpans> {
        let is_assistant = |message: &Data| message.get("role").and_then(Data::as_text) == Some("assistant");
        let assistants = (0u32..).zip(&conversation.messages).filter(|(_, message)| is_assistant(message));
        let last = conversation.messages.len().saturating_sub(1);
        let prefill = (options.continue_final_message != ContinueFinalMessage::No).then_some(last as u32);
        let work = Work { masker: self, conversation, options, full: Rendering::new(rendered), prefill };
        if self.has_generation_tags {
            return assistants.map(|(index, _)| tagged(index, rendered, prefill)).collect();
        }
        assistants.map(|(index, _)| work.message(index)).collect()
    }

    /// The header before a plain answer, with these template arguments.
    fn header(&self, arguments: &[(Arc<str>, Data)], options: &RenderOptions) -> Option<Arc<str>> {
        let lock = || self.headers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, header)) = lock().iter().find(|(known, _)| known == arguments) {
            return header.clone();
        }
        let plain = plain_options(options);
        let header = turn_end::header(&self.template, arguments, &plain).map(Arc::from);
        let mut headers = lock();
        if headers.len() == KEPT_HEADERS {
            headers.remove(0);
        }
        headers.push((arguments.to_vec(), header.clone()));
        header
    }
}

fn plain_options(options: &RenderOptions) -> RenderOptions {
    RenderOptions { add_generation_prompt: false, continue_final_message: ContinueFinalMessage::No, ..options.clone() }
}

/// Whether a template source has a `{% generation %}` tag.
fn has_generation_tags(source: &str) -> bool {
    source.match_indices("{%").any(|(at, _)| {
        let rest = &source[at + 2..];
        let rest = rest.strip_prefix(['-', '+']).unwrap_or(rest).trim_start_matches(is_space);
        let word = rest.strip_prefix("generation");
        word.is_some_and(|after| !after.starts_with(|next: char| next.is_alphanumeric() || next == '_'))
    })
}

/// The generation spans that show message `index`: those whose first byte with a message has this one.
fn tagged(index: u32, rendered: &RenderedText, prefill: Option<u32>) -> AssistantSpans {
    if prefill == Some(index) {
        return AssistantSpans { message: index, spans: Vec::new(), flags: vec![Flag::Prefill] };
    }
    let rendering = Rendering::new(rendered);
    let size = rendered.text.len() as u32;
    let shows = |span: &Range<u32>| {
        let written = rendering.runs(span.start as usize..span.end as usize);
        written.map(|(_, author)| author.message_index()).find(|message| *message >= 0) == Some(index as i32)
    };
    let cut = |span: &Range<u32>| span.start.min(size)..span.end.min(size);
    let spans: Vec<_> =
        rendered.generation_spans.iter().map(cut).filter(|span| !span.is_empty()).filter(shows).collect();
    let flags = if spans.is_empty() { vec![Flag::NotRendered] } else { Vec::new() };
    AssistantSpans { message: index, spans, flags }
}

/// One rendering whose masks are made.
struct Work<'a> {
    masker: &'a Masker,
    conversation: &'a Conversation,
    options: &'a RenderOptions,
    full: Rendering<'a>,
    prefill: Option<u32>,
}

impl Work<'_> {
    fn message(&self, index: u32) -> AssistantSpans {
        let mut flags = Vec::new();
        let spans = self.message_spans(index, &mut flags);
        flags.sort_unstable();
        flags.dedup();
        let spans = spans.into_iter().map(|span| span.start as u32..span.end as u32).collect();
        AssistantSpans { message: index, spans, flags }
    }

    fn message_spans(&self, index: u32, flags: &mut Vec<Flag>) -> Vec<Range<usize>> {
        if self.prefill == Some(index) {
            flags.push(Flag::Prefill);
            return Vec::new();
        }
        let Some(region) = self.full.region(index) else {
            flags.push(Flag::NotRendered);
            return Vec::new();
        };
        let start = self.start(&self.full, index, &region, flags);
        start.map_or_else(Vec::new, |start| self.spans(index, start, &region, flags))
    }

    /// The rendering of the first `count` messages, or `None` if it raises.
    fn part(&self, count: usize, add_generation_prompt: bool) -> Option<RenderedText> {
        self.render(self.conversation.messages[..count].to_vec(), add_generation_prompt)
    }

    fn render(&self, messages: Vec<Data>, add_generation_prompt: bool) -> Option<RenderedText> {
        let conversation = Conversation { messages, ..self.conversation.clone() };
        let options = RenderOptions { add_generation_prompt, ..plain_options(self.options) };
        self.masker.template.render(&conversation, &options).ok()
    }

    /// Where sampling of the message begins; `None` if that cannot be told.
    fn start(&self, rendering: &Rendering<'_>, index: u32, region: &Region, flags: &mut Vec<Flag>) -> Option<usize> {
        let (text, begin) = (rendering.text, region.start);
        let values_stop = region.holes.first().map_or(region.stop, |hole| hole.start);
        let value = rendering.first_value(index, begin..values_stop);
        if value.is_none() {
            flags.push(Flag::NoValue);
        }
        let first = value.unwrap_or(region.stop);
        let header = self.masker.header(&self.conversation.arguments, self.options);
        let prompt = self.part(index as usize, true);
        let prompt = prompt.as_ref().map(Rendering::new);
        if let Some(prompt) = &prompt
            && let Some(at) = prompt_end(rendering, prompt, begin, index)
        {
            let printed = header.as_deref().filter(|header| !header.is_empty() && at == begin);
            if let Some(header) = printed.filter(|header| text[begin..].starts_with(*header)) {
                flags.push(Flag::HeaderNotInPrompt);
                return Some(empty_reasoning(text, at + header.len(), first.max(at + header.len())));
            }
            let open = reasoning_is_open(prompt.supplied());
            return Some(if open { at } else { empty_reasoning(text, at, first.max(at)) });
        }
        flags.push(if prompt.is_some() { Flag::PromptNotAligned } else { Flag::PromptRaises });
        let at = match fallback(rendering, index, prompt.as_ref(), (begin, first), header.as_deref()) {
            Fallback::At(at) => at,
            Fallback::NoHeader => {
                flags.push(Flag::NoHeader);
                begin
            }
            Fallback::Unknown => {
                flags.push(Flag::Undetermined);
                return None;
            }
        };
        Some(empty_reasoning(text, at, first.max(at)))
    }

    fn spans(&self, index: u32, start: usize, region: &Region, flags: &mut Vec<Flag>) -> Vec<Range<usize>> {
        let (Some(hole), Some(last)) = (region.holes.first(), region.holes.last()) else {
            return self.span(index, start, region.stop, flags).into_iter().collect();
        };
        flags.push(Flag::Interrupted);
        let Some(limit) = self.interruption(index, start, &region.holes) else {
            flags.push(Flag::Undetermined);
            return Vec::new();
        };
        let mut spans: Vec<_> = self.span(index, start, limit.min(hole.start), flags).into_iter().collect();
        if let Some(later) = self.full.first_value(index, last.end..region.stop) {
            spans.extend(self.span(index, later, region.stop, flags));
        }
        spans
    }

    /// How far the text from `start` on is what the template writes when nothing interrupts the message.
    fn interruption(&self, index: u32, start: usize, holes: &[Range<usize>]) -> Option<usize> {
        let alone = self.without_holes(index, holes)?;
        let alone = Rendering::new(&alone);
        let region = alone.region(index)?;
        let alone_start = self.start(&alone, index, &region, &mut Vec::new())?;
        let (text, other) = (&self.full.text[start..], &alone.text[alone_start..]);
        let pairs = text.chars().zip(other.chars()).take_while(|(one, two)| one == two);
        let common: usize = pairs.map(|(one, _)| one.len_utf8()).sum();
        Some(before_marker(self.full.text, start, start + common))
    }

    /// The conversation without the messages inside the region, or up to the message if that raises.
    fn without_holes(&self, index: u32, holes: &[Range<usize>]) -> Option<RenderedText> {
        let inside = |message: u32| {
            let mut runs = holes.iter().flat_map(|hole| self.full.runs(hole.clone()));
            runs.any(|(_, author)| author.message_index() == message as i32)
        };
        let kept =
            (0u32..).zip(&self.conversation.messages).filter(|(message, _)| *message <= index || !inside(*message));
        let kept = kept.map(|(_, message)| message.clone()).collect();
        self.render(kept, false).or_else(|| self.part(index as usize + 1, false))
    }

    /// From `start` to the turn end that follows the last value before `stop`.
    fn span(&self, index: u32, start: usize, stop: usize, flags: &mut Vec<Flag>) -> Option<Range<usize>> {
        let last = self.full.last_value(index, start..stop).unwrap_or(start);
        let end = self.turn_end(index, start, last, stop, flags);
        (end > start).then_some(start..end)
    }

    fn turn_end(&self, index: u32, start: usize, last: usize, stop: usize, flags: &mut Vec<Flag>) -> usize {
        let text = self.full.text;
        let tail = text.get(last..stop).unwrap_or_default();
        let known = self.masker.turn_ends().filter_map(|marker| Some((tail.find(marker)?, marker.len())));
        if let Some((at, length)) = known.min() {
            return last + at + length;
        }
        if let Some(end) = self.end_in_next(stop) {
            return end;
        }
        let own = &tail[..self.full.scaffold_end(index, last, stop.max(last)) - last];
        if let Some(end) = shaped_end(own, &text[start..last]) {
            flags.push(Flag::TurnEndByShape);
            return last + end.end;
        }
        flags.push(Flag::NoTurnEnd);
        last + own.trim_end_matches(is_space).len()
    }

    /// The end of the turn end that the text directly after the region begins with.
    fn end_in_next(&self, stop: usize) -> Option<usize> {
        let following = &self.full.text[stop..self.full.next_data(stop)];
        let space = following.len() - following.trim_start_matches(is_space).len();
        let marker = self.masker.turn_ends().find(|marker| following[space..].starts_with(*marker))?;
        Some(stop + space + marker.len())
    }
}
