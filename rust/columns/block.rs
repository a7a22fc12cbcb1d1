//! A contiguous part of the columns, and the runs in it.

use std::mem::size_of;
use std::sync::Arc;

use crate::TokenId;
use crate::top_logprobs::TopLogprobs;

/// Tokens that one policy sampled in one go: the unit of identity for shared tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// First token.
    pub start: u32,
    /// One past the last.
    pub end: u32,
    /// The act that produced it. Two chunks with one origin hold the same tokens at the same places.
    pub origin: Origin,
    /// The policy version, as the policy counts.
    pub version: Option<i64>,
}

/// Names the act that produced a token: the trajectory in which it happened, and how often that had been cut before.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The id of the trajectory that acted.
    pub trajectory: Arc<str>,
    /// Counts the truncations of that trajectory, so that a place that is sampled again has another origin.
    pub epoch: u32,
}

/// Tokens from `start` on belong to `message`, up to the next run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageRun {
    /// First token.
    pub start: u32,
    /// The message, -1 for frame.
    pub message: i32,
}

/// A contiguous part of the columns; positions inside are those of the whole.
#[derive(Debug, Clone, Default)]
pub(super) struct Block {
    pub(super) start: u32,
    pub(super) token_ids: Vec<TokenId>,
    pub(super) logprobs: Vec<f32>,
    pub(super) reference: Vec<f32>,
    pub(super) top: TopLogprobs,
    pub(super) chunks: Vec<Chunk>,
    pub(super) messages: Vec<MessageRun>,
}

impl Block {
    pub(super) fn end(&self) -> u32 {
        self.start + self.token_ids.len() as u32
    }

    pub(super) fn mark_message(&mut self, start: u32, message: i32) {
        if self.messages.last().is_none_or(|run| run.message != message) {
            self.messages.push(MessageRun { start, message });
        }
    }

    pub(super) fn mark_sampled(&mut self, chunk: Chunk) {
        match self.chunks.last_mut() {
            Some(last) if last.end == chunk.start && last.origin == chunk.origin && last.version == chunk.version => {
                last.end = chunk.end;
            }
            _ => self.chunks.push(chunk),
        }
    }

    pub(super) fn truncate(&mut self, end: u32) {
        self.token_ids.truncate((end - self.start) as usize);
        self.chunks.retain(|chunk| chunk.start < end);
        if let Some(last) = self.chunks.last_mut() {
            last.end = last.end.min(end);
        }
        let sampled: u32 = self.chunks.iter().map(|chunk| chunk.end - chunk.start).sum();
        self.logprobs.truncate(sampled as usize);
        self.reference.truncate(sampled as usize);
        self.top.truncate(sampled as usize);
        self.messages.retain(|run| run.start < end);
    }

    pub(super) fn shrink(&mut self) {
        self.token_ids.shrink_to_fit();
        self.logprobs.shrink_to_fit();
        self.reference.shrink_to_fit();
        self.top.shrink();
        self.chunks.shrink_to_fit();
        self.messages.shrink_to_fit();
    }

    pub(super) fn bytes(&self) -> usize {
        self.token_ids.capacity() * size_of::<TokenId>()
            + (self.logprobs.capacity() + self.reference.capacity()) * size_of::<f32>()
            + self.top.bytes()
            + self.chunks.capacity() * size_of::<Chunk>()
            + self.messages.capacity() * size_of::<MessageRun>()
    }
}
