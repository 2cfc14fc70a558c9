//! One call being resolved: the tables it may use, and what comes of it.

use super::gaps::Gaps;
use super::memory::Block;
use super::tables::{Ids, ProcessTables};
use crate::collect::call::Call;
use streamsan_model::{
    Access, Allocation, AllocationId, Basis, ByteRange, Context, ContextId, DeviceId, Entity,
    Event, EventId, Extent, MemoryKind, Mode, Status, Stream, StreamId, StreamKind, ThreadId,
    TraceItem,
};

/// `CU_STREAM_LEGACY` and `CU_STREAM_PER_THREAD`: handles with a fixed meaning.
const LEGACY_HANDLE: u64 = 1;
const PER_THREAD_HANDLE: u64 = 2;

/// The call at hand.
pub(super) struct Lookup<'a> {
    pub(super) call: &'a Call,
    /// Whether the symbol is a per-thread twin (`_ptsz`, `_ptds`), for which handle 0 is the
    /// thread's default stream.
    pub(super) per_thread: bool,
    pub(super) tables: &'a mut ProcessTables,
    pub(super) ids: &'a mut Ids,
    pub(super) gaps: &'a mut Gaps,
    /// Declarations that come before the operation.
    pub(super) items: &'a mut Vec<TraceItem>,
    /// What the operation touches.
    pub(super) accesses: Vec<Access>,
}

impl Lookup<'_> {
    pub(super) fn declare(&mut self, entity: Entity) {
        self.items.push(TraceItem::Entity(entity));
    }

    /// Whether a handle that nobody made may be declared: a call that the driver refused is no
    /// evidence of anything.
    fn handles_are_valid(&self) -> bool {
        self.call.succeeded() || self.call.result() == Status::NOT_READY.0
    }

    // --- contexts

    /// The context of this handle; one that was made unseen is declared on the first device.
    pub(super) fn context(&mut self, handle: u64) -> ContextId {
        match self.tables.contexts.get(&handle) {
            Some(&id) => id,
            None => self.new_context(handle, DeviceId(0), false),
        }
    }

    pub(super) fn current_context(&mut self) -> ContextId {
        self.context(self.call.context)
    }

    pub(super) fn new_context(
        &mut self,
        handle: u64,
        device: DeviceId,
        primary: bool,
    ) -> ContextId {
        let id = self.ids.context();
        self.tables.contexts.insert(handle, id);
        let process = self.tables.id;
        self.declare(Entity::Context(Context {
            id,
            process,
            device,
            primary,
            parent: None,
            concurrent_managed_access: true,
            handle,
        }));
        id
    }

    // --- streams

    /// The stream in which this call is carried out. `None` for a stream that is being captured:
    /// the call is not carried out there. `None` too for an unknown handle in a refused call.
    pub(super) fn stream(&mut self, handle: u64) -> Option<StreamId> {
        let stream = self.named_stream(handle)?;
        (!self.tables.captures.holds(stream)).then_some(stream)
    }

    /// The stream that a handle means in this call. `None` for an unknown handle in a call that
    /// was refused.
    pub(super) fn named_stream(&mut self, handle: u64) -> Option<StreamId> {
        match handle {
            0 if self.per_thread => Some(self.thread_stream()),
            0 | LEGACY_HANDLE => Some(self.legacy_stream()),
            PER_THREAD_HANDLE => Some(self.thread_stream()),
            _ => match self.tables.streams.get(&handle) {
                Some(&(id, _)) => Some(id),
                None if self.handles_are_valid() => {
                    // Non-blocking is the kind with the least order, so that no race is hidden.
                    self.gaps.not_understood("(creation of a stream, unseen)");
                    let context = self.current_context();
                    Some(self.new_stream(handle, context, StreamKind::NonBlocking, 0, 0))
                }
                None => None,
            },
        }
    }

    /// The stream of calls that name none.
    pub(super) fn default_stream(&mut self) -> StreamId {
        if self.per_thread { self.thread_stream() } else { self.legacy_stream() }
    }

    fn legacy_stream(&mut self) -> StreamId {
        let context = self.current_context();
        if let Some(&id) = self.tables.legacy_streams.get(&context) {
            return id;
        }
        let id = self.declare_stream(context, StreamKind::Legacy, None, 0, 0, 0);
        self.tables.legacy_streams.insert(context, id);
        id
    }

    fn thread_stream(&mut self) -> StreamId {
        let context = self.current_context();
        let thread = self.call.thread;
        if let Some(&id) = self.tables.thread_streams.get(&(thread, context)) {
            return id;
        }
        let owner = Some(ThreadId(thread.0));
        let id = self.declare_stream(context, StreamKind::PerThread, owner, 0, 0, 0);
        self.tables.thread_streams.insert((thread, context), id);
        id
    }

    pub(super) fn new_stream(
        &mut self,
        handle: u64,
        context: ContextId,
        kind: StreamKind,
        priority: i32,
        driver_id: u64,
    ) -> StreamId {
        let id = self.declare_stream(context, kind, None, priority, handle, driver_id);
        self.tables.streams.insert(handle, (id, context));
        id
    }

    fn declare_stream(
        &mut self,
        context: ContextId,
        kind: StreamKind,
        thread: Option<ThreadId>,
        priority: i32,
        handle: u64,
        driver_id: u64,
    ) -> StreamId {
        let id = self.ids.stream();
        self.declare(Entity::Stream(Stream {
            id,
            context,
            kind,
            thread,
            priority,
            handle,
            driver_id,
            name: None,
        }));
        id
    }

    // --- events

    /// The event of this handle. `None` for an unknown one in a call that was refused.
    pub(super) fn event(&mut self, handle: u64) -> Option<EventId> {
        match self.tables.events.get(&handle) {
            Some(&(id, _)) => Some(id),
            None if self.handles_are_valid() && handle != 0 => Some(self.new_event(handle, 0)),
            None => None,
        }
    }

    pub(super) fn new_event(&mut self, handle: u64, flags: u32) -> EventId {
        let context = self.current_context();
        let id = self.ids.event();
        self.tables.events.insert(handle, (id, context));
        self.declare(Entity::Event(Event {
            id,
            context,
            handle,
            flags,
            imported: false,
            name: None,
        }));
        id
    }

    // --- memory

    /// New memory made by this call.
    pub(super) fn new_allocation(
        &mut self,
        range: ByteRange,
        kind: MemoryKind,
        name: Option<String>,
    ) -> AllocationId {
        let context = (self.call.context != 0).then(|| self.current_context());
        let api = self.call.api.name().to_owned();
        let id = self.declare_allocation(range, kind, context, api, name);
        let returned = self.call.returned.map_or(self.call.g, |r| r.exit);
        self.tables.memory.insert(Block { id, range, kind, context, born: self.call.g, returned });
        id
    }

    /// Ordinary host memory: one allocation over the whole address space.
    pub(super) fn pageable(&mut self) -> AllocationId {
        match self.tables.pageable {
            Some(id) => id,
            None => {
                let everything = ByteRange::new(0, u64::MAX);
                let api = String::new();
                let id = self.declare_allocation(everything, MemoryKind::Pageable, None, api, None);
                self.tables.pageable = Some(id);
                id
            }
        }
    }

    /// Device memory that no recorded call made: as coarse as ordinary host memory.
    pub(super) fn foreign(&mut self) -> AllocationId {
        match self.tables.foreign {
            Some(id) => id,
            None => {
                let id = self.ids.allocation();
                self.tables.foreign = Some(id);
                self.declare(Entity::Allocation(super::exact::foreign(id, self.tables.id)));
                id
            }
        }
    }

    fn declare_allocation(
        &mut self,
        range: ByteRange,
        kind: MemoryKind,
        context: Option<ContextId>,
        api: String,
        name: Option<String>,
    ) -> AllocationId {
        let id = self.ids.allocation();
        let process = self.tables.id;
        self.declare(Entity::Allocation(Allocation {
            id,
            process,
            context,
            kind,
            range,
            api,
            backing: None,
            name,
        }));
        id
    }

    /// Notes an access; two of one extent become one.
    pub(super) fn touch(
        &mut self,
        allocation: AllocationId,
        extent: Extent,
        mode: Mode,
        basis: Basis,
    ) {
        let same = |a: &&mut Access| a.allocation == allocation && a.extent == extent;
        match self.accesses.iter_mut().find(same) {
            Some(access) if access.mode == mode => {}
            Some(access) => access.mode = Mode::ReadWrite,
            None => self.accesses.push(Access { allocation, extent, mode, basis }),
        }
    }
}
