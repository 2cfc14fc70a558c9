//! Opening a trace: which files are refused, and how an unfinished file is read.

use super::Reader;
use super::proven::Proven;
use super::upgrade::upgrade;
use crate::schema::{APPLICATION_ID, expected};
use crate::{Error, Meta, SCHEMA_VERSION, TraceState};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::cell::{Cell, RefCell};
use std::fs;
use std::path::{Path, PathBuf};

impl Reader {
    /// Opens a trace read-only: a finished one, one still being recorded, or one whose writer was
    /// killed.
    ///
    /// # Errors
    /// [`Error::Open`], [`Error::NotATrace`], [`Error::TooNew`] or [`Error::Corrupt`].
    pub fn open(path: &Path) -> Result<Self, Error> {
        check_file(path)?;
        let connection = match connect(path, false) {
            // A write-ahead log cannot be opened without its shared memory, which in turn cannot
            // be made where nothing may be written. Without log, the file alone is the trace.
            Err(Error::Open { .. }) if !has_log(path) => {
                connect(path, true).map_err(|error| reason(path, error))?
            }
            other => other.map_err(|error| reason(path, error))?,
        };
        let reader = Self {
            connection,
            path: path.to_owned(),
            proven: Proven::default(),
            state: Cell::new(TraceState::Recording),
            lod: RefCell::default(),
            live: RefCell::default(),
            unseen: Cell::default(),
        };
        reader.begin_state(reader.stored_state()?)?;
        Ok(reader)
    }

    /// Takes over the trace's state, and its proof if it is finished.
    pub(super) fn begin_state(&self, state: TraceState) -> Result<(), Error> {
        self.state.set(state);
        self.read_proof()
    }

    /// The state that the file stores.
    pub(super) fn stored_state(&self) -> Result<TraceState, Error> {
        let word = self.meta_rows()?.remove(Meta::STATE);
        word.and_then(|word| TraceState::parse(&word))
            .ok_or_else(|| self.corrupt("fact state of `meta`"))
    }
}

fn check_file(path: &Path) -> Result<(), Error> {
    let refuse = |reason: String| Error::Open { path: path.to_owned(), reason };
    let metadata = fs::metadata(path).map_err(|error| refuse(error.to_string()))?;
    if metadata.is_dir() {
        return Err(refuse("it is a directory".to_owned()));
    }
    // SQLite takes an empty file for an empty database.
    if metadata.len() == 0 { Err(Error::NotATrace { path: path.to_owned() }) } else { Ok(()) }
}

/// The reason why the file cannot be opened, in the words of the system. Called only after a
/// failure: closing a file that another connection of this process has open would release that
/// connection's locks.
fn reason(path: &Path, error: Error) -> Error {
    match (error, fs::File::open(path).err()) {
        (Error::Open { path, .. }, Some(system)) => {
            Error::Open { path, reason: system.to_string() }
        }
        (error, _) => error,
    }
}

/// Whether a write-ahead log with anything in it lies beside the file.
fn has_log(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    fs::metadata(PathBuf::from(log)).is_ok_and(|metadata| metadata.len() > 0)
}

/// Connects and checks identity and version. `immutable` reads the file as it lies there, without
/// log and locks.
fn connect(path: &Path, immutable: bool) -> Result<Connection, Error> {
    let failed = |source| Error::reading(path, source);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = if immutable {
        Connection::open_with_flags(uri(path), flags)
    } else {
        Connection::open_with_flags(path, flags - OpenFlags::SQLITE_OPEN_URI)
    }
    .map_err(failed)?;
    restrain(&connection).map_err(failed)?;
    let number = |name: &str| {
        connection
            .query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i32>(0))
            .map_err(failed)
    };
    if number("application_id")? != APPLICATION_ID {
        return Err(Error::NotATrace { path: path.to_owned() });
    }
    let version = number("user_version")?;
    if let Some(misfit) = expected::misfit(&connection, version).map_err(failed)? {
        return Err(Error::Damaged { path: path.to_owned(), detail: misfit });
    }
    match version {
        SCHEMA_VERSION => Ok(connection),
        found if found > SCHEMA_VERSION => {
            Err(Error::TooNew { path: path.to_owned(), found, supported: SCHEMA_VERSION })
        }
        found if upgrade(&connection, found).map_err(failed)? => Ok(connection),
        _ => Err(Error::Corrupt {
            path: path.to_owned(),
            detail: "its recording ended before it began".to_owned(),
        }),
    }
}

/// Restrains SQLite, because the file may come from anybody: nothing in it may run, and SQLite must
/// check what it relies on.
fn restrain(connection: &Connection) -> rusqlite::Result<()> {
    for (setting, value) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        // Only those in the file: the ones that stand for tables of earlier schemas are our own.
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
        (DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, false),
    ] {
        connection.set_db_config(setting, value)?;
    }
    connection.execute_batch("PRAGMA cell_size_check = ON")
}

fn uri(path: &Path) -> String {
    use std::fmt::Write;
    use std::os::unix::ffi::OsStrExt;
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut uri = "file://".to_owned();
    for &byte in absolute.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02x}");
        }
    }
    uri + "?immutable=1"
}

#[cfg(test)]
mod tests {
    use super::{connect, uri};
    use crate::{Meta, Reader, Writer};
    use chrono::DateTime;
    use std::path::Path;

    #[test]
    fn names_of_any_kind_become_addresses() {
        assert_eq!(uri(Path::new("/a b/%?#.db")), "file:///a%20b/%25%3f%23.db?immutable=1");
    }

    /// The error for a directory without write permission.
    #[test]
    fn unfinished_trace_without_its_log_opens_as_it_lies() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a trace.db");
        let meta = Meta {
            tool_version: "0".to_owned(),
            started_at: DateTime::UNIX_EPOCH,
            command: vec![],
            host: String::new(),
            driver: String::new(),
            extra: Default::default(),
        };
        drop(Writer::create(&path, &meta).unwrap());
        assert!(connect(&path, true).is_ok());
        assert_eq!(Reader::open(&path).unwrap().meta().unwrap(), meta);
    }
}
