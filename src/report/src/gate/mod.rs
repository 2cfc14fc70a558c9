//! Which findings count: suppressions with a reason, and a baseline of what was there before.
//!
//! A finding that is suppressed or known is still found and still listed; it only fails nothing.
//! Entries that match nothing are told, so that the files do not rot.

mod apply;
mod baseline;
mod block;
mod error;
mod lex;
mod pair;
mod suppression;

pub use apply::{Disposition, Gate, Unused, Upstream};
pub use baseline::Baseline;
pub use error::GateError;
pub(crate) use pair::{KernelNames, Pair};
pub use suppression::{Suppression, Suppressions};
