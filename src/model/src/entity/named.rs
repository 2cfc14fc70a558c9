//! The entities that some findings name, apart from all others: for those who keep what was found in
//! many traces at once, and not the traces.
//!
//! Deliberately absent: kernels, modules and graphs, which findings do not refer to by id.

use super::Entities;
use crate::{AllocationId, Entity, EventId, StackId, StreamId};
use std::collections::BTreeSet;

/// Ids that something refers to.
#[derive(Clone, Debug, Default)]
pub struct Named {
    /// Streams.
    pub streams: BTreeSet<StreamId>,
    /// Events.
    pub events: BTreeSet<EventId>,
    /// Allocations.
    pub allocations: BTreeSet<AllocationId>,
    /// Stacks.
    pub stacks: BTreeSet<StackId>,
}

impl Entities {
    /// The named streams (with the calls that created them), events, allocations and stacks, with the
    /// stacks and frames that these refer to; and all processes, threads and contexts.
    #[must_use]
    pub fn only(&self, named: &Named) -> Self {
        let mut only = Self {
            processes: self.processes.clone(),
            threads: self.threads.clone(),
            contexts: self.contexts.clone(),
            creations: self.creations.only(&named.streams),
            ..Self::default()
        };
        let streams = named.streams.iter().filter_map(|&id| self.stream(id));
        streams.for_each(|stream| only.declare(Entity::Stream(stream.clone())));
        let events = named.events.iter().filter_map(|&id| self.event(id));
        events.for_each(|event| only.declare(Entity::Event(event.clone())));
        let mut stacks = named.stacks.clone();
        stacks.extend(named.streams.iter().filter_map(|&id| self.creation(id)?.stack));
        for allocation in named.allocations.iter().filter_map(|&id| self.allocation(id)) {
            stacks.extend(allocation.stack);
            only.declare(Entity::Allocation(allocation.clone()));
        }
        for stack in stacks.iter().filter_map(|&id| self.stack(id)) {
            for frame in stack.frames.iter().filter_map(|&id| self.frame(id)) {
                only.declare(Entity::Frame(frame.clone()));
            }
            only.declare(Entity::Stack(stack.clone()));
        }
        only
    }
}

#[cfg(test)]
mod tests {
    use super::Named;
    use crate::{
        Allocation, AllocationId, ByteRange, ContextId, Entities, Entity, Event, EventId, Frame,
        FrameId, FramePlace, MemoryKind, OpSeq, ProcessId, Stack, StackId, Stream, StreamId,
        StreamKind,
    };
    use std::sync::Arc;

    /// Three of each, where number `n` has stack `n`, whose only frame is `n`.
    fn entities() -> Entities {
        let mut entities = Entities::default();
        for n in 0..3 {
            entities.declare(Entity::Frame(Arc::new(Frame {
                id: FrameId(n),
                place: FramePlace::Python,
                source: Vec::new(),
            })));
            entities.declare(Entity::Stack(Arc::new(Stack {
                id: StackId(n),
                frames: vec![FrameId(n)],
                truncated: false,
            })));
            entities.declare(Entity::Stream(Stream {
                id: StreamId(n),
                context: ContextId(0),
                kind: StreamKind::Blocking,
                thread: None,
                priority: 0,
                handle: 0,
                driver_id: 0,
                name: None,
            }));
            // All three by one call.
            entities.note_creation(StreamId(n), OpSeq(u64::from(n)), Some(StackId(2)));
            entities.declare(Entity::Event(Event {
                id: EventId(n),
                context: ContextId(0),
                handle: 0,
                flags: 0,
                imported: false,
                name: None,
            }));
            entities.declare(Entity::Allocation(Allocation {
                id: AllocationId(n),
                process: ProcessId(0),
                context: None,
                kind: MemoryKind::Device,
                range: ByteRange { start: 0, end: 1 },
                api: String::new(),
                backing: None,
                name: None,
                stack: Some(StackId(n)),
            }));
        }
        entities
    }

    #[test]
    fn what_named_entities_refer_to_is_kept() {
        let entities = entities();
        let named = Named {
            streams: [StreamId(1)].into(),
            events: [EventId(2)].into(),
            allocations: [AllocationId(0)].into(),
            stacks: [StackId(7)].into(),
        };
        let only = entities.only(&named);
        assert_eq!(only.held(), 3);
        assert!(only.stream(StreamId(1)).is_some() && only.event(EventId(2)).is_some());
        assert!(only.allocation(AllocationId(0)).is_some());
        // The stack of the allocation, and that of the call that created the stream.
        let stacks = [0, 1, 2].map(|n| only.stack(StackId(n)).is_some());
        let frames = [0, 1, 2].map(|n| only.frame(FrameId(n)).is_some());
        assert_eq!((stacks, frames), ([true, false, true], [true, false, true]));
        let creation = only.creation(StreamId(1)).expect("it was noted");
        assert_eq!((creation.nth, only.created_alike(creation)), (2, 3));
        assert_eq!(only.creation(StreamId(0)), None);
    }
}
