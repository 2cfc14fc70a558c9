//! Merging the log of a trace that was being read while it was finished.

use crate::Error;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::path::Path;

/// Merges the log of a finished trace into its file. The log remains when another process read the
/// trace while it was being finished. The function does nothing while the trace is still being
/// read, or where no log is left.
///
/// # Errors
///
/// [`Error::Open`] and others of a file that cannot be written.
pub fn merge_log(path: &Path) -> Result<(), Error> {
    let failed = |e| Error::writing(path, e);
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE);
    let merged = connection.and_then(|connection| {
        connection.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()))
    });
    match merged.as_ref().map_err(rusqlite::Error::sqlite_error_code) {
        Err(Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)) => Ok(()),
        _ => merged.map_err(failed),
    }
}
