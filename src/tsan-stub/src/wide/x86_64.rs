//! `cmpxchg16b`, which every 64-bit processor of the last fifteen years has.

use core::arch::asm;

/// Replaces `expected` by `value` if it stands there; answers what stood there.
///
/// # Safety
/// `address` is that of an atomic object, so 16-byte aligned and writable.
pub(super) unsafe fn compare_exchange(address: *mut u128, expected: u128, value: u128) -> u128 {
    let (mut low, mut high) = (expected as u64, (expected >> 64) as u64);
    // SAFETY: promised by the caller. rbx is not ours to name: it is exchanged and restored.
    unsafe {
        asm!(
            "xchg {value_low}, rbx",
            "lock cmpxchg16b [{address}]",
            "mov rbx, {value_low}",
            address = in(reg) address,
            value_low = inout(reg) value as u64 => _,
            inout("rax") low,
            inout("rdx") high,
            in("rcx") (value >> 64) as u64,
            options(nostack),
        );
    }
    u128::from(low) | u128::from(high) << 64
}
