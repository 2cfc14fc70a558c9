//! One report over several traces: the ranks of a job, the processes of a test runner.
//!
//! Each trace is analysed on its own and has a report of its own: nothing orders one trace's
//! operations against another's, and numbers of operations and streams stay those of its trace.
//! Here findings of one fingerprint become one. The trace with the highest confidence shows it, and
//! the finding names all traces that have it.
//!
//! Invariants: a finding that fails in one trace fails in the common report; an entry of the gate
//! is unused only when no trace uses it, and every trace could be read; a trace that shows no finding
//! takes the room of its verdict.

mod detached;
mod fold;
mod together;
mod words;

pub use fold::InTrace;
pub use together::Several;
