//! What goes into the columns at once, and the columns as plain data.

use super::{Chunk, MessageRun};
use crate::TokenId;
use crate::top_logprobs::TopLogprobs;

/// What one act adds: values for its ids alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sampled<'a> {
    /// The ids.
    pub token_ids: &'a [TokenId],
    /// Empty, or one value an id.
    pub logprobs: &'a [f32],
    /// Empty, or one value an id, of a reference model.
    pub reference_logprobs: &'a [f32],
    /// The alternatives at each id.
    pub top_logprobs: Option<&'a TopLogprobs>,
}

/// Columns as plain data.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SavedColumns {
    /// The ids.
    pub token_ids: Vec<TokenId>,
    /// One value a sampled token, or none at all.
    pub logprobs: Vec<f32>,
    /// The same of a reference model.
    pub reference: Vec<f32>,
    /// The alternatives at the sampled tokens, or none at all.
    pub top: TopLogprobs,
    /// The runs of sampled tokens.
    pub chunks: Vec<Chunk>,
    /// The runs of messages.
    pub messages: Vec<MessageRun>,
    /// How many leading tokens another fragment trains.
    pub inherited: u32,
    /// The chosen loss mask.
    pub loss_mask: Option<Vec<u8>>,
    /// The chosen weights.
    pub loss_weight: Option<Vec<f32>>,
}
