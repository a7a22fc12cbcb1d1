//! Advantages over a whole batch: estimators that compare all rows, and values that were computed elsewhere.
//!
//! *Invariant*: advantages are written on sampled tokens, 0.0 elsewhere; nothing else of the batch changes.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::Float32Type;
use arrow_array::{Array, ArrayRef, PrimitiveArray, RecordBatch};
use arrow_buffer::ScalarBuffer;

use super::{Batch, View, internal, list_column, offsets};
use crate::advantage::to_come;
use crate::{Error, Result};

/// Below this standard deviation all values count as equal, and the advantages are zero.
const ZERO_VARIANCE: f64 = 1e-6;

/// How advantages come from a whole batch.
#[derive(Debug, Clone)]
pub enum BatchEstimator {
    /// Discounted rewards to come on each sampled token, then whitened: REINFORCE++ (arXiv 2501.03262, section 3.2)
    /// without a penalty on divergence.
    ReinforcePlusPlus(ToCome),
    /// The reward of the row less the mean over the rollouts of its group, then whitened: REINFORCE++ with a baseline
    /// (arXiv 2501.03262, section 3.3).
    ReinforcePlusPlusBaseline,
    /// Generalised advantage estimation with given values, see [`to_come`].
    Gae(ToCome),
    /// The advantages that are there, with mean 0 and sample standard deviation 1 over all sampled tokens with loss.
    Whiten,
    /// One value a row.
    Rows(Vec<f32>),
    /// One value a token, rows one after the other; what stands on unsampled tokens is not read.
    Tokens(Vec<f32>),
}

/// What the estimators over time need.
#[derive(Debug, Clone)]
pub struct ToCome {
    /// The rewards.
    pub rewards: Rewards,
    /// One value a token, rows one after the other; without them all values are 0.
    pub values: Option<Vec<f32>>,
    /// The discount of a reward by sampled token, "gamma".
    pub discount: f64,
    /// The decay of the trace, "lambda".
    pub trace: f64,
}

/// Where the rewards of tokens come from.
#[derive(Debug, Clone)]
pub enum Rewards {
    /// The reward of the row, on its last sampled token.
    Rows,
    /// The reward of each turn, on its last token.
    Turns,
    /// One value a token, rows one after the other.
    Tokens(Vec<f32>),
}

impl Batch {
    /// The same rows with new advantages.
    pub fn with_advantages(&self, estimator: &BatchEstimator) -> Result<Self> {
        let views = self.views()?;
        check(estimator, self.tokens()?, self.len())?;
        let baseline = match estimator {
            BatchEstimator::ReinforcePlusPlusBaseline => group_means(&views)?,
            _ => HashMap::new(),
        };
        let mut values = Vec::with_capacity(views.len());
        let mut token = 0;
        for (start, view) in &views {
            let part = raw(view, *start, token, estimator, &baseline)?;
            token += part.len();
            values.push(part);
        }
        if !matches!(estimator, BatchEstimator::Gae(_) | BatchEstimator::Rows(_) | BatchEstimator::Tokens(_)) {
            whiten(&views, &mut values);
        }
        let index = self.schema().index_of("advantages").map_err(|error| internal(&error))?;
        let parts = self.record_batches().iter().zip(&views).zip(values);
        let batches = parts.map(|((batch, (_, view)), values)| replaced(batch, index, written(view, values)?));
        Ok(Self::over(self.schema().clone(), batches.collect::<Result<_>>()?))
    }
}

/// Refuses arrays of another length, and numbers that are no discount.
fn check(estimator: &BatchEstimator, tokens: usize, rows: usize) -> Result<()> {
    let one_each = |what: &str, found: usize, expected: usize, each: &str| {
        let wrong = || Error::value(format!("{found} {what} for {expected} {each}s: give one per {each}"));
        if found == expected { Ok(()) } else { Err(wrong()) }
    };
    match estimator {
        BatchEstimator::Rows(given) => one_each("advantages", given.len(), rows, "row"),
        BatchEstimator::Tokens(given) => one_each("advantages", given.len(), tokens, "token"),
        BatchEstimator::ReinforcePlusPlus(given) | BatchEstimator::Gae(given) => {
            let inside = |number: f64| (0.0..=1.0).contains(&number);
            if !inside(given.discount) || !inside(given.trace) {
                let (discount, trace) = (given.discount, given.trace);
                return Err(Error::value(format!("discount={discount} and trace={trace} must be between 0 and 1")));
            }
            if let Rewards::Tokens(rewards) = &given.rewards {
                one_each("rewards", rewards.len(), tokens, "token")?;
            }
            given.values.as_ref().map_or(Ok(()), |values| one_each("values", values.len(), tokens, "token"))
        }
        BatchEstimator::ReinforcePlusPlusBaseline | BatchEstimator::Whiten => Ok(()),
    }
}

/// The mean reward of the rollouts of each group; a rollout of several rows counts once.
fn group_means(views: &[(usize, View<'_>)]) -> Result<HashMap<String, f64>> {
    let mut rollouts: HashMap<(&str, &str), f64> = HashMap::new();
    for (start, view) in views {
        let (groups, ids, rewards) = (view.text("group_id")?, view.text("rollout_id")?, view.reward()?);
        for (row, reward) in rewards.into_iter().enumerate() {
            let reward = reward.ok_or_else(|| lacking(view, *start, row, "reward"))?;
            rollouts.insert((groups.value(row), ids.value(row)), f64::from(reward));
        }
    }
    let mut sums: HashMap<String, (f64, f64)> = HashMap::new();
    for ((group, _), reward) in rollouts {
        let sum = sums.entry(group.to_owned()).or_default();
        *sum = (sum.0 + reward, sum.1 + 1.0);
    }
    Ok(sums.into_iter().map(|(group, (sum, count))| (group, sum / count)).collect())
}

/// The values before whitening, one per token; `start` and `token` count the rows and tokens of earlier record batches.
fn raw(
    view: &View<'_>,
    start: usize,
    token: usize,
    estimator: &BatchEstimator,
    baseline: &HashMap<String, f64>,
) -> Result<Vec<f32>> {
    let rewards = view.reward()?;
    let reward = |row: usize| rewards[row].ok_or_else(|| lacking(view, start, row, "reward"));
    let mut values = Vec::new();
    for row in 0..view.len() {
        let length = view.token_ids.length(row);
        let tokens = token + values.len()..token + values.len() + length;
        match estimator {
            BatchEstimator::ReinforcePlusPlus(given) | BatchEstimator::Gae(given) => {
                let rewards = match &given.rewards {
                    Rewards::Rows => on_the_last(length, reward(row)?),
                    Rewards::Turns => turn_rewards(view, start, row)?,
                    Rewards::Tokens(all) => all[tokens.clone()].to_vec(),
                };
                let own = given.values.as_ref().map(|values| &values[tokens]);
                let sampled = view.sampled_mask.get(row).unwrap_or_default();
                values.extend(to_come(&rewards, own, sampled, given.discount, given.trace));
            }
            BatchEstimator::ReinforcePlusPlusBaseline => {
                let mean = baseline.get(view.text("group_id")?.value(row)).copied().unwrap_or_default();
                values.resize(values.len() + length, (f64::from(reward(row)?) - mean) as f32);
            }
            BatchEstimator::Whiten => {
                let own = view.advantages.get(row).ok_or_else(|| lacking(view, start, row, "advantages"))?;
                values.extend_from_slice(own);
            }
            BatchEstimator::Rows(given) => values.resize(values.len() + length, given[start + row]),
            BatchEstimator::Tokens(given) => values.extend_from_slice(&given[tokens]),
        }
    }
    Ok(values)
}

fn on_the_last(length: usize, reward: f32) -> Vec<f32> {
    let mut rewards = vec![0.0; length];
    if let Some(last) = rewards.last_mut() {
        *last = reward;
    }
    rewards
}

/// The reward of each turn on its last token.
fn turn_rewards(view: &View<'_>, start: usize, row: usize) -> Result<Vec<f32>> {
    let ends = view.turns.int32("end")?;
    let given = view.turns.rewards()?;
    let mut rewards = vec![0.0; view.token_ids.length(row)];
    for (turn, item) in view.turns.range(row).unwrap_or_default().enumerate() {
        let reward = given.is_valid(item).then(|| given.value(item));
        let reward = reward.ok_or_else(|| lacking(view, start, row, &format!("reward of turn {turn}")))?;
        if let Some(place) = (ends[item] as usize).checked_sub(1).and_then(|last| rewards.get_mut(last)) {
            *place += reward;
        }
    }
    Ok(rewards)
}

fn lacking(view: &View<'_>, start: usize, row: usize, name: &str) -> Error {
    let id = view.text("trajectory_id").map_or("", |ids| ids.value(row));
    Error::schema(format!("row {} (trajectory {id:?}) has no {name}: assign it first", start + row))
}

/// Mean 0 and sample standard deviation 1 over all sampled tokens with loss; zero where all of them are equal.
fn whiten(views: &[(usize, View<'_>)], values: &mut [Vec<f32>]) {
    let masks = |index: usize| (views[index].1.loss_mask_values(), views[index].1.sampled_mask_values());
    let trained = |index: usize| masks(index).0.iter().zip(masks(index).1).map(|(loss, sampled)| loss & sampled);
    let (mut count, mut sum) = (0.0, 0.0);
    for (index, part) in values.iter().enumerate() {
        for (value, _) in part.iter().zip(trained(index)).filter(|(_, loss)| *loss != 0) {
            count += 1.0;
            sum += f64::from(*value);
        }
    }
    let mean = sum / f64::max(count, 1.0);
    let squares = values.iter().enumerate().map(|(index, part)| {
        let trained = part.iter().zip(trained(index)).filter(|(_, loss)| *loss != 0);
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
