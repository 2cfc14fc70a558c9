//! Destroyed streams: when their slots in the clocks become free, and which of these streams are
//! silent.
//!
//! A program may create a stream for each piece of work. The work of such a stream must not cost
//! more than any other work. The stream's slot is used again once every later operation is behind
//! its work. A stream is *silent* if it is destroyed and no call has told another agent how far it
//! has come. Only a wait for its whole context can then be behind its work, and such a wait is
//! behind all older work of the context too; an access of a silent stream may therefore stand for
//! older accesses (see [`crate::shadow::Limits`]).
//!
//! Invariant: a slot gets a new owner only when every later operation is behind the former owner's
//! work.

use super::Core;
use crate::clock::Chain;
use smallvec::SmallVec;
use streamsan_model::{Action, ContextId, MemoryKind, Operation, ProcessId, StreamId, StreamKind};

/// Number of destroyed streams below which no search is made.
const DESTROYED: usize = 16;

impl Core {
    /// Destroys the stream. Its pending work goes on; its slot is free once that work is known to
    /// be done.
    pub(crate) fn destroy_stream(&mut self, stream: StreamId) {
        let Some(state) = self.stream(stream) else { return };
        // The legacy stream waits for each blocking stream by itself.
        if state.kind == StreamKind::NonBlocking && !state.is_told && self.outside.is_empty() {
            self.silent.insert(stream.index(), ());
        }
        self.destroyed.push(stream);
        if self.destroyed.len() >= self.destroyed_room.max(DESTROYED) {
            self.reclaim();
            self.destroyed_room = 2 * self.destroyed.len();
        }
    }

    /// Notes calls that may tell other agents how far the named streams have come: every call that
    /// names single streams, except those that tell nothing.
    pub(crate) fn note_told(&mut self, op: &Operation) {
        let mut tell = |stream: StreamId| {
            if let Some(state) = self.stream_mut(stream) {
                state.is_told = true;
            }
        };
        match &op.action {
            action if tells_nothing(action) => {}
            Action::LaunchMultiDevice(launch) => {
                launch.launches.iter().for_each(|launch| tell(launch.stream));
            }
            Action::CollectiveGroup(group) => {
                group.members.iter().for_each(|member| tell(member.stream));
            }
            action => action.stream().into_iter().for_each(tell),
        }
    }

    /// Forgets destroyed streams and executable graphs whose work every later operation is behind.
    /// Their slots become free, so that the length of a clock follows the number of streams that
    /// exist at the same time.
    pub(super) fn reclaim(&mut self) {
        let hosts = &self.hosts;
        let dead = |process: ProcessId, chain: Chain, g: u64| {
            let mut own = hosts.iter().filter(|host| host.process == Some(process));
            own.all(|host| host.know.documented.covers(chain, g))
        };
        let mut touched: SmallVec<[ContextId; 1]> = SmallVec::new();
        for id in std::mem::take(&mut self.destroyed) {
            let done = self.stream(id).is_some_and(|state| {
                dead(state.process, state.chain, state.newest())
                    && state.open.iter().all(|p| dead(state.process, p.chain, p.g))
                    && state.former.iter().all(|p| dead(state.process, p.chain, p.g))
            });
            if !done {
                self.destroyed.push(id);
                continue;
            }
            if let Some(state) = self.streams.remove(id.index()).flatten() {
                self.ended.stream(id);
                self.free_slots.push(state.chain.slot);
                let beside = state.side_chains.iter().map(|(chain, _)| chain.slot);
                self.free_slots.extend(beside);
                self.free_slots.extend(state.begin_chain.map(|chain| chain.slot));
                self.free_slots.extend(state.former_chains.iter().map(|chain| chain.slot));
                self.free_slots.extend(state.sources.iter().map(|(_, chain)| chain.slot));
                if !touched.contains(&state.chain.context) {
                    touched.push(state.chain.context);
                }
            }
        }
        let streams = &self.streams;
        let is_there = |stream: &StreamId| streams.contains(stream.index());
        for context in touched {
            if let Some(context) = &mut self.contexts[context.index()] {
                context.streams.retain(is_there);
                context.dirty.retain(is_there);
                context.beside.retain(is_there);
                context.foreign.retain(is_there);
            }
        }
        let retired = self.graphs.take_retired(&|process, part| dead(process, part.chain, part.g));
        self.free_slots.extend(retired);
    }
}

/// Whether only the call's own stream learns anything by the call. A call that concerns all streams
/// of a context tells no more of one stream than of older work in the context.
fn tells_nothing(action: &Action) -> bool {
    let is_unseen_by_host = |kind| matches!(kind, MemoryKind::Device | MemoryKind::StreamOrdered);
    match action {
        Action::StreamCreate { .. } | Action::StreamDestroy { .. } => true,
        Action::Launch { programmatic, event, .. } => !programmatic && event.is_none(),
        Action::Memset { synchronous, destination, .. } => {
            !synchronous && is_unseen_by_host(*destination)
        }
        Action::Copy(copy) => {
            let of_host = [copy.source, copy.destination].into_iter().filter(|kind| kind.is_host());
            !copy.synchronous
                && copy.peer.is_none()
                && of_host.clone().count() < 2
                && !of_host.into_iter().any(|kind| kind == MemoryKind::Pageable)
        }
        _ => false,
    }
}
