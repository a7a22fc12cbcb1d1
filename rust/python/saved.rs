//! Trajectories for pickle: arrays, one JSON text a fragment, and the chat, which pickles itself.

use std::sync::Arc;

use pyo3::prelude::*;

use super::chat::PyChat;
use super::gil::detached;
use crate::TokenId;
use crate::columns::SavedColumns;
use crate::top_logprobs::TopLogprobs;
use crate::trajectory::{ChatObject, ChatParts, Saved, Trajectory};

/// One fragment: structure, ids, logprobs, chosen mask and weights, reference logprobs, alternatives.
pub(super) type Fragment = (String, Vec<TokenId>, Vec<f32>, Option<Vec<u8>>, Option<Vec<f32>>, Vec<f32>, Alternatives);

/// Alternatives at sampled tokens: where those of each end, ids, logprobs.
type Alternatives = (Vec<u32>, Vec<TokenId>, Vec<f32>);

/// What a trajectory is restored from: its fragments, the oldest first, and its chat.
pub(super) type State = (Vec<Fragment>, Option<Py<PyAny>>);

pub(super) fn save(py: Python<'_>, trajectory: &Trajectory) -> State {
    let fragment = |saved: Saved| {
        let SavedColumns { token_ids, logprobs, loss_mask, loss_weight, reference, top, .. } = saved.columns;
        let top = (top.ends, top.ids, top.logprobs);
        (saved.structure, token_ids, logprobs, loss_mask, loss_weight, reference, top)
    };
    let chat = trajectory.dialogue().and_then(|dialogue| dialogue.chat.as_ref()?.downcast_ref::<Py<PyAny>>());
    (trajectory.save().into_iter().map(fragment).collect(), chat.map(|chat| chat.clone_ref(py)))
}

pub(super) fn restore(
    py: Python<'_>,
    fragments: Vec<Fragment>,
    chat: Option<Bound<'_, PyChat>>,
) -> PyResult<Trajectory> {
    let saved = |fragment: Fragment| {
        let (structure, token_ids, logprobs, loss_mask, loss_weight, reference, (ends, ids, values)) = fragment;
        let top = TopLogprobs { ends, ids, logprobs: values };
        let columns =
            SavedColumns { token_ids, logprobs, reference, top, loss_mask, loss_weight, ..SavedColumns::default() };
        Saved { columns, structure }
    };
    let chat = chat.map(|chat| {
        let object: ChatObject = Arc::new(chat.clone().into_any().unbind());
        ChatParts { renderer: chat.get().renderer().clone(), reader: chat.get().reader().clone(), object }
    });
    detached(py, || Trajectory::restore(fragments.into_iter().map(saved).collect(), chat.as_ref()))
}
