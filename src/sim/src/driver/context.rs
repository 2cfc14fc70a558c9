//! Contexts, the stack of current contexts of each thread, and the primary context of a device.

use std::collections::{BTreeMap, BTreeSet};

use super::device::TOTAL_MEMORY;
use super::sim::{Call, Held};
use super::state::Driver;
use super::stream::StreamKind;
use super::thread;
use crate::errors::{CuError, Outcome};
use crate::memory::{Origin, Region};
use crate::schedule::OpId;

/// A context.
#[derive(Debug)]
pub(crate) struct Context {
    /// Unique over the life of the process, unlike the handle.
    id: u64,
    pub(super) device: u32,
    primary: bool,
    /// False for a primary context that nobody retains.
    pub(super) active: bool,
    flags: u32,
    /// The error that every further call in this context returns.
    pub(super) poison: Option<CuError>,
    pub(super) legacy: u64,
    /// Default streams by thread.
    pub(super) per_thread: BTreeMap<u64, u64>,
    /// Every stream, destroyed ones with pending work included.
    pub(super) streams: BTreeSet<u64>,
    /// The operations that `cuCtxWaitEvent` put before everything submitted later.
    pub(super) gate: Vec<OpId>,
    /// Devices (by bit) whose memory kernels of this context may access.
    pub(super) peers: u32,
    limits: Limits,
    cache_config: u32,
    shared_config: u32,
    /// The green context that it stands for.
    pub(super) green: Option<u64>,
}

/// Resource limits (CUlimit) in the units of each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits([u64; 7]);

impl Default for Limits {
    fn default() -> Self {
        Limits([1024, 1 << 20, 8 << 20, 2, 2048, 128, 0])
    }
}

const FLAGS_MASK: u32 = 0xff;
/// CU_CTX_SYNC_MEMOPS.
const SYNC_MEMOPS: u32 = 0x80;

impl Context {
    /// Whether every synchronous copy and memset was asked to be fully synchronous.
    pub(super) fn sync_memops(&self) -> bool {
        self.flags & SYNC_MEMOPS != 0
    }
}

impl Driver {
    pub(super) fn make_context(&mut self, device: u32, flags: u32, primary: bool) -> u64 {
        let id = self.fresh_id();
        let handle = self.contexts.insert(Context {
            id,
            device,
            primary,
            active: true,
            flags,
            poison: None,
            legacy: 0,
            per_thread: BTreeMap::new(),
            streams: BTreeSet::new(),
            gate: Vec::new(),
            peers: 0,
            limits: Limits::default(),
            cache_config: 0,
            shared_config: 0,
            green: None,
        });
        let legacy = self.make_stream(handle, StreamKind::Legacy, 0);
        if let Some(context) = self.contexts.get_mut(handle) {
            context.legacy = legacy;
        }
        handle
    }

    fn context(&self, handle: u64) -> Outcome<&Context> {
        self.contexts.get(handle).filter(|context| context.active).ok_or(CuError::INVALID_CONTEXT)
    }

    /// Frees what belongs to a context whose work is done: streams, events, modules and memory.
    /// Memory of pools is not the context's.
    fn empty_context(&mut self, handle: u64) {
        let Some(context) = self.contexts.get_mut(handle) else { return };
        context.per_thread.clear();
        context.gate.clear();
        context.peers = 0;
        let streams = std::mem::take(&mut context.streams);
        for id in &streams {
            self.streams.remove(id);
        }
        self.stream_handles.remove_where(|id| streams.contains(id));
        self.events.remove_where(|event| event.context == handle);
        self.modules.remove_where(|module| module.context == handle);
        self.arrays.remove_where(|array| array.context == handle);
        self.functions.remove_where(|function| function.context == handle);
        for (_, library) in self.libraries.iter_mut() {
            library.modules.remove(&handle);
        }
        let doomed = |region: &Region| {
            region.context == handle && !matches!(region.origin, Origin::Pool(_) | Origin::Mapped)
        };
        for region in self.map_mut().take_where(doomed) {
            self.discard(&region);
        }
    }
}

impl Call {
    pub(crate) fn context_create(&self, flags: u32, device: i32) -> Outcome<u64> {
        let mut driver = self.lock();
        let device = driver.device(device)?;
        if flags & !FLAGS_MASK != 0 {
            return Err(CuError::INVALID_VALUE);
        }
        let handle = driver.make_context(device, flags, false);
        thread::push(handle);
        Ok(handle)
    }

    /// Lets all work of a context finish.
    fn settle(&self, driver: Held, context: u64) -> Held {
        let targets = driver.context_targets(context);
        self.sim.wait(driver, &targets)
    }

    pub(crate) fn context_destroy(&self, handle: u64) -> Outcome {
        if handle == 0 {
            return Err(CuError::INVALID_VALUE);
        }
        let driver = self.lock();
        if driver.context(handle)?.primary {
            return Err(CuError::INVALID_CONTEXT);
        }
        let mut driver = self.settle(driver, handle);
        driver.empty_context(handle);
        driver.contexts.remove(handle);
        if thread::current() == Some(handle) {
            thread::pop();
        }
        Ok(())
    }

    pub(crate) fn context_push(&self, handle: u64) -> Outcome {
        self.lock().context(handle)?;
        thread::push(handle);
        Ok(())
    }

    pub(crate) fn context_pop(&self) -> Outcome<u64> {
        thread::pop().ok_or(CuError::INVALID_CONTEXT)
    }

    /// `cuCtxSetCurrent`: replaces the top of the stack, or pops it for 0.
    pub(crate) fn context_set(&self, handle: u64) -> Outcome {
        if handle != 0 {
            self.lock().context(handle)?;
        }
        thread::pop();
        if handle != 0 {
            thread::push(handle);
        }
        Ok(())
    }

    /// The current context, 0 if the calling thread has none.
    pub(crate) fn context_current(&self) -> u64 {
        thread::current().unwrap_or(0)
    }

    /// `cuCtxSynchronize`: of the given context, or of the current one.
    pub(crate) fn context_synchronize(&self, handle: Option<u64>) -> Outcome {
        let mut driver = self.lock();
        let green = match handle {
            Some(handle) => driver.contexts.get(handle).and_then(|context| context.green),
            None => driver.current_green(),
        };
        let handle = self.or_current(&driver, handle)?;
        let handle = driver.whole_context(handle);
        driver.check_context_capture(handle)?;
        driver.check_unsafe()?;
        if let Some(green) = green {
            let targets = driver.green_targets(green);
            return self.sim.wait(driver, &targets).usable(handle).map(|_| ());
        }
        let mut driver = self.settle(driver, handle);
        driver.sweep_streams(handle);
        driver.usable(handle).map(|_| ())
    }

    fn or_current(&self, driver: &Driver, handle: Option<u64>) -> Outcome<u64> {
        match handle {
            Some(handle) => {
                driver.context(handle)?;
                driver.usable(handle).map(|_| handle)
            }
            None => driver.current(),
        }
    }

    pub(crate) fn context_device(&self, handle: Option<u64>) -> Outcome<i32> {
        let driver = self.lock();
        let handle = self.or_current(&driver, handle)?;
        Ok(driver.context(handle)?.device as i32)
    }

    pub(crate) fn context_id(&self, handle: Option<u64>) -> Outcome<u64> {
        let driver = self.lock();
        let handle = self.or_current(&driver, handle)?;
        Ok(driver.context(handle)?.id)
    }

    pub(crate) fn context_check(&self, handle: Option<u64>) -> Outcome {
        let driver = self.lock();
        self.or_current(&driver, handle).map(|_| ())
    }

    pub(crate) fn context_flags(&self) -> Outcome<u32> {
        let driver = self.lock();
        Ok(driver.context(driver.current()?)?.flags)
    }

    pub(crate) fn context_set_flags(&self, flags: u32) -> Outcome {
        self.edit(|context| {
            if flags & !FLAGS_MASK != 0 {
                return Err(CuError::INVALID_VALUE);
            }
            context.flags = flags;
            Ok(())
        })
    }

    fn edit<T>(&self, change: impl FnOnce(&mut Context) -> Outcome<T>) -> Outcome<T> {
        let mut driver = self.lock();
        let handle = driver.current()?;
        change(driver.contexts.get_mut(handle).ok_or(CuError::INVALID_CONTEXT)?)
    }

    pub(crate) fn limit(&self, limit: u32) -> Outcome<u64> {
        self.edit(|context| {
            context.limits.0.get(limit as usize).copied().ok_or(CuError::INVALID_VALUE)
        })
    }

    pub(crate) fn set_limit(&self, limit: u32, value: u64) -> Outcome {
        self.edit(|context| {
            let slot = context.limits.0.get_mut(limit as usize).ok_or(CuError::INVALID_VALUE)?;
            *slot = value.min(TOTAL_MEMORY);
            Ok(())
        })
    }

    pub(crate) fn cache_config(&self, set: Option<u32>) -> Outcome<u32> {
        self.edit(|context| configure(&mut context.cache_config, set, 3))
    }

    pub(crate) fn shared_config(&self, set: Option<u32>) -> Outcome<u32> {
        self.edit(|context| configure(&mut context.shared_config, set, 2))
    }

    pub(crate) fn peer_access(&self, peer: u64, enable: bool) -> Outcome {
        let driver = self.lock();
        let to = driver.context(peer)?.device;
        drop(driver);
        self.edit(|context| {
            if context.device == to {
                return Err(CuError::PEER_ACCESS_UNSUPPORTED);
            }
            let bit = 1 << to;
            match (enable, context.peers & bit != 0) {
                (true, true) => Err(CuError::PEER_ACCESS_ALREADY_ENABLED),
                (false, false) => Err(CuError::PEER_ACCESS_NOT_ENABLED),
                _ => {
                    context.peers ^= bit;
                    Ok(())
                }
            }
        })
    }

    pub(crate) fn primary_retain(&self, device: i32) -> Outcome<u64> {
        let mut driver = self.lock();
        let ordinal = driver.device(device)?;
        let at = ordinal as usize;
        let handle = match driver.devices[at].primary {
            Some(handle) => handle,
            None => {
                let flags = driver.devices[at].flags;
                let handle = driver.make_context(ordinal, flags, true);
                driver.devices[at].primary = Some(handle);
                handle
            }
        };
        driver.devices[at].retained += 1;
        if driver.context(handle).is_err() {
            driver.revive(handle);
        }
        Ok(handle)
    }

    pub(crate) fn primary_release(&self, device: i32) -> Outcome {
        let mut driver = self.lock();
        let at = driver.device(device)? as usize;
        let handle = driver.devices[at].primary.filter(|_| driver.devices[at].retained > 0);
        let handle = handle.ok_or(CuError::INVALID_CONTEXT)?;
        driver.devices[at].retained -= 1;
        if driver.devices[at].retained > 0 {
            return Ok(());
        }
        drop(self.retire(driver, handle));
        Ok(())
    }

    /// `cuDevicePrimaryCtxReset`: destroys the primary context whoever retains it. It is usable
    /// again when it is retained anew.
    pub(crate) fn primary_reset(&self, device: i32) -> Outcome {
        let driver = self.lock();
        let at = driver.device(device)? as usize;
        if let Some(handle) = driver.devices[at].primary {
            self.retire(driver, handle).devices[at].retained = 0;
        }
        Ok(())
    }

    fn retire(&self, driver: Held, handle: u64) -> Held {
        let mut driver = self.settle(driver, handle);
        driver.empty_context(handle);
        if let Some(context) = driver.contexts.get_mut(handle) {
            context.active = false;
        }
        driver
    }

    pub(crate) fn primary_state(&self, device: i32) -> Outcome<(u32, bool)> {
        let driver = self.lock();
        let device = &driver.devices[driver.device(device)? as usize];
        Ok((device.flags, device.retained > 0))
    }

    pub(crate) fn primary_set_flags(&self, device: i32, flags: u32) -> Outcome {
        let mut driver = self.lock();
        let at = driver.device(device)? as usize;
        if flags & !FLAGS_MASK != 0 {
            return Err(CuError::INVALID_VALUE);
        }
        driver.devices[at].flags = flags;
        let handle = driver.devices[at].primary;
        if let Some(context) = handle.and_then(|handle| driver.contexts.get_mut(handle)) {
            context.flags = flags;
        }
        Ok(())
    }
}

impl Driver {
    /// Makes a retired primary context usable again, with nothing in it.
    fn revive(&mut self, handle: u64) {
        let legacy = self.make_stream(handle, StreamKind::Legacy, 0);
        let id = self.fresh_id();
        if let Some(context) = self.contexts.get_mut(handle) {
            context.legacy = legacy;
            context.id = id;
            context.active = true;
            context.poison = None;
        }
    }
}

fn configure(slot: &mut u32, set: Option<u32>, last: u32) -> Outcome<u32> {
    if let Some(value) = set {
        if value > last {
            return Err(CuError::INVALID_VALUE);
        }
        *slot = value;
    }
    Ok(*slot)
}
