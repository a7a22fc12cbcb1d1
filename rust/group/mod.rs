//! A group: the trajectories of one item, their returns and advantages.
//!
//! *Invariant*: a rollout counts once, however many rows it has; each sampled token carries loss in at most one row.
//!
//! The trajectories are snapshots: what happens to them later does not reach the group.

mod credit;
mod rows;
mod sharing;

use std::collections::HashSet;
use std::sync::Arc;

use credit::Credit;
pub use credit::{Assigned, ShareCredit};

use crate::columns::Origin;
use crate::trajectory::{Identity, Stage, Trajectory};
use crate::{Error, Result};

/// What one agent did in one rollout: the unit that has a return and an advantage.
#[derive(Debug, Clone)]
struct Unit {
    rollout_id: Arc<str>,
    agent: Option<Arc<str>>,
    /// Indices of the rows of this unit: the trajectories given, and the fragments they go on from.
    rows: Vec<usize>,
}

impl Unit {
    fn is_of(&self, identity: &Identity) -> bool {
        self.rollout_id == identity.rollout_id && self.agent == identity.agent
    }
}

/// See the module's page.
#[derive(Debug, Clone)]
pub struct Group {
    id: Arc<str>,
    env: Arc<str>,
    rows: Vec<Arc<Trajectory>>,
    units: Vec<Unit>,
    credit: Option<Credit>,
}

impl Group {
    /// The group of `trajectories`: the last fragment of each rollout; the earlier fragments are gathered.
    ///
    /// Trajectories of one rollout (agents, merged records) may all be given, and count as one rollout.
    pub fn new(id: Arc<str>, env: Arc<str>, trajectories: &[Arc<Trajectory>]) -> Result<Self> {
        if trajectories.is_empty() {
            return Err(Error::trajectory(format!(
                "group '{id}': no trajectories; return None for an item without any"
            )));
        }
        let mut group = Self { id, env, rows: Vec::new(), units: Vec::new(), credit: None };
        group.check_given(trajectories)?;
        trajectories.iter().filter(|given| given.stage() != Stage::Superseded).for_each(|leaf| group.gather(leaf));
        group.check_superseded(trajectories)?;
        Ok(group)
    }

    fn check_given(&self, trajectories: &[Arc<Trajectory>]) -> Result<()> {
        let mut seen = HashSet::new();
        match trajectories.iter().find(|given| !seen.insert(&given.identity().id)) {
            None => Ok(()),
            Some(twice) => Err(Error::trajectory(format!(
                "group '{}': trajectory '{}' is given twice; use fork() for another rollout with the same past",
                self.id,
                twice.identity().id
            ))),
        }
    }

    fn check_superseded(&self, trajectories: &[Arc<Trajectory>]) -> Result<()> {
        let lost = trajectories.iter().find(|given| self.row_of(given).is_none());
        match lost {
            None => Ok(()),
            Some(lost) => Err(Error::trajectory(format!(
                "group '{}': trajectory '{}' was continued in a later fragment that is not here; give the trajectory \
                 that observe returned",
                self.id,
                lost.identity().id
            ))),
        }
    }

    /// Adds a trajectory after the fragments it goes on from, each of them once.
    fn gather(&mut self, leaf: &Arc<Trajectory>) {
        let mut lineage = vec![leaf];
        while let Some(parent) = lineage[lineage.len() - 1].parent() {
            lineage.push(parent);
        }
        let rows: Vec<usize> = lineage.into_iter().rev().map(|fragment| self.place(fragment)).collect();
        let identity = leaf.identity();
        let position = self.units.iter().position(|unit| unit.is_of(identity)).unwrap_or_else(|| {
            let (rollout_id, agent) = (Arc::clone(&identity.rollout_id), identity.agent.clone());
            self.units.push(Unit { rollout_id, agent, rows: Vec::new() });
            self.units.len() - 1
        });
        let unit = &mut self.units[position];
        for row in rows {
            if !unit.rows.contains(&row) {
                unit.rows.push(row);
            }
        }
    }

    fn place(&mut self, trajectory: &Arc<Trajectory>) -> usize {
        self.row_of(trajectory).unwrap_or_else(|| {
            self.rows.push(Arc::clone(trajectory));
            self.rows.len() - 1
        })
    }

    fn row_of(&self, trajectory: &Trajectory) -> Option<usize> {
        self.rows.iter().position(|row| row.identity().id == trajectory.identity().id)
    }

    /// The name of the item.
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// The environment that made the group.
    pub fn env(&self) -> &Arc<str> {
        &self.env
    }

    /// The same group under the name of an environment.
    #[must_use]
    pub fn with_env(&self, env: Arc<str>) -> Self {
        Self { env, ..self.clone() }
    }

    /// How many episodes there are.
    pub fn rollouts(&self) -> usize {
        self.units.iter().map(|unit| &unit.rollout_id).collect::<HashSet<_>>().len()
    }

    /// The trajectories, one a row: the earlier fragments of a rollout before the later ones.
    pub fn trajectories(&self) -> &[Arc<Trajectory>] {
        &self.rows
    }

    /// The return of each unit: one value an agent of a rollout, in order of appearance.
    ///
    /// It is the reward of the rollout's last trajectory that has one, else the sum of its turns' rewards, else what
    /// another agent of the same rollout got.
    pub fn returns(&self) -> Result<Vec<f64>> {
        self.units.iter().map(|unit| self.return_of(unit).ok_or_else(|| self.no_reward(unit))).collect()
    }

    fn no_reward(&self, unit: &Unit) -> Error {
        let last = unit.rows.last().map_or("", |row| &*self.rows[*row].identity().id);
        Error::trajectory(format!(
            "group '{}': trajectory '{last}' has no reward, nor has any of its turns; set trajectory.reward before the \
             group is made",
            self.id
        ))
    }

    fn return_of(&self, unit: &Unit) -> Option<f64> {
        let rollout = || self.units.iter().filter(|other| other.rollout_id == unit.rollout_id);
        self.own_return(unit).or_else(|| rollout().find_map(|other| self.own_return(other)))
    }

    fn own_return(&self, unit: &Unit) -> Option<f64> {
        let set = unit.rows.iter().rev().map(|row| &self.rows[*row]);
        set.filter(|row| unit.is_of(row.identity())).find_map(|row| row.reward()).or_else(|| self.turn_sum(unit))
    }

    /// The sum of the rewards of a unit's turns, each turn once; `None` if none has a reward.
    fn turn_sum(&self, unit: &Unit) -> Option<f64> {
        let mut seen = HashSet::new();
        let turns = unit.rows.iter().flat_map(|row| self.rows[*row].turns());
        let distinct = turns.filter(|turn| seen.insert((&turn.origin, turn.start)));
        distinct.filter_map(|turn| turn.reward.get()).reduce(|sum, reward| sum + reward)
    }

    /// Indices of the units that are compared with each other: those of agents of one name.
    fn compared(&self) -> Vec<Vec<usize>> {
        let mut sets: Vec<Vec<usize>> = Vec::new();
        for (index, unit) in self.units.iter().enumerate() {
            match sets.iter_mut().find(|set| self.units[set[0]].agent == unit.agent) {
                Some(set) => set.push(index),
                None => sets.push(vec![index]),
            }
        }
        sets
    }
}

/// Names one turn, in whichever row it stands: the act that began it, and its first token.
pub type TurnKey = (Origin, u32);
