//! Rows to record batches, and record batches to Arrow IPC.
//!
//! *Invariant*: `read(write(rows)) == rows`; per-token columns without nulls share one offsets buffer.

use std::io::{BufWriter, Write};
use std::sync::Arc;

use arrow_array::types::{ArrowPrimitiveType, Float32Type, Int32Type, Int64Type, UInt8Type};
use arrow_array::{ArrayRef, ListArray, PrimitiveArray, RecordBatch, StringArray, StructArray};
use arrow_buffer::{Buffer, MutableBuffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_ipc::writer::{FileWriter, StreamEncoder};
use arrow_schema::{ArrowError, DataType, SchemaRef};

use super::optional::Needed;
use super::{Batch, schema};
use crate::row::Row;
use crate::top_logprobs::TopLogprobs;
use crate::{Error, Result};

/// The tokens that one record batch holds at most, unless a single row has more: 64 MiB of ids.
const TOKENS_PER_BATCH: usize = 1 << 24;
/// The bytes of text that one record batch holds at most, unless a single row has more.
const BYTES_PER_BATCH: usize = 1 << 28;

/// Bounded record batches of `rows`, in order.
pub(super) fn record_batches(rows: &[Row], optional: Needed) -> Result<Vec<RecordBatch>> {
    let mut batches = Vec::new();
    let mut rest = rows;
    while !rest.is_empty() {
        let (head, tail) = rest.split_at(rows_that_fit(rest));
        batches.push(record_batch(head, optional)?);
        rest = tail;
    }
    Ok(batches)
}

/// How many rows fit into one record batch; at least one.
fn rows_that_fit(rows: &[Row]) -> usize {
    let (mut tokens, mut bytes) = (0, 0);
    let fitting = rows.iter().take_while(|row| {
        tokens += row.token_ids.len();
        bytes += text_bytes(row);
        tokens <= TOKENS_PER_BATCH && bytes <= BYTES_PER_BATCH
    });
    fitting.count().max(1)
}

/// An upper bound on the bytes of any one text column.
fn text_bytes(row: &Row) -> usize {
    let texts = [&row.metrics, &row.messages, &row.tools, &row.provenance];
    texts.into_iter().map(String::len).sum::<usize>() + row.group_id.len() + row.trajectory_id.len()
}

fn record_batch(rows: &[Row], optional: Needed) -> Result<RecordBatch> {
    rows.iter().enumerate().try_for_each(|(index, row)| check_lengths(index, row))?;
    let tokens = Tokens { rows, offsets: offsets(rows.iter().map(|row| row.token_ids.len()))? };
    let mut columns: Vec<ArrayRef> = vec![
        text(rows, |row| &row.group_id),
        text(rows, |row| &row.rollout_id),
        text(rows, |row| &row.trajectory_id),
        text(rows, |row| &row.env),
        Arc::new(rows.iter().map(|row| row.agent.as_deref()).collect::<StringArray>()),
        Arc::new(rows.iter().map(|row| row.fork.as_ref().map(|fork| &fork.parent_id)).collect::<StringArray>()),
        Arc::new(rows.iter().map(|row| row.fork.as_ref().map(|fork| fork.at)).collect::<PrimitiveArray<Int32Type>>()),
        Arc::new(rows.iter().map(|row| row.fork.as_ref().map(|fork| &fork.kind)).collect::<StringArray>()),
        tokens.column::<Int32Type>(|row| &row.token_ids)?,
        tokens.column::<UInt8Type>(|row| &row.sampled_mask)?,
        tokens.column::<UInt8Type>(|row| &row.loss_mask)?,
        tokens.nullable(|row| row.loss_weight.as_deref())?,
        tokens.nullable(|row| row.logprobs.as_deref())?,
        tokens.nullable(|row| row.advantages.as_deref())?,
        tokens.column::<Int32Type>(|row| &row.message_index)?,
        turns(rows)?,
        policy_versions(rows)?,
        Arc::new(rows.iter().map(|row| row.reward).collect::<PrimitiveArray<Float32Type>>()),
        text(rows, |row| &row.metrics),
        text(rows, |row| &row.messages),
        text(rows, |row| &row.tools),
        text(rows, |row| &row.provenance),
    ];
    columns.extend(optional.columns(rows)?);
    RecordBatch::try_new(optional.schema(), columns).map_err(|error| internal(&error))
}

fn check_lengths(index: usize, row: &Row) -> Result<()> {
    if text_bytes(row) > i32::MAX as usize {
        return Err(Error::schema(format!("row {index} ({}) has more than 2 GiB of text", row.trajectory_id)));
    }
    let expected = row.token_ids.len();
    let columns = [
        ("sampled_mask", Some(row.sampled_mask.len())),
        ("loss_mask", Some(row.loss_mask.len())),
        ("loss_weight", row.loss_weight.as_ref().map(Vec::len)),
        ("logprobs", row.logprobs.as_ref().map(Vec::len)),
        ("advantages", row.advantages.as_ref().map(Vec::len)),
        ("message_index", Some(row.message_index.len())),
        ("ref_logprobs", row.ref_logprobs.as_ref().map(Vec::len)),
        ("top_logprobs", row.top_logprobs.as_ref().map(TopLogprobs::len)),
    ];
    match columns.into_iter().find(|(_, length)| length.is_some_and(|length| length != expected)) {
        None => Ok(()),
        Some((name, length)) => Err(Error::schema(format!(
            "row {index} ({}): `{name}` has {} values, `token_ids` has {expected}: give one value per token",
            row.trajectory_id,
            length.unwrap_or_default(),
        ))),
    }
}

/// Builds the per-token columns over one offsets buffer.
struct Tokens<'a> {
    rows: &'a [Row],
    offsets: OffsetBuffer<i32>,
}

impl Tokens<'_> {
    fn column<T: ArrowPrimitiveType>(&self, values: impl Fn(&Row) -> &[T::Native]) -> Result<ArrayRef> {
        let lists = self.rows.iter().map(values);
        list_column(aligned::<T>(lists, self.total()), self.offsets.clone(), None)
    }

    fn nullable(&self, values: impl Fn(&Row) -> Option<&[f32]>) -> Result<ArrayRef> {
        let valid: NullBuffer = self.rows.iter().map(|row| values(row).is_some()).collect();
        if valid.null_count() == 0 {
            return self.column::<Float32Type>(|row| values(row).unwrap_or_default());
        }
        let lengths = self.rows.iter().map(|row| values(row).map_or(0, <[f32]>::len));
        let lists = self.rows.iter().filter_map(&values);
        list_column(aligned::<Float32Type>(lists, self.total()), offsets(lengths)?, Some(valid))
    }

    fn total(&self) -> usize {
        self.offsets.last().copied().unwrap_or_default() as usize
    }
}

fn turns(rows: &[Row]) -> Result<ArrayRef> {
    let turns: Vec<_> = rows.iter().flat_map(|row| &row.turns).collect();
    let all = || turns.iter();
    let columns: Vec<ArrayRef> = vec![
        primitive::<Int32Type>(all().map(|turn| turn.start).collect()),
        primitive::<Int32Type>(all().map(|turn| turn.end).collect()),
        primitive::<Int32Type>(all().map(|turn| turn.message).collect()),
        Arc::new(StringArray::from_iter_values(all().map(|turn| turn.finish_reason.as_str()))),
        Arc::new(all().map(|turn| turn.reward).collect::<PrimitiveArray<Float32Type>>()),
    ];
    let items = StructArray::try_new_with_length(schema::turn_fields(), columns, None, all().len());
    let items = items.map_err(|error| internal(&error))?;
    list_column(Arc::new(items), offsets(rows.iter().map(|row| row.turns.len()))?, None)
}

fn policy_versions(rows: &[Row]) -> Result<ArrayRef> {
    let of_row = |row: &Row| row.policy_versions.as_ref().map_or(0, Vec::len);
    let runs: Vec<_> = rows.iter().filter_map(|row| row.policy_versions.as_deref()).flatten().collect();
    let all = || runs.iter();
    let columns: Vec<ArrayRef> = vec![
        primitive::<Int32Type>(all().map(|run| run.start).collect()),
        primitive::<Int32Type>(all().map(|run| run.end).collect()),
        primitive::<Int64Type>(all().map(|run| run.version).collect()),
    ];
    let items = StructArray::try_new_with_length(schema::version_fields(), columns, None, all().len());
    let items = items.map_err(|error| internal(&error))?;
    let valid: NullBuffer = rows.iter().map(|row| row.policy_versions.is_some()).collect();
    let nulls = (valid.null_count() > 0).then_some(valid);
    list_column(Arc::new(items), offsets(rows.iter().map(of_row))?, nulls)
}

fn text(rows: &[Row], value: impl Fn(&Row) -> &str) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(rows.iter().map(value)))
}

fn primitive<T: ArrowPrimitiveType>(values: Vec<T::Native>) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::from(values), None))
}

/// The values of all lists in one buffer that begins at a multiple of 64 bytes.
fn aligned<'a, T: ArrowPrimitiveType>(lists: impl Iterator<Item = &'a [T::Native]>, capacity: usize) -> ArrayRef {
    let mut buffer = MutableBuffer::with_capacity(capacity * size_of::<T::Native>());
    lists.for_each(|list| buffer.extend_from_slice(list));
    let length = buffer.len() / size_of::<T::Native>();
    Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::new(buffer.into(), 0, length), None))
}

/// A list column of the canonical item field.
pub(crate) fn list_column(values: ArrayRef, offsets: OffsetBuffer<i32>, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    let field = schema::item_field(values.data_type().clone());
    debug_assert!(!matches!(field.data_type(), DataType::Null));
    Ok(Arc::new(ListArray::try_new(field, offsets, values, nulls).map_err(|error| internal(&error))?))
}

/// The offsets of lists of the given lengths.
pub(crate) fn offsets(lengths: impl Iterator<Item = usize>) -> Result<OffsetBuffer<i32>> {
    let mut end = 0_i32;
    let ends = lengths.map(|length| {
        let next = i32::try_from(length).ok().and_then(|length| end.checked_add(length));
        end = next.ok_or_else(|| Error::schema("a record batch holds at most 2147483647 values: pass fewer rows"))?;
        Ok(end)
    });
    let offsets = std::iter::once(Ok(0)).chain(ends).collect::<Result<Vec<i32>>>()?;
    Ok(OffsetBuffer::new(ScalarBuffer::from(offsets)))
}

/// A fault of this library: arrays that it built itself do not fit together.
pub(crate) fn internal(error: &ArrowError) -> Error {
    Error::schema(format!("arrays built by tokentape do not fit together, please report it: {error}"))
}

impl Batch {
    /// Writes an Arrow IPC file; sliced arrays are written compact, buffers aligned to 64 bytes.
    pub fn write_file(&self, writer: impl Write) -> Result<(), ArrowError> {
        let mut file = Writer::new(writer, self.schema())?;
        file.write(self)?;
        file.finish()
    }

    /// Writes an Arrow IPC stream.
    pub fn write_stream(&self, mut writer: impl Write) -> Result<(), ArrowError> {
        Ok(self.stream()?.iter().try_for_each(|part| writer.write_all(part))?)
    }

    /// An Arrow IPC stream in parts: the values in it are those of the batch, not copies.
    pub fn stream(&self) -> Result<Vec<Buffer>, ArrowError> {
        let mut encoder = StreamEncoder::try_new(self.schema())?;
        let mut parts = Vec::new();
        for batch in self.record_batches() {
            parts.extend(encoder.encode(batch)?);
        }
        parts.extend(encoder.finish()?);
        Ok(parts)
    }
}

/// An Arrow IPC file that grows batch by batch; none of them is kept in memory.
pub struct Writer<W: Write>(FileWriter<BufWriter<W>>);

impl<W: Write> Writer<W> {
    /// A file for tables of `schema`.
    pub fn new(writer: W, schema: &SchemaRef) -> Result<Self, ArrowError> {
        Ok(Self(FileWriter::try_new_buffered(writer, schema)?))
    }

    /// Adds the rows of a table, which has the schema of the file.
    pub fn write(&mut self, batch: &Batch) -> Result<(), ArrowError> {
        if batch.schema() != self.0.schema() {
            let own: Vec<_> = self.0.schema().fields().iter().map(|field| field.name().as_str()).collect();
            let own = own.join(", ");
            return Err(ArrowError::SchemaError(format!("the file has the columns {own}, the batch has others")));
        }
        batch.record_batches().iter().try_for_each(|batch| self.0.write(batch))
    }

    /// Writes the end of the file, without which nothing of it can be read.
    pub fn finish(mut self) -> Result<(), ArrowError> {
        self.0.finish()?;
        self.0.flush()
    }
}
