//! The gate that decides which findings count: suppressions with a reason, and a baseline of
//! earlier findings.
//!
//! A finding that is suppressed or known is still found and still listed; it only does not fail the
//! build. Entries that match nothing are reported, so that the files stay up to date.

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
pub(crate) use pair::{KernelNames, PairPattern};
pub use suppression::{Suppression, Suppressions};
