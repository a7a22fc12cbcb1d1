//! Names for trajectories and rollouts.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Who a trajectory is: itself, the episode it is part of, and which of several agents acted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// This fragment.
    pub id: Arc<str>,
    /// The episode.
    pub rollout_id: Arc<str>,
    /// The agent, when a rollout has several.
    pub agent: Option<Arc<str>>,
}

impl Identity {
    /// The only trajectory of a new rollout; `id` is made up when it is not given.
    pub fn new(id: Option<Arc<str>>) -> Self {
        let id = id.unwrap_or_else(fresh_id);
        Self { rollout_id: Arc::clone(&id), id, agent: None }
    }

    /// Another trajectory of the same rollout and agent.
    #[must_use]
    pub fn fragment(&self) -> Self {
        Self { id: fresh_id(), ..self.clone() }
    }

    /// The same agent in a rollout of its own.
    #[must_use]
    pub fn branch(&self) -> Self {
        Self { agent: self.agent.clone(), ..Self::new(None) }
    }
}

/// A name that no other trajectory has, in this process, its forks, or on another machine: 32 hexadecimal digits.
fn fresh_id() -> Arc<str> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    // A forked process inherits the hash keys of its parent, so its own number goes in beside them.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_nanos());
    let keys = RandomState::new();
    let half = |salt: u8| {
        let mut hasher = keys.build_hasher();
        hasher.write_u8(salt);
        hasher.write_u64(count);
        hasher.write_u32(std::process::id());
        hasher.write_u128(now);
        hasher.finish()
    };
    format!("{:016x}{:016x}", half(0), half(1)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_and_fragments_share_the_rollout() {
        let first = Identity::new(None);
        let fragment = first.fragment();
        assert_ne!(first.id, fragment.id);
        assert_eq!(first.rollout_id, fragment.rollout_id);
        assert_ne!(first.branch().rollout_id, first.rollout_id);
    }
}
