//! The driver's state for each thread of the program: an identity, the stack of current
//! contexts, its mode of stream capture, and whether it is running a host function.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::capture::CaptureMode;

static NEXT: AtomicU64 = AtomicU64::new(1);
/// Threads that ended and may have left default streams behind.
static ENDED: Mutex<Vec<u64>> = Mutex::new(Vec::new());

/// The identity of a thread, which notes its end.
struct Identity(u64);

impl Drop for Identity {
    fn drop(&mut self) {
        ENDED.lock().unwrap_or_else(PoisonError::into_inner).push(self.0);
    }
}

thread_local! {
    static ID: Identity = Identity(NEXT.fetch_add(1, Ordering::Relaxed));
    static CONTEXTS: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
    static CAPTURE_MODE: Cell<CaptureMode> = const { Cell::new(CaptureMode::Global) };
    static IN_CALLBACK: Cell<bool> = const { Cell::new(false) };
}

/// Identity of the calling thread; 0 for all threads that are past their last destructor.
pub(super) fn id() -> u64 {
    ID.try_with(|id| id.0).unwrap_or(0)
}

/// The threads that ended since the last time this was asked.
pub(super) fn take_ended() -> Vec<u64> {
    std::mem::take(&mut *ENDED.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The context on top of the calling thread's stack.
pub(super) fn current() -> Option<u64> {
    CONTEXTS.try_with(|stack| stack.borrow().last().copied()).ok().flatten()
}

pub(super) fn push(context: u64) {
    // A thread past its destructors has no stack to push on; it then has no current context.
    let _gone = CONTEXTS.try_with(|stack| stack.borrow_mut().push(context));
}

pub(super) fn pop() -> Option<u64> {
    CONTEXTS.try_with(|stack| stack.borrow_mut().pop()).ok().flatten()
}

/// Whether the calling thread is inside a host function of the program.
pub(crate) fn in_callback() -> bool {
    IN_CALLBACK.try_with(Cell::get).unwrap_or(false)
}

pub(super) fn set_in_callback(inside: bool) {
    let _gone = IN_CALLBACK.try_with(|flag| flag.set(inside));
}

/// The calling thread's mode of stream capture.
pub(super) fn capture_mode() -> CaptureMode {
    CAPTURE_MODE.try_with(Cell::get).unwrap_or(CaptureMode::Global)
}

pub(super) fn exchange_capture_mode(mode: CaptureMode) -> CaptureMode {
    CAPTURE_MODE.try_with(|current| current.replace(mode)).unwrap_or(CaptureMode::Global)
}
