//! From an image that the driver was given to what one of its kernels touches.
//!
//! [`Reader::read`] takes many kernels at once, since the disassembler is slow to start and is run
//! once for all of them. What was concluded is kept on disk: a second run needs neither the
//! disassembler nor the analysis. Where the driver takes machine code and the same container has
//! the PTX of the very same target, that is analysed instead: the machine code was made from it.
//!
//! Nothing here knows of launches, and nothing is kept of kernels that could not be read.

mod cache;
mod pieces;
mod read;

pub use read::{CodeSource, Read, Reader, Request, Unread};

/// A number for the state of the analysis: results of another one are not taken over.
pub(crate) const ANALYSIS_VERSION: &str = env!("ANALYSIS_VERSION");
