//! Rows that are copies: remembered by a hash, over a window of rows, so that memory does not grow with the file.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::tape::Tape;
use crate::arrow::View;
use crate::{Error, Result};

/// Copies are found this many rows apart.
const WINDOW: usize = 1 << 18;

/// What was seen, the oldest first out.
#[derive(Debug, Default)]
pub(super) struct Seen {
    rows: HashMap<u64, usize>,
    order: VecDeque<u64>,
}

impl Seen {
    /// The row that had this key, if one had; else `row` is remembered for it.
    pub(super) fn before(&mut self, key: u64, row: usize) -> Option<usize> {
        if let Some(earlier) = self.rows.get(&key) {
            return Some(*earlier);
        }
        if self.order.len() == WINDOW
            && let Some(oldest) = self.order.pop_front()
        {
            self.rows.remove(&oldest);
        }
        self.rows.insert(key, row);
        self.order.push_back(key);
        None
    }
}

/// The keys of a row: of its whole content, where a copy says something, and of its id.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Keys {
    pub(super) content: Option<u64>,
    pub(super) id: Option<u64>,
}

/// The texts that tell rows apart: those of a row with an id, and those of one without, whose group may be a number only.
const TEXTS: [&str; 4] = ["messages", "group_id", "rollout_id", "trajectory_id"];
const TEXTS_WITHOUT_ID: usize = 1;

/// Hashes a row. Two answers may be equal, and so a row without id and without logprobs has no key.
pub(super) fn keys(view: &View<'_>, row: usize, tape: &Tape<'_>, reward: Option<f32>) -> Result<Keys> {
    let id = view.text("trajectory_id")?.value(row);
    let id = (!id.is_empty()).then(|| hash(|hasher| id.hash(hasher)));
    if tape.logprobs.is_none() && id.is_none() || tape.ids.is_empty() {
        return Ok(Keys { content: None, id });
    }
    let names = if id.is_none() { &TEXTS[..TEXTS_WITHOUT_ID] } else { &TEXTS[..] };
    let texts: Vec<&str> =
        names.iter().map(|name| Ok::<_, Error>(view.text(name)?.value(row))).collect::<Result<_>>()?;
    let content = hash(|hasher| {
        tape.ids.hash(hasher);
        tape.sampled.hash(hasher);
        tape.loss.hash(hasher);
        floats(tape.logprobs, hasher);
        floats(view.advantages.get(row), hasher);
        reward.map(f32::to_bits).hash(hasher);
        texts.hash(hasher);
    });
    Ok(Keys { content: Some(content), id })
}

fn hash(feed: impl FnOnce(&mut DefaultHasher)) -> u64 {
    let mut hasher = DefaultHasher::new();
    feed(&mut hasher);
    hasher.finish()
}

fn floats(values: Option<&[f32]>, hasher: &mut DefaultHasher) {
    let Some(values) = values else { return hasher.write_u8(0) };
    for value in values {
        hasher.write_u32(value.to_bits());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_forgotten_only_after_the_window() {
        let mut seen = Seen::default();
        assert_eq!(seen.before(7, 0), None);
        assert_eq!(seen.before(7, 1), Some(0));
        for row in 0..WINDOW {
            seen.before(row as u64 + 100, row);
        }
        assert_eq!(seen.before(7, 2), None);
    }
}
