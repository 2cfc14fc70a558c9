//! The happens-before engine: from an ordered sequence of operations to findings.
#![forbid(unsafe_code)]

mod engine;
mod options;
mod sink;

pub use engine::{Analysis, Engine, analyse};
pub use options::{Options, Statistics};
pub use sink::Sink;
