//! The memory of one context for measuring: the table of marks, the logs of launches, and the
//! drain.
//!
//! Everything is made at once, in the hook of the first launch in the context and outside of the
//! driver's callbacks; afterwards nothing is allocated on the device. Nothing is ever freed: work of
//! the program may still use it, and a context's memory goes with the context.
//!
//! Invariants: our lock is held for no call of the driver, since callbacks, inside the driver, take it.

use core::ffi::c_void;
use std::collections::HashMap;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::device::{Counters, ENTRY_BYTES, Log, Loss, Record, Table, TensorLoad, WORDS};
use crate::driver::{Driver, Handle, MAPPED, NON_BLOCKING, WITH_TIMING, checked, driver};

/// Logs: one for each launch at a time, and blocks for graphs. The first is for nodes that nobody
/// asks for.
pub(crate) const LOGS: u32 = 1 << 17;
pub(crate) const UNASKED: u32 = 0;
/// Where the blocks of graphs begin.
const FIRST_BLOCK: u32 = 1 << 16;
/// Blocks by size: how many logs each has, and how many blocks there are.
const BLOCKS: [(u32, u32); 3] = [(16, 1024), (256, 96), (4096, 6)];
/// The largest graph, in kernel nodes of patched modules.
pub(crate) const LARGEST_GRAPH: u32 = BLOCKS[BLOCKS.len() - 1].0;

/// Entries of the table: 384 MiB of marks, for 32 GiB that are touched at a time.
const MOST_ENTRIES: u64 = 1 << 17;
const FEWEST_ENTRIES: u64 = 1 << 12;
const TENSOR_LOADS: u64 = 1 << 16;

/// Room of one drain.
pub(crate) const RECORDS: usize = 1 << 17;
pub(crate) const RAWS: usize = 1 << 13;
pub(crate) const LOADS: usize = 1 << 14;
/// Logs of one drain; no fewer than a graph has.
pub(crate) const BATCH: usize = 1 << 13;

const DRAIN: &str = concat!(include_str!("../device/drain.ptx"), "\0");

/// A context that launches are measured in.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) handle: Handle,
    pub(crate) stream: Handle,
    pub(crate) drain: Handle,
    pub(crate) table: Table,
    pub(crate) logs: u64,
    pub(crate) counters: u64,
    /// On the device: the bits and the numbers of launches that have ended.
    pub(crate) ended: u64,
    pub(crate) room: Room,
    /// It was destroyed, or its driver calls fail.
    pub(crate) is_lost: AtomicBool,
    free: Mutex<Free>,
}

#[derive(Debug)]
struct Free {
    ids: Vec<u32>,
    /// The first logs of blocks, by size.
    blocks: [Vec<u32>; BLOCKS.len()],
    events: Vec<Handle>,
}

/// Page-locked memory of the host; only the drainer uses it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub(crate) records: *mut Record,
    pub(crate) raws: *mut [u32; WORDS],
    pub(crate) loads: *mut TensorLoad,
    pub(crate) losses: *mut Loss,
    pub(crate) counters: *mut Counters,
    pub(crate) ended: *mut u32,
}

/// Words of [`Room::ended`]: a bit for each log, then the numbers.
pub(crate) const ENDED_BITS: usize = LOGS as usize / 32;
pub(crate) const ENDED_WORDS: usize = ENDED_BITS + BATCH;

// SAFETY: handles and addresses that any thread may use; the host's room belongs to one thread, the
// drainer.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

type Contexts = Mutex<HashMap<usize, Option<Arc<Context>>>>;

fn contexts() -> &'static Contexts {
    static CONTEXTS: OnceLock<Contexts> = OnceLock::new();
    CONTEXTS.get_or_init(Contexts::default)
}

/// The context, if it was prepared. May be called inside a callback.
pub(crate) fn known(handle: Handle) -> Option<Arc<Context>> {
    let contexts = contexts().lock().unwrap_or_else(PoisonError::into_inner);
    contexts.get(&(handle as usize)).cloned().flatten()
}

/// Forgets a context that ends. May be called inside a callback.
pub(crate) fn forget(handle: Handle) {
    let removed = {
        let mut contexts = contexts().lock().unwrap_or_else(PoisonError::into_inner);
        contexts.remove(&(handle as usize)).flatten()
    };
    if let Some(context) = removed {
        context.is_lost.store(true, Ordering::Release);
    }
}

/// Makes what the calling thread's context needs, unless it is there or has failed before.
///
/// # Errors
/// Why it failed, once.
pub(crate) fn prepare() -> Result<(), String> {
    static PREPARING: Mutex<()> = Mutex::new(());
    let Some(driver) = driver() else { return Ok(()) };
    let handle = driver.current();
    let is_known = || {
        let contexts = contexts().lock().unwrap_or_else(PoisonError::into_inner);
        contexts.contains_key(&(handle as usize))
    };
    if handle.is_null() || is_known() {
        return Ok(());
    }
    let _one = PREPARING.lock().unwrap_or_else(PoisonError::into_inner);
    if is_known() {
        return Ok(());
    }
    let made = driver.own(|| make(driver, handle));
    let (context, error) = match made {
        Ok(context) => (Some(Arc::new(context)), None),
        Err(error) => (None, Some(error)),
    };
    let mut contexts = contexts().lock().unwrap_or_else(PoisonError::into_inner);
    contexts.insert(handle as usize, context);
    error.map_or(Ok(()), Err)
}

fn make(driver: &Driver, handle: Handle) -> Result<Context, String> {
    let (mut least, mut greatest) = (0, 0);
    let mut stream = ptr::null_mut();
    let mut module = ptr::null_mut();
    let mut drain = ptr::null_mut();
    // SAFETY: writable results and a text ended by NUL.
    unsafe {
        (driver.ctx_get_stream_priority_range)(&mut least, &mut greatest);
        let create = driver.stream_create_with_priority;
        checked("cuStreamCreateWithPriority", create(&mut stream, NON_BLOCKING, greatest))?;
        let load = (driver.module_load_data)(&mut module, DRAIN.as_ptr().cast());
        checked("cuModuleLoadData of the drain", load)?;
        let get = (driver.module_get_function)(&mut drain, module, c"streamsan_drain".as_ptr());
        checked("cuModuleGetFunction of the drain", get)?;
    }
    let device = |bytes: u64| -> Result<u64, String> {
        let mut address = 0;
        // SAFETY: writable results; the memory was just made.
        unsafe {
            checked("cuMemAlloc", (driver.mem_alloc)(&mut address, bytes as usize))?;
            let set = (driver.memset_d8_async)(address, 0, bytes as usize, stream);
            checked("cuMemsetD8Async", set)?;
        }
        Ok(address)
    };
    let (entries, marks) = marks(driver, stream)?;
    let table = Table {
        keys: device(entries * 8)?,
        marks,
        loads: device(TENSOR_LOADS * size_of::<TensorLoad>() as u64)?,
        mask: entries as u32 - 1,
        load_mask: TENSOR_LOADS as u32 - 1,
    };
    let logs = device(u64::from(LOGS) * size_of::<Log>() as u64)?;
    let empty = Log { table, id: 0, lost: 0, lost_loads: 0, inexact: 0, nodes: 0, grid: 0 };
    let mut first: Vec<Log> = (0..LOGS).map(|id| Log { id, ..empty }).collect();
    let mut blocks = [const { Vec::new() }; BLOCKS.len()];
    let mut at = FIRST_BLOCK;
    for ((nodes, count), blocks) in BLOCKS.into_iter().zip(&mut blocks) {
        for _ in 0..count {
            first[at as usize..(at + nodes) as usize].iter_mut().for_each(|log| log.nodes = nodes);
            blocks.push(at);
            at += nodes;
        }
    }
    let counters = device(size_of::<Counters>() as u64)?;
    let ended = device(ENDED_WORDS as u64 * 4)?;
    let room = Room {
        records: host(driver, RECORDS)?,
        raws: host(driver, RAWS)?,
        loads: host(driver, LOADS)?,
        losses: host(driver, BATCH)?,
        counters: host(driver, 1)?,
        ended: host(driver, ENDED_WORDS)?,
    };
    // SAFETY: the vector lives until the stream was waited for; the room has so many words.
    unsafe {
        let copy = driver.memcpy_to_device_async;
        let copied = copy(logs, first.as_ptr().cast::<c_void>(), size_of_val(&first[..]), stream);
        checked("cuMemcpyHtoDAsync", copied)?;
        ptr::write_bytes(room.ended, 0, ENDED_WORDS);
        checked("cuStreamSynchronize", (driver.stream_synchronize)(stream))?;
    }
    let ids = (UNASKED + 1..FIRST_BLOCK).rev().collect();
    let free = Free { ids, blocks, events: Vec::new() };
    let context = Context {
        handle,
        stream,
        drain,
        table,
        logs,
        counters,
        ended,
        room,
        is_lost: AtomicBool::new(false),
        free: Mutex::new(free),
    };
    // The first launch of a kernel may wait for other work while its code is loaded; later ones of
    // the drain must not.
    crate::drainer::pass(&context, driver, &[])?;
    Ok(context)
}

/// The largest table that there is room for: at most an eighth of the free memory.
fn marks(driver: &Driver, stream: Handle) -> Result<(u64, u64), String> {
    let (mut free, mut total) = (0, 0);
    // SAFETY: writable results.
    unsafe { (driver.mem_get_info)(&mut free, &mut total) };
    let mut entries = MOST_ENTRIES;
    while entries > FEWEST_ENTRIES && entries * ENTRY_BYTES > free as u64 / 8 {
        entries /= 2;
    }
    loop {
        let mut address = 0;
        let bytes = (entries * ENTRY_BYTES) as usize;
        // SAFETY: a writable result; the memory was just made.
        let result = unsafe {
            match (driver.mem_alloc)(&mut address, bytes) {
                0 => (driver.memset_d8_async)(address, 0, bytes, stream),
                failed => failed,
            }
        };
        match result {
            0 => return Ok((entries, address)),
            _ if entries > FEWEST_ENTRIES => entries /= 2,
            failed => {
                return Err(format!("cuMemAlloc of {bytes} bytes failed with CUDA error {failed}"));
            }
        }
    }
}

fn host<T>(driver: &Driver, count: usize) -> Result<*mut T, String> {
    let mut address = ptr::null_mut();
    // SAFETY: a writable result.
    let result = unsafe { (driver.mem_host_alloc)(&mut address, count * size_of::<T>(), MAPPED) };
    checked("cuMemHostAlloc", result)?;
    Ok(address.cast())
}

impl Context {
    /// A free log for a launch. May be called inside a callback.
    pub(crate) fn take(&self) -> Option<u32> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).ids.pop()
    }

    /// The smallest free block for a graph of so many nodes: its first log, and their number. May be
    /// called inside a callback.
    pub(crate) fn take_block(&self, nodes: u32) -> Option<(u32, u32)> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sizes = BLOCKS.iter().zip(&mut free.blocks).filter(|((size, _), _)| *size >= nodes);
        sizes.find_map(|((size, _), blocks)| Some((blocks.pop()?, *size)))
    }

    /// The largest free block, for a graph of which nobody knows how many nodes it has: its first
    /// log, and their number. May be called inside a callback.
    pub(crate) fn take_largest_block(&self) -> Option<(u32, u32)> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sizes = BLOCKS.iter().zip(&mut free.blocks).rev();
        sizes.find_map(|((size, _), blocks)| Some((blocks.pop()?, *size)))
    }

    /// Gives a log, or a block of them, back that holds nothing.
    pub(crate) fn give(&self, first: u32, count: u32) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        match BLOCKS.iter().position(|(size, _)| *size == count) {
            Some(at) => free.blocks[at].push(first),
            None => free.ids.push(first),
        }
    }

    /// The user data of a log.
    pub(crate) fn log(&self, id: u32) -> *const c_void {
        (self.logs + u64::from(id) * size_of::<Log>() as u64) as *const c_void
    }

    /// An event of this context, which must be current.
    ///
    /// # Errors
    /// When the driver makes none.
    pub(crate) fn event(&self, driver: &Driver) -> Result<Handle, String> {
        let kept = self.free.lock().unwrap_or_else(PoisonError::into_inner).events.pop();
        if let Some(event) = kept {
            return Ok(event);
        }
        let mut event = ptr::null_mut();
        // SAFETY: a writable result.
        checked("cuEventCreate", unsafe { (driver.event_create)(&mut event, WITH_TIMING) })?;
        Ok(event)
    }

    /// Keeps an event for the next launch.
    pub(crate) fn keep(&self, event: Handle) {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).events.push(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_fill_the_logs_behind_those_of_launches() {
        let logs: u32 = BLOCKS.iter().map(|(size, count)| size * count).sum();
        assert_eq!(FIRST_BLOCK + logs, LOGS);
        assert!(BLOCKS.iter().all(|(size, _)| size.is_power_of_two() && *size as usize <= BATCH));
        // A launch has one log, which must not be taken for a block.
        assert!(BLOCKS.iter().all(|(size, _)| *size > 1));
    }
}
