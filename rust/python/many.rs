//! Many conversations at once: while this thread, which holds the GIL, converts one, others render those before it.

use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::prelude::*;

use super::error::to_python;
use super::options::Options;
use crate::message::Conversation;
use crate::{Result, threads};

/// So many conversations are rendered in one go, where there are enough of them.
const TOGETHER: usize = 32;

/// Of each thread, so many goes: the last of them to end leaves the others without work.
const GOES: usize = 16;

/// What `render` makes of each conversation, in order, or the error of the first that cannot be converted or rendered.
/// The first conversation is shown to `check` before anything is rendered.
pub(super) fn rendered<'py, T: Send>(
    conversations: &Bound<'py, PyAny>,
    options: &Options<'py>,
    check: impl Fn(&Conversation) -> PyResult<()>,
    render: impl Fn(Conversation) -> Result<T> + Sync,
) -> PyResult<Vec<T>> {
    let py = conversations.py();
    let count = conversations.len().unwrap_or(TOGETHER * GOES * threads::count());
    let together = (count / (GOES * threads::count())).clamp(1, TOGETHER);
    let failed = AtomicUsize::new(usize::MAX);
    let work = |(first, conversations): (usize, Vec<Conversation>)| {
        if failed.load(Ordering::Relaxed) < first {
            return Ok(Vec::new());
        }
        let render = |(index, conversation)| {
            render(conversation).map_err(|error| {
                failed.fetch_min(index, Ordering::Relaxed);
                error.within(&format!("conversation {index}"))
            })
        };
        (first..).zip(conversations).map(render).collect::<Result<Vec<T>>>()
    };
    let convert = |index, messages: Bound<'py, PyAny>| {
        let conversation = options.conversation(&messages)?;
        if index == 0 {
            check(&conversation)?;
        }
        Ok(conversation)
    };
    threads::beside(&work, |mut jobs| {
        let (mut first, mut waiting, mut fault) = (0, Vec::with_capacity(together), None);
        for (index, messages) in conversations.try_iter()?.enumerate() {
            match messages.and_then(|messages| convert(index, messages)) {
                Ok(conversation) => waiting.push(conversation),
                Err(error) => fault = Some(error),
            }
            if fault.is_some() || failed.load(Ordering::Relaxed) < index {
                break;
            }
            if waiting.len() == together {
                jobs.give((first, std::mem::replace(&mut waiting, Vec::with_capacity(together))));
                first = index + 1;
            }
        }
        jobs.give((first, waiting));
        let chunks: Result<Vec<Vec<T>>> = py.detach(|| jobs.results().into_iter().collect());
        let chunks = chunks.map_err(|error| to_python(py, &error))?;
        fault.map_or_else(|| Ok(chunks.into_iter().flatten().collect()), Err)
    })
}
