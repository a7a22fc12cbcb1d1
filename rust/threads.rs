//! The threads that share the work of a batch.
//!
//! *Invariant*: no process waits for threads that it does not have. A fork copies the memory of a pool but none of its
//! threads, so each process makes a pool of its own, and finds it by its own number.

#[cfg(any(feature = "python", test))]
mod jobs;

use std::sync::OnceLock;

use rayon::iter::{FromParallelIterator, IntoParallelIterator, ParallelIterator};
use rayon::{ThreadPool, ThreadPoolBuilder};

#[cfg(feature = "python")]
pub(crate) use jobs::beside;

/// Values that are read at the speed of memory and repay the waking of threads.
const REPAYS_WAKING: usize = 1 << 20;

/// A pool for each generation of forks; a process finds those of its ancestors filled.
static POOLS: [OnceLock<(u32, Option<ThreadPool>)>; 8] = [const { OnceLock::new() }; 8];

/// Runs work whose parallel iterators use the threads of this process.
pub(crate) fn shared<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    match own_pool() {
        Some(pool) => pool.install(work),
        None => work(),
    }
}

/// The results for `0..count`, in order. Threads are woken where that many `values` are read in all; less is done here.
pub(crate) fn collected<T, C>(count: usize, values: usize, work: impl Fn(usize) -> T + Sync + Send) -> C
where
    T: Send,
    C: FromIterator<T> + FromParallelIterator<T> + Send,
{
    if !repaid(values) {
        return (0..count).map(work).collect();
    }
    shared(|| (0..count).into_par_iter().map(work).collect())
}

/// What `look` finds at the first place of `0..count` where it finds something; threads are woken as by [`collected`].
pub(crate) fn first<T: Send>(
    count: usize,
    values: usize,
    look: impl Fn(usize) -> Option<T> + Sync + Send,
) -> Option<T> {
    if !repaid(values) {
        return (0..count).find_map(look);
    }
    shared(|| (0..count).into_par_iter().find_map_first(look))
}

/// Whether reading so many values repays the waking of threads.
pub(crate) fn repaid(values: usize) -> bool {
    values >= REPAYS_WAKING && count() > 1
}

/// How many threads share the work of a batch in this process.
pub(crate) fn count() -> usize {
    own_pool().map_or(1, ThreadPool::current_num_threads)
}

fn own_pool() -> Option<&'static ThreadPool> {
    let process = std::process::id();
    let make = || (process, ThreadPoolBuilder::new().build().ok());
    POOLS.iter().map(|slot| slot.get_or_init(make)).find(|pool| pool.0 == process)?.1.as_ref()
}
