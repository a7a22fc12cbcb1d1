//! Bins to packed columns: parallel copies straight from the Arrow buffers of the rows, each output byte written once.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::types::{ArrowPrimitiveType, Float32Type, Int32Type, Int64Type, UInt8Type};
use arrow_array::{ArrayRef, Int32Array, PrimitiveArray, RecordBatch};
use arrow_buffer::{ArrowNativeType, Buffer, MutableBuffer, OffsetBuffer, ScalarBuffer};
use rayon::prelude::*;

use super::{Kept, Packing};
use crate::arrow::schema::PackedColumns;
use crate::arrow::{Batch, View, internal, list_column, offsets};
use crate::{Error, Result};

/// Of a token whose policy version was never recorded.
const NO_VERSION: i64 = -1;

/// The optional columns that the packed rows need.
pub(super) fn columns(batch: &Batch, kept: &[Kept]) -> Result<PackedColumns> {
    let source = Source::new(batch)?;
    let any = |present: fn(&View<'_>, usize) -> bool| {
        kept.iter().any(|kept| source.row(*kept, |view, row, _| present(view, row)))
    };
    let columns = PackedColumns {
        loss_weight: any(|view, row| !view.loss_weight.is_null(row)),
        logprobs: any(|view, row| !view.logprobs.is_null(row)),
        advantages: any(|view, row| !view.advantages.is_null(row)),
        policy_version: any(|view, row| view.policy_versions.range(row).is_some()),
    };
    let lacks = |present: bool, lacking: fn(&View<'_>, usize, usize) -> bool| {
        kept.iter().find(|kept| present && source.row(**kept, lacking)).map(|kept| kept.row)
    };
    let logprobs = lacks(columns.logprobs, |view, row, length| {
        view.logprobs.is_null(row) && view.sampled_mask.get(row).is_some_and(|mask| mask[..length].contains(&1))
    });
    refuse_mixture("logprobs", logprobs)?;
    refuse_mixture("advantages", lacks(columns.advantages, |view, row, _| view.advantages.is_null(row)))?;
    Ok(columns)
}

/// A filler in place of a value that was never assigned would train on a number that nobody chose.
fn refuse_mixture(name: &str, row: Option<u32>) -> Result<()> {
    let Some(row) = row else { return Ok(()) };
    Err(Error::schema(format!(
        "row {row} has no {name} while other rows have them: pack the two kinds apart (Batch.filter), or assign them"
    )))
}

/// The columns of the rows, found by row.
struct Source<'a> {
    views: Vec<(usize, View<'a>)>,
}

impl<'a> Source<'a> {
    fn new(batch: &'a Batch) -> Result<Self> {
        Ok(Self { views: batch.views()? })
    }

    fn row<T>(&self, kept: Kept, read: impl FnOnce(&View<'a>, usize, usize) -> T) -> T {
        let row = kept.row as usize;
        let part = self.views.partition_point(|(start, _)| *start <= row) - 1;
        let (start, view) = &self.views[part];
        read(view, row - start, kept.length as usize)
    }
}

/// Fills bins of a packing, one row of the packed table each.
pub(super) fn fill(packing: &Packing, bins: Range<usize>) -> Result<RecordBatch> {
    let source = Source { views: packing.views()? };
    let sizes: Vec<usize> = bins.clone().map(|bin| (packing.tokens(bin) + packing.padding(bin)) as usize).collect();
    let mut page = Page::new(packing, bins.len(), sizes.iter().sum());
    page.bins(&sizes).into_par_iter().zip(bins.clone()).for_each(|(mut out, bin)| out.fill(packing, &source, bin));
    let tokens = offsets(sizes.into_iter())?;
    let mut columns: Vec<ArrayRef> = vec![ranks(packing, &bins), micro_steps(packing, &bins)];
    columns.extend(page.finish(packing, &tokens)?);
    columns.extend(segments(packing, &bins)?);
    RecordBatch::try_new(packing.schema.clone(), columns).map_err(|error| internal(&error))
}

fn ranks(packing: &Packing, bins: &Range<usize>) -> ArrayRef {
    let ranks = packing.plan.ranks as usize;
    Arc::new(Int32Array::from_iter_values(bins.clone().map(|bin| (bin % ranks) as i32)))
}

fn micro_steps(packing: &Packing, bins: &Range<usize>) -> ArrayRef {
    let ranks = packing.plan.ranks as usize;
    Arc::new(Int32Array::from_iter_values(bins.clone().map(|bin| (bin / ranks) as i32)))
}

/// `cu_seqlens`, `seq_lens`, `row` and `offset`: a padding tail is one more segment, of row -1.
fn segments(packing: &Packing, bins: &Range<usize>) -> Result<[ArrayRef; 4]> {
    let (mut ends, mut lengths, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    let mut counts = Vec::with_capacity(bins.len());
    for bin in bins.clone() {
        let before = rows.len();
        let padding = Some(packing.padding(bin)).filter(|padding| *padding > 0).map(|length| (-1, length));
        let mut end = 0;
        ends.push(0);
        for (row, length) in packing.segments(bin).map(|kept| (kept.row as i32, kept.length)).chain(padding) {
            end += length as i32;
            ends.push(end);
            lengths.push(length as i32);
            rows.push(row);
        }
        counts.push(rows.len() - before);
    }
    let by_segment = offsets(counts.iter().copied())?;
    let by_end = offsets(counts.iter().map(|count| count + 1))?;
    let list = |values: Vec<i32>, offsets: &OffsetBuffer<i32>| {
        list_column(Arc::new(Int32Array::from(values)), offsets.clone(), None)
    };
    let zeros = vec![0; rows.len()];
    Ok([list(ends, &by_end)?, list(lengths, &by_segment)?, list(rows, &by_segment)?, list(zeros, &by_segment)?])
}

/// The output buffers of the per-token columns of some bins.
struct Page {
    tokens: usize,
    input_ids: MutableBuffer,
    position_ids: MutableBuffer,
    segment_ids: MutableBuffer,
    sampled_mask: MutableBuffer,
    loss_mask: MutableBuffer,
    loss_weight: Option<MutableBuffer>,
    logprobs: Option<MutableBuffer>,
    advantages: Option<MutableBuffer>,
    policy_version: Option<MutableBuffer>,
}

impl Page {
    fn new(packing: &Packing, bins: usize, tokens: usize) -> Self {
        // Room for full bins, so that a buffer fits every page of as many; pages that are not touched cost no memory.
        let room = tokens.max(bins * packing.options.token_budget as usize);
        let take = |width: usize| packing.pool.take(room * width);
        let columns = packing.columns;
        Self {
            tokens,
            input_ids: take(4),
            position_ids: take(4),
            segment_ids: take(4),
            sampled_mask: take(1),
            loss_mask: take(1),
            loss_weight: columns.loss_weight.then(|| take(4)),
            logprobs: columns.logprobs.then(|| take(4)),
            advantages: columns.advantages.then(|| take(4)),
            policy_version: columns.policy_version.then(|| take(8)),
        }
    }

    /// The part of each column that belongs to each bin.
    fn bins(&mut self, sizes: &[usize]) -> Vec<Out<'_>> {
        let mut input_ids = Cut::new(&mut self.input_ids);
        let mut position_ids = Cut::new(&mut self.position_ids);
        let mut segment_ids = Cut::new(&mut self.segment_ids);
        let mut sampled_mask = Cut::new(&mut self.sampled_mask);
        let mut loss_mask = Cut::new(&mut self.loss_mask);
        let mut loss_weight = self.loss_weight.as_mut().map(Cut::new);
        let mut logprobs = self.logprobs.as_mut().map(Cut::new);
        let mut advantages = self.advantages.as_mut().map(Cut::new);
        let mut policy_version = self.policy_version.as_mut().map(Cut::new);
        let bin = |size: &usize| Out {
            input_ids: input_ids.next(*size),
            position_ids: position_ids.next(*size),
            segment_ids: segment_ids.next(*size),
            sampled_mask: sampled_mask.next(*size),
            loss_mask: loss_mask.next(*size),
            loss_weight: loss_weight.as_mut().map(|cut| cut.next(*size)),
            logprobs: logprobs.as_mut().map(|cut| cut.next(*size)),
            advantages: advantages.as_mut().map(|cut| cut.next(*size)),
            policy_version: policy_version.as_mut().map(|cut| cut.next(*size)),
        };
        sizes.iter().map(bin).collect()
    }

    /// The columns as Arrow lists over one offsets buffer, in the order of the schema.
    fn finish(self, packing: &Packing, offsets: &OffsetBuffer<i32>) -> Result<Vec<ArrayRef>> {
        let sealed = |buffer: MutableBuffer| {
            let buffer = Buffer::from(buffer);
            packing.pool.keep(&buffer);
            buffer
        };
        let int32 = |buffer| list::<Int32Type>(sealed(buffer), self.tokens, offsets);
        let uint8 = |buffer| list::<UInt8Type>(sealed(buffer), self.tokens, offsets);
        let float32 = |buffer| list::<Float32Type>(sealed(buffer), self.tokens, offsets);
        let int64 = |buffer| list::<Int64Type>(sealed(buffer), self.tokens, offsets);
        let always = [
            int32(self.input_ids),
            int32(self.position_ids),
            int32(self.segment_ids),
            uint8(self.sampled_mask),
            uint8(self.loss_mask),
        ];
        let floats = [self.loss_weight, self.logprobs, self.advantages].into_iter().flatten().map(float32);
        always.into_iter().chain(floats).chain(self.policy_version.map(int64)).collect()
    }
}

fn list<T: ArrowPrimitiveType>(buffer: Buffer, tokens: usize, offsets: &OffsetBuffer<i32>) -> Result<ArrayRef> {
    let values = PrimitiveArray::<T>::new(ScalarBuffer::new(buffer, 0, tokens), None);
    list_column(Arc::new(values), offsets.clone(), None)
}

/// A column that is cut into the parts of bins, from the left.
struct Cut<'a, T>(&'a mut [T]);

impl<'a, T: ArrowNativeType> Cut<'a, T> {
    fn new(buffer: &'a mut MutableBuffer) -> Self {
        Self(buffer.typed_data_mut())
    }

    fn next(&mut self, size: usize) -> &'a mut [T] {
        let (head, tail) = std::mem::take(&mut self.0).split_at_mut(size);
        self.0 = tail;
        head
    }
}

/// The per-token columns of one bin.
struct Out<'a> {
    input_ids: &'a mut [i32],
    position_ids: &'a mut [i32],
    segment_ids: &'a mut [i32],
    sampled_mask: &'a mut [u8],
    loss_mask: &'a mut [u8],
    loss_weight: Option<&'a mut [f32]>,
    logprobs: Option<&'a mut [f32]>,
    advantages: Option<&'a mut [f32]>,
    policy_version: Option<&'a mut [i64]>,
}

impl Out<'_> {
    fn fill(&mut self, packing: &Packing, source: &Source<'_>, bin: usize) {
        let mut end = 0;
        for (segment, kept) in packing.segments(bin).enumerate() {
            let place = end..end + kept.length as usize;
            end = place.end;
            source.row(kept, |view, row, length| self.segment(segment as i32, place, view, row, length));
        }
        self.pad(end, packing.options.pad_token_id);
    }

    fn segment(&mut self, segment: i32, place: Range<usize>, view: &View<'_>, row: usize, length: usize) {
        copy(&mut self.input_ids[place.clone()], view.token_ids.get(row), length);
        copy(&mut self.sampled_mask[place.clone()], view.sampled_mask.get(row), length);
        copy(&mut self.loss_mask[place.clone()], view.loss_mask.get(row), length);
        self.position_ids[place.clone()].iter_mut().zip(0..).for_each(|(out, position)| *out = position);
        self.segment_ids[place.clone()].fill(segment);
        let first = place.start;
        self.loss_mask[first] = 0;
        if let Some(out) = &mut self.loss_weight {
            weights(&mut out[place.clone()], view, row, length);
            out[first] = 0.0;
        }
        if let Some(out) = &mut self.logprobs {
            copy(&mut out[place.clone()], view.logprobs.get(row), length);
        }
        if let Some(out) = &mut self.advantages {
            copy(&mut out[place.clone()], view.advantages.get(row), length);
        }
        if let Some(out) = &mut self.policy_version {
            versions(&mut out[place], view, row, length);
        }
    }

    fn pad(&mut self, start: usize, pad_token_id: i32) {
        self.input_ids[start..].fill(pad_token_id);
        self.position_ids[start..].iter_mut().zip(0..).for_each(|(out, position)| *out = position);
        self.segment_ids[start..].fill(-1);
        self.sampled_mask[start..].fill(0);
        self.loss_mask[start..].fill(0);
        for out in [&mut self.loss_weight, &mut self.logprobs, &mut self.advantages].into_iter().flatten() {
            out[start..].fill(0.0);
        }
        if let Some(out) = &mut self.policy_version {
            out[start..].fill(NO_VERSION);
        }
    }
}

/// Copies the first `length` values; zeros where the list is null.
fn copy<T: ArrowNativeType>(out: &mut [T], values: Option<&[T]>, length: usize) {
    match values {
        Some(values) => out.copy_from_slice(&values[..length]),
        None => out.fill(T::default()),
    }
}

/// Weights as given; where the list is null they equal the loss mask.
fn weights(out: &mut [f32], view: &View<'_>, row: usize, length: usize) {
    if let Some(values) = view.loss_weight.get(row) {
        out.copy_from_slice(&values[..length]);
        return;
    }
    let mask = view.loss_mask.get(row).unwrap_or_default();
    out.iter_mut().zip(mask).for_each(|(out, loss)| *out = f32::from(*loss));
}

fn versions(out: &mut [i64], view: &View<'_>, row: usize, length: usize) {
    out.fill(NO_VERSION);
    let runs = &view.policy_versions;
    let columns = runs.int32("start").and_then(|s| Ok((s, runs.int32("end")?, runs.int64("version")?)));
    let Ok((starts, ends, versions)) = columns else { return };
    for run in runs.range(row).unwrap_or_default() {
        let (start, end) = ((starts[run] as usize).min(length), (ends[run] as usize).min(length));
        if let Some(out) = out.get_mut(start..end) {
            out.fill(versions[run]);
        }
    }
}
