//! Faults on x86-64.

use core::arch::naked_asm;

use super::super::signals;
use super::{InstructionKind, fault, give_stack, take_stack};
use crate::stacks::Registers;

/// In the page fault's error code: it was a write.
const WRITE: i64 = 2;

/// Bytes of an instruction at most.
pub(super) const LONGEST: usize = 15;
/// Bytes of which something can be told.
pub(super) const SHORTEST: usize = 2;

/// The code that the kernel returns to from a handler, which must be named here.
pub(in super::super) const RESTORE: Option<unsafe extern "C" fn()> = Some(restore);

/// Debuggers know it by these very bytes.
#[unsafe(naked)]
unsafe extern "C" fn restore() {
    naked_asm!("mov rax, 15", "syscall")
}

/// The handler that the kernel calls: moves to a stack of ours, and goes on to the program's
/// handler on the stack that it was delivered on, with our own state closed.
#[unsafe(naked)]
pub(in super::super) unsafe extern "C" fn enter() {
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

/// The registers of the instruction that faulted.
pub(super) fn registers(context: &libc::mcontext_t) -> Registers {
    Registers {
        ip: context.gregs[libc::REG_RIP as usize] as u64,
        sp: context.gregs[libc::REG_RSP as usize] as u64,
        bp: context.gregs[libc::REG_RBP as usize] as u64,
    }
}

/// Whether it was a write that faulted.
pub(super) fn is_write(context: &libc::mcontext_t) -> bool {
    context.gregs[libc::REG_ERR as usize] & WRITE != 0
}

/// Kind and bytes of the access of an instruction (Intel 64 manual, volume 2).
pub(super) fn decode(bytes: &[u8]) -> (InstructionKind, u64) {
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
