//! Creation and end of threads.
//!
//! The creator of a thread releases its clock into a token of the thread's own; its end is released
//! into one that its handle stands for. A handle is used again only when its thread has been joined
//! or is detached, so the tokens of two threads that can be joined at one time differ. Tokens have
//! one of the two topmost bits set, which no address of a lock has.

use core::ffi::{c_int, c_void};
use core::mem::transmute;
use core::sync::atomic::{AtomicU64, Ordering};

use streamsan_interpose::ThreadEnd;
use streamsan_wire::HostCall;

use crate::{real, tell};

const CREATED: u64 = 1 << 62;
const ENDED: u64 = 1 << 63;

static NEXT: AtomicU64 = AtomicU64::new(0);

type Start = unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void;

/// The argument that a new thread begins with; the thread frees it.
struct Beginning {
    start: Start,
    argument: *mut c_void,
    token: u64,
}

/// # Safety
/// As POSIX documents.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    start: Start,
    argument: *mut c_void,
) -> c_int {
    type Function = unsafe extern "C-unwind" fn(
        *mut libc::pthread_t,
        *const libc::pthread_attr_t,
        Start,
        *mut c_void,
    ) -> c_int;
    let token = CREATED | NEXT.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the C library's function of this name; the block is of the right size and belongs to
    // the new thread once that exists.
    unsafe {
        let real: Function = transmute(real!("pthread_create"));
        let beginning = libc::malloc(size_of::<Beginning>()).cast::<Beginning>();
        if beginning.is_null() {
            return real(thread, attributes, start, argument);
        }
        beginning.write(Beginning { start, argument, token });
        tell(HostCall::ThreadCreated, token);
        let result = real(thread, attributes, begin, beginning.cast());
        if result != 0 {
            libc::free(beginning.cast());
        }
        result
    }
}

/// # Safety
/// `beginning` is a block that `pthread_create` above made for this thread.
unsafe extern "C-unwind" fn begin(beginning: *mut c_void) -> *mut c_void {
    // SAFETY: promised by the caller.
    let Beginning { start, argument, token } = unsafe {
        let read = beginning.cast::<Beginning>().read();
        libc::free(beginning);
        read
    };
    tell(HostCall::ThreadStarted, token);
    END.watch(|_| true);
    // SAFETY: the program's own function and argument.
    unsafe { start(argument) }
}

/// # Safety
/// As POSIX documents.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn pthread_join(
    thread: libc::pthread_t,
    value: *mut *mut c_void,
) -> c_int {
    // SAFETY: the C library's function of this name, with the program's arguments.
    let result = unsafe {
        let real: unsafe extern "C-unwind" fn(libc::pthread_t, *mut *mut c_void) -> c_int =
            transmute(real!("pthread_join"));
        real(thread, value)
    };
    if result == 0 {
        tell(HostCall::ThreadJoined, ENDED | thread);
    }
    result
}

/// The destructors of the program may still do something: the end is told in the last round but
/// one, before the runtime gives up what it keeps for the thread.
const ROUND: usize = 3;

static END: ThreadEnd = ThreadEnd::new(thread_ends);

unsafe extern "C" fn thread_ends(round: *mut c_void) {
    if END.is_before(round, ROUND) {
        return;
    }
    // SAFETY: no preconditions.
    tell(HostCall::ThreadEnded, ENDED | unsafe { libc::pthread_self() });
}
