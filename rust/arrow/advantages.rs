//! Advantages over a whole batch: estimators that compare all rows, and values that were computed elsewhere.
//!
//! *Invariant*: advantages are written on sampled tokens, 0.0 elsewhere; nothing else of the batch changes.

use std::sync::Arc;

use arrow_array::types::Float32Type;
use arrow_array::{ArrayRef, PrimitiveArray, RecordBatch};
use arrow_buffer::ScalarBuffer;

use super::{Batch, View, internal, list_column, offsets};
use crate::{Error, Result};

/// Below this standard deviation all values count as equal, and the advantages are zero.
const ZERO_VARIANCE: f64 = 1e-6;

/// How advantages come from a whole batch.
#[derive(Debug, Clone)]
pub enum BatchEstimator {
    /// The reward of the row on each sampled token, then whitened: REINFORCE++ (arXiv 2501.03262, section 3.2) without a
    /// penalty on divergence, undiscounted.
    ReinforcePlusPlus,
    /// The advantages that are there, with mean 0 and sample standard deviation 1 over all tokens with loss.
    Whiten,
    /// One value a row.
    Rows(Vec<f32>),
    /// One value a token, rows one after the other; what stands on unsampled tokens is not read.
    Tokens(Vec<f32>),
}

impl Batch {
    /// The same rows with new advantages.
    pub fn with_advantages(&self, estimator: &BatchEstimator) -> Result<Self> {
        let views = self.views()?;
        let mut values = Vec::with_capacity(views.len());
        let mut token = 0;
        for (start, view) in &views {
            let part = raw(view, *start, token, estimator, self.len())?;
            token += part.len();
            values.push(part);
        }
        if let BatchEstimator::Tokens(given) = estimator
            && given.len() != token
        {
            return Err(Error::value(format!("{} advantages for {token} tokens: give one per token", given.len())));
        }
        if matches!(estimator, BatchEstimator::ReinforcePlusPlus | BatchEstimator::Whiten) {
            whiten(&views, &mut values);
        }
        let index = self.schema().index_of("advantages").map_err(|error| internal(&error))?;
        let parts = self.record_batches().iter().zip(&views).zip(values);
        let batches = parts.map(|((batch, (_, view)), values)| replaced(batch, index, written(view, values)?));
        Ok(Self::over(self.schema().clone(), batches.collect::<Result<_>>()?))
    }
}

/// The values before whitening, one per token; `start` and `token` count the rows and tokens of earlier record batches.
fn raw(view: &View<'_>, start: usize, token: usize, estimator: &BatchEstimator, rows: usize) -> Result<Vec<f32>> {
    let rewards = view.reward()?;
    let mut values = Vec::new();
    for row in 0..view.len() {
        let length = view.token_ids.length(row);
        match estimator {
            BatchEstimator::ReinforcePlusPlus => {
                let reward = rewards.get(row).copied().flatten();
                let reward = reward.ok_or_else(|| lacking(view, start, row, "reward"))?;
                values.resize(values.len() + length, reward);
            }
            BatchEstimator::Whiten => {
                let own = view.advantages.get(row).ok_or_else(|| lacking(view, start, row, "advantages"))?;
                values.extend_from_slice(own);
            }
            BatchEstimator::Rows(given) => {
                let value = given.get(start + row).filter(|_| given.len() == rows);
                let count = given.len();
                let value = value.ok_or_else(|| Error::value(format!("{count} advantages for {rows} rows")))?;
                values.resize(values.len() + length, *value);
            }
            BatchEstimator::Tokens(given) => {
                let from = (token + values.len()).min(given.len());
                let own = &given[from..(from + length).min(given.len())];
                values.extend_from_slice(own);
                values.resize(values.len() + length - own.len(), 0.0);
            }
        }
    }
    Ok(values)
}

fn lacking(view: &View<'_>, start: usize, row: usize, name: &str) -> Error {
    let id = view.text("trajectory_id").map_or("", |ids| ids.value(row));
    Error::schema(format!("row {} (trajectory {id:?}) has no {name}: assign it first", start + row))
}

/// Mean 0 and sample standard deviation 1 over all tokens with loss; zero where all of them are equal.
fn whiten(views: &[(usize, View<'_>)], values: &mut [Vec<f32>]) {
    let trained = |index: usize| views[index].1.loss_mask_values();
    let (mut count, mut sum) = (0.0, 0.0);
    for (index, part) in values.iter().enumerate() {
        for (value, _) in part.iter().zip(trained(index)).filter(|(_, loss)| **loss != 0) {
            count += 1.0;
            sum += f64::from(*value);
        }
    }
    let mean = sum / f64::max(count, 1.0);
    let squares = values.iter().enumerate().map(|(index, part)| {
        let trained = part.iter().zip(trained(index)).filter(|(_, loss)| **loss != 0);
        trained.map(|(value, _)| (f64::from(*value) - mean).powi(2)).sum::<f64>()
    });
    let deviation = (squares.sum::<f64>() / f64::max(count - 1.0, 1.0)).sqrt();
    let scale = if deviation < ZERO_VARIANCE { 0.0 } else { 1.0 / deviation };
    for value in values.iter_mut().flatten() {
        *value = ((f64::from(*value) - mean) * scale) as f32;
    }
}

/// The column: zero where a token is not sampled.
fn written(view: &View<'_>, mut values: Vec<f32>) -> Result<ArrayRef> {
    for (value, sampled) in values.iter_mut().zip(view.sampled_mask_values()) {
        if *sampled == 0 {
            *value = 0.0;
        } else if !value.is_finite() {
            return Err(Error::value("an advantage of a sampled token is not finite"));
        }
    }
    let lengths = (0..view.len()).map(|row| view.token_ids.length(row));
    let items = PrimitiveArray::<Float32Type>::new(ScalarBuffer::from(values), None);
    list_column(Arc::new(items), offsets(lengths)?, None)
}

fn replaced(batch: &RecordBatch, index: usize, column: ArrayRef) -> Result<RecordBatch> {
    let mut columns = batch.columns().to_vec();
    columns[index] = column;
    RecordBatch::try_new(batch.schema(), columns).map_err(|error| internal(&error))
}
