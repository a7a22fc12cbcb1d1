//! The tokens that end a turn, and what says so.

use std::sync::Arc;

use super::Templates;
use crate::TokenId;
use crate::tokenizer::Tokenizer;

/// What names a stop token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StopSource {
    /// The caller.
    Argument,
    /// The end-of-sequence ids of the model's generation config.
    GenerationConfig,
    /// The tokenizer's end-of-sequence token.
    Tokenizer,
    /// The chat template: it writes this token at the end of an assistant turn, and not between its reasoning and content.
    Template,
}

impl StopSource {
    /// The name of the source, as Python writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Argument => "argument",
            Self::GenerationConfig => "generation_config",
            Self::Tokenizer => "tokenizer",
            Self::Template => "template",
        }
    }

    /// The source of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        let all = [Self::Argument, Self::GenerationConfig, Self::Tokenizer, Self::Template];
        all.into_iter().find(|source| source.name() == name)
    }
}

/// A stop token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopToken {
    /// Its id.
    pub id: TokenId,
    /// Its text.
    pub text: Arc<str>,
    /// Everything that names it, sorted.
    pub sources: Vec<StopSource>,
}

impl StopToken {
    /// A stop token that one source names.
    pub fn new(tokenizer: &Tokenizer, id: TokenId, source: StopSource) -> Self {
        let bytes = tokenizer.token_bytes(id).unwrap_or_default();
        Self { id, text: String::from_utf8_lossy(&bytes).into(), sources: vec![source] }
    }
}

/// The given stop tokens and the turn ends of the templates, sorted by id, each once.
pub(super) fn collect(templates: &Templates, tokenizer: &Tokenizer, given: &[StopToken]) -> Vec<StopToken> {
    let mut stops = given.to_vec();
    for (_, masker) in templates.entries() {
        let shown = masker.shown_turn_ends();
        for text in masker.stop_texts() {
            let is_special = |id| tokenizer.added_tokens().iter().any(|added| added.id == id && added.special);
            // A text that only a tool call ends with may close the call and not the turn, unless it is a control token.
            let id = tokenizer.id_of(&text).filter(|id| shown.contains(&text) || is_special(*id));
            if let Some(id) = id {
                stops.push(StopToken::new(tokenizer, id, StopSource::Template));
            }
        }
    }
    stops.sort_by_key(|stop| stop.id);
    stops.dedup_by(|later, first| {
        let same = later.id == first.id;
        if same {
            first.sources.append(&mut later.sources);
        }
        same
    });
    for stop in &mut stops {
        stop.sources.sort_unstable();
        stop.sources.dedup();
    }
    stops
}
