//! The threads that share the work of a batch.
//!
//! *Invariant*: no process waits for threads that it does not have. A fork copies the memory of a pool but none of its
//! threads, so each process makes a pool of its own, and finds it by its own number.

use std::sync::OnceLock;

use rayon::{ThreadPool, ThreadPoolBuilder};

/// A pool for each generation of forks; a process finds those of its ancestors filled.
static POOLS: [OnceLock<(u32, Option<ThreadPool>)>; 8] = [const { OnceLock::new() }; 8];

/// Runs work whose parallel iterators use the threads of this process.
pub(crate) fn shared<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    match own_pool() {
        Some(pool) => pool.install(work),
        None => work(),
    }
}

fn own_pool() -> Option<&'static ThreadPool> {
    let process = std::process::id();
    let make = || (process, ThreadPoolBuilder::new().build().ok());
    POOLS.iter().map(|slot| slot.get_or_init(make)).find(|pool| pool.0 == process)?.1.as_ref()
}
