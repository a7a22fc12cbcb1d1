//! Jobs that the threads of this process do while the one that gives them makes more.

use std::sync::mpsc::{Receiver, Sender, channel};

use rayon::Scope;

use super::own_pool;

/// The results of jobs, each with its place among them.
type Done<T> = (Sender<(usize, T)>, Receiver<(usize, T)>);

/// Where jobs are handed out, and their results waited for.
pub(crate) struct Jobs<'a, 'scope, J, T> {
    scope: Option<&'a Scope<'scope>>,
    work: &'scope (dyn Fn(J) -> T + Sync),
    given: usize,
    done: Done<T>,
}

/// Lets `give` hand out jobs, each of which `work` does on another thread. Where there is none it is done at once.
pub(crate) fn beside<'scope, J: 'scope, T: 'scope, R>(
    work: &'scope (impl Fn(J) -> T + Sync),
    give: impl FnOnce(Jobs<'_, 'scope, J, T>) -> R,
) -> R {
    match own_pool() {
        Some(pool) => pool.in_place_scope(|scope| give(Jobs { scope: Some(scope), work, given: 0, done: channel() })),
        None => give(Jobs { scope: None, work, given: 0, done: channel() }),
    }
}

impl<'scope, J: Send + 'scope, T: Send + 'scope> Jobs<'_, 'scope, J, T> {
    /// Hands out a job.
    pub(crate) fn give(&mut self, job: J) {
        let (work, place, done) = (self.work, self.given, self.done.0.clone());
        self.given += 1;
        // The results go nowhere once nobody waits for them.
        let run = move || drop(done.send((place, work(job))));
        match self.scope {
            Some(scope) => scope.spawn(|_| run()),
            None => run(),
        }
    }

    /// Waits for the results of all jobs, in the order in which they were given.
    pub(crate) fn results(self) -> Vec<T> {
        let (sender, receiver) = self.done;
        drop(sender);
        let mut results: Vec<(usize, T)> = receiver.into_iter().collect();
        results.sort_unstable_by_key(|(place, _)| *place);
        results.into_iter().map(|(_, result)| result).collect()
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
}
