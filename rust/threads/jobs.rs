//! Jobs that the threads of this process do while the one that gives them makes more.
//!
//! The thread that waits for their results is woken once, when all are there: one that woke for each would take turns with
//! a thread that works.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rayon::Scope;

use super::own_pool;

/// Where jobs are handed out, and their results waited for.
pub(crate) struct Jobs<'a, 'scope, J, T> {
    scope: Option<&'a Scope<'scope>>,
    work: &'scope (dyn Fn(J) -> T + Sync),
    given: usize,
    progress: Arc<Progress<T>>,
}

/// What has become of the jobs.
struct Progress<T> {
    state: Mutex<State<T>>,
    ended: Condvar,
}

struct State<T> {
    /// Results, each with the place of its job.
    results: Vec<(usize, T)>,
    running: usize,
    awaited: bool,
}

/// A job that has not ended. It ends when this is dropped, also where its work panics.
struct Running<T>(Arc<Progress<T>>);

/// Lets `give` hand out jobs, each of which `work` does on another thread. Where there is none it is done at once.
pub(crate) fn beside<'scope, J: 'scope, T: 'scope, R>(
    work: &'scope (impl Fn(J) -> T + Sync),
    give: impl FnOnce(Jobs<'_, 'scope, J, T>) -> R,
) -> R {
    match own_pool() {
        Some(pool) => pool.in_place_scope(|scope| give(Jobs::new(Some(scope), work))),
        None => give(Jobs::new(None, work)),
    }
}

impl<'a, 'scope, J, T> Jobs<'a, 'scope, J, T> {
    fn new(scope: Option<&'a Scope<'scope>>, work: &'scope (dyn Fn(J) -> T + Sync)) -> Self {
        let state = State { results: Vec::new(), running: 0, awaited: false };
        Self { scope, work, given: 0, progress: Arc::new(Progress { state: Mutex::new(state), ended: Condvar::new() }) }
    }
}

impl<'scope, J: Send + 'scope, T: Send + 'scope> Jobs<'_, 'scope, J, T> {
    /// Hands out a job.
    pub(crate) fn give(&mut self, job: J) {
        let (work, place) = (self.work, self.given);
        self.given += 1;
        self.progress.state().running += 1;
        let running = Running(self.progress.clone());
        let run = move || {
            let result = work(job);
            running.0.state().results.push((place, result));
        };
        match self.scope {
            Some(scope) => scope.spawn(|_| run()),
            None => run(),
        }
    }

    /// Waits for the results of all jobs, in the order in which they were given.
    pub(crate) fn results(self) -> Vec<T> {
        let mut state = self.progress.state();
        state.awaited = true;
        while state.running > 0 {
            state = self.progress.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let mut results = std::mem::take(&mut state.results);
        drop(state);
        results.sort_unstable_by_key(|(place, _)| *place);
        results.into_iter().map(|(_, result)| result).collect()
    }
}

impl<T> Progress<T> {
    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.running -= 1;
        if state.awaited && state.running == 0 {
            self.0.ended.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_their_jobs() {
        let work = |number: usize| (0..number % 7 * 1000).fold(number, |sum, _| std::hint::black_box(sum));
        let results = beside(&work, |mut jobs| {
            (0..500).for_each(|number| jobs.give(number));
            jobs.results()
        });
        assert_eq!(results, (0..500).collect::<Vec<_>>());
    }

    #[test]
    fn jobs_that_nobody_waits_for_are_done_all_the_same() {
        let done = std::sync::atomic::AtomicUsize::new(0);
        let work = |_: usize| done.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        beside(&work, |mut jobs| (0..100).for_each(|number| jobs.give(number)));
        assert_eq!(done.into_inner(), 100);
    }

    #[test]
    #[expect(clippy::panic, reason = "what is tested")]
    fn a_job_that_panics_keeps_nobody_waiting() {
        let work = |number: usize| if number == 7 { panic!("seven") } else { number };
        let caught = std::panic::catch_unwind(|| {
            beside(&work, |mut jobs| {
                (0..100).for_each(|number| jobs.give(number));
                jobs.results().len()
            })
        });
        assert!(caught.is_err());
    }
}
