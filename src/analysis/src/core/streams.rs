//! Streams: their table, and what appends operations to them.

use super::{Core, View};
use crate::Rule;
use crate::Sink;
use crate::clock::{Chain, Know};
use crate::state::{NewestCall, Primary, StreamState};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use streamsan_model::{ContextId, Operation, ProcessId, StreamId, StreamKind};

impl Core {
    /// Returns a stream, if it has been used.
    pub(crate) fn stream(&self, id: StreamId) -> Option<&StreamState> {
        self.streams.get(id.index())?.as_deref()
    }

    /// The streams that have been used and are not gone.
    pub(crate) fn used_streams(&self) -> impl Iterator<Item = &StreamState> {
        self.streams.values().flatten().map(|stream| &**stream)
    }

    pub(crate) fn stream_mut(&mut self, id: StreamId) -> Option<&mut StreamState> {
        self.streams.get_mut(id.index())?.as_deref_mut()
    }

    /// Returns a stream, and creates it at its first use.
    pub(crate) fn live_stream(&mut self, id: StreamId, process: ProcessId) -> &mut StreamState {
        if self.stream(id).is_none() {
            let declared = self.entities.stream(id);
            let context = declared.map_or(ContextId(0), |stream| stream.context);
            let kind = declared.map_or(StreamKind::NonBlocking, |stream| stream.kind);
            let chain = self.new_chain(context);
            let state = self.context(context, process);
            state.streams.push(id);
            if kind == StreamKind::Legacy {
                state.legacy = Some(id);
            }
            let state = StreamState::new(id, process, kind, chain);
            self.streams.insert(id.index(), Some(Box::new(state)));
        }
        self.stream_mut(id).expect("brought to life above")
    }

    pub(crate) fn new_chain(&mut self, context: ContextId) -> Chain {
        let slot = self.free_slots.pop().unwrap_or_else(|| {
            self.next_slot += 1;
            self.next_slot - 1
        });
        self.statistics.chains = u64::from(self.next_slot);
        if self.slot_contexts.len() <= slot as usize {
            self.slot_contexts.resize(slot as usize + 1, context);
            self.slot_since.resize(slot as usize + 1, 0);
        }
        self.slot_since[slot as usize] = self.now;
        self.slot_contexts[slot as usize] = context;
        Chain { slot, context }
    }

    /// Appends an operation to a stream, behind what the stream, the host, the legacy stream and
    /// the context's gates have before it. Returns the view of the operation's accesses.
    pub(crate) fn enqueue(
        &mut self,
        op: &Operation,
        stream: StreamId,
        sink: &mut dyn Sink,
    ) -> View {
        let mut state = self.take_prepared(op, stream, sink);
        let view = self.append_to(op, &mut state);
        self.put_back(state);
        view
    }

    /// Appends the record of an event, or a wait for an event, to a stream. Such an operation does
    /// not separate two kernels that may overlap: in a graph it is no node either. Returns the
    /// stream, taken out of its table.
    pub(crate) fn pass_and_take(
        &mut self,
        op: &Operation,
        stream: StreamId,
        sink: &mut dyn Sink,
    ) -> Box<StreamState> {
        let mut state = self.take_prepared(op, stream, sink);
        match state.kind {
            // A legacy operation is behind all blocking streams, and holds all of them back.
            StreamKind::Legacy => self.advance(op, &mut state),
            _ => state.last = op.g.0,
        }
        state
    }

    /// Appends an operation to a stream that [`Core::prepare`] has prepared.
    pub(crate) fn append(&mut self, op: &Operation, stream: StreamId) -> View {
        let mut state = self.take(stream);
        let view = self.append_to(op, &mut state);
        self.put_back(state);
        view
    }

    #[inline]
    fn append_to(&mut self, op: &Operation, state: &mut StreamState) -> View {
        self.advance(op, state);
        self.view_of(op, state)
    }

    /// The view of the accesses of the newest operation of the stream.
    #[inline]
    pub(crate) fn view_of(&self, op: &Operation, state: &StreamState) -> View {
        let upto = if self.applies(Rule::StreamOrder) { op.g.0.saturating_sub(1) } else { 0 };
        let agent = self.issuing_agent();
        View { own: Some((state.chain, upto)), agent, know: Arc::clone(&state.know) }
    }

    /// Makes the operation the newest one of the stream's chain.
    #[inline]
    pub(crate) fn advance(&mut self, op: &Operation, state: &mut StreamState) {
        if !state.open.is_empty() {
            self.join_open(state);
        }
        state.last = op.g.0;
        state.primary = Primary::None;
        if !state.awaited.is_empty() {
            state.awaited.clear();
        }
    }

    /// Orders an ordinary operation behind the kernels that run beside the chain.
    pub(crate) fn join_open(&self, state: &mut StreamState) {
        for part in std::mem::take(&mut state.open) {
            if self.applies(Rule::ProgrammaticJoin) {
                Know::acquire_shared(&mut state.know, &part);
            }
        }
    }

    /// Joins what every operation of a stream is behind, before the rule of its call adds more.
    pub(crate) fn prepare(&mut self, op: &Operation, stream: StreamId, sink: &mut dyn Sink) {
        let state = self.take_prepared(op, stream, sink);
        self.put_back(state);
    }

    /// Takes the stream out of its table, joined with what every operation of it is behind.
    pub(crate) fn take_prepared(
        &mut self,
        op: &Operation,
        stream: StreamId,
        sink: &mut dyn Sink,
    ) -> Box<StreamState> {
        let used = self.streams.get_mut(stream.index()).and_then(Option::take);
        let mut state = used.unwrap_or_else(|| {
            self.live_stream(stream, op.process);
            self.take(stream)
        });
        self.note_overlap(op, &mut state);
        if state.first == 0 {
            state.first = op.g.0;
        }
        let issue_order = self.applies(Rule::IssueOrder);
        let host = self.issuing_host();
        if state.host_version != host.version && issue_order {
            state.host_version = host.version;
            Arc::make_mut(&mut state.know).join(&host.know);
        }
        if self.strict && issue_order {
            // Later operations of the stream are behind what the issuing host did before this call,
            // whichever thread issues them. They are not behind what the host touches during this
            // call.
            Arc::make_mut(&mut state.know)
                .documented
                .raise_host(self.issuer, op.g.0.saturating_sub(1));
        }
        if self.has_gates {
            crate::rules::contexts::pass_gates(self, &mut state);
        }
        crate::rules::streams::legacy_barrier(self, &mut state, op, sink);
        state
    }

    pub(crate) fn take(&mut self, stream: StreamId) -> Box<StreamState> {
        let state = self.streams.get_mut(stream.index()).and_then(Option::take);
        state.expect("a stream is prepared before it is used")
    }

    #[inline]
    pub(crate) fn put_back(&mut self, state: Box<StreamState>) {
        let index = state.id.index();
        match self.streams.get_mut(index) {
            Some(slot) => *slot = Some(state),
            None => drop(self.streams.insert(index, Some(state))),
        }
    }

    /// Notes calls of two threads on one stream whose running times overlap: the order in which the
    /// driver took them is not known.
    fn note_overlap(&mut self, op: &Operation, state: &mut StreamState) {
        let overlaps = state.newest_call.as_ref().is_some_and(|call| {
            call.thread != op.thread && call.exit.is_none_or(|exit| exit > op.g)
        });
        if overlaps
            && let Some(call) = &state.newest_call
            && let Some(ambiguous) = &call.ambiguous
        {
            ambiguous.store(true, Ordering::Relaxed);
        }
        state.newest_call = Some(NewestCall {
            g: op.g,
            thread: op.thread,
            exit: op.exit,
            overlapped: overlaps,
            ambiguous: None,
        });
        self.statistics.ambiguous += u64::from(overlaps);
        if op.exit.is_none() {
            self.running.insert(op.g, state.id);
        }
    }
}
