//! One bin, written into its part of the output buffers.

use std::ops::Range;

use arrow_buffer::ArrowNativeType;

use super::fill::Source;
use super::{Kept, Packing};
use crate::arrow::View;
use crate::tree::Node;

/// Of a token whose policy version was never recorded.
const NO_VERSION: i64 = -1;

/// The per-token columns of one bin.
pub(super) struct Out<'a> {
    pub(super) input_ids: &'a mut [i32],
    pub(super) position_ids: &'a mut [i32],
    pub(super) segment_ids: &'a mut [i32],
    pub(super) sampled_mask: &'a mut [u8],
    pub(super) loss_mask: &'a mut [u8],
    pub(super) loss_weight: Option<&'a mut [f32]>,
    pub(super) logprobs: Option<&'a mut [f32]>,
    pub(super) advantages: Option<&'a mut [f32]>,
    pub(super) policy_version: Option<&'a mut [i64]>,
    pub(super) ref_logprobs: Option<&'a mut [f32]>,
    pub(super) parent: Option<&'a mut [i32]>,
}

/// Where the tokens of the last row stand: from a place in the row on, so much further right.
type Path = Vec<(u32, usize)>;

impl Out<'_> {
    pub(super) fn fill(&mut self, packing: &Packing, source: &Source<'_>, bin: usize) {
        let mut end = 0;
        let mut path: Path = Vec::new();
        for kept in packing.segments(bin) {
            let place = end..end + (kept.length - kept.from) as usize;
            end = place.end;
            if kept.from > 0 {
                while path.last().is_some_and(|(taken, _)| *taken >= kept.from) {
                    path.pop();
                }
                source.row(kept, |view, row, _| self.share(&path, kept.from, view, row));
            } else {
                path.clear();
            }
            path.push((kept.from, place.start - kept.from as usize));
            source.row(kept, |view, row, _| self.row(place, kept, view, row));
        }
        self.nodes(&packing.forest(bin).nodes);
        self.pad(end, packing.options.pad_token_id);
    }

    /// The tokens that a row adds.
    fn row(&mut self, place: Range<usize>, kept: Kept, view: &View<'_>, row: usize) {
        let own = kept.from as usize..kept.length as usize;
        copy(&mut self.input_ids[place.clone()], view.token_ids.get(row), &own);
        copy(&mut self.sampled_mask[place.clone()], view.sampled_mask.get(row), &own);
        copy(&mut self.loss_mask[place.clone()], view.loss_mask.get(row), &own);
        self.position_ids[place.clone()].iter_mut().zip(kept.from as i32..).for_each(|(out, position)| *out = position);
        if let Some(out) = &mut self.loss_weight {
            weights(&mut out[place.clone()], view, row, &own);
        }
        if let Some(out) = &mut self.logprobs {
            copy(&mut out[place.clone()], view.logprobs.get(row), &own);
        }
        if let Some(out) = &mut self.advantages {
            copy(&mut out[place.clone()], view.advantages.get(row), &own);
        }
        if let Some(out) = &mut self.policy_version {
            versions(&mut out[place.clone()], view, row, &own);
        }
        if let Some(out) = &mut self.ref_logprobs {
            copy(&mut out[place.clone()], view.ref_logprobs.and_then(|lists| lists.get(row)), &own);
        }
        if kept.from == 0 {
            // Nothing predicts the first token of a row.
            self.loss_mask[place.start] = 0;
            self.loss_weight.iter_mut().for_each(|out| out[place.start] = 0.0);
        }
    }

    /// Segment ids and parents: a token goes on from the one before it, the first of a node from its parent's last.
    fn nodes(&mut self, nodes: &[Node]) {
        let mut ends: Vec<usize> = Vec::with_capacity(nodes.len());
        let mut start = 0;
        for (segment, node) in nodes.iter().enumerate() {
            let end = start + (node.end - node.start) as usize;
            self.segment_ids[start..end].fill(segment as i32);
            if let Some(out) = &mut self.parent {
                out[start..end].iter_mut().zip(start as i32 - 1..).for_each(|(out, parent)| *out = parent);
                let above = usize::try_from(node.parent).ok().and_then(|parent| ends.get(parent));
                out[start] = above.map_or(-1, |end| *end as i32 - 1);
            }
            ends.push(end);
            start = end;
        }
    }

    /// Adds the loss that a row has on its first `from` tokens, which stand on `path` already.
    fn share(&mut self, path: &Path, from: u32, view: &View<'_>, row: usize) {
        let loss = view.loss_mask.get(row).unwrap_or_default();
        let pieces = path.iter().zip(path.iter().skip(1).map(|(start, _)| *start).chain([from]));
        for ((start, shift), end) in pieces {
            for token in (*start).max(1) as usize..end as usize {
                if loss.get(token).is_some_and(|loss| *loss != 0) {
                    self.add(token + shift, view, row, token);
                }
            }
        }
    }

    /// Adds the loss of one token of a row to the token that stands for it.
    fn add(&mut self, place: usize, view: &View<'_>, row: usize, token: usize) {
        let own = token..token + 1;
        if self.loss_mask[place] == 0 {
            self.loss_mask[place] = 1;
            copy(&mut self.sampled_mask[place..=place], view.sampled_mask.get(row), &own);
            if let Some(out) = &mut self.loss_weight {
                weights(&mut out[place..=place], view, row, &own);
            }
            if let Some(out) = &mut self.logprobs {
                copy(&mut out[place..=place], view.logprobs.get(row), &own);
            }
            if let Some(out) = &mut self.advantages {
                copy(&mut out[place..=place], view.advantages.get(row), &own);
            }
            if let Some(out) = &mut self.policy_version {
                versions(&mut out[place..=place], view, row, &own);
            }
            if let Some(out) = &mut self.ref_logprobs {
                copy(&mut out[place..=place], view.ref_logprobs.and_then(|lists| lists.get(row)), &own);
            }
            return;
        }
        let Some(weight) = &mut self.loss_weight else { return };
        let mut given = [0.0];
        weights(&mut given, view, row, &own);
        let (held, sum) = (weight[place], weight[place] + given[0]);
        weight[place] = sum;
        let Some(advantages) = &mut self.advantages else { return };
        let advantage = view.advantages.get(row).and_then(|values| values.get(token)).copied().unwrap_or_default();
        let product = held * advantages[place] + given[0] * advantage;
        // Weights that cancel out have no mean: what counts is the product.
        weight[place] = if sum == 0.0 { 1.0 } else { sum };
        advantages[place] = product / weight[place];
    }

    fn pad(&mut self, start: usize, pad_token_id: i32) {
        self.input_ids[start..].fill(pad_token_id);
        self.position_ids[start..].iter_mut().zip(0..).for_each(|(out, position)| *out = position);
        self.segment_ids[start..].fill(-1);
        self.sampled_mask[start..].fill(0);
        self.loss_mask[start..].fill(0);
        let floats = [&mut self.loss_weight, &mut self.logprobs, &mut self.advantages, &mut self.ref_logprobs];
        for out in floats.into_iter().flatten() {
            out[start..].fill(0.0);
        }
        if let Some(out) = &mut self.policy_version {
            out[start..].fill(NO_VERSION);
        }
        if let Some(out) = &mut self.parent {
            out[start..].iter_mut().zip(start as i32 - 1..).for_each(|(out, parent)| *out = parent);
            out[start..].iter_mut().take(1).for_each(|first| *first = -1);
        }
    }
}

/// Copies values; zeros where the list is null.
fn copy<T: ArrowNativeType>(out: &mut [T], values: Option<&[T]>, own: &Range<usize>) {
    match values {
        Some(values) => out.copy_from_slice(&values[own.clone()]),
        None => out.fill(T::default()),
    }
}

/// Weights as given; where the list is null they equal the loss mask.
fn weights(out: &mut [f32], view: &View<'_>, row: usize, own: &Range<usize>) {
    if let Some(values) = view.loss_weight.get(row) {
        out.copy_from_slice(&values[own.clone()]);
        return;
    }
    let mask = view.loss_mask.get(row).unwrap_or_default();
    out.iter_mut().zip(&mask[own.clone()]).for_each(|(out, loss)| *out = f32::from(*loss));
}

fn versions(out: &mut [i64], view: &View<'_>, row: usize, own: &Range<usize>) {
    out.fill(NO_VERSION);
    let runs = &view.policy_versions;
    let columns = runs.int32("start").and_then(|s| Ok((s, runs.int32("end")?, runs.int64("version")?)));
    let Ok((starts, ends, versions)) = columns else { return };
    for run in runs.range(row).unwrap_or_default() {
        let inside = |place: i32| (place as usize).clamp(own.start, own.end) - own.start;
        if let Some(out) = out.get_mut(inside(starts[run])..inside(ends[run])) {
            out.fill(versions[run]);
        }
    }
}
