//! A group as rows of the Arrow contract.

use serde_json::Value;

use super::sharing::{Piece, Sharing};
use super::{Group, TurnKey};
use crate::Result;
use crate::row::{Row, TurnRow, VersionRun};
use crate::trajectory::{Trajectory, Turn};

impl Group {
    /// One row a trajectory, in order.
    pub fn rows(&self) -> Result<Vec<Row>> {
        let sharing = Sharing::of(self);
        self.rows.iter().enumerate().map(|(index, trajectory)| self.row(index, trajectory, &sharing)).collect()
    }

    fn row(&self, index: usize, trajectory: &Trajectory, sharing: &Sharing<'_>) -> Result<Row> {
        let columns = trajectory.columns();
        let identity = trajectory.identity();
        let pieces: Vec<Piece> =
            columns.chunks().flat_map(|chunk| sharing.pieces(index, &chunk.origin, chunk.start..chunk.end)).collect();
        let mut loss_mask = columns.loss_mask();
        let mut loss_weight = columns.loss_weight().map(<[f32]>::to_vec);
        for piece in pieces.iter().filter(|piece| piece.trained_elsewhere) {
            let range = piece.range.start as usize..piece.range.end as usize;
            loss_mask[range.clone()].fill(0);
            if let Some(weight) = &mut loss_weight {
                weight[range].fill(0.0);
            }
        }
        Ok(Row {
            group_id: self.id.to_string(),
            rollout_id: identity.rollout_id.to_string(),
            trajectory_id: identity.id.to_string(),
            env: self.env.to_string(),
            agent: identity.agent.as_deref().map(str::to_owned),
            fork: trajectory.fork_point().cloned(),
            token_ids: columns.token_ids(),
            sampled_mask: columns.sampled_mask(),
            loss_mask,
            loss_weight,
            logprobs: trajectory.logprobs(),
            ref_logprobs: columns.has_reference().then(|| columns.reference_logprobs()),
            top_logprobs: columns.has_top().then(|| columns.top_logprobs()),
            advantages: self.advantage_column(trajectory, &pieces),
            message_index: columns.message_index(),
            turns: trajectory.turns().iter().map(turn_row).collect(),
            policy_versions: version_runs(trajectory),
            reward: self.reward_of_row(index).map(|reward| reward as f32),
            metrics: Value::Object(trajectory.metrics().clone()).to_string(),
            messages: trajectory.messages_json()?,
            tools: trajectory.tools_json(),
            provenance: Value::Object(trajectory.provenance()?).to_string(),
        })
    }

    /// The advantages of the sampled tokens, 0.0 elsewhere.
    fn advantage_column(&self, trajectory: &Trajectory, pieces: &[Piece]) -> Option<Vec<f32>> {
        let credit = self.credit.as_ref()?;
        let mut column = vec![0.0; trajectory.len()];
        for piece in pieces {
            let key = turn_at(trajectory, piece.range.start);
            let value = credit.value(key.as_ref(), &piece.units) as f32;
            column[piece.range.start as usize..piece.range.end as usize].fill(value);
        }
        Some(column)
    }

    /// The return of the row's own rollout, else of the first unit that goes on from the row.
    fn reward_of_row(&self, index: usize) -> Option<f64> {
        let identity = self.rows[index].identity();
        let own = self.units.iter().find(|unit| unit.is_of(identity));
        let unit = own.or_else(|| self.units.iter().find(|unit| unit.rows.contains(&index)))?;
        self.return_of(unit)
    }
}

/// The turn that holds the sampled token at `position`.
fn turn_at(trajectory: &Trajectory, position: u32) -> Option<TurnKey> {
    let turns = trajectory.turns();
    let turn = turns.partition_point(|turn| turn.end <= position);
    turns.get(turn).map(|turn| (turn.origin.clone(), turn.start))
}

fn turn_row(turn: &Turn) -> TurnRow {
    TurnRow {
        start: turn.start as i32,
        end: turn.end as i32,
        message: turn.message,
        finish_reason: turn.finish_reason.to_string(),
        reward: turn.reward.get().map(|reward| reward as f32),
    }
}

/// Runs of versions that cover exactly the sampled tokens, `None` if no version was recorded.
fn version_runs(trajectory: &Trajectory) -> Option<Vec<VersionRun>> {
    let mut runs: Vec<VersionRun> = Vec::new();
    for chunk in trajectory.columns().chunks() {
        let version = chunk.version?;
        match runs.last_mut() {
            Some(run) if run.end == chunk.start as i32 && run.version == version => run.end = chunk.end as i32,
            _ => runs.push(VersionRun { start: chunk.start as i32, end: chunk.end as i32, version }),
        }
    }
    (!runs.is_empty()).then_some(runs)
}
