//! What can go wrong with a trace file.

use std::path::PathBuf;

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
    /// No space is left, or the device failed. What was committed before stays readable; the
    /// writer stores nothing more.
    #[error(
        "the trace {} cannot be written any further ({detail}); what was committed before stays \
         readable",
        path.display()
    )]
    Full { path: PathBuf, detail: String },
    /// The writer stores nothing more after [`Error::Full`].
    #[error("the trace is no longer written, because an earlier write to it failed")]
    Stopped,
    /// One operation touches more ranges than a trace can hold.
    #[error("operation {op} touches {ranges} separate ranges, more than a trace can hold")]
    TooManyAccesses { op: u64, ranges: usize },
    /// Anything else that SQLite reports.
    #[error("the trace {} cannot be used: {source}", path.display())]
    Sql { path: PathBuf, source: rusqlite::Error },
}

impl Error {
    /// Whether the recording can go on without storing.
    pub const fn is_storage_failure(&self) -> bool {
        matches!(self, Self::Full { .. } | Self::Stopped)
    }
}
