//! Whether a template rewrites history, and where a tape leaves what the template would print.

use super::dialogue::Dialogue;
use super::{Stage, Trajectory};
use crate::mask::TurnEnd;
use crate::message::Conversation;
use crate::render::RenderSettings;
use crate::{Result, TokenId};

/// Why a tape and a full render differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The template prints a turn otherwise than the generation prompt began it.
    GenerationPrompt,
    /// The template prints earlier messages otherwise once there are later ones.
    History,
    /// The sampled text is not what the template prints for the message.
    Content,
    /// The texts are equal and the ids are not: the policy sampled other tokens for the same text.
    Tokenization,
}

impl Class {
    /// The name, as Python writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::GenerationPrompt => "generation_prompt",
            Self::History => "history",
            Self::Content => "content",
            Self::Tokenization => "tokenization",
        }
    }
}

/// A place where a template breaks with what it printed before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rewrite {
    /// What it does.
    pub class: Class,
    /// The first byte of the rendered conversation that differs.
    pub byte: usize,
    /// What was printed before.
    before: String,
    /// What is printed now.
    after: String,
}

/// How many characters of a text an excerpt shows.
const EXCERPT: usize = 40;

impl Rewrite {
    fn new(class: Class, before: &str, after: &str) -> Self {
        Self { class, byte: common_prefix(after, before), before: before.to_owned(), after: after.to_owned() }
    }

    /// What was printed where the texts part, and what is printed there now.
    pub(super) fn excerpts(&self) -> (String, String) {
        let excerpt = |text: &str| text[self.byte..].chars().take(EXCERPT).collect();
        (excerpt(&self.before), excerpt(&self.after))
    }
}

/// The first difference between a tape and a full render of its conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Divergence {
    /// Why they differ.
    pub class: Class,
    /// The first token that differs.
    pub token: usize,
    /// What the tape says from there on, a few tokens of it.
    pub recorded: String,
    /// What the full render says there.
    pub rendered: String,
}

/// How many tokens of each side a divergence shows.
const SHOWN: usize = 16;

/// Whether the template breaks, in `conversation`, with what it printed when message `message` was sampled.
pub(super) fn rewrite(
    dialogue: &Dialogue,
    conversation: &Conversation,
    message: usize,
    prompt: bool,
) -> Result<Option<Rewrite>> {
    let whole = dialogue.renderer.render_text(conversation, &dialogue.settings(prompt))?.text;
    rewrite_in(dialogue, conversation, message, &whole, Turn::Before)
}

/// How much of an earlier turn must stay: what ends a turn is often printed otherwise behind it, and a tape keeps the
/// one that was sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// All before the token that ends it.
    Before,
    /// That token too.
    Through,
}

fn rewrite_in(
    dialogue: &Dialogue,
    conversation: &Conversation,
    message: usize,
    whole: &str,
    turn: Turn,
) -> Result<Option<Rewrite>> {
    let first =
        |count: usize| Conversation { messages: conversation.messages[..count].to_vec(), ..conversation.clone() };
    let asked = dialogue.renderer.render_text(&first(message), &dialogue.settings(true))?.text;
    let answered = answer(dialogue, &first(message + 1), message, turn);
    if !whole.starts_with(&asked) {
        let stable = answered.as_ref().is_ok_and(|answered| answered.starts_with(&asked));
        let class = if stable { Class::History } else { Class::GenerationPrompt };
        return Ok(Some(Rewrite::new(class, &asked, whole)));
    }
    // A template that refuses to end with an answer is not seen rewriting it.
    let Ok(answered) = answered else { return Ok(None) };
    Ok((!whole.starts_with(&answered)).then(|| Rewrite::new(Class::History, &answered, whole)))
}

/// What the template prints up to the end of the turn `message`, the last one.
fn answer(dialogue: &Dialogue, conversation: &Conversation, message: usize, turn: Turn) -> Result<String> {
    let settings: RenderSettings = dialogue.settings(false);
    let rendered = dialogue.renderer.render_text(conversation, &settings)?;
    let masker = dialogue.renderer.masker(conversation, &settings)?;
    let options = dialogue.renderer.options(&settings);
    let end = match masker.turn_end(conversation, &options, &rendered, (message as u32, 0), &[]) {
        Some(TurnEnd::Marker(end)) if turn == Turn::Before => end.start,
        Some(TurnEnd::Marker(end)) => end.end,
        Some(TurnEnd::Open(end)) => end,
        None => rendered.text.len(),
    };
    let mut text = rendered.text;
    text.truncate(end);
    Ok(text)
}

/// The length in bytes of what both texts begin with, never inside a character.
fn common_prefix(one: &str, two: &str) -> usize {
    one.char_indices()
        .zip(two.chars())
        .find(|((_, one), two)| one != two)
        .map_or(one.len().min(two.len()), |found| found.0.0)
}

impl Trajectory {
    /// The first difference between the tape and a full render of its conversation, and why they differ; `None` if the
    /// one begins with the other.
    pub fn divergence(&self) -> Result<Option<Divergence>> {
        let Some(dialogue) = &self.dialogue else { return Ok(None) };
        let acted = self.stage == Stage::Acted;
        let sampled = if acted { vec![dialogue.sampled_message(&self.open_turn())?] } else { Vec::new() };
        let conversation = dialogue.extended(sampled);
        let turns: Vec<usize> = self.turns.iter().filter_map(|turn| usize::try_from(turn.message).ok()).collect();
        dialogue.divergence(&conversation, &self.columns.token_ids(), &turns, self.stage == Stage::Prompted, acted)
    }
}

impl Dialogue {
    /// The first difference between a tape and a full render of `conversation`, with or without a generation prompt.
    ///
    /// `turns` are the messages that were sampled. `open`: the tape ends with a turn, behind which a render may go on.
    pub fn divergence(
        &self,
        conversation: &Conversation,
        tape: &[TokenId],
        turns: &[usize],
        prompt: bool,
        open: bool,
    ) -> Result<Option<Divergence>> {
        let rendered = self.renderer.render(conversation, &self.settings(prompt))?;
        let token = tape.iter().zip(&rendered.token_ids).take_while(|(tape, full)| tape == full).count();
        if token == tape.len() || (token == rendered.token_ids.len() && !open) {
            return Ok(None);
        }
        let tokenizer = self.renderer.tokenizer();
        let show = |ids: &[TokenId]| tokenizer.decode(&ids[token..ids.len().min(token + SHOWN)], false);
        let (recorded, shown) = (show(tape)?, show(&rendered.token_ids)?);
        let class = self.classify(conversation, tape, turns, &rendered.text.text)?;
        Ok(Some(Divergence { class, token, recorded, rendered: shown }))
    }

    fn classify(&self, conversation: &Conversation, tape: &[TokenId], turns: &[usize], whole: &str) -> Result<Class> {
        let tape = self.renderer.tokenizer().decode(tape, false)?;
        if whole.starts_with(&tape) || tape.starts_with(whole) {
            return Ok(Class::Tokenization);
        }
        for message in turns {
            if let Some(rewrite) = rewrite_in(self, conversation, *message, whole, Turn::Through)? {
                return Ok(rewrite.class);
            }
        }
        Ok(Class::Content)
    }
}
