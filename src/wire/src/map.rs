//! Files in shared memory, mapped and closed at once: descriptors may be closed by the program.

use core::ffi::CStr;
use core::ptr::NonNull;

/// A mapped file.
#[derive(Debug, Clone, Copy)]
pub struct Mapping {
    /// First byte, page-aligned.
    pub start: NonNull<u8>,
    /// Bytes.
    pub len: usize,
}

/// Creates the file `path` of `len` zero bytes and maps it. The space is allocated at once, so
/// that a full file system fails here and not with SIGBUS later.
///
/// # Errors
/// The `errno` of the call that failed; no file is left behind.
pub fn map_new(path: &CStr, len: usize) -> Result<Mapping, i32> {
    let size = i64::try_from(len).map_err(|_| libc::EFBIG)?;
    if len as u64 > file_size_limit() {
        return Err(libc::EFBIG);
    }
    // SAFETY: `path` is NUL-terminated.
    let fd = unsafe {
        libc::open(
            path.as_ptr(),
            libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC | libc::O_NOFOLLOW,
            0o600 as libc::c_uint,
        )
    };
    if fd < 0 {
        return Err(errno());
    }
    // SAFETY: `fd` is open.
    let failure = unsafe { libc::posix_fallocate(fd, 0, size) };
    let mapped = if failure == 0 { map_fd(fd, len) } else { Err(failure) };
    // SAFETY: `fd` is ours and closed once; `path` is NUL-terminated.
    unsafe {
        libc::close(fd);
        if mapped.is_err() {
            libc::unlink(path.as_ptr());
        }
    }
    mapped
}

/// Maps the existing file `path` in its whole length.
///
/// # Errors
/// The `errno` of the call that failed.
pub fn map_existing(path: &CStr) -> Result<Mapping, i32> {
    // SAFETY: `path` is NUL-terminated.
    let fd =
        unsafe { libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC | libc::O_NOFOLLOW) };
    if fd < 0 {
        return Err(errno());
    }
    // SAFETY: `fd` is open; a zeroed `stat` is a valid one to write over.
    let mapped = unsafe {
        let mut stat: libc::stat = core::mem::zeroed();
        match libc::fstat(fd, &mut stat) {
            0 => map_fd(fd, usize::try_from(stat.st_size).unwrap_or(0)),
            _ => Err(errno()),
        }
    };
    // SAFETY: `fd` is ours and closed once.
    unsafe { libc::close(fd) };
    mapped
}

impl Mapping {
    /// Unmaps.
    ///
    /// # Safety
    /// Nothing uses the memory any more.
    pub unsafe fn unmap(self) {
        // SAFETY: the range is a mapping of ours (constructors), unused by the caller's promise.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }

    /// Keeps the mapping out of forked children.
    pub fn exclude_from_fork(self) {
        // SAFETY: the range is a mapping of ours.
        unsafe { libc::madvise(self.start.as_ptr().cast(), self.len, libc::MADV_DONTFORK) };
    }
}

/// The program's limit (`ulimit -f`): a file that grows beyond it would kill the program.
fn file_size_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a writable limit.
    match unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } {
        0 => limit.rlim_cur,
        _ => u64::MAX,
    }
}

fn map_fd(fd: i32, len: usize) -> Result<Mapping, i32> {
    if len == 0 {
        return Err(libc::EINVAL);
    }
    // SAFETY: a fresh shared mapping at an address that the kernel chooses.
    let start = unsafe {
        libc::mmap(
            core::ptr::null_mut(),
            len,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            fd,
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return Err(errno());
    }
    NonNull::new(start.cast()).map(|start| Mapping { start, len }).ok_or(libc::ENOMEM)
}

fn errno() -> i32 {
    // SAFETY: the location is valid for the calling thread.
    unsafe { *libc::__errno_location() }
}
