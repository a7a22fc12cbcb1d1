//! The conversation behind a trajectory: messages, template, tokenizer, and what is done when history is rewritten.

use std::any::Any;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::ambiguity::Reader;
use crate::message::{Conversation, Data, Dict, shared};
use crate::render::{ControlTokens, RenderSettings, Renderer};
use crate::{Error, ErrorKind, Result, TokenId};

/// What `observe` does when the template prints earlier messages otherwise than before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum History {
    /// The tape is only appended to: the policy sees what it saw.
    #[default]
    Keep,
    /// A new fragment begins with what the template prints now.
    Fork,
    /// `observe` refuses.
    Error,
}

impl History {
    /// Reads `keep`, `fork` or `error`.
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "keep" => Ok(Self::Keep),
            "fork" => Ok(Self::Fork),
            "error" => Ok(Self::Error),
            other => Err(Error::value(format!("history: '{other}' is none of 'keep', 'fork', 'error'"))),
        }
    }

    /// The name that [`Self::parse`] reads.
    pub fn name(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Fork => "fork",
            Self::Error => "error",
        }
    }
}

/// See the module's page.
#[derive(Debug, Clone)]
pub struct Dialogue {
    /// The template and the tokenizer.
    pub renderer: Renderer,
    /// How every render of the trajectory is made; the clock is fixed.
    pub settings: RenderSettings,
    /// Everything that was said before the open turn.
    pub conversation: Arc<Conversation>,
    /// What happens when the template rewrites history.
    pub history: History,
    /// Images and the like are rendered as the text that the template writes for them.
    pub media_placeholders: bool,
    /// The message that the caller gave for the open turn; else its text is its content.
    pub explicit: Option<Data>,
    /// What is learned of the template; shared by all trajectories that render so.
    pub reader: Reader,
    /// The caller's own object behind the renderer, carried along for the caller.
    pub chat: Option<Arc<dyn Any + Send + Sync>>,
}

impl Dialogue {
    /// The settings with or without a generation prompt.
    pub fn settings(&self, add_generation_prompt: bool) -> RenderSettings {
        let mut settings = self.settings.clone();
        settings.options.add_generation_prompt = add_generation_prompt;
        settings
    }

    /// The conversation with more messages behind it.
    pub(super) fn extended(&self, messages: impl IntoIterator<Item = Data>) -> Arc<Conversation> {
        let Conversation { messages: before, tools, documents, arguments } = &*self.conversation;
        let messages = before.iter().cloned().chain(messages).collect();
        let (tools, documents, arguments) = (tools.clone(), documents.clone(), arguments.clone());
        Arc::new(Conversation { messages, tools, documents, arguments })
    }

    /// Whether an id ends a turn.
    pub(super) fn is_stop(&self, id: TokenId) -> bool {
        self.renderer.stop_tokens().binary_search_by_key(&id, |stop| stop.id).is_ok()
    }

    /// The message of the open turn: the one given, else the sampled text as it is, without its stop.
    pub fn sampled_message(&self, turn: &[TokenId]) -> Result<Data> {
        if let Some(message) = &self.explicit {
            return Ok(message.clone());
        }
        let text = match turn.split_last() {
            Some((last, before)) if self.is_stop(*last) => before,
            _ => turn,
        };
        let content = self.renderer.tokenizer().decode(text, false)?;
        let fields = vec![("role".into(), Data::Text(shared("assistant"))), ("content".into(), Data::from(content))];
        Ok(Data::from(Dict::from_unique(fields)))
    }

    /// Refuses messages that a trajectory cannot hold.
    pub(super) fn check(&self, messages: &[Data], first: usize) -> Result<()> {
        for (index, message) in messages.iter().enumerate() {
            let place = first + index;
            if message.as_dict().is_none() {
                let kind = message.type_name();
                return Err(Error::value(format!("message {place} is a {kind}; a message is a dict with a role")));
            }
            if let Some(kind) = media_part(message).filter(|_| !self.media_placeholders) {
                return Err(Error::trajectory(format!(
                    "message {place} has a part of the type '{kind}'; pass media=\"placeholder\" to render it as the text \
                     that the template writes for it"
                )));
            }
        }
        Ok(())
    }

    /// What can be said about the origin of the tokens.
    pub(super) fn provenance(&self, provenance: &mut Map<String, Value>) -> Result<()> {
        let template = self.renderer.template(&self.conversation, &self.settings)?;
        let control_tokens = match self.settings.control_tokens {
            ControlTokens::All => "all",
            ControlTokens::Template => "template",
        };
        provenance.insert("template_sha256".into(), sha256(template.source().as_bytes()).into());
        provenance.insert("tokenizer_sha256".into(), self.renderer.tokenizer().sha256().into());
        provenance.insert("template_kwargs".into(), object(&self.conversation.arguments)?);
        if let Some(documents) = &self.conversation.documents {
            provenance.insert("documents".into(), value_of(documents)?);
        }
        provenance.insert("special_tokens".into(), object(self.renderer.special_tokens())?);
        provenance.insert("control_tokens".into(), control_tokens.into());
        provenance.insert(
            "trusted_roles".into(),
            json!(self.settings.trusted_roles.iter().map(|role| &**role).collect::<Vec<_>>()),
        );
        provenance.insert("history".into(), self.history.name().into());
        provenance
            .insert("now".into(), self.settings.options.now.map(|now| now.strftime("%Y-%m-%dT%H:%M:%S.%f")).into());
        Ok(())
    }
}

fn media_part(message: &Data) -> Option<&str> {
    let parts = message.get("content")?.as_items()?;
    parts.iter().filter_map(|part| part.get("type")?.as_text()).find(|kind| *kind != "text")
}

/// Template arguments as a JSON object.
fn object(arguments: &[(Arc<str>, Data)]) -> Result<Value> {
    let entry = |(name, value): &(Arc<str>, Data)| Ok((name.to_string(), value_of(value)?));
    arguments.iter().map(entry).collect::<Result<Map<_, _>>>().map(Value::Object)
}

/// JSON of the same meaning.
fn value_of(data: &Data) -> Result<Value> {
    serde_json::from_str(&data.to_json()).map_err(|error| {
        Error::new(ErrorKind::Schema, format!("a template argument cannot be stored as JSON: {error}"))
    })
}

fn sha256(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}
