//! In-flight fences: raw loads and stores of host memory that the device uses.
//!
//! Page-locked memory that an asynchronous operation touches, and managed memory under a kernel, is
//! protected from the submission's return until the host has acquired its completion. A fault in
//! between is a host access: it is recorded with its address, direction, thread and stack, the
//! protection is lifted, and the program goes on. The fence never judges, the analysis does: a fence
//! that stands too long costs a record, one that falls too early a finding.
//!
//! Off unless the control file asks for it. A program without such memory pays one load a call.

#[cfg(test)]
mod against_engine;
mod budget;
mod calls;
mod clock;
mod entry;
mod fault;
mod graphs;
mod in_use;
mod libraries;
mod memory;
mod own_calls;
mod pages;
mod place;
mod signals;
mod splits;
mod storm;
mod system;
mod table;

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use streamsan_wire::{Api, Control, Counted, LeftAlone, NotFenced, Unwatched, page_bytes};

use self::calls::Class;
use self::clock::{Clock, SLOTS};
use self::memory::MemoryKind;
use super::operands;
use crate::{attach, resolve};

pub(crate) use graphs::GraphTouches;
pub(crate) use place::{GivenMemory, launched};
pub(crate) use system::told;

static CLOCK: Clock = Clock::new();

/// Whether the process is to be watched, and can be.
static WANTED: AtomicBool = AtomicBool::new(false);
/// Why no more fences are placed; 0 for none.
static STOPPED: AtomicU64 = AtomicU64::new(0);
/// Why the signal handler wants it to be so; 0 for nothing.
static ASKED: AtomicU64 = AtomicU64::new(0);
/// Whether a stream may be behind something that is not tracked.
static ANYTHING: AtomicBool = AtomicBool::new(false);
/// Whether synchronous operations were asked to be fully so.
static SYNC_MEMOPS: AtomicBool = AtomicBool::new(false);

/// Host functions of each slot: submitted, and over.
static FUNCTIONS: [(AtomicU64, AtomicU64); SLOTS] =
    [const { (AtomicU64::new(0), AtomicU64::new(0)) }; SLOTS];

/// `CU_MEMHOSTALLOC_WRITECOMBINED`.
const WRITE_COMBINED: u64 = 4;
/// `CU_CTX_SYNC_MEMOPS`.
const CONTEXT_SYNC_MEMOPS: u64 = 0x80;
/// `CU_POINTER_ATTRIBUTE_SYNC_MEMOPS`.
const POINTER_SYNC_MEMOPS: u64 = 6;
/// `CU_STREAM_NON_BLOCKING`.
const NON_BLOCKING: u64 = 1;
/// `CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES` and
/// `..._CONCURRENT_MANAGED_ACCESS`.
const HOST_PAGE_TABLES: i32 = 100;
const CONCURRENT_MANAGED_ACCESS: i32 = 89;
/// In older drivers a fault of the device on managed memory checks its mapping's protection.
const FIRST_DRIVER_WITH_MANAGED: i32 = 12_030;

/// The state that a call in progress keeps for its return.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pending {
    /// The ticket of a submission that may be fenced, else 0.
    ticket: u64,
    slot: u8,
    /// Host functions that were before it in its slot.
    waits: u64,
    /// The newest ticket at the call's entry.
    now: u64,
}

/// Whether anything is to be tracked.
#[inline]
fn is_watching() -> bool {
    WANTED.load(Ordering::Relaxed) && STOPPED.load(Ordering::Relaxed) == 0
}

/// The process is attached.
pub(crate) fn attached(control: &Control) {
    if control.fences() {
        WANTED.store(true, Ordering::Release);
        signals::prepare();
    }
}

/// No more fences in this process.
fn stop(reason: Unwatched) {
    if STOPPED.swap(reason as u64, Ordering::SeqCst) == 0 {
        table::TABLE.drop_all();
        if let Some(attachment) = attach::known() {
            attachment.process.fences.stopped.store(reason as u32, Ordering::Relaxed);
        }
    }
}

/// Asks for [`stop`] from the signal handler, which cannot take the lock.
fn ask_to_stop(reason: Unwatched) {
    ASKED.store(reason as u64, Ordering::SeqCst);
}

fn stop_if_asked() {
    if ASKED.load(Ordering::Relaxed) != 0
        && let Some(reason) = Unwatched::from_word(ASKED.load(Ordering::SeqCst) as u32)
    {
        stop(reason);
    }
}

fn count(counter: impl Fn(&streamsan_wire::FenceCounters) -> &AtomicU64) {
    if let Some(attachment) = attach::known() {
        counter(&attachment.process.fences).fetch_add(1, Ordering::Relaxed);
    }
}

fn count_not_fenced(reason: NotFenced) {
    count(|counters| &counters.not_fenced[reason as usize]);
}

/// An allocation is left alone from now on.
fn count_left_alone(reason: LeftAlone) {
    count(|counters| &counters.left_alone);
    count(|counters| &counters.alone[reason as usize]);
}

/// Whether the process is to be watched.
pub(crate) fn are_wanted() -> bool {
    WANTED.load(Ordering::Relaxed)
}

/// Whether any fence stands, or waits for a host function.
pub(crate) fn any() -> bool {
    table::TABLE.any()
}

/// A call is about to be recorded: takes a ticket where it may be fenced, and lifts what stands
/// around memory that it takes away.
#[inline]
pub(crate) fn before_record(api: Api, words: &[u64], pending: &mut Pending) {
    if is_watching() {
        enter(api, words, pending);
    }
}

fn enter(api: Api, words: &[u64], pending: &mut Pending) {
    stop_if_asked();
    match calls::class(api) {
        Class::Copy | Class::Kernel | Class::Graph if !memory::TABLE.is_empty() => {
            let slot = CLOCK.slot(calls::stream(api, words));
            pending.slot = slot as u8;
            pending.waits = FUNCTIONS[slot].0.load(Ordering::SeqCst);
            if pending.waits == FUNCTIONS[slot].1.load(Ordering::SeqCst) {
                pending.waits = 0;
            }
            pending.ticket = CLOCK.submit();
        }
        Class::HostFunction => {
            let slot = CLOCK.slot(calls::stream(api, words));
            pending.slot = slot as u8;
            FUNCTIONS[slot].0.fetch_add(1, Ordering::SeqCst);
        }
        Class::Free => free(words[0]),
        Class::Register => table::TABLE.drop_range(
            words[0] & !(page_bytes() - 1),
            words[0].saturating_add(words[1]).saturating_add(page_bytes()),
        ),
        Class::AttachMemory => {
            // It may be the host's from now on.
            if let Ok(Some(found)) = memory::TABLE.find(words[1]) {
                free(found.start);
            }
        }
        Class::Destroy => table::TABLE.drop_all(),
        _ => {}
    }
}

fn free(start: u64) {
    if let Some(gone) = memory::TABLE.remove(start) {
        splits::forget(&gone);
        table::TABLE.drop_range(gone.start, gone.end);
    }
}

/// The call's record has been published: what it orders counts from here on.
#[inline]
pub(crate) fn after_record(api: Api, words: &[u64], pending: &mut Pending) {
    if is_watching() {
        order(api, words, pending);
    }
}

fn order(api: Api, words: &[u64], pending: &mut Pending) {
    let class = calls::class(api);
    // Before there is anything to fence, nothing but what waits for what comes later matters.
    let begun = !memory::TABLE.is_empty() || ANYTHING.load(Ordering::Relaxed);
    let slot = || CLOCK.slot(calls::stream(api, words));
    match class {
        Class::Copy
        | Class::Kernel
        | Class::Graph
        | Class::Submission
        | Class::HostFunction
        | Class::AttachMemory
            if begun =>
        {
            CLOCK.pass(slot());
        }
        Class::WaitsForAnything => {
            ANYTHING.store(true, Ordering::SeqCst);
            let slot = slot();
            CLOCK.behind_anything(slot);
            CLOCK.pass(slot);
        }
        Class::AllWaitForAnything => {
            ANYTHING.store(true, Ordering::SeqCst);
            (0..SLOTS).for_each(|slot| CLOCK.behind_anything(slot));
        }
        Class::Record if begun => CLOCK.record(words[0], Some(slot())),
        Class::RecordContext if begun => CLOCK.record(words[1], None),
        Class::WaitContext if begun => {
            (0..SLOTS).for_each(|slot| CLOCK.wait_for_everything(slot));
            if ANYTHING.load(Ordering::SeqCst) {
                (0..SLOTS).for_each(|slot| CLOCK.behind_anything(slot));
            }
        }
        Class::Wait if begun => {
            let slot = slot();
            CLOCK.wait(slot, words[1]);
            CLOCK.pass(slot);
        }
        Class::Synchronous | Class::SynchronizeStream if begun => {
            let slot = slot();
            CLOCK.pass(slot);
            pending.slot = slot as u8;
        }
        Class::GraphWithEvent => CLOCK.events_in_graphs(),
        _ => {}
    }
    pending.now = CLOCK.now();
}

/// The call has returned from the driver.
#[inline]
pub(crate) fn returned(api: Api, words: &[u64], pending: &Pending, result: i32) {
    if is_watching() {
        leave(api, words, pending, result);
        table::TABLE.close_again();
    }
}

fn leave(api: Api, words: &[u64], pending: &Pending, result: i32) {
    let class = calls::class(api);
    let (slot, now) = (usize::from(pending.slot), pending.now);
    if result != 0 {
        if class == Class::HostFunction {
            function_over(slot);
        }
        return;
    }
    match class {
        Class::Copy if pending.ticket != 0 => place::copied(api, words, pending),
        Class::Graph if pending.ticket != 0 => graphs::launched(api, words, pending),
        Class::Synchronous => {
            if orders_host(api, words) {
                CLOCK.acquire(slot, now, now);
                sweep();
            }
        }
        Class::SynchronizeStream => {
            CLOCK.acquire(slot, now, now);
            sweep();
        }
        Class::SynchronizeEvent => {
            CLOCK.acquire_event(words[0], now);
            sweep();
        }
        Class::Elapsed => {
            CLOCK.acquire_event(words[1], now);
            CLOCK.acquire_event(words[2], now);
            sweep();
        }
        Class::SynchronizeAll | Class::Destroy => {
            CLOCK.acquire_everything(now);
            sweep();
        }
        Class::Register => register(words[0], words[1]),
        Class::MakeGraph => graphs::made(out(words[0]), words[1]),
        Class::UpdateGraph => graphs::made(words[0], words[1]),
        Class::ChangeGraph | Class::DestroyGraph => graphs::forget(words[0]),
        Class::AllocateHost => {
            let flags = if words.len() > 2 { words[2] } else { 0 };
            let kind = if flags & WRITE_COMBINED != 0 {
                MemoryKind::WriteCombined
            } else {
                MemoryKind::Pinned
            };
            keep(out(words[0]), words[1], kind);
        }
        Class::AllocateManaged if words[2] & 1 != 0 && managed_can_be_fenced() => {
            keep(out(words[0]), words[1], MemoryKind::Managed);
        }
        Class::FindVariable if api == Api::cuLibraryGetManaged && managed_can_be_fenced() => {
            keep(out(words[0]), out(words[1]), MemoryKind::Managed);
        }
        Class::MakeStream => {
            let flags = if api == Api::cuGreenCtxStreamCreate { words[2] } else { words[1] };
            CLOCK.stream_made(out(words[0]), flags & NON_BLOCKING != 0);
        }
        _ => match api {
            Api::cuPointerSetAttribute if words[1] == POINTER_SYNC_MEMOPS => {
                SYNC_MEMOPS.store(true, Ordering::SeqCst);
            }
            Api::cuCtxSetFlags if words[0] & CONTEXT_SYNC_MEMOPS != 0 => {
                SYNC_MEMOPS.store(true, Ordering::SeqCst);
            }
            _ => {}
        },
    }
}

/// New memory of the host that the device can use.
fn keep(start: u64, len: u64, kind: MemoryKind) {
    memory::TABLE.insert(start, len, kind);
    // Such libraries talk with the device, and with other processes, through what they allocate.
    if libraries::are_below()
        && let Ok(Some(allocation)) = memory::TABLE.find(start)
        && memory::TABLE.leave_alone(&allocation)
    {
        count_left_alone(LeftAlone::Library);
    }
}

fn sweep() {
    table::TABLE.sweep(|slot, ticket| CLOCK.has(slot, ticket));
}

/// Whether a synchronous copy or memset makes the host wait: never less than the analysis concludes.
fn orders_host(api: Api, words: &[u64]) -> bool {
    if SYNC_MEMOPS.load(Ordering::SeqCst) || words.is_empty() {
        return true;
    }
    if api.name().starts_with("cuMemset") {
        return memory::TABLE.find(words[0]).is_ok_and(|found| found.is_some());
    }
    // Without an operand that may lie in host memory there is nothing to wait for.
    !["DtoD", "DtoA", "AtoD", "AtoA"].iter().any(|ends| api.name().contains(ends)) || {
        let mut of_host = false;
        operands::each(api, words, &mut |operand| {
            of_host |= memory::TABLE.find(operand.start).is_ok_and(|found| found.is_some());
        });
        of_host
    }
}

/// Whether the driver does not know the address, so that it is memory of the program.
fn is_host_memory(address: u64) -> bool {
    /// `CU_POINTER_ATTRIBUTE_MEMORY_TYPE`.
    const MEMORY_TYPE: i32 = 2;
    const HOST: u32 = 1;
    let Some(real) = resolve::real_counted(Counted::cuPointerGetAttribute) else { return true };
    let mut kind = 0u32;
    // SAFETY: the driver's function with its documented signature and a writable result.
    let result = unsafe {
        let query: extern "C" fn(*mut u32, i32, u64) -> i32 = core::mem::transmute(real);
        query(&mut kind, MEMORY_TYPE, address)
    };
    result != 0 || kind == HOST
}

/// Whether the call became a node of a graph that is being captured.
fn is_captured(api: Api, words: &[u64]) -> bool {
    crate::graphs::under_capture()
        && crate::host_function::may_be_capturing(
            calls::is_per_thread(api),
            calls::handle(api, words),
        )
}

fn register(start: u64, len: u64) {
    if system::is_private_and_writable(start, start.saturating_add(len)) {
        keep(start, len, MemoryKind::Registered);
    }
}

/// Whether managed memory may be protected under a kernel.
fn managed_can_be_fenced() -> bool {
    let mut version = 0i32;
    let Some(real) = resolve::real_counted(Counted::cuDriverGetVersion) else { return false };
    // SAFETY: the driver's function with its documented signature and a writable result.
    let result = unsafe {
        let query: extern "C" fn(*mut i32) -> i32 = core::mem::transmute(real);
        query(&mut version)
    };
    result == 0
        && version >= FIRST_DRIVER_WITH_MANAGED
        && crate::call::attribute_of_current(CONCURRENT_MANAGED_ACCESS).unwrap_or(1) != 0
        && crate::call::attribute_of_current(HOST_PAGE_TABLES).unwrap_or(0) == 0
}

fn out(at: u64) -> u64 {
    // SAFETY: the driver has just written a result there.
    if at == 0 { 0 } else { unsafe { (at as *const u64).read_unaligned() } }
}

/// The place that a wrapped host function keeps of its submission.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FunctionPlace {
    slot: u8,
    now: u64,
    /// Known at its enqueueing only: of a graph's node nothing is.
    repeats: bool,
}

impl FunctionPlace {
    pub(crate) fn new(pending: &Pending, repeats: bool) -> Self {
        if repeats && is_watching() {
            // It is captured, or may be: nothing waits for it.
            function_over(usize::from(pending.slot));
        }
        Self { slot: pending.slot, now: CLOCK.now(), repeats }
    }

    /// The function is about to run: the host has what is before it.
    pub(crate) fn begins(self) {
        if is_watching() {
            let now = CLOCK.now();
            match self.repeats {
                true => CLOCK.acquire_everything(now),
                false => CLOCK.acquire(usize::from(self.slot), self.now, now),
            }
            sweep();
        }
    }

    /// It has run.
    pub(crate) fn ends(self) {
        if is_watching() && !self.repeats {
            function_over(usize::from(self.slot));
        }
    }
}

fn function_over(slot: usize) {
    let finished = FUNCTIONS[slot].1.fetch_add(1, Ordering::SeqCst) + 1;
    table::TABLE.place_waiting(slot, finished);
}

/// Streams are behind each other by something that is not tracked.
pub(crate) fn streams_meet(streams: impl Iterator<Item = u64>) {
    if is_watching() {
        ANYTHING.store(true, Ordering::SeqCst);
        for stream in streams {
            let stream = match stream {
                0 | 1 => clock::Stream::Legacy,
                handle => clock::Stream::Handle(handle),
            };
            CLOCK.behind_anything(CLOCK.slot(stream));
        }
    }
}

/// In a forked child: it has no device work of its own to fence.
pub(crate) fn after_fork() {
    table::TABLE.after_fork();
    memory::TABLE.after_fork();
    graphs::after_fork();
    in_use::LIST.after_fork();
    WANTED.store(false, Ordering::SeqCst);
}
