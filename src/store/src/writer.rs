//! Writing a trace.

use crate::{Coverage, Error, Meta};
use std::path::Path;
use streamsan_model::{Access, Edge, Finding, OpSeq, TraceItem};

/// Writes one trace file. Nothing is durable before [`Writer::commit`].
#[derive(Debug)]
pub struct Writer {
    connection: rusqlite::Connection,
}

impl Writer {
    /// Creates the file, replacing an older one of that name.
    pub fn create(path: &Path, meta: &Meta) -> Result<Self, Error> {
        let _ = meta;
        let connection = rusqlite::Connection::open(path)
            .map_err(|source| Error::Sql { path: path.to_owned(), source })?;
        Ok(Self { connection })
    }

    /// Opens a finished trace, so that its analysis can be redone.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let connection = rusqlite::Connection::open(path)
            .map_err(|source| Error::Sql { path: path.to_owned(), source })?;
        Ok(Self { connection })
    }

    /// Stores the next item.
    pub fn item(&mut self, _item: &TraceItem) -> Result<(), Error> {
        Ok(())
    }

    /// Puts the accesses of operation `g` in place of those it has (they arrived late).
    pub fn replace_accesses(&mut self, _g: OpSeq, _accesses: &[Access]) -> Result<(), Error> {
        Ok(())
    }

    /// Stores a synchronisation edge.
    pub fn edge(&mut self, _edge: &Edge) -> Result<(), Error> {
        Ok(())
    }

    /// Stores a finding.
    pub fn finding(&mut self, _finding: &Finding) -> Result<(), Error> {
        Ok(())
    }

    /// Forgets all edges and findings.
    pub fn clear_analysis(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Puts this coverage in place of the one stored so far.
    pub fn set_coverage(&mut self, _coverage: &Coverage) -> Result<(), Error> {
        Ok(())
    }

    /// Sets one fact about the recording.
    pub fn set_meta(&mut self, _key: &str, _value: &str) -> Result<(), Error> {
        Ok(())
    }

    /// Makes everything so far survive the death of this process, and visible to readers.
    pub fn commit(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Size of the trace in bytes, for `--max-trace` (without the indexes that finalising adds).
    pub fn size_bytes(&self) -> u64 {
        0
    }

    /// Whether an earlier failure ended the storing; every call then answers [`Error::Stopped`].
    pub fn is_stopped(&self) -> bool {
        self.connection.is_busy()
    }

    /// Builds the indexes, marks the trace complete (truncated after a failure) and leaves one
    /// self-contained file that opens read-only anywhere.
    pub fn finalize(self) -> Result<(), Error> {
        Ok(())
    }
}
