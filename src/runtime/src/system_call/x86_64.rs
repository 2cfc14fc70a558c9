//! By the convention of x86-64 (System V ABI, AMD64 supplement, appendix A.2).

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
