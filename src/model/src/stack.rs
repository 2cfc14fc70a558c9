//! Host stacks: where in the program a call was made.
//!
//! Invariants:
//! - Frames are stored once and shared by stacks. A stack lists them from the driver call outwards.
//! - A native frame says where the code lies in its file, whatever address the process had it at;
//!   what stands there in the source may become known later (the frame is then declared again).
//!
//! Deliberately absent: which frames a reader wants to see. Reports leave out what is not the
//! program's.

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
    /// There are frames further out: the limit was reached, or the unwinder could not go on.
    pub truncated: bool,
}

/// One frame of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// Its id in the trace.
    pub id: FrameId,
    /// Where its code lies.
    pub place: FramePlace,
    /// The functions of the source that it stands for, innermost first: several where functions
    /// were inlined. Of a native frame empty until somebody has looked.
    pub source: Vec<SourceFrame>,
}

/// Where the code of a frame lies.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FramePlace {
    /// Machine code.
    Native {
        /// Path of the executable or library as the process had it; empty for code that is in no
        /// file.
        image: Arc<str>,
        /// Its GNU build id, where it has one.
        build_id: Option<Arc<[u8]>>,
        /// The return address as a virtual address of the file (the address in memory less the load
        /// bias): the call itself ends right before it. In no file: the address in memory.
        offset: u64,
    },
    /// A function of Python; [`Frame::source`] says which, in one entry.
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
    /// It was inlined into the function behind it.
    pub inlined: bool,
}
