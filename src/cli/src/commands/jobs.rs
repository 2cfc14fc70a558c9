//! Work on many traces at the same time, of which the results are taken in the order of the traces.
//!
//! Invariants:
//! - What comes out does not depend on the number of threads.
//! - A result waits for those before it, and threads go no further ahead than [`AHEAD`] results, so that
//!   memory does not grow with the number of traces.

use super::analysis::{progress_of_traces, without_bars};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Results that may wait for one that takes long, beside those in work.
const AHEAD: usize = 64;

/// The number of threads that a command uses where the user names none: the processors that this process
/// may use.
pub(super) fn jobs(asked: Option<NonZeroUsize>) -> NonZeroUsize {
    asked.unwrap_or_else(|| thread::available_parallelism().unwrap_or(NonZeroUsize::MIN))
}

/// The results of `work` on the numbers below `count`, handed to `take` in their order.
///
/// # Panics
/// Where `work` does.
pub(super) fn in_order<T: Send>(
    count: usize,
    jobs: NonZeroUsize,
    work: impl Fn(usize) -> T + Sync,
    mut take: impl FnMut(T),
) {
    let progress = progress_of_traces(count);
    let work = |at| without_bars(|| work(at));
    let mut take = |result| {
        take(result);
        progress.inc(1);
    };
    let jobs = jobs.get().min(count);
    if jobs <= 1 {
        (0..count).for_each(|at| take(work(at)));
    } else {
        let queue = Queue::new(count, jobs + AHEAD);
        thread::scope(|scope| {
            for _ in 0..jobs {
                scope.spawn(|| queue.work(&work));
            }
            let _ends = EndOfAll(&queue);
            (0..count).map_while(|at| queue.take(at)).for_each(&mut take);
        });
    }
    progress.finish_and_clear();
}

/// What is to be done, and what was done out of order.
struct Queue<T> {
    count: usize,
    ahead: usize,
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    /// The next number that nobody works on.
    next: usize,
    /// The number whose result is taken next.
    awaited: usize,
    done: BTreeMap<usize, T>,
    /// Nobody takes any result, or one will never come.
    is_over: bool,
}

impl<T> Queue<T> {
    fn new(count: usize, ahead: usize) -> Self {
        let state = State { next: 0, awaited: 0, done: BTreeMap::new(), is_over: false };
        Self { count, ahead, state: Mutex::new(state), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'q>(&self, state: MutexGuard<'q, State<T>>) -> MutexGuard<'q, State<T>> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// What one thread does.
    fn work(&self, work: &impl Fn(usize) -> T) {
        let ends = EndOfAll(self);
        while let Some(at) = self.next() {
            let result = work(at);
            self.state().done.insert(at, result);
            self.changed.notify_all();
        }
        // Only a panic of one ends the others.
        std::mem::forget(ends);
    }

    fn next(&self) -> Option<usize> {
        let mut state = self.state();
        while !state.is_over && state.next < self.count && state.next >= state.awaited + self.ahead
        {
            state = self.wait(state);
        }
        if state.is_over || state.next >= self.count {
            return None;
        }
        state.next += 1;
        Some(state.next - 1)
    }

    /// The result of this number. `None` where it will never come.
    fn take(&self, at: usize) -> Option<T> {
        let mut state = self.state();
        loop {
            if let Some(result) = state.done.remove(&at) {
                state.awaited = at + 1;
                self.changed.notify_all();
                return Some(result);
            }
            if state.is_over {
                return None;
            }
            state = self.wait(state);
        }
    }
}

/// Lets all threads end when it goes.
struct EndOfAll<'q, T>(&'q Queue<T>);

impl<T> Drop for EndOfAll<'_, T> {
    fn drop(&mut self) {
        self.0.state().is_over = true;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::{AHEAD, in_order};
    use std::num::NonZeroUsize;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::{Receiver, channel};
    use std::sync::{Mutex, PoisonError};

    fn jobs(jobs: usize) -> NonZeroUsize {
        NonZeroUsize::new(jobs).expect("not zero")
    }

    #[test]
    fn results_come_in_order_whatever_the_number_of_threads() {
        for (count, threads) in [(0, 1), (1, 8), (7, 1), (7, 2), (500, 3), (500, 64)] {
            let mut taken = Vec::new();
            in_order(count, jobs(threads), |at| at * at, |square| taken.push(square));
            let expected: Vec<usize> = (0..count).map(|at| at * at).collect();
            assert_eq!(taken, expected, "{threads}");
        }
    }

    /// One that takes long holds the others up only when they are far ahead, and no result is lost.
    #[test]
    fn threads_do_not_run_far_ahead() {
        const COUNT: usize = 10 * AHEAD;
        let begun = AtomicUsize::new(0);
        let (go, wait) = channel();
        let wait: Mutex<Receiver<()>> = Mutex::new(wait);
        let (told, most) = channel();
        let mut taken = 0;
        let work = |at: usize| {
            let now = begun.fetch_add(1, Ordering::SeqCst) + 1;
            if at == 0 {
                // Until the others cannot go on.
                let _ = wait.lock().unwrap_or_else(PoisonError::into_inner).recv();
                let _ = told.send(begun.load(Ordering::SeqCst));
            } else if now == 2 + AHEAD {
                let _ = go.send(());
            }
            at
        };
        in_order(COUNT, jobs(2), work, |_| taken += 1);
        assert_eq!(taken, COUNT);
        assert_eq!(most.recv(), Ok(2 + AHEAD));
    }

    #[test]
    fn a_panic_ends_everything() {
        let work = |at: usize| assert_ne!(at, 3, "as expected");
        let caught = std::panic::catch_unwind(|| in_order(1000, jobs(4), work, |()| {}));
        assert!(caught.is_err());
    }
}
