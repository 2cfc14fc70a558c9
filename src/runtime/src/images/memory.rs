//! Reading the program's memory without trusting that it is there.

use core::ffi::CStr;
use core::ptr;

use crate::host::fences;
use crate::system_call;

/// Fills `into` with what is at `address`, if the kernel will and can read all of it.
///
/// # Errors
///
/// The error number, or `None` where only a part could be read, or the range wraps around.
pub(crate) fn read_if_there(address: u64, into: &mut [u8]) -> Result<(), Option<i32>> {
    if address.checked_add(into.len() as u64).is_none() {
        return Err(None);
    }
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let remote = libc::iovec { iov_base: address as *mut _, iov_len: into.len() };
    // SAFETY: `local` is writable; the kernel checks `remote`. The system call itself: the C library's
    // function may not be its own.
    let got = unsafe {
        let (local, remote) = (&raw const local as u64, &raw const remote as u64);
        let process = libc::getpid() as u64;
        system_call::raw(libc::SYS_process_vm_readv, [process, local, 1, remote, 1, 0])
    };
    let is_refused = matches!(-got as i32, libc::ENOSYS | libc::EPERM);
    match usize::try_from(got) {
        Ok(got) if got == into.len() => Ok(()),
        // Inside a fence, or in a sandbox or an emulator that refuses the call.
        _ if fences::any() || is_refused => match read_past_protection(address, into) {
            Some(true) => Ok(()),
            Some(false) => Err(None),
            None => Err(i32::try_from(-got).ok()),
        },
        Ok(_) => Err(None),
        Err(_) => Err(i32::try_from(-got).ok()),
    }
}

/// The same whatever the protection of the pages; `None` where that cannot be asked.
#[cold]
fn read_past_protection(address: u64, into: &mut [u8]) -> Option<bool> {
    const MEMORY: &CStr = c"/proc/self/mem";
    let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as u64;
    // SAFETY: a NUL-terminated path; the kernel checks the address and writes into `into` only; the
    // descriptor is ours.
    unsafe {
        let path = [libc::AT_FDCWD as u64, MEMORY.as_ptr() as u64, flags, 0, 0, 0];
        let file = system_call::raw(libc::SYS_openat, path);
        if file < 0 {
            return None;
        }
        let at = [file as u64, into.as_mut_ptr() as u64, into.len() as u64, address, 0, 0];
        let got = system_call::raw(libc::SYS_pread64, at);
        system_call::raw(libc::SYS_close, [file as u64, 0, 0, 0, 0, 0]);
        Some(usize::try_from(got) == Ok(into.len()))
    }
}

/// Fills `into` with what is at `address`; `false` where it cannot all be read.
pub(super) fn read(address: u64, into: &mut [u8]) -> bool {
    match read_if_there(address, into) {
        Ok(()) => return true,
        Err(Some(libc::ENOSYS | libc::EPERM)) => {}
        Err(_) => return false,
    }
    // Where a sandbox forbids the question: the driver has just read this memory.
    // SAFETY: as far as that holds.
    unsafe { ptr::copy_nonoverlapping(address as *const u8, into.as_mut_ptr(), into.len()) };
    true
}

/// A little-endian number of the `N` bytes at `at`, 0 beyond the end.
pub(super) fn number<const N: usize>(bytes: &[u8], at: usize) -> u64 {
    let bytes = bytes.get(at..at + N).unwrap_or_default();
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}
