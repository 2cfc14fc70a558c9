//! Names that the program gives, by annotations or by NVTX.
//!
//! An entity is declared again with its name; what refers to it stays as it is.

use super::resolution::Resolution;
use std::collections::HashMap;
use std::hash::Hash;
use streamsan_model::{Action, Allocation, Entity, Event, EventId, MemoryKind, Stream, StreamId};

/// Handles with a fixed meaning lie below.
const FIRST_HANDLE: u64 = 3;
/// Entities that are kept before those that are gone are thrown out.
const PRUNE_FROM: usize = if cfg!(test) { 16 } else { 4096 };

/// Declarations as they were made, for those that may be named later.
#[derive(Debug, Default)]
pub(super) struct Declared {
    streams: Entries<StreamId, Stream>,
    newest_stream: Option<StreamId>,
    events: Entries<EventId, Event>,
}

impl Declared {
    /// Remembers what can be named.
    pub(super) fn note(&mut self, entity: &Entity) {
        match entity {
            Entity::Stream(stream) => {
                self.newest_stream = Some(stream.id);
                self.streams.by_id.insert(stream.id, stream.clone());
            }
            Entity::Event(event) => {
                self.events.by_id.insert(event.id, event.clone());
            }
            _ => {}
        }
    }

    /// How many declarations are kept.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.streams.by_id.len() + self.events.by_id.len()
    }

    /// Forgets what is gone, now and then. `streams` and `events` are those that are not.
    pub(super) fn prune(
        &mut self,
        streams: impl Iterator<Item = StreamId>,
        events: impl Iterator<Item = EventId>,
    ) {
        let newest = self.newest_stream;
        // The newest one is not in the tables yet.
        self.streams.prune(streams.chain(newest));
        self.events.prune(events);
    }
}

/// Declarations by id.
#[derive(Debug)]
struct Entries<I, T> {
    by_id: HashMap<I, T>,
    prune_at: usize,
}

impl<I, T> Default for Entries<I, T> {
    fn default() -> Self {
        Self { by_id: HashMap::new(), prune_at: 0 }
    }
}

impl<I: Copy + Eq + Hash, T> Entries<I, T> {
    fn prune(&mut self, live: impl Iterator<Item = I>) {
        if self.by_id.len() < self.prune_at.max(PRUNE_FROM) {
            return;
        }
        let kept = live.filter_map(|id| Some((id, self.by_id.remove(&id)?))).collect();
        self.by_id = kept;
        self.prune_at = 2 * self.by_id.len();
    }
}

/// Names a stream. One that bore another name has been handed out again by the program's own pool.
pub(super) fn stream(resolution: &mut Resolution<'_>, handle: u64, name: &str) -> Option<Action> {
    let id = match resolution.tables.streams.get(&handle) {
        Some(&(id, _)) => id,
        None if handle < FIRST_HANDLE => default_stream(resolution, handle)?,
        None => return None,
    };
    let mut stream = resolution.tables.declared.streams.by_id.get(&id)?.clone();
    let before = stream.name.replace(name.to_owned());
    if before.as_deref() == Some(name) {
        return None;
    }
    resolution.declare(Entity::Stream(stream));
    before.map(|_| Action::StreamHandedOut { stream: id })
}

/// The stream that a handle with a fixed meaning stands for, where that needs no knowledge of the
/// current context.
fn default_stream(resolution: &mut Resolution<'_>, handle: u64) -> Option<StreamId> {
    let thread = resolution.call.thread;
    if handle == 2 {
        let mut of_thread =
            resolution.tables.thread_streams.iter().filter(|((t, _), _)| *t == thread);
        let (_, &id) = of_thread.next()?;
        return of_thread.next().is_none().then_some(id);
    }
    let mut all = resolution.tables.legacy_streams.values();
    let &id = all.next()?;
    all.next().is_none().then_some(id)
}

/// Names an event.
pub(super) fn event(resolution: &mut Resolution<'_>, handle: u64, name: &str) -> Option<Action> {
    let tables = &mut *resolution.tables;
    let &(id, _) = tables.events.get(&handle)?;
    let mut event = resolution.tables.declared.events.by_id.get(&id)?.clone();
    if event.name.replace(name.to_owned()).as_deref() != Some(name) {
        resolution.declare(Entity::Event(event));
    }
    None
}

/// Names the allocation that holds an address. Ordinary host memory is one allocation for all: it
/// takes no name.
pub(super) fn memory(resolution: &mut Resolution<'_>, address: u64, name: &str) -> Option<Action> {
    let block = *resolution.tables.memory.find(address)?;
    if block.kind == MemoryKind::Pageable {
        return None;
    }
    resolution.declare(Entity::Allocation(Allocation {
        id: block.id,
        process: resolution.tables.id,
        context: block.context,
        kind: block.kind,
        range: block.range,
        api: block.api().to_owned(),
        backing: block.backing,
        name: Some(name.to_owned()),
        stack: block.stack,
    }));
    None
}
