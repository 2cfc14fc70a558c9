//! Walks on x86-64. Each frame has its return address right below the stack pointer that its caller
//! has behind the call.

use core::arch::asm;

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{Error, FrameAddress, MustNotAllocateDuringUnwind, Unwinder as _};

use crate::stacks::objects::Snapshot;

pub(in crate::stacks) type Unwinder = UnwinderX86_64<&'static [u8], MustNotAllocateDuringUnwind>;
pub(in crate::stacks) type Cache = CacheX86_64<MustNotAllocateDuringUnwind>;
pub(in crate::stacks) type UnwindRegs = UnwindRegsX86_64;

/// Whether the first step of a walk may leave the stack pointer where it is.
pub(in crate::stacks) const LEAF_STAYS: bool = false;

/// Where a walk begins: at a call of this library, or where a thread was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Registers {
    pub(crate) ip: u64,
    pub(crate) sp: u64,
    pub(crate) bp: u64,
}

impl Registers {
    #[inline(always)]
    pub(in crate::stacks) fn unwinding(self) -> UnwindRegs {
        UnwindRegsX86_64::new(self.ip, self.sp, self.bp)
    }

    #[inline(always)]
    pub(in crate::stacks) fn of(registers: &UnwindRegs) -> Self {
        Self { ip: registers.ip(), sp: registers.sp(), bp: registers.bp() }
    }
}

/// The registers of the calling function, whose frame a walk from them begins with.
#[inline(always)]
pub(in crate::stacks) fn here() -> Registers {
    let (ip, sp, bp): (u64, u64, u64);
    // SAFETY: reads three registers.
    unsafe {
        asm!(
            "lea {ip}, [rip]",
            "mov {sp}, rsp",
            "mov {bp}, rbp",
            ip = out(reg) ip,
            sp = out(reg) sp,
            bp = out(reg) bp,
            options(nomem, nostack, preserves_flags),
        );
    }
    Registers { ip, sp, bp }
}

/// One step of a walk. Signal frames have unwind information of their own in the C library.
#[inline(always)]
pub(in crate::stacks) fn step(
    snapshot: &Snapshot,
    at: FrameAddress,
    registers: &mut UnwindRegs,
    cache: &mut Cache,
    read: &mut impl FnMut(u64) -> Result<u64, ()>,
) -> Result<Option<u64>, Error> {
    snapshot.unwinder.unwind_frame(at, registers, cache, read)
}

/// The place that a step has led to from `at`; `None` for 0.
#[inline(always)]
pub(in crate::stacks) fn followed(
    _snapshot: &Snapshot,
    _at: FrameAddress,
    address: u64,
) -> Option<FrameAddress> {
    FrameAddress::from_return_address(address)
}

/// Where the return address into a frame lies.
#[inline(always)]
pub(in crate::stacks) fn return_address_of(
    frame: u64,
    _address: u64,
    _read: impl Fn(u64) -> Result<u64, ()>,
) -> u64 {
    frame.wrapping_sub(8)
}
