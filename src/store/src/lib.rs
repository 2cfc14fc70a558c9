//! The trace file: one SQLite database for a run. The only room that knows SQL.
//!
//! [`Writer`] takes [`streamsan_model::TraceItem`]s in the order in which the engine takes them and
//! [`Reader`] gives the same items back: every entity first, then the operations by their global
//! issue index.
//!
//! Invariants:
//! - Everything stored before a [`Writer::commit`] that has returned survives the death of this
//!   process.
//! - A reader never writes, and reads a trace whose writer was killed up to its last commit.
//! - Derived tables (edges, findings, level of detail) hold nothing that cannot be rebuilt from the
//!   raw tables.
//! - Times are host nanoseconds. No table holds a GPU duration.
//!
//! Deliberately absent: rules of CUDA's order.
#![forbid(unsafe_code)]

mod action;
mod call_numbers;
mod coverage;
mod creations;
mod error;
mod failures;
mod footprint;
mod history;
mod hits;
mod lod;
mod merge_log;
mod meta;
mod part;
mod proof;
mod query;
mod range_spans;
mod reader;
mod row;
mod schema;
mod writer;

pub use coverage::{Coverage, EntryPoint, KernelCount, MeasuredCount, MeasuredKind, Treatment};
pub use error::Error;
#[cfg(feature = "failures")]
pub use failures::FailingSteps;
pub use merge_log::merge_log;
pub use meta::{Meta, TraceState};
pub use reader::{Counts, Items, Reader};
pub use schema::schema_document;
pub use writer::Writer;

/// Version of the schema that this build writes, and the newest one that it reads.
pub const SCHEMA_VERSION: i32 = 8;
