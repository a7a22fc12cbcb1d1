//! The per-token columns of a trajectory: they grow together, so they cannot differ in length.
//!
//! *Invariant*: all per-token columns have one length; what was appended is never changed or moved, only cut off the
//! end.
//!
//! Ids take four bytes a token and logprobs four bytes a *sampled* token. All else is run-like and stored as runs:
//! which tokens were sampled, by which act, under which policy version, and the message a token belongs to. A fork
//! freezes what it has into a block that both branches share.

mod block;
mod data;
mod top;

use std::mem::size_of;
use std::ops::Range;
use std::sync::Arc;

use block::Block;
pub use block::{Chunk, MessageRun, Origin};
pub use data::{Sampled, SavedColumns};

use crate::TokenId;

/// The columns; see the module's page.
#[derive(Debug, Clone, Default)]
pub struct Columns {
    past: Vec<Arc<Block>>,
    own: Block,
    inherited: u32,
    loss_mask: Option<Vec<u8>>,
    loss_weight: Option<Vec<f32>>,
}

impl Columns {
    /// How many tokens there are.
    pub fn len(&self) -> usize {
        self.own.end() as usize
    }

    /// Whether there is no token.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends tokens that nobody sampled, each with the message it belongs to: `messages` has one run per change.
    pub fn observe(&mut self, token_ids: &[TokenId], messages: impl IntoIterator<Item = (usize, i32)>) {
        let start = self.own.end();
        for (offset, message) in messages {
            self.own.mark_message(start + offset as u32, message);
        }
        self.own.token_ids.extend_from_slice(token_ids);
        self.grow_choices(0, token_ids.len());
    }

    /// Appends tokens that the policy sampled.
    pub fn sample(&mut self, sampled: &Sampled<'_>, message: i32, origin: Origin, version: Option<i64>) {
        let start = self.own.end();
        self.own.mark_message(start, message);
        self.own.token_ids.extend_from_slice(sampled.token_ids);
        self.own.logprobs.extend_from_slice(sampled.logprobs);
        self.own.reference.extend_from_slice(sampled.reference_logprobs);
        if let Some(top) = sampled.top_logprobs {
            self.own.top.extend(top);
        }
        self.own.mark_sampled(Chunk { start, end: self.own.end(), origin, version });
        self.grow_choices(1, sampled.token_ids.len());
    }

    /// The columns that were saved: all of them as one block.
    pub fn restore(saved: SavedColumns) -> Self {
        let SavedColumns { token_ids, logprobs, reference, top, chunks, messages, .. } = saved;
        let SavedColumns { inherited, loss_mask, loss_weight, .. } = saved;
        let own = Block { start: 0, token_ids, logprobs, reference, top, chunks, messages };
        Self { past: Vec::new(), own, inherited, loss_mask, loss_weight }
    }

    /// What [`Self::restore`] takes.
    pub fn save(&self) -> SavedColumns {
        SavedColumns {
            token_ids: self.token_ids(),
            logprobs: self.sampled_logprobs(),
            reference: self.blocks().flat_map(|block| &block.reference).copied().collect(),
            top: self.sampled_top_logprobs(),
            chunks: self.chunks().cloned().collect(),
            messages: self.blocks().flat_map(|block| &block.messages).copied().collect(),
            inherited: self.inherited,
            loss_mask: self.loss_mask.clone(),
            loss_weight: self.loss_weight.clone(),
        }
    }

    fn grow_choices(&mut self, sampled: u8, count: usize) {
        if let Some(mask) = &mut self.loss_mask {
            mask.extend(std::iter::repeat_n(sampled, count));
        }
        if let Some(weight) = &mut self.loss_weight {
            weight.extend(std::iter::repeat_n(f32::from(sampled), count));
        }
    }

    /// The columns of a fork: the past is shared, not copied.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        if !self.own.token_ids.is_empty() {
            let start = self.own.end();
            let mut frozen = std::mem::replace(&mut self.own, Block { start, ..Block::default() });
            frozen.shrink();
            self.past.push(Arc::new(frozen));
        }
        self.clone()
    }

    /// The first `length` tokens as the start of another fragment of the same rollout: inherited, so without loss.
    #[must_use]
    pub fn inherit(&self, length: usize) -> Self {
        let mut columns = self.clone();
        columns.truncate(length);
        columns.loss_mask = None;
        columns.loss_weight = None;
        columns.inherited = length as u32;
        columns
    }

    /// Cuts every column after `length` tokens.
    pub fn truncate(&mut self, length: usize) {
        let end = length as u32;
        while self.own.start > end {
            let block = self.past.pop().unwrap_or_default();
            self.own = Arc::unwrap_or_clone(block);
        }
        if end < self.own.end() {
            self.own.truncate(end);
        }
        self.inherited = self.inherited.min(end);
        if let Some(mask) = &mut self.loss_mask {
            mask.truncate(length);
        }
        if let Some(weight) = &mut self.loss_weight {
            weight.truncate(length);
        }
    }

    /// Gives back the memory that was kept for growing.
    pub fn shrink(&mut self) {
        self.own.shrink();
        self.past.shrink_to_fit();
    }

    /// Bytes that the columns hold, those shared with forks included.
    pub fn bytes(&self) -> usize {
        self.blocks().map(Block::bytes).sum::<usize>() + self.choice_bytes()
    }

    /// Bytes that the columns hold and share with no fork.
    pub fn own_bytes(&self) -> usize {
        self.own.bytes() + self.choice_bytes()
    }

    fn choice_bytes(&self) -> usize {
        self.loss_mask.as_ref().map_or(0, Vec::capacity)
            + self.loss_weight.as_ref().map_or(0, |weight| weight.capacity() * size_of::<f32>())
    }

    fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.past.iter().map(AsRef::as_ref).chain(std::iter::once(&self.own))
    }

    /// The ids.
    pub fn token_ids(&self) -> Vec<TokenId> {
        let mut token_ids = Vec::with_capacity(self.len());
        self.blocks().for_each(|block| token_ids.extend_from_slice(&block.token_ids));
        token_ids
    }

    /// The ids of `range`, which must lie within the columns.
    pub fn ids_in(&self, range: Range<usize>) -> Vec<TokenId> {
        let mut token_ids = Vec::with_capacity(range.len());
        for block in self.blocks() {
            let offset = block.start as usize;
            let start = range.start.max(offset);
            let end = range.end.min(block.end() as usize);
            if start < end {
                token_ids.extend_from_slice(&block.token_ids[start - offset..end - offset]);
            }
        }
        token_ids
    }

    /// The last id, if there is one.
    pub fn last_id(&self) -> Option<TokenId> {
        self.ids_in(self.len().saturating_sub(1)..self.len()).pop()
    }

    /// The runs of sampled tokens, in order.
    pub fn chunks(&self) -> impl Iterator<Item = &Chunk> {
        self.blocks().flat_map(|block| &block.chunks)
    }

    /// How many tokens were sampled.
    pub fn sampled_count(&self) -> usize {
        self.chunks().map(|chunk| (chunk.end - chunk.start) as usize).sum()
    }

    /// 1 where the policy produced the token.
    pub fn sampled_mask(&self) -> Vec<u8> {
        let mut mask = vec![0; self.len()];
        for chunk in self.chunks() {
            mask[chunk.start as usize..chunk.end as usize].fill(1);
        }
        mask
    }

    /// 1 where training uses the token: what was chosen, else the sampled tokens that are not inherited.
    pub fn loss_mask(&self) -> Vec<u8> {
        self.loss_mask.clone().unwrap_or_else(|| {
            let mut mask = self.sampled_mask();
            mask[..self.inherited as usize].fill(0);
            mask
        })
    }

    /// The weights, if they were chosen.
    pub fn loss_weight(&self) -> Option<&[f32]> {
        self.loss_weight.as_deref()
    }

    /// Chooses the loss mask, which must have the length of the columns; `None` goes back to the default.
    pub fn set_loss_mask(&mut self, mask: Option<Vec<u8>>) {
        self.loss_mask = mask;
    }

    /// Chooses the weights, which must have the length of the columns; `None` goes back to the default.
    pub fn set_loss_weight(&mut self, weight: Option<Vec<f32>>) {
        self.loss_weight = weight;
    }

    /// The chosen loss mask, `None` if it is the default.
    pub fn chosen_loss_mask(&self) -> Option<&[u8]> {
        self.loss_mask.as_deref()
    }

    /// How many leading tokens another fragment of the rollout trains.
    pub fn inherited(&self) -> usize {
        self.inherited as usize
    }

    /// The logprobs of the sampled tokens, without filler.
    pub fn sampled_logprobs(&self) -> Vec<f32> {
        self.blocks().flat_map(|block| &block.logprobs).copied().collect()
    }

    /// Whether logprobs of a reference model were recorded.
    pub fn has_reference(&self) -> bool {
        self.blocks().any(|block| !block.reference.is_empty())
    }

    /// One value a token: the logprob of a sampled one, 0.0 filler elsewhere.
    pub fn logprobs(&self) -> Vec<f32> {
        self.spread(|block| &block.logprobs)
    }

    /// The same of a reference model.
    pub fn reference_logprobs(&self) -> Vec<f32> {
        self.spread(|block| &block.reference)
    }

    fn spread(&self, sampled: impl Fn(&Block) -> &[f32]) -> Vec<f32> {
        let mut values = vec![0.0; self.len()];
        for block in self.blocks() {
            let mut next = 0;
            for chunk in &block.chunks {
                let count = (chunk.end - chunk.start) as usize;
                if let Some(recorded) = sampled(block).get(next..next + count) {
                    values[chunk.start as usize..chunk.end as usize].copy_from_slice(recorded);
                }
                next += count;
            }
        }
        values
    }

    /// The message of each token, -1 for frame.
    pub fn message_index(&self) -> Vec<i32> {
        let mut index = vec![-1; self.len()];
        for block in self.blocks() {
            let ends = block.messages.iter().skip(1).map(|run| run.start).chain([block.end()]);
            for (run, end) in block.messages.iter().zip(ends) {
                index[run.start as usize..end as usize].fill(run.message);
            }
        }
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(name: &str) -> Origin {
        Origin { trajectory: name.into(), epoch: 0 }
    }

    fn sampled<'a>(token_ids: &'a [TokenId], logprobs: &'a [f32]) -> Sampled<'a> {
        Sampled { token_ids, logprobs, ..Sampled::default() }
    }

    fn two_turns() -> Columns {
        let mut columns = Columns::default();
        columns.observe(&[1, 2, 3], [(0, -1), (1, 0)]);
        columns.sample(&sampled(&[10, 11], &[-0.1, -0.2]), 1, origin("a"), Some(7));
        columns.observe(&[4], [(0, 2)]);
        columns.sample(&sampled(&[12], &[-0.3]), 3, origin("a"), None);
        columns
    }

    #[test]
    fn columns_have_one_length() {
        let columns = two_turns();
        assert_eq!(columns.token_ids(), [1, 2, 3, 10, 11, 4, 12]);
        assert_eq!(columns.sampled_mask(), [0, 0, 0, 1, 1, 0, 1]);
        assert_eq!(columns.logprobs(), [0.0, 0.0, 0.0, -0.1, -0.2, 0.0, -0.3]);
        assert_eq!(columns.message_index(), [-1, 0, 0, 1, 1, 2, 3]);
        assert_eq!(columns.loss_mask(), columns.sampled_mask());
    }

    #[test]
    fn a_fork_shares_its_past_and_grows_alone() {
        let mut columns = two_turns();
        let mut fork = columns.fork();
        assert_eq!(fork.own_bytes(), 0);
        fork.sample(&sampled(&[99], &[-0.9]), 3, origin("b"), None);
        columns.observe(&[5], [(0, 4)]);
        assert_eq!(fork.token_ids(), [1, 2, 3, 10, 11, 4, 12, 99]);
        assert_eq!(fork.logprobs()[6..], [-0.3, -0.9]);
        assert_eq!(columns.token_ids(), [1, 2, 3, 10, 11, 4, 12, 5]);
        assert_eq!(columns.message_index(), [-1, 0, 0, 1, 1, 2, 3, 4]);
    }

    #[test]
    fn truncation_cuts_all_columns_inside_shared_blocks_too() {
        let mut columns = two_turns();
        let whole = columns.fork();
        columns.truncate(4);
        assert_eq!(columns.token_ids(), [1, 2, 3, 10]);
        assert_eq!(columns.logprobs(), [0.0, 0.0, 0.0, -0.1]);
        assert_eq!(columns.message_index(), [-1, 0, 0, 1]);
        assert_eq!(whole.len(), 7);
    }

    #[test]
    fn inherited_tokens_stay_sampled_and_carry_no_loss() {
        let columns = two_turns().inherit(5);
        assert_eq!(columns.sampled_mask(), [0, 0, 0, 1, 1]);
        assert_eq!(columns.loss_mask(), [0; 5]);
    }

    #[test]
    fn chosen_masks_grow_with_the_tokens() {
        let mut columns = two_turns();
        columns.set_loss_mask(Some(vec![0, 0, 0, 0, 1, 0, 1]));
        columns.sample(&sampled(&[13], &[-0.4]), 3, origin("a"), None);
        columns.observe(&[6], [(0, 4)]);
        assert_eq!(columns.loss_mask(), [0, 0, 0, 0, 1, 0, 1, 1, 0]);
    }

    #[test]
    fn a_long_trajectory_stays_within_twelve_bytes_a_token() {
        let mut columns = Columns::default();
        for turn in 0..16 {
            columns.observe(&[1; 64], [(0, 2 * turn)]);
            columns.sample(&sampled(&[2; 512], &[-0.5; 512]), 2 * turn + 1, origin("a"), Some(i64::from(turn)));
        }
        columns.shrink();
        assert!(columns.bytes() <= 12 * columns.len(), "{} bytes for {} tokens", columns.bytes(), columns.len());
    }
}
