//! Which messages carry loss: a choice on top of what a policy would have sampled.

use std::ops::Range;

use super::Rendered;
use crate::mask::{AssistantSpans, Flag};
use crate::{Error, Result};

/// Which of the messages of the chosen roles count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Turns {
    /// All.
    #[default]
    All,
    /// The last.
    Last,
    /// These messages, by index; a negative index counts from the end of the conversation.
    Messages(Vec<i64>),
}

/// What to do about a chosen assistant message whose sampled text cannot be told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Missing {
    /// Refuse, and name the messages.
    #[default]
    Error,
    /// Leave them without loss.
    Skip,
}

impl Rendered {
    /// Per token, whether training uses it: of assistant messages what a policy would have sampled, of messages of
    /// other roles the text of their fields.
    pub fn loss_mask(&self, turns: &Turns, roles: &[String], missing: Missing) -> Result<Vec<bool>> {
        let chosen = self.chosen(turns, roles)?;
        let assistants: Vec<_> =
            self.assistant_spans().iter().filter(|assistant| chosen.contains(&(assistant.message as usize))).collect();
        if missing == Missing::Error {
            refuse_missing(&assistants)?;
        }
        let sampled: Vec<Range<u32>> =
            assistants.iter().flat_map(|assistant| assistant.spans.iter().cloned()).collect();
        let mut mask = self.mask_of_sampled(sampled);
        let is_assistant = |message: i32| self.roles.get(message as usize).is_some_and(|role| **role == *"assistant");
        for ((token, content), message) in mask.iter_mut().zip(self.is_content()).zip(self.message_index()) {
            *token |= content && !is_assistant(message) && chosen.contains(&(message as usize));
        }
        Ok(mask)
    }

    fn chosen(&self, turns: &Turns, roles: &[String]) -> Result<Vec<usize>> {
        let has_role = |message: &usize| roles.iter().any(|role| **role == *self.roles[*message]);
        let all = (0..self.roles.len()).filter(has_role);
        match turns {
            Turns::All => Ok(all.collect()),
            Turns::Last => Ok(all.last().into_iter().collect()),
            Turns::Messages(wanted) => {
                let found: Result<Vec<_>> = wanted.iter().map(|message| self.index_of(*message)).collect();
                Ok(found?.into_iter().filter(has_role).collect())
            }
        }
    }

    fn index_of(&self, message: i64) -> Result<usize> {
        let count = self.roles.len();
        let index = if message < 0 { message + count as i64 } else { message };
        usize::try_from(index).ok().filter(|index| *index < count).ok_or_else(|| {
            Error::value(format!("turns: there is no message {message}, the conversation has {count} messages"))
        })
    }
}

fn refuse_missing(assistants: &[&AssistantSpans]) -> Result<()> {
    let is_missing = |flag: &&Flag| matches!(flag, Flag::NotRendered | Flag::Undetermined);
    let missing: Vec<String> = assistants
        .iter()
        .filter_map(|assistant| Some((assistant.message, assistant.flags.iter().find(is_missing)?)))
        .map(|(message, flag)| format!("message {message} ({})", flag.name()))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Error::value(format!(
        "it cannot be told what a policy would have sampled of {}: choose other turns, or pass missing=\"skip\"",
        missing.join(", ")
    )))
}
