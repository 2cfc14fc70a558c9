//! Memory of our own, beside the program's allocator.

use core::ptr::{self, NonNull};

/// Zeroed pages; `None` where the system gives none.
pub(super) fn map(bytes: usize) -> Option<NonNull<u8>> {
    // SAFETY: a fresh private mapping.
    let start = unsafe {
        libc::mmap(
            ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if start == libc::MAP_FAILED { None } else { NonNull::new(start.cast()) }
}

/// Gives pages of [`map`] back, which nobody uses any more.
pub(super) fn unmap(start: NonNull<u8>, bytes: usize) {
    // SAFETY: a mapping of this length that nobody uses (callers).
    unsafe { libc::munmap(start.as_ptr().cast(), bytes) };
}
