//! The handler of SIGSEGV: a touch inside a fence is recorded, the fence lifted, the instruction
//! retried.
//!
//! It runs on a stack of its own: the program's alternate stack may be small. It takes no lock that
//! the interrupted thread may hold, allocates nothing of the program's, and leaves `errno` alone.
//! The record is published before the fence is lifted, so that no wait of another thread comes
//! between the two.

use core::ptr;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use streamsan_wire::{HostCall, RecordedMode, Unwatched, page_bytes};

use super::super::publish;
use super::table::{Claim, Fault, TABLE};
use super::{budget, memory, storm};
use crate::stacks::{self, Registers};
use crate::thread::{self, Thread};
use crate::{attach, images, resolve, system_call};

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
use aarch64 as machine;
#[cfg(target_arch = "x86_64")]
use x86_64 as machine;

pub(super) use machine::{RESTORE, enter};

/// `si_code`: a mapping that does not allow it.
const ACCESS_ERROR: i32 = 2;

/// Looks at an address without a fence before the fault counts as not ours.
const LOOKS: u32 = 4;

/// Touches of the driver's own before nothing is fenced any more.
const MOST_OF_DRIVER: u64 = 16;

const STACKS: usize = 64;
/// Bytes of a stack, a multiple of every page; a guard page lies below. Unoptimised code takes more.
const STACK: usize = if cfg!(debug_assertions) { 512 << 10 } else { 64 << 10 };

const FREE: u64 = 0;
const TAKEN: u64 = 1;
static TAKEN_STACKS: [AtomicU64; STACKS] = [const { AtomicU64::new(FREE) }; STACKS];
/// Where the stacks are; made when the handler is installed.
static STACKS_AT: AtomicUsize = AtomicUsize::new(0);

/// Bytes of a stack with its guard page.
fn stride() -> usize {
    STACK + page_bytes() as usize
}

/// Asks for the stacks, with the first fence.
pub(super) fn make_stacks() {
    if STACKS_AT.load(Ordering::Acquire) != 0 {
        return;
    }
    let bytes = STACKS * stride();
    // SAFETY: a fresh private mapping, whose guard pages are taken away again.
    unsafe {
        let start = libc::mmap(
            ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        );
        if start == libc::MAP_FAILED {
            return;
        }
        for index in 0..STACKS {
            let guard = start as u64 + (index * stride()) as u64;
            system_call::raw(libc::SYS_mprotect, [guard, page_bytes(), 0, 0, 0, 0]);
        }
        STACKS_AT.store(start as usize, Ordering::Release);
    }
}

/// The top of a stack that nobody uses, 0 if there is none. Needs little stack itself.
extern "C" fn take_stack() -> usize {
    let start = STACKS_AT.load(Ordering::Acquire);
    if start == 0 {
        return 0;
    }
    for (index, stack) in TAKEN_STACKS.iter().enumerate() {
        if stack.compare_exchange(FREE, TAKEN, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            return start + (index + 1) * stride();
        }
    }
    0
}

extern "C" fn give_stack(top: usize) {
    if top != 0 {
        let index = (top - STACKS_AT.load(Ordering::Acquire)) / stride() - 1;
        TAKEN_STACKS[index].store(FREE, Ordering::Release);
    }
}

/// Answers whether the fault is not ours.
extern "C" fn fault(
    stack: usize,
    info: *mut libc::siginfo_t,
    context: *mut libc::ucontext_t,
) -> u32 {
    // SAFETY: the kernel's own structures.
    let (code, address, context) =
        unsafe { ((*info).si_code, (*info).si_addr() as u64, &(*context).uc_mcontext) };
    if code != ACCESS_ERROR {
        return 1;
    }
    let begin = budget::ticks();
    let errno = thread::errno();
    let at = machine::registers(context);
    let writes = machine::is_write(context);
    let ours = thread::with(|thread| is_ours(thread, address, writes, at, stack != 0));
    thread::set_errno(errno);
    if ours {
        budget::spent_since(begin);
    }
    u32::from(!ours)
}

fn is_ours(thread: &Thread, address: u64, writes: bool, at: Registers, has_stack: bool) -> bool {
    match TABLE.fault(address, writes) {
        Fault::Claimed(claim) => {
            thread.fault.set((0, 0, 0));
            touched(thread, address, writes, at, has_stack, claim);
            TABLE.open(claim, writes)
        }
        Fault::Again => {
            // SAFETY: no preconditions.
            unsafe { libc::sched_yield() };
            true
        }
        Fault::Nothing => {
            if !memory::TABLE.is_on_page(address) {
                return false;
            }
            // Another thread was faster. A fence that has moved since may be the reason each time.
            let moves = TABLE.moves();
            let (before, then, looks) = thread.fault.get();
            let looks = if before == address && then == moves { looks + 1 } else { 0 };
            thread.fault.set((address, moves, looks));
            looks < LOOKS
        }
    }
}

/// The thread has touched a fence: records it, unless it is the runtime's or the driver's touch.
fn touched(
    thread: &Thread,
    address: u64,
    writes: bool,
    at: Registers,
    has_stack: bool,
    claim: Claim,
) {
    // A child of a bare clone has no rings, nor the right to the parent's.
    let Some(attachment) = attach::known() else { return };
    let counters = &attachment.process.fences;
    if thread.busy.get() {
        return;
    }
    if thread.depth.get() > 0 || resolve::is_known_driver(at.ip as usize) {
        if counters.driver_touches.fetch_add(1, Ordering::Relaxed) + 1 >= MOST_OF_DRIVER {
            super::ask_to_stop(Unwatched::DriverTouches);
        }
        return;
    }
    counters.touches.fetch_add(1, Ordering::Relaxed);
    storm::count();
    budget::touched(claim.site);
    let (mode, single) = instruction(address, writes, at.ip);
    thread.busy.set(true);
    thread.in_fault.set(true);
    let key = if has_stack { stacks::of_interrupted(thread, &attachment, at) } else { 0 };
    let words = [address, mode as u64, u64::from(single)];
    publish::publish_at(thread, &attachment, HostCall::FenceTouched, key, &words);
    thread.in_fault.set(false);
    thread.busy.set(false);
    if let Ok(Some(allocation)) = memory::TABLE.find(address)
        && let Some(reason) = memory::TABLE.count_touch(&allocation, claim.kernel, claim.beside)
    {
        super::count_left_alone(reason);
    }
}

/// How the instruction accesses memory, and whether it is a plain move or compare of up to eight
/// aligned bytes.
fn instruction(address: u64, writes: bool, ip: u64) -> (RecordedMode, bool) {
    let plain = if writes { RecordedMode::Write } else { RecordedMode::Read };
    let mut bytes = [0u8; machine::LONGEST];
    let mut len = bytes.len();
    // The next page may not be there.
    while images::memory::read_if_there(ip, &mut bytes[..len]).is_err() {
        len /= 2;
        if len < machine::SHORTEST {
            return (plain, false);
        }
    }
    let (kind, width) = machine::decode(&bytes[..len]);
    match kind {
        InstructionKind::Atomic => (RecordedMode::Atomic, true),
        InstructionKind::Move => (plain, address.is_multiple_of(width)),
        InstructionKind::Other => (plain, false),
    }
}

/// How an instruction uses memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InstructionKind {
    Atomic,
    Move,
    Other,
}
