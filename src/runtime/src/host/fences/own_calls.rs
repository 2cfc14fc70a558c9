//! Code whose system calls nobody stands in front of: an io_uring of the process, or a Go runtime.
//!
//! A system call fails in a fence instead of faulting. In a correct program such code can meet only
//! fences that cover more than the device was given: pages that other memory shares, and memory under
//! a kernel. These two are not placed beside it.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use streamsan_wire::{OwnCalls, monotonic_ns};

use crate::elf::LoadedObject;
use crate::{attach, system_call};

/// How often the process is looked at, in nanoseconds.
const EVERY: u64 = 1_000_000_000;

static LOOKED: AtomicU64 = AtomicU64::new(0);
static FOUND: AtomicU32 = AtomicU32::new(0);

/// Whether there is such code, as of the last second.
pub(super) fn are_made() -> bool {
    if FOUND.load(Ordering::Relaxed) != 0 {
        return true;
    }
    let (now, last) = (monotonic_ns(), LOOKED.load(Ordering::Relaxed));
    if (last != 0 && now.saturating_sub(last) < EVERY)
        || LOOKED.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_err()
    {
        return false;
    }
    let mut found = 0;
    if has_ring() {
        found |= OwnCalls::IoUring as u32;
    }
    if LoadedObject::find_noted(b"Go\0\0") {
        found |= OwnCalls::Go as u32;
    }
    if found != 0 {
        FOUND.store(found, Ordering::Relaxed);
        if let Some(attachment) = attach::known() {
            attachment.process.fences.own_calls.fetch_or(found, Ordering::Relaxed);
        }
    }
    found != 0
}

/// Whether a descriptor of the process is an io_uring (`anon_inode:[io_uring]`, proc(5)).
fn has_ring() -> bool {
    const FOLDER: &core::ffi::CStr = c"/proc/self/fd";
    const RING: &[u8] = b"anon_inode:[io_uring]";
    /// `struct linux_dirent64` up to its name.
    const HEAD: usize = 19;
    let mut entries = [0u8; 4096];
    let mut found = false;
    // SAFETY: NUL-terminated names; the kernel writes into buffers of ours, within their sizes; the
    // descriptor is ours.
    unsafe {
        let flags = (libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC) as u64;
        let from = libc::AT_FDCWD as u64;
        let folder =
            system_call::raw(libc::SYS_openat, [from, FOLDER.as_ptr() as u64, flags, 0, 0, 0]);
        if folder < 0 {
            return false;
        }
        while !found {
            let room = [folder as u64, entries.as_mut_ptr() as u64, entries.len() as u64, 0, 0, 0];
            let read = system_call::raw(libc::SYS_getdents64, room);
            let Some(list) = usize::try_from(read).ok().and_then(|read| entries.get(..read)) else {
                break;
            };
            if list.is_empty() {
                break;
            }
            let mut at = 0;
            while let Some(entry) = list.get(at..).filter(|rest| rest.len() > HEAD) {
                let mut target = [0u8; 32];
                let name = entry.as_ptr().add(HEAD) as u64;
                let into = [folder as u64, name, target.as_mut_ptr() as u64, 32, 0, 0];
                let len = system_call::raw(libc::SYS_readlinkat, into);
                found |= usize::try_from(len).is_ok_and(|len| target.get(..len) == Some(RING));
                at += usize::from(u16::from_le_bytes([entry[16], entry[17]])).max(HEAD);
            }
        }
        system_call::raw(libc::SYS_close, [folder as u64, 0, 0, 0, 0, 0]);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_io_uring_is_seen() {
        let before = has_ring();
        // SAFETY: a zeroed `struct io_uring_params` of 120 bytes; the kernel writes into it.
        let ring = unsafe {
            let mut parameters = [0u64; 15];
            let at = parameters.as_mut_ptr() as u64;
            system_call::raw(libc::SYS_io_uring_setup, [4, at, 0, 0, 0, 0])
        };
        // Where the system has none, or forbids it, there is none to see.
        assert_eq!(has_ring(), before || ring >= 0);
        assert!(!LoadedObject::find_noted(b"Go\0\0"), "this program has a Go runtime");
    }
}
