//! By the convention of aarch64 (`syscall(2)`): the number in x8, the result in x0.

/// # Safety
/// As the system call; what it does not take is ignored.
pub(crate) unsafe fn raw(number: i64, arguments: [u64; 6]) -> i64 {
    let [a, b, c, d, e, f] = arguments;
    let result: i64;
    // SAFETY: the kernel's calling convention; the call itself is the caller's to vouch for.
    unsafe {
        core::arch::asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") a => result,
            in("x1") b,
            in("x2") c,
            in("x3") d,
            in("x4") e,
            in("x5") f,
            options(nostack),
        );
    }
    result
}
