//! The chat template of a model, or its several named ones, and which of them renders a conversation.

use std::sync::Arc;

use crate::mask::Masker;
use crate::message::Data;
use crate::template::Template;
use crate::{Error, ErrorKind, Result};

/// No template, one, or several under names.
#[derive(Debug, Clone, Default)]
pub struct Templates {
    entries: Vec<(Arc<str>, Arc<Masker>)>,
    named: bool,
}

impl Templates {
    /// No template: rendering is an error, encoding works.
    pub fn none() -> Self {
        Self::default()
    }

    /// One template without a name.
    pub fn one(template: Template) -> Self {
        Self { named: false, ..Self::named([("default".into(), template)]) }
    }

    /// Several templates. transformers takes `tool_use` where tools are given, and else `default`.
    pub fn named(templates: impl IntoIterator<Item = (Arc<str>, Template)>) -> Self {
        let masker = |template| Arc::new(Masker::new(template, Arc::from([])));
        Self { entries: templates.into_iter().map(|(name, template)| (name, masker(template))).collect(), named: true }
    }

    /// The same templates, rendered with these special tokens.
    pub(super) fn with_special_tokens(&self, special_tokens: &Arc<[(Arc<str>, Data)]>) -> Self {
        let masker = |old: &Masker| Arc::new(Masker::new(old.template().clone(), special_tokens.clone()));
        let entries = self.entries.iter().map(|(name, old)| (name.clone(), masker(old))).collect();
        Self { entries, named: self.named }
    }

    /// The names and templates; the single template of a model that has one is called `default`.
    pub fn entries(&self) -> &[(Arc<str>, Arc<Masker>)] {
        &self.entries
    }

    /// Whether the templates have names of their own.
    pub fn are_named(&self) -> bool {
        self.named
    }

    /// The template of a name; without one, `tool_use` if there are tools and such a template, else `default`.
    pub fn select(&self, name: Option<&str>, has_tools: bool) -> Result<&Arc<Masker>> {
        let find = |wanted: &str| self.entries.iter().find(|(known, _)| &**known == wanted).map(|(_, masker)| masker);
        match name {
            Some(name) => find(name).ok_or_else(|| self.missing(Some(name))),
            None if !self.named => find("default").ok_or_else(|| self.missing(None)),
            None => has_tools
                .then(|| find("tool_use"))
                .flatten()
                .or_else(|| find("default"))
                .ok_or_else(|| self.missing(None)),
        }
    }

    fn missing(&self, name: Option<&str>) -> Error {
        let names: Vec<&str> = self.entries.iter().map(|(name, _)| &**name).collect();
        let message = match name {
            _ if names.is_empty() => "there is no chat template: pass one to Chat, or load a model that has one".into(),
            Some(name) => format!("there is no chat template named {name:?}, only: {}", names.join(", ")),
            None => format!("no chat template is the default: name one of {}", names.join(", ")),
        };
        Error::new(ErrorKind::Render, message).with_class("ValueError")
    }
}
