//! The reserved window of addresses and the page-granular allocator in it.
//!
//! The window is reserved once without access and committed upwards in large steps. Each
//! allocation starts on a page and is followed by an unallocated guard page, so that running off
//! its end never lands in a neighbour. Freed space is given out again to the next allocation of
//! the same size, last freed first: stale pointers then alias live memory, as they do on a device.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};

use super::access;
use crate::{handles, os};
use streamsan_wire::page_bytes;

const COMMIT_STEP: u64 = 64 << 20;
/// Window sizes to try, largest first; an address space limit may refuse the larger ones.
const SIZES: [u64; 4] = [512 << 30, 64 << 30, 16 << 30, 6 << 30];

/// Sizes of the window of memory that the program may touch too, largest first.
const SHARED_SIZES: [u64; 3] = [64 << 30, 8 << 30, 1 << 30];

/// Why no memory could be had from the window.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WindowError {
    #[error("no address range of {0} bytes can be reserved for device memory; raise `ulimit -v`")]
    Reserve(u64),
    #[error("the window of device addresses is used up")]
    Exhausted,
    #[error("the operating system refused to commit device memory")]
    Commit,
}

/// The reserved window.
#[derive(Debug)]
pub(crate) struct Window {
    base: u64,
    end: u64,
    /// First address never given out.
    fresh: u64,
    /// First address never committed.
    committed: u64,
    /// Freed spans by their length in pages.
    free: BTreeMap<u64, Vec<u64>>,
    /// The memory behind a window that is mapped twice.
    file: Option<OwnedFd>,
}

impl Window {
    /// A window whose memory is mapped twice: where the program knows it, and where the devices
    /// touch it, so that the program's pages may be protected while they do. There is one in a
    /// process; `None` where the system gives none.
    pub(crate) fn reserve_shared() -> Option<Window> {
        SHARED_SIZES.into_iter().find_map(|size| {
            let file = os::memory_file(size)?;
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
            let map = || {
                // SAFETY: a fresh mapping at an address of the kernel's choice touches no existing
                // memory.
                let start = unsafe {
                    let size = size as usize;
                    libc::mmap(std::ptr::null_mut(), size, access, flags, file.as_raw_fd(), 0)
                };
                (start != libc::MAP_FAILED).then_some(start as u64)
            };
            let base = map()?;
            let Some(twin) = map() else {
                // SAFETY: mapped just above and known to nobody.
                unsafe { libc::munmap(base as *mut libc::c_void, size as usize) };
                return None;
            };
            access::set_twin(base, size, twin);
            let end = base + size;
            let (free, file) = (BTreeMap::new(), Some(file));
            Some(Window { base, end, fresh: base, committed: end, free, file })
        })
    }

    /// Whether the address lies in the window.
    pub(crate) fn contains(&self, address: u64) -> bool {
        (self.base..self.end).contains(&address)
    }

    pub(crate) fn reserve() -> Result<Window, WindowError> {
        for size in SIZES {
            // SAFETY: a fresh anonymous mapping at an address of the kernel's choice touches no
            // existing memory.
            let base = unsafe {
                libc::mmap(
                    std::ptr::null_mut(),
                    size as usize,
                    libc::PROT_NONE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                    -1,
                    0,
                )
            };
            if base != libc::MAP_FAILED {
                let base = base as u64;
                let fresh = base + handles::RESERVED;
                return Ok(Window {
                    base,
                    end: base + size,
                    fresh,
                    committed: fresh,
                    free: BTreeMap::new(),
                    file: None,
                });
            }
        }
        Err(WindowError::Reserve(SIZES[SIZES.len() - 1]))
    }

    /// Where handles may lie: the first [`handles::RESERVED`] bytes, never committed.
    pub(crate) fn handle_base(&self) -> u64 {
        self.base
    }

    /// Whole pages that hold `length` bytes.
    fn pages(length: u64) -> u64 {
        length.div_ceil(page_bytes())
    }

    /// Takes `length` bytes, zeroed, starting on a page. `length` is above zero.
    pub(crate) fn take(&mut self, length: u64) -> Result<u64, WindowError> {
        let pages = Window::pages(length);
        if let Some(start) = self.free.get_mut(&pages).and_then(Vec::pop) {
            return Ok(start);
        }
        let start = self.fresh;
        let guarded = pages.checked_add(1).and_then(|pages| pages.checked_mul(page_bytes()));
        let next = guarded.and_then(|bytes| start.checked_add(bytes));
        let next = next.filter(|&next| next <= self.end).ok_or(WindowError::Exhausted)?;
        if next > self.committed {
            let target = next.next_multiple_of(COMMIT_STEP).min(self.end);
            let bytes = (target - self.committed) as usize;
            let access = libc::PROT_READ | libc::PROT_WRITE;
            // SAFETY: the range lies inside our own reservation and was never handed out before.
            let status =
                unsafe { libc::mprotect(self.committed as *mut libc::c_void, bytes, access) };
            if status != 0 {
                return Err(WindowError::Commit);
            }
            self.committed = target;
        }
        self.fresh = next;
        Ok(start)
    }

    /// Maps a file over part of what [`Window::take`] gave out; false if the system refuses.
    pub(crate) fn map_file(&mut self, start: u64, length: u64, file: &OwnedFd) -> bool {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_FIXED;
        // SAFETY: the range is our own, taken from the window and given to nobody else.
        let mapped = unsafe {
            let at = start as *mut libc::c_void;
            libc::mmap(at, length as usize, access, flags, file.as_raw_fd(), 0)
        };
        mapped != libc::MAP_FAILED
    }

    /// Puts fresh memory where [`Window::map_file`] had put a file.
    pub(crate) fn unmap_file(&mut self, start: u64, length: u64) {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_FIXED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: as in `map_file`. Should it fail, the file stays mapped, which harms nobody.
        unsafe { libc::mmap(start as *mut libc::c_void, length as usize, access, flags, -1, 0) };
    }

    /// Gives back what [`Window::take`] gave out: its pages read as zero from now on, and stay
    /// mapped.
    pub(crate) fn give_back(&mut self, start: u64, length: u64) {
        let pages = Window::pages(length);
        if let Some(file) = &self.file {
            let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
            let (offset, bytes) = (start - self.base, pages * page_bytes());
            // SAFETY: a hole in a file of our own.
            unsafe { libc::fallocate(file.as_raw_fd(), mode, offset as i64, bytes as i64) };
            self.free.entry(pages).or_default().push(start);
            return;
        }
        // SAFETY: the range was committed by `take`; discarding private anonymous pages makes
        // them read as zero and leaves the mapping in place.
        unsafe {
            libc::madvise(
                start as *mut libc::c_void,
                (pages * page_bytes()) as usize,
                libc::MADV_DONTNEED,
            )
        };
        self.free.entry(pages).or_default().push(start);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{load_bytes, store_bytes};
    use super::*;

    #[test]
    fn allocations_are_zeroed_guarded_and_reused_last_freed_first() {
        let page = page_bytes();
        let mut window = Window::reserve().unwrap();
        let (a, b) = (window.take(page + 1).unwrap(), window.take(2 * page).unwrap());
        assert!(b >= a + 3 * page, "a guard page lies between");
        store_bytes(a, &[7; 16]);
        window.give_back(a, page + 1);
        window.give_back(b, 2 * page);
        assert_eq!(window.take(page * 2).unwrap(), b);
        assert_eq!(window.take(page * 2).unwrap(), a);
        let mut bytes = [1; 16];
        load_bytes(a, &mut bytes);
        assert_eq!(bytes, [0; 16]);
    }

    #[test]
    fn shared_memory_is_seen_by_both_and_may_be_closed_to_the_program() {
        let page = page_bytes();
        let mut window = Window::reserve_shared().expect("the system has memory files");
        let start = window.take(2 * page).unwrap();
        // SAFETY: the window's own memory.
        unsafe {
            (start as *mut u8).write(7);
            libc::mprotect(start as *mut libc::c_void, page as usize, libc::PROT_NONE);
        }
        let mut byte = [0];
        load_bytes(start, &mut byte);
        assert_eq!(byte, [7]);
        store_bytes(start, &[8]);
        // SAFETY: as above.
        let read = unsafe {
            libc::mprotect(
                start as *mut libc::c_void,
                page as usize,
                libc::PROT_READ | libc::PROT_WRITE,
            );
            (start as *const u8).read()
        };
        assert_eq!(read, 8);
        window.give_back(start, 2 * page);
        assert_eq!(window.take(2 * page).unwrap(), start);
        load_bytes(start, &mut byte);
        assert_eq!(byte, [0]);
    }

    #[test]
    fn a_size_beyond_the_window_is_refused() {
        let mut window = Window::reserve().unwrap();
        assert!(matches!(window.take(1 << 60), Err(WindowError::Exhausted)));
        assert!(matches!(window.take(u64::MAX), Err(WindowError::Exhausted)));
        assert!(window.take(1).is_ok());
    }
}
