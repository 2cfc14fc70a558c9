//! The work of operations.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::copy::Copy;
use super::fill::Fill;
use super::host_call::HostCall;
use super::launch::KernelRun;
use super::words::Words;
use crate::errors::Outcome;
use crate::memory::AddressMap;

/// A pending operation.
#[derive(Debug)]
pub(crate) struct Job {
    /// The context that a failure of it poisons.
    pub(super) context: u64,
    /// The number of the driver call that submitted it, 0 if nobody counts.
    pub(super) tag: u64,
    pub(super) work: Work,
}

impl Job {
    pub(super) fn detached(work: Work) -> Job {
        Job { context: 0, tag: 0, work }
    }
}

/// The work of an operation when it runs.
#[derive(Debug)]
pub(super) enum Work {
    /// Nothing: waits, barriers, stream-ordered allocation, hints.
    Marker,
    /// An event's record: notes the time.
    Record(Arc<Stamp>),
    Copy(Box<Copy>),
    Fill(Fill),
    Kernel(Box<KernelRun>),
    Host(HostCall),
    /// Stream memory operations.
    Words(Words),
    /// The end of an allocation that `cuMemFreeAsync` freed: its start.
    Release(u64),
}

/// How far one turn of an operation got.
#[derive(Debug)]
pub(super) enum Turn {
    /// Done, after so many simulated nanoseconds.
    Done(u64, Outcome),
    /// A kernel used up its turn.
    Paused,
    /// It waits for a word to change.
    Blocked,
}

impl Work {
    /// Runs it, or one turn of it. Host functions never come here.
    pub(super) fn run(&mut self, map: &Arc<AddressMap>, tag: u64) -> Turn {
        match self {
            Work::Marker | Work::Record(_) | Work::Release(_) | Work::Host(_) => {
                Turn::Done(500, Ok(()))
            }
            Work::Copy(copy) => {
                let result = copy.run(map);
                Turn::Done(2_000 + copy.bytes() / 20, result)
            }
            Work::Fill(fill) => {
                let result = fill.run(map);
                Turn::Done(2_000 + fill.bytes() / 100, result)
            }
            Work::Kernel(kernel) => kernel.run(map, tag),
            Work::Words(words) => words.run(map),
        }
    }

    /// Whether it runs although a kernel has faulted in its context.
    pub(super) fn survives_fault(&self) -> bool {
        match self {
            Work::Marker | Work::Record(_) | Work::Release(_) => true,
            Work::Host(call) => call.runs_after_fault(),
            Work::Copy(_) | Work::Fill(_) | Work::Kernel(_) | Work::Words(_) => false,
        }
    }

    pub(super) fn staged_bytes(&self) -> u64 {
        if let Work::Copy(copy) = self { copy.staged_bytes() } else { 0 }
    }
}

/// When an event's record ran, in simulated nanoseconds; 0 while it has not.
#[derive(Debug, Default)]
pub(super) struct Stamp(AtomicU64);

impl Stamp {
    pub(super) fn set(&self, time: u64) {
        self.0.store(time, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
