//! The end of a trace: indexes, level of detail, one file, and last of all the state `complete`.
//!
//! Invariant: nothing is written after that state. Where any step before it fails, the file's state
//! is `recording` or `truncated`, and no reader takes the trace for complete. The state and the
//! proof of the tables are one transaction.

use super::worker::Inserter;
use crate::schema::index_statements;
use crate::{Meta, TraceState, proof};
use rusqlite::{Connection, ErrorCode, params};

impl Inserter {
    /// Finishes a trace that could be written to here.
    pub(super) fn finish(&mut self, truncated: bool) -> rusqlite::Result<()> {
        self.commit()?;
        self.failures.point()?;
        self.connection.execute_batch(&format!("BEGIN;\n{}COMMIT", index_statements()))?;
        self.begin()?;
        self.failures.point()?;
        let made = self.derived.finish(&self.connection)?;
        self.note_made(made);
        self.commit()?;
        self.failures.point()?;
        leave_wal(&self.connection)?;
        self.begin()?;
        self.failures.point()?;
        put_state(
            &self.connection,
            if truncated { TraceState::Truncated } else { TraceState::Complete },
        )?;
        self.failures.point()?;
        proof::write(&self.connection, self.sums.named())?;
        self.commit()
    }

    /// After a failure: says so in the file, and leaves one file, as far as that is possible.
    pub(super) fn give_up(&self) -> rusqlite::Result<()> {
        self.begin()?;
        self.failures.point()?;
        put_state(&self.connection, TraceState::Truncated)?;
        proof::erase(&self.connection)?;
        self.commit()?;
        self.failures.point()?;
        leave_wal(&self.connection)
    }
}

/// Says of the trace how whole it is; the caller commits.
pub(super) fn put_state(connection: &Connection, state: TraceState) -> rusqlite::Result<()> {
    let values = params![Meta::STATE, state.description()];
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", values).map(drop)
}

fn leave_wal(connection: &Connection) -> rusqlite::Result<()> {
    let left = connection.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()));
    match left.as_ref().map_err(rusqlite::Error::sqlite_error_code) {
        // Somebody reads the trace: the log is merged when the last one closes it.
        Err(Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)) => Ok(()),
        _ => left,
    }
}
