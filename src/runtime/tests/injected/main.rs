//! The runtime inside real processes, in front of a driver that remembers how it was called.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod capture;
mod graphs;
mod harness;
mod host;
mod lifecycle;
mod lookup;
mod rings;
mod stacks;
mod table;
