//! Where a proven row leaves a canonical render of its conversation, and why: a fact about it, no fault.

use super::fault::{Found, Kind};
use super::proof::Proof;
use crate::Result;
use crate::message::Data;
use crate::trajectory::{Class, Divergence};

/// Notes the first divergence of a row.
pub(super) fn note(proof: &Proof<'_>, found: &mut Found) -> Result<()> {
    let Some(divergence) = divergence(proof)? else { return Ok(()) };
    let (kind, what) = named(proof, &divergence);
    let message = format!(
        "{what}: the row says {:?}, a render of all its messages {:?}",
        divergence.recorded, divergence.rendered
    );
    found.tokens(kind, "token_ids", divergence.token..divergence.token + 1, message);
    Ok(())
}

/// The first difference between the row and a render of its messages, sought as cheaply as the row allows: where the
/// texts are equal, only what was sampled can be other ids.
fn divergence(proof: &Proof<'_>) -> Result<Option<Divergence>> {
    let Proof { dialogue, ids, turns } = proof;
    let open = turns.last().is_some_and(|turn| turn.tokens.end == ids.len());
    let tokenizer = dialogue.renderer.tokenizer();
    let text = tokenizer.decode(ids, false)?;
    for prompt in [false, true] {
        let rendered = dialogue.renderer.render_text(&dialogue.conversation, &dialogue.settings(prompt))?;
        let equal = if open { rendered.text.starts_with(&text) } else { rendered.text == text };
        if equal {
            return retokenised(proof);
        }
    }
    let spans: Vec<_> = turns.iter().map(|turn| turn.message).collect();
    dialogue.divergence(&dialogue.conversation, ids, &spans, !open && ends_with_prompt(proof)?, open)
}

/// Whether the row ends with a generation prompt.
fn ends_with_prompt(proof: &Proof<'_>) -> Result<bool> {
    let Proof { dialogue, ids, .. } = proof;
    let render = |prompt| dialogue.renderer.render(&dialogue.conversation, &dialogue.settings(prompt));
    let (plain, asked) = (render(false)?.token_ids, render(true)?.token_ids);
    Ok(asked.strip_prefix(plain.as_slice()).is_some_and(|prompt| !prompt.is_empty() && ids.ends_with(prompt)))
}

/// The first turn whose ids are not what encoding its text gives.
fn retokenised(proof: &Proof<'_>) -> Result<Option<Divergence>> {
    let tokenizer = proof.dialogue.renderer.tokenizer();
    for turn in &proof.turns {
        let sampled = &proof.ids[turn.tokens.clone()];
        let encoded = tokenizer.encode(&tokenizer.decode(sampled, false)?)?;
        if encoded == sampled {
            continue;
        }
        let at = sampled.iter().zip(&encoded).take_while(|(one, two)| one == two).count();
        let show = |ids: &[i32]| tokenizer.decode(&ids[at..ids.len().min(at + 4)], false);
        let (recorded, rendered) = (show(sampled)?, show(&encoded)?);
        return Ok(Some(Divergence { class: Class::Tokenization, token: turn.tokens.start + at, recorded, rendered }));
    }
    Ok(None)
}

/// The class in the words of this module.
fn named(proof: &Proof<'_>, divergence: &Divergence) -> (Kind, &'static str) {
    let sampled = proof.turns.iter().any(|turn| turn.tokens.contains(&divergence.token));
    match divergence.class {
        Class::Tokenization if sampled => (Kind::Retokenised, "other ids stand for the same text"),
        Class::Tokenization => (Kind::Seam, "ids differ at the edge of a turn, where texts were encoded apart"),
        Class::GenerationPrompt => {
            (Kind::GenerationPromptRewritten, "the template prints a turn otherwise than it began it")
        }
        Class::Content => (Kind::ContentRewritten, "the template prints a message otherwise than it was sampled"),
        Class::History if is_reasoning(&divergence.recorded) => {
            (Kind::ThinkingStripped, "reasoning is not printed again")
        }
        Class::History if before_tool(proof, divergence.token) => {
            (Kind::ToolResultMerged, "tool results are printed together")
        }
        Class::History => (Kind::HistoryRewritten, "earlier messages are printed otherwise"),
    }
}

/// Whether a text opens, or is in the middle of, reasoning.
fn is_reasoning(text: &str) -> bool {
    text.contains("think") || text.contains("reason") || text.contains("analysis")
}

/// Whether the message after the turn before a token is a tool's.
fn before_tool(proof: &Proof<'_>, token: usize) -> bool {
    let turn = proof.turns.iter().rev().find(|turn| turn.tokens.start <= token);
    let message = turn.and_then(|turn| proof.dialogue.conversation.messages.get(turn.message + 1));
    message.and_then(|message| message.get("role").and_then(Data::as_text)) == Some("tool")
}
