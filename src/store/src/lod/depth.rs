//! Happens-before depth: the length of the longest documented chain that ends in an operation.
//!
//! A chain runs along a row, along the calls of a thread that the host itself carries out, and
//! along the documented edges that the analysis stored. What the device does between two calls of
//! one thread is in no chain: issuing orders nothing.

use super::scan::slot;
use rusqlite::Connection;
use streamsan_model::EdgeKind;

/// Depths of what later operations may follow.
#[derive(Debug)]
pub(super) struct Depths {
    /// Of the last operation of each row.
    rows: Vec<u64>,
    /// What the host knows, by its thread's row.
    hosts: Vec<u64>,
    /// Operations at which edges begin, ascending, with their depth.
    sources: Vec<(u64, u64)>,
    /// The first of these that is not before the operation.
    source: usize,
    row: usize,
    host: usize,
    depth: u64,
    reaches_host: bool,
}

impl Depths {
    pub(super) fn new(connection: &Connection) -> rusqlite::Result<Self> {
        let mut statement = connection
            .prepare("SELECT DISTINCT from_op FROM edge WHERE tier = 0 ORDER BY from_op")?;
        let sources = statement
            .query_map([], |row| Ok((row.get::<_, i64>(0)? as u64, 0)))?
            .collect::<rusqlite::Result<_>>()?;
        Ok(Self {
            rows: Vec::new(),
            hosts: Vec::new(),
            sources,
            source: 0,
            row: 0,
            host: 0,
            depth: 0,
            reaches_host: false,
        })
    }

    /// Begins an operation of a row, called by a host thread.
    pub(super) fn begin(&mut self, row: usize, host: usize) {
        self.depth = (*slot(&mut self.rows, row)).max(*slot(&mut self.hosts, host)) + 1;
        (self.row, self.host) = (row, host);
        self.reaches_host = row == host;
    }

    /// An edge that ends at it.
    pub(super) fn edge(&mut self, g: u64, from: u64, kind: i64) {
        let to_host = [
            EdgeKind::EventHost,
            EdgeKind::StreamHost,
            EdgeKind::ContextHost,
            EdgeKind::Blocking,
            EdgeKind::HostThreads,
            EdgeKind::FileBatch,
        ];
        self.reaches_host |= to_host.iter().any(|&host| host as i64 == kind);
        if from < g
            && let Ok(found) = self.sources.binary_search_by_key(&from, |&(g, _)| g)
        {
            self.depth = self.depth.max(self.sources[found].1 + 1);
        }
    }

    /// Its depth.
    pub(super) fn end(&mut self, g: u64) -> u64 {
        self.rows[self.row] = self.depth;
        if self.reaches_host {
            self.hosts[self.host] = self.depth;
        }
        while self.sources.get(self.source).is_some_and(|&(source, _)| source < g) {
            self.source += 1;
        }
        if let Some((_, depth)) = self.sources.get_mut(self.source).filter(|(at, _)| *at == g) {
            *depth = self.depth;
        }
        self.depth
    }
}
