//! Thunks for x86-64. They use r10 and r11, which the System V ABI leaves to such code.

use core::arch::naked_asm;

use streamsan_wire::{ENTRY_POINTS, ProcessFile, UNKNOWN_SLOTS};

use super::slow;
use crate::attach::PAGE;
use crate::resolve::REAL;

/// Counts the entry point whose number is in r11d and jumps to the driver's function. The
/// counters are those of this process: the page that holds their address is empty after a fork.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn count_and_jump() {
    naked_asm!(
        "mov r10, [rip + {page}]",
        "mov r10, [r10]",
        "test r10, r10",
        "jz 2f",
        "cmp r11d, {entry_points}",
        "jae 3f",
        "lock inc qword ptr [r10 + 8 * r11]",
        "lea r10, [rip + {real}]",
        "mov r10, [r10 + 8 * r11]",
        "test r10, r10",
        "jz 4f",
        "jmp r10",
        // Unknown entry points: their counters lie at the end, their addresses are always known.
        "3:",
        "lock inc qword ptr [r10 + 8 * r11 + {unknown}]",
        "lea r10, [rip + {real}]",
        "jmp qword ptr [r10 + 8 * r11]",
        // Attach, then count.
        "2:",
        "mov r10d, 1",
        "jmp 5f",
        // Counted, look the driver's function up.
        "4:",
        "xor r10d, r10d",
        // Keep every register that may hold an argument; 16-byte alignment at the call.
        "5:",
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "push r9",
        "push rax",
        "push r11",
        "sub rsp, 136",
        "movups [rsp], xmm0",
        "movups [rsp + 16], xmm1",
        "movups [rsp + 32], xmm2",
        "movups [rsp + 48], xmm3",
        "movups [rsp + 64], xmm4",
        "movups [rsp + 80], xmm5",
        "movups [rsp + 96], xmm6",
        "movups [rsp + 112], xmm7",
        "mov edi, r11d",
        "mov esi, r10d",
        "call {slow}",
        "mov r10, rax",
        "movups xmm0, [rsp]",
        "movups xmm1, [rsp + 16]",
        "movups xmm2, [rsp + 32]",
        "movups xmm3, [rsp + 48]",
        "movups xmm4, [rsp + 64]",
        "movups xmm5, [rsp + 80]",
        "movups xmm6, [rsp + 96]",
        "movups xmm7, [rsp + 112]",
        "add rsp, 136",
        "pop r11",
        "pop rax",
        "pop r9",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "jmp r10",
        page = sym PAGE,
        real = sym REAL,
        slow = sym slow,
        entry_points = const ENTRY_POINTS,
        unknown = const 8 * (ProcessFile::unknown_counter(0) - ENTRY_POINTS),
    )
}

/// The body of the thunk of an entry point, by its number.
macro_rules! count_as {
    ($index:expr) => {
        core::arch::naked_asm!(
            "mov r11d, {index}",
            "jmp {count_and_jump}",
            index = const $index,
            count_and_jump = sym count_and_jump,
        )
    };
}
pub(super) use count_as;

/// Thunks for entry points that this version does not know, one a slot.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn unknown_thunks() {
    naked_asm!(
        ".balign 16",
        ".set streamsan_slot, 0",
        ".rept {slots}",
        ".balign 16",
        "mov r11d, {entry_points} + streamsan_slot",
        "jmp {count_and_jump}",
        ".set streamsan_slot, streamsan_slot + 1",
        ".endr",
        slots = const UNKNOWN_SLOTS,
        entry_points = const ENTRY_POINTS,
        count_and_jump = sym count_and_jump,
    )
}
