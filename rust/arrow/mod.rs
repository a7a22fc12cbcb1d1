//! The contract between environments and trainers: trajectories as Arrow record batches, in memory and in files.
//!
//! *Invariant*: `read(write(x))` has the same rows and values; no list holds a null; a list that is null as a whole was
//! never assigned.

mod advantages;
mod file;
mod optional;
mod read;
pub mod schema;
mod select;
mod validate;
mod view;
mod write;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};

pub use advantages::{BatchEstimator, Rewards, ToCome};
pub use file::Damage;
pub use view::{Lists, Structs, View};
pub use write::Writer;
pub(crate) use write::{internal, list_column, offsets};

use crate::row::Row;
use crate::{Error, Result};

/// A table `tokentape.trajectories`: record batches in canonical form. Cloning shares the buffers.
#[derive(Debug, Clone)]
pub struct Batch {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    /// The first row of each record batch, and the number of rows.
    starts: Vec<usize>,
}

impl Batch {
    /// The table of `rows`.
    pub fn from_rows(rows: &[Row]) -> Result<Self> {
        let optional = optional::Needed::of(rows);
        Ok(Self::over(optional.schema(), write::record_batches(rows, optional)?))
    }

    /// Any Arrow table with the columns of the contract; values are shared, not copied.
    pub fn from_record_batches(found: &Schema, batches: &[RecordBatch]) -> Result<Self> {
        let schema = read::canonical_schema(found)?;
        let mut canonical = Vec::with_capacity(batches.len());
        for (index, batch) in batches.iter().enumerate() {
            let at = |error: Error| match batches.len() {
                1 => error,
                _ => Error::schema(format!("record batch {index}: {}", error.message())),
            };
            canonical.extend(read::canonical(batch, &schema).map_err(at)?);
        }
        Ok(Self::over(schema, canonical))
    }

    fn over(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        let mut starts = vec![0];
        let mut rows = 0;
        starts.extend(batches.iter().map(|batch| {
            rows += batch.num_rows();
            rows
        }));
        Self { schema, batches, starts }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.starts.last().copied().unwrap_or_default()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The schema: the columns of the contract, then the columns it does not know.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The record batches.
    pub fn record_batches(&self) -> &[RecordBatch] {
        &self.batches
    }

    /// The typed columns of each record batch, with the index of its first row.
    pub fn views(&self) -> Result<Vec<(usize, View<'_>)>> {
        let starts = self.starts.iter().copied();
        starts.zip(&self.batches).map(|(start, batch)| Ok((start, View::new(batch)?))).collect()
    }

    /// The record batch that holds a row, and the row's place in it.
    pub fn locate(&self, row: usize) -> Result<(usize, usize)> {
        if row >= self.len() {
            return Err(Error::value(format!("row {row} is out of range: the batch has {} rows", self.len())));
        }
        let batch = self.starts.partition_point(|start| *start <= row) - 1;
        Ok((batch, row - self.starts[batch]))
    }

    /// The number of tokens of all rows.
    pub fn tokens(&self) -> Result<usize> {
        let views = self.views()?;
        Ok(views.iter().map(|(_, view)| (0..view.len()).map(|row| view.token_ids.length(row)).sum::<usize>()).sum())
    }
}
