//! The meaning of the driver's handles in one process, and the next free ids of the run.

use super::arrays::Arrays;
use super::capture::Captures;
use super::collectives::{Captured, Queues};
use super::global_pointers::Variables;
use super::graphs::{Executables, KnownLives, Makers};
use super::host_files::Batches;
use super::host_names::Declared;
use super::kernels::Functions;
use super::mappings::Mappings;
use super::members::Parameters;
use super::memory::{Block, Memory};
use super::modules::Modules;
use super::sharing::Imports;
use super::signals::Semaphores;
use super::sync_memops::SyncMemops;
use super::tensor_maps::TensorMaps;
use super::textures::Textures;
use crate::kernel_code::{Capability, ImagesId};
use std::collections::HashMap;
use std::sync::Arc;
use streamsan_model::{
    AllocationId, BackingId, ContextId, DeviceId, EventId, ExecutableId, FileBatchId, Graph,
    GraphId, KernelId, ModuleId, ProcessId, SemaphoreId, StreamId, ThreadId,
};
use streamsan_wire::ThreadKey;

/// Ids of the run, assigned in order of first appearance.
#[derive(Debug, Default)]
pub(super) struct Ids {
    contexts: u32,
    streams: u32,
    events: u32,
    allocations: u32,
    kernels: u32,
    graphs: u32,
    executables: u32,
    backings: u32,
    semaphores: u32,
    file_batches: u32,
    modules: u32,
    threads: u32,
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
    graph: GraphId from graphs;
    executable: ExecutableId from executables;
    backing: BackingId from backings;
    semaphore: SemaphoreId from semaphores;
    file_batch: FileBatchId from file_batches;
    module: ModuleId from modules;
    thread: ThreadId from threads;
}

/// A primary context and how often it is retained.
#[derive(Clone, Copy, Debug)]
pub(super) struct Primary {
    pub(super) handle: u64,
    pub(super) retained: u64,
    /// Whether the host may touch managed memory while kernels run.
    pub(super) concurrent_managed: bool,
}

/// The tables of one process.
#[derive(Debug)]
pub(super) struct ProcessTables {
    pub(super) id: ProcessId,
    pub(super) contexts: HashMap<u64, ContextId>,
    pub(super) primaries: HashMap<DeviceId, Primary>,
    /// Primary contexts that only green contexts are known of.
    pub(super) implied_primaries: HashMap<DeviceId, ContextId>,
    /// Green contexts by their own handles, each with the primary context that it is a part of.
    pub(super) green_contexts: HashMap<u64, (ContextId, ContextId)>,
    pub(super) legacy_streams: HashMap<ContextId, StreamId>,
    pub(super) thread_streams: HashMap<(ThreadKey, ContextId), StreamId>,
    /// Streams with handles of their own, and the context of each.
    pub(super) streams: HashMap<u64, (StreamId, ContextId)>,
    pub(super) events: HashMap<u64, (EventId, ContextId)>,
    /// The declarations that may be named later.
    pub(super) declared: Declared,
    pub(super) file_batches: Batches,
    pub(super) collectives: Queues,
    pub(super) captured_collectives: Captured,
    pub(super) captures: Captures,
    /// Who made which node of a graph.
    pub(super) makers: Makers,
    pub(super) executables: Executables,
    /// Memory that graphs allocate.
    pub(super) lives: KnownLives,
    pub(super) memory: Memory,
    pub(super) mappings: Mappings,
    pub(super) imports: Imports,
    pub(super) arrays: Arrays,
    pub(super) textures: Textures,
    pub(super) tensor_maps: TensorMaps,
    pub(super) semaphores: Semaphores,
    pub(super) parameters: Parameters,
    pub(super) sync_memops: SyncMemops,
    /// Ordinary host memory: everything that is not an allocation of the driver.
    pub(super) pageable: Option<AllocationId>,
    /// Device memory that no recorded call made.
    pub(super) foreign: Option<AllocationId>,
    pub(super) functions: Functions,
    pub(super) modules: Modules,
    /// Graphs with kernels whose code is not known yet, and how many of these they have.
    pub(super) graphs: HashMap<GraphId, (Arc<Graph>, usize)>,
    /// The devices of contexts, and what the devices can do.
    pub(super) devices: HashMap<ContextId, DeviceId>,
    pub(super) capabilities: HashMap<DeviceId, Capability>,
    /// Variables of modules that kernels touch, by the images of their module.
    pub(super) variables: HashMap<(ImagesId, Box<str>), Block>,
    /// The pointers that the program wrote to variables of its modules.
    pub(super) global_pointers: Variables,
    /// How many variables have had made-up addresses.
    pub(super) made_up_variables: u64,
    /// Start addresses of the variables that were looked up in a module or library.
    pub(super) globals: HashMap<u64, Vec<u64>>,
}

impl ProcessTables {
    pub(super) fn new(id: ProcessId, memory_depth: usize) -> Self {
        Self {
            id,
            contexts: HashMap::new(),
            primaries: HashMap::new(),
            implied_primaries: HashMap::new(),
            green_contexts: HashMap::new(),
            legacy_streams: HashMap::new(),
            thread_streams: HashMap::new(),
            streams: HashMap::new(),
            events: HashMap::new(),
            declared: Declared::default(),
            file_batches: Batches::new(),
            collectives: Queues::new(),
            captured_collectives: Captured::default(),
            captures: Captures::default(),
            makers: Makers::new(),
            executables: Executables::default(),
            lives: KnownLives::new(),
            memory: Memory::new(memory_depth),
            mappings: Mappings::default(),
            imports: Imports::default(),
            arrays: Arrays::default(),
            textures: Textures::default(),
            tensor_maps: TensorMaps::default(),
            semaphores: Semaphores::default(),
            parameters: Parameters::default(),
            sync_memops: SyncMemops::default(),
            pageable: None,
            foreign: None,
            functions: Functions::default(),
            modules: Modules::default(),
            graphs: HashMap::new(),
            devices: HashMap::new(),
            capabilities: HashMap::new(),
            variables: HashMap::new(),
            global_pointers: Variables::default(),
            made_up_variables: 0,
            globals: HashMap::new(),
        }
    }
}
