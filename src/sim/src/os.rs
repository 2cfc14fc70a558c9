//! The few things asked of the operating system: copying to and from the program's own pageable
//! memory without faulting, time, and what the program's threads are doing.

use std::fs::{self, File};
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};
use std::time::Duration;

/// Reads the program's memory at `address`; false if any byte of it is not mapped.
///
/// `process_vm_readv` on the own process reports an unmapped page instead of raising SIGSEGV, so
/// a bad host pointer in a copy becomes a status, not a crash.
pub(crate) fn read_host(address: u64, into: &mut [u8]) -> bool {
    transfer(address, into.as_mut_ptr(), into.len(), false, false)
}

/// Writes the program's memory at `address`; false if any byte of it is not mapped or read-only.
pub(crate) fn write_host(address: u64, from: &[u8]) -> bool {
    transfer(address, from.as_ptr().cast_mut(), from.len(), true, false)
}

/// [`read_host`] of memory that the program has registered: as a device does, whatever protection its
/// pages have by now.
pub(crate) fn read_registered(address: u64, into: &mut [u8]) -> bool {
    transfer(address, into.as_mut_ptr(), into.len(), false, true)
}

/// [`write_host`] in the same way.
pub(crate) fn write_registered(address: u64, from: &[u8]) -> bool {
    transfer(address, from.as_ptr().cast_mut(), from.len(), true, true)
}

fn transfer(address: u64, local: *mut u8, length: usize, write: bool, force: bool) -> bool {
    let mut done = 0;
    while done < length {
        let ours =
            libc::iovec { iov_base: local.wrapping_add(done).cast(), iov_len: length - done };
        let theirs = libc::iovec {
            iov_base: (address + done as u64) as *mut libc::c_void,
            iov_len: length - done,
        };
        let call = if write { libc::SYS_process_vm_writev } else { libc::SYS_process_vm_readv };
        let (none, one) = (0_u64, 1_u64);
        // SAFETY: `ours` lies in a live slice of the caller (mutable when it is written to); the
        // kernel checks `theirs` itself and fails with EFAULT where it is not accessible. The system
        // call itself: a library before the C library may take what it sees for the program's.
        let moved = unsafe {
            libc::syscall(call, libc::getpid(), &raw const ours, one, &raw const theirs, one, none)
        };
        match usize::try_from(moved) {
            Ok(moved) if moved > 0 => done += moved,
            Ok(_) => return false,
            Err(_) => {
                let error = std::io::Error::last_os_error().raw_os_error();
                if force && error == Some(libc::EFAULT) {
                    return past_protection(address + done as u64, local, length, done, write);
                }
                if !matches!(error, Some(libc::ENOSYS | libc::EPERM)) {
                    return false;
                }
                // A sandbox forbids the call: fall back to what a driver does, a plain copy.
                // SAFETY: the program vouches for its host pointer by the contract of the copy;
                // `local` is a live slice of the same length, and the two do not overlap because
                // `local` is a buffer of the simulator.
                unsafe {
                    let theirs = (address as *mut u8).add(done);
                    if write {
                        std::ptr::copy_nonoverlapping(local.add(done), theirs, length - done);
                    } else {
                        std::ptr::copy_nonoverlapping(theirs, local.add(done), length - done);
                    }
                }
                return true;
            }
        }
    }
    true
}

/// Moves the rest by a file that passes over the protection of pages, as a device does; false if any
/// byte is not mapped.
fn past_protection(
    address: u64,
    local: *mut u8,
    length: usize,
    mut done: usize,
    write: bool,
) -> bool {
    let first = done;
    let call = if write { libc::SYS_pwrite64 } else { libc::SYS_pread64 };
    // SAFETY: a terminated name; the descriptor is ours. `local` is a live slice of the caller, and the
    // kernel checks the other end.
    unsafe {
        let name = c"/proc/self/mem".as_ptr();
        let file =
            libc::syscall(libc::SYS_openat, libc::AT_FDCWD, name, libc::O_RDWR | libc::O_CLOEXEC);
        if file < 0 {
            return false;
        }
        while done < length {
            let at = address + (done - first) as u64;
            let moved = libc::syscall(call, file, local.add(done), length - done, at);
            if moved <= 0 {
                break;
            }
            done += moved as usize;
        }
        libc::syscall(libc::SYS_close, file);
    }
    done == length
}

/// A file of zeros that lies in memory only.
pub(crate) fn memory_file(length: u64) -> Option<OwnedFd> {
    // Beyond the limit of files a signal would end the program.
    // SAFETY: a limit is plain data, valid when zeroed, and filled here.
    let limit = unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit);
        limit.rlim_cur
    };
    if length > limit {
        return None;
    }
    // By its number: glibc has the function since 2.27 only.
    // SAFETY: a terminated name; a descriptor that is not negative is ours alone.
    let file = unsafe {
        let name = c"streamsan-sim".as_ptr();
        let made = libc::syscall(libc::SYS_memfd_create, name, libc::MFD_CLOEXEC) as i32;
        (made >= 0).then(|| OwnedFd::from_raw_fd(made))?
    };
    File::from(file.try_clone().ok()?).set_len(length).ok()?;
    Some(file)
}

/// A descriptor of the file that is the program's to close.
pub(crate) fn give_descriptor(file: &OwnedFd) -> Option<i32> {
    file.try_clone().ok().map(IntoRawFd::into_raw_fd)
}

/// A descriptor of our own of the program's file, and the bytes that it has.
pub(crate) fn take_descriptor(descriptor: i32) -> Option<(OwnedFd, u64)> {
    if descriptor < 0 {
        return None;
    }
    // SAFETY: `fcntl` refuses a descriptor that is none; the copy is ours alone.
    let file = unsafe {
        let copy = libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 0);
        (copy >= 0).then(|| OwnedFd::from_raw_fd(copy))?
    };
    let length = File::from(file.try_clone().ok()?).metadata().ok()?.len();
    (length > 0).then_some((file, length))
}

/// Processor time that the process has used, but for that of the calling thread: whoever watches
/// the program is no part of it, and looks a thousand times while a busy machine runs nobody else.
pub(crate) fn cpu_time_of_others() -> Duration {
    let used = |clock| {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is a live timespec for the call to fill.
        unsafe { libc::clock_gettime(clock, &mut time) };
        Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
    };
    let own = used(libc::CLOCK_THREAD_CPUTIME_ID);
    used(libc::CLOCK_PROCESS_CPUTIME_ID).saturating_sub(own)
}

/// Whether every thread of the process but the caller sleeps, so that none can be about to read
/// or write memory of its own accord.
pub(crate) fn other_threads_sleep() -> bool {
    // By its number: glibc has the function since 2.30 only.
    // SAFETY: gettid takes nothing and cannot fail.
    let this = unsafe { libc::syscall(libc::SYS_gettid) }.to_string();
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return false };
    let mut listed = 0;
    let all = tasks.flatten().inspect(|_| listed += 1).all(|task| {
        if task.file_name() == *this {
            return true;
        }
        let Ok(line) = fs::read_to_string(task.path().join("stat")) else { return true };
        // The state follows the name, which is in parentheses and may hold anything.
        let state = line.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
        matches!(state, Some('S' | 'Z' | 'X'))
    });
    // The list ends early where a thread ends meanwhile.
    all && threads().is_some_and(|threads| listed >= threads)
}

/// How many threads the process has.
fn threads() -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("Threads:"))?.trim().parse().ok()
}

/// Blocks every signal on the calling thread, and on threads that it starts, until dropped: the
/// program's signals belong to the program's threads.
#[derive(Debug)]
pub(crate) struct SignalsBlocked {
    before: libc::sigset_t,
}

impl SignalsBlocked {
    pub(crate) fn new() -> Self {
        // SAFETY: a signal set is plain data, valid when zeroed; both sets are live for the calls.
        unsafe {
            let mut all: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
            SignalsBlocked { before }
        }
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        // SAFETY: `before` was filled by pthread_sigmask on this thread.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_host_pointer_is_a_status_not_a_crash() {
        let mut byte = [0u8; 4];
        assert!(!read_host(8, &mut byte));
        assert!(!write_host(8, &byte));
        let source = [1u8, 2, 3, 4];
        assert!(read_host(source.as_ptr() as u64, &mut byte));
        assert_eq!(byte, source);
    }
}
