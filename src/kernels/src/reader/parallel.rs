//! Work on items that are independent of each other, by several threads.

use std::sync::{Mutex, PoisonError};
use std::thread;

/// The results of `work` for each item, in no order. Items are taken from the iterator by the
/// thread that works on them, so that only as many exist at a time as there are threads.
///
/// # Panics
/// When `work` does.
pub(super) fn in_parallel<I: ExactSizeIterator + Send, T: Send>(
    threads: usize,
    items: I,
    work: impl Fn(I::Item) -> T + Sync,
) -> Vec<T> {
    let threads = threads.min(items.len());
    if threads <= 1 {
        return items.map(work).collect();
    }
    let items = Mutex::new(items);
    let take = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    let run = || {
        let mut made = Vec::new();
        while let Some(item) = take() {
            made.push(work(item));
        }
        made
    };
    thread::scope(|scope| {
        // Where no thread can be started, this one does all.
        let start =
            |_| thread::Builder::new().name("kernel reader".to_owned()).spawn_scoped(scope, run);
        let others: Vec<_> = (1..threads).filter_map(|at| start(at).ok()).collect();
        let mut made = run();
        for other in others {
            match other.join() {
                Ok(more) => made.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        made
    })
}
