//! System calls that put bytes into buffers of the program, or take them from there.

use core::ffi::{c_int, c_long, c_uint, c_void};
use core::mem::transmute;

use crate::asynchronous::{Control, open_submitted};
use crate::real;
use crate::runtime::{Buffer, is_any_watched};

/// Buffers of a vector that are looked at; a system call takes so many (`IOV_MAX`).
const MOST_BUFFERS: usize = 1024;
/// Those whose fences are told of.
const MOST_TOLD: usize = 16;

/// Whether the call puts bytes there (`into`) or takes them (`from`).
macro_rules! writes {
    (into) => {
        true
    };
    (from) => {
        false
    };
}

macro_rules! flat {
    ($($name:ident($($before:ident: $kind:ty,)* [$buffer:ident, $len:ident] $(, $after:ident: $other:ty)*) $way:ident;)*) => {$(
        /// # Safety
        /// As the C library documents.
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name(
            $($before: $kind,)* $buffer: *mut c_void, $len: usize $(, $after: $other)*
        ) -> isize {
            type Function = unsafe extern "C-unwind" fn($($kind,)* *mut c_void, usize $(, $other)*) -> isize;
            let opened = Buffer::open($buffer, $len, writes!($way));
            // SAFETY: the C library's function of this name, with the program's arguments.
            let result = unsafe {
                transmute::<*mut c_void, Function>(real!(stringify!($name)))(
                    $($before,)* $buffer, $len $(, $after)*
                )
            };
            opened.used(result.max(0) as u64);
            result
        }
    )*};
}

flat! {
    read(file: c_int, [buffer, len]) into;
    pread(file: c_int, [buffer, len], offset: i64) into;
    pread64(file: c_int, [buffer, len], offset: i64) into;
    recv(socket: c_int, [buffer, len], flags: c_int) into;
    recvfrom(socket: c_int, [buffer, len], flags: c_int, address: *mut c_void, size: *mut c_void) into;
    getrandom([buffer, len], flags: c_uint) into;
    write(file: c_int, [buffer, len]) from;
    pwrite(file: c_int, [buffer, len], offset: i64) from;
    pwrite64(file: c_int, [buffer, len], offset: i64) from;
    send(socket: c_int, [buffer, len], flags: c_int) from;
    sendto(socket: c_int, [buffer, len], flags: c_int, address: *const c_void, size: c_uint) from;
}

/// The same with a check of the compiler's, which knows how long the buffer is.
macro_rules! checked {
    ($($name:ident($file:ident: c_int, $buffer:ident, $len:ident $(, $after:ident: $other:ty)*);)*) => {$(
        /// # Safety
        /// As the C library documents.
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name(
            $file: c_int, $buffer: *mut c_void, $len: usize $(, $after: $other)*
        ) -> isize {
            type Function = unsafe extern "C-unwind" fn(c_int, *mut c_void, usize $(, $other)*) -> isize;
            let opened = Buffer::open($buffer, $len, true);
            // SAFETY: the C library's function of this name, with the program's arguments.
            let result = unsafe {
                transmute::<*mut c_void, Function>(real!(stringify!($name)))(
                    $file, $buffer, $len $(, $after)*
                )
            };
            opened.used(result.max(0) as u64);
            result
        }
    )*};
}

checked! {
    __read_chk(file: c_int, buffer, len, size: usize);
    __pread_chk(file: c_int, buffer, len, offset: i64, size: usize);
    __pread64_chk(file: c_int, buffer, len, offset: i64, size: usize);
    __recv_chk(socket: c_int, buffer, len, size: usize, flags: c_int);
}

/// Buffers of a vector whose fences were opened.
pub(crate) struct Opened {
    list: [Option<Buffer>; MOST_TOLD],
}

impl Opened {
    /// # Safety
    /// `vector` has `count` elements.
    pub(crate) unsafe fn new(vector: *const libc::iovec, count: usize, writes: bool) -> Self {
        let mut list = [None; MOST_TOLD];
        if is_any_watched() && !vector.is_null() && count <= MOST_BUFFERS {
            for index in 0..count {
                // SAFETY: promised by the caller.
                let part = unsafe { &*vector.add(index) };
                match list.get_mut(index) {
                    Some(place) => {
                        *place = Some(Buffer::open(part.iov_base, part.iov_len, writes));
                    }
                    None => Buffer::open_now(part.iov_base, part.iov_len, writes),
                }
            }
        }
        Self { list }
    }

    pub(crate) fn used(&self, result: isize) {
        let all = result.max(0) as u64;
        self.list.iter().flatten().fold(all, |left, buffer| buffer.used(left));
    }
}

macro_rules! vectors {
    ($($name:ident($($after:ident: $other:ty),*) $way:ident;)*) => {$(
        /// # Safety
        /// As the C library documents.
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name(
            file: c_int, vector: *const libc::iovec, count: c_int $(, $after: $other)*
        ) -> isize {
            type Function = unsafe extern "C-unwind" fn(c_int, *const libc::iovec, c_int $(, $other)*) -> isize;
            // SAFETY: the C library's function of this name, with the program's arguments.
            unsafe {
                let opened = Opened::new(vector, count.max(0) as usize, writes!($way));
                let real: Function = transmute(real!(stringify!($name)));
                let result = real(file, vector, count $(, $after)*);
                opened.used(result);
                result
            }
        }
    )*};
}

vectors! {
    readv() into;
    preadv(offset: i64) into;
    preadv64(offset: i64) into;
    preadv2(offset: i64, flags: c_int) into;
    preadv64v2(offset: i64, flags: c_int) into;
    writev() from;
    pwritev(offset: i64) from;
    pwritev64(offset: i64) from;
    pwritev2(offset: i64, flags: c_int) from;
    pwritev64v2(offset: i64, flags: c_int) from;
    vmsplice(flags: c_uint) from;
}

/// # Safety
/// As libaio documents; the C library has no such function.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn io_submit(
    context: *mut c_void,
    count: c_long,
    list: *const *const Control,
) -> c_int {
    type Function = unsafe extern "C-unwind" fn(c_long, ...) -> c_long;
    // SAFETY: the system call, with the program's arguments.
    unsafe {
        open_submitted(count, list);
        let real: Function = transmute(real!("syscall"));
        let before = *libc::__errno_location();
        let result = real(libc::SYS_io_submit, context, count, list);
        if result >= 0 {
            return result as c_int;
        }
        // libaio answers the error itself and leaves `errno` alone.
        let error = *libc::__errno_location();
        *libc::__errno_location() = before;
        -error
    }
}

macro_rules! messages {
    ($($name:ident $way:ident;)*) => {$(
        /// # Safety
        /// As the C library documents.
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name(
            socket: c_int, message: *mut libc::msghdr, flags: c_int
        ) -> isize {
            type Function = unsafe extern "C-unwind" fn(c_int, *mut libc::msghdr, c_int) -> isize;
            // SAFETY: the C library's function of this name, with the program's arguments.
            unsafe {
                let opened = message
                    .as_ref()
                    .map(|message| Opened::new(message.msg_iov, message.msg_iovlen, writes!($way)));
                let real: Function = transmute(real!(stringify!($name)));
                let result = real(socket, message, flags);
                if let Some(opened) = opened {
                    opened.used(result);
                }
                result
            }
        }
    )*};
}

messages! {
    recvmsg into;
    sendmsg from;
}

/// # Safety
/// `list` has `count` elements.
pub(crate) unsafe fn open_all(list: *const libc::mmsghdr, count: c_uint, writes: bool) {
    if is_any_watched() && !list.is_null() {
        for index in 0..count as usize {
            // SAFETY: promised by the caller.
            unsafe {
                let message = &(*list.add(index)).msg_hdr;
                open_now(message.msg_iov, message.msg_iovlen, writes);
            }
        }
    }
}

/// # Safety
/// `vector` has `count` elements.
pub(crate) unsafe fn open_now(vector: *const libc::iovec, count: usize, writes: bool) {
    if !vector.is_null() && count <= MOST_BUFFERS {
        for index in 0..count {
            // SAFETY: promised by the caller.
            let part = unsafe { &*vector.add(index) };
            Buffer::open_now(part.iov_base, part.iov_len, writes);
        }
    }
}

/// # Safety
/// As the C library documents.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn recvmmsg(
    socket: c_int,
    list: *mut libc::mmsghdr,
    count: c_uint,
    flags: c_int,
    timeout: *mut libc::timespec,
) -> c_int {
    type Function = unsafe extern "C-unwind" fn(
        c_int,
        *mut libc::mmsghdr,
        c_uint,
        c_int,
        *mut libc::timespec,
    ) -> c_int;
    // SAFETY: the C library's function of this name, with the program's arguments.
    unsafe {
        open_all(list, count, true);
        let real: Function = transmute(real!("recvmmsg"));
        real(socket, list, count, flags, timeout)
    }
}

/// # Safety
/// As the C library documents.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn sendmmsg(
    socket: c_int,
    list: *mut libc::mmsghdr,
    count: c_uint,
    flags: c_int,
) -> c_int {
    type Function = unsafe extern "C-unwind" fn(c_int, *mut libc::mmsghdr, c_uint, c_int) -> c_int;
    // SAFETY: the C library's function of this name, with the program's arguments.
    unsafe {
        open_all(list, count, false);
        let real: Function = transmute(real!("sendmmsg"));
        real(socket, list, count, flags)
    }
}

macro_rules! other_process {
    ($($name:ident $way:ident;)*) => {$(
        /// # Safety
        /// As the C library documents.
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name(
            process: c_int,
            local: *const libc::iovec,
            local_count: usize,
            remote: *const libc::iovec,
            remote_count: usize,
            flags: usize,
        ) -> isize {
            type Function = unsafe extern "C-unwind" fn(
                c_int, *const libc::iovec, usize, *const libc::iovec, usize, usize,
            ) -> isize;
            // SAFETY: the C library's function of this name, with the program's arguments.
            unsafe {
                let opened = Opened::new(local, local_count, writes!($way));
                // The other end may be this very process.
                let far = (is_any_watched() && process == libc::getpid())
                    .then(|| Opened::new(remote, remote_count, !writes!($way)));
                let real: Function = transmute(real!(stringify!($name)));
                let result = real(process, local, local_count, remote, remote_count, flags);
                opened.used(result);
                if let Some(far) = far {
                    far.used(result);
                }
                result
            }
        }
    )*};
}

other_process! {
    process_vm_readv into;
    process_vm_writev from;
}
