//! `syscall`: system calls by their number.
//!
//! A call that uses no buffer is jumped through with the program's return address in place: such a
//! call may give its child another stack, or none of its own.

use core::ffi::{c_int, c_long, c_uint, c_void};
use core::mem::transmute;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::asynchronous;
use crate::buffers::{Opened, open_all};
use crate::control;
use crate::real;
use crate::runtime::{Buffer, drop_fences};

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

/// One past the largest number that is looked at.
const NUMBERS: usize = 512;

/// Numbers of calls that use buffers, or change mappings.
static LISTED: [bool; NUMBERS] = {
    let mut listed = [false; NUMBERS];
    let mut index = 0;
    while index < LIST.len() {
        listed[LIST[index] as usize] = true;
        index += 1;
    }
    listed
};

const LIST: &[c_long] = &[
    libc::SYS_read,
    libc::SYS_pread64,
    libc::SYS_readv,
    libc::SYS_preadv,
    libc::SYS_preadv2,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_getrandom,
    libc::SYS_write,
    libc::SYS_pwrite64,
    libc::SYS_writev,
    libc::SYS_pwritev,
    libc::SYS_pwritev2,
    libc::SYS_vmsplice,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_io_submit,
    libc::SYS_fstat,
    libc::SYS_statx,
    libc::SYS_newfstatat,
    libc::SYS_getsockopt,
    libc::SYS_ioctl,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_mlock,
    libc::SYS_mlock2,
];

/// The C library's function, null until looked up.
static REAL: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

extern "C" fn find() {
    REAL.store(real!("syscall"), Ordering::Release);
}

type Real =
    unsafe extern "C-unwind" fn(c_long, c_long, c_long, c_long, c_long, c_long, c_long) -> c_long;

/// The files that a call opened.
#[expect(clippy::large_enum_variant, reason = "lives on the stack of one call")]
enum Use {
    Nothing,
    Flat(Buffer),
    List(Opened),
    Lists(Opened, Option<Opened>),
    /// The bytes that it puts there are counted by nobody.
    Whole(Buffer),
}

/// # Safety
/// As the system call. Arguments that the program has not given are not looked at.
unsafe extern "C-unwind" fn watched(
    number: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    let flat = |start: c_long, len: c_long, writes| {
        Use::Flat(Buffer::open(start as *const c_void, len as usize, writes))
    };
    let whole = |start: c_long, len: usize, writes| {
        Use::Whole(Buffer::open(start as *const c_void, len, writes))
    };
    // SAFETY: the program's own arguments, as the system call documents them.
    unsafe {
        let list = |vector: c_long, count: c_long, writes| {
            Opened::new(vector as *const libc::iovec, count as usize, writes)
        };
        let message = |at: c_long, writes| match (at as *const libc::msghdr).as_ref() {
            Some(message) => Use::List(Opened::new(message.msg_iov, message.msg_iovlen, writes)),
            None => Use::Nothing,
        };
        let used = match number {
            libc::SYS_read | libc::SYS_pread64 | libc::SYS_recvfrom => flat(b, c, true),
            libc::SYS_getrandom => flat(a, b, true),
            libc::SYS_write | libc::SYS_pwrite64 | libc::SYS_sendto => flat(b, c, false),
            libc::SYS_readv | libc::SYS_preadv | libc::SYS_preadv2 => Use::List(list(b, c, true)),
            libc::SYS_writev | libc::SYS_pwritev | libc::SYS_pwritev2 | libc::SYS_vmsplice => {
                Use::List(list(b, c, false))
            }
            libc::SYS_recvmsg => message(b, true),
            libc::SYS_sendmsg => message(b, false),
            libc::SYS_recvmmsg | libc::SYS_sendmmsg => {
                open_all(b as *const libc::mmsghdr, c as c_uint, number == libc::SYS_recvmmsg);
                Use::Nothing
            }
            libc::SYS_process_vm_readv | libc::SYS_process_vm_writev => {
                let reads = number == libc::SYS_process_vm_readv;
                let own = a as c_int == libc::getpid();
                Use::Lists(list(b, c, reads), own.then(|| list(d, e, !reads)))
            }
            libc::SYS_io_submit => {
                asynchronous::open_submitted(b, c as *const *const asynchronous::Control);
                Use::Nothing
            }
            libc::SYS_fstat => whole(b, size_of::<libc::stat>(), true),
            libc::SYS_newfstatat => whole(c, size_of::<libc::stat>(), true),
            libc::SYS_statx => whole(e, size_of::<libc::statx>(), true),
            libc::SYS_getsockopt => {
                control::open_option(d as *mut c_void, e as *mut c_uint);
                Use::Nothing
            }
            libc::SYS_ioctl => {
                control::open_argument(b as u64, c as *mut c_void);
                Use::Nothing
            }
            libc::SYS_munmap | libc::SYS_mprotect => {
                drop_fences(a as u64, b as u64, true);
                Use::Nothing
            }
            libc::SYS_mremap => {
                drop_fences(a as u64, b as u64, true);
                Use::Nothing
            }
            _ => {
                drop_fences(a as u64, b as u64, false);
                Use::Nothing
            }
        };
        let real: Real = transmute(REAL.load(Ordering::Acquire));
        let result = real(number, a, b, c, d, e, f);
        match used {
            Use::Nothing => {}
            Use::Flat(buffer) => {
                buffer.used(result.max(0) as u64);
            }
            Use::List(opened) => opened.used(result as isize),
            Use::Lists(near, far) => {
                near.used(result as isize);
                if let Some(far) = far {
                    far.used(result as isize);
                }
            }
            Use::Whole(buffer) => {
                buffer.used(if result == 0 { u64::MAX } else { 0 });
            }
        }
        result
    }
}
