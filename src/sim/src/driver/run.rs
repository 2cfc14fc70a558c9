//! Running operations: inside driver calls, at the moments that the policy sees, and on the
//! watchdog for a program that makes no calls. The lock is never held while an operation runs.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::sim::{Held, Sim, say};
use super::state::Driver;
use super::work::{Job, Turn, Work};
use crate::errors::Outcome;
use crate::os;
use crate::schedule::{Idleness, Moment, OpId};

/// Pending operations at most; a submission beyond runs the oldest, as a full launch queue would.
const QUEUE_LIMIT: usize = 16_384;
/// How long a waiting call leaves an operation on another thread alone before it runs something
/// that might be holding that operation up.
const STALL: Duration = Duration::from_millis(50);

/// How long a wait for a word is left alone before it is looked at again.
const BLOCKED: Duration = Duration::from_micros(200);

impl Driver {
    /// The next of the paused operations, each in its turn: one may wait for another.
    fn next_paused(&mut self) -> Option<OpId> {
        let mut paused = self.queue.paused();
        let after = self.queue.paused().find(|op| Some(*op) > self.last_paused);
        let next = after.or_else(|| paused.next());
        drop(paused);
        self.last_paused = next;
        next
    }

    /// Gives back the memory whose stream-ordered free has run.
    fn reclaim(&mut self) {
        for start in std::mem::take(&mut self.released) {
            if let Some(region) = self.map.at(start).filter(|region| region.freed).cloned() {
                self.discard(&region);
            }
        }
    }

    /// Books the end of an operation.
    pub(super) fn complete(&mut self, op: OpId, job: &Job, cost: u64, result: Outcome) {
        self.clock += cost;
        self.staged = self.staged.saturating_sub(job.work.staged_bytes());
        match &job.work {
            Work::Record(stamp) => stamp.set(self.clock),
            Work::Release(start) => self.released.push(*start),
            Work::Marker
            | Work::Copy(_)
            | Work::Fill(_)
            | Work::Kernel(_)
            | Work::Host(_)
            | Work::Words(_) => {}
        }
        if let Err(error) = result
            && let Some(context) = self.contexts.get_mut(job.context)
        {
            context.poison.get_or_insert(error);
        }
        self.queue.finish(op);
    }
}

impl Sim {
    /// Runs an operation, or a turn of it.
    fn step(&'static self, mut driver: Held, op: OpId) -> Held {
        let Some(mut job) = driver.queue.start(op) else { return driver };
        let poison = driver.contexts.get(job.context).and_then(|context| context.poison);
        if poison.is_some() && !job.work.survives_fault() {
            driver.complete(op, &job, 0, Ok(()));
            self.changed.notify_all();
            return driver;
        }
        if matches!(job.work, Work::Host(_)) {
            return self.call_host(driver, op, job, poison);
        }
        let map = Arc::clone(&driver.map);
        drop(driver);
        let turn = job.work.run(&map, job.tag);
        drop(map);
        let mut driver = self.lock();
        match turn {
            Turn::Paused => driver.queue.pause(op, job),
            Turn::Blocked => {
                driver.queue.pause(op, job);
                // The word may be written by a thread of the program.
                let waited = self.changed.wait_timeout(driver, BLOCKED);
                driver = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            Turn::Done(cost, result) => driver.complete(op, &job, cost, result),
        }
        self.changed.notify_all();
        driver
    }

    /// A call has submitted work and is about to return: runs what the policy runs now.
    pub(super) fn submitted(&'static self, mut driver: Held) -> Held {
        while driver.queue.len() > QUEUE_LIMIT
            && let Some(op) = driver.choose(Moment::Idle)
        {
            driver = self.step(driver, op);
        }
        while let Some(op) = driver.choose(Moment::Submit) {
            driver = self.step(driver, op);
        }
        if driver.queue.len() > 0 {
            self.watch();
            self.changed.notify_all();
        }
        driver
    }

    /// Blocks until all of `targets` are done, running what they need.
    pub(super) fn wait(&'static self, mut driver: Held, targets: &[OpId]) -> Held {
        let past = driver.queue.past(targets);
        while !driver.all_done(targets) {
            if let Some(op) = driver.choose(Moment::Wait(&past)) {
                driver = self.step(driver, op);
            } else if paused_in(&driver, &past).is_some() {
                // An operation that outlasts its turn may be waiting for other work.
                if let Some(other) = driver.choose(Moment::Idle) {
                    driver = self.step(driver, other);
                }
                if let Some(op) = driver.next_paused() {
                    driver = self.step(driver, op);
                }
            } else {
                // The needed work runs on another thread.
                let waited = self.changed.wait_timeout(driver, STALL);
                let (held, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
                driver = held;
                if timeout.timed_out() {
                    driver = self.idle(driver).0;
                }
            }
        }
        driver.reclaim();
        driver
    }

    /// A call asked for `targets`: says whether they are done, and if not runs a bounded part of
    /// what they need, so that a program that polls gets there.
    pub(super) fn poll(&'static self, mut driver: Held, targets: &[OpId]) -> (Held, bool) {
        let past = driver.queue.past(targets);
        if past.is_empty() {
            return (driver, true);
        }
        let mut op = driver.choose(Moment::Poll(&past));
        if op.is_none() && paused_in(&driver, &past).is_some() {
            op = driver.next_paused();
        }
        if let Some(op) = op {
            driver = self.step(driver, op);
        }
        (driver, false)
    }

    /// Runs one operation, if any can run, because the program waits for something unknown.
    fn idle(&'static self, mut driver: Held) -> (Held, bool) {
        let ready = driver.choose(Moment::Idle);
        match ready.or_else(|| driver.next_paused()) {
            Some(op) => (self.step(driver, op), true),
            None => (driver, false),
        }
    }

    /// Starts the watchdog, once.
    fn watch(&'static self) {
        if self.watched.swap(true, Ordering::SeqCst) {
            return;
        }
        let signals = os::SignalsBlocked::new();
        let started =
            thread::Builder::new().name("sim-watchdog".into()).spawn(move || self.watchdog());
        drop(signals);
        if started.is_err() {
            say("no thread for the watchdog: a program that waits without driver calls will hang");
        }
    }

    fn watchdog(&'static self) {
        let mut idleness = Idleness::default();
        loop {
            let mut driver = self.lock();
            while driver.queue.len() == 0 {
                driver = self.changed.wait(driver).unwrap_or_else(PoisonError::into_inner);
            }
            drop(driver);
            thread::sleep(Idleness::SAMPLE);
            let calls = self.calls.load(Ordering::SeqCst);
            let cpu = os::cpu_time_of_others();
            if idleness.sample(calls, self.is_entered(), cpu, os::other_threads_sleep) {
                self.grant(calls);
            }
        }
    }

    /// Runs operations for the length of a sample, or until the program calls.
    fn grant(&'static self, calls: u64) {
        let until = Instant::now() + Idleness::SAMPLE;
        let mut driver = self.lock();
        let mut ran = true;
        while ran
            && Instant::now() < until
            && !self.is_entered()
            && self.calls.load(Ordering::SeqCst) == calls
        {
            (driver, ran) = self.idle(driver);
        }
    }

    fn is_entered(&self) -> bool {
        self.in_call.load(Ordering::SeqCst) > 0
    }
}

fn paused_in(driver: &Driver, past: &BTreeSet<OpId>) -> Option<OpId> {
    driver.queue.paused().find(|op| past.contains(op))
}
