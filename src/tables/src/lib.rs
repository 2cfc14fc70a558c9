//! The tables of traces as Parquet files, for engines that ask across many traces at once.
//!
//! [`Table`] declares what the tables hold, [`Partition`] writes the rows of one trace. Each table is a
//! directory of the form that Hive has made customary, with a directory for each trace:
//! `operations/trace=rank-0/part-0.parquet`. The name of the trace stands in the path and is no column
//! of the file; engines make it one.
//!
//! Invariants:
//! - A file is there as a whole or not at all: it is written under a name that engines pass over, and
//!   all files of a trace get their names at the end.
//! - Memory is that of one group of rows of each table ([`ROWS_IN_A_GROUP`]), whatever the trace's length.
//!
//! Sources: the Parquet format's specification (`parquet-format`, `LogicalTypes.md`).
//!
//! Deliberately absent: nested columns, since not every engine reads them alike; and Arrow, which flat
//! tables do not need.
#![forbid(unsafe_code)]

mod catalogue;
mod column;
mod document;
mod error;
mod file;
mod name;
mod partition;

pub use catalogue::Table;
pub use column::{Column, Kind, Value};
pub use document::tables_document;
pub use error::Error;
pub use file::ROWS_IN_A_GROUP;
pub use name::partition_names;
pub use partition::Partition;
