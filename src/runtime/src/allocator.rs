//! Memory of the runtime's own, apart from the program's.
//!
//! The program's `malloc` may be anything: a sanitizer's, that reports what is never freed and
//! makes the program end with another exit code; an instrumented one, that calls back; one that is
//! not ready yet. What the runtime keeps for a thread or for good is no leak of the program's, so
//! the runtime takes its memory from the kernel, through an allocator that knows nothing of the
//! program's.
//!
//! The hot path allocates nothing (see the crate's header), so the allocator's one lock is not felt.

/// A port of Doug Lea's allocator, over `mmap`.
#[cfg(not(test))]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

/// Makes the allocator usable in forked children: another thread of the parent may hold its lock at
/// that moment. A bare `clone` is not noticed, as with the C library's own allocator.
///
/// To be called before the program's threads exist.
pub(crate) fn survive_forks() {
    // SAFETY: this is called by the constructor of the library, before anything is allocated.
    unsafe { dlmalloc::enable_alloc_after_fork() };
}
