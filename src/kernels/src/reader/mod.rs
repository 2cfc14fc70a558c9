//! From an image that the driver was given to what one of its kernels touches.
//!
//! [`Reader::read`] takes many kernels at once, since the disassembler is slow to start and is run
//! once for all of them. What was concluded is kept on disk: a second run needs neither the
//! disassembler nor the analysis. Where the driver takes machine code and the same container has
//! the PTX of the very same target, that is analysed instead: the machine code was made from it.
//!
//! Several threads read, each one kernel at a time; the disassembler is run for all of them by one.
//!
//! Nothing here knows of launches. Of kernels that could not be read it is only kept that they are
//! too large.

mod cache;
mod parallel;
mod pieces;
mod read;

pub use read::{CodeForm, Read, Reader, Request, Unread};

/// A number for the state of the analysis: results of another one are not taken over.
pub(crate) const ANALYSIS_VERSION: &str = env!("ANALYSIS_VERSION");
