//! The alternatives at sampled tokens, as a column of a trajectory.

use super::Columns;
use crate::top_logprobs::TopLogprobs;

impl Columns {
    /// The alternatives at the sampled tokens, without filler; empty if none were recorded.
    pub fn sampled_top_logprobs(&self) -> TopLogprobs {
        let mut top = TopLogprobs::default();
        self.blocks().for_each(|block| top.extend(&block.top));
        top
    }

    /// The alternatives at each token, none where nothing was sampled.
    pub fn top_logprobs(&self) -> TopLogprobs {
        let (sampled, mask) = (self.sampled_top_logprobs(), self.sampled_mask());
        let (mut top, mut next) = (TopLogprobs::default(), 0);
        for is_sampled in mask {
            if is_sampled == 1 && next < sampled.len() {
                let (ids, logprobs) = sampled.get(next);
                top.push(ids.iter().copied().zip(logprobs.iter().copied()));
                next += 1;
            } else {
                top.push([]);
            }
        }
        top
    }

    /// Whether alternatives were recorded.
    pub fn has_top(&self) -> bool {
        self.blocks().any(|block| !block.top.is_empty())
    }
}
