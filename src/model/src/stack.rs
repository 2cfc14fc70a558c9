//! Host stacks: the places in the program from which calls were made.
//!
//! Invariants:
//! - Frames are stored once and shared by stacks. A stack lists them from the driver call outwards.
//! - A native frame names the place of the code in its file, not its address in the process. The
//!   place in the source may become known later (the frame is then declared again).
//!
//! Deliberately absent: the choice of frames that a reader wants to see. Reports leave out frames
//! that are not the program's.

use crate::{FrameId, StackId};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The stack of a thread when it called the driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stack {
    /// Its id in the trace.
    pub id: StackId,
    /// Its frames, innermost first. Python frames stand among the native ones where the interpreter
    /// runs them.
    pub frames: Vec<FrameId>,
    /// Whether there are frames further out: the limit was reached, or the unwinder could not go
    /// on.
    pub truncated: bool,
}

/// One frame of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// Its id in the trace.
    pub id: FrameId,
    /// The place of the frame's code.
    pub place: FramePlace,
    /// The functions of the source that the frame stands for, innermost first; several where
    /// functions were inlined. Empty for a native frame until its symbols have been looked up.
    pub source: Vec<SourceFrame>,
}

/// The place of a frame's code.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FramePlace {
    /// Machine code.
    Native {
        /// Path of the executable or library as the process had it; empty for code that lies in no
        /// file.
        image: Arc<str>,
        /// GNU build id of the image, if it has one.
        build_id: Option<Arc<[u8]>>,
        /// The return address as a virtual address of the file (the address in memory less the load
        /// bias); the call instruction ends right before it. For code in no file: the address in
        /// memory.
        offset: u64,
    },
    /// A function of Python; [`Frame::source`] names it, in one entry.
    Python,
}

/// A function and a line of the source.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SourceFrame {
    /// Demangled name of the function.
    pub function: Option<Arc<str>>,
    /// Path of the source file, as its compiler was given it.
    pub file: Option<Arc<str>>,
    /// Line in the file, from 1.
    pub line: Option<u32>,
    /// Whether the function was inlined into the next one outwards.
    pub inlined: bool,
}
