//! Beginning and finishing a trace file.

use super::batch::Batch;
use super::derived::Derived;
use super::findings::EdgeNumbers;
use super::finish::put_state;
use super::sums::Sums;
use super::{Worker, Writer};
use crate::schema::{APPLICATION_ID, create_statements, enumerations};
use crate::{Error, Meta, TraceState, proof};
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
    ///
    /// # Errors
    ///
    /// [`Error::NotATrace`] for another file of that name, [`Error::Open`] and [`Error::Full`]
    /// where the file cannot be created.
    pub fn create(path: &Path, meta: &Meta) -> Result<Self, Error> {
        remove_older_trace(path)?;
        let connect = || {
            let connection = Connection::open(path)?;
            // Into the file itself, not into the log: it tells a killed trace from other people's
            // files.
            connection.execute_batch(&format!("PRAGMA application_id = {APPLICATION_ID}"))?;
            enter_wal(&connection)?;
            create_schema(&connection, meta)?;
            Ok(connection)
        };
        let connection = connect().map_err(|e| Error::writing(path, e))?;
        Self::over(path, connection, Sums::default(), Derived::start())
    }

    /// Opens a finished trace of the current schema, so that its analysis can be repeated. Until
    /// the trace is finished again its state is `recording`.
    ///
    /// # Errors
    ///
    /// As [`crate::Reader::open`], and [`Error::Open`] for a file that cannot be written.
    pub fn open(path: &Path) -> Result<Self, Error> {
        // The reader's checks, with its errors.
        let state = crate::Reader::open(path)?.state();
        let failed = |e| Error::writing(path, e);
        let connect = || {
            let connection = Connection::open(path)?;
            enter_wal(&connection)?;
            let sums = Sums::of(&connection, proof::read(&connection)?.as_ref())?;
            connection.execute_batch("BEGIN")?;
            put_state(&connection, TraceState::Recording)?;
            proof::erase(&connection)?;
            connection.execute_batch("COMMIT")?;
            Ok((connection, sums))
        };
        let (connection, sums) = connect().map_err(failed)?;
        let strings = stored_strings(&connection).map_err(failed)?;
        let patterns = stored_patterns(&connection).map_err(failed)?;
        let findings = connection
            .query_row("SELECT coalesce(max(id), 0) FROM finding", [], |row| row.get(0))
            .map_err(failed)?;
        let edges = connection
            .query_row("SELECT count(*) FROM edge", [], |row| row.get(0))
            .map_err(failed)?;
        let edge_numbers = EdgeNumbers::behind(edges);
        let truncated = state != TraceState::Complete;
        let writer = Self::over(path, connection, sums, Derived::read_back())?;
        let last_string = strings.values().copied().max().unwrap_or(0);
        Ok(Self { strings, last_string, patterns, findings, edge_numbers, truncated, ..writer })
    }

    fn over(
        path: &Path,
        connection: Connection,
        sums: Sums,
        derived: Derived,
    ) -> Result<Self, Error> {
        let page_size: i64 = connection
            .query_row("PRAGMA page_size", [], |row| row.get(0))
            .map_err(|e| Error::writing(path, e))?;
        let worker = Worker::start(connection, sums, derived)
            .map_err(|e| Error::Open { path: path.to_owned(), reason: e.to_string() })?;
        Ok(Self {
            worker,
            path: path.to_owned(),
            page_size: page_size as u64,
            strings: HashMap::new(),
            last_string: 0,
            range_names: 0,
            patterns: HashMap::new(),
            operations: Vec::new(),
            batch: Box::default(),
            clock_base: None,
            findings: 0,
            edge_numbers: EdgeNumbers::default(),
            commits_begun: 0,
            truncated: false,
            stopped: false,
        })
    }

    /// Commits, builds the indexes, leaves one self-contained file that opens read-only anywhere,
    /// and last of all marks the trace complete (or truncated, when the coverage says that
    /// operations are missing). After a failure the trace is marked truncated as far as that is
    /// still possible; it is complete only where this function succeeds.
    ///
    /// # Errors
    /// As [`Writer::commit`]. The trace is readable in any case.
    pub fn finalize(mut self) -> Result<(), Error> {
        if self.stopped {
            // Why was said when it stopped.
            let _ = self.worker.finish(true);
            return Ok(());
        }
        let flushed = self.flush();
        let finished = self.worker.finish(self.truncated);
        let ended = flushed.and_then(|()| self.alive(finished)).and_then(|()| self.check());
        if ended.is_err() {
            let _ = self.worker.finish(true);
        }
        ended
    }
}

fn enter_wal(connection: &Connection) -> rusqlite::Result<()> {
    // A file system without shared memory answers with another mode, which does as well.
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    connection.execute_batch(&format!(
        "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}"
    ))
}

fn create_schema(connection: &Connection, meta: &Meta) -> rusqlite::Result<()> {
    connection.execute_batch(&format!("BEGIN;\n{}", create_statements()))?;
    for (name, words) in enumerations() {
        for (code, word) in words.iter().enumerate() {
            connection
                .prepare_cached("INSERT INTO enumeration VALUES (?, ?, ?)")?
                .execute(params![name, code as i64, word])?;
        }
    }
    let mut facts = meta.rows();
    facts.insert(Meta::STATE.to_owned(), TraceState::Recording.description().to_owned());
    let facts = Batch { meta: facts.into_iter().collect(), ..Batch::default() };
    facts.insert(connection, &mut Sums::default())?;
    connection.execute_batch("COMMIT")
}

fn stored_strings(connection: &Connection) -> rusqlite::Result<HashMap<std::sync::Arc<str>, i64>> {
    let mut statement = connection.prepare("SELECT value, id FROM string")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

fn stored_patterns(connection: &Connection) -> rusqlite::Result<HashMap<crate::row::Shape, i64>> {
    let mut statement = connection
        .prepare("SELECT width, pitch, rows, slice_pitch, slices, id FROM access_pattern")?;
    let rows = statement.query_map([], |row| {
        let mut shape = [0; 5];
        for (column, value) in shape.iter_mut().enumerate() {
            *value = row.get::<_, i64>(column)? as u64;
        }
        Ok((shape, row.get(5)?))
    })?;
    rows.collect()
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
            if is_in_use(path) {
                return Err(refuse(
                    "another run is recording into it, or a viewer has it open; choose another \
                     name, or wait"
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

/// Whether another process has an unfinished trace open. Only the last process that closes the
/// trace can leave a log.
fn is_in_use(path: &Path) -> bool {
    let leave_log = |connection: Connection| {
        connection.busy_timeout(std::time::Duration::ZERO)?;
        connection.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()))
    };
    let failure = Connection::open(path).and_then(leave_log).err();
    failure.and_then(|error| error.sqlite_error_code()) == Some(rusqlite::ErrorCode::DatabaseBusy)
}

/// Whether the file's header says SQLite and trace.
fn has_application_id(path: &Path) -> std::io::Result<bool> {
    let mut header = Vec::new();
    fs::File::open(path)?.take(100).read_to_end(&mut header)?;
    Ok(header.len() == 100
        && header.starts_with(b"SQLite format 3\0")
        && header[68..72] == APPLICATION_ID.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reader;
    use chrono::DateTime;
    use streamsan_model::{
        Access, Action, AllocationId, Basis, ByteRange, Entity, Extent, IncompleteReason, Mode,
        OpSeq, Operation, Process, ProcessId, Status, Thread, ThreadId, TraceItem,
    };

    fn operation(g: u64) -> TraceItem {
        TraceItem::Operation(Operation {
            g: OpSeq(g),
            exit: Some(OpSeq(g)),
            process: ProcessId(0),
            thread: ThreadId(0),
            api: "cuCtxSynchronize".into(),
            time: None,
            status: Status::SUCCESS,
            action: Action::Other,
            accesses: vec![],
            stack: None,
        })
    }

    /// The process and the thread of the operations.
    fn caller() -> [TraceItem; 2] {
        let (process, arguments) = (ProcessId(0), vec![]);
        let (pid, parent_pid, executable) = (1, 0, String::new());
        let entities = [
            Entity::Process(Process { id: process, pid, parent_pid, executable, arguments }),
            Entity::Thread(Thread { id: ThreadId(0), process, tid: 1 }),
        ];
        entities.map(TraceItem::Entity)
    }

    fn writer(path: &Path) -> Writer {
        let meta = Meta {
            tool_version: String::new(),
            started_at: DateTime::UNIX_EPOCH,
            command: vec![],
            host: String::new(),
            driver: String::new(),
            extra: Default::default(),
        };
        Writer::create(path, &meta).unwrap()
    }

    /// SQLite answers a file that may not grow as it answers a full disk.
    #[test]
    fn full_disk_stops_the_writer_and_keeps_what_was_committed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.db");
        drop(writer(&path));
        let connection = Connection::open(&path).unwrap();
        enter_wal(&connection).unwrap();
        connection.pragma_update_and_check(None, "max_page_count", 60, |_| Ok(())).unwrap();
        let mut writer =
            Writer::over(&path, connection, Sums::default(), Derived::start()).unwrap();
        let committed: Vec<TraceItem> =
            caller().into_iter().chain((0..100).map(operation)).collect();
        committed.iter().for_each(|item| writer.item(item).unwrap());
        writer.begin_commit().unwrap();
        let error = (100..100_000)
            .find_map(|g| writer.item(&operation(g)).err())
            .expect("a hundred thousand operations need more than sixty pages");
        assert!(matches!(error, Error::Full { .. }), "{error}");
        assert!(!error.to_string().contains('\n'));

        // The caller goes on; nothing more is stored, and what was committed before is.
        assert!(writer.is_stopped());
        assert_eq!((writer.commits_begun(), writer.commits_done()), (1, 1));
        assert!(matches!(writer.item(&operation(200_000)), Err(Error::Stopped)));
        assert!(matches!(writer.replace_accesses(OpSeq(1), &[]), Err(Error::Stopped)));
        assert!(matches!(writer.commit(), Err(Error::Stopped)));
        writer.finalize().unwrap();

        let reader = Reader::open(&path).unwrap();
        assert_eq!(reader.state(), TraceState::Truncated);
        assert_eq!(reader.incomplete_reasons().unwrap(), [IncompleteReason::TruncatedTrace]);
        let stored: Vec<TraceItem> = reader.items().map(Result::unwrap).collect();
        assert_eq!(stored, committed);
    }

    #[test]
    fn operation_that_does_not_fit_the_schema_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = writer(&folder.path().join("trace.db"));
        let TraceItem::Operation(mut large) = operation(1 << 40) else { unreachable!() };
        writer.item(&TraceItem::Operation(large.clone())).unwrap();
        large.accesses.push(Access {
            allocation: AllocationId(0),
            extent: Extent::Range(ByteRange::new(0, 1)),
            mode: Mode::Read,
            basis: Basis::Exact,
        });
        let error = writer.item(&TraceItem::Operation(large)).unwrap_err();
        assert!(matches!(error, Error::Unstorable { op, .. } if op == 1 << 40), "{error}");
    }

    #[test]
    fn trace_that_is_being_recorded_is_not_replaced() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("trace.db");
        let meta = Meta {
            tool_version: String::new(),
            started_at: DateTime::UNIX_EPOCH,
            command: vec![],
            host: String::new(),
            driver: String::new(),
            extra: Default::default(),
        };
        let first = Writer::create(&path, &meta).expect("created");
        let error = Writer::create(&path, &meta).expect_err("in use");
        assert!(error.to_string().contains("another run"), "{error}");
        first.finalize().expect("finished");
        // Also one that was never finished.
        drop(Writer::create(&path, &meta).expect("replaced"));
        Writer::create(&path, &meta).expect("replaced again");
    }
}
