//! `merge`: records of single turns to trajectories.

use pyo3::prelude::*;

use super::arrays;
use super::gil::detached;
use super::trajectory::PyTrajectory;
use crate::TokenId;
use crate::top_logprobs::TopLogprobs;
use crate::trajectory::{Act, Record, merge as merged, merged_identity};

/// A record as Python gives it: a mapping.
struct Given {
    prompt: Vec<TokenId>,
    token_ids: Vec<TokenId>,
    logprobs: Option<Vec<f32>>,
    reference_logprobs: Option<Vec<f32>>,
    top_logprobs: Option<TopLogprobs>,
    finish_reason: String,
    policy_version: Option<i64>,
    logprob_kind: Option<String>,
    reward: Option<f64>,
}

impl Given {
    fn read(index: usize, record: &Bound<'_, PyAny>) -> PyResult<Self> {
        let optional = |name: &str| {
            let value = record.call_method1("get", (name,))?;
            PyResult::Ok(Some(value).filter(|value| !value.is_none()))
        };
        let ids = |name: &str| arrays::token_ids(&format!("record {index}, {name}"), &record.get_item(name)?);
        let floats = |name: &str| {
            let values = optional(name)?;
            values.map(|values| arrays::floats(&format!("record {index}, {name}"), &values)).transpose()
        };
        Ok(Self {
            prompt: ids("prompt_token_ids")?,
            token_ids: ids("token_ids")?,
            logprobs: floats("logprobs")?,
            reference_logprobs: floats("reference_logprobs")?,
            top_logprobs: optional("top_logprobs")?
                .map(|top| arrays::top_logprobs(&format!("record {index}, top_logprobs"), &top))
                .transpose()?,
            finish_reason: optional("finish_reason")?.map_or_else(|| Ok("stop".into()), |value| value.extract())?,
            policy_version: optional("policy_version")?.map(|value| value.extract()).transpose()?,
            logprob_kind: optional("logprob_kind")?.map(|value| value.extract()).transpose()?,
            reward: optional("reward")?.map(|value| value.extract()).transpose()?,
        })
    }

    fn record(&self) -> Record<'_> {
        let act = Act {
            token_ids: &self.token_ids,
            logprobs: self.logprobs.as_deref(),
            reference_logprobs: self.reference_logprobs.as_deref(),
            top_logprobs: self.top_logprobs.as_ref(),
            finish_reason: &self.finish_reason,
            policy_version: self.policy_version,
            logprob_kind: self.logprob_kind.as_deref(),
            ..Act::default()
        };
        Record { prompt: &self.prompt, act, reward: self.reward }
    }
}

#[pyfunction]
#[pyo3(signature = (records, *, vocab_size=None, rollout=None))]
pub(super) fn merge(
    records: &Bound<'_, PyAny>,
    vocab_size: Option<usize>,
    rollout: Option<&PyTrajectory>,
) -> PyResult<Vec<PyTrajectory>> {
    let given = records.try_iter()?.enumerate().map(|(index, record)| Given::read(index, &record?));
    let given = given.collect::<PyResult<Vec<_>>>()?;
    let rollout = rollout.map(|rollout| rollout.snapshot().identity().rollout_id.clone());
    let trajectories = detached(records.py(), || {
        let records: Vec<_> = given.iter().map(Given::record).collect();
        merged(&records, vocab_size, &merged_identity(rollout))
    })?;
    Ok(trajectories.into_iter().map(PyTrajectory::new).collect())
}
