//! What a template does to history, shown on the smallest conversation in which it does it.

use super::Class;
use super::dialogue::Dialogue;
use super::history::rewrite;
use crate::audit::scenarios;
use crate::message::{Conversation, Data};

/// A conversation that goes on, and whose template prints a turn otherwise than it printed it before.
#[derive(Debug, Clone, PartialEq)]
pub struct Rewriting {
    /// The messages up to the prompt that no longer holds the turn.
    pub conversation: Conversation,
    /// What the template does.
    pub class: Class,
    /// What it printed where the texts part.
    pub before: String,
    /// What it prints there now.
    pub after: String,
}

impl Dialogue {
    /// The smallest conversation whose history the template rewrites under these settings; `None` if no probe shows one.
    pub fn rewriting(&self) -> Option<Rewriting> {
        let shown = scenarios().into_iter().filter_map(|(_, probe)| self.rewriting_in(&probe));
        shown.min_by_key(|shown| shown.conversation.messages.len())
    }

    fn rewriting_in(&self, probe: &Conversation) -> Option<Rewriting> {
        let is_assistant =
            |place: &usize| probe.messages[*place].get("role").and_then(Data::as_text) == Some("assistant");
        let turns: Vec<usize> = (0..probe.messages.len()).filter(is_assistant).collect();
        turns.windows(2).find_map(|turns| {
            let messages = probe.messages[..turns[1]].to_vec();
            let arguments = self.conversation.arguments.clone();
            let conversation = Conversation { messages, arguments, ..probe.clone() };
            // A probe that the template refuses shows nothing.
            let rewrite = rewrite(self, &conversation, turns[0], true).ok().flatten()?;
            let (before, after) = rewrite.excerpts();
            Some(Rewriting { conversation, class: rewrite.class, before, after })
        })
    }
}

impl Rewriting {
    /// One sentence for a person.
    pub fn words(&self) -> String {
        let text = |message: &Data, field| message.get(field).and_then(Data::as_text).unwrap_or_default().to_owned();
        let message = |message: &Data| format!("{} {:?}", text(message, "role"), text(message, "content"));
        let messages: Vec<String> = self.conversation.messages.iter().map(message).collect();
        let what = match self.class {
            Class::GenerationPrompt => "does not print a turn as its generation prompt began it",
            _ => "prints an earlier turn otherwise once the conversation goes on",
        };
        format!(
            "the chat template {what}: with {}, where it had printed {:?}, the next prompt holds {:?}",
            messages.join(", "),
            self.before,
            self.after
        )
    }
}
