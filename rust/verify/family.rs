//! Fragments and branches against the row they leave: the same tokens up to there, trained in one of the two.

use std::collections::HashMap;

use arrow_array::Array;

use super::fault::{Found, Kind};
use super::tape::Tape;
use crate::arrow::View;
use crate::{Result, TokenId};

/// The rows of the current group, while some may have children; no more than one group is kept.
#[derive(Debug, Default)]
pub(super) struct Family {
    group: String,
    rows: HashMap<String, (Vec<TokenId>, Vec<u8>)>,
    /// The batch has rows with parents: all of its rows are kept while their group lasts.
    has_children: bool,
    last_group: String,
}

impl Family {
    /// Looks at a batch before its rows are checked.
    pub(super) fn enter(&mut self, view: &View<'_>) -> Result<()> {
        let (parents, groups) = (view.text("parent_id")?, view.text("group_id")?);
        self.has_children = parents.null_count() < parents.len();
        self.last_group.clear();
        if let Some(last) = view.len().checked_sub(1) {
            self.last_group.push_str(groups.value(last));
        }
        Ok(())
    }

    /// Checks a row against its parent, if it has one in its group, and keeps it for its own children.
    pub(super) fn check(&mut self, view: &View<'_>, row: usize, found: &mut Found) -> Result<()> {
        let group = view.text("group_id")?.value(row);
        if group != self.group {
            group.clone_into(&mut self.group);
            self.rows.clear();
        }
        let tape = Tape::new(view, row);
        let parents = view.text("parent_id")?;
        if !parents.is_null(row)
            && let Some((ids, loss)) = self.rows.get(parents.value(row))
        {
            let at = view.fork_at(row).unwrap_or_default();
            against(&tape, ids, loss, usize::try_from(at).unwrap_or(usize::MAX), found);
        }
        if self.has_children || group == self.last_group {
            let id = view.text("trajectory_id")?.value(row).to_owned();
            self.rows.insert(id, (tape.ids.to_vec(), tape.loss.to_vec()));
        }
        Ok(())
    }
}

fn against(tape: &Tape<'_>, ids: &[TokenId], loss: &[u8], at: usize, found: &mut Found) {
    if at > tape.ids.len() || at > ids.len() {
        let message = format!("the row leaves its parent at token {at}, where one of the two has ended");
        found.row(Kind::BrokenParent, "fork_at", message);
        return;
    }
    if let Some(token) = (0..at).find(|token| tape.ids[*token] != ids[*token]) {
        let message =
            format!("the token is {}, and {} in the parent, which the row leaves at {at}", tape.ids[token], ids[token]);
        found.tokens(Kind::BrokenParent, "token_ids", token..token + 1, message);
        return;
    }
    let twice = (0..at.min(tape.loss.len()).min(loss.len())).find(|token| tape.loss[*token] != 0 && loss[*token] != 0);
    if let Some(token) = twice {
        let message = "the token carries loss in this row and in its parent";
        found.tokens(Kind::TrainedTwice, "loss_mask", token..token + 1, message);
    }
}
