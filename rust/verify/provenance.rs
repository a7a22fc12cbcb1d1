//! A row's own provenance, as the settings that render its conversation again.

use std::sync::Arc;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::fault::Kind;
use crate::TokenId;
use crate::message::{Conversation, Data};
use crate::render::{ControlTokens, RenderSettings, Renderer, Seams};
use crate::template::Clock;
use crate::trajectory::{Dialogue, History, Reader};

/// Why a row cannot be rendered again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unproven {
    pub(super) kind: Kind,
    pub(super) message: String,
}

impl Unproven {
    fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

/// A row that was made with another file than the one it is proven with: the two may say the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Other {
    /// What is wrong with the row, if it does not hold.
    pub(super) changed: Kind,
    pub(super) what: &'static str,
    pub(super) recorded: String,
}

/// The templates of a renderer, each by the hash that provenance stores.
#[derive(Debug)]
pub(super) struct Known {
    renderer: Renderer,
    templates: Vec<(Arc<str>, String)>,
}

impl Known {
    pub(super) fn new(renderer: Renderer) -> Self {
        let hash = |source: &str| format!("{:x}", Sha256::digest(source.as_bytes()));
        let entries = renderer.templates().entries().iter();
        let templates = entries.map(|(name, masker)| (name.clone(), hash(masker.template().source()))).collect();
        Self { renderer, templates }
    }

    /// Whether an id is none of this tokenizer: lint says so, and nothing can be decoded.
    pub(super) fn outside(&self, ids: &[TokenId]) -> bool {
        let size = self.renderer.tokenizer().vocab_size();
        ids.iter().any(|id| !usize::try_from(*id).is_ok_and(|id| id < size))
    }

    /// The dialogue of a row: its messages, tools and settings over this renderer.
    pub(super) fn dialogue(
        &self,
        provenance: &str,
        messages: &str,
        tools: &str,
    ) -> Result<(Dialogue, Option<Other>), Unproven> {
        let unproven = |what: &str| Unproven::new(Kind::Unproven, what);
        let saved: Map<String, Value> = serde_json::from_str(provenance).unwrap_or_default();
        let Some(template) = saved.get("template_sha256").and_then(Value::as_str) else {
            return Err(unproven("the row says of no template that it was rendered with it"));
        };
        let own = self.renderer.tokenizer().sha256();
        let tokenizer = saved.get("tokenizer_sha256").and_then(Value::as_str).filter(|other| *other != own);
        let name = self.templates.iter().find(|(_, hash)| hash == template).map(|(name, _)| name);
        // The source of a template is one text; the same tokenizer may be written as JSON in several ways.
        let other = |changed, what, recorded| Other { changed, what, recorded: short(recorded).to_owned() };
        let other = match (name, tokenizer) {
            (None, _) => Some(other(Kind::TemplateChanged, "template", template)),
            (Some(_), Some(recorded)) => Some(other(Kind::TokenizerChanged, "tokenizer", recorded)),
            (Some(_), None) => None,
        };
        let messages = Data::from_json(messages).ok().and_then(|data| data.as_items().map(<[Data]>::to_vec));
        let Some(messages) = messages.filter(|messages| !messages.is_empty()) else {
            return Err(unproven("the row has no messages to render"));
        };
        let conversation = Conversation {
            messages,
            tools: given(Data::from_json(tools).ok()),
            documents: given(saved.get("documents").map(data)),
            arguments: self.arguments(&saved),
        };
        let named = name.filter(|_| self.renderer.templates().are_named()).cloned();
        let dialogue = Dialogue {
            renderer: self.renderer.clone(),
            settings: settings(&saved, named),
            conversation: Arc::new(conversation),
            history: History::Keep,
            media_placeholders: true,
            explicit: None,
            reader: Reader::default(),
            chat: None,
        };
        Ok((dialogue, other))
    }

    /// The template arguments; special tokens that the model has otherwise today go with them, since arguments win.
    fn arguments(&self, saved: &Map<String, Value>) -> Vec<(Arc<str>, Data)> {
        let object = |name: &str| saved.get(name).and_then(Value::as_object).into_iter().flatten();
        let mut arguments: Vec<(Arc<str>, Data)> =
            object("template_kwargs").map(|(name, value)| (name.as_str().into(), data(value))).collect();
        let today = self.renderer.special_tokens();
        for (name, value) in object("special_tokens") {
            let value = data(value);
            let same = today.iter().any(|(known, token)| **known == **name && *token == value);
            if !same && !arguments.iter().any(|(known, _)| **known == **name) {
                arguments.push((name.as_str().into(), value));
            }
        }
        arguments
    }
}

fn settings(saved: &Map<String, Value>, template: Option<Arc<str>>) -> RenderSettings {
    let text = |name: &str| saved.get(name).and_then(Value::as_str);
    let guarded = text("control_tokens") == Some("template");
    let trusted = saved.get("trusted_roles").and_then(Value::as_array).into_iter().flatten();
    let mut settings = RenderSettings {
        control_tokens: if guarded { ControlTokens::Template } else { ControlTokens::All },
        trusted_roles: trusted.filter_map(Value::as_str).map(Arc::from).collect(),
        seams: Seams::Rollout,
        template,
        ..RenderSettings::default()
    };
    settings.options.now = text("now").and_then(clock);
    settings
}

fn given(data: Option<Data>) -> Option<Data> {
    data.filter(|data| *data != Data::Null)
}

fn data(value: &Value) -> Data {
    Data::from_json(&value.to_string()).unwrap_or_default()
}

fn short(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}

/// A moment, as provenance writes it: `2026-11-30T09:05:07.000000`.
fn clock(text: &str) -> Option<Clock> {
    let (date, time) = text.split_once('T')?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let date: Vec<u32> = date.split('-').map(str::parse).collect::<Result<_, _>>().ok()?;
    let time: Vec<u32> = time.split(':').map(str::parse).collect::<Result<_, _>>().ok()?;
    let ([year, month, day], [hour, minute, second]) = (date.try_into().ok()?, time.try_into().ok()?);
    let year = i32::try_from(year).ok()?;
    Some(Clock { year, month, day, hour, minute, second, microsecond: fraction.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_read_as_it_was_written() {
        let now = Clock { year: 2026, month: 11, day: 30, hour: 9, minute: 5, second: 7, microsecond: 42 };
        assert_eq!(clock(&now.strftime("%Y-%m-%dT%H:%M:%S.%f")), Some(now));
        assert_eq!(clock("yesterday"), None);
    }
}
