//! Walks on aarch64. A call leaves its return address in x30, which the called function stores where
//! it likes, mostly beside x29, the frame pointer, below which the rest of its frame lies.
//!
//! Return addresses of code that signs them (`-mbranch-protection=pac-ret`) are stripped of their
//! signatures. The unwinder does not know the instruction that says so in `.eh_frame`
//! (`DW_CFA_AARCH64_negate_ra_state`); it then follows the frame pointer, which compilers keep on this
//! processor unless they are told otherwise.
//!
//! Signal frames: the code that a handler returns to lies in the vDSO without unwind information (and
//! below it the kernel leaves a frame record that says nothing of the instruction that was
//! interrupted). The registers are taken from the kernel's frame instead, whose layout is that of
//! `struct rt_sigframe` in Linux' `arch/arm64/kernel/signal.c`: `siginfo`, then `ucontext`.

use core::arch::asm;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU64, Ordering};

use framehop::aarch64::{CacheAarch64, PtrAuthMask, UnwindRegsAarch64, UnwinderAarch64};
use framehop::{Error, FrameAddress, MustNotAllocateDuringUnwind, Unwinder as _};

use crate::images::memory::read_if_there;
use crate::stacks::objects::Snapshot;

pub(in crate::stacks) type Unwinder = UnwinderAarch64<&'static [u8], MustNotAllocateDuringUnwind>;
pub(in crate::stacks) type Cache = CacheAarch64<MustNotAllocateDuringUnwind>;
pub(in crate::stacks) type UnwindRegs = UnwindRegsAarch64;

/// Whether the first step of a walk may leave the stack pointer where it is: out of a function that
/// has no frame.
pub(in crate::stacks) const LEAF_STAYS: bool = true;

/// `mov x8, #139; svc #0`: how a handler returns to what it has interrupted.
const TRAMPOLINE: [u8; 8] = [0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4];
/// Words below a frame in which a return address is looked for.
const MOST_BELOW: u64 = 64;

/// Where a walk begins: at a call of this library, or where a thread was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Registers {
    pub(crate) ip: u64,
    pub(crate) sp: u64,
    pub(crate) bp: u64,
    /// x30; the same as `ip` behind the first step.
    pub(crate) lr: u64,
}

impl Registers {
    #[inline(always)]
    pub(in crate::stacks) fn unwinding(self) -> UnwindRegs {
        UnwindRegs::new_with_ptr_auth_mask(signature_mask(), self.lr, self.sp, self.bp)
    }

    #[inline(always)]
    pub(in crate::stacks) fn of(registers: &UnwindRegs) -> Self {
        let lr = registers.lr();
        Self { ip: lr, sp: registers.sp(), bp: registers.fp(), lr }
    }
}

/// The bits of an address of code that are no signature, as the processor strips them. A processor
/// without signatures takes the instruction for none, and changes no bit.
#[inline]
fn signature_mask() -> PtrAuthMask {
    /// 0 until asked for.
    static KNOWN: AtomicU64 = AtomicU64::new(0);
    let mut mask = KNOWN.load(Ordering::Relaxed);
    if mask == 0 {
        // Bit 55 tells the addresses of programs: what is stripped becomes 0 like it.
        mask = !(1 << 55);
        // SAFETY: changes one register. xpaclri, which takes this register alone.
        unsafe {
            asm!("hint #7", inout("x30") mask, options(nomem, nostack, preserves_flags));
        }
        KNOWN.store(mask, Ordering::Relaxed);
    }
    PtrAuthMask(mask)
}

/// The registers of the calling function, whose frame a walk from them begins with. That function
/// has made calls, so that its x30 is worth nothing, and says where it has stored its own.
#[inline(always)]
pub(in crate::stacks) fn here() -> Registers {
    let (ip, sp, bp): (u64, u64, u64);
    // SAFETY: reads three registers.
    unsafe {
        asm!(
            "adr {ip}, .",
            "mov {sp}, sp",
            "mov {bp}, x29",
            ip = out(reg) ip,
            sp = out(reg) sp,
            bp = out(reg) bp,
            options(nomem, nostack, preserves_flags),
        );
    }
    Registers { ip, sp, bp, lr: 0 }
}

/// One step of a walk.
///
/// Where a frame is found by the frame pointer, the unwinder asks for a chain of them: it takes the
/// stack for ended at 0, and for damaged where one does not lie above the other. Code without frame
/// pointers may keep anything in that register, and what it calls saves that. The return address beside
/// it is as good, so such a step is made again with another word in the place of the saved register.
#[inline(always)]
pub(in crate::stacks) fn step(
    snapshot: &Snapshot,
    at: FrameAddress,
    registers: &mut UnwindRegs,
    cache: &mut Cache,
    read: &mut impl FnMut(u64) -> Result<u64, ()>,
) -> Result<Option<u64>, Error> {
    if is_trampoline(snapshot, at) {
        return interrupted(registers, read);
    }
    let before = *registers;
    match snapshot.unwinder.unwind_frame(at, registers, cache, read) {
        next @ (Ok(None) | Err(Error::FramepointerUnwindingMovedBackwards)) => {
            *registers = before;
            unchained(snapshot, at, registers, cache, read).map_or(next, |found| Ok(Some(found)))
        }
        next => next,
    }
}

/// The step again, as if the saved frame pointer were one. The unwinder reads it second.
#[cold]
fn unchained(
    snapshot: &Snapshot,
    at: FrameAddress,
    registers: &mut UnwindRegs,
    cache: &mut Cache,
    read: &mut impl FnMut(u64) -> Result<u64, ()>,
) -> Option<u64> {
    /// Above every frame.
    const CHAINED: u64 = u64::MAX - 7;
    let before = *registers;
    let mut words = [0; 2];
    let mut count = 0;
    let mut chained = |address| {
        let word = read(address)?;
        count += 1;
        if let Some(place) = words.get_mut(count - 1) {
            *place = word;
        }
        Ok(if count == 2 { CHAINED } else { word })
    };
    let next = snapshot.unwinder.unwind_frame(at, registers, cache, &mut chained);
    let found = next.ok().flatten().filter(|_| count == 2 && registers.fp() == CHAINED);
    match found {
        Some(_) => registers.set_fp(words[1]),
        None => *registers = before,
    }
    found
}

/// The place that a step has led to from `at`; `None` for 0.
#[inline(always)]
pub(in crate::stacks) fn followed(
    snapshot: &Snapshot,
    at: FrameAddress,
    address: u64,
) -> Option<FrameAddress> {
    if is_trampoline(snapshot, at) {
        Some(FrameAddress::from_instruction_pointer(address)).filter(|_| address != 0)
    } else {
        FrameAddress::from_return_address(address)
    }
}

/// Whether a handler returns to this place. Looks at the code of places in the vDSO; where there is
/// none (an emulator), of those in no object, by the kernel.
#[inline(always)]
fn is_trampoline(snapshot: &Snapshot, at: FrameAddress) -> bool {
    let FrameAddress::ReturnAddress(address) = at else { return false };
    let address = address.get();
    let possible = match snapshot.vdso {
        Some((low, high)) => (low..high).contains(&(address as usize)),
        None => snapshot.find(address as usize).is_none(),
    };
    possible && has_trampoline(address)
}

#[cold]
fn has_trampoline(address: u64) -> bool {
    let mut code = [0; TRAMPOLINE.len()];
    read_if_there(address, &mut code).is_ok() && code == TRAMPOLINE
}

/// From the frame of a signal to the registers that it has interrupted.
#[cold]
fn interrupted(
    registers: &mut UnwindRegs,
    read: &mut impl FnMut(u64) -> Result<u64, ()>,
) -> Result<Option<u64>, Error> {
    const CONTEXT: usize = size_of::<libc::siginfo_t>() + offset_of!(libc::ucontext_t, uc_mcontext);
    let frame = registers.sp();
    let mut word = |offset: usize| {
        let at = frame.wrapping_add((CONTEXT + offset) as u64);
        read(at).map_err(|()| Error::CouldNotReadStack(at))
    };
    let general = offset_of!(libc::mcontext_t, regs);
    let (fp, lr) = (word(general + 8 * 29)?, word(general + 8 * 30)?);
    let sp = word(offset_of!(libc::mcontext_t, sp))?;
    let pc = word(offset_of!(libc::mcontext_t, pc))?;
    registers.set_fp(fp);
    registers.set_lr(lr);
    registers.set_sp(sp);
    Ok((pc != 0).then_some(pc))
}

/// Where the return address into a frame lies, as far as it can be told: the highest place below the
/// frame that holds it.
#[inline(always)]
pub(in crate::stacks) fn return_address_of(
    frame: u64,
    address: u64,
    read: impl Fn(u64) -> Result<u64, ()>,
) -> u64 {
    let mask = signature_mask();
    let places = (1..=MOST_BELOW).map(|words| frame.wrapping_sub(8 * words));
    let mut holding =
        places.filter(|at| read(*at).is_ok_and(|word| mask.strip_ptr_auth(word) == address));
    holding.next().unwrap_or(frame.wrapping_sub(8))
}
