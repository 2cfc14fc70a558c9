//! Host functions and stream callbacks: the program's function is wrapped, so that its run is
//! recorded with the operation that enqueued it.

use core::ffi::c_void;
use core::ptr;

use streamsan_wire::{Api, Counted, ParamKind, RecordKind};

use crate::attach;
use crate::call::guarded;
use crate::host::fences::{FunctionPlace, Pending};
use crate::resolve;
use crate::thread::{self, Outgoing};

/// The wrapper that the driver carries in place of the program's user data.
pub(crate) struct Wrapper {
    function: u64,
    user_data: u64,
    /// `g` of the BEGIN that enqueued it.
    op: u64,
    /// Runs again with every launch of the graph that captured it: never freed.
    repeats: bool,
    /// The fenced memory waits for the host function.
    place: FunctionPlace,
}

/// Replaces function and user data in `words` by a wrapper, which its one run frees. Null where
/// the call has none, or there is no memory: the function then runs unrecorded.
pub(crate) fn wrap(api: Api, words: &mut [u64], op: u64, fence: &Pending) -> *mut Wrapper {
    let params = api.signature().params;
    let position = |kind: ParamKind| params.iter().position(|param| param.kind == kind);
    let (function, trampoline) =
        match (position(ParamKind::HostFunction), position(ParamKind::StreamCallback)) {
            (Some(index), _) => (index, run_host_function as *const () as u64),
            (_, Some(index)) => (index, run_stream_callback as *const () as u64),
            _ => return ptr::null_mut(),
        };
    let Some(user_data) = position(ParamKind::UserData) else { return ptr::null_mut() };
    if words[function] == 0 {
        return ptr::null_mut();
    }
    // SAFETY: plain allocation.
    let wrapper = unsafe { libc::malloc(size_of::<Wrapper>()) }.cast::<Wrapper>();
    if wrapper.is_null() {
        return wrapper;
    }
    let repeats = may_be_capturing(api.name().ends_with("_ptsz"), words[0]);
    // SAFETY: fresh memory of the right size and alignment.
    unsafe {
        wrapper.write(Wrapper {
            function: words[function],
            user_data: words[user_data],
            op,
            repeats,
            place: FunctionPlace::new(fence, repeats),
        });
    }
    words[function] = trampoline;
    words[user_data] = wrapper as u64;
    wrapper
}

/// Frees the wrapper of a call that the driver refused.
pub(crate) fn discard(wrapper: *mut Wrapper) {
    // SAFETY: made by `wrap` and not handed to anybody.
    unsafe { libc::free(wrapper.cast()) };
}

extern "C-unwind" fn run_host_function(wrapper: *mut c_void) {
    // SAFETY: the driver passes what `wrap` gave it.
    unsafe {
        run(wrapper.cast(), |function, user_data| {
            let function: extern "C-unwind" fn(u64) = core::mem::transmute(function);
            function(user_data);
        });
    }
}

extern "C-unwind" fn run_stream_callback(stream: *mut c_void, status: i32, wrapper: *mut c_void) {
    // SAFETY: the driver passes what `wrap` gave it.
    unsafe {
        run(wrapper.cast(), |function, user_data| {
            let function: extern "C-unwind" fn(*mut c_void, i32, u64) =
                core::mem::transmute(function);
            function(stream, status, user_data);
        });
    }
}

/// # Safety
/// `wrapper` was made by `wrap` and is run by the driver.
unsafe fn run(wrapper: *mut Wrapper, call: impl FnOnce(u64, u64)) {
    // SAFETY: valid until freed below (caller).
    let (function, user_data, op, repeats, place) = unsafe {
        let wrapper = &*wrapper;
        (wrapper.function, wrapper.user_data, wrapper.op, wrapper.repeats, wrapper.place)
    };
    if !repeats {
        // SAFETY: made by malloc, and its only run has begun. Freed first, since the program's
        // function may end the thread.
        unsafe { libc::free(wrapper.cast()) };
    }
    // The program's own code starts here, whatever call of the driver it runs within.
    let outer = thread::with(|thread| (thread.depth.replace(0), thread.op.replace(0)));
    publish(RecordKind::HostFunctionBegin, op);
    guarded(|thread| {
        thread.busy.set(true);
        place.begins();
        thread.busy.set(false);
    });
    call(function, user_data);
    publish(RecordKind::HostFunctionEnd, op);
    guarded(|thread| {
        thread.busy.set(true);
        place.ends();
        thread.busy.set(false);
    });
    thread::with(|thread| {
        thread.depth.set(outer.0);
        thread.op.set(outer.1);
    });
}

fn publish(kind: RecordKind, op: u64) {
    guarded(|thread| {
        let Some(attachment) = attach::attachment() else { return };
        thread.busy.set(true);
        thread.publish(&attachment, Outgoing { kind, depth: 0, api: 0, body: 8 }, |body| {
            body.word(op);
        });
        thread.busy.set(false);
    });
}

/// Whether the call may be recorded into a graph instead of being enqueued.
pub(crate) fn may_be_capturing(per_thread: bool, stream: u64) -> bool {
    let query =
        if per_thread { Counted::cuStreamIsCapturing_ptsz } else { Counted::cuStreamIsCapturing };
    let Some(real) = resolve::real_counted(query) else { return true };
    let mut status = 0u32;
    // SAFETY: the driver's function with its documented signature and a writable result.
    let result = unsafe {
        let query: extern "C" fn(u64, *mut u32) -> i32 = core::mem::transmute(real);
        query(stream, &mut status)
    };
    result != 0 || status != 0
}
