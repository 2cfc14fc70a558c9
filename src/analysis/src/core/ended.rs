//! Ended entities, and when they are forgotten.
//!
//! A program may make any number of streams, events and allocations, one after another. The newest
//! streams whose work is done and the newest destroyed events stay known, since earlier accesses
//! and waits name them in explanations. Allocations stay known as long as their free is remembered.
//! Older declarations are forgotten unless a finding names them.
//!
//! Invariant: an entity is forgotten only when no later operation can refer to it, and its
//! forgetting changes no finding.

use super::Core;
use std::collections::{BTreeSet, VecDeque};
use streamsan_model::{AllocationId, EventId, Finding, Lint, MemoryKind, StreamId};

/// Number of streams and events that stay known after their end.
const KNOWN: usize = if cfg!(test) { 8 } else { 4096 };

/// Number of findings and lints of one confidence whose streams, events and memory stay declared.
/// The report shows the first findings of the highest confidence.
const NAMED: u32 = 1 << 15;

#[derive(Debug, Default)]
pub(crate) struct Ended {
    streams: VecDeque<StreamId>,
    events: VecDeque<EventId>,
    named_streams: BTreeSet<StreamId>,
    named_events: BTreeSet<EventId>,
    named_memory: BTreeSet<AllocationId>,
    /// By confidence; the last entry counts lints.
    named: [u32; 4],
}

impl Ended {
    /// Notes that the stream's work is known to be done, and that no more will come.
    pub(crate) fn stream(&mut self, id: StreamId) {
        self.streams.push_back(id);
    }

    /// Notes that the event is destroyed.
    pub(crate) fn event(&mut self, id: EventId) {
        self.events.push_back(id);
    }

    /// Keeps the finding's memory and streams, so that a report can name them.
    pub(crate) fn name_finding(&mut self, finding: &Finding) {
        if !self.takes(finding.confidence as usize) {
            return;
        }
        self.named_memory.insert(finding.allocation);
        let sides = [&finding.first, &finding.second];
        for side in sides {
            self.named_memory.insert(side.access.allocation);
            self.named_streams.extend(side.stream);
        }
    }

    /// Keeps the lint's streams and event, so that a report can name them.
    pub(crate) fn name_lint(&mut self, lint: &Lint) {
        if self.takes(self.named.len() - 1) {
            self.named_streams.extend(lint.stream);
            self.named_events.extend(lint.event);
        }
    }

    fn takes(&mut self, kind: usize) -> bool {
        let named = &mut self.named[kind];
        *named = named.saturating_add(1);
        *named <= NAMED
    }

    fn held(&self) -> usize {
        let named = self.named_streams.len() + self.named_events.len() + self.named_memory.len();
        self.streams.len() + self.events.len() + named
    }
}

impl Core {
    /// Forgets entities that ended long ago.
    pub(super) fn forget_ended(&mut self) {
        let forgets = self.options.forgets;
        while self.ended.streams.len() > KNOWN {
            let Some(id) = self.ended.streams.pop_front() else { break };
            self.silent.remove(id.index());
            if forgets && !self.ended.named_streams.contains(&id) {
                self.entities.forget_stream(id);
            }
        }
        while self.ended.events.len() > KNOWN {
            let Some(id) = self.ended.events.pop_front() else { break };
            self.events.remove(id.index());
            if forgets && !self.ended.named_events.contains(&id) {
                self.entities.forget_event(id);
            }
        }
        for id in self.memory.take_gone() {
            // Memory of graphs is freed again and again.
            let comes_back = |kind| kind == MemoryKind::GraphOrdered;
            let comes_back = self.entities.allocation(id).is_some_and(|a| comes_back(a.kind));
            if forgets && !comes_back && !self.ended.named_memory.contains(&id) {
                self.entities.forget_allocation(id);
            }
        }
    }

    /// Whether more entities have ended than stay known.
    pub(crate) fn knows_too_much(&self) -> bool {
        self.ended.streams.len().max(self.ended.events.len()) > 2 * KNOWN
    }

    /// Number of ended entities that are kept.
    pub(crate) fn held(&self) -> usize {
        let tables = self.streams.len() + self.events.len() + self.silent.len();
        let contexts: usize = self.contexts.iter().flatten().map(|c| c.streams.len()).sum();
        let memory = self.memory.held() + self.memory.segments() as usize;
        let pending = self.host_functions.len() + self.running.len() + self.running_edges.len();
        let slots = self.slot_contexts.len() + self.destroyed.len();
        self.entities.held() + tables + contexts + memory + pending + slots + self.ended.held()
    }
}
