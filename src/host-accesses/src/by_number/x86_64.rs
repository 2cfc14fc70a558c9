//! The way into `syscall` on x86-64. Arguments: the number in rdi, then rsi, rdx, rcx, r8, r9 and the
//! stack.

use core::arch::naked_asm;

use super::{LISTED, NUMBERS, REAL, find, watched};

/// # Safety
/// As the system call.
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn syscall() {
    naked_asm!(
        "2:",
        "mov r11, [rip + {real}]",
        "test r11, r11",
        "jz 4f",
        "cmp rdi, {numbers}",
        "jae 3f",
        "lea rax, [rip + {listed}]",
        "cmp byte ptr [rax + rdi], 0",
        "jne {watched}",
        "3:",
        "jmp r11",
        // Registers of arguments, and a multiple of 16 bytes with the return address.
        "4:",
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "push r9",
        "sub rsp, 8",
        "call {find}",
        "add rsp, 8",
        "pop r9",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "jmp 2b",
        real = sym REAL,
        listed = sym LISTED,
        numbers = const NUMBERS,
        watched = sym watched,
        find = sym find,
    )
}
