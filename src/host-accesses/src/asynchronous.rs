//! Input and output that goes on after its call has returned: POSIX's `aio_*` and Linux's `io_submit`.
//!
//! The C library serves `aio_*` by threads of its own, whose reads and writes would fail in a fence as
//! any other. So nothing is fenced around such a buffer from its submission until `aio_return`, which
//! is also where it is told of: there the bytes are known.

use core::ffi::{c_int, c_long, c_void};
use core::mem::transmute;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use crate::real;
use crate::runtime::Buffer;

/// Requests in progress that are kept; around buffers of further ones a fence may be placed.
const MOST: usize = 64;

struct Request {
    block: AtomicPtr<libc::aiocb>,
    start: AtomicU64,
    len: AtomicU64,
    writes: AtomicU32,
    answer: AtomicU32,
}

static REQUESTS: [Request; MOST] = [const {
    Request {
        block: AtomicPtr::new(ptr::null_mut()),
        start: AtomicU64::new(0),
        len: AtomicU64::new(0),
        writes: AtomicU32::new(0),
        answer: AtomicU32::new(0),
    }
}; MOST];

/// # Safety
/// `block` is null or a request that is about to be submitted.
unsafe fn submitted(block: *mut libc::aiocb, writes: bool) {
    // SAFETY: promised by the caller.
    let Some(request) = (unsafe { block.as_ref() }) else { return };
    let (start, len) = (request.aio_buf.cast_const(), request.aio_nbytes);
    let buffer = Buffer::open(start, len, writes);
    if buffer.is_nothing() {
        return;
    }
    let free = |known: &&Request| {
        let (null, order) = (ptr::null_mut(), Ordering::AcqRel);
        known.block.compare_exchange(null, block, order, Ordering::Relaxed).is_ok()
    };
    match REQUESTS.iter().find(free) {
        Some(known) => {
            let (start, len, answer) = buffer.words();
            known.start.store(start, Ordering::Relaxed);
            known.len.store(len, Ordering::Relaxed);
            known.writes.store(u32::from(writes), Ordering::Relaxed);
            known.answer.store(answer, Ordering::Release);
        }
        None => buffer.closed(),
    }
}

/// The request is over and has moved so many bytes.
fn over(block: *mut libc::aiocb, bytes: isize) {
    let known = REQUESTS.iter().find(|known| known.block.load(Ordering::Acquire) == block);
    if let Some(known) = known.filter(|_| !block.is_null()) {
        let words = (
            known.start.load(Ordering::Relaxed),
            known.len.load(Ordering::Relaxed),
            known.answer.load(Ordering::Acquire),
        );
        let writes = known.writes.load(Ordering::Relaxed) != 0;
        known.block.store(ptr::null_mut(), Ordering::Release);
        Buffer::of(words, writes).used(bytes.max(0) as u64);
    }
}

macro_rules! requests {
    ($($name:ident $writes:literal;)*) => {$(
        /// # Safety
        /// As POSIX documents.
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name(block: *mut libc::aiocb) -> c_int {
            type Function = unsafe extern "C-unwind" fn(*mut libc::aiocb) -> c_int;
            // SAFETY: the C library's function of this name, with the program's argument.
            unsafe {
                submitted(block, $writes);
                let real: Function = transmute(real!(stringify!($name)));
                let result = real(block);
                if result != 0 {
                    over(block, 0);
                }
                result
            }
        }
    )*};
}

requests! {
    aio_read true;
    aio_read64 true;
    aio_write false;
    aio_write64 false;
}

macro_rules! lists {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As POSIX documents.
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name(
            mode: c_int,
            list: *const *mut libc::aiocb,
            count: c_int,
            event: *mut c_void,
        ) -> c_int {
            type Function = unsafe extern "C-unwind" fn(
                c_int, *const *mut libc::aiocb, c_int, *mut c_void,
            ) -> c_int;
            // SAFETY: the C library's function of this name, with the program's arguments.
            unsafe {
                if !list.is_null() {
                    for index in 0..count.max(0) as usize {
                        let block = *list.add(index);
                        if let Some(request) = block.as_ref() {
                            match request.aio_lio_opcode {
                                libc::LIO_READ => submitted(block, true),
                                libc::LIO_WRITE => submitted(block, false),
                                _ => {}
                            }
                        }
                    }
                }
                let real: Function = transmute(real!(stringify!($name)));
                real(mode, list, count, event)
            }
        }
    )*};
}

lists! { lio_listio lio_listio64 }

macro_rules! returns {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As POSIX documents.
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name(block: *mut libc::aiocb) -> isize {
            type Function = unsafe extern "C-unwind" fn(*mut libc::aiocb) -> isize;
            // SAFETY: the C library's function of this name, with the program's argument.
            let result = unsafe {
                let real: Function = transmute(real!(stringify!($name)));
                real(block)
            };
            over(block, result);
            result
        }
    )*};
}

returns! { aio_return aio_return64 }

/// `struct iocb` (`linux/aio_abi.h`).
#[repr(C)]
pub(crate) struct Control {
    data: u64,
    key: u32,
    flags: u32,
    opcode: u16,
    priority: i16,
    file: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    more_flags: u32,
    event: u32,
}

/// Opens what requests of Linux's are about to use. The kernel takes the pages, or copies, before the
/// call returns, but of files that are read through the page cache later: what is fenced meanwhile
/// makes such a request fail. What they move is not told of.
///
/// # Safety
/// `list` has `count` requests.
pub(crate) unsafe fn open_submitted(count: c_long, list: *const *const Control) {
    /// `IOCB_CMD_PREAD`, `..._PWRITE`, `..._PREADV`, `..._PWRITEV`.
    const READ: u16 = 0;
    const WRITE: u16 = 1;
    const READ_VECTOR: u16 = 7;
    const WRITE_VECTOR: u16 = 8;
    if list.is_null() {
        return;
    }
    for index in 0..count.max(0) as usize {
        // SAFETY: promised by the caller; vectors have as many elements as the request says.
        unsafe {
            let Some(request) = (*list.add(index)).as_ref() else { continue };
            let (start, len) = (request.buffer as *const c_void, request.bytes as usize);
            match request.opcode {
                READ | WRITE => Buffer::open_now(start, len, request.opcode == READ),
                READ_VECTOR | WRITE_VECTOR => {
                    crate::buffers::open_now(start.cast(), len, request.opcode == READ_VECTOR);
                }
                _ => {}
            }
        }
    }
}
