//! The trace file: one SQLite database for a run. The only room that knows SQL.
//!
//! [`Writer`] takes [`streamsan_model::TraceItem`]s in the order in which the engine takes them and
//! [`Reader`] gives the same items back: every entity first, then the operations by their global
//! issue index.
//!
//! Invariants:
//! - What [`Writer::commit`] has returned for survives the death of this process.
//! - A reader never writes, and reads a trace whose writer was killed up to its last commit.
//! - Derived tables (edges, findings, level of detail) can be rebuilt from the raw ones and hold nothing else.
//! - Times are host nanoseconds. No table holds a GPU duration.
//!
//! Deliberately absent: rules about what orders what.
#![forbid(unsafe_code)]

mod action;
mod coverage;
mod error;
mod failures;
mod history;
mod lod;
mod merge_log;
mod meta;
mod part;
mod proof;
mod query;
mod reader;
mod row;
mod schema;
mod writer;

pub use coverage::{Coverage, EntryPoint, KernelCount, Treatment};
pub use error::Error;
#[cfg(feature = "failures")]
pub use failures::FailingSteps;
pub use merge_log::merge_log;
pub use meta::{Meta, TraceState};
pub use reader::{Counts, Items, Reader};
pub use schema::schema_document;
pub use writer::Writer;

/// Version of the schema that this build writes, and the newest one that it reads.
pub const SCHEMA_VERSION: i32 = 6;
