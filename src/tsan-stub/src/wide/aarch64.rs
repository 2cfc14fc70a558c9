//! Exclusive loads and stores of pairs, which every processor has.

use core::arch::asm;

/// Replaces `expected` by `value` if it stands there; answers what stood there. What does not stand
/// there is stored again: without that, two halves need not be of one moment (Arm Architecture
/// Reference Manual, B2.2: Load-Exclusive Pair is single-copy atomic for 16 bytes only so).
///
/// # Safety
/// `address` is that of an atomic object, so 16-byte aligned and writable.
pub(super) unsafe fn compare_exchange(address: *mut u128, expected: u128, value: u128) -> u128 {
    let (low, high): (u64, u64);
    // SAFETY: promised by the caller.
    unsafe {
        asm!(
            "2:",
            "ldaxp {low}, {high}, [{address}]",
            "cmp {low}, {expected_low}",
            "ccmp {high}, {expected_high}, #0, eq",
            "csel {new_low}, {value_low}, {low}, eq",
            "csel {new_high}, {value_high}, {high}, eq",
            "stlxp {failed:w}, {new_low}, {new_high}, [{address}]",
            "cbnz {failed:w}, 2b",
            // Sequentially consistent towards other locations, too.
            "dmb ish",
            address = in(reg) address,
            expected_low = in(reg) expected as u64,
            expected_high = in(reg) (expected >> 64) as u64,
            value_low = in(reg) value as u64,
            value_high = in(reg) (value >> 64) as u64,
            low = out(reg) low,
            high = out(reg) high,
            new_low = out(reg) _,
            new_high = out(reg) _,
            failed = out(reg) _,
            options(nostack),
        );
    }
    u128::from(low) | u128::from(high) << 64
}
