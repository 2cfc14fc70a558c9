//! x86-64 (Intel 64 and IA-32 Architectures Software Developer's Manual).

/// The kernel's name for the counter of [`ticks`].
pub(crate) const CLOCK_SOURCE: &str = "tsc";

/// The processor's time stamp counter.
#[inline]
pub fn ticks() -> u64 {
    // SAFETY: every x86-64 processor has the instruction.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Bytes of a page of memory.
#[inline]
pub const fn page_bytes() -> u64 {
    4096
}
