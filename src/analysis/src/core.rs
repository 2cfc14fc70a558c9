//! The tables of the analysis, and the two steps that every rule takes with them: append an
//! operation to a stream, and add to the host's knowledge.
//!
//! Invariant: knowledge only grows. An operation is appended once, behind everything that its
//! stream, its host, the legacy stream and the gates of its context have before it.

mod ended;
mod gone;
mod streams;

use crate::api_names::ApiNames;
use crate::clock::{Agent, Know, Part};
use crate::explain::{Mask, PoolMask};
use crate::host::{Acquisition, Host};
use crate::memory::Memory;
use crate::outside::Outside;
use crate::record::{AccessRecord, Place};
use crate::rules::files::FileBatches;
use crate::rules::graphs::GraphsState;
use crate::rules::host::RunningFunction;
use crate::rules::host_threads::Released;
use crate::rules::managed::ManagedState;
use crate::rules::signals::MemopPairs;
use crate::signalled::{Object, Signalled};
use crate::state::{ContextState, EventState, Gate, StreamState};
pub(crate) use crate::view::View;
use crate::{HostModel, Options, Rule, Sink, Statistics};
use ended::Ended;
use smallvec::SmallVec;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use streamsan_model::{
    ContextId, Edge, EdgeKind, Entities, EventId, OpSeq, Operation, ProcessId, Status, StreamId,
    SyncObject, Table, Tier,
};

/// Number of incidental synchronisations that are kept for explanations.
const MASKS: usize = 256;

/// Everything the engine knows between operations.
#[derive(Debug, Default)]
pub(crate) struct Core {
    pub(crate) options: Options,
    pub(crate) statistics: Statistics,
    pub(crate) entities: Entities,
    pub(crate) api_names: ApiNames,
    pub(crate) memory: Memory,
    pub(crate) graphs: GraphsState,
    pub(crate) managed: ManagedState,
    /// The hosts, by agent.
    pub(crate) hosts: Vec<Host>,
    /// Whether every host thread is a host of its own.
    pub(crate) strict: bool,
    /// The agent that issues the current operation.
    issuer: Agent,
    pub(crate) contexts: Vec<Option<ContextState>>,
    /// Whether the gate of any context was ever raised.
    has_gates: bool,
    /// Boxed, because a rule takes a stream out while it reads others; the entry is `None`
    /// meanwhile.
    streams: Table<Option<Box<StreamState>>>,
    events: Table<EventState>,
    /// By enqueued host function: what its stream had before it.
    pub(crate) host_functions: BTreeMap<OpSeq, HostFunction>,
    pub(crate) running_functions: Vec<RunningFunction>,
    pub(crate) masks: VecDeque<Mask>,
    /// The knowledge with which host threads released each synchronisation object (strict host
    /// threads).
    pub(crate) sync_objects: BTreeMap<SyncObject, Released>,
    /// The signals of stream memory operations and semaphores.
    pub(crate) signalled: BTreeMap<Object, Signalled>,
    pub(crate) memop_pairs: MemopPairs,
    pub(crate) file_batches: FileBatches,
    /// The streams that stream pools have handed out again.
    pub(crate) pool_masks: VecDeque<PoolMask>,
    /// Waits for an agent that is not recorded.
    pub(crate) outside: Outside,
    /// The context of each chain, by slot.
    pub(crate) slot_contexts: Vec<ContextId>,
    /// By slot: the operation at which the chain began that has it now.
    pub(crate) slot_since: Vec<u64>,
    /// The operation in hand.
    now: u64,
    next_slot: u32,
    free_slots: Vec<u32>,
    destroyed: Vec<StreamId>,
    /// The destroyed, silent streams; see [`crate::shadow::Limits`].
    pub(crate) silent: Table<()>,
    /// Entities that have ended, and those of them that findings name.
    pub(crate) ended: Ended,
    /// Number of destroyed streams from which on the engine checks which of them have finished.
    destroyed_room: usize,
    /// Streams of the calls that were handed over while they ran.
    running: BTreeMap<OpSeq, StreamId>,
    /// Edges of the calls that are still running.
    running_edges: Vec<Edge>,
}

/// An enqueued host function.
#[derive(Clone, Debug)]
pub(crate) struct HostFunction {
    /// The work before the function.
    pub(crate) before: SmallVec<[Part; 1]>,
    /// The point of the function itself in its stream.
    pub(crate) itself: Part,
}

impl Core {
    pub(crate) fn new(options: Options) -> Self {
        let strict = options.host_model == HostModel::Strict
            || options.without == Some(Rule::ObservedCompletion);
        Self { options, strict, ..Self::default() }
    }

    /// Whether edges of the rule are made; see [`crate::Options::without`].
    pub(crate) fn applies(&self, rule: Rule) -> bool {
        self.options.without != Some(rule)
    }

    /// Begins an operation: determines which agent issues it, and brings that agent's knowledge up
    /// to date.
    pub(crate) fn begin(&mut self, op: &Operation) {
        self.now = op.g.0;
        self.issuer = Agent(if self.strict { op.thread.0 } else { op.process.0 });
        self.host(op.process).catch_up(op.g);
    }

    /// The agent that issues the current operation.
    pub(crate) fn issuer(&self) -> Agent {
        self.issuer
    }

    /// The host that issues the current operation, in `process`.
    #[inline]
    pub(crate) fn host(&mut self, process: ProcessId) -> &mut Host {
        let index = self.issuer.0 as usize;
        if self.hosts.get(index).is_none_or(|host| host.process.is_none()) {
            self.new_host(process);
        }
        &mut self.hosts[index]
    }

    #[cold]
    fn new_host(&mut self, process: ProcessId) {
        let index = self.issuer.0 as usize;
        if self.hosts.len() <= index {
            self.hosts.resize_with(index + 1, Host::default);
        }
        self.hosts[index] = Host::new(self.issuer, process);
    }

    /// The host that issues the current operation; [`Core::begin`] has created it.
    fn issuing_host(&self) -> &Host {
        &self.hosts[self.issuer.0 as usize]
    }

    /// The view of an access that the issuing host makes itself.
    pub(crate) fn host_view(&mut self, process: ProcessId) -> View {
        let know = Arc::clone(&self.host(process).know);
        View { own: None, agent: self.issuer, know }
    }

    /// The agent of the current operation, for work that it issues to a stream.
    pub(crate) fn issuing_agent(&self) -> Agent {
        if self.applies(Rule::IssueOrder) { self.issuer } else { Agent::NOBODY }
    }

    /// Returns an event, and creates it at its first use.
    #[inline]
    pub(crate) fn event(&mut self, id: EventId) -> &mut EventState {
        self.events.get_or_insert_with(id.index(), EventState::default)
    }

    /// Returns an event, if it has been used.
    pub(crate) fn known_event(&self, id: usize) -> Option<&EventState> {
        self.events.get(id)
    }

    /// Completes a call that was handed over while it ran.
    pub(crate) fn returned(&mut self, g: OpSeq, exit: OpSeq, status: Status, sink: &mut dyn Sink) {
        let (edges, others) =
            std::mem::take(&mut self.running_edges).into_iter().partition(|edge| edge.to == g);
        self.running_edges = others;
        if status.is_success() {
            Vec::into_iter(edges).for_each(|edge| self.emit(edge, sink));
        } else {
            self.masks.retain(|mask| mask.by != g);
        }
        for host in &mut self.hosts {
            host.returned(g, exit, status.is_success());
        }
        self.outside.returned(g, exit, status.is_success());
        self.running_functions.iter_mut().for_each(|running| running.returned(g, exit));
        let stream = self.running.remove(&g);
        let call = stream.and_then(|stream| self.stream_mut(stream)?.newest_call.as_mut());
        if let Some(call) = call
            && call.g == g
        {
            call.exit = Some(exit);
        }
    }

    /// Schedules the acquisition for the call's return, and reports the edge from the newest
    /// operation that the host learns of.
    pub(crate) fn acquire(
        &mut self,
        op: &Operation,
        acquisition: Acquisition,
        kind: EdgeKind,
        sink: &mut dyn Sink,
    ) {
        let newest = acquisition.parts.iter().map(|part| part.g).max().unwrap_or(0);
        let newest = acquisition.floors.iter().fold(newest, |newest, &floor| {
            let streams = self.contexts.get(floor.index()).and_then(Option::as_ref);
            let lasts = streams.into_iter().flat_map(|context| &context.streams);
            lasts.filter_map(|&s| Some(self.stream(s)?.newest())).max().unwrap_or(0).max(newest)
        });
        if newest > 0 {
            let edge = Edge { from: OpSeq(newest), to: op.g, kind, tier: acquisition.tier };
            match op.exit {
                Some(_) => self.emit(edge, sink),
                // Whether the call succeeds is known only when it returns.
                None => self.running_edges.push(edge),
            }
        }
        if acquisition.tier == Tier::Incidental {
            self.remember_mask(Mask {
                by: acquisition.by,
                parts: acquisition.parts.clone(),
                floors: acquisition.floors.clone(),
            });
        }
        self.host(op.process).schedule(acquisition, op.exit);
    }

    pub(crate) fn remember_mask(&mut self, mask: Mask) {
        if self.masks.len() == MASKS {
            self.masks.pop_front();
        }
        self.masks.push_back(mask);
    }

    pub(crate) fn remember_pool_mask(&mut self, mask: PoolMask) {
        if self.pool_masks.len() == MASKS {
            self.pool_masks.pop_front();
        }
        self.pool_masks.push_back(mask);
    }

    pub(crate) fn edge(
        &mut self,
        from: OpSeq,
        to: OpSeq,
        kind: EdgeKind,
        tier: Tier,
        sink: &mut dyn Sink,
    ) {
        self.emit(Edge { from, to, kind, tier }, sink);
    }

    fn emit(&mut self, edge: Edge, sink: &mut dyn Sink) {
        self.statistics.edges += 1;
        sink.edge(&edge);
    }

    /// Raises a gate: later operations of the context's streams are behind the part.
    pub(crate) fn raise_gate(
        &mut self,
        context: ContextId,
        process: ProcessId,
        gate: Gate,
        tier: Tier,
        part: &Part,
    ) {
        self.has_gates = true;
        let gate = &mut self.context(context, process).gates[gate as usize];
        gate.version += 1;
        match tier {
            Tier::Documented => gate.know.acquire(part),
            Tier::Incidental => gate.know.acquire_incidentally(part),
        }
    }

    /// Forgets accesses that no later operation can race with: every later operation of a process
    /// is behind what its host knows.
    pub(crate) fn prune(&mut self) {
        let hosts = &self.hosts;
        // The agents that may touch the memory later: its own process, and every process that
        // shares it.
        let all = |process: Option<ProcessId>, knows: &dyn Fn(Agent, &Know) -> bool| {
            hosts.iter().zip(0..).all(|(host, agent)| match host.process {
                Some(of) if process.is_none_or(|process| process == of) => {
                    knows(Agent(agent), &host.know)
                }
                _ => true,
            })
        };
        let entities = &self.entities;
        // The usual case: one host issues everything that follows.
        let only = match &hosts[..] {
            [host] => Some(&host.know.documented),
            _ => None,
        };
        self.memory.prune(&|record: &AccessRecord| {
            if let Some(only) = only {
                return match record.place {
                    Place::Host(_) => true,
                    Place::Chain(chain) => only.covers(chain, record.op.0),
                };
            }
            let shared = entities
                .allocation(record.access.allocation)
                .is_some_and(|allocation| allocation.backing.is_some());
            let process = (!shared).then_some(record.process);
            all(process, &|agent, know| match record.place {
                Place::Host(host) => {
                    host == agent || know.documented.covers_host(host, record.op.0)
                }
                Place::Chain(chain) => know.documented.covers(chain, record.op.0),
            })
        });
        self.reclaim();
        self.forget_ended();
        self.statistics.segments = self.memory.segments();
    }
}
