//! What the driver's handles mean in one process, and the next free ids of the run.

use super::capture::Captures;
use super::memory::Memory;
use std::collections::HashMap;
use streamsan_model::{AllocationId, ContextId, DeviceId, EventId, KernelId, ProcessId, StreamId};
use streamsan_wire::ThreadKey;

/// Ids of the run, assigned in order of first appearance.
#[derive(Debug, Default)]
pub(super) struct Ids {
    contexts: u32,
    streams: u32,
    events: u32,
    allocations: u32,
    kernels: u32,
}

macro_rules! next {
    ($($method:ident: $id:ident from $field:ident;)*) => {
        impl Ids {
            $(pub(super) fn $method(&mut self) -> $id {
                self.$field += 1;
                $id(self.$field - 1)
            })*
        }
    };
}
next! {
    context: ContextId from contexts;
    stream: StreamId from streams;
    event: EventId from events;
    allocation: AllocationId from allocations;
    kernel: KernelId from kernels;
}

/// A primary context and how often it is retained.
#[derive(Clone, Copy, Debug)]
pub(super) struct Primary {
    pub(super) handle: u64,
    pub(super) retained: u64,
}

/// A kernel as a launch finds it by its handle.
#[derive(Clone, Debug)]
pub(super) struct KnownKernel {
    pub(super) id: KernelId,
    pub(super) name: Box<str>,
    /// Offset and size of each parameter; `None` when the driver could not tell.
    pub(super) params: Option<Box<[(u32, u32)]>>,
}

/// The tables of one process.
#[derive(Debug)]
pub(super) struct ProcessTables {
    pub(super) id: ProcessId,
    pub(super) contexts: HashMap<u64, ContextId>,
    pub(super) primaries: HashMap<DeviceId, Primary>,
    pub(super) legacy_streams: HashMap<ContextId, StreamId>,
    pub(super) thread_streams: HashMap<(ThreadKey, ContextId), StreamId>,
    /// Streams with handles of their own, and the context of each.
    pub(super) streams: HashMap<u64, (StreamId, ContextId)>,
    pub(super) events: HashMap<u64, (EventId, ContextId)>,
    pub(super) captures: Captures,
    pub(super) memory: Memory,
    /// Ordinary host memory: everything that is not an allocation of the driver.
    pub(super) pageable: Option<AllocationId>,
    /// Device memory that no recorded call made.
    pub(super) foreign: Option<AllocationId>,
    pub(super) kernels: HashMap<u64, KnownKernel>,
    /// Start addresses of the variables that were looked up in a module or library.
    pub(super) globals: HashMap<u64, Vec<u64>>,
}

impl ProcessTables {
    pub(super) fn new(id: ProcessId, memory_depth: usize) -> Self {
        Self {
            id,
            contexts: HashMap::new(),
            primaries: HashMap::new(),
            legacy_streams: HashMap::new(),
            thread_streams: HashMap::new(),
            streams: HashMap::new(),
            events: HashMap::new(),
            captures: Captures::default(),
            memory: Memory::new(memory_depth),
            pageable: None,
            foreign: None,
            kernels: HashMap::new(),
            globals: HashMap::new(),
        }
    }
}
