//! Errors of writing and reading a trace file.

use rusqlite::ErrorCode;
use std::path::{Path, PathBuf};

/// A trace could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such file, it may not be opened, or its directory may not be written to.
    #[error("cannot open the trace {}: {reason}", path.display())]
    Open { path: PathBuf, reason: String },
    /// The file is no trace of streamsan.
    #[error(
        "{} is not a trace of streamsan; traces are the .db files that `streamsan run -o FILE.db` \
         writes",
        path.display()
    )]
    NotATrace { path: PathBuf },
    /// The trace was written by a newer streamsan.
    #[error(
        "{} has trace schema {found}, and this streamsan reads schemas up to {supported}; read it \
         with the version that wrote it or a newer one",
        path.display()
    )]
    TooNew { path: PathBuf, found: i32, supported: i32 },
    /// The file is damaged.
    #[error(
        "the trace {} is damaged ({detail}); record it again, or copy it again if it was cut off \
         in a copy",
        path.display()
    )]
    Corrupt { path: PathBuf, detail: String },
    /// The file does not hold what was written, or not in the way in which it was.
    #[error(
        "the trace {} was damaged or changed after it was written ({detail}); record it again, or \
         copy it again if it was damaged in a copy: what is left of it, also what `sqlite3 .recover` \
         makes of it, gives no verdict",
        path.display()
    )]
    Damaged { path: PathBuf, detail: String },
    /// No space is left, or the device failed.
    #[error(
        "the trace {} cannot be written any further ({detail}); what was committed before stays \
         readable; make room or choose another place with -o",
        path.display()
    )]
    Full { path: PathBuf, detail: String },
    /// The writer stores nothing more, because an earlier call failed.
    #[error("the trace is no longer written, because an earlier write to it failed")]
    Stopped,
    /// An operation does not fit into the schema.
    #[error("operation {op} cannot be stored: {reason}")]
    Unstorable { op: u64, reason: &'static str },
    /// Anything else that SQLite reports.
    #[error("the trace {} cannot be used: {source}", path.display())]
    Sql { path: PathBuf, source: rusqlite::Error },
}

impl Error {
    /// An error of a writer.
    pub(crate) fn writing(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure) => {
                Self::Full { path, detail: source.to_string() }
            }
            _ => Self::reading(&path, source),
        }
    }

    /// An error of a reader.
    pub(crate) fn reading(path: &Path, source: rusqlite::Error) -> Self {
        use rusqlite::Error as E;
        let path = path.to_owned();
        match (&source, source.sqlite_error_code()) {
            (_, Some(ErrorCode::NotADatabase)) => Self::NotATrace { path },
            (_, Some(ErrorCode::DatabaseCorrupt | ErrorCode::SystemIoFailure))
            | (
                E::FromSqlConversionFailure(..)
                | E::IntegralValueOutOfRange(..)
                | E::InvalidColumnType(..)
                | E::QueryReturnedNoRows
                | E::Utf8Error(..),
                _,
            ) => Self::Corrupt { path, detail: source.to_string() },
            (
                _,
                Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly),
            ) => Self::Open { path, reason: source.to_string() },
            _ => Self::Sql { path, source },
        }
    }
}
