//! The state of the driver, all of it behind the one lock in [`super::Sim`].

use std::collections::BTreeMap;
use std::sync::Arc;

use super::array::Array;
use super::capture::Capture;
use super::context::Context;
use super::device::Device;
use super::event::Event;
use super::function::Function;
use super::graph::{Executable, Graph, Node};
use super::green::GreenContext;
use super::library::{Kernel, Library};
use super::module::Module;
use super::pool::Pool;
use super::stream::Stream;
use super::thread;
use super::virtual_memory::{Mapping, Physical, Reservation};
use super::work::Job;
use crate::errors::{CuError, Outcome};
use crate::handles::{Kind, Table};
use crate::memory::{AddressMap, Origin, Region, Window, WindowError};
use crate::schedule::{Moment, OpId, Policy, Queue};

/// Everything the driver knows.
#[derive(Debug)]
pub(crate) struct Driver {
    pub(super) devices: Vec<Device>,
    pub(super) contexts: Table<Context>,
    pub(super) stream_handles: Table<u64>,
    /// By identity, which is never reused; a destroyed stream stays until its work is done.
    pub(super) streams: BTreeMap<u64, Stream>,
    pub(super) events: Table<Event>,
    pub(super) modules: Table<Module>,
    pub(super) functions: Table<Function>,
    pub(super) libraries: Table<Library>,
    pub(super) kernels: Table<Kernel>,
    pub(super) pools: Table<Pool>,
    pub(super) graphs: Table<Graph>,
    pub(super) nodes: Table<Node>,
    pub(super) execs: Table<Executable>,
    pub(super) arrays: Table<Array>,
    pub(super) greens: Table<GreenContext>,
    /// Numbers of multiprocessors, by the handles of their descriptions.
    pub(super) descriptions: Table<u32>,
    pub(super) physical: Table<Physical>,
    /// Reserved ranges of addresses, and the mappings in them, by their starts.
    pub(super) reservations: BTreeMap<u64, Reservation>,
    pub(super) mappings: BTreeMap<u64, Mapping>,
    /// Captures under way, by their numbers.
    pub(super) captures: BTreeMap<u64, Capture>,
    /// Memory of allocation nodes by its start, and whether it is allocated.
    pub(super) graph_memory: BTreeMap<u64, bool>,
    /// Conditions of graphs, and the value that each has at every launch.
    pub(super) conditions: BTreeMap<u64, u32>,
    pub(super) window: Window,
    /// The window of memory that the program may touch too, once there is some; `None` in it where
    /// the system gives none.
    shared: Option<Option<Window>>,
    pub(super) map: Arc<AddressMap>,
    pub(super) queue: Queue<Job>,
    pub(super) policy: Policy,
    /// Simulated nanoseconds of device time.
    pub(super) clock: u64,
    /// Bytes of pageable memory staged by copies that have not run yet.
    pub(super) staged: u64,
    /// Memory whose `cuMemFreeAsync` has run, until the host next waits for something.
    pub(super) released: Vec<u64>,
    /// The paused operation that had the last turn.
    pub(super) last_paused: Option<OpId>,
    /// Streams that the program created so far.
    pub(super) created_streams: u32,
    last_id: u64,
}

impl Driver {
    pub(super) fn new(policy: Policy, devices: u32) -> Result<Driver, WindowError> {
        let window = Window::reserve()?;
        let base = window.handle_base();
        let mut driver = Driver {
            devices: Vec::new(),
            contexts: Table::new(base, Kind::Context),
            stream_handles: Table::new(base, Kind::Stream),
            streams: BTreeMap::new(),
            events: Table::new(base, Kind::Event),
            modules: Table::new(base, Kind::Module),
            functions: Table::new(base, Kind::Function),
            libraries: Table::new(base, Kind::Library),
            kernels: Table::new(base, Kind::Kernel),
            pools: Table::new(base, Kind::Pool),
            graphs: Table::new(base, Kind::Graph),
            nodes: Table::new(base, Kind::GraphNode),
            execs: Table::new(base, Kind::GraphExec),
            arrays: Table::new(base, Kind::Array),
            greens: Table::new(base, Kind::GreenContext),
            descriptions: Table::new(base, Kind::Description),
            physical: Table::new(base, Kind::Physical),
            reservations: BTreeMap::new(),
            mappings: BTreeMap::new(),
            captures: BTreeMap::new(),
            graph_memory: BTreeMap::new(),
            conditions: BTreeMap::new(),
            window,
            shared: None,
            map: Arc::default(),
            queue: Queue::default(),
            policy,
            clock: 0,
            staged: 0,
            released: Vec::new(),
            last_paused: None,
            created_streams: 0,
            last_id: 0,
        };
        for ordinal in 0..devices {
            let pool = driver.pools.insert(Pool::new(ordinal, true, 0));
            driver.devices.push(Device::new(pool));
        }
        Ok(driver)
    }

    /// A number never given before in this process.
    pub(super) fn fresh_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    pub(super) fn map_mut(&mut self) -> &mut AddressMap {
        Arc::make_mut(&mut self.map)
    }

    pub(super) fn device(&self, ordinal: i32) -> Outcome<u32> {
        let found = u32::try_from(ordinal).ok().filter(|at| (*at as usize) < self.devices.len());
        found.ok_or(CuError::INVALID_DEVICE)
    }

    /// The current context of the calling thread, if it can be used.
    pub(super) fn current(&self) -> Outcome<u64> {
        let handle = thread::current().ok_or(CuError::INVALID_CONTEXT)?;
        let handle = self.whole_context(handle);
        self.usable(handle)?;
        Ok(handle)
    }

    /// The context, if it is alive and no kernel has faulted in it.
    pub(super) fn usable(&self, handle: u64) -> Outcome<&Context> {
        let context = self.contexts.get(handle).filter(|context| context.active);
        let context = context.ok_or(CuError::CONTEXT_IS_DESTROYED)?;
        match context.poison {
            Some(error) => Err(error),
            None => Ok(context),
        }
    }

    pub(super) fn choose(&mut self, moment: Moment<'_>) -> Option<OpId> {
        self.policy.choose(&self.queue, moment)
    }

    /// Takes `length` bytes on `device` and enters them in the map.
    pub(super) fn take(
        &mut self,
        length: u64,
        origin: Origin,
        context: u64,
        device: u32,
        flags: u32,
    ) -> Outcome<u64> {
        let capacity = super::device::TOTAL_MEMORY;
        let on_device = !matches!(origin, Origin::Pinned);
        let used = self.devices[device as usize].used;
        if length > capacity || (on_device && used + length > capacity) {
            return Err(CuError::OUT_OF_MEMORY);
        }
        let shared = match origin {
            Origin::Pinned | Origin::Managed => {
                self.shared.get_or_insert_with(Window::reserve_shared).as_mut()
            }
            _ => None,
        };
        let window = shared.unwrap_or(&mut self.window);
        let start = window.take(length).map_err(|_| CuError::OUT_OF_MEMORY)?;
        if on_device {
            self.devices[device as usize].used += length;
        }
        self.enter(start, length, origin, context, device, flags);
        Ok(start)
    }

    /// Enters a range that is in hand already in the map.
    pub(super) fn enter(
        &mut self,
        start: u64,
        length: u64,
        origin: Origin,
        context: u64,
        device: u32,
        flags: u32,
    ) {
        let id = self.fresh_id();
        let (freed, sync_memops) = (false, false);
        let region =
            Region { start, length, origin, device, context, id, flags, freed, sync_memops };
        self.map_mut().insert(region);
    }

    /// Takes a region out of the map and gives its memory back.
    pub(super) fn discard(&mut self, region: &Region) {
        self.map_mut().remove(region.start);
        match region.origin {
            Origin::Registered | Origin::Mapped => return,
            Origin::Pinned => {}
            Origin::Device
            | Origin::Pool(_)
            | Origin::Global
            | Origin::Graph
            | Origin::Array
            | Origin::Managed => {
                let device = &mut self.devices[region.device as usize];
                device.used = device.used.saturating_sub(region.length);
            }
        }
        let shared = self.shared.as_mut().and_then(Option::as_mut);
        let window = shared.filter(|shared| shared.contains(region.start));
        window.unwrap_or(&mut self.window).give_back(region.start, region.length);
    }
}
