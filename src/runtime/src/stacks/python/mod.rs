//! Python frames of the calling thread: CPython 3.9 to 3.14, without the global interpreter lock.
//!
//! [`walk()`] is for the hot path: it follows the interpreter's chain of frames and notes code object
//! and instruction of each. [`describe()`] says, for a stack not seen before, file, function and line.
//! [`merge`](merge::merge) puts native and Python frames into one order.
//!
//! Invariants: nothing of the interpreter is changed and no function of it is called that needs
//! the lock or waits; structures are read only where the exact version is known
//! ([`layout`]) and, from 3.13 on, confirmed by the interpreter itself; allocates nothing.
//!
//! Deliberately absent: other implementations of Python, free-threaded and debug builds
//! ([`refusal`] says so), code that Cython and the like compile (native frames), and the frames of
//! sub-interpreters before 3.12 (those of the main interpreter on the same thread are seen).

mod describe;
mod interpreter;
mod layout;
mod lines;
pub(crate) mod merge;
mod version;
mod walk;

use core::ops::Range;

use streamsan_wire::PythonRefusal;

pub(crate) use describe::Description;
pub(crate) use walk::PythonWalk;

/// A frame of the calling thread. Good until the hook returns: afterwards its code may be gone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PythonFrame {
    /// Address of the code object; 0: a call of the evaluation function that shows no frame.
    pub(crate) code: usize,
    /// Tells code objects apart that had the same address one after the other.
    pub(crate) identity: u64,
    /// Byte offset of the instruction in the bytecode.
    pub(crate) instruction: u32,
    /// Outermost frame of one call of the evaluation function.
    pub(crate) entry: bool,
    /// For an entry frame: an address within the C frame of that call; 0 where it is not known
    /// (3.9).
    pub(crate) stack: usize,
}

impl PythonFrame {
    fn new(code: usize, identity: u64, instruction: u32) -> PythonFrame {
        PythonFrame { code, identity, instruction, entry: false, stack: 0 }
    }

    /// Whether there is nothing to show: it only stands for a native frame, see
    /// [`merge`](merge::merge).
    pub(crate) fn is_hidden(&self) -> bool {
        self.code == 0
    }

    /// The words that tell this frame from others, for the key of a stack. Where on the C stack it
    /// was does not count.
    pub(crate) fn key(&self) -> [u64; 2] {
        let instruction = u64::from(self.instruction) << 1 | u64::from(self.entry);
        [self.code as u64 ^ self.identity.rotate_left(32), instruction ^ self.identity]
    }
}

/// Writes the Python frames of the calling thread, innermost first. None where it runs no Python.
#[inline]
pub(crate) fn walk(frames: &mut [PythonFrame]) -> PythonWalk {
    let Some(interpreter) = interpreter::interpreter() else { return PythonWalk::NONE };
    let Some(state) = interpreter.thread_state() else { return PythonWalk::NONE };
    // SAFETY: the calling thread's own state.
    unsafe { walk::walk(interpreter, state, frames) }
}

/// Says what a frame of the latest [`walk()`] of this thread is; nothing of a hidden one.
pub(crate) fn describe(frame: &PythonFrame, sink: &mut dyn FnMut(Description<'_>)) {
    if let Some(interpreter) = interpreter::interpreter()
        && !frame.is_hidden()
    {
        // SAFETY: the frame still runs, so that its code object is there.
        unsafe { describe::describe(interpreter.layout, frame, sink) }
    }
}

/// Code of the evaluation function, as far as its symbol covers it; empty where there is no
/// interpreter.
pub(crate) fn eval_code() -> Range<usize> {
    interpreter::interpreter().map_or(0..0, |interpreter| interpreter.eval.clone())
}

/// Why this process gives no Python frames though it has an interpreter. To be asked after a
/// [`walk()`].
pub(crate) fn refusal() -> Option<PythonRefusal> {
    interpreter::refusal()
}
