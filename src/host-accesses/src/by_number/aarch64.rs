//! The way into `syscall` on aarch64. Arguments: the number in x0, then x1 to x6. x9 and x16 are
//! nobody's at a call (AAPCS64); after a jump by x16 a protected page takes `bti c` for its begin.

use core::arch::naked_asm;

use super::{LISTED, NUMBERS, REAL, find, watched};

/// # Safety
/// As the system call.
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn syscall() {
    naked_asm!(
        // bti c
        "hint #34",
        "2:",
        "adrp x16, {real}",
        "ldr x16, [x16, :lo12:{real}]",
        "cbz x16, 4f",
        "cmp x0, #{numbers}",
        "b.hs 3f",
        "adrp x9, {listed}",
        "add x9, x9, :lo12:{listed}",
        "ldrb w9, [x9, x0]",
        "cbz w9, 3f",
        "b {watched}",
        "3:",
        "br x16",
        // Registers of arguments, and the return address.
        "4:",
        "stp x29, x30, [sp, #-80]!",
        "mov x29, sp",
        "stp x0, x1, [sp, #16]",
        "stp x2, x3, [sp, #32]",
        "stp x4, x5, [sp, #48]",
        "stp x6, x7, [sp, #64]",
        "bl {find}",
        "ldp x6, x7, [sp, #64]",
        "ldp x4, x5, [sp, #48]",
        "ldp x2, x3, [sp, #32]",
        "ldp x0, x1, [sp, #16]",
        "ldp x29, x30, [sp], #80",
        "b 2b",
        real = sym REAL,
        listed = sym LISTED,
        numbers = const NUMBERS,
        watched = sym watched,
        find = sym find,
    )
}
