//! The functions of the runtime that this library calls; the runtime is loaded before it.

use core::ffi::{c_char, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// A disposition of a signal: handler, flags, the first 64 signals of its mask.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Disposition {
    pub(crate) handler: u64,
    pub(crate) flags: u64,
    pub(crate) mask: u64,
}

unsafe extern "C" {
    pub(crate) fn streamsan_c_function(name: *const c_char) -> *const c_void;
    fn streamsan_fences() -> *const AtomicU32;
    fn streamsan_fence_open(start: u64, len: u64, writes: bool, keep: bool) -> u32;
    fn streamsan_fence_close(number: u32);
    fn streamsan_fence_used(start: u64, len: u64, writes: bool);
    fn streamsan_fence_drop(start: u64, len: u64, for_good: bool);
    fn streamsan_verbs(functions: *const *const c_void);
    fn streamsan_verbs_function(index: usize) -> *const c_void;
    fn streamsan_signals_are_kept();
    fn streamsan_signal_disposition(new: *const Disposition, old: *mut Disposition) -> bool;
    fn streamsan_signal_blocked(new: i32) -> bool;
}

static FENCES: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());

/// Whether there is memory that fences could stand around.
#[inline]
pub(crate) fn is_any_watched() -> bool {
    let mut count = FENCES.load(Ordering::Relaxed);
    if count.is_null() {
        // SAFETY: takes nothing.
        count = unsafe { streamsan_fences() }.cast_mut();
        FENCES.store(count, Ordering::Relaxed);
    }
    // SAFETY: the runtime's counter, which lives as long as the process.
    unsafe { (*count).load(Ordering::Relaxed) != 0 }
}

/// A buffer of a system call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Buffer {
    start: u64,
    len: u64,
    /// Whether the system call writes to it.
    writes: bool,
    /// The runtime's answer: whether a fence stood there, and the number that the call is over by.
    answer: u32,
}

/// In an answer of the runtime: a fence stood there.
const STOOD: u32 = 1 << 31;

impl Buffer {
    /// Opens the buffer for a system call; none is fenced there until [`Self::used`].
    #[inline]
    pub(crate) fn open(start: *const c_void, len: usize, writes: bool) -> Self {
        Self::new(start, len, writes, true)
    }

    /// The same, but what is fenced meanwhile may make the call fail.
    #[inline]
    pub(crate) fn open_now(start: *const c_void, len: usize, writes: bool) {
        Self::new(start, len, writes, false);
    }

    #[inline]
    fn new(start: *const c_void, len: usize, writes: bool, keep: bool) -> Self {
        let (start, len) = (start as u64, len as u64);
        let answer = match is_any_watched() {
            // SAFETY: takes plain numbers.
            true => unsafe { streamsan_fence_open(start, len, writes, keep) },
            false => 0,
        };
        Self { start, len, writes, answer }
    }

    /// Whether the runtime has nothing to do with it.
    pub(crate) fn is_nothing(&self) -> bool {
        self.answer == 0
    }

    /// Begin, bytes and answer, to be kept until a later call ends it.
    pub(crate) fn words(&self) -> (u64, u64, u32) {
        (self.start, self.len, self.answer)
    }

    /// The inverse of [`Self::words`].
    pub(crate) fn of((start, len, answer): (u64, u64, u32), writes: bool) -> Self {
        Self { start, len, writes, answer }
    }

    /// A call is over that used no bytes that anybody is to be told of.
    #[inline]
    pub(crate) fn closed(&self) {
        if self.answer & !STOOD != 0 {
            // SAFETY: takes a plain number.
            unsafe { streamsan_fence_close(self.answer) };
        }
    }

    /// The call has used so many bytes from the buffer's begin; answers how many it may still have
    /// used of the next buffer.
    #[inline]
    pub(crate) fn used(&self, bytes: u64) -> u64 {
        let mine = bytes.min(self.len);
        self.closed();
        if self.answer & STOOD != 0 && mine > 0 {
            // SAFETY: takes plain numbers.
            unsafe { streamsan_fence_used(self.start, mine, self.writes) };
        }
        bytes - mine
    }
}

/// The program changes the mapping: no fence stands there any more, for good or for now.
#[inline]
pub(crate) fn drop_fences(start: u64, len: u64, for_good: bool) {
    if is_any_watched() {
        // SAFETY: takes plain numbers.
        unsafe { streamsan_fence_drop(start, len, for_good) };
    }
}

/// The program's disposition of SIGSEGV is kept by the runtime, if it answers so.
pub(crate) fn disposition(new: Option<&Disposition>, old: &mut Disposition) -> bool {
    let new = new.map_or(ptr::null(), ptr::from_ref);
    // SAFETY: null or valid pointers.
    unsafe { streamsan_signal_disposition(new, old) }
}

/// Whether the calling thread believes SIGSEGV to be blocked.
pub(crate) fn blocked() -> bool {
    // SAFETY: takes a plain number.
    unsafe { streamsan_signal_blocked(-1) }
}

/// Lets the calling thread believe so; answers what it believed before.
pub(crate) fn set_blocked(blocked: bool) -> bool {
    // SAFETY: takes a plain number.
    unsafe { streamsan_signal_blocked(i32::from(blocked)) }
}

/// libibverbs' own function of a number, null where it is not loaded.
pub(crate) fn verbs_function(index: usize) -> *const c_void {
    // SAFETY: takes a plain number.
    unsafe { streamsan_verbs_function(index) }
}

/// This library is there.
pub(crate) fn announce() {
    let functions = crate::verbs::functions();
    // SAFETY: as many functions as the runtime has names.
    unsafe {
        streamsan_verbs(functions.as_ptr());
        streamsan_signals_are_kept();
    }
}
