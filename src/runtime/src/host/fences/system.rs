//! Questions and orders to the system: how memory is mapped, and buffers of system calls, which
//! fail inside a fence instead of faulting.

use core::ffi::CStr;
use core::sync::atomic::AtomicU32;

use streamsan_wire::{HostCall, LeftAlone};

use super::super::publish;
use super::table::TABLE;
use super::{in_use, is_watching, memory};
use crate::call::guarded;
use crate::{system_call, thread};

const MAPS: &CStr = c"/proc/self/maps";

/// Whether all of the range is readable and writable, as `/proc/self/maps` says.
pub(super) fn is_private_and_writable(start: u64, end: u64) -> bool {
    let mut at = start;
    let mut buffer = [0u8; 8192];
    let mut filled = 0;
    // SAFETY: a NUL-terminated path; reads stay inside the buffer; the descriptor is ours. The
    // system calls themselves: what the program's libraries put before them is for the program.
    unsafe {
        let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as u64;
        let path = [libc::AT_FDCWD as u64, MAPS.as_ptr() as u64, flags, 0, 0, 0];
        let fd = system_call::raw(libc::SYS_openat, path);
        if fd < 0 {
            return false;
        }
        loop {
            let rest = &mut buffer[filled..];
            let into = [fd as u64, rest.as_mut_ptr() as u64, rest.len() as u64, 0, 0, 0];
            let read = system_call::raw(libc::SYS_read, into);
            if read <= 0 {
                break;
            }
            filled += read as usize;
            let mut begin = 0;
            while let Some(len) = buffer[begin..filled].iter().position(|byte| *byte == b'\n') {
                if let Some((low, high, writable)) = line(&buffer[begin..begin + len])
                    && at < end
                    && low <= at
                    && at < high
                {
                    if !writable {
                        system_call::raw(libc::SYS_close, [fd as u64, 0, 0, 0, 0, 0]);
                        return false;
                    }
                    at = high;
                }
                begin += len + 1;
            }
            buffer.copy_within(begin..filled, 0);
            filled -= begin;
            if at >= end || filled == buffer.len() {
                break;
            }
        }
        system_call::raw(libc::SYS_close, [fd as u64, 0, 0, 0, 0, 0]);
    }
    at >= end
}

/// Begin and end of a mapping, and whether it can be read and written.
fn line(line: &[u8]) -> Option<(u64, u64, bool)> {
    let text = core::str::from_utf8(line.get(..line.len().min(64))?).ok()?;
    let (range, rest) = text.split_once(' ')?;
    let (low, high) = range.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some((number(low)?, number(high)?, rest.starts_with("rw")))
}

/// How many watched allocations there are: what the library in front of the C library's functions
/// looks at.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn streamsan_fences() -> *const AtomicU32 {
    memory::TABLE.count()
}

/// A fence stood around the buffer: the call is to be told of with [`streamsan_fence_used`].
const STOOD: u32 = 1 << 31;

/// A system call is about to use a buffer: opens it. Answers whether a fence stood there, and a number
/// for [`streamsan_fence_close`] if `keep` asks that none is placed there until then.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn streamsan_fence_open(start: u64, len: u64, writes: bool, keep: bool) -> u32 {
    let end = start.saturating_add(len);
    if len == 0 || !is_watching() || !memory::TABLE.is_on_pages(start, end) {
        return 0;
    }
    let mut answer = 0;
    guarded(|thread| {
        // The driver's own use of such memory is its own affair.
        if thread.depth.get() > 0 {
            return;
        }
        thread.busy.set(true);
        if keep {
            answer = in_use::LIST.add(start, end) & !STOOD;
        }
        if TABLE.open_range(start, end, writes) {
            answer |= STOOD;
        }
        thread.busy.set(false);
    });
    answer
}

/// The program has told of an access of its own, which is recorded: the access meets no fence, which
/// would tell of it a second time.
pub(crate) fn told(start: u64, len: u64, writes: bool) {
    let end = start.saturating_add(len);
    if len == 0 || !is_watching() || !memory::TABLE.is_on_pages(start, end) {
        return;
    }
    guarded(|thread| {
        if thread.depth.get() == 0 {
            thread.busy.set(true);
            TABLE.open_range(start, end, writes);
            thread.busy.set(false);
        }
    });
}

/// The system call is over that the number was given for.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn streamsan_fence_close(number: u32) {
    in_use::LIST.remove(number & !STOOD);
}

/// The system call has used so many bytes.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn streamsan_fence_used(start: u64, len: u64, writes: bool) {
    if len > 0 && is_watching() {
        let call = if writes { HostCall::SystemRead } else { HostCall::SystemWrite };
        publish::record(call, &[start, len], &[]);
    }
}

/// The program changes the mapping itself: nothing there is fenced again.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn streamsan_fence_drop(start: u64, len: u64, for_good: bool) {
    if !is_watching() {
        return;
    }
    guarded(|thread| {
        thread.busy.set(true);
        let errno = thread::errno();
        let end = start.saturating_add(len);
        if for_good {
            let mut at = start;
            while at < end {
                match memory::TABLE.next(at) {
                    Some(found) if found.start < end => {
                        super::place::leave_alone(&found, LeftAlone::Remapped);
                        at = found.end;
                    }
                    _ => break,
                }
            }
        }
        TABLE.drop_range(start, end);
        thread::set_errno(errno);
        thread.busy.set(false);
    });
}

#[cfg(test)]
mod tests {
    use streamsan_wire::page_bytes;

    use super::*;

    #[test]
    fn only_memory_that_can_be_written_counts() {
        let page = page_bytes();
        let bytes = 3 * page as usize;
        // SAFETY: a fresh mapping, whose middle is made readable only.
        let start = unsafe {
            let prot = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let start = libc::mmap(core::ptr::null_mut(), bytes, prot, flags, -1, 0);
            libc::mprotect(start.byte_add(page as usize), page as usize, libc::PROT_READ);
            start as u64
        };
        assert!(is_private_and_writable(start, start + page));
        assert!(is_private_and_writable(start + 2 * page, start + 3 * page));
        assert!(!is_private_and_writable(start, start + 3 * page));
        assert!(!is_private_and_writable(8, 16));
        assert_eq!(line(b"00400000-0040b000 rw-p 0 1:2 3 /x"), Some((0x40_0000, 0x40_b000, true)));
        assert_eq!(line(b"x"), None);
    }
}
