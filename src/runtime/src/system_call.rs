//! System calls that touch neither `errno` nor what other libraries put before the C library's
//! functions. May be made by a signal handler.

/// # Safety
/// As the system call; what it does not take is ignored.
pub(crate) unsafe fn raw(number: i64, arguments: [u64; 6]) -> i64 {
    let [a, b, c, d, e, f] = arguments;
    let result: i64;
    // SAFETY: the kernel's calling convention; the call itself is the caller's to vouch for.
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") a,
            in("rsi") b,
            in("rdx") c,
            in("r10") d,
            in("r8") e,
            in("r9") f,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}
