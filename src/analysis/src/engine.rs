//! The engine's public face, and the dispatch of each call to its rule.
//!
//! Invariant: the engine draws all conclusions about an operation when it takes it; it never
//! revises a conclusion, and no edge is added after a finding.

use crate::core::Core;
use crate::rules::{
    allocation, batches, collectives, contexts, copies, events, files, graphs, host, host_threads,
    launches, managed, memsets, signals, streams,
};
use crate::{Options, Rule, Sink, Statistics};
use std::borrow::Borrow;
use streamsan_model::{Action, Edge, Entities, Finding, Lint, Operation, TraceItem};

/// An incremental analysis of one trace.
#[derive(Debug, Default)]
pub struct Engine {
    core: Core,
    last_prune: u64,
}

impl Engine {
    /// Makes an engine that has seen no operation.
    pub fn new(options: Options) -> Self {
        Self { core: Core::new(options), last_prune: 0 }
    }

    /// Takes the next item of the trace.
    pub fn feed(&mut self, item: &TraceItem, sink: &mut dyn Sink) {
        match item {
            TraceItem::Entity(entity) => self.core.entities.declare(entity.clone()),
            TraceItem::Operation(op) => self.operation(op, sink),
            TraceItem::Returned { g, exit, status } => self.core.returned(*g, *exit, *status, sink),
            // Names order nothing.
            TraceItem::Range(_) => {}
        }
    }

    fn operation(&mut self, op: &Operation, sink: &mut dyn Sink) {
        let core = &mut self.core;
        core.statistics.operations += 1;
        core.begin(op);
        // A failed call enqueues nothing and orders nothing. A query that answers "not ready"
        // counts as failed.
        if op.status.is_success() {
            rule(core, op, sink);
            core.note_told(op);
            if !core.memory.conflicts.is_empty() {
                core.conclude(sink);
            }
        }
        let since = core.statistics.operations - self.last_prune;
        let worthwhile = match op.action {
            // Accesses that the host has just learnt to be done can leave the shadow memory.
            Action::ContextSynchronize { .. } => since >= core.options.prune_interval / 64,
            _ => since >= core.options.prune_interval,
        };
        if worthwhile || core.memory.is_full() || core.knows_too_much() {
            self.last_prune = core.statistics.operations;
            core.prune();
        }
    }

    /// Ends the trace. Nothing is pending, because every conclusion is drawn at once.
    pub fn finish(&mut self, _sink: &mut dyn Sink) {
        self.core.prune();
    }

    /// Returns what the engine has seen and spent so far.
    pub fn statistics(&self) -> Statistics {
        self.core.statistics
    }

    /// Number of pieces (streams, events, shadows) that the engine holds. A program that repeats
    /// itself does not make the number grow.
    pub fn held(&self) -> usize {
        self.core.held()
    }

    /// The declarations so far. With [`Options::forgets`], declarations of ended entities that no
    /// finding names are left out.
    pub fn entities(&self) -> &Entities {
        &self.core.entities
    }
}

/// The only place that knows which rule takes which call.
fn rule(core: &mut Core, op: &Operation, sink: &mut dyn Sink) {
    match op.action {
        Action::ContextSynchronize { context } => contexts::synchronize(core, op, context, sink),
        Action::ContextDestroy { context } => allocation::destroy_context(core, op, context, sink),
        Action::ContextRecordEvent { context, event } => {
            contexts::record_event(core, op, context, event);
        }
        Action::ContextWaitEvent { context, event } => {
            contexts::wait_event(core, op, context, event, sink);
        }
        Action::StreamCreate { stream } => streams::create(core, op, stream),
        Action::StreamDestroy { stream } => streams::destroy(core, stream),
        Action::StreamSynchronize { stream } => {
            streams::synchronize(core, op, stream, Rule::StreamSynchronize, sink);
        }
        Action::StreamQuery { stream } => {
            streams::synchronize(core, op, stream, Rule::StreamQuery, sink);
        }
        Action::StreamWaitEvent { stream, event } => {
            events::stream_wait(core, op, stream, event, sink);
        }
        Action::EventDestroy { event } => events::destroy(core, event),
        Action::EventRecord { event, stream } => events::record(core, op, event, stream, sink),
        Action::EventSynchronize { event } => {
            events::host_wait(core, op, event, Rule::EventSynchronize, sink);
        }
        Action::EventQuery { event } => {
            events::host_wait(core, op, event, Rule::EventQuery, sink);
        }
        Action::EventElapsedTime { start, end } => {
            events::elapsed_time(core, op, [start, end], sink);
        }
        Action::Allocate { stream: Some(stream), .. }
        | Action::Free { stream: Some(stream), .. } => {
            allocation::in_stream(core, op, stream, sink);
        }
        Action::Allocate { stream: None, .. } => allocation::allocate(core, op),
        Action::Free { allocation, stream: None } => allocation::free(core, op, allocation, sink),
        Action::Launch { stream, kernel, programmatic, control, event, cooperative: _ } => {
            let launch = launches::Launch { stream, kernel, programmatic, control, event };
            launches::launch(core, op, launch, sink);
        }
        Action::Copy(ref copy) => copies::copy(core, op, copy, sink),
        Action::Memset { stream, synchronous, destination, sync_memops } => {
            let forms = memsets::Forms { synchronous, sync_memops };
            memsets::memset(core, op, stream, destination, forms, sink);
        }
        Action::HostFunction { stream } => host::enqueue_function(core, op, stream, sink),
        Action::HostFunctionRun { enqueued } => host::run_function(core, op, enqueued, sink),
        Action::HostAccess => host::access(core, op),
        Action::LaunchMultiDevice(ref launch) => {
            launches::launch_multi_device(core, op, launch, sink);
        }
        Action::Batch(ref batch) => batches::batch(core, op, batch, sink),
        Action::Prefetch { stream } => managed::prefetch(core, op, stream, sink),
        Action::Discard { stream } => managed::discard(core, op, stream, sink),
        Action::Attach { stream, allocation, attachment } => {
            managed::attach(core, op, stream, allocation, attachment, sink);
        }
        Action::Signals(ref signals) => signals::signals(core, op, signals, sink),
        Action::GraphInstantiate { executable, graph }
        | Action::GraphUpdate { executable, graph } => {
            graphs::set(core, op, executable, graph, sink);
        }
        Action::GraphLaunch { stream, executable, graph } => {
            graphs::launch(core, op, stream, executable, graph, sink);
        }
        Action::GraphUpload { stream, executable } => {
            graphs::upload(core, op, stream, executable, sink);
        }
        Action::GraphDestroy { executable } => graphs::destroy(core, op, executable),
        Action::StreamHandedOut { stream } => streams::hand_out(core, op, stream, sink),
        Action::FileTransfer { stream } => files::transfer(core, op, stream, sink),
        Action::Collective { stream } => collectives::collective(core, op, stream, sink),
        Action::CollectiveGroup(ref group) => collectives::group(core, op, group, sink),
        Action::FileBatchSubmit { batch } => files::submit(core, op, batch),
        Action::FileBatchComplete { batch } => files::complete(core, op, batch, sink),
        Action::HostRelease { object } => host_threads::release(core, op, object),
        Action::HostAcquire { object } => host_threads::acquire(core, op, object, sink),
        Action::ContextCreate { .. }
        | Action::EventCreate { .. }
        | Action::Captured { .. }
        | Action::Other => {}
    }
}

/// The result of a whole trace.
#[derive(Clone, Debug, Default)]
pub struct Analysis {
    /// Sorted by the later operation, the earlier operation, the allocation.
    pub findings: Vec<Finding>,
    /// Sorted by the operation at which they stand.
    pub lints: Vec<Lint>,
    /// In the order of the operations that complete them.
    pub edges: Vec<Edge>,
    /// All declared entities.
    pub entities: Entities,
    /// Statistics of the analysis.
    pub statistics: Statistics,
}

impl Sink for Analysis {
    fn edge(&mut self, edge: &Edge) {
        self.edges.push(*edge);
    }

    fn finding(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    fn lint(&mut self, lint: Lint) {
        self.lints.push(lint);
    }
}

/// Analyses a whole trace.
pub fn analyse(items: impl IntoIterator<Item = impl Borrow<TraceItem>>) -> Analysis {
    analyse_with(Options::default(), items)
}

/// Analyses a whole trace with other options than the default ones.
pub fn analyse_with(
    options: Options,
    items: impl IntoIterator<Item = impl Borrow<TraceItem>>,
) -> Analysis {
    let mut engine = Engine::new(options);
    let mut analysis = Analysis::default();
    for item in items {
        engine.feed(item.borrow(), &mut analysis);
    }
    engine.finish(&mut analysis);
    analysis.findings.sort_by_key(|f| (f.second.op, f.first.op, f.allocation));
    analysis.lints.sort_by_key(|lint| (lint.op, lint.class));
    analysis.statistics = engine.statistics();
    analysis.entities = engine.core.entities;
    analysis
}

#[cfg(test)]
mod tests;
