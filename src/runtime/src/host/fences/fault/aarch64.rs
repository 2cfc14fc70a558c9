//! Faults on aarch64.
//!
//! Whether a write has faulted is told by the syndrome (`ESR_EL1`, bit WnR) that Linux puts beside the
//! registers (`struct esr_context`, Linux' `arch/arm64/include/uapi/asm/sigcontext.h`). Where there is
//! none (an emulator), the instruction tells. Instructions: Arm Architecture Reference Manual for
//! A-profile, chapter C4.1 (A64 instruction set encoding).

use core::arch::naked_asm;
use core::mem::offset_of;

use super::super::signals;
use super::{InstructionKind, fault, give_stack, take_stack};
use crate::images;
use crate::stacks::Registers;

/// Bytes of an instruction.
pub(super) const LONGEST: usize = 4;
/// Bytes of which something can be told.
pub(super) const SHORTEST: usize = 4;

/// The code that the kernel returns to from a handler: its own, in the vDSO.
pub(in super::super) const RESTORE: Option<unsafe extern "C" fn()> = None;

/// `ESR_MAGIC`.
const SYNDROME: u32 = 0x4553_5201;
/// Exception class of the syndrome: a data abort from a program.
const DATA_ABORT: u64 = 0x24;
/// The access was a write, or the maintenance of a cache.
const WRITE_NOT_READ: u64 = 1 << 6;
const CACHE_MAINTENANCE: u64 = 1 << 8;

/// The handler that the kernel calls: moves to a stack of ours, and goes on to the program's
/// handler on the stack that it was delivered on, with our own state closed.
#[unsafe(naked)]
pub(in super::super) unsafe extern "C" fn enter() {
    naked_asm!(
        // bti c
        "hint #34",
        "stp x29, x30, [sp, #-64]!",
        "mov x29, sp",
        "stp x0, x1, [sp, #16]",
        "stp x2, x19, [sp, #32]",
        "str x20, [sp, #48]",
        "bl {take}",
        "mov x19, x0",
        "ldr x1, [x29, #24]",
        "ldr x2, [x29, #32]",
        "cbz x19, 2f",
        "mov sp, x19",
        "2:",
        "bl {fault}",
        "mov sp, x29",
        "mov w20, w0",
        "mov x0, x19",
        "bl {give}",
        "mov w9, w20",
        "ldr x20, [sp, #48]",
        "ldp x2, x19, [sp, #32]",
        "ldp x0, x1, [sp, #16]",
        "ldp x29, x30, [sp], #64",
        "cbz w9, 3f",
        "b {hand_on}",
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
    Registers { ip: context.pc, sp: context.sp, bp: context.regs[29], lr: context.regs[30] }
}

/// Whether it was a write that faulted. Where nothing tells, it counts as one: a write that was taken
/// for a read would fault for ever.
pub(super) fn is_write(context: &libc::mcontext_t) -> bool {
    /// Behind the registers, at a multiple of 16 bytes.
    const RECORDS: usize = (offset_of!(libc::mcontext_t, pstate) + 8).next_multiple_of(16);
    const WORDS: usize = (size_of::<libc::mcontext_t>() - RECORDS) / 8;
    // SAFETY: the rest of the structure, which is words for the kernel.
    let records: &[u64; WORDS] = unsafe { &*core::ptr::from_ref(context).byte_add(RECORDS).cast() };
    if let Some(writes) = syndrome(records).and_then(is_write_by) {
        return writes;
    }
    let mut code = [0; LONGEST];
    match images::memory::read_if_there(context.pc, &mut code) {
        Ok(()) => told(u32::from_le_bytes(code)).writes.unwrap_or(true),
        Err(_) => true,
    }
}

/// The syndrome among the records, each a magic number and its bytes, then the contents.
fn syndrome(records: &[u64]) -> Option<u64> {
    let mut at = 0;
    loop {
        let head = *records.get(at)?;
        let (magic, bytes) = (head as u32, (head >> 32) as usize);
        match magic {
            0 => return None,
            SYNDROME => return records.get(at + 1).copied(),
            _ if bytes < 16 || !bytes.is_multiple_of(8) => return None,
            _ => at += bytes / 8,
        }
    }
}

/// What a syndrome tells; nothing where it is not one of an access.
fn is_write_by(syndrome: u64) -> Option<bool> {
    (syndrome >> 26 & 0x3f == DATA_ABORT)
        .then_some(syndrome & WRITE_NOT_READ != 0 && syndrome & CACHE_MAINTENANCE == 0)
}

/// Kind and bytes of the access of an instruction.
pub(super) fn decode(bytes: &[u8]) -> (InstructionKind, u64) {
    match bytes.try_into() {
        Ok(bytes) => {
            let Told { kind, width, .. } = told(u32::from_le_bytes(bytes));
            (kind, width)
        }
        Err(_) => (InstructionKind::Other, 4),
    }
}

/// An instruction's access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Told {
    kind: InstructionKind,
    width: u64,
    /// `None`: it cannot be told.
    writes: Option<bool>,
}

fn told(code: u32) -> Told {
    let is = |mask: u32, value: u32| code & mask == value;
    let bit = |at: u32| code >> at & 1 != 0;
    let width = 1 << (code >> 30);
    let of = |kind, width, writes| Told { kind, width, writes: Some(writes) };
    // A load (or a prefetch, which never faults) where `opc` is not 0.
    let opc = code >> 22 & 3;
    let (vector, loads) = (bit(26), bit(22));
    // SIMD structures.
    if is(0xbe00_0000, 0x0c00_0000) {
        return of(InstructionKind::Other, 16, !loads);
    }
    // Exclusive, ordered, compare and swap.
    if is(0x3f00_0000, 0x0800_0000) {
        return match (bit(23), bit(21)) {
            (false, false) => of(InstructionKind::Atomic, width, !loads),
            (true, false) => of(InstructionKind::Move, width, !loads),
            // Pairs: compared and swapped without bit 31, else exclusive.
            (false, true) => of(InstructionKind::Atomic, 16, !bit(31) || !loads),
            (true, true) => of(InstructionKind::Atomic, width, true),
        };
    }
    // Ordered, with an offset.
    if is(0x3f20_0c00, 0x1900_0000) && !is(0xff20_0000, 0xd920_0000) {
        return of(InstructionKind::Move, width, opc == 0);
    }
    // Relative to the instruction.
    if is(0x3b00_0000, 0x1800_0000) {
        let kind = if vector { InstructionKind::Other } else { InstructionKind::Move };
        return of(kind, if code >> 30 == 1 { 8 } else { 4 }, false);
    }
    // Pairs.
    if is(0x3a00_0000, 0x2800_0000) {
        return of(InstructionKind::Other, 16, !loads);
    }
    // Single registers.
    if is(0x3a00_0000, 0x3800_0000) {
        let form = code >> 10 & 3;
        return match (vector, bit(24), bit(21), form) {
            (true, ..) => of(InstructionKind::Other, 16, !loads),
            (false, false, true, 0) => atomic(code, width),
            // With authentication.
            (false, false, true, 1 | 3) => of(InstructionKind::Move, 8, false),
            (false, ..) => of(InstructionKind::Move, width, opc == 0),
        };
    }
    // dc zva: fills a block with zeroes.
    if is(0xffff_ffe0, 0xd50b_7420) {
        return of(InstructionKind::Other, 64, true);
    }
    // Scalable vectors.
    let writes = match code & 0xfe00_0000 {
        0x8400_0000 | 0xa400_0000 | 0xc400_0000 => Some(false),
        0xe400_0000 => Some(true),
        _ => None,
    };
    Told { kind: InstructionKind::Other, width: 16, writes }
}

/// Atomic memory operations, and what shares their encoding.
fn atomic(code: u32, width: u64) -> Told {
    let (operation, swaps) = (code >> 12 & 7, code >> 15 & 1 != 0);
    let (kind, width, writes) = match (swaps, operation) {
        (false, _) | (true, 0) => (InstructionKind::Atomic, width, true),
        // A load with acquire.
        (true, 4) => (InstructionKind::Move, width, false),
        // 64 bytes.
        (true, 5) => (InstructionKind::Other, 64, false),
        (true, 1..=3) => (InstructionKind::Other, 64, true),
        (true, _) => return Told { kind: InstructionKind::Other, width, writes: None },
    };
    Told { kind, width, writes: Some(writes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_told_apart() {
        use InstructionKind::{Atomic, Move, Other};
        for (code, text, kind, width, writes) in [
            (0xb940_0001, "ldr w1, [x0]", Move, 4, Some(false)),
            (0xf900_0001, "str x1, [x0]", Move, 8, Some(true)),
            (0x3940_0001, "ldrb w1, [x0]", Move, 1, Some(false)),
            (0x79c0_0001, "ldrsh w1, [x0]", Move, 2, Some(false)),
            (0x7900_0001, "strh w1, [x0]", Move, 2, Some(true)),
            (0xb980_0001, "ldrsw x1, [x0]", Move, 4, Some(false)),
            (0xf840_8401, "ldr x1, [x0], #8", Move, 8, Some(false)),
            (0xb81f_cc01, "str w1, [x0, #-4]!", Move, 4, Some(true)),
            (0xb822_7801, "str w1, [x0, x2, lsl #2]", Move, 4, Some(true)),
            (0xf862_6801, "ldr x1, [x0, x2]", Move, 8, Some(false)),
            (0x5800_0001, "ldr x1, .", Move, 8, Some(false)),
            (0x88df_fc01, "ldar w1, [x0]", Move, 4, Some(false)),
            (0xc89f_fc01, "stlr x1, [x0]", Move, 8, Some(true)),
            (0xb8bf_c001, "ldapr w1, [x0]", Move, 4, Some(false)),
            (0x9940_8001, "ldapur w1, [x0, #8]", Move, 4, Some(false)),
            (0xd900_8001, "stlur x1, [x0, #8]", Move, 8, Some(true)),
            (0x885f_7c01, "ldxr w1, [x0]", Atomic, 4, Some(false)),
            (0xc802_7c01, "stxr w2, x1, [x0]", Atomic, 8, Some(true)),
            (0xc87f_0801, "ldxp x1, x2, [x0]", Atomic, 16, Some(false)),
            (0x4860_fc02, "caspal x0, x1, x2, x3, [x0]", Atomic, 16, Some(true)),
            (0xc8e1_fc02, "casal x1, x2, [x0]", Atomic, 8, Some(true)),
            (0xb8e1_0002, "ldaddal w1, w2, [x0]", Atomic, 4, Some(true)),
            (0xf821_801f, "swp x1, xzr, [x0]", Atomic, 8, Some(true)),
            (0x38e1_301f, "ldsetalb w1, wzr, [x0]", Atomic, 1, Some(true)),
            (0xa940_0801, "ldp x1, x2, [x0]", Other, 16, Some(false)),
            (0xa9bf_7bfd, "stp x29, x30, [sp, #-16]!", Other, 16, Some(true)),
            (0xad00_0400, "stp q0, q1, [x0]", Other, 16, Some(true)),
            (0x3dc0_0000, "ldr q0, [x0]", Other, 16, Some(false)),
            (0x3d80_0000, "str q0, [x0]", Other, 16, Some(true)),
            (0xbd00_0000, "str s0, [x0]", Other, 16, Some(true)),
            (0xfc40_8400, "ldr d0, [x0], #8", Other, 16, Some(false)),
            (0x4c40_a800, "ld1 {v0.4s, v1.4s}, [x0]", Other, 16, Some(false)),
            (0x4c9f_7000, "st1 {v0.16b}, [x0], #16", Other, 16, Some(true)),
            (0xd50b_7420, "dc zva, x0", Other, 64, Some(true)),
            (0xa540_a000, "ld1w {z0.s}, p0/z, [x0]", Other, 16, Some(false)),
            (0xe540_e000, "st1w {z0.s}, p0, [x0]", Other, 16, Some(true)),
            (0xd503_201f, "nop", Other, 16, None),
        ] {
            assert_eq!(told(code), Told { kind, width, writes }, "{text}");
        }
        assert_eq!(decode(&[1, 0, 0x40, 0xb9]), (Move, 4));
        assert_eq!(decode(&[]), (Other, 4));
    }

    #[test]
    fn the_syndrome_is_found_behind_other_records() {
        let record = |magic: u64, bytes: u64| magic | bytes << 32;
        let mut records = [0; 512];
        assert_eq!(syndrome(&records), None);
        // The registers of vectors, as every frame has them.
        records[0] = record(0x4650_8001, 528);
        records[66] = record(0x4553_5201, 16);
        records[67] = 0x9200_004f;
        assert_eq!(syndrome(&records), Some(0x9200_004f));
        // A record that leads nowhere.
        for bytes in [0, 8, 12, 8192] {
            records[0] = record(0x4650_8001, bytes);
            assert_eq!(syndrome(&records), None);
        }
    }

    #[test]
    fn a_syndrome_tells_writes_from_reads() {
        for (syndrome, writes) in [
            // Permission faults of a read, a write, and the cleaning of a cache.
            (0x9200_000f, Some(false)),
            (0x9200_004f, Some(true)),
            (0x9200_014f, Some(false)),
            // An instruction abort.
            (0x8200_000f, None),
        ] {
            assert_eq!(is_write_by(syndrome), writes, "{syndrome:x}");
        }
    }
}
