//! What a chat template does to a conversation, in words and as JSON, each verdict with a conversation that shows it.
//!
//! An audit answers what a rollout needs to know: whether what was sampled stays a prefix of the next prompt, what the
//! template strips, moves, merges and injects, what ends a turn, and where ids depend on what stands beside them.

mod findings;
mod prefix;
mod probes;
mod words;

use std::sync::Arc;

pub use findings::Finding;
pub use prefix::{Prefix, Step, Verdict, steps};
pub use probes::scenarios;

use crate::mask::Masker;
use crate::message::Conversation;
use crate::parse::{Grammar, Parser};
use crate::render::{RenderSettings, Renderer, StopToken};
use crate::template::{RenderOptions, Template};
use crate::{Result, TokenId};

/// What came of one check over all conversations that were tried.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// The check.
    pub check: Prefix,
    /// The kind of conversation.
    pub scenario: &'static str,
    /// The first step that breaks or raises, or the first that is stable.
    pub step: Step,
    /// The conversation up to that step.
    pub conversation: Conversation,
}

/// A place where a token spans the end of a prompt and the beginning of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsafeSeam {
    /// What the answer begins with.
    pub answer: String,
    /// The ids where the text is encoded whole.
    pub parity: Vec<TokenId>,
    /// The ids of a policy that samples the answer.
    pub rollout: Vec<TokenId>,
}

/// An audit of one template with its tokenizer.
#[derive(Debug, Clone)]
pub struct Audit {
    /// The name of the template.
    pub template: Arc<str>,
    /// One entry for each check and kind of conversation to which it applies.
    pub checks: Vec<Check>,
    /// What the template strips, moves, merges and injects.
    pub findings: Vec<Finding>,
    /// The texts that the template writes at the end of a plain assistant turn.
    pub turn_ends: Vec<String>,
    /// What stands between a plain assistant turn and the next header.
    pub after_turn_end: Option<String>,
    /// The stop tokens, each with what names it.
    pub stop_tokens: Vec<StopToken>,
    /// Beginnings of an answer that would change the tokens of the prompt.
    pub seams: Vec<UnsafeSeam>,
    /// What a sampled turn looks like, as far as the template shows it.
    pub grammar: Option<Grammar>,
    /// What the template makes use of: names of its variables, functions and tags.
    pub features: Vec<&'static str>,
}

impl Audit {
    /// Audits one template of a renderer: the one that renders a conversation without tools, unless a name is given.
    pub fn of(renderer: &Renderer, settings: &RenderSettings) -> Result<Self> {
        let sample = Conversation::new(vec![probes::message("user", "one")]);
        let masker = renderer.masker(&sample, settings)?;
        let options = RenderOptions { special_tokens: renderer.special_tokens().clone(), ..settings.options.clone() };
        let name = settings.template.clone().unwrap_or_else(|| "default".into());
        Ok(Self {
            template: name,
            checks: checks(masker.template(), &options),
            findings: findings::examine(masker.template(), &options),
            turn_ends: masker.shown_turn_ends().to_vec(),
            after_turn_end: after_turn_end(masker, &options),
            stop_tokens: renderer.stop_tokens().to_vec(),
            seams: unsafe_seams(renderer, settings),
            grammar: Parser::learned(renderer, settings, true).ok().map(|parser| parser.grammar().clone()),
            features: features(masker.template().source()),
        })
    }

    /// Whether no check breaks: then a conversation that goes on keeps all its tokens.
    pub fn is_prefix_stable(&self) -> bool {
        self.checks.iter().all(|check| !matches!(check.step.verdict, Verdict::Breaks { .. }))
    }
}

/// One entry for each kind of conversation and check: the first step that breaks, else that raises, else the first.
fn checks(template: &Template, options: &RenderOptions) -> Vec<Check> {
    let mut checks = Vec::new();
    for (scenario, conversation) in scenarios() {
        let steps = steps(template, &conversation, options);
        for check in [Prefix::P1, Prefix::P2, Prefix::P3, Prefix::P4] {
            let of_check = || steps.iter().filter(|step| step.check == check);
            let breaks = of_check().find(|step| matches!(step.verdict, Verdict::Breaks { .. }));
            let raises = || of_check().find(|step| matches!(step.verdict, Verdict::Raises(_)));
            if let Some(step) = breaks.or_else(raises).or_else(|| of_check().next()) {
                let shown = Conversation { messages: shown(&conversation, step), ..conversation.clone() };
                checks.push(Check { check, scenario, step: step.clone(), conversation: shown });
            }
        }
    }
    checks
}

/// The messages that a step renders: for P4, up to the next assistant turn.
fn shown(conversation: &Conversation, step: &Step) -> Vec<crate::message::Data> {
    let messages = &conversation.messages;
    let end = match step.check {
        Prefix::P4 => {
            let is_assistant = |message: &crate::message::Data| {
                message.get("role").and_then(crate::message::Data::as_text) == Some("assistant")
            };
            let next = messages.iter().skip(step.step + 1).position(is_assistant);
            next.map_or(messages.len(), |next| step.step + 1 + next)
        }
        _ => step.step + 1,
    };
    messages[..end].to_vec()
}

/// What the template writes between the end of a plain assistant turn and the next message's first value.
fn after_turn_end(masker: &Masker, options: &RenderOptions) -> Option<String> {
    let messages = ["user", "assistant", "user"].map(|role| probes::message(role, "text"));
    let conversation = Conversation::new(messages.to_vec());
    let rendered = masker.template().render(&conversation, options).ok()?;
    let assistants = masker.assistant_spans(&conversation, options, &rendered);
    let end = assistants.first()?.spans.last()?.end;
    let next = rendered.spans.iter().find(|span| span.start >= end && span.author.message_index() == 2);
    Some(rendered.text[end as usize..next.map_or(rendered.text.len(), |span| span.start as usize)].to_owned())
}

/// Beginnings of an answer that a tokenizer may merge with the end of the prompt.
const BEGINNINGS: [&str; 6] = ["text", " text", "\ntext", "\n\ntext", "\ttext", "1"];

fn unsafe_seams(renderer: &Renderer, settings: &RenderSettings) -> Vec<UnsafeSeam> {
    let seams = BEGINNINGS.iter().filter_map(|beginning| {
        let messages = vec![probes::message("user", "one"), probes::message("assistant", beginning)];
        let text = renderer.render(&Conversation::new(messages), settings).ok()?;
        let seam = text.seams().ok()?.first()?.clone();
        Some(UnsafeSeam { answer: (*beginning).to_owned(), parity: seam.parity, rollout: seam.rollout })
    });
    seams.collect()
}

/// Names that say what a template makes use of.
const FEATURES: [&str; 22] = [
    "generation",
    "tools",
    "documents",
    "tool_calls",
    "tool_call_id",
    "reasoning_content",
    "thinking",
    "enable_thinking",
    "add_generation_prompt",
    "namespace",
    "macro",
    "raise_exception",
    "strftime_now",
    "tojson",
    "break",
    "continue",
    "bos_token",
    "eos_token",
    "image",
    "audio",
    "video",
    "filter",
];

fn features(source: &str) -> Vec<&'static str> {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    let words: Vec<&str> = source.split(|character| !is_part(character)).collect();
    FEATURES.into_iter().filter(|feature| words.contains(feature)).collect()
}
