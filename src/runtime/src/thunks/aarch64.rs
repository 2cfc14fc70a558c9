//! Thunks for aarch64. They use x9, x10, x16 and x17, which AAPCS64 leaves to such code.
//!
//! The counters are added to by exclusive loads and stores, which every processor has. Jumps go by
//! x16, after which a protected page takes `bti c` for its begin. Of vector registers the 128 bits are
//! kept that hold arguments; no entry point of the driver takes scalable vectors.

use core::arch::naked_asm;

use streamsan_wire::{ENTRY_POINTS, ProcessFile, UNKNOWN_SLOTS};

use super::slow;
use crate::attach::PAGE;
use crate::resolve::REAL;

/// Counts the entry point whose number is in w17 and jumps to the driver's function. The
/// counters are those of this process: the page that holds their address is empty after a fork.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn count_and_jump() {
    naked_asm!(
        "adrp x16, {page}",
        "ldr x16, [x16, :lo12:{page}]",
        "ldr x16, [x16]",
        "cbz x16, 2f",
        "add x16, x16, x17, lsl #3",
        "mov w9, #{entry_points}",
        "cmp w17, w9",
        "b.hs 3f",
        "6:",
        "ldxr x9, [x16]",
        "add x9, x9, #1",
        "stxr w10, x9, [x16]",
        "cbnz w10, 6b",
        "adrp x16, {real}",
        "add x16, x16, :lo12:{real}",
        "ldr x16, [x16, x17, lsl #3]",
        "cbz x16, 4f",
        "br x16",
        // Unknown entry points: their counters lie at the end, their addresses are always known.
        "3:",
        "mov w9, #{unknown}",
        "add x16, x16, x9",
        "7:",
        "ldxr x9, [x16]",
        "add x9, x9, #1",
        "stxr w10, x9, [x16]",
        "cbnz w10, 7b",
        "adrp x16, {real}",
        "add x16, x16, :lo12:{real}",
        "ldr x16, [x16, x17, lsl #3]",
        "br x16",
        // Attach, then count.
        "2:",
        "mov w10, #1",
        "b 5f",
        // Counted, look the driver's function up.
        "4:",
        "mov w10, #0",
        // Keep every register that may hold an argument, the address of a result and the return
        // address.
        "5:",
        "stp x29, x30, [sp, #-224]!",
        "mov x29, sp",
        "stp x0, x1, [sp, #16]",
        "stp x2, x3, [sp, #32]",
        "stp x4, x5, [sp, #48]",
        "stp x6, x7, [sp, #64]",
        "str x8, [sp, #80]",
        "stp q0, q1, [sp, #96]",
        "stp q2, q3, [sp, #128]",
        "stp q4, q5, [sp, #160]",
        "stp q6, q7, [sp, #192]",
        "mov w0, w17",
        "mov w1, w10",
        "bl {slow}",
        "mov x16, x0",
        "ldp q0, q1, [sp, #96]",
        "ldp q2, q3, [sp, #128]",
        "ldp q4, q5, [sp, #160]",
        "ldp q6, q7, [sp, #192]",
        "ldp x0, x1, [sp, #16]",
        "ldp x2, x3, [sp, #32]",
        "ldp x4, x5, [sp, #48]",
        "ldp x6, x7, [sp, #64]",
        "ldr x8, [sp, #80]",
        "ldp x29, x30, [sp], #224",
        "br x16",
        page = sym PAGE,
        real = sym REAL,
        slow = sym slow,
        entry_points = const ENTRY_POINTS,
        unknown = const 8 * (ProcessFile::unknown_counter(0) - ENTRY_POINTS),
    )
}

/// Numbers are immediates of 16 bits.
const _: () = assert!(ENTRY_POINTS + UNKNOWN_SLOTS < 1 << 16);
const _: () = assert!(8 * (ProcessFile::unknown_counter(0) - ENTRY_POINTS) < 1 << 16);

/// The body of the thunk of an entry point, by its number.
macro_rules! count_as {
    ($index:expr) => {
        core::arch::naked_asm!(
            // bti c
            "hint #34",
            "mov w17, #{index}",
            "b {count_and_jump}",
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
        // bti c
        "hint #34",
        "mov w17, #({entry_points} + streamsan_slot)",
        "b {count_and_jump}",
        ".set streamsan_slot, streamsan_slot + 1",
        ".endr",
        slots = const UNKNOWN_SLOTS,
        entry_points = const ENTRY_POINTS,
        count_and_jump = sym count_and_jump,
    )
}
