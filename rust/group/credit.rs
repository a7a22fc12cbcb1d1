//! Who gets which advantage.

use std::collections::HashMap;

use super::{Group, TurnKey};
use crate::advantage::{Advantages, mean};
use crate::{Error, Result};

/// The advantage of a sampled token that several rollouts share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ShareCredit {
    /// The mean of the advantages of the rollouts that contain it.
    #[default]
    Mean,
    /// Their sum.
    Sum,
    /// That of the rollout that came first.
    First,
}

impl ShareCredit {
    /// Reads `mean`, `sum` or `first`.
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "mean" => Ok(Self::Mean),
            "sum" => Ok(Self::Sum),
            "first" => Ok(Self::First),
            other => Err(Error::value(format!("share_credit: '{other}' is none of 'mean', 'sum', 'first'"))),
        }
    }

    /// The name that [`Self::parse`] reads.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Sum => "sum",
            Self::First => "first",
        }
    }

    fn combine(self, values: &[f64]) -> f64 {
        match self {
            Self::Mean => mean(values),
            Self::Sum => values.iter().sum(),
            Self::First => values.first().copied().unwrap_or(0.0),
        }
    }
}

/// Advantages, as they were assigned.
#[derive(Debug, Clone)]
pub(super) struct Credit {
    share: ShareCredit,
    units: Vec<f64>,
    turns: Option<HashMap<TurnKey, f64>>,
    zero_variance: bool,
}

/// Advantages as plain data.
#[derive(Debug, Clone)]
pub struct Assigned {
    /// How shared tokens are credited.
    pub share: ShareCredit,
    /// One value a unit; empty where `turns` has values.
    pub units: Vec<f64>,
    /// One value a turn.
    pub turns: Option<Vec<(TurnKey, f64)>>,
    /// Whether the returns do not differ.
    pub zero_variance: bool,
}

impl Credit {
    /// The advantage of a token of the turn `turn` that the units `units` contain.
    pub(super) fn value(&self, turn: Option<&TurnKey>, units: &[usize]) -> f64 {
        match &self.turns {
            Some(turns) => turn.and_then(|key| turns.get(key)).copied().unwrap_or(0.0),
            None => self.share.combine(&units.iter().map(|unit| self.units[*unit]).collect::<Vec<_>>()),
        }
    }
}

impl Group {
    /// A group with advantages: one value a rollout, on all its sampled tokens.
    ///
    /// `estimate` sees the returns of the rollouts; agents of different names are compared among themselves.
    pub fn with_advantages(
        &self,
        share: ShareCredit,
        mut estimate: impl FnMut(&[f64]) -> Result<Advantages>,
    ) -> Result<Self> {
        let returns = self.returns()?;
        let mut units = vec![0.0; returns.len()];
        let mut zero_variance = true;
        for set in self.compared() {
            let found = self.estimated(&set.iter().map(|unit| returns[*unit]).collect::<Vec<_>>(), &mut estimate)?;
            set.iter().zip(found.values).for_each(|(unit, value)| units[*unit] = value);
            zero_variance &= found.zero_variance;
        }
        Ok(Self { credit: Some(Credit { share, units, turns: None, zero_variance }), ..self.clone() })
    }

    /// A group with advantages: one value a turn, from its own reward, on its own tokens.
    ///
    /// `estimate` sees the rewards of all turns of the group at once; a turn that rollouts share counts once.
    pub fn with_turn_advantages(&self, mut estimate: impl FnMut(&[f64]) -> Result<Advantages>) -> Result<Self> {
        let (keys, rewards): (Vec<TurnKey>, Vec<f64>) = self.turn_rewards()?.into_iter().unzip();
        let found = self.estimated(&rewards, &mut estimate)?;
        let turns = Some(keys.into_iter().zip(found.values).collect());
        let zero_variance = found.zero_variance;
        let credit = Credit { share: ShareCredit::default(), units: Vec::new(), turns, zero_variance };
        Ok(Self { credit: Some(credit), ..self.clone() })
    }

    /// Runs an estimator, and refuses what it must not give.
    fn estimated(
        &self,
        returns: &[f64],
        estimate: &mut impl FnMut(&[f64]) -> Result<Advantages>,
    ) -> Result<Advantages> {
        let found = estimate(returns)?;
        if found.values.len() != returns.len() {
            return Err(Error::trajectory(format!(
                "group '{}': {} advantages for {} returns; an estimator gives one value each",
                self.id,
                found.values.len(),
                returns.len()
            )));
        }
        if let Some(value) = found.values.iter().find(|value| !(**value as f32).is_finite()) {
            return Err(Error::trajectory(format!(
                "group '{}': the advantage {value} is not a finite float32",
                self.id
            )));
        }
        Ok(found)
    }

    /// Each distinct turn with its reward.
    fn turn_rewards(&self) -> Result<Vec<(TurnKey, f64)>> {
        let mut rewards: Vec<(TurnKey, f64)> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for row in &self.rows {
            for (index, turn) in row.turns().iter().enumerate() {
                if seen.insert((turn.origin.clone(), turn.start)) {
                    let reward = turn.reward.get().ok_or_else(|| {
                        Error::trajectory(format!(
                            "group '{}': turn {index} of trajectory '{}' has no reward; per_turn=True needs one each",
                            self.id,
                            row.identity().id
                        ))
                    })?;
                    rewards.push(((turn.origin.clone(), turn.start), reward));
                }
            }
        }
        Ok(rewards)
    }

    /// The same group with advantages that were assigned before, as [`Self::assigned`] gave them.
    #[must_use]
    pub fn with_assigned(&self, assigned: Option<Assigned>) -> Self {
        let credit = assigned.map(|Assigned { share, units, turns, zero_variance }| {
            let turns = turns.map(|turns| turns.into_iter().collect());
            Credit { share, units, turns, zero_variance }
        });
        Self { credit, ..self.clone() }
    }

    /// The advantages as plain data.
    pub fn assigned(&self) -> Option<Assigned> {
        let Credit { share, units, turns, zero_variance } = self.credit.clone()?;
        Some(Assigned { share, units, turns: turns.map(|turns| turns.into_iter().collect()), zero_variance })
    }

    /// One advantage a unit, if they were assigned that way.
    pub fn advantages(&self) -> Option<&[f64]> {
        self.credit.as_ref().filter(|credit| credit.turns.is_none()).map(|credit| &*credit.units)
    }

    /// Whether the returns do not differ, so that the group teaches nothing; `None` before advantages are assigned.
    pub fn zero_variance(&self) -> Option<bool> {
        self.credit.as_ref().map(|credit| credit.zero_variance)
    }
}
