//! The thread that owns the connection, so that inserting runs beside the caller's own work.
//!
//! Batches queue up to a bound in bytes and in number, so that a short pause of the disk does not
//! delay the caller; at the bound the caller waits. Invariant: the first failure rolls back the open
//! transaction and is kept until the caller asks for it; nothing is inserted after it.

use super::batch::{Batch, Spares};
use super::derived::Derived;
use super::sums::Sums;
use crate::failures::Failures;
use crate::lod::feed::Made;
use rusqlite::Connection;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Estimated bytes in the file that may wait. In memory they take less ([`super::delta_rows`]).
const MOST_WAITING: u64 = 8 << 20;
/// Batches that may wait: about as many full ones come to the bytes above. One with few rows keeps
/// the room of those that it held before.
const MOST_BATCHES: usize = 128;
/// Between two looks at whether that has become less.
const PAUSE: Duration = Duration::from_millis(1);

enum Job {
    Batch(Box<Batch>),
    Commit,
    Finish {
        truncated: bool,
    },
    /// Answered when everything before it is done.
    Done(SyncSender<()>),
}

/// The state that both threads share.
#[derive(Debug, Default)]
struct Shared {
    failed: AtomicBool,
    failure: Mutex<Option<rusqlite::Error>>,
    pages: AtomicU64,
    /// Number of finished commits.
    commits: AtomicU64,
    /// Estimated bytes of the batches that wait, and their number.
    waiting: AtomicU64,
    batches: AtomicUsize,
    /// The parts of the level of detail that needed no reading back.
    made: OnceLock<Made>,
    spares: Spares,
}

#[derive(Debug)]
pub(super) struct Worker {
    /// `None` once the thread has been told to end.
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
}

/// The thread has ended by a panic.
#[derive(Debug)]
pub(super) struct Gone;

impl Worker {
    /// `sums`: what the large tables hold already. `derived` goes along with the thread.
    pub(super) fn start(connection: Connection, sums: Sums, derived: Derived) -> io::Result<Self> {
        let (jobs, queue) = channel();
        let shared = Arc::new(Shared::default());
        let failures = Failures::of_this_thread();
        let mut inserter = Inserter { connection, sums, derived, failures, shared: shared.clone() };
        inserter.count_pages();
        let thread = std::thread::Builder::new()
            .name("trace writer".to_owned())
            .spawn(move || inserter.run(&queue))?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread), shared })
    }

    /// Hands a batch over; answers an empty one.
    pub(super) fn insert(&self, batch: Box<Batch>) -> Result<Box<Batch>, Gone> {
        while self.is_behind() {
            std::thread::sleep(PAUSE);
        }
        self.shared.waiting.fetch_add(batch.estimated_bytes(), Ordering::Relaxed);
        self.shared.batches.fetch_add(1, Ordering::Relaxed);
        self.send(Job::Batch(batch))?;
        Ok(self.shared.spares.take())
    }

    /// Commits; done when this returns.
    pub(super) fn commit(&self) -> Result<(), Gone> {
        self.begin_commit()?;
        self.wait()
    }

    /// Commits when it has come so far.
    pub(super) fn begin_commit(&self) -> Result<(), Gone> {
        self.send(Job::Commit)
    }

    /// Number of commits that have succeeded.
    pub(super) fn commits(&self) -> u64 {
        self.shared.commits.load(Ordering::Acquire)
    }

    /// Commits, indexes, leaves one file and marks; done when this returns. After a failure only
    /// marks, as far as that is possible.
    pub(super) fn finish(&self, truncated: bool) -> Result<(), Gone> {
        self.send(Job::Finish { truncated })?;
        self.wait()
    }

    /// The first failure, once; whether there was one stays.
    pub(super) fn failure(&self) -> Option<rusqlite::Error> {
        if !self.shared.failed.load(Ordering::Acquire) {
            return None;
        }
        self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Estimated bytes that wait to be inserted.
    pub(super) fn waiting_bytes(&self) -> u64 {
        self.shared.waiting.load(Ordering::Relaxed)
    }

    /// Whether the queue has reached its bound. A thread that has failed or ended does not count:
    /// it makes the queue no shorter.
    pub(super) fn is_behind(&self) -> bool {
        let batches = self.shared.batches.load(Ordering::Relaxed);
        (self.waiting_bytes() > MOST_WAITING || batches >= MOST_BATCHES) && self.is_inserting()
    }

    /// Size of the database in bytes, with an estimate of what waits.
    pub(super) fn size_bytes(&self, page_size: u64) -> u64 {
        let pages = self.shared.pages.load(Ordering::Relaxed);
        pages * page_size + self.waiting_bytes()
    }

    #[cfg(test)]
    pub(super) fn made(&self) -> Option<Made> {
        self.shared.made.get().copied()
    }

    fn is_inserting(&self) -> bool {
        let runs = self.thread.as_ref().is_some_and(|thread| !thread.is_finished());
        runs && !self.shared.failed.load(Ordering::Acquire)
    }

    fn send(&self, job: Job) -> Result<(), Gone> {
        self.jobs.as_ref().ok_or(Gone)?.send(job).map_err(|_| Gone)
    }

    fn wait(&self) -> Result<(), Gone> {
        let (done, answer) = sync_channel(1);
        self.send(Job::Done(done))?;
        answer.recv().map_err(|_| Gone)
    }
}

impl Drop for Worker {
    /// Ends the thread; what was not committed is undone.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A panic of it has been answered with `Gone`.
            let _ = thread.join();
        }
    }
}

pub(super) struct Inserter {
    pub(super) connection: Connection,
    pub(super) sums: Sums,
    pub(super) derived: Derived,
    pub(super) failures: Failures,
    shared: Arc<Shared>,
}

impl Inserter {
    fn run(&mut self, queue: &Receiver<Job>) {
        for job in queue {
            let failed = self.shared.failed.load(Ordering::Relaxed);
            let outcome = match job {
                Job::Done(done) => {
                    // Nobody waits any more: nothing to tell.
                    let _ = done.send(());
                    continue;
                }
                Job::Finish { .. } if failed => {
                    // The failure was reported, and there may be no room for this either.
                    let _ = self.give_up();
                    continue;
                }
                _ if failed => continue,
                Job::Batch(batch) => {
                    let bytes = batch.estimated_bytes();
                    let outcome = self.insert(batch);
                    self.shared.waiting.fetch_sub(bytes, Ordering::Relaxed);
                    self.shared.batches.fetch_sub(1, Ordering::Relaxed);
                    outcome
                }
                Job::Commit => self.commit().inspect(|()| {
                    self.shared.commits.fetch_add(1, Ordering::Release);
                }),
                Job::Finish { truncated } => self.finish(truncated),
            };
            self.count_pages();
            if let Err(failure) = outcome {
                self.fail(failure);
            }
        }
    }

    fn insert(&mut self, batch: Box<Batch>) -> rusqlite::Result<()> {
        self.begin()?;
        self.failures.point()?;
        batch.insert(&self.connection, &mut self.sums)?;
        self.derived.take(batch, &self.connection, &self.shared.spares)
    }

    pub(super) fn begin(&self) -> rusqlite::Result<()> {
        self.failures.point()?;
        if self.connection.is_autocommit() {
            self.connection.execute_batch("BEGIN")
        } else {
            Ok(())
        }
    }

    pub(super) fn commit(&self) -> rusqlite::Result<()> {
        self.failures.point()?;
        if self.connection.is_autocommit() {
            Ok(())
        } else {
            self.connection.execute_batch("COMMIT")
        }
    }

    /// Keeps what the level of detail was made of. A trace is finished once.
    pub(super) fn note_made(&self, made: Made) {
        let _ = self.shared.made.set(made);
    }

    #[cold]
    fn fail(&self, failure: rusqlite::Error) {
        if !self.connection.is_autocommit() {
            // If this fails too, SQLite undoes the rest of the transaction when the file is next
            // opened.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        *self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
        self.shared.failed.store(true, Ordering::Release);
    }

    fn count_pages(&self) {
        let pages = self
            .connection
            .prepare_cached("PRAGMA page_count")
            .and_then(|mut s| s.query_row([], |row| row.get::<_, i64>(0)));
        // A connection that cannot even say this has failed, or fails with the next batch.
        if let Ok(pages) = pages {
            self.shared.pages.store(pages as u64, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A worker whose thread takes nothing until the gate is dropped.
    fn stuck() -> (Worker, Sender<()>) {
        let (jobs, queue) = channel();
        let (gate, opened) = channel::<()>();
        let thread = std::thread::spawn(move || {
            let _ = opened.recv();
            drop(queue);
        });
        let shared = Arc::new(Shared::default());
        (Worker { jobs: Some(jobs), thread: Some(thread), shared }, gate)
    }

    /// How many batches are handed over before the next one has to wait.
    fn handed_over(filled: impl Fn() -> Box<Batch>) -> usize {
        let (worker, gate) = stuck();
        let mut count = 0;
        while !worker.is_behind() {
            worker.insert(filled()).expect("the thread runs");
            count += 1;
            assert!(count <= MOST_BATCHES, "more batches wait than may");
        }
        drop(gate);
        count
    }

    #[test]
    fn few_batches_wait_however_little_is_in_them() {
        assert_eq!(handed_over(Box::default), MOST_BATCHES);
    }

    #[test]
    fn fewer_large_batches_wait() {
        let text: Arc<str> = "x".repeat(1 << 20).into();
        let large = || Box::new(Batch { strings: vec![(1, text.clone())], ..Batch::default() });
        assert_eq!(handed_over(large), 8);
    }
}
