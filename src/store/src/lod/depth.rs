//! Happens-before depth: the length of the longest documented chain that ends in an operation.
//!
//! A chain runs along a row, along the calls of a thread that the host itself carries out, and
//! along the documented edges that the analysis stored. What the device does between two calls of
//! one thread is in no chain: issuing orders nothing.

use rusqlite::Connection;
use std::collections::HashMap;
use streamsan_model::EdgeKind;

/// Depths of what later operations may follow.
#[derive(Debug)]
pub(super) struct Depths {
    /// Of the last operation of each row.
    rows: HashMap<i64, u64>,
    /// What the host knows, by thread.
    hosts: HashMap<i64, u64>,
    /// Operations at which edges begin, ascending, with their depth.
    sources: Vec<(u64, u64)>,
    row: i64,
    host: i64,
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
            rows: HashMap::new(),
            hosts: HashMap::new(),
            sources,
            row: 0,
            host: 0,
            depth: 0,
            reaches_host: false,
        })
    }

    /// Begins an operation of a row, called by a host thread.
    pub(super) fn begin(&mut self, row: i64, host: i64) {
        let of = |map: &HashMap<i64, u64>, key| map.get(&key).copied().unwrap_or(0);
        self.depth = of(&self.rows, row).max(of(&self.hosts, host)) + 1;
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
        self.rows.insert(self.row, self.depth);
        if self.reaches_host {
            self.hosts.insert(self.host, self.depth);
        }
        if let Ok(found) = self.sources.binary_search_by_key(&g, |&(g, _)| g) {
            self.sources[found].1 = self.depth;
        }
        self.depth
    }
}
