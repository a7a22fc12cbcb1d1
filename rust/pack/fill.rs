//! Bins to packed columns: parallel copies straight from the Arrow buffers of the rows, each output byte written once.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::types::{ArrowPrimitiveType, Float32Type, Int32Type, Int64Type, UInt8Type};
use arrow_array::{ArrayRef, Int32Array, PrimitiveArray, RecordBatch};
use arrow_buffer::{ArrowNativeType, Buffer, MutableBuffer, OffsetBuffer, ScalarBuffer};
use rayon::prelude::*;

use super::out::Out;
use super::segments::segments;
use super::{Kept, Packing};
use crate::arrow::schema::PackedColumns;
use crate::arrow::{Batch, View, internal, list_column, offsets};
use crate::{Error, Result, threads};

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
        ref_logprobs: any(|view, row| view.ref_logprobs.is_some_and(|lists| !lists.is_null(row))),
        policy_version: any(|view, row| view.policy_versions.range(row).is_some()),
        tree: false,
    };
    let lacks = |present: bool, lacking: fn(&View<'_>, usize, usize) -> bool| {
        kept.iter().find(|kept| present && source.row(**kept, lacking)).map(|kept| kept.row)
    };
    let logprobs = lacks(columns.logprobs, |view, row, length| {
        view.logprobs.is_null(row) && view.sampled_mask.get(row).is_some_and(|mask| mask[..length].contains(&1))
    });
    refuse_mixture("logprobs", logprobs)?;
    let reference = lacks(columns.ref_logprobs, |view, row, length| {
        view.ref_logprobs.is_none_or(|lists| lists.is_null(row))
            && view.sampled_mask.get(row).is_some_and(|mask| mask[..length].contains(&1))
    });
    refuse_mixture("ref_logprobs", reference)?;
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
pub(super) struct Source<'a> {
    views: Vec<(usize, View<'a>)>,
}

impl<'a> Source<'a> {
    fn new(batch: &'a Batch) -> Result<Self> {
        Ok(Self { views: batch.views()? })
    }

    pub(super) fn row<T>(&self, kept: Kept, read: impl FnOnce(&View<'a>, usize, usize) -> T) -> T {
        let row = kept.row as usize;
        let part = self.views.partition_point(|(start, _)| *start <= row) - 1;
        let (start, view) = &self.views[part];
        read(view, row - start, kept.length as usize)
    }
}

/// The columns that most packings fill.
const COLUMNS: usize = 7;

/// Fills bins of a packing, one row of the packed table each.
pub(super) fn fill(packing: &Packing, bins: Range<usize>) -> Result<RecordBatch> {
    let source = Source { views: packing.views()? };
    let sizes: Vec<usize> = bins.clone().map(|bin| (packing.tokens(bin) + packing.padding(bin)) as usize).collect();
    let mut page = Page::new(packing, bins.len(), sizes.iter().sum());
    let parts = page.bins(&sizes);
    if parts.len() == 1 || !threads::repaid(COLUMNS * sizes.iter().sum::<usize>()) {
        // To hand the work to a thread and wait for it would take longer than the work.
        parts.into_iter().zip(bins.clone()).for_each(|(mut out, bin)| out.fill(packing, &source, bin));
    } else {
        let parts = parts.into_par_iter().zip(bins.clone());
        threads::shared(|| parts.for_each(|(mut out, bin)| out.fill(packing, &source, bin)));
    }
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
    ref_logprobs: Option<MutableBuffer>,
    parent: Option<MutableBuffer>,
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
            ref_logprobs: columns.ref_logprobs.then(|| take(4)),
            parent: columns.tree.then(|| take(4)),
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
        let mut ref_logprobs = self.ref_logprobs.as_mut().map(Cut::new);
        let mut parent = self.parent.as_mut().map(Cut::new);
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
            ref_logprobs: ref_logprobs.as_mut().map(|cut| cut.next(*size)),
            parent: parent.as_mut().map(|cut| cut.next(*size)),
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
        let behind = self.policy_version.map(int64).into_iter().chain(self.ref_logprobs.map(float32));
        always.into_iter().chain(floats).chain(behind).chain(self.parent.map(int32)).collect()
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
