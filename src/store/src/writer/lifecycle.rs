//! Beginning and finishing a trace file.

use super::Writer;
use super::strings::Strings;
use crate::schema::{APPLICATION_ID, create_statements, enumerations, index_statements};
use crate::{Error, Meta, TraceState};
use rusqlite::{Connection, params};
use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Pages of the write-ahead log before it is copied into the file.
const CHECKPOINT_PAGES: u32 = 4000;

impl Writer {
    /// Creates the file. An older trace of that name is replaced; any other file is left alone and
    /// refused.
    pub fn create(path: &Path, meta: &Meta) -> Result<Self, Error> {
        remove_older_trace(path)?;
        // Into the file itself, not into the log: it tells a killed trace from other people's files.
        let identity = format!("PRAGMA application_id = {APPLICATION_ID}");
        let mut writer = Self::over(path, &identity)?;
        writer.attempt(|w| {
            w.connection.execute_batch(&format!(
                "PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES};\n\
                 BEGIN;\n{}",
                create_statements()
            ))?;
            for (name, words) in enumerations() {
                for (code, word) in words.iter().enumerate() {
                    w.connection
                        .prepare_cached("INSERT INTO enumeration VALUES (?, ?, ?)")?
                        .execute(params![name, code as i64, word])?;
                }
            }
            for (key, value) in meta.rows() {
                w.put_meta(&key, &value)?;
            }
            w.put_meta(Meta::STATE, TraceState::Recording.description())?;
            w.connection.execute_batch("COMMIT")
        })?;
        Ok(writer)
    }

    /// Opens a finished trace of the current schema, so that its analysis can be redone.
    pub fn open(path: &Path) -> Result<Self, Error> {
        // The reader's checks, with its errors.
        let reader = crate::Reader::open(path)?;
        let truncated = reader.state() != TraceState::Complete;
        drop(reader);
        let mut writer = Self::over(path, "")?;
        writer.truncated = truncated;
        writer.attempt(|w| {
            w.strings = Strings::load(&w.connection)?;
            let mut statement = w.connection.prepare(
                "SELECT width, pitch, rows, slice_pitch, slices, id FROM access_pattern",
            )?;
            let rows = statement.query_map([], |row| {
                let mut shape = [0; 5];
                for (column, value) in shape.iter_mut().enumerate() {
                    *value = row.get::<_, i64>(column)? as u64;
                }
                Ok((shape, row.get(5)?))
            })?;
            w.patterns = rows.collect::<rusqlite::Result<_>>()?;
            w.findings =
                w.connection
                    .query_row("SELECT coalesce(max(id), 0) FROM finding", [], |row| row.get(0))?;
            Ok(())
        })?;
        Ok(writer)
    }

    fn over(path: &Path, first: &str) -> Result<Self, Error> {
        let open = || {
            let connection = Connection::open(path)?;
            connection.execute_batch(first)?;
            // A file system without shared memory answers with another mode, which does as well.
            connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
            connection.execute_batch("PRAGMA synchronous = NORMAL")?;
            let page_size = connection.query_row("PRAGMA page_size", [], |r| r.get::<_, i64>(0))?;
            Ok((connection, page_size as u64))
        };
        let (connection, page_size) = open().map_err(|e| Error::writing(path, e))?;
        Ok(Self {
            connection,
            path: path.to_owned(),
            page_size,
            strings: Strings::default(),
            patterns: HashMap::new(),
            operations: Vec::new(),
            accesses: Vec::new(),
            clock_base: None,
            findings: 0,
            truncated: false,
            stopped: false,
        })
    }

    /// Commits, marks the trace complete (or truncated, when the coverage says that operations are
    /// missing), builds the indexes and leaves one self-contained file that opens read-only
    /// anywhere. A stopped writer marks the trace truncated as far as that is still possible.
    ///
    /// # Errors
    /// As [`Writer::commit`]. The trace is readable in any case.
    pub fn finalize(mut self) -> Result<(), Error> {
        if self.stopped {
            // The failure was reported when it happened, and there may be no room for this either.
            let _ = self
                .put_meta(Meta::STATE, TraceState::Truncated.description())
                .and_then(|()| self.connection.execute_batch("COMMIT"))
                .and_then(|()| self.leave_wal());
            return Ok(());
        }
        let state = if self.truncated { TraceState::Truncated } else { TraceState::Complete };
        self.set_meta(Meta::STATE, state.description())?;
        self.commit()?;
        self.attempt(|w| {
            w.connection.execute_batch(&format!("BEGIN;\n{}COMMIT", index_statements()))?;
            w.leave_wal()
        })
    }

    fn leave_wal(&self) -> rusqlite::Result<()> {
        let left = self.connection.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()));
        match left.as_ref().map_err(rusqlite::Error::sqlite_error_code) {
            // Somebody reads the trace: the log is merged when the last one closes it.
            Err(Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked)) => {
                Ok(())
            }
            _ => left,
        }
    }
}

/// Removes an older trace with its side files, so that `-o` never destroys anything else.
fn remove_older_trace(path: &Path) -> Result<(), Error> {
    let refuse = |reason: String| Error::Open { path: path.to_owned(), reason };
    match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(refuse(error.to_string())),
        Ok(metadata) if !metadata.is_file() => {
            return Err(refuse("it is not a regular file; choose another name".to_owned()));
        }
        Ok(metadata) => {
            let ours = metadata.len() == 0
                || has_application_id(path).map_err(|error| refuse(error.to_string()))?;
            if !ours {
                return Err(refuse(
                    "it exists and is not a trace, so it is not overwritten; choose another name \
                     or remove it"
                        .to_owned(),
                ));
            }
            fs::remove_file(path).map_err(|error| refuse(error.to_string()))?;
        }
    }
    // A log without its database would be taken for the new file's.
    for suffix in ["-wal", "-shm", "-journal"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        match fs::remove_file(PathBuf::from(name)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(refuse(error.to_string()));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether the file's header says SQLite and trace.
fn has_application_id(path: &Path) -> std::io::Result<bool> {
    let mut header = Vec::new();
    fs::File::open(path)?.take(100).read_to_end(&mut header)?;
    Ok(header.len() == 100
        && header.starts_with(b"SQLite format 3\0")
        && header[68..72] == APPLICATION_ID.to_be_bytes())
}
