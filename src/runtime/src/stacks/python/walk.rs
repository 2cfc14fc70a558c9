//! The chain of frames of the calling thread.
//!
//! Read without the global interpreter lock. That is sound because only the thread itself changes
//! its chain: it is inside one of our hooks, called by a function of the innermost frame, and runs
//! no Python until the hook returns, whether or not it released the lock. Each frame holds a
//! reference to its code, whose fields never change once it runs. What other threads may do
//! to the frame of a running function (making a frame object for it, instrumenting its bytecode)
//! touches none of the fields read here.
//!
//! A value that cannot be a pointer, and an object that is no code, end the walk.

use super::PythonFrame;
use super::interpreter::Interpreter;
use super::layout::{self, Frames, Layout};

/// What a walk found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Walk {
    /// Frames written.
    pub(crate) count: usize,
    /// Whether there are more.
    pub(crate) cut: bool,
}

impl Walk {
    pub(super) const NONE: Walk = Walk { count: 0, cut: false };
}

/// Instruction of a frame that has not yet started.
pub(super) const NOT_STARTED: u32 = u32::MAX;
/// Instruction of a frame that does not tell it.
pub(super) const UNKNOWN: u32 = u32::MAX - 1;

/// # Safety
/// `state` is the calling thread's `PyThreadState`, of the version of `interpreter`, and stays
/// during the call.
pub(super) unsafe fn walk(
    interpreter: &Interpreter,
    state: usize,
    frames: &mut [PythonFrame],
) -> Walk {
    // SAFETY: promised by the caller.
    let chain = unsafe { Chain::of(interpreter, state) };
    let Some(mut chain) = chain else { return Walk::NONE };
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
    Walk { count: output.count, cut }
}

/// One frame of the chain.
struct Step {
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
    fn add(&mut self, step: Step, outermost: bool) -> bool {
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
    unsafe fn of(interpreter: &'a Interpreter, state: usize) -> Option<Chain<'a>> {
        let layout = interpreter.layout;
        let mut frame = state;
        for offset in layout.to_frame {
            // SAFETY: the thread state, and what it points to.
            frame = unsafe { word(pointer(frame)? + offset) };
        }
        let c_frame = match layout.frames {
            Frames::Objects { c_frames: Some((innermost, _)) } => innermost,
            Frames::Flagged { .. } => layout.to_frame[0],
            _ => return Some(Chain { interpreter, frame, c_frame: 0 }),
        };
        // SAFETY: a field of the thread state.
        Some(Chain { interpreter, frame, c_frame: unsafe { word(state + c_frame) } })
    }

    /// Reads the present frame and goes on to the next; `None` where it is no frame.
    ///
    /// # Safety
    /// `self.frame` is a frame of the calling thread's chain.
    unsafe fn step(&mut self) -> Option<Step> {
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
                    let shown = self.python_frame(frame, |_| (instruction, true))?;
                    let stack = match c_frames {
                        Some((_, previous)) => self.leave(previous),
                        None => 0,
                    };
                    Some(Step { frame: shown, entry: Some(stack) })
                }
                Frames::Flagged { is_entry, c_frame_previous } => {
                    let shown = self.python_frame(frame, |code| running(layout, frame, code))?;
                    let entry = byte(frame + is_entry) != 0;
                    Some(Step { frame: shown, entry: entry.then(|| self.leave(c_frame_previous)) })
                }
                Frames::Delimited => {
                    if byte(frame + layout.owner) >= layout::OWNED_BY_INTERPRETER {
                        return Some(Step { frame: None, entry: Some(frame) });
                    }
                    let shown = self.python_frame(frame, |code| running(layout, frame, code))?;
                    Some(Step { frame: shown, entry: None })
                }
            }
        }
    }

    /// Leaves a call of the evaluation function; gives the address of its structure.
    ///
    /// # Safety
    /// As [`Chain::step`].
    unsafe fn leave(&mut self, previous: usize) -> usize {
        let left = pointer(self.c_frame).unwrap_or(0);
        // SAFETY: each call of the evaluation function has one, linked to that of the call before.
        self.c_frame = if left == 0 { 0 } else { unsafe { word(left + previous) } };
        left
    }

    /// The frame as it is shown; `instruction` gives its instruction and whether tracebacks show
    /// it. `None` where it has no code.
    ///
    /// # Safety
    /// As [`Chain::step`].
    unsafe fn python_frame(
        &self,
        frame: usize,
        instruction: impl FnOnce(usize) -> (u32, bool),
    ) -> Option<Option<PythonFrame>> {
        let layout = self.interpreter.layout;
        // SAFETY: a field of the frame; then of a code object.
        unsafe {
            // From 3.14 on the lowest bits say how the reference is counted.
            let code = pointer(word(frame + layout.code) & !3)?;
            if word(code + layout::TYPE) != self.interpreter.code_type {
                return None;
            }
            let (instruction, shown) = instruction(code);
            let identity = identity(layout, code);
            let frame = PythonFrame { code, instruction, identity, entry: false, stack: 0 };
            Some(shown.then_some(frame))
        }
    }
}

/// Offset of the instruction that a frame of 3.11 or later is at, and whether its function has
/// begun: before that, tracebacks do not show it. Generators have, once they have a frame.
///
/// # Safety
/// `frame` is a frame of the calling thread's chain, `code` its code.
unsafe fn running(layout: &Layout, frame: usize, code: usize) -> (u32, bool) {
    // SAFETY: fields of the frame and of its code.
    unsafe {
        let at = word(frame + layout.instruction).wrapping_sub(code + layout.bytecode) as isize;
        let begun = at >= 2 * i32_at(code + layout.first_traceable) as isize;
        // In code units of 2 bytes.
        let end = 2 * word(code + layout::SIZE) as isize;
        let instruction = match u32::try_from(at) {
            Ok(offset) if at < end => offset,
            Ok(_) => UNKNOWN,
            Err(_) => NOT_STARTED,
        };
        (instruction, begun || byte(frame + layout.owner) == layout::OWNED_BY_GENERATOR)
    }
}

/// Tells code objects apart that had the same address one after the other. What they point to is
/// not read: of two that agree in all this and in every address the first may stand for the
/// second (its line then is wrong, if lines moved within the function).
///
/// # Safety
/// `code` is a code object of the version of `layout`.
unsafe fn identity(layout: &Layout, code: usize) -> u64 {
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
