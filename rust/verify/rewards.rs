//! Groups whose rollouts all have one reward teach nothing: a smell, one a group.

use super::fault::{Fault, Found, Kind};

/// The rewards of the current group.
#[derive(Debug, Default)]
pub(super) struct Rewards {
    group: String,
    first_row: usize,
    count: usize,
    least: f32,
    most: f32,
}

impl Rewards {
    /// Adds a row; says what was wrong with the group before it, if this row begins another.
    pub(super) fn add(&mut self, group: &str, row: usize, reward: Option<f32>) -> Option<Fault> {
        let fault = if group == self.group { None } else { self.finish() };
        let Some(reward) = reward.filter(|_| !group.is_empty()) else { return fault };
        if self.count == 0 {
            group.clone_into(&mut self.group);
            (self.first_row, self.least, self.most) = (row, reward, reward);
        }
        self.count += 1;
        self.least = self.least.min(reward);
        self.most = self.most.max(reward);
        fault
    }

    /// What is wrong with the last group.
    pub(super) fn finish(&mut self) -> Option<Fault> {
        let constant = self.count > 1 && self.least.to_bits() == self.most.to_bits();
        let mut found = Found::new(self.first_row);
        if constant {
            let message = format!("all {} rows of the group have the reward {}", self.count, self.least);
            found.row(Kind::ConstantReward, "reward", message);
        }
        *self = Self::default();
        found.faults.pop()
    }
}
