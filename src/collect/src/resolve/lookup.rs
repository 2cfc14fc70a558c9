//! One call being resolved: the tables it may use, and what comes of it.

use super::code_accesses::Instances;
use super::gaps::Gaps;
use super::kernels::{Kernels, KnownKernel};
use super::launches::{Targets, Waiting};
use super::mappings;
use super::memory::Block;
use super::sharing::Shared;
use super::tables::{Ids, ProcessTables};
use crate::call::Call;
use crate::kernel_code::{Capability, CodeId, Codes};
use streamsan_model::{
    Access, Allocation, AllocationId, Backing, Basis, ByteRange, Context, ContextId, DeviceId,
    Entity, Event, EventId, Extent, KernelGap, MemoryKind, Mode, StackId, Status, Stream, StreamId,
    StreamKind, ThreadId, TraceItem,
};

/// `CU_STREAM_LEGACY` and `CU_STREAM_PER_THREAD`: handles with a fixed meaning.
const LEGACY_HANDLE: u64 = 1;
const PER_THREAD_HANDLE: u64 = 2;

/// Where made-up addresses of variables begin, behind those of arrays, and how far apart they are.
const FIRST_VARIABLE: u64 = 1 << 61;
const LARGEST_VARIABLE: u64 = 1 << 32;

/// The call at hand.
pub(super) struct Lookup<'a> {
    pub(super) call: &'a Call,
    /// Whether the symbol is a per-thread twin (`_ptsz`, `_ptds`), for which handle 0 is the
    /// thread's default stream.
    pub(super) per_thread: bool,
    pub(super) tables: &'a mut ProcessTables,
    pub(super) ids: &'a mut Ids,
    pub(super) kernels: &'a mut Kernels,
    pub(super) shared: &'a mut Shared,
    pub(super) gaps: &'a mut Gaps,
    pub(super) codes: &'a mut Codes<Waiting>,
    pub(super) instances: &'a mut Instances,
    /// The launch at hand, where the code of its kernel is not known yet.
    pub(super) waiting: Option<Waiting>,
    /// Up to when what was written to variables counts, where not to the call at hand: its graph may
    /// have been launched since.
    pub(super) held_until: Option<u64>,
    /// What the words of the launch at hand point into, as far as that was looked up.
    pub(super) targets: Targets,
    /// Declarations that come before the operation.
    pub(super) items: &'a mut Vec<TraceItem>,
    /// The capturing stream that the call was issued to: it was not carried out.
    pub(super) captured: Option<StreamId>,
    /// What the operation touches.
    pub(super) accesses: Vec<Access>,
    /// Where the accesses of the part at hand begin, for calls that do several things at once.
    pub(super) part: usize,
}

impl Lookup<'_> {
    pub(super) fn declare(&mut self, entity: Entity) {
        self.tables.declared.note(&entity);
        if matches!(entity, Entity::Event(_) | Entity::Stream(_)) {
            let tables = &mut *self.tables;
            let own = tables.streams.values().map(|(id, _)| *id);
            let defaults = tables.legacy_streams.values().chain(tables.thread_streams.values());
            let streams = own.chain(defaults.copied());
            tables.declared.prune(streams, tables.events.values().map(|(id, _)| *id));
        }
        self.items.push(TraceItem::Entity(entity));
    }

    /// Whether a handle that nobody made may be declared: a call that the driver refused is no
    /// evidence of anything.
    fn handles_are_valid(&self) -> bool {
        self.call.succeeded() || self.call.result() == Status::NOT_READY.0
    }

    // --- what parameters point to

    /// The list that parameter `index` points to, of as many elements of `element` bytes as
    /// parameter `count` says. `None`, after it is counted, where it was not recorded.
    pub(super) fn input_list(
        &mut self,
        index: usize,
        count: usize,
        element: usize,
    ) -> Option<Box<[u8]>> {
        let expected = self.call.arg(count).saturating_mul(element as u64);
        let signature = self.call.api.signature();
        let list = if signature.inputs > 1 {
            self.call.input(index)
        } else {
            self.call.pointee.as_deref()
        };
        let list: Box<[u8]> = list.unwrap_or_default().into();
        if list.len() as u64 == expected {
            return Some(list);
        }
        if self.call.succeeded() {
            let api = self.call.api.name();
            self.gaps.not_understood(&format!("{api} (list too long to record)"));
        }
        None
    }

    /// As [`Lookup::input_list`], of words.
    pub(super) fn input_words(&mut self, index: usize, count: usize) -> Option<Vec<u64>> {
        let list = self.input_list(index, count, 8)?;
        let words = list.chunks_exact(8).filter_map(|word| word.try_into().ok());
        Some(words.map(u64::from_le_bytes).collect())
    }

    // --- contexts

    /// The context of this handle; one that was made unseen is declared on the first device.
    pub(super) fn context(&mut self, handle: u64) -> ContextId {
        match self.tables.contexts.get(&handle) {
            Some(&id) => id,
            None => self.new_context(handle, DeviceId(0), false, true),
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
        concurrent_managed_access: bool,
    ) -> ContextId {
        let id = self.ids.context();
        self.tables.devices.insert(id, device);
        self.tables.contexts.insert(handle, id);
        let (process, parent) = (self.tables.id, None);
        self.declare(Entity::Context(Context {
            id,
            process,
            device,
            primary,
            parent,
            concurrent_managed_access,
            handle,
        }));
        id
    }

    /// The primary context of a device that a green context is made of.
    fn primary_of(&mut self, device: DeviceId, concurrent_managed_access: bool) -> ContextId {
        if let Some(primary) = self.tables.primaries.get(&device).copied() {
            return self.context(primary.handle);
        }
        if let Some(&id) = self.tables.implied_primaries.get(&device) {
            return id;
        }
        let id = self.ids.context();
        self.tables.devices.insert(id, device);
        self.tables.implied_primaries.insert(device, id);
        let process = self.tables.id;
        self.declare(Entity::Context(Context {
            id,
            process,
            device,
            primary: true,
            parent: None,
            concurrent_managed_access,
            handle: 0,
        }));
        id
    }

    /// A green context with this handle of its own.
    pub(super) fn new_green_context(
        &mut self,
        handle: u64,
        device: DeviceId,
        concurrent_managed_access: bool,
    ) -> ContextId {
        let parent = self.primary_of(device, concurrent_managed_access);
        let id = self.ids.context();
        self.tables.devices.insert(id, device);
        self.tables.green_contexts.insert(handle, (id, parent));
        let process = self.tables.id;
        self.declare(Entity::Context(Context {
            id,
            process,
            device,
            primary: false,
            parent: Some(parent),
            concurrent_managed_access,
            handle,
        }));
        id
    }

    /// The green context of this handle; one that was made unseen is declared on the first device.
    pub(super) fn green_context(&mut self, handle: u64) -> ContextId {
        match self.tables.green_contexts.get(&handle) {
            Some(&(id, _)) => id,
            None => self.new_green_context(handle, DeviceId(0), true),
        }
    }

    /// The context that memory made by this call belongs to: of a green context its primary one,
    /// which it shares all memory with.
    fn owner(&mut self) -> Option<ContextId> {
        let context = (self.call.context != 0).then(|| self.current_context())?;
        let green = self.tables.green_contexts.values().find(|(id, _)| *id == context);
        Some(green.map_or(context, |&(_, parent)| parent))
    }

    // --- code

    /// What the device of the current context can do; that of any device where it is not known
    /// which one that is.
    pub(super) fn capability(&self) -> Option<Capability> {
        let tables = &self.tables;
        let context = tables.contexts.get(&self.call.context);
        let device = context.and_then(|context| tables.devices.get(context));
        let known = device.and_then(|device| tables.capabilities.get(device));
        known.or_else(|| tables.capabilities.values().min()).copied()
    }

    /// The code of a kernel that is launched, if it was seen being loaded.
    pub(super) fn code(&mut self, kernel: &KnownKernel) -> Option<CodeId> {
        let (images, device) = (kernel.images?, self.capability()?);
        Some(self.codes.launched(kernel.id, &kernel.name, images, device, self.items))
    }

    /// Counts what is not known of a kernel's launch. Where exact accesses come from elsewhere,
    /// nothing is missing.
    pub(super) fn kernel_gap(&mut self, gap: KernelGap, kernel: &str) {
        if !self.codes.exact {
            self.gaps.kernel(gap, kernel);
        }
    }

    /// A variable of the module that a kernel comes from. One that the program never asked for has
    /// made-up addresses until it does.
    pub(super) fn variable(&mut self, code: CodeId, name: &str) -> Block {
        let key = (self.codes.images_of(code), Box::from(name));
        if let Some(block) = self.tables.variables.get(&key) {
            return *block;
        }
        let start = FIRST_VARIABLE + self.tables.made_up_variables * LARGEST_VARIABLE;
        self.tables.made_up_variables += 1;
        let range = ByteRange::with_len(start, LARGEST_VARIABLE);
        let backing = Some(Backing { memory: self.ids.backing(), offset: 0 });
        let kind = MemoryKind::Global;
        let api = String::new();
        let name = Some(name.to_owned());
        let id = self.declare_allocation(range, kind, (None, backing), api, name, None);
        let (made_by, born, returned) = (self.call.api, 0, 0);
        let block =
            Block { id, range, kind, context: None, backing, made_by, born, returned, stack: None };
        self.tables.held.made_up(key.0, &key.1, id);
        self.tables.variables.insert(key, block);
        block
    }

    // --- streams

    /// The stream in which this call is carried out. `None` for a stream that is being captured:
    /// the call is not carried out there. `None` too for an unknown handle in a refused call.
    pub(super) fn stream(&mut self, handle: u64) -> Option<StreamId> {
        let stream = self.named_stream(handle)?;
        if self.tables.captures.holds(stream) || self.was_captured() {
            self.captured = Some(stream);
            return None;
        }
        Some(stream)
    }

    /// Whether the driver said that the call was captured.
    pub(super) fn was_captured(&self) -> bool {
        self.call.read_back.as_ref().is_some_and(|read| read.captured.is_some())
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
        self.declare_event(handle, flags, false)
    }

    /// An event that a process outside of the run has made.
    pub(super) fn new_imported_event(&mut self, handle: u64) -> EventId {
        self.declare_event(handle, 0, true)
    }

    fn declare_event(&mut self, handle: u64, flags: u32, imported: bool) -> EventId {
        let context = self.current_context();
        let id = self.ids.event();
        self.tables.events.insert(handle, (id, context));
        self.declare(Entity::Event(Event { id, context, handle, flags, imported, name: None }));
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
        self.new_backed_allocation(range, kind, None, name)
    }

    /// New memory made by this call that stands for physical memory.
    pub(super) fn new_backed_allocation(
        &mut self,
        range: ByteRange,
        kind: MemoryKind,
        backing: Option<Backing>,
        name: Option<String>,
    ) -> AllocationId {
        self.new_block(range, kind, backing, name).id
    }

    /// New memory made by this call, as the tables have it.
    pub(super) fn new_block(
        &mut self,
        range: ByteRange,
        kind: MemoryKind,
        backing: Option<Backing>,
        name: Option<String>,
    ) -> Block {
        let id = self.declare_made(range, kind, backing, name);
        let context = self.owner();
        let (made_by, born) = (self.call.api, self.call.g);
        let returned = self.call.returned.map_or(born, |r| r.exit);
        let stack = self.call.stack;
        let block = Block { id, range, kind, context, backing, made_by, born, returned, stack };
        self.tables.memory.insert(block);
        block
    }

    /// New memory made by this call at addresses that no program knows.
    pub(super) fn new_made_up(
        &mut self,
        range: ByteRange,
        kind: MemoryKind,
        backing: Option<Backing>,
    ) -> AllocationId {
        self.declare_made(range, kind, backing, None)
    }

    fn declare_made(
        &mut self,
        range: ByteRange,
        kind: MemoryKind,
        backing: Option<Backing>,
        name: Option<String>,
    ) -> AllocationId {
        let context = self.owner();
        let api = self.call.api.name().to_owned();
        let stack = self.call.stack;
        let id = self.declare_allocation(range, kind, (context, backing), api, name, stack);
        let came_by = backing.and_then(|backing| self.shared.came_unknown_by(backing.memory));
        if let Some(call) = came_by {
            self.gaps.unknown_origin(id, call);
        }
        id
    }

    /// The physical memory behind a block, which others are about to stand for too: from here on
    /// the block is known by it.
    pub(super) fn share(&mut self, block: &Block) -> Backing {
        if let Some(backing) = block.backing {
            return backing;
        }
        let backing = Backing { memory: self.ids.backing(), offset: 0 };
        self.tables.memory.set_backing(block.range.start, backing);
        self.shared.learnt_late();
        let api = block.api().to_owned();
        self.declare(Entity::Allocation(Allocation {
            id: block.id,
            process: self.tables.id,
            context: block.context,
            kind: block.kind,
            range: block.range,
            api,
            backing: Some(backing),
            name: None,
            stack: block.stack,
        }));
        backing
    }

    /// Ordinary host memory: one allocation over the whole address space.
    pub(super) fn pageable(&mut self) -> AllocationId {
        match self.tables.pageable {
            Some(id) => id,
            None => {
                let everything = ByteRange::new(0, u64::MAX);
                let api = String::new();
                let of = (None, None);
                let id =
                    self.declare_allocation(everything, MemoryKind::Pageable, of, api, None, None);
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
        (context, backing): (Option<ContextId>, Option<Backing>),
        api: String,
        name: Option<String>,
        stack: Option<StackId>,
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
            backing,
            name,
            stack,
        }));
        id
    }

    /// From here on accesses belong to the next part of the operation.
    pub(super) fn next_part(&mut self) {
        self.part = self.accesses.len();
    }

    /// How many accesses the part at hand has.
    pub(super) fn part_len(&self) -> u32 {
        (self.accesses.len() - self.part) as u32
    }

    /// Notes an access that begins in `block`; where it goes on into mappings behind it, each gets
    /// its part.
    pub(super) fn touch_from(&mut self, block: &Block, extent: Extent, mode: Mode, basis: Basis) {
        let block = &self.tables.memory.owner_of(block, extent.hull(), self.call.g);
        if block.kind != MemoryKind::Mapped || extent.hull().end <= block.range.end {
            return self.touch(block.id, extent, mode, basis);
        }
        for (block, part) in mappings::split(self, block, extent) {
            self.touch(block.id, part, mode, basis);
        }
    }

    /// Notes that anything reachable from an address in `block` may be touched.
    pub(super) fn touch_all(&mut self, block: &Block, mode: Mode, basis: Basis) {
        if block.kind != MemoryKind::Mapped {
            return self.touch(block.id, Extent::Range(block.range), mode, basis);
        }
        let whole =
            |b: &Block| Access { allocation: b.id, extent: Extent::Range(b.range), mode, basis };
        // Another parameter may have led to the same mappings: they come together.
        if self.accesses[self.part..].contains(&whole(block)) {
            return;
        }
        for block in mappings::neighbours(self, block) {
            self.accesses.push(whole(&block));
        }
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
        match self.accesses[self.part..].iter_mut().find(same) {
            Some(access) if access.mode == mode => {}
            Some(access) => {
                access.mode = match (access.mode, mode) {
                    (Mode::MayWrite, Mode::Read) | (Mode::Read, Mode::MayWrite) => Mode::MayWrite,
                    _ => Mode::ReadWrite,
                }
            }
            None => self.accesses.push(Access { allocation, extent, mode, basis }),
        }
    }
}
