//! Whether the sampled text, and the message that it stands for, have the same tail.
//!
//! Without `message=`, a turn is its text. A template may print what follows a tool call by looking at the call: the
//! name over a result, say. Then the tail behind the text is not the one behind the message, and nobody has said which
//! the policy shall see.

use std::sync::{Arc, OnceLock};

use super::Trajectory;
use super::dialogue::Dialogue;
use crate::bridge::{Bridge, Tail};
use crate::message::{Conversation, Data, Dict};
use crate::parse::{Learned, Prompt, Status, Tools};
use crate::{Error, ErrorKind, Result, TokenId};

/// So many tokens before the turn say what it begins in.
const PROMPT_TOKENS: usize = 64;

/// What is learned of a chat's template when it first matters; shared by all its trajectories.
#[derive(Debug, Clone, Default)]
pub struct Reader {
    /// Reads sampled ids as messages.
    pub parser: Learned,
    /// Whether what follows a tool call may depend on how the call is given.
    depends: Arc<OnceLock<bool>>,
}

impl Trajectory {
    /// Refuses an observation behind a tool call whose tail depends on how the call is given.
    ///
    /// `raw` is the tail behind the sampled text, and `conversation` holds that text as message `bridge.message`.
    pub(super) fn expect_one_tail(&self, dialogue: &Dialogue, bridge: &Bridge<'_>, raw: &Tail) -> Result<()> {
        if dialogue.explicit.is_some() || !is_result(bridge.conversation.messages.get(bridge.message + 1)) {
            return Ok(());
        }
        if !dialogue.results_may_depend_on_calls() {
            return Ok(());
        }
        let Some(message) = self.called(dialogue, bridge.turn)? else { return Ok(()) };
        let mut conversation = Conversation::clone(bridge.conversation);
        conversation.messages[bridge.message] = message;
        // Where the message cannot be rendered, the text is all there is.
        let conversation = Arc::new(conversation);
        let Ok(parsed) = (Bridge { conversation: &conversation, from: None, ..*bridge }).text() else { return Ok(()) };
        if parsed == raw.text {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Bridge,
            format!(
                "observe, turn {}: the template writes {:?} behind the turn as plain text, and {:?} behind the tool calls \
                 in it; say which with act(..., message=chat.parse(token_ids)), or with the text as the message's content",
                self.turns.len() - 1,
                raw.text,
                parsed
            ),
        ))
    }

    /// The message of a turn that calls tools; `None` if it calls none.
    fn called(&self, dialogue: &Dialogue, turn: &[TokenId]) -> Result<Option<Data>> {
        let with_tools = dialogue.conversation.tools.is_some();
        let parser = dialogue.reader.parser.of(&dialogue.renderer, &dialogue.settings, with_tools)?;
        let start = self.len() - turn.len();
        let prompt = self.columns.ids_in(start.saturating_sub(PROMPT_TOKENS)..start);
        let tools = Tools::new(dialogue.conversation.tools.as_ref());
        let message = parser.parse(turn, tools, Prompt::Ids(&prompt))?;
        let calls = message.tool_calls.iter().any(|call| matches!(call.status, Status::Ok | Status::UnknownTool));
        Ok(calls.then(|| message.to_data()))
    }
}

impl Dialogue {
    /// Whether any of some probes is printed otherwise behind a call that is a message than behind its text.
    ///
    /// They are rendered once a chat, without further template arguments: with such arguments every turn is looked at.
    fn results_may_depend_on_calls(&self) -> bool {
        !self.conversation.arguments.is_empty()
            || *self.reader.depends.get_or_init(|| probes().iter().any(|probe| self.depends_in(probe)))
    }

    fn depends_in(&self, probe: &Conversation) -> bool {
        let behind = |conversation: &Arc<Conversation>| {
            let settings = self.settings(true);
            let renderer = &self.renderer;
            Bridge { renderer, settings: &settings, conversation, message: 1, turn: &[], from: None }.text().ok()
        };
        let mut plain = probe.clone();
        plain.messages[1] = dict([("role", "assistant".into()), ("content", "text".into())]);
        let called = behind(&Arc::new(probe.clone()));
        called.is_none() || called != behind(&Arc::new(plain))
    }
}

/// Conversations of a call or two and their results, with and without what names the call.
fn probes() -> Vec<Conversation> {
    let result = || [("role", Data::from("tool")), ("content", Data::from("result"))];
    let named = |index: usize| {
        let id = [("name", Data::from("name")), ("tool_call_id", call_id(index))];
        dict(result().into_iter().chain(id))
    };
    let results =
        [vec![dict(result())], vec![named(0)], vec![named(0), named(1)], vec![dict(result()), dict(result())]];
    let conversation = |results: Vec<Data>| {
        let calls: Vec<Data> = (0..results.len()).map(call).collect();
        let user = dict([("role", "user".into()), ("content", "question".into())]);
        let assistant = dict([("role", "assistant".into()), ("content", "".into()), ("tool_calls", calls.into())]);
        Conversation { messages: [user, assistant].into_iter().chain(results).collect(), ..Conversation::default() }
    };
    results.into_iter().map(conversation).collect()
}

/// Nine letters and digits, as some templates demand.
fn call_id(index: usize) -> Data {
    format!("call{index:05}").into()
}

fn call(index: usize) -> Data {
    let arguments = dict([("key", Data::from("value"))]);
    let function = dict([("name", Data::from(format!("tool{index}"))), ("arguments", arguments)]);
    dict([("id", call_id(index)), ("type", "function".into()), ("function", function)])
}

fn dict<'k>(entries: impl IntoIterator<Item = (&'k str, Data)>) -> Data {
    entries.into_iter().collect::<Dict>().into()
}

fn is_result(message: Option<&Data>) -> bool {
    message.and_then(|message| message.get("role")).and_then(Data::as_text) == Some("tool")
}
