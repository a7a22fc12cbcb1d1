//! Whether a template keeps its prefixes: what it writes for a conversation stays when the conversation goes on.
//!
//! With `m` the messages and `g` a generation prompt, at step `k`:
//!
//! - **P1** (`m[k]` is an assistant turn): `render(m[:k], g)` is a prefix of `render(m[:k+1])`.
//! - **P2** (`m[k-1]` is an assistant turn), **P3** (`m[k-1]` is a tool result): `render(m[:k])` is a prefix of
//!   `render(m[:k+1])`, which ends in a generation prompt unless `m[k]` is an assistant turn.
//! - **P4** (`m[k]` is an assistant turn, and not the last): its prompt is a prefix of the prompt of the next.

use crate::message::{Conversation, Data};
use crate::template::{RenderOptions, Template};
use crate::{Error, Result};

/// What must stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Prefix {
    /// The prompt, when the turn it asked for is there.
    P1,
    /// An assistant turn, when a message follows.
    P2,
    /// A tool result, when a message follows.
    P3,
    /// The prompt of one turn, in the prompt of the next.
    P4,
}

impl Prefix {
    /// `P1` to `P4`.
    pub fn name(self) -> &'static str {
        match self {
            Self::P1 => "P1",
            Self::P2 => "P2",
            Self::P3 => "P3",
            Self::P4 => "P4",
        }
    }

    /// What it means, in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::P1 => "a turn begins with the prompt that asked for it",
            Self::P2 => "an assistant turn stays as it was when a message follows",
            Self::P3 => "a tool result stays as it was when a message follows",
            Self::P4 => "the prompt of a turn stays in the prompt of the next turn",
        }
    }
}

/// What came of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The earlier text is a prefix of the later.
    Stable,
    /// It is not.
    Breaks {
        /// The texts go together for so many bytes.
        at: usize,
        /// The earlier text.
        before: String,
        /// The later text.
        after: String,
    },
    /// One of them cannot be rendered.
    Raises(Error),
}

/// One check at one step of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The check.
    pub check: Prefix,
    /// The step `k`, counted from 0.
    pub step: usize,
    /// What came of it.
    pub verdict: Verdict,
}

fn role(message: &Data) -> &str {
    message.get("role").and_then(Data::as_text).unwrap_or_default()
}

/// All checks at all steps of a conversation. P4 is left out where a prompt cannot be rendered: P1 says so.
pub fn steps(template: &Template, conversation: &Conversation, options: &RenderOptions) -> Vec<Step> {
    let messages = &conversation.messages;
    let render = |count: usize, add_generation_prompt: bool| {
        let part = Conversation { messages: messages[..count].to_vec(), ..conversation.clone() };
        let options = RenderOptions { add_generation_prompt, ..options.clone() };
        template.render(&part, &options).map(|rendered| rendered.text)
    };
    let mut steps = Vec::new();
    for step in 1..messages.len() {
        let is_assistant = role(&messages[step]) == "assistant";
        let kept = match role(&messages[step - 1]) {
            "assistant" => Some(Prefix::P2),
            "tool" => Some(Prefix::P3),
            _ => None,
        };
        if is_assistant {
            steps.push(Step { check: Prefix::P1, step, verdict: compare(render(step, true), render(step + 1, false)) });
        }
        if let Some(check) = kept {
            steps.push(Step { check, step, verdict: compare(render(step, false), render(step + 1, !is_assistant)) });
        }
    }
    let turns: Vec<usize> = (1..messages.len()).filter(|step| role(&messages[*step]) == "assistant").collect();
    for pair in turns.windows(2) {
        let verdict = compare(render(pair[0], true), render(pair[1], true));
        if !matches!(verdict, Verdict::Raises(_)) {
            steps.push(Step { check: Prefix::P4, step: pair[0], verdict });
        }
    }
    steps
}

fn compare(before: Result<String>, after: Result<String>) -> Verdict {
    match (before, after) {
        (Ok(before), Ok(after)) if after.starts_with(&before) => Verdict::Stable,
        (Ok(before), Ok(after)) => {
            let pairs = before.chars().zip(after.chars()).take_while(|(one, two)| one == two);
            Verdict::Breaks { at: pairs.map(|(one, _)| one.len_utf8()).sum(), before, after }
        }
        (Err(error), _) | (_, Err(error)) => Verdict::Raises(error),
    }
}
