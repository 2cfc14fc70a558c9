//! The handler of SIGSEGV: a touch inside a fence is recorded, the fence lifted, the instruction
//! retried.
//!
//! It runs on a stack of its own: the program's alternate stack may be small. It takes no lock that
//! the interrupted thread may hold, allocates nothing of the program's, and leaves `errno` alone.
//! The record is published before the fence is lifted, so that no wait of another thread comes
//! between the two.

use core::arch::naked_asm;
use core::ptr;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use streamsan_wire::{HostCall, RecordedMode, Unwatched};

use super::super::publish;
use super::table::{Claim, Fault, TABLE};
use super::{budget, memory, signals, storm};
use crate::stacks::{self, Registers};
use crate::thread::{self, Thread};
use crate::{attach, images, resolve, system_call};

/// `si_code`: a mapping that does not allow it.
const ACCESS_ERROR: i32 = 2;
/// In the page fault's error code: it was a write.
const WRITE: i64 = 2;

/// Looks at an address without a fence before the fault counts as not ours.
const LOOKS: u32 = 4;

/// Touches of the driver's own before nothing is fenced any more.
const MOST_OF_DRIVER: u64 = 16;

const STACKS: usize = 64;
/// Bytes of a stack; a guard page lies below. Unoptimised code takes more.
const STACK: usize = if cfg!(debug_assertions) { 512 << 10 } else { 64 << 10 };
const GUARD: usize = 4096;

const FREE: u64 = 0;
const TAKEN: u64 = 1;
static TAKEN_STACKS: [AtomicU64; STACKS] = [const { AtomicU64::new(FREE) }; STACKS];
/// Where the stacks are; made when the handler is installed.
static STACKS_AT: AtomicUsize = AtomicUsize::new(0);

/// Asks for the stacks, with the first fence.
pub(super) fn make_stacks() {
    if STACKS_AT.load(Ordering::Acquire) != 0 {
        return;
    }
    let bytes = STACKS * (STACK + GUARD);
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
            let guard = start as u64 + (index * (STACK + GUARD)) as u64;
            system_call::raw(libc::SYS_mprotect, [guard, GUARD as u64, 0, 0, 0, 0]);
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
            return start + (index + 1) * (STACK + GUARD);
        }
    }
    0
}

extern "C" fn give_stack(top: usize) {
    if top != 0 {
        let index = (top - STACKS_AT.load(Ordering::Acquire)) / (STACK + GUARD) - 1;
        TAKEN_STACKS[index].store(FREE, Ordering::Release);
    }
}

/// The handler that the kernel calls: moves to a stack of ours, and goes on to the program's
/// handler on the stack that it was delivered on, with our own state closed.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn enter() {
    naked_asm!(
        "push rbp",
        "mov rbp, rsp",
        "push rdi",
        "push rsi",
        "push rdx",
        "push rbx",
        "call {take}",
        "mov rbx, rax",
        "mov rsi, [rbp - 16]",
        "mov rdx, [rbp - 24]",
        "mov rdi, rbx",
        "test rbx, rbx",
        "jz 2f",
        "mov rsp, rbx",
        "2:",
        "call {fault}",
        "lea rsp, [rbp - 32]",
        "mov rdi, rbx",
        "mov rbx, rax",
        "call {give}",
        "mov rax, rbx",
        "pop rbx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "pop rbp",
        "test eax, eax",
        "jz 3f",
        "jmp {hand_on}",
        "3:",
        "ret",
        take = sym take_stack,
        fault = sym fault,
        give = sym give_stack,
        hand_on = sym signals::hand_on,
    )
}

/// Answers whether the fault is not ours.
extern "C" fn fault(
    stack: usize,
    info: *mut libc::siginfo_t,
    context: *mut libc::ucontext_t,
) -> u32 {
    // SAFETY: the kernel's own structures.
    let (code, address, registers) =
        unsafe { ((*info).si_code, (*info).si_addr() as u64, &(*context).uc_mcontext.gregs) };
    if code != ACCESS_ERROR {
        return 1;
    }
    let begin = budget::ticks();
    let errno = thread::errno();
    let writes = registers[libc::REG_ERR as usize] & WRITE != 0;
    let at = Registers {
        ip: registers[libc::REG_RIP as usize] as u64,
        sp: registers[libc::REG_RSP as usize] as u64,
        bp: registers[libc::REG_RBP as usize] as u64,
    };
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
    let mut bytes = [0u8; 15];
    let mut len = bytes.len();
    // The next page may not be there.
    while images::memory::read_if_there(ip, &mut bytes[..len]).is_err() {
        len /= 2;
        if len < 2 {
            return (plain, false);
        }
    }
    let (kind, width) = decode(&bytes[..len]);
    match kind {
        InstructionKind::Atomic => (RecordedMode::Atomic, true),
        InstructionKind::Move => (plain, address.is_multiple_of(width)),
        InstructionKind::Other => (plain, false),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InstructionKind {
    Atomic,
    Move,
    Other,
}

/// Kind and bytes of the access of an instruction (Intel 64 manual, volume 2).
fn decode(bytes: &[u8]) -> (InstructionKind, u64) {
    let (mut locked, mut short, mut repeated, mut wide) = (false, false, false, false);
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            0xf0 => locked = true,
            0x66 => short = true,
            0xf2 | 0xf3 => repeated = true,
            0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x65 | 0x67 => {}
            _ => break,
        }
        at += 1;
    }
    if let Some(rex @ 0x40..=0x4f) = bytes.get(at) {
        wide = rex & 8 != 0;
        at += 1;
    }
    let of = |index: usize| bytes.get(at + index).copied().unwrap_or(0);
    let full = if wide {
        8
    } else if short {
        2
    } else {
        4
    };
    let extension = of(1) >> 3 & 7;
    let (kind, width) = match of(0) {
        0x86 | 0x87 => (InstructionKind::Atomic, if of(0) & 1 == 0 { 1 } else { full }),
        _ if locked => (InstructionKind::Atomic, full),
        _ if repeated => (InstructionKind::Other, full),
        0x88 | 0x8a | 0xc6 | 0x38 | 0x3a | 0x84 => (InstructionKind::Move, 1),
        0x89 | 0x8b | 0xc7 | 0x39 | 0x3b | 0x85 | 0x63 => (InstructionKind::Move, full),
        0x80 if extension == 7 => (InstructionKind::Move, 1),
        0x81 | 0x83 if extension == 7 => (InstructionKind::Move, full),
        0xf6 if extension == 0 => (InstructionKind::Move, 1),
        0xf7 if extension == 0 => (InstructionKind::Move, full),
        0x0f => match of(1) {
            0xb6 | 0xbe => (InstructionKind::Move, 1),
            0xb7 | 0xbf => (InstructionKind::Move, 2),
            _ => (InstructionKind::Other, full),
        },
        _ => (InstructionKind::Other, full),
    };
    (kind, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_told_apart() {
        for (bytes, expected) in [
            (&[0x8b, 0x07][..], (InstructionKind::Move, 4)),
            (&[0x48, 0x89, 0x07], (InstructionKind::Move, 8)),
            (&[0x66, 0x89, 0x07], (InstructionKind::Move, 2)),
            (&[0x0f, 0xb6, 0x47, 0x10], (InstructionKind::Move, 1)),
            (&[0x83, 0x3f, 0x00], (InstructionKind::Move, 4)),
            // Adds to memory: reads and writes.
            (&[0x83, 0x07, 0x01], (InstructionKind::Other, 4)),
            (&[0xf0, 0x48, 0x0f, 0xb1, 0x17], (InstructionKind::Atomic, 8)),
            (&[0x87, 0x07], (InstructionKind::Atomic, 4)),
            (&[0xf3, 0xa4], (InstructionKind::Other, 4)),
            (&[0xc5, 0xfa, 0x6f, 0x06], (InstructionKind::Other, 4)),
            (&[], (InstructionKind::Other, 4)),
        ] {
            assert_eq!(decode(bytes), expected, "{bytes:x?}");
        }
    }
}
