//! Typed views of the columns of one record batch: slices of the Arrow buffers, no copies.

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Float32Type, Int32Type, Int64Type, UInt8Type};
use arrow_array::{Array, Float32Array, ListArray, RecordBatch, StringArray, StructArray};
use arrow_buffer::{ArrowNativeType, NullBuffer};

use super::optional;
use crate::{Error, Result};

/// A list column of primitive values.
#[derive(Debug, Clone, Copy)]
pub struct Lists<'a, T> {
    /// The values of all rows; [`Lists::get`] finds those of one.
    pub values: &'a [T],
    /// Where each row starts, and the end.
    pub offsets: &'a [i32],
    nulls: Option<&'a NullBuffer>,
}

impl<'a, T: ArrowNativeType> Lists<'a, T> {
    fn new<P: ArrowPrimitiveType<Native = T>>(array: &'a ListArray) -> Option<Self> {
        let values = array.values().as_primitive_opt::<P>()?.values().as_ref();
        Some(Self { values, offsets: array.value_offsets(), nulls: array.nulls() })
    }

    /// The values of a row; `None` where the list is null.
    pub fn get(&self, row: usize) -> Option<&'a [T]> {
        (!self.is_null(row)).then(|| &self.values[self.start(row)..self.start(row + 1)])
    }

    /// Whether the list of a row is null.
    pub fn is_null(&self, row: usize) -> bool {
        self.nulls.is_some_and(|nulls| nulls.is_null(row))
    }

    /// The length of the list of a row, also where it is null.
    pub fn length(&self, row: usize) -> usize {
        self.start(row + 1) - self.start(row)
    }

    /// The values of all rows, one after the other; of a column without nulls.
    fn all(&self) -> &'a [T] {
        &self.values[self.start(0)..self.start(self.offsets.len() - 1)]
    }

    fn start(&self, row: usize) -> usize {
        self.offsets[row] as usize
    }
}

/// A list column of structs: the offsets, and the fields as columns.
#[derive(Debug, Clone, Copy)]
pub struct Structs<'a> {
    /// The items of all rows.
    pub items: &'a StructArray,
    list: &'a ListArray,
}

impl<'a> Structs<'a> {
    /// The items of a row, as a range of [`Structs::items`]; `None` where the list is null.
    pub fn range(&self, row: usize) -> Option<std::ops::Range<usize>> {
        let offsets = self.list.value_offsets();
        (!self.list.is_null(row)).then(|| offsets[row] as usize..offsets[row + 1] as usize)
    }

    /// An int32 field of the items.
    pub fn int32(&self, name: &str) -> Result<&'a [i32]> {
        self.field::<Int32Type>(name)
    }

    /// A list field of the items.
    pub fn lists<P: ArrowPrimitiveType>(&self, name: &str) -> Result<Lists<'a, P::Native>> {
        let column = self.items.column_by_name(name).and_then(|column| column.as_list_opt::<i32>());
        column.and_then(Lists::new::<P>).ok_or_else(|| missing(name))
    }

    /// The rewards of the items, which may be null.
    pub fn rewards(&self) -> Result<&'a Float32Array> {
        let column = self.items.column_by_name("reward").and_then(|column| column.as_primitive_opt());
        column.ok_or_else(|| missing("reward"))
    }

    /// An int64 field of the items.
    pub fn int64(&self, name: &str) -> Result<&'a [i64]> {
        self.field::<Int64Type>(name)
    }

    fn field<P: ArrowPrimitiveType>(&self, name: &str) -> Result<&'a [P::Native]> {
        let column = self.items.column_by_name(name).and_then(|column| column.as_primitive_opt::<P>());
        Ok(column.ok_or_else(|| missing(name))?.values())
    }
}

/// The columns of a record batch in canonical form, typed.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// Literal ids.
    pub token_ids: Lists<'a, i32>,
    /// 1 where the policy produced the token.
    pub sampled_mask: Lists<'a, u8>,
    /// 1 where training uses the token.
    pub loss_mask: Lists<'a, u8>,
    /// The choice in float.
    pub loss_weight: Lists<'a, f32>,
    /// One value per sampled token.
    pub logprobs: Lists<'a, f32>,
    /// Per token.
    pub advantages: Lists<'a, f32>,
    /// The message a token belongs to.
    pub message_index: Lists<'a, i32>,
    /// Generations.
    pub turns: Structs<'a>,
    /// Runs of one policy version.
    pub policy_versions: Structs<'a>,
    /// One value per sampled token, of a reference model, if the table has them.
    pub ref_logprobs: Option<Lists<'a, f32>>,
    /// The alternatives at each token, if the table has them.
    pub top_logprobs: Option<Structs<'a>>,
    batch: &'a RecordBatch,
}

impl<'a> View<'a> {
    /// The typed columns of `batch`, which is in canonical form.
    pub fn new(batch: &'a RecordBatch) -> Result<Self> {
        Ok(Self {
            token_ids: lists::<Int32Type>(batch, "token_ids")?,
            sampled_mask: lists::<UInt8Type>(batch, "sampled_mask")?,
            loss_mask: lists::<UInt8Type>(batch, "loss_mask")?,
            loss_weight: lists::<Float32Type>(batch, "loss_weight")?,
            logprobs: lists::<Float32Type>(batch, "logprobs")?,
            advantages: lists::<Float32Type>(batch, "advantages")?,
            message_index: lists::<Int32Type>(batch, "message_index")?,
            turns: structs(batch, "turns")?,
            policy_versions: structs(batch, "policy_versions")?,
            ref_logprobs: lists::<Float32Type>(batch, optional::REFERENCE).ok(),
            top_logprobs: structs(batch, optional::TOP).ok(),
            batch,
        })
    }

    /// The rewards.
    pub fn reward(&self) -> Result<Vec<Option<f32>>> {
        let column = self.batch.column_by_name("reward").and_then(|column| column.as_primitive_opt::<Float32Type>());
        Ok(column.ok_or_else(|| missing("reward"))?.iter().collect())
    }

    /// The loss mask of all rows, one after the other.
    pub(crate) fn loss_mask_values(&self) -> &'a [u8] {
        self.loss_mask.all()
    }

    /// The sampled mask of all rows, one after the other.
    pub(crate) fn sampled_mask_values(&self) -> &'a [u8] {
        self.sampled_mask.all()
    }

    /// Where a row leaves its parent, in tokens; `None` where it has none.
    pub fn fork_at(&self, row: usize) -> Option<i32> {
        let column = self.batch.column_by_name("fork_at")?.as_primitive_opt::<Int32Type>()?;
        (!column.is_null(row)).then(|| column.value(row))
    }

    /// A text column.
    pub fn text(&self, name: &str) -> Result<&'a StringArray> {
        let column = self.batch.column_by_name(name).and_then(|column| column.as_string_opt::<i32>());
        column.ok_or_else(|| missing(name))
    }

    /// The tokens of all rows.
    pub fn tokens(&self) -> usize {
        self.token_ids.start(self.len()) - self.token_ids.start(0)
    }

    /// A per-token column whose list in a row has another length than `token_ids`, and that length.
    pub fn ragged(&self, row: usize) -> Option<(&'static str, usize)> {
        let lengths = [
            ("sampled_mask", self.sampled_mask.get(row).map(<[u8]>::len)),
            ("loss_mask", self.loss_mask.get(row).map(<[u8]>::len)),
            ("loss_weight", self.loss_weight.get(row).map(<[f32]>::len)),
            ("logprobs", self.logprobs.get(row).map(<[f32]>::len)),
            ("advantages", self.advantages.get(row).map(<[f32]>::len)),
            ("message_index", self.message_index.get(row).map(<[i32]>::len)),
            (optional::REFERENCE, self.ref_logprobs.and_then(|lists| lists.get(row)).map(<[f32]>::len)),
            (optional::TOP, self.top_logprobs.and_then(|lists| lists.range(row)).map(|range| range.len())),
        ];
        let expected = self.token_ids.length(row);
        let found = lengths.into_iter().find(|(_, length)| length.is_some_and(|length| length != expected));
        found.map(|(name, length)| (name, length.unwrap_or_default()))
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.batch.num_rows()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn list_array<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a ListArray> {
    batch.column_by_name(name).and_then(|column| column.as_list_opt::<i32>()).ok_or_else(|| missing(name))
}

fn lists<'a, P: ArrowPrimitiveType>(batch: &'a RecordBatch, name: &str) -> Result<Lists<'a, P::Native>> {
    Lists::new::<P>(list_array(batch, name)?).ok_or_else(|| missing(name))
}

fn structs<'a>(batch: &'a RecordBatch, name: &str) -> Result<Structs<'a>> {
    let list = list_array(batch, name)?;
    let items = list.values().as_struct_opt().ok_or_else(|| missing(name))?;
    Ok(Structs { items, list })
}

fn missing(name: &str) -> Error {
    Error::schema(format!("the column `{name}` is missing or has another type than the contract says"))
}
