//! The likeliest alternatives at sampled tokens, as far as the engine told them.

use std::mem::size_of;

use crate::TokenId;

/// For each of some tokens, ids with their logprobs.
///
/// *Invariant*: `ends` never falls, and its last value is the number of ids and of logprobs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TopLogprobs {
    /// Where the alternatives of each token end.
    pub ends: Vec<u32>,
    /// The ids, token after token.
    pub ids: Vec<TokenId>,
    /// A logprob an id.
    pub logprobs: Vec<f32>,
}

impl TopLogprobs {
    /// How many tokens there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no token.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Adds a token with its alternatives.
    pub fn push(&mut self, alternatives: impl IntoIterator<Item = (TokenId, f32)>) {
        for (id, logprob) in alternatives {
            self.ids.push(id);
            self.logprobs.push(logprob);
        }
        self.ends.push(self.ids.len() as u32);
    }

    /// The alternatives of a token.
    pub fn get(&self, token: usize) -> (&[TokenId], &[f32]) {
        let start = token.checked_sub(1).map_or(0, |before| self.ends[before]) as usize;
        let end = self.ends[token] as usize;
        (&self.ids[start..end], &self.logprobs[start..end])
    }

    /// Adds the tokens of another.
    pub fn extend(&mut self, other: &Self) {
        let shift = self.ids.len() as u32;
        self.ends.extend(other.ends.iter().map(|end| end + shift));
        self.ids.extend_from_slice(&other.ids);
        self.logprobs.extend_from_slice(&other.logprobs);
    }

    pub(crate) fn truncate(&mut self, tokens: usize) {
        self.ends.truncate(tokens);
        let kept = self.ends.last().copied().unwrap_or_default() as usize;
        self.ids.truncate(kept);
        self.logprobs.truncate(kept);
    }

    pub(crate) fn shrink(&mut self) {
        self.ends.shrink_to_fit();
        self.ids.shrink_to_fit();
        self.logprobs.shrink_to_fit();
    }

    pub(crate) fn bytes(&self) -> usize {
        (self.ends.capacity() + self.ids.capacity() + self.logprobs.capacity()) * size_of::<u32>()
    }
}
