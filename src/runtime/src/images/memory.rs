//! Reading the program's memory without trusting that it is there.

use core::ptr;

/// Fills `into` with what is at `address`, if the kernel will and can read all of it.
pub(crate) fn read_if_there(address: u64, into: &mut [u8]) -> Result<(), Option<i32>> {
    if address.checked_add(into.len() as u64).is_none() {
        return Err(None);
    }
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let remote = libc::iovec { iov_base: address as *mut _, iov_len: into.len() };
    // SAFETY: `local` is writable; the kernel checks `remote`.
    let got = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
    match usize::try_from(got) {
        Ok(got) if got == into.len() => Ok(()),
        Ok(_) => Err(None),
        Err(_) => Err(Some(crate::thread::errno())),
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
