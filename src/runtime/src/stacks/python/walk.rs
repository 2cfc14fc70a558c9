//! The chain of frames of the calling thread.
//!
//! Read without the global interpreter lock. That is sound because only the thread itself changes
//! its chain: it is inside one of our hooks, called by a function of the innermost frame, and runs
//! no Python until the hook returns, whether or not it released the lock. Each frame holds a
//! reference to its code, whose fields never change once it runs. What other threads may do
//! to the frame of a running function (making a frame object for it, instrumenting its bytecode)
//! touches none of the fields read here.
//!
//! When the interpreter ends it frees the thread states of other threads that still run, but not
//! their frames (`_PyThreadState_DeleteExcept`, from 3.13 on `_PyThreadState_DeleteList`, in
//! Python/pystate.c). So what was read of the thread state counts only if the interpreter was not
//! ending afterwards. Between the two a state is read that may just have been freed, which is heap
//! memory of some hundred bytes.
//!
//! A value that cannot be a pointer, and an object that is no code, end the walk.

use super::PythonFrame;
use super::interpreter::{Interpreter, ThreadState};
use super::layout::{self, Frames, PythonLayout};

/// The result of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PythonWalk {
    /// Frames written.
    pub(crate) count: usize,
    /// Whether there are more.
    pub(crate) cut: bool,
}

impl PythonWalk {
    pub(super) const NONE: PythonWalk = PythonWalk { count: 0, cut: false };
}

/// Instruction of a frame that has not yet started.
pub(super) const NOT_STARTED: u32 = u32::MAX;
/// Instruction of a frame that does not tell it.
pub(super) const UNKNOWN: u32 = u32::MAX - 1;

/// # Safety
/// `state` is one of the calling thread, of the version of `interpreter`.
pub(super) unsafe fn walk(
    interpreter: &Interpreter,
    state: ThreadState,
    frames: &mut [PythonFrame],
) -> PythonWalk {
    // SAFETY: promised by the caller.
    let chain = unsafe { Chain::of(interpreter, state.address) };
    let Some(mut chain) = chain.filter(|_| interpreter.is_kept(state)) else {
        return PythonWalk::NONE;
    };
    let mut output = Output { frames, count: 0, group: 0 };
    // Frames that are not shown are few; a chain that does not end is none.
    let mut steps = 4 * output.frames.len() + 16;
    let cut = loop {
        if chain.frame == 0 {
            break false;
        }
        if steps == 0 {
            break true;
        }
        steps -= 1;
        // SAFETY: the frame was reached from the thread state by the structures' own pointers.
        let Some(step) = (unsafe { chain.step() }) else { break true };
        if !output.add(step, chain.frame == 0) {
            break true;
        }
    };
    PythonWalk { count: output.count, cut }
}

/// One frame of the chain.
struct FrameStep {
    /// The frame, unless it is none that tracebacks show.
    frame: Option<PythonFrame>,
    /// Whether a call of the evaluation function ends here, and an address in its C frame (0: not
    /// known).
    entry: Option<usize>,
}

struct Output<'a> {
    frames: &'a mut [PythonFrame],
    count: usize,
    /// First frame of the present call of the evaluation function.
    group: usize,
}

impl Output<'_> {
    /// Whether there was room.
    fn add(&mut self, step: FrameStep, outermost: bool) -> bool {
        if let Some(frame) = step.frame
            && !self.push(frame)
        {
            return false;
        }
        let Some(stack) = step.entry else { return true };
        if self.count > self.group {
            let last = &mut self.frames[self.count - 1];
            (last.entry, last.stack) = (true, stack);
        } else if !outermost
            && !self.push(PythonFrame { entry: true, stack, ..PythonFrame::default() })
        {
            return false;
        }
        self.group = self.count;
        true
    }

    fn push(&mut self, frame: PythonFrame) -> bool {
        let Some(place) = self.frames.get_mut(self.count) else { return false };
        *place = frame;
        self.count += 1;
        true
    }
}

/// A place in the chain of frames.
struct Chain<'a> {
    interpreter: &'a Interpreter,
    frame: usize,
    /// 3.10 and 3.11: the structure in the C frame of the present call of the evaluation function.
    c_frame: usize,
}

impl<'a> Chain<'a> {
    /// # Safety
    /// As [`walk`].
    unsafe fn of(interpreter: &'a Interpreter, state: usize) -> Option<Self> {
        let layout = interpreter.layout;
        let mut frame = state;
        for offset in layout.to_frame {
            // SAFETY: the thread state, and what it points to.
            frame = unsafe { word(pointer(frame)? + offset) };
        }
        let c_frame = match layout.frames {
            Frames::Objects { c_frames: Some((innermost, _)) } => Some(innermost),
            Frames::Flagged { .. } => Some(layout.to_frame[0]),
            _ => None,
        };
        // SAFETY: a field of the thread state.
        let c_frame = c_frame.map_or(0, |offset| unsafe { word(state + offset) });
        Some(Chain { interpreter, frame, c_frame })
    }

    /// Reads the present frame and goes on to the next; `None` where it is no frame.
    ///
    /// # Safety
    /// `self.frame` is a frame of the calling thread's chain.
    #[inline]
    unsafe fn step(&mut self) -> Option<FrameStep> {
        let layout = self.interpreter.layout;
        let frame = pointer(self.frame)?;
        // SAFETY: fields of the frame.
        unsafe {
            self.frame = word(frame + layout.previous);
            match layout.frames {
                Frames::Objects { c_frames } => {
                    let index = i32_at(frame + layout.instruction);
                    let offset = index.saturating_mul(layout.index_unit);
                    let instruction = u32::try_from(offset).unwrap_or(NOT_STARTED);
                    let code = self.code(frame)?;
                    let frame = PythonFrame::new(code, identity(layout, code), instruction);
                    let stack = match c_frames {
                        Some((_, previous)) => self.leave(previous)?,
                        None => 0,
                    };
                    Some(FrameStep { frame: Some(frame), entry: Some(stack) })
                }
                Frames::Flagged { is_entry, c_frame_previous } => {
                    let entry = match byte(frame + is_entry) {
                        0 => None,
                        _ => Some(self.leave(c_frame_previous)?),
                    };
                    Some(FrameStep { frame: self.running(frame)?, entry })
                }
                Frames::Delimited => {
                    if byte(frame + layout.owner) >= layout::OWNED_BY_INTERPRETER {
                        return Some(FrameStep { frame: None, entry: Some(frame) });
                    }
                    Some(FrameStep { frame: self.running(frame)?, entry: None })
                }
            }
        }
    }

    /// Leaves a call of the evaluation function; gives the address of its structure.
    ///
    /// # Safety
    /// As [`Chain::step`].
    #[inline]
    unsafe fn leave(&mut self, previous: usize) -> Option<usize> {
        let left = pointer(self.c_frame)?;
        // SAFETY: each call of the evaluation function has one, linked to that of the call before.
        self.c_frame = unsafe { word(left + previous) };
        Some(left)
    }

    /// The frame's code object; `None` where it has none.
    ///
    /// # Safety
    /// As [`Chain::step`].
    #[inline]
    unsafe fn code(&self, frame: usize) -> Option<usize> {
        // SAFETY: a field of the frame; then of a code object that the frame holds.
        unsafe {
            // From 3.14 on the lowest bits say how the reference is counted.
            let code = word(frame + self.interpreter.layout.code) & !3;
            let code = pointer(code)?;
            (word(code + layout::TYPE) == self.interpreter.code_type).then_some(code)
        }
    }

    /// The frame of 3.11 or later, `Some(None)` where its function has not begun: tracebacks do
    /// not show it then. Generators have, once they have a frame.
    ///
    /// # Safety
    /// As [`Chain::step`].
    #[inline]
    unsafe fn running(&self, frame: usize) -> Option<Option<PythonFrame>> {
        let layout = self.interpreter.layout;
        // SAFETY: fields of the frame and of its code.
        unsafe {
            let instruction = word(frame + layout.instruction);
            let owner = byte(frame + layout.owner);
            let code = self.code(frame)?;
            let at = instruction.wrapping_sub(code + layout.bytecode) as isize;
            let begun = at >= 2 * i32_at(code + layout.first_traceable) as isize;
            // In code units of 2 bytes.
            let end = 2 * word(code + layout::SIZE) as isize;
            let instruction = match u32::try_from(at) {
                Ok(offset) if at < end => offset,
                Ok(_) => UNKNOWN,
                Err(_) => NOT_STARTED,
            };
            let frame = PythonFrame::new(code, identity(layout, code), instruction);
            Some((begun || owner == layout::OWNED_BY_GENERATOR).then_some(frame))
        }
    }
}

/// Tells code objects apart that had the same address one after the other. What they point to is
/// not read: of two that agree in all this and in every address the first may stand for the
/// second (its line then is wrong, if lines moved within the function).
///
/// # Safety
/// `code` is a code object of the version of `layout`.
#[inline]
unsafe fn identity(layout: &PythonLayout, code: usize) -> u64 {
    // SAFETY: fields of the code object.
    unsafe {
        let parts = [
            word(code + layout::SIZE),
            i32_at(code + layout.first_line) as usize,
            word(code + layout.file),
            word(code + layout.name),
            word(code + layout.line_table),
        ];
        parts.iter().fold(0, |hash: u64, part| {
            (hash.rotate_left(23) ^ *part as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        })
    }
}

/// `value`, if it can be the address of an object.
#[inline]
pub(super) fn pointer(value: usize) -> Option<usize> {
    (value.is_multiple_of(8) && (0x1000..1 << 56).contains(&value)).then_some(value)
}

/// # Safety
/// `address` points to an aligned word.
#[inline]
pub(super) unsafe fn word(address: usize) -> usize {
    // SAFETY: promised by the caller.
    unsafe { (address as *const usize).read() }
}

/// # Safety
/// `address` points to an aligned integer.
#[inline]
pub(super) unsafe fn i32_at(address: usize) -> i32 {
    // SAFETY: promised by the caller.
    unsafe { (address as *const i32).read() }
}

/// # Safety
/// `address` points to a byte.
#[inline]
unsafe fn byte(address: usize) -> u8 {
    // SAFETY: promised by the caller.
    unsafe { (address as *const u8).read() }
}
