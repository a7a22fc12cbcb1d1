//! A renderer is a template and a tokenizer: messages to text, token ids, and the author of every token.
//!
//! *Invariants.* Text and ids equal those of transformers 5.24 for the same input, or the same error class is raised.
//! Spans partition the text and, by the first byte of each token, the ids.
//!
//! Two settings leave that ground on purpose, and are named: `seams = rollout` cuts the text where sampling begins and
//! ends, as a policy that samples does, and `control_tokens = template` lets no argument become a control token.

mod code_points;
mod explain;
mod literal;
mod rendered;
mod seams;
mod selection;
mod shortcut;
mod stops;
mod store;
mod templates;

use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

pub use code_points::CodePoints;
pub use rendered::Rendered;
pub use seams::Seam;
pub use selection::{Missing, Turns};
pub use shortcut::Beginning;
pub use stops::{StopSource, StopToken};
pub use templates::Templates;

use crate::mask::Masker;
use crate::message::{Conversation, Data};
use crate::template::{ContinueFinalMessage, RenderOptions, RenderedText, Template};
use crate::tokenizer::{Encoded, Tokenizer};
use crate::{Error, ErrorKind, Result, TokenId, threads};

/// Which added tokens count as such.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ControlTokens {
    /// All, as in transformers.
    #[default]
    All,
    /// Those whose bytes the template wrote; a match that touches an argument is encoded as plain text.
    Template,
}

/// Whether tokens may span the place where a policy begins or stops to sample.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Seams {
    /// The text is encoded whole, as in transformers.
    #[default]
    Parity,
    /// The text is cut there, and each piece encoded alone.
    Rollout,
}

/// Settings of [`Renderer::render`].
#[derive(Debug, Clone, Default)]
pub struct RenderSettings {
    /// Settings of the template. Special tokens come from the renderer.
    pub options: RenderOptions,
    /// Which added tokens count.
    pub control_tokens: ControlTokens,
    /// Roles whose text may hold control tokens all the same.
    pub trusted_roles: Arc<[Arc<str>]>,
    /// Whether tokens may span a prompt and a completion.
    pub seams: Seams,
    /// The name of a template, where a model has several; chosen as transformers does it otherwise.
    pub template: Option<Arc<str>>,
}

/// A chat template, or several, with a tokenizer. Cheap to clone, and shared freely between threads.
#[derive(Debug, Clone)]
pub struct Renderer(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    templates: Templates,
    tokenizer: Tokenizer,
    special_tokens: Arc<[(Arc<str>, Data)]>,
    given_stops: Vec<StopToken>,
    stops: OnceLock<Vec<StopToken>>,
}

impl Renderer {
    /// A renderer. `special_tokens` are variables of every template (`bos_token`, …); `stops` are the stop tokens that
    /// are known beside those that the template shows.
    pub fn new(
        tokenizer: Tokenizer,
        templates: &Templates,
        special_tokens: Arc<[(Arc<str>, Data)]>,
        stops: Vec<StopToken>,
    ) -> Self {
        let templates = templates.with_special_tokens(&special_tokens);
        Self(Arc::new(Inner { templates, tokenizer, special_tokens, given_stops: stops, stops: OnceLock::new() }))
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.0.tokenizer
    }

    /// The templates.
    pub fn templates(&self) -> &Templates {
        &self.0.templates
    }

    /// The variables that every template sees: `bos_token` and the like.
    pub fn special_tokens(&self) -> &Arc<[(Arc<str>, Data)]> {
        &self.0.special_tokens
    }

    /// The template that renders a conversation, by the rule of transformers, and its masks.
    pub fn masker(&self, conversation: &Conversation, settings: &RenderSettings) -> Result<&Arc<Masker>> {
        self.0.templates.select(settings.template.as_deref(), conversation.tools.is_some())
    }

    /// The template that renders a conversation, by the rule of transformers.
    pub fn template(&self, conversation: &Conversation, settings: &RenderSettings) -> Result<&Template> {
        Ok(self.masker(conversation, settings)?.template())
    }

    /// The ids that end a turn, sorted, each with what says so.
    pub fn stop_tokens(&self) -> &[StopToken] {
        self.0.stops.get_or_init(|| stops::collect(&self.0.templates, &self.0.tokenizer, &self.0.given_stops))
    }

    /// The options that a template is rendered with under these settings: those given, with the special tokens.
    pub fn options(&self, settings: &RenderSettings) -> RenderOptions {
        self.complete(settings).options
    }

    /// The settings with the special tokens of this renderer.
    fn complete(&self, settings: &RenderSettings) -> RenderSettings {
        let options = RenderOptions { special_tokens: self.0.special_tokens.clone(), ..settings.options.clone() };
        RenderSettings { options, ..settings.clone() }
    }

    /// Renders the text of a conversation, without its tokens.
    pub fn render_text(&self, conversation: &Conversation, settings: &RenderSettings) -> Result<RenderedText> {
        check(conversation, settings)?;
        self.template(conversation, settings)?.render(conversation, &self.complete(settings).options)
    }

    /// Renders and encodes a conversation.
    pub fn render(&self, conversation: &Conversation, settings: &RenderSettings) -> Result<Rendered> {
        let text = self.render_text(conversation, settings)?;
        self.encoded(text, conversation, settings)
    }

    /// The tokens of a rendered text.
    fn encoded(&self, text: RenderedText, conversation: &Conversation, settings: &RenderSettings) -> Result<Rendered> {
        let settings = self.complete(settings);
        let masker = self.masker(conversation, &settings)?.clone();
        let encoded = self.encode_rendered(&text, conversation, &settings)?;
        Ok(Rendered::new(text, encoded, rendered::Origin::new(self, conversation, settings, masker)))
    }

    /// Encodes a rendered text, cut where these complete settings say.
    fn encode_rendered(
        &self,
        text: &RenderedText,
        conversation: &Conversation,
        settings: &RenderSettings,
    ) -> Result<Encoded> {
        let cuts = match settings.seams {
            Seams::Parity => Vec::new(),
            Seams::Rollout => {
                let masker = self.masker(conversation, settings)?;
                seams::cuts(&masker.assistant_spans(conversation, &settings.options, text))
            }
        };
        self.encode_pieces(text, conversation, settings, &cuts)
    }

    /// Encodes texts in parallel, without special tokens around them.
    pub fn encode_batch<T: AsRef<str> + Sync>(&self, texts: &[T]) -> Result<Vec<Vec<TokenId>>> {
        let encode = |(index, text): (usize, &T)| {
            self.0.tokenizer.encode(text.as_ref()).map_err(|error| error.within(&format!("text {index}")))
        };
        threads::shared(|| texts.par_iter().enumerate().map(encode).collect())
    }

    /// The bytes of a token.
    pub fn token_bytes(&self, id: TokenId) -> Result<Vec<u8>> {
        self.0.tokenizer.token_bytes(id).ok_or_else(|| {
            let size = self.0.tokenizer.vocab_size();
            Error::value(format!(
                "{id} is no token id of this tokenizer, whose largest id is {}",
                size.saturating_sub(1)
            ))
        })
    }

    /// The stop tokens that are known beside those that the template shows.
    pub fn given_stops(&self) -> &[StopToken] {
        &self.0.given_stops
    }

    /// What the renderer is made of, on one line.
    pub fn describe(&self) -> String {
        let templates = self.0.templates.entries();
        let names: Vec<&str> = templates.iter().map(|(name, _)| &**name).collect();
        let template = match templates {
            [] => "no template".to_owned(),
            [(_, one)] if !self.0.templates.are_named() => {
                format!("template of {} characters", one.template().source().chars().count())
            }
            _ => format!("templates {}", names.join(", ")),
        };
        format!("Chat(vocabulary of {}, {template})", self.0.tokenizer.vocab_size())
    }

    /// Encodes the part of a rendered text from the byte `from` on; starts are places in the whole text.
    pub fn encode_from(
        &self,
        text: &RenderedText,
        conversation: &Conversation,
        settings: &RenderSettings,
        from: u32,
    ) -> Result<Encoded> {
        let literal = literal::ranges(text, conversation, settings, from);
        seams::encode_piece(&self.0.tokenizer, &text.text, literal.as_deref(), from..text.text.len() as u32)
    }

    /// Encodes a rendered text, cut at `cuts`, under the rule for control tokens.
    fn encode_pieces(
        &self,
        text: &RenderedText,
        conversation: &Conversation,
        settings: &RenderSettings,
        cuts: &[u32],
    ) -> Result<Encoded> {
        let literal = literal::ranges(text, conversation, settings, 0);
        seams::encode(&self.0.tokenizer, &text.text, literal.as_deref(), cuts)
    }
}

/// What `apply_chat_template` refuses before it renders.
fn check(conversation: &Conversation, settings: &RenderSettings) -> Result<()> {
    let refuse = |message: &str| Err(Error::new(ErrorKind::Render, message).with_class("ValueError"));
    if conversation.messages.is_empty() {
        return refuse("the conversation is empty: pass at least one message");
    }
    let continues = settings.options.continue_final_message != ContinueFinalMessage::No;
    if continues && settings.options.add_generation_prompt {
        return refuse(
            "continue_final_message and add_generation_prompt exclude each other: the first leaves the final message \
             open, the second opens a new one",
        );
    }
    Ok(())
}
