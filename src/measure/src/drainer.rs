//! A thread that finds out which measured launches have ended, takes their marks out of the table, and
//! hands the bytes to the runtime.
//!
//! Behind a launch the hook records an event of ours in the launch's stream, and one in front of a twin;
//! nothing else is put into the program's streams, and no thread of the program waits. This thread asks the events and runs the
//! drain for all launches that have ended, in a stream of its own that is ordered with no other. The
//! design had the drain behind each launch in its stream; an event there needs no room on the GPU,
//! leaves programmatic launches as near to each other as one record can, and lets one drain serve
//! any number of launches. Sleeping between questions adds no order: marks stay in the table.
//!
//! Invariants: a log goes back to be used only after its marks were taken out. What could not be
//! measured is told. No signal of the program is handled on this thread.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use streamsan_wire::{MEASURED_IN_PART, NotMeasured};

use crate::context::{BATCH, Context, ENDED_BITS, ENDED_WORDS, LOADS, RAWS, RECORDS, UNASKED};
use crate::device::{Counters, Job, MODES, id_of};
use crate::driver::{Driver, Handle, NOT_READY, RELAXED, checked, driver, own_thread};
use crate::twins::{self, Timed};
use crate::{runs, runtime, tensor};

/// Between two questions to the driver whether launches have ended.
const SHORTEST_PAUSE: Duration = Duration::from_micros(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(2);
/// How long the end of the process waits for launches that have not ended.
const PATIENCE: Duration = Duration::from_secs(2);

const BLOCKS: u32 = 64;
const THREADS: u32 = 256;

/// A launch with its log, or the launch of a graph with its block.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) context: Arc<Context>,
    pub(crate) first: u32,
    /// 1 for a launch.
    pub(crate) count: u32,
    pub(crate) op: u64,
    /// Nodes of a graph.
    pub(crate) nodes: Vec<Node>,
}

/// A kernel node of a graph, in a patched module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    /// The grid's number on the device, too (`%gridid`).
    pub(crate) grid: u64,
    pub(crate) node: u64,
    /// Whether the kernel is to be measured.
    pub(crate) is_selected: bool,
}

/// The launches that one event stands behind.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) context: Arc<Context>,
    pub(crate) stream: Handle,
    pub(crate) event: Handle,
    pub(crate) launches: Vec<Measured>,
    /// Set where the launch is timed.
    pub(crate) timed: Option<Timed>,
}

// SAFETY: handles that any thread may use.
unsafe impl Send for Batch {}

#[derive(Default)]
struct Queue {
    new: Vec<Batch>,
    /// Batches that are not done.
    open: usize,
}

#[derive(Default)]
struct Drainer {
    queue: Mutex<Queue>,
    changed: Condvar,
    /// The process ends: no call of the driver any more.
    stop: AtomicBool,
}

fn drainer() -> &'static Drainer {
    static DRAINER: OnceLock<Drainer> = OnceLock::new();
    DRAINER.get_or_init(Drainer::default)
}

/// Hands a batch to the thread, which is started by the first one.
pub(crate) fn hand_over(batch: Batch) {
    static STARTED: OnceLock<bool> = OnceLock::new();
    let started = *STARTED.get_or_init(|| {
        // SAFETY: a function without arguments; registered late, it runs before what was
        // registered earlier, the driver's included.
        unsafe { libc::atexit(at_exit) };
        start()
    });
    if !started {
        for launch in &batch.launches {
            runtime::not_measured(launch.op, NotMeasured::Other, "no thread could be started");
        }
        return;
    }
    let mut queue = drainer().queue.lock().unwrap_or_else(PoisonError::into_inner);
    queue.open += 1;
    queue.new.push(batch);
    drop(queue);
    drainer().changed.notify_all();
}

fn start() -> bool {
    let mut all = std::mem::MaybeUninit::uninit();
    let mut own = std::mem::MaybeUninit::uninit();
    // SAFETY: writable sets; the thread's own mask is put back below.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), own.as_mut_ptr());
    }
    let thread = std::thread::Builder::new().name("streamsan-drain".to_owned()).spawn(run);
    // SAFETY: the mask that the call above has written.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, own.as_ptr(), ptr::null_mut()) };
    thread.is_ok()
}

extern "C" fn at_exit() {
    let end = Instant::now() + PATIENCE;
    let mut queue = drainer().queue.lock().unwrap_or_else(PoisonError::into_inner);
    while queue.open > 0 {
        let Some(left) = end.checked_duration_since(Instant::now()) else { break };
        let waited = drainer().changed.wait_timeout(queue, left);
        queue = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
    // A launch that is still open is one without bytes and without a reason, which the collector
    // counts as not measured; the thread tells the reason while it can.
    drainer().stop.store(true, Ordering::Release);
}

fn run() {
    let Some(driver) = driver() else { return };
    own_thread();
    let mut mode = RELAXED;
    // SAFETY: a writable mode; this thread makes only calls of its own.
    unsafe { (driver.exchange_capture_mode)(&mut mode) };
    let mut waiting: HashMap<usize, VecDeque<Batch>> = HashMap::new();
    let mut pause = SHORTEST_PAUSE;
    loop {
        let new = next(waiting.is_empty());
        if !new.is_empty() {
            pause = SHORTEST_PAUSE;
        }
        for batch in new {
            waiting.entry(batch.stream as usize).or_default().push_back(batch);
        }
        if drainer().stop.load(Ordering::Acquire) {
            return;
        }
        let ended = ended(driver, &mut waiting);
        if ended.is_empty() {
            std::thread::sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
            continue;
        }
        pause = SHORTEST_PAUSE;
        let count = ended.len();
        deliver(driver, ended);
        let mut queue = drainer().queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.open -= count;
        drop(queue);
        drainer().changed.notify_all();
    }
}

/// The batches handed over; waits for one where nothing else is to be done.
fn next(wait: bool) -> Vec<Batch> {
    let mut queue = drainer().queue.lock().unwrap_or_else(PoisonError::into_inner);
    while wait && queue.new.is_empty() {
        queue = drainer().changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
    }
    std::mem::take(&mut queue.new)
}

/// Takes out the batches whose events have happened; of each stream the oldest ones.
fn ended(driver: &Driver, waiting: &mut HashMap<usize, VecDeque<Batch>>) -> Vec<Batch> {
    let mut found = Vec::new();
    waiting.retain(|_, batches| {
        while let Some(batch) = batches.front() {
            let lost = batch.context.is_lost.load(Ordering::Acquire);
            // SAFETY: an event of ours, in a context that is there.
            let result = if lost { 0 } else { unsafe { (driver.event_query)(batch.event) } };
            if result == NOT_READY {
                break;
            }
            if result != 0 {
                batch.context.is_lost.store(true, Ordering::Release);
            }
            found.extend(batches.pop_front());
        }
        !batches.is_empty()
    });
    found
}

fn deliver(driver: &Driver, ended: Vec<Batch>) {
    let mut by_context: HashMap<usize, Vec<Measured>> = HashMap::new();
    for batch in ended {
        if !batch.context.is_lost.load(Ordering::Acquire) {
            if let Some(timed) = batch.timed {
                twins::ended(timed, batch.event);
            }
            batch.context.keep(batch.event);
        }
        for launch in batch.launches {
            by_context.entry(Arc::as_ptr(&launch.context) as usize).or_default().push(launch);
        }
    }
    for launches in by_context.into_values() {
        let mut rest = &launches[..];
        while !rest.is_empty() {
            let mut logs = 0;
            let fits = |launch: &&Measured| {
                logs += launch.count as usize;
                logs <= BATCH
            };
            let (part, after) = rest.split_at(rest.iter().take_while(fits).count());
            rest = after;
            deliver_part(driver, part);
        }
    }
}

fn deliver_part(driver: &Driver, launches: &[Measured]) {
    let Some(context) = launches.first().map(|launch| &launch.context) else { return };
    let ids: Vec<u32> =
        launches.iter().flat_map(|launch| launch.first..launch.first + launch.count).collect();
    let taken = match context.is_lost.load(Ordering::Acquire) {
        true => Err("its context was destroyed, or failed".to_owned()),
        false => pass(context, driver, &ids),
    };
    match taken {
        Ok(taken) => {
            let mut taken = taken.into_iter();
            // A call may launch one kernel in several parts.
            let mut last: Option<(u64, Taken)> = None;
            for launch in launches {
                let mut own: Vec<_> = taken.by_ref().take(launch.count as usize).collect();
                context.give(launch.first, launch.count);
                if launch.count > 1 {
                    tell_nodes(launch, own);
                    continue;
                }
                let own = own.swap_remove(0);
                last = match last {
                    Some((op, part)) if op == launch.op => Some((op, part.and(own))),
                    before => {
                        before.into_iter().for_each(|(op, mut whole)| tell(op, 0, &mut whole));
                        Some((launch.op, own))
                    }
                };
            }
            last.into_iter().for_each(|(op, mut whole)| tell(op, 0, &mut whole));
        }
        Err(why) => {
            context.is_lost.store(true, Ordering::Release);
            for launch in launches {
                runtime::not_measured(launch.op, NotMeasured::Other, &why);
            }
        }
    }
}

fn tell(op: u64, node: u64, taken: &mut Taken) {
    if taken.lost > 0 {
        let why = format!("{} accesses found no room in the table of marks", taken.lost);
        return runtime::not_measured(op, NotMeasured::NoRoom, &why);
    }
    taken.bytes.iter_mut().for_each(runs::join);
    let flags = if taken.is_in_part { MEASURED_IN_PART } else { 0 };
    runtime::measured(op, node, &runs::runs(&taken.bytes), flags);
}

/// Each selected node gets the bytes of its grid; a node whose grid has taken no log touched nothing.
fn tell_nodes(launch: &Measured, taken: Vec<Taken>) {
    // The first log counts what found none, also where no grid has taken it.
    if taken.iter().any(|taken| taken.grid == 0 && taken.lost > 0) {
        let why = "its graph has more kernel nodes than logs";
        return runtime::not_measured(launch.op, NotMeasured::NoRoom, why);
    }
    let mut grids: HashMap<u64, Taken> = taken
        .into_iter()
        .filter(|taken| taken.grid != 0)
        .map(|taken| (taken.grid, taken))
        .collect();
    for node in &launch.nodes {
        let mut own = grids.remove(&node.grid).unwrap_or_default();
        if node.is_selected {
            tell(launch.op, node.node, &mut own);
        }
    }
    if !grids.is_empty() {
        let why = "kernels of its graph have launched others, whose bytes belong to no node";
        runtime::not_measured(launch.op, NotMeasured::Other, why);
    }
}

/// The marks that one launch has left in the table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Taken {
    bytes: [Vec<Range<u64>>; MODES],
    /// The grid that took the log, 0 for a launch.
    grid: u64,
    lost: u32,
    /// A load through a tensor map could not be resolved or found no room, or the library does not
    /// tell the exact bytes.
    is_in_part: bool,
}

impl Taken {
    fn and(mut self, mut other: Self) -> Self {
        self.bytes.iter_mut().zip(&mut other.bytes).for_each(|(all, more)| all.append(more));
        self.lost = self.lost.saturating_add(other.lost);
        self.is_in_part |= other.is_in_part;
        self
    }
}

/// Takes the marks of launches that have ended out of the table, in the order of their numbers.
///
/// # Errors
/// When the driver refuses; the context is then of no use any more.
pub(crate) fn pass(context: &Context, driver: &Driver, ids: &[u32]) -> Result<Vec<Taken>, String> {
    // SAFETY: a context that was current when it was prepared.
    checked("cuCtxSetCurrent", unsafe {
        match driver.current() == context.handle {
            true => 0,
            false => (driver.ctx_set_current)(context.handle),
        }
    })?;
    let place: HashMap<u32, usize> = ids.iter().enumerate().map(|(at, id)| (*id, at)).collect();
    let mut taken = vec![Taken::default(); ids.len()];
    loop {
        let counters = launch(context, driver, ids)?;
        // SAFETY: the drain has written so many, and the stream was waited for.
        unsafe { read(context, &counters, ids, &place, &mut taken) };
        if counters.left == 0 {
            return Ok(taken);
        }
    }
}

fn launch(context: &Context, driver: &Driver, ids: &[u32]) -> Result<Counters, String> {
    let room = &context.room;
    // SAFETY: page-locked memory of these sizes that only this thread uses; the stream was waited
    // for since the last drain.
    let words = unsafe { std::slice::from_raw_parts_mut(room.ended, ENDED_WORDS) };
    for id in ids.iter().chain([&UNASKED]) {
        words[*id as usize / 32] |= 1 << (id % 32);
    }
    words[ENDED_BITS..ENDED_BITS + ids.len()].copy_from_slice(ids);
    let mut job = Job {
        table: context.table,
        logs: context.logs,
        ended: context.ended,
        ids: context.ended + 4 * ENDED_BITS as u64,
        id_count: ids.len() as u32,
        record_capacity: RECORDS as u32,
        raw_capacity: RAWS as u32,
        load_capacity: LOADS as u32,
        counters: context.counters,
        records: room.records as u64,
        raws: room.raws as u64,
        loads: room.loads as u64,
        losses: room.losses as u64,
    };
    let mut arguments = [(&raw mut job).cast()];
    let stream = context.stream;
    // SAFETY: memory of the sizes given; the argument lives until the call returns.
    unsafe {
        let bytes = 4 * (ENDED_BITS + ids.len());
        let copied =
            (driver.memcpy_to_device_async)(context.ended, room.ended.cast(), bytes, stream);
        checked("cuMemcpyHtoDAsync", copied)?;
        let size = size_of::<Counters>();
        checked("cuMemsetD8Async", (driver.memset_d8_async)(context.counters, 0, size, stream))?;
        let launched = (driver.launch_kernel)(
            context.drain,
            BLOCKS,
            1,
            1,
            THREADS,
            1,
            1,
            0,
            stream,
            arguments.as_mut_ptr(),
            ptr::null_mut(),
        );
        checked("cuLaunchKernel of the drain", launched)?;
        let copied =
            (driver.memcpy_to_host_async)(room.counters.cast(), context.counters, size, stream);
        checked("cuMemcpyDtoHAsync", copied)?;
        checked("cuStreamSynchronize", (driver.stream_synchronize)(stream))?;
    }
    for id in ids {
        words[*id as usize / 32] = 0;
    }
    // SAFETY: the copy above has ended.
    Ok(unsafe { room.counters.read_volatile() })
}

/// # Safety
/// The drain has ended and counted so much.
unsafe fn read(
    context: &Context,
    counters: &Counters,
    ids: &[u32],
    place: &HashMap<u32, usize>,
    taken: &mut [Taken],
) {
    let room = &context.room;
    // SAFETY: the drain writes to no more than these capacities, and below the counts everything.
    let (records, raws, loads, losses) = unsafe {
        (
            std::slice::from_raw_parts(room.records, (counters.records as usize).min(RECORDS)),
            std::slice::from_raw_parts(room.raws, (counters.raws as usize).min(RAWS)),
            std::slice::from_raw_parts(room.loads, (counters.loads as usize).min(LOADS)),
            std::slice::from_raw_parts(room.losses, ids.len()),
        )
    };
    for record in records.iter().filter(|record| record.key != 0) {
        let Some(at) = place.get(&id_of(record.key)) else { continue };
        if let Some(bytes) = taken[*at].bytes.get_mut(record.mode()) {
            record.ranges(raws, bytes);
        }
    }
    for load in loads {
        let Some(at) = place.get(&id_of(load.key)) else { continue };
        if !tensor::resolve(load, &mut taken[*at].bytes[0]) {
            taken[*at].is_in_part = true;
        }
    }
    for (taken, loss) in taken.iter_mut().zip(losses) {
        // A repeated drain finds nothing in the logs any more.
        taken.grid |= loss.grid;
        taken.lost = taken.lost.saturating_add(loss.lost);
        taken.is_in_part |= loss.lost_loads > 0 || loss.inexact > 0;
    }
}
