//! The knowledge of a process's host, now and once running blocking calls have returned.
//!
//! The default host model is `observed`: completion that any host thread has observed orders
//! everything issued later by any thread, because the analysis cannot see the program's own locks.
//! A process therefore has one host. With strict host threads every thread is a host of its own.
//!
//! Invariant: the knowledge of a host only grows; what a blocking call has waited for counts from
//! the call's return on, never earlier.

use crate::clock::{Agent, Know, Part};
use crate::state::Waits;
use smallvec::SmallVec;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use streamsan_model::{ContextId, OpSeq, ProcessId, Tier};

/// The knowledge that a call gives to the host: snapshots taken at the call's entry.
#[derive(Clone, Debug)]
pub(crate) struct Acquisition {
    /// The call.
    pub(crate) by: OpSeq,
    /// How far the order can be relied on.
    pub(crate) tier: Tier,
    /// Points in chains.
    pub(crate) parts: SmallVec<[Part; 1]>,
    /// Whole contexts: all work issued in them before the call.
    pub(crate) floors: SmallVec<[ContextId; 1]>,
}

impl Acquisition {
    pub(crate) fn new(by: OpSeq, tier: Tier) -> Self {
        Self { by, tier, parts: SmallVec::new(), floors: SmallVec::new() }
    }

    /// Adds the acquisition to an agent's knowledge.
    pub(crate) fn apply(&self, know: &mut Know) {
        match self.tier {
            Tier::Documented => {
                for part in &self.parts {
                    know.acquire(part);
                }
                for &context in &self.floors {
                    know.raise_floor(context, self.by.0);
                }
            }
            Tier::Incidental => {
                for part in &self.parts {
                    know.acquire_incidentally(part);
                }
                for &context in &self.floors {
                    know.raise_floor_incidentally(context, self.by.0);
                }
            }
        }
    }
}

/// The host of one process, or one thread of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Host {
    /// The host's process; `None` before the host has done anything.
    pub(crate) process: Option<ProcessId>,
    /// The host's knowledge now.
    pub(crate) know: Arc<Know>,
    /// The version of `know`: streams join `know` only when the version has changed. No two hosts
    /// have the same version.
    pub(crate) version: u64,
    /// Acquisitions of returned calls, each with its return and in the order of returns, as long as no
    /// operation has been issued after that return. Mostly there is one.
    returned: VecDeque<(OpSeq, Acquisition)>,
    /// Acquisitions of calls that are still running.
    running: BTreeMap<OpSeq, SmallVec<[Acquisition; 1]>>,
    /// The newest waits for events, for explanations.
    pub(crate) waits: Waits,
}

impl Host {
    /// Makes the host of an agent.
    pub(crate) fn new(agent: Agent, process: ProcessId) -> Self {
        let version = u64::from(agent.0) << 40;
        Self { process: Some(process), version, ..Self::default() }
    }

    /// Adds to the host's knowledge, from now on.
    pub(crate) fn learn(&mut self, news: &Know) {
        Arc::make_mut(&mut self.know).join(news);
        self.version += 1;
    }

    /// Schedules the call's acquisition for operations issued after `exit`. Without `exit` the call
    /// is still running.
    pub(crate) fn schedule(&mut self, acquisition: Acquisition, exit: Option<OpSeq>) {
        match exit {
            Some(exit) => self.learn_at(exit, acquisition),
            None => self.running.entry(acquisition.by).or_default().push(acquisition),
        }
    }

    /// Completes the running call `g`.
    pub(crate) fn returned(&mut self, g: OpSeq, exit: OpSeq, success: bool) {
        self.waits.returned(g, exit, success);
        if let Some(acquisitions) = self.running.remove(&g)
            && success
        {
            acquisitions.into_iter().for_each(|acquisition| self.learn_at(exit, acquisition));
        }
    }

    fn learn_at(&mut self, exit: OpSeq, acquisition: Acquisition) {
        let later = self.returned.iter().rev().take_while(|(other, _)| *other > exit).count();
        self.returned.insert(self.returned.len() - later, (exit, acquisition));
    }

    /// Brings the host's knowledge up to date for an operation issued at `g`.
    #[inline]
    pub(crate) fn catch_up(&mut self, g: OpSeq) {
        if !self.returned.is_empty() {
            self.learn_returned(g);
        }
    }

    fn learn_returned(&mut self, g: OpSeq) {
        while self.returned.front().is_some_and(|(exit, _)| *exit < g)
            && let Some((_, acquisition)) = self.returned.pop_front()
        {
            acquisition.apply(Arc::make_mut(&mut self.know));
            self.version += 1;
        }
    }
}
