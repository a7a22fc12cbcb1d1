//! Columns of trajectories that are there only when a row has them: logprobs of a reference model, and the likeliest
//! alternatives at sampled tokens.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float32Array, Int32Array, StructArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, Fields, SchemaRef};

use super::schema::{self, list};
use super::write::{internal, list_column, offsets};
use crate::Result;
use crate::row::Row;
use crate::top_logprobs::TopLogprobs;

/// `list<float32>` a row, aligned to `token_ids`: 0.0 filler where nothing was sampled, never read.
pub(super) const REFERENCE: &str = "ref_logprobs";
/// `list<struct<ids: list<int32>, logprobs: list<float32>>>` a row, aligned to `token_ids`: empty where nothing was sampled.
pub(super) const TOP: &str = "top_logprobs";

/// The optional columns, in order.
pub(super) fn fields() -> [Field; 2] {
    [list(REFERENCE, DataType::Float32, true), list(TOP, DataType::Struct(top_fields()), true)]
}

/// The canonical field of an optional column.
pub(super) fn field(name: &str) -> Option<Field> {
    fields().into_iter().find(|field| field.name() == name)
}

fn top_fields() -> Fields {
    Fields::from(vec![list("ids", DataType::Int32, false), list("logprobs", DataType::Float32, false)])
}

/// Which of the columns some rows need.
#[derive(Debug, Clone, Copy)]
pub(super) struct Needed {
    reference: bool,
    top: bool,
}

impl Needed {
    pub(super) fn of(rows: &[Row]) -> Self {
        let any = |present: fn(&Row) -> bool| rows.iter().any(present);
        Self { reference: any(|row| row.ref_logprobs.is_some()), top: any(|row| row.top_logprobs.is_some()) }
    }

    /// The schema of the table with these columns.
    pub(super) fn schema(self) -> SchemaRef {
        let optional = fields().into_iter().zip([self.reference, self.top]);
        let mut fields = schema::trajectory_fields();
        fields.extend(optional.filter(|(_, needed)| *needed).map(|(field, _)| field));
        schema::with_metadata(fields, schema::TRAJECTORIES)
    }

    /// The columns themselves.
    pub(super) fn columns(self, rows: &[Row]) -> Result<Vec<ArrayRef>> {
        let reference = self.reference.then(|| reference(rows));
        let top = self.top.then(|| top(rows));
        reference.into_iter().chain(top).collect()
    }
}

fn reference(rows: &[Row]) -> Result<ArrayRef> {
    let lists = || rows.iter().map(|row| row.ref_logprobs.as_deref());
    let values: Vec<f32> = lists().flatten().flatten().copied().collect();
    let lengths = offsets(lists().map(|list| list.map_or(0, <[f32]>::len)))?;
    list_column(Arc::new(Float32Array::from(values)), lengths, nulls(lists().map(|list| list.is_some())))
}

fn top(rows: &[Row]) -> Result<ArrayRef> {
    let lists = || rows.iter().map(|row| row.top_logprobs.as_ref());
    let mut all = TopLogprobs::default();
    lists().flatten().for_each(|list| all.extend(list));
    let tokens = all.len();
    let starts = [0].into_iter().chain(all.ends.iter().map(|end| *end as usize));
    let inner = offsets(starts.zip(&all.ends).map(|(start, end)| *end as usize - start))?;
    let ids = list_column(Arc::new(Int32Array::from(all.ids)) as ArrayRef, inner.clone(), None)?;
    let columns = vec![ids, list_column(Arc::new(Float32Array::from(all.logprobs)), inner, None)?];
    let items = StructArray::try_new_with_length(top_fields(), columns, None, tokens);
    let items = items.map_err(|error| internal(&error))?;
    let lengths = offsets(lists().map(|list| list.map_or(0, TopLogprobs::len)))?;
    list_column(Arc::new(items), lengths, nulls(lists().map(|list| list.is_some())))
}

fn nulls(valid: impl Iterator<Item = bool>) -> Option<NullBuffer> {
    let valid: NullBuffer = valid.collect();
    (valid.null_count() > 0).then_some(valid)
}
