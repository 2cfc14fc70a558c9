//! Waits for somebody outside of what is recorded: another process, a kernel, the host's own
//! store, a signal that is issued later. What such a wait is behind is not known, so a pair that it
//! may have been meant to order is at most `possible`.

use crate::clock::{Agent, Chain, Part};
use crate::core::{Core, View};
use crate::record::AccessRecord;
use std::collections::BTreeMap;
use std::sync::Arc;
use streamsan_model::OpSeq;

/// All waits for outsiders, by where they stand.
#[derive(Debug, Default)]
pub(crate) struct Outside {
    /// By slot; in ascending order.
    chains: BTreeMap<u32, (Chain, Vec<OpSeq>)>,
    /// By agent; the return and the call.
    hosts: BTreeMap<Agent, Vec<(OpSeq, OpSeq)>>,
    /// For waits that stand in no stream.
    apart: Option<Chain>,
    /// Calls of hosts that have not returned yet.
    running: BTreeMap<OpSeq, Agent>,
}

impl Outside {
    /// Whether nobody has waited so far, or is waiting.
    pub(crate) fn is_empty(&self) -> bool {
        self.chains.is_empty() && self.hosts.is_empty() && self.running.is_empty()
    }

    /// The operation `wait` of a chain has waited.
    pub(crate) fn note(&mut self, chain: Chain, wait: OpSeq) {
        let (of, waits) = self.chains.entry(chain.slot).or_insert_with(|| (chain, Vec::new()));
        if *of != chain {
            // The slot has another owner; nobody is behind the former one's waits only.
            (*of, *waits) = (chain, Vec::new());
        }
        waits.push(wait);
    }

    /// The call `wait` of a host has waited, or will have at its return.
    pub(crate) fn note_host(&mut self, agent: Agent, wait: OpSeq, exit: Option<OpSeq>) {
        match exit {
            Some(exit) => self.hosts.entry(agent).or_default().push((exit, wait)),
            None => {
                self.running.insert(wait, agent);
            }
        }
    }

    /// A running call has returned.
    pub(crate) fn returned(&mut self, wait: OpSeq, exit: OpSeq, success: bool) {
        if let Some(agent) = self.running.remove(&wait)
            && success
        {
            self.hosts.entry(agent).or_default().push((exit, wait));
        }
    }

    /// The newest wait that one side of a pair is behind and the other is not: an earlier side that
    /// is not may be what the wait waits for, and a later one that is issued while it waits too.
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
    /// A point that whoever is behind a wait for an outsider, which stands in no chain of its own, is
    /// behind. (And so behind earlier ones of the kind, as it seems: their pairs are `possible` too.)
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

/// Up to which issue index an operation is behind a host.
fn known_host(view: &View, op: OpSeq, agent: Agent) -> u64 {
    if view.agent == agent {
        op.0.saturating_sub(1)
    } else {
        view.know.documented.known_host(agent)
    }
}
