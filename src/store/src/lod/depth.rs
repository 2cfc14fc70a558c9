//! Happens-before depth: the length of the longest documented chain that ends in an operation.
//!
//! A chain runs along a row, along the calls of a thread that the host itself carries out, and
//! along the documented edges that the analysis stored. The device's work between two calls of one
//! thread is in no chain: issuing orders nothing.

use super::scan::slot;
use rusqlite::Connection;
use streamsan_model::EdgeKind;

/// Depths of what later operations may follow.
#[derive(Debug, Default)]
pub(super) struct Depths {
    /// Depth of the last operation of each row.
    rows: Vec<u64>,
    /// Depth that each host knows, by its thread's row.
    hosts: Vec<u64>,
    row: usize,
    host: usize,
    depth: u64,
    reaches_host: bool,
}

impl Depths {
    /// Begins an operation of a row, called by a host thread.
    pub(super) fn begin(&mut self, row: usize, host: usize) {
        self.depth = (*slot(&mut self.rows, row)).max(*slot(&mut self.hosts, host)) + 1;
        (self.row, self.host) = (row, host);
        self.reaches_host = row == host;
    }

    /// An edge that ends at it, with the depth of where it begins, if that is an earlier operation.
    pub(super) fn edge(&mut self, kind: i64, from: Option<u64>) {
        let to_host = [
            EdgeKind::EventHost,
            EdgeKind::StreamHost,
            EdgeKind::ContextHost,
            EdgeKind::Blocking,
            EdgeKind::HostThreads,
            EdgeKind::FileBatch,
        ];
        self.reaches_host |= to_host.iter().any(|&host| host as i64 == kind);
        self.depth = self.depth.max(from.map_or(0, |depth| depth + 1));
    }

    /// Its depth.
    pub(super) fn end(&mut self) -> u64 {
        self.rows[self.row] = self.depth;
        if self.reaches_host {
            self.hosts[self.host] = self.depth;
        }
        self.depth
    }
}

/// Depths of the operations at which edges begin, where these are known before.
#[derive(Debug)]
pub(super) struct Sources {
    /// Ascending.
    depths: Vec<(u64, u64)>,
    /// The first of these that is not before the operation.
    next: usize,
}

impl Sources {
    pub(super) fn new(connection: &Connection) -> rusqlite::Result<Self> {
        let mut statement = connection
            .prepare("SELECT DISTINCT from_op FROM edge WHERE tier = 0 ORDER BY from_op")?;
        let depths = statement
            .query_map([], |row| Ok((row.get::<_, i64>(0)? as u64, 0)))?
            .collect::<rusqlite::Result<_>>()?;
        Ok(Self { depths, next: 0 })
    }

    pub(super) fn depth(&self, g: u64) -> Option<u64> {
        let found = self.depths.binary_search_by_key(&g, |&(g, _)| g).ok()?;
        Some(self.depths[found].1)
    }

    /// The depth of the next operation.
    pub(super) fn set(&mut self, g: u64, depth: u64) {
        while self.depths.get(self.next).is_some_and(|&(source, _)| source < g) {
            self.next += 1;
        }
        if let Some((_, found)) = self.depths.get_mut(self.next).filter(|(at, _)| *at == g) {
            *found = depth;
        }
    }
}
