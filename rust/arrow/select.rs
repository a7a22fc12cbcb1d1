//! Rows of a table: concatenated, filtered, taken.

use arrow_array::{BooleanArray, UInt64Array};
use arrow_schema::ArrowError;
use arrow_select::concat::concat_batches;
use arrow_select::filter::filter_record_batch;
use arrow_select::take::take_record_batch;

use super::{Batch, schema};
use crate::{Error, Result};

impl Batch {
    /// The rows of all `parts`, in order, sharing their buffers. A column that a part lacks is null there.
    pub fn concat(parts: &[Self]) -> Result<Self> {
        let Some(first) = parts.first() else {
            return Ok(Self::over(schema::trajectories(), Vec::new()));
        };
        if parts.iter().all(|part| part.schema == first.schema) {
            let batches = parts.iter().flat_map(|part| part.batches.iter().cloned());
            return Ok(Self::over(first.schema.clone(), batches.collect()));
        }
        let merged = super::read::merged_schema(parts.iter().map(|part| part.schema.as_ref()))?;
        let mut batches = Vec::new();
        for batch in parts.iter().flat_map(|part| &part.batches) {
            batches.extend(super::read::canonical(batch, &merged)?);
        }
        Ok(Self::over(merged, batches))
    }

    /// The rows where `keep` is true, copied.
    pub fn filter(&self, keep: &[bool]) -> Result<Self> {
        if keep.len() != self.len() {
            let (found, rows) = (keep.len(), self.len());
            return Err(Error::value(format!("the mask has {found} values, the batch has {rows} rows")));
        }
        let parts = self.starts.iter().zip(&self.batches).map(|(start, batch)| {
            let mask = BooleanArray::from(keep[*start..start + batch.num_rows()].to_vec());
            filter_record_batch(batch, &mask).map_err(|error| too_large(&error))
        });
        Ok(Self::over(self.schema.clone(), parts.collect::<Result<_>>()?))
    }

    /// The given rows, in the given order, copied.
    pub fn take(&self, rows: &[usize]) -> Result<Self> {
        let mut runs: Vec<(usize, Vec<u64>)> = Vec::new();
        for row in rows {
            let (batch, local) = self.locate(*row)?;
            match runs.last_mut() {
                Some((last, locals)) if *last == batch => locals.push(local as u64),
                _ => runs.push((batch, vec![local as u64])),
            }
        }
        let parts = runs.into_iter().map(|(batch, locals)| {
            take_record_batch(&self.batches[batch], &UInt64Array::from(locals)).map_err(|error| too_large(&error))
        });
        Ok(Self::over(self.schema.clone(), parts.collect::<Result<_>>()?))
    }

    /// The rows from `start` on, at most `length`, sharing the buffers.
    #[must_use]
    pub fn slice(&self, start: usize, length: usize) -> Self {
        let end = start.saturating_add(length).min(self.len());
        let parts = self.starts.iter().zip(&self.batches).filter_map(|(first, batch)| {
            let from = start.max(*first);
            let to = end.min(first + batch.num_rows());
            (from < to).then(|| batch.slice(from - first, to - from))
        });
        Self::over(self.schema.clone(), parts.collect())
    }

    /// The same rows in one record batch, or as few as int32 offsets allow: for many small parts.
    pub fn combined(&self) -> Result<Self> {
        match concat_batches(&self.schema, &self.batches) {
            Ok(batch) => Ok(Self::over(self.schema.clone(), vec![batch])),
            Err(ArrowError::OffsetOverflowError(_)) => Ok(self.clone()),
            Err(error) => Err(too_large(&error)),
        }
    }
}

fn too_large(error: &ArrowError) -> Error {
    Error::schema(format!("the rows cannot be selected: {error}"))
}
