//! The driver's objects behind the names of a trace, and those that are there before its first
//! line.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, HashSet};

use streamsan_model::{
    Action, Allocation, AllocationId, ContextId, Entities, Entity, EventId, GridControl, KernelId,
    MemoryKind, StreamId, StreamKind, TraceItem,
};

use crate::Refusal;
use crate::driver::{address, must};
use crate::kernels;
use crate::plan;

/// `CU_STREAM_LEGACY`, `CU_STREAM_PER_THREAD`, `CU_STREAM_NON_BLOCKING`.
const LEGACY: u64 = 1;
const PER_THREAD: u64 = 2;
const NON_BLOCKING: u64 = 1;

/// `CU_MEM_ATTACH_GLOBAL`, `CU_MEMHOSTREGISTER_PORTABLE`.
const ATTACH_GLOBAL: u64 = 1;
const PORTABLE: u64 = 1;

const PAGE: usize = 4096;

thread_local! {
    /// The context that is current on this thread, as far as this program has made it so.
    static CURRENT: Cell<u64> = const { Cell::new(0) };
}

/// Handles and addresses by the ids of the trace.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) entities: Entities,
    /// Contexts that are alive.
    pub(crate) contexts: BTreeMap<ContextId, u64>,
    pub(crate) streams: HashMap<StreamId, u64>,
    pub(crate) events: HashMap<EventId, u64>,
    /// Addresses, of freed memory too.
    memory: BTreeMap<AllocationId, u64>,
    pub(crate) functions: HashMap<(ContextId, KernelId), u64>,
    /// The launches of each context.
    launched: Vec<(ContextId, KernelId)>,
    /// The waits and triggers of kernels.
    controls: HashMap<KernelId, GridControl>,
    /// The entities that no line makes, and that are to be made as soon as their context is there.
    presupposed: Vec<Entity>,
}

/// The entities that the lines of a trace make: everything else is there before.
#[derive(Debug, Default)]
struct Made {
    contexts: HashSet<ContextId>,
    streams: HashSet<StreamId>,
    events: HashSet<EventId>,
    memory: HashSet<AllocationId>,
}

impl Made {
    fn by(items: &[TraceItem]) -> Self {
        let mut made = Self::default();
        for item in items {
            let TraceItem::Operation(operation) = item else { continue };
            match operation.action {
                Action::ContextCreate { context } => drop(made.contexts.insert(context)),
                Action::StreamCreate { stream } => drop(made.streams.insert(stream)),
                Action::EventCreate { event } => drop(made.events.insert(event)),
                Action::Allocate { allocation, .. } => drop(made.memory.insert(allocation)),
                _ => {}
            }
        }
        made
    }

    /// The entities that are declared and not made.
    fn missing(&self, items: &[TraceItem]) -> Vec<Entity> {
        let is_missing = |entity: &&Entity| match entity {
            Entity::Context(x) => !self.contexts.contains(&x.id),
            Entity::Stream(x) => !self.streams.contains(&x.id),
            Entity::Event(x) => !self.events.contains(&x.id),
            Entity::Allocation(x) => !self.memory.contains(&x.id),
            Entity::Process(_)
            | Entity::Thread(_)
            | Entity::Kernel(_)
            | Entity::KernelCode(_)
            | Entity::Module(_)
            | Entity::Frame(_)
            | Entity::Stack(_)
            | Entity::Graph(_) => false,
        };
        let declared = items.iter().filter_map(|item| match item {
            TraceItem::Entity(entity) => Some(entity),
            _ => None,
        });
        declared.filter(is_missing).cloned().collect()
    }
}

impl Machine {
    /// Starts the driver and makes what the trace presupposes.
    pub(crate) fn open(items: &[TraceItem]) -> Result<Self, Refusal> {
        let mut machine = Self {
            entities: Entities::default(),
            contexts: BTreeMap::new(),
            streams: HashMap::new(),
            events: HashMap::new(),
            memory: BTreeMap::new(),
            functions: HashMap::new(),
            launched: Vec::new(),
            controls: plan::controls(items),
            presupposed: Vec::new(),
        };
        for item in items {
            match item {
                TraceItem::Entity(entity) => machine.entities.declare(entity.clone()),
                TraceItem::Operation(operation) => {
                    if let Action::Launch { stream, kernel, .. } = operation.action
                        && let Some(stream) = machine.entities.stream(stream)
                        && !machine.launched.contains(&(stream.context, kernel))
                    {
                        machine.launched.push((stream.context, kernel));
                    }
                }
                TraceItem::Returned { .. } | TraceItem::Range(_) => {}
            }
        }
        must("cuInit", &[0])?;
        let made = Made::by(items);
        machine.presupposed = made.missing(items);
        let contexts: Vec<ContextId> = machine
            .presupposed
            .iter()
            .filter_map(|entity| match entity {
                Entity::Context(context) => Some(context.id),
                _ => None,
            })
            .collect();
        for context in contexts {
            machine.create_context(context)?;
        }
        machine.make_presupposed()?;
        Ok(machine)
    }

    /// Makes what is presupposed in contexts that are there.
    pub(crate) fn make_presupposed(&mut self) -> Result<(), Refusal> {
        for entity in std::mem::take(&mut self.presupposed) {
            let context = match &entity {
                Entity::Stream(x) => Some(x.context),
                Entity::Event(x) => Some(x.context),
                Entity::Allocation(x) => x.context,
                _ => continue,
            };
            if context.is_some_and(|context| !self.contexts.contains_key(&context)) {
                self.presupposed.push(entity);
                continue;
            }
            match entity {
                Entity::Stream(x) => self.create_stream(x.id, "cuStreamCreateWithPriority")?,
                Entity::Event(x) => self.create_event(x.id)?,
                Entity::Allocation(x) => self.allocate(x.id, entry_point(x.kind)?, None)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Waits for all work of all contexts.
    pub(crate) fn finish(&mut self) -> Result<(), Refusal> {
        let contexts: Vec<ContextId> = self.contexts.keys().copied().collect();
        for context in contexts {
            self.enter(context)?;
            must("cuCtxSynchronize", &[])?;
        }
        Ok(())
    }

    // Contexts.

    pub(crate) fn context(&self, id: ContextId) -> Result<u64, Refusal> {
        self.contexts.get(&id).copied().ok_or_else(|| Refusal::new("its context has ended"))
    }

    /// Makes the context current on the calling thread.
    pub(crate) fn enter(&self, id: ContextId) -> Result<(), Refusal> {
        let handle = self.context(id)?;
        if CURRENT.replace(handle) != handle {
            must("cuCtxSetCurrent", &[handle])?;
        }
        Ok(())
    }

    /// Creates a context, or retains a primary one, with all that is launched in it.
    pub(crate) fn create_context(&mut self, id: ContextId) -> Result<(), Refusal> {
        let unknown = || Refusal::new("an unknown context");
        let entity = self.entities.context(id).ok_or_else(unknown)?;
        let (ordinal, is_primary) = (u64::from(entity.device.0), entity.primary);
        let (mut device, mut handle) = (0_u64, 0_u64);
        must("cuDeviceGet", &[address(&mut device), ordinal])?;
        if is_primary {
            must("cuDevicePrimaryCtxRetain", &[address(&mut handle), device])?;
        } else {
            must("cuCtxCreate_v2", &[address(&mut handle), 0, device])?;
            CURRENT.set(handle);
        }
        self.contexts.insert(id, handle);
        self.meet_peers(id)?;
        self.load(id)
    }

    /// Lets contexts of different devices reach each other's memory.
    fn meet_peers(&self, id: ContextId) -> Result<(), Refusal> {
        let device = |id| self.entities.context(id).map(|context| context.device);
        for &other in self.contexts.keys().filter(|&&other| device(other) != device(id)) {
            for (from, to) in [(id, other), (other, id)] {
                self.enter(from)?;
                must("cuCtxEnablePeerAccess", &[self.context(to)?, 0])?;
            }
        }
        Ok(())
    }

    fn load(&mut self, id: ContextId) -> Result<(), Refusal> {
        let kernels: Vec<(KernelId, String)> = self
            .launched
            .iter()
            .filter(|(context, _)| *context == id)
            .filter_map(|(_, kernel)| self.entities.kernel(*kernel))
            .map(|kernel| (kernel.id, kernel.name.clone()))
            .collect();
        let variables: Vec<(AllocationId, String, u64)> = self
            .entities
            .allocations()
            .filter(|a| a.kind == MemoryKind::Global && a.context == Some(id))
            .map(|a| (a.id, variable(a).to_owned(), a.range.len()))
            .collect();
        if kernels.is_empty() && variables.is_empty() {
            return Ok(());
        }
        let control = |id| self.controls.get(id).copied().unwrap_or_default();
        let names: Vec<(&str, GridControl)> =
            kernels.iter().map(|(id, name)| (name.as_str(), control(id))).collect();
        let sizes: Vec<(&str, u64)> =
            variables.iter().map(|(_, name, size)| (name.as_str(), *size)).collect();
        let mut image = kernels::module(&names, &sizes) + "\0";
        let mut module = 0_u64;
        self.enter(id)?;
        must("cuModuleLoadData", &[address(&mut module), address(image.as_mut_str())])?;
        for (kernel, name) in kernels {
            let (mut name, mut function) = (name + "\0", 0_u64);
            let words = [address(&mut function), module, address(name.as_mut_str())];
            must("cuModuleGetFunction", &words)?;
            self.functions.insert((id, kernel), function);
        }
        for (variable, name, _) in variables {
            let (mut name, mut start, mut size) = (name + "\0", 0_u64, 0_u64);
            let words =
                [address(&mut start), address(&mut size), module, address(name.as_mut_str())];
            must("cuModuleGetGlobal_v2", &words)?;
            self.memory.insert(variable, start);
        }
        Ok(())
    }

    /// The context has ended; what is current on the calling thread is for the driver to say.
    pub(crate) fn forget_context(&mut self, id: ContextId) {
        self.contexts.remove(&id);
        CURRENT.set(0);
    }

    // Streams and events.

    pub(crate) fn create_stream(&mut self, id: StreamId, name: &str) -> Result<(), Refusal> {
        let unknown = || Refusal::new("an unknown stream");
        let stream = self.entities.stream(id).ok_or_else(unknown)?.clone();
        let flags = match stream.kind {
            StreamKind::Blocking => 0,
            StreamKind::NonBlocking => NON_BLOCKING,
            StreamKind::Legacy => {
                self.streams.insert(id, LEGACY);
                return Ok(());
            }
            StreamKind::PerThread => {
                self.streams.insert(id, PER_THREAD);
                return Ok(());
            }
        };
        let mut handle = 0_u64;
        self.enter(stream.context)?;
        must(name, &[address(&mut handle), flags, stream.priority as u32 as u64])?;
        self.streams.insert(id, handle);
        Ok(())
    }

    pub(crate) fn create_event(&mut self, id: EventId) -> Result<(), Refusal> {
        let unknown = || Refusal::new("an unknown event");
        let context = self.entities.event(id).ok_or_else(unknown)?.context;
        let mut handle = 0_u64;
        self.enter(context)?;
        must("cuEventCreate", &[address(&mut handle), 0])?;
        self.events.insert(id, handle);
        Ok(())
    }

    pub(crate) fn stream(&self, id: StreamId) -> Result<u64, Refusal> {
        self.streams.get(&id).copied().ok_or_else(|| Refusal::new("a stream that is not there"))
    }

    /// The stream, with its context current.
    pub(crate) fn stream_in_context(&self, id: StreamId) -> Result<u64, Refusal> {
        if let Some(stream) = self.entities.stream(id) {
            self.enter(stream.context)?;
        }
        self.stream(id)
    }

    pub(crate) fn event(&self, id: EventId) -> Result<u64, Refusal> {
        self.events.get(&id).copied().ok_or_else(|| Refusal::new("an event that is not there"))
    }

    /// Makes the context of an event current.
    pub(crate) fn enter_event(&self, id: EventId) -> Result<(), Refusal> {
        match self.entities.event(id) {
            Some(event) => self.enter(event.context),
            None => Ok(()),
        }
    }

    // Memory.

    /// Where the memory really begins.
    pub(crate) fn start(&self, id: AllocationId) -> Result<u64, Refusal> {
        self.memory.get(&id).copied().ok_or_else(|| Refusal::new("memory that is not there"))
    }

    /// Where an address of the trace really is.
    pub(crate) fn place(&self, id: AllocationId, at: u64) -> Result<u64, Refusal> {
        let start = self.entities.allocation(id).map_or(0, |buffer| buffer.range.start);
        Ok(self.start(id)? + (at - start))
    }

    /// Makes memory with the entry point `name`; an empty name stands for memory that no call
    /// makes.
    pub(crate) fn allocate(
        &mut self,
        id: AllocationId,
        name: &str,
        stream: Option<StreamId>,
    ) -> Result<(), Refusal> {
        let unknown = || Refusal::new("unknown memory");
        let buffer = self.entities.allocation(id).ok_or_else(unknown)?.clone();
        let size = buffer.range.len();
        if buffer.kind == MemoryKind::Global {
            // Its module has been loaded with it.
            return self.start(id).map(drop);
        }
        let mut start = 0_u64;
        if buffer.kind.is_host() && buffer.kind != MemoryKind::Pinned {
            start = host_memory(size);
        }
        if let Some(context) = buffer.context {
            self.enter(context)?;
        }
        match name {
            "" => {}
            "cuMemAlloc_v2" | "cuMemAllocHost_v2" => must(name, &[address(&mut start), size])?,
            "cuMemAllocManaged" => must(name, &[address(&mut start), size, ATTACH_GLOBAL])?,
            "cuMemHostRegister_v2" => must(name, &[start, size, PORTABLE])?,
            "cuMemAllocAsync" => {
                let stream = stream.ok_or_else(|| Refusal::new("no stream to allocate in"))?;
                let stream = self.stream_in_context(stream)?;
                must(name, &[address(&mut start), size, stream])?;
            }
            _ => return Err(Refusal::new(format!("{name} is not known here"))),
        }
        self.check_neighbours(&buffer, start)?;
        self.memory.insert(id, start);
        Ok(())
    }

    /// Memory lies on former memory exactly where the trace says so.
    fn check_neighbours(&self, new: &Allocation, start: u64) -> Result<(), Refusal> {
        let end = start + new.range.len();
        for (&id, &other_start) in &self.memory {
            let Some(other) = self.entities.allocation(id) else { continue };
            let other_end = other_start + other.range.len();
            let overlaps = start < other_end && other_start < end;
            let should = other.range.intersection(new.range).is_some();
            let distance = |a: u64, b: u64| a.wrapping_sub(b);
            let is_there =
                distance(start, other_start) == distance(new.range.start, other.range.start);
            if overlaps != should || (should && !is_there) {
                return Err(Refusal::new("the driver chooses other addresses for new memory"));
            }
        }
        Ok(())
    }
}

/// The entry point that makes memory older than the trace.
fn entry_point(kind: MemoryKind) -> Result<&'static str, Refusal> {
    match kind {
        MemoryKind::Device => Ok("cuMemAlloc_v2"),
        MemoryKind::Managed => Ok("cuMemAllocManaged"),
        MemoryKind::Pinned => Ok("cuMemAllocHost_v2"),
        MemoryKind::Registered => Ok("cuMemHostRegister_v2"),
        MemoryKind::Pageable | MemoryKind::Global => Ok(""),
        MemoryKind::Array
        | MemoryKind::Mapped
        | MemoryKind::Imported
        | MemoryKind::Region
        | MemoryKind::GraphOrdered => Err(Refusal::new("memory of this kind is not replayed")),
        MemoryKind::StreamOrdered => {
            Err(Refusal::new("stream-ordered memory older than the trace has no stream"))
        }
    }
}

/// The name of a module's variable, without the context before it.
fn variable(buffer: &Allocation) -> &str {
    buffer.name.as_deref().and_then(|name| name.rsplit('/').next()).unwrap_or_default()
}

/// Ordinary memory on pages of its own, for as long as the process lives.
fn host_memory(size: u64) -> u64 {
    let memory = vec![0_u8; (size as usize).next_multiple_of(PAGE) + PAGE].leak();
    address(memory).next_multiple_of(PAGE as u64)
}
