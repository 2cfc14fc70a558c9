//! GPUDirect Storage: the public functions of libcufile that move data between files and memory.
//!
//! A direct link finds ours first; a look-up with `dlsym` is routed here if what it found lies in
//! an object whose soname begins with `libcufile.so`. Structures and codes are those of the public
//! header `cufile.h` (cuFile API reference, "cuFile API Functional Specification").
//!
//! Driver calls that libcufile makes while it serves a call are not the program's own doing.

use core::ffi::{CStr, c_void};
use core::ptr;

use streamsan_wire::{Body, HostCall};

use super::library::Library;
use super::publish::{publish, publish_return, record, words};
use crate::call::{current_context, guarded};
use crate::elf::LoadedObject;
use crate::{attach, thread};

/// `CU_FILE_DRIVER_NOT_INITIALIZED`: what a call answers where no libcufile is loaded.
const NOT_INITIALIZED: i32 = 5001;

/// The bits of a finished request in `CUfileStatus_t`. A cancelled one, or one that ran out of
/// time, is not said to leave the memory alone.
const OVER: u32 = 0x04 | 0x10 | 0x40;

/// `CUfileIOParams_t`.
#[repr(C)]
struct Request {
    mode: u32,
    address: u64,
    file_offset: i64,
    offset: i64,
    size: u64,
    file: *const c_void,
    opcode: u32,
    cookie: u64,
}

/// `CUfileIOEvents_t`.
#[repr(C)]
struct Finished {
    cookie: u64,
    status: u32,
    result: u64,
}

const _: () = assert!(size_of::<Request>() == 64 && size_of::<Finished>() == 24);

/// `CUfileError_t`.
#[derive(Clone, Copy)]
#[repr(C)]
struct FileError {
    code: i32,
    driver: i32,
}

impl FileError {
    fn result(self) -> i64 {
        if self.code == 0 { 0 } else { -1 }
    }
}

/// The functions in the order of `HOOKS`.
const NAMES: [&CStr; 7] = [
    c"cuFileRead",
    c"cuFileWrite",
    c"cuFileReadAsync",
    c"cuFileWriteAsync",
    c"cuFileBatchIOSubmit",
    c"cuFileBatchIOGetStatus",
    c"cuFileBatchIODestroy",
];

static LIBRARY: Library<{ NAMES.len() }> = Library::new("libcufile", NAMES);

fn hooks() -> [usize; NAMES.len()] {
    [
        cuFileRead as *const () as usize,
        cuFileWrite as *const () as usize,
        cuFileReadAsync as *const () as usize,
        cuFileWriteAsync as *const () as usize,
        cuFileBatchIOSubmit as *const () as usize,
        cuFileBatchIOGetStatus as *const () as usize,
        cuFileBatchIODestroy as *const () as usize,
    ]
}

/// The address that a program gets that looked `name` up and found `address`; `None` if not ours.
pub(crate) fn substitute(name: &CStr, address: usize) -> Option<usize> {
    LIBRARY.substitute(name, address, &hooks())
}

fn real(index: usize) -> Option<usize> {
    LIBRARY.real(index, |_| LoadedObject::find(|object| LIBRARY.is(object)))
}

/// A recorded call in progress: attachment and index of its record, 0 where there is none.
struct Span {
    attachment: u64,
    host: u64,
}

impl Span {
    fn enter(call: HostCall, count: usize, fill: impl FnOnce(&mut Body)) -> Self {
        let mut span = Self { attachment: 0, host: 0 };
        guarded(|thread| {
            let Some(attachment) = attach::attachment() else { return };
            span.attachment = attachment.number;
            // Inside a driver call, or another of these, it is not the program's own.
            if thread.depth.get() == 0 {
                thread.busy.set(true);
                span.host = publish(thread, &attachment, call, (count, &[]), fill);
                thread.busy.set(false);
            }
            thread.depth.set(thread.depth.get().saturating_add(1));
        });
        span
    }

    fn leave(self, result: i64) {
        if self.attachment == 0 {
            return;
        }
        guarded(|thread| {
            thread.depth.set(thread.depth.get().saturating_sub(1));
            let Some(attachment) = attach::attachment() else { return };
            // A forked child returning through its parent's call has nothing to end.
            if self.host != 0 && attachment.number == self.attachment {
                thread.busy.set(true);
                publish_return(thread, &attachment, self.host, result);
                thread.busy.set(false);
            }
        });
    }
}

/// Requests of one call that have records of their own; further ones share the last.
const MOST_REQUESTS: usize = 128;

/// A submission in progress. Each request is over on its own, so each has a record.
struct BatchSpan {
    attachment: u64,
    hosts: [u64; MOST_REQUESTS],
}

impl BatchSpan {
    fn enter(batch: u64, requests: &[Request]) -> Self {
        let mut span = Self { attachment: 0, hosts: [0; MOST_REQUESTS] };
        guarded(|thread| {
            let Some(attachment) = attach::attachment() else { return };
            span.attachment = attachment.number;
            if thread.depth.get() == 0 {
                thread.busy.set(true);
                for (index, host) in span.hosts.iter_mut().enumerate() {
                    let last = index + 1 == MOST_REQUESTS;
                    let end = if last { requests.len() } else { index + 1 };
                    let Some(part) = requests.get(index..end).filter(|part| !part.is_empty())
                    else {
                        break;
                    };
                    let call = HostCall::FileBatchSubmit;
                    let size = (1 + 4 * part.len(), &[][..]);
                    *host = publish(thread, &attachment, call, size, |body| {
                        body.word(batch);
                        for request in part {
                            body.word(request.address.wrapping_add_signed(request.offset));
                            body.word(request.size);
                            body.word(u64::from(request.opcode));
                            body.word(request.cookie);
                        }
                    });
                }
                thread.busy.set(false);
            }
            thread.depth.set(thread.depth.get().saturating_add(1));
        });
        span
    }

    fn leave(self, result: i64) {
        if self.attachment == 0 {
            return;
        }
        guarded(|thread| {
            thread.depth.set(thread.depth.get().saturating_sub(1));
            let Some(attachment) = attach::attachment() else { return };
            if attachment.number == self.attachment {
                thread.busy.set(true);
                for host in self.hosts.into_iter().filter(|host| *host != 0) {
                    publish_return(thread, &attachment, host, result);
                }
                thread.busy.set(false);
            }
        });
    }
}

macro_rules! synchronous {
    ($name:ident, $index:literal, $call:ident) => {
        /// # Safety
        /// As libcufile documents.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[cfg_attr(test, expect(non_snake_case, reason = "libcufile's symbol"))]
        unsafe extern "C" fn $name(
            file: *mut c_void,
            base: u64,
            size: usize,
            file_offset: i64,
            offset: i64,
        ) -> isize {
            type Real = unsafe extern "C" fn(*mut c_void, u64, usize, i64, i64) -> isize;
            let Some(real) = real($index) else { return -(NOT_INITIALIZED as isize) };
            let span = Span::enter(
                HostCall::$call,
                2,
                words(&[base.wrapping_add_signed(offset), size as u64]),
            );
            // SAFETY: libcufile's function with its documented signature, the program's arguments.
            let result = unsafe {
                let real: Real = core::mem::transmute(real);
                real(file, base, size, file_offset, offset)
            };
            span.leave(result as i64);
            result
        }
    };
}

synchronous!(cuFileRead, 0, FileRead);
synchronous!(cuFileWrite, 1, FileWrite);

macro_rules! asynchronous {
    ($name:ident, $index:literal, $call:ident) => {
        /// # Safety
        /// As libcufile documents.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[cfg_attr(test, expect(non_snake_case, reason = "libcufile's symbol"))]
        unsafe extern "C" fn $name(
            file: *mut c_void,
            base: u64,
            size: *mut usize,
            file_offset: *mut i64,
            offset: *mut i64,
            done: *mut isize,
            stream: *mut c_void,
        ) -> FileError {
            type Real = unsafe extern "C" fn(
                *mut c_void,
                u64,
                *mut usize,
                *mut i64,
                *mut i64,
                *mut isize,
                *mut c_void,
            ) -> FileError;
            let Some(real) = real($index) else {
                return FileError { code: NOT_INITIALIZED, driver: 0 };
            };
            // SAFETY: the caller passes valid pointers, as libcufile documents. A size that is not
            // known yet must be the largest possible one by then.
            let (bytes, start) = unsafe {
                let bytes = if size.is_null() { 0 } else { *size };
                let offset = if offset.is_null() { 0 } else { *offset };
                (bytes as u64, base.wrapping_add_signed(offset))
            };
            let context = current_context();
            let list = [start, bytes, stream as u64, context];
            let span = Span::enter(HostCall::$call, list.len(), words(&list));
            // SAFETY: libcufile's function with its documented signature, the program's arguments.
            let result = unsafe {
                let real: Real = core::mem::transmute(real);
                real(file, base, size, file_offset, offset, done, stream)
            };
            span.leave(result.result());
            result
        }
    };
}

asynchronous!(cuFileReadAsync, 2, FileReadAsync);
asynchronous!(cuFileWriteAsync, 3, FileWriteAsync);

/// # Safety
/// As libcufile documents.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[cfg_attr(test, expect(non_snake_case, reason = "libcufile's symbol"))]
unsafe extern "C" fn cuFileBatchIOSubmit(
    batch: *mut c_void,
    count: u32,
    requests: *mut Request,
    flags: u32,
) -> FileError {
    type Real = unsafe extern "C" fn(*mut c_void, u32, *mut Request, u32) -> FileError;
    let Some(real) = real(4) else { return FileError { code: NOT_INITIALIZED, driver: 0 } };
    let list: &[Request] = if requests.is_null() {
        &[]
    } else {
        // SAFETY: the caller passes that many requests, as libcufile documents.
        unsafe { core::slice::from_raw_parts(requests, count as usize) }
    };
    let span = BatchSpan::enter(batch as u64, list);
    // SAFETY: libcufile's function with its documented signature and the program's arguments.
    let result = unsafe {
        let real: Real = core::mem::transmute(real);
        real(batch, count, requests, flags)
    };
    span.leave(result.result());
    result
}

/// Requests that are over are told at the return: only then the program knows.
///
/// # Safety
/// As libcufile documents.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[cfg_attr(test, expect(non_snake_case, reason = "libcufile's symbol"))]
unsafe extern "C" fn cuFileBatchIOGetStatus(
    batch: *mut c_void,
    least: u32,
    count: *mut u32,
    events: *mut Finished,
    timeout: *mut c_void,
) -> FileError {
    type Real =
        unsafe extern "C" fn(*mut c_void, u32, *mut u32, *mut Finished, *mut c_void) -> FileError;
    let Some(real) = real(5) else { return FileError { code: NOT_INITIALIZED, driver: 0 } };
    // Driver calls of libcufile meanwhile are its own doing.
    thread::with(|thread| thread.depth.set(thread.depth.get().saturating_add(1)));
    // SAFETY: libcufile's function with its documented signature and the program's arguments.
    let result = unsafe {
        let real: Real = core::mem::transmute(real);
        real(batch, least, count, events, timeout)
    };
    thread::with(|thread| thread.depth.set(thread.depth.get().saturating_sub(1)));
    if result.code != 0 || count.is_null() || events.is_null() {
        return result;
    }
    // SAFETY: a successful call wrote the count, and as many events.
    let events = unsafe { core::slice::from_raw_parts(events, ptr::read(count) as usize) };
    for event in events.iter().filter(|event| event.status & OVER != 0) {
        record(HostCall::FileBatchGetStatus, &[batch as u64, event.cookie], &[]);
    }
    result
}

/// # Safety
/// As libcufile documents.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[cfg_attr(test, expect(non_snake_case, reason = "libcufile's symbol"))]
unsafe extern "C" fn cuFileBatchIODestroy(batch: *mut c_void) {
    record(HostCall::FileBatchDestroy, &[batch as u64], &[]);
    let Some(real) = real(6) else { return };
    // SAFETY: libcufile's function with its documented signature and the program's arguments.
    unsafe {
        let real: unsafe extern "C" fn(*mut c_void) = core::mem::transmute(real);
        real(batch);
    }
}
