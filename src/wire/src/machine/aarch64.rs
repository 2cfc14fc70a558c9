//! aarch64 (Arm Architecture Reference Manual for A-profile).

use core::sync::atomic::{AtomicU64, Ordering};

/// The kernel's name for the counter of [`ticks`].
pub(crate) const CLOCK_SOURCE: &str = "arch_sys_counter";

/// The virtual count of the generic timer, which runs at one rate on all processors alike. Read
/// without a barrier, so like the time stamp counter of x86-64 it may be read some instructions early.
#[inline]
pub fn ticks() -> u64 {
    let ticks;
    // SAFETY: reads a register that Linux gives programs.
    unsafe {
        core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nostack, preserves_flags));
    }
    ticks
}

/// Bytes of a page of memory: 4, 16 or 64 KiB, as the kernel was built. May be called by a signal
/// handler.
#[inline]
pub fn page_bytes() -> u64 {
    /// 0 until asked for.
    static KNOWN: AtomicU64 = AtomicU64::new(0);
    match KNOWN.load(Ordering::Relaxed) {
        0 => {
            // SAFETY: reads what the kernel gave the process at its start.
            let bytes = unsafe { libc::getauxval(libc::AT_PAGESZ) };
            KNOWN.store(bytes, Ordering::Relaxed);
            bytes
        }
        known => known,
    }
}
