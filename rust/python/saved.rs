//! Trajectories for pickle: arrays, one JSON text a fragment, and the chat, which pickles itself.

use std::sync::Arc;

use pyo3::prelude::*;

use super::chat::PyChat;
use super::gil::detached;
use crate::TokenId;
use crate::columns::SavedColumns;
use crate::trajectory::{ChatObject, Saved, Trajectory};

/// One fragment: structure, ids, logprobs, chosen mask and weights.
pub(super) type Fragment = (String, Vec<TokenId>, Vec<f32>, Option<Vec<u8>>, Option<Vec<f32>>);

/// What a trajectory is restored from: its fragments, the oldest first, and its chat.
pub(super) type State = (Vec<Fragment>, Option<Py<PyAny>>);

pub(super) fn save(py: Python<'_>, trajectory: &Trajectory) -> State {
    let fragment = |saved: Saved| {
        let SavedColumns { token_ids, logprobs, loss_mask, loss_weight, .. } = saved.columns;
        (saved.structure, token_ids, logprobs, loss_mask, loss_weight)
    };
    let chat = trajectory.dialogue().and_then(|dialogue| dialogue.chat.as_ref()?.downcast_ref::<Py<PyAny>>());
    (trajectory.save().into_iter().map(fragment).collect(), chat.map(|chat| chat.clone_ref(py)))
}

pub(super) fn restore(
    py: Python<'_>,
    fragments: Vec<Fragment>,
    chat: Option<Bound<'_, PyChat>>,
) -> PyResult<Trajectory> {
    let saved = |(structure, token_ids, logprobs, loss_mask, loss_weight): Fragment| Saved {
        columns: SavedColumns { token_ids, logprobs, loss_mask, loss_weight, ..SavedColumns::default() },
        structure,
    };
    let chat = chat.map(|chat| {
        let object: ChatObject = Arc::new(chat.clone().into_any().unbind());
        (chat.get().renderer().clone(), object)
    });
    detached(py, || Trajectory::restore(fragments.into_iter().map(saved).collect(), chat.as_ref()))
}
