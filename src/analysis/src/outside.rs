//! Waits for an agent outside of the recording: another process, a kernel, a store by the host, a
//! signal that is issued later. The analysis does not know what such a wait is behind.
//!
//! Invariant: a pair that such a wait may have been meant to order is at most `possible`; it is
//! never dropped.

use crate::clock::{Agent, Chain, Part};
use crate::core::{Core, View};
use crate::record::AccessRecord;
use std::collections::BTreeMap;
use std::sync::Arc;
use streamsan_model::OpSeq;

/// All waits for outside agents, by the place of the wait.
#[derive(Debug, Default)]
pub(crate) struct Outside {
    /// Waits in chains, by slot; in ascending order.
    chains: BTreeMap<u32, (Chain, Vec<OpSeq>)>,
    /// Waits of hosts, by agent: the return and the call.
    hosts: BTreeMap<Agent, Vec<(OpSeq, OpSeq)>>,
    /// The chain of waits that stand in no stream.
    apart: Option<Chain>,
    /// Calls of hosts that have not returned yet.
    running: BTreeMap<OpSeq, Agent>,
}

impl Outside {
    /// Whether no such wait has been seen, and none is running.
    pub(crate) fn is_empty(&self) -> bool {
        self.chains.is_empty() && self.hosts.is_empty() && self.running.is_empty()
    }

    /// Notes that the operation `wait` of a chain has waited.
    pub(crate) fn note(&mut self, chain: Chain, wait: OpSeq) {
        let (of, waits) = self.chains.entry(chain.slot).or_insert_with(|| (chain, Vec::new()));
        if *of != chain {
            // The slot has another owner; the former owner's waits tell nothing about it.
            (*of, *waits) = (chain, Vec::new());
        }
        waits.push(wait);
    }

    /// Notes that the call `wait` of a host has waited, or will have waited at its return.
    pub(crate) fn note_host(&mut self, agent: Agent, wait: OpSeq, exit: Option<OpSeq>) {
        match exit {
            Some(exit) => self.hosts.entry(agent).or_default().push((exit, wait)),
            None => {
                self.running.insert(wait, agent);
            }
        }
    }

    /// Completes a running call.
    pub(crate) fn returned(&mut self, wait: OpSeq, exit: OpSeq, success: bool) {
        if let Some(agent) = self.running.remove(&wait)
            && success
        {
            self.hosts.entry(agent).or_default().push((exit, wait));
        }
    }

    /// The newest wait that one side of a pair is behind and the other side is not. An earlier side
    /// that is not behind the wait may be what the wait waits for. The same holds for a later side
    /// that is issued during the wait.
    pub(crate) fn between(&self, earlier: &AccessRecord, later: &AccessRecord) -> Option<OpSeq> {
        let in_chains = self.chains.values().filter_map(|(chain, waits)| {
            let (a, b) = (earlier.view.known(*chain), later.view.known(*chain));
            let below = waits.partition_point(|wait| wait.0 <= a.max(b));
            waits[..below].last().filter(|wait| wait.0 > a.min(b)).copied()
        });
        let known = |side: &AccessRecord, agent: Agent| known_host(&side.view, side.op, agent);
        let on_hosts = self.hosts.iter().filter_map(|(&agent, waits)| {
            let (a, b) = (known(earlier, agent), known(later, agent));
            let found = waits.iter().filter(|(exit, _)| a.min(b) < exit.0 && exit.0 <= a.max(b));
            found.map(|&(_, wait)| wait).max()
        });
        in_chains.chain(on_hosts).max()
    }
}

impl Core {
    /// A point, in no stream's chain, that stands for a wait for an outside agent: whoever is
    /// behind the wait is behind the point. It seems to be behind earlier waits of the kind too, so
    /// their pairs become `possible` as well.
    pub(crate) fn wait_for_outsider(&mut self, wait: OpSeq) -> Part {
        let chain = match self.outside.apart {
            Some(chain) => chain,
            None => self.new_chain(Chain::NOWHERE),
        };
        self.outside.apart = Some(chain);
        self.outside.note(chain, wait);
        Part { chain, g: wait.0, know: Arc::default() }
    }
}

/// The issue index up to which an operation is behind a host.
fn known_host(view: &View, op: OpSeq, agent: Agent) -> u64 {
    if view.agent == agent {
        op.0.saturating_sub(1)
    } else {
        view.know.documented.known_host(agent)
    }
}
