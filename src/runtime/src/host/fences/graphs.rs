//! The host memory that the copies and memsets of executable graphs touch.

use core::sync::atomic::{AtomicU64, Ordering};

use streamsan_wire::Api;
use streamsan_wire::node_kind::{EVENT_RECORD, HOST, MEMCPY, MEMSET};

use super::super::operands::{self, Does};
use super::place::{Tally, fence};
use super::{CLOCK, Pending, is_captured, memory};
use crate::spin::Spin;

/// Graphs that are kept, and ranges of each.
const GRAPHS: usize = 256;
const RANGES: usize = 64;

struct GraphRow {
    /// Handle of a graph, or of an executable; 0 for none.
    handle: AtomicU64,
    count: AtomicU64,
    /// Begin, and end doubled, with a one for what is written.
    ranges: [(AtomicU64, AtomicU64); RANGES],
}

static LOCK: Spin = Spin::new();
static NEXT: AtomicU64 = AtomicU64::new(0);
static ROWS: [GraphRow; GRAPHS] = [const {
    GraphRow {
        handle: AtomicU64::new(0),
        count: AtomicU64::new(0),
        ranges: [const { (AtomicU64::new(0), AtomicU64::new(0)) }; RANGES],
    }
}; GRAPHS];

/// The host memory that a graph touches, while the graph is being read.
pub(crate) struct GraphTouches {
    /// Host functions within fill and empty the buffers themselves.
    has_functions: bool,
    count: usize,
    ranges: [(u64, u64, bool); RANGES],
}

impl Default for GraphTouches {
    fn default() -> Self {
        Self { has_functions: false, count: 0, ranges: [(0, 0, false); RANGES] }
    }
}

impl GraphTouches {
    /// A node with the words of its structure.
    pub(crate) fn note(&mut self, kind: i32, words: Option<&[u64]>) {
        match (kind, words) {
            (HOST, _) => self.has_functions = true,
            (EVENT_RECORD, _) => CLOCK.events_in_graphs(),
            (MEMCPY, Some(words)) if words.len() >= 25 => {
                let mut put = |start: u64, len: u64, does, _, _| {
                    self.add(start, len, does == Does::Write);
                };
                // SAFETY: 200 bytes, a `CUDA_MEMCPY3D`.
                unsafe {
                    operands::each_of_box(words.as_ptr() as u64, &operands::VOLUME, &mut put);
                }
            }
            (MEMSET, Some(&[start, pitch, value, width, height])) => {
                let element = value >> 32;
                let rows = pitch.saturating_mul(height.saturating_sub(1));
                self.add(start, rows.saturating_add(width.saturating_mul(element)), true);
            }
            _ => {}
        }
    }

    fn add(&mut self, start: u64, len: u64, writes: bool) {
        let is_host = memory::TABLE.find(start).is_ok_and(|found| found.is_some());
        if let Some(range) = self.ranges.get_mut(self.count).filter(|_| is_host) {
            *range = (start, start.saturating_add(len).min(u64::MAX >> 1), writes);
            self.count += 1;
        }
    }

    /// All nodes of the graph were told.
    pub(crate) fn keep(&self, graph: u64) {
        let _lock = LOCK.take();
        let count = if self.has_functions { 0 } else { self.count };
        let known = find(graph);
        if count == 0 && known.is_none() {
            return;
        }
        let row = known.unwrap_or_else(|| take(graph));
        for (to, (start, end, writes)) in row.ranges.iter().zip(&self.ranges[..count]) {
            to.0.store(*start, Ordering::Relaxed);
            to.1.store(end << 1 | u64::from(*writes), Ordering::Relaxed);
        }
        row.count.store(count as u64, Ordering::Relaxed);
    }
}

fn find(handle: u64) -> Option<&'static GraphRow> {
    ROWS.iter().find(|row| row.handle.load(Ordering::Relaxed) == handle)
}

fn take(handle: u64) -> &'static GraphRow {
    let row =
        find(0).unwrap_or_else(|| &ROWS[NEXT.fetch_add(1, Ordering::Relaxed) as usize % GRAPHS]);
    row.handle.store(handle, Ordering::Relaxed);
    row
}

/// The executable does what the graph does.
pub(super) fn made(executable: u64, graph: u64) {
    let _lock = LOCK.take();
    if let Some(old) = find(executable) {
        old.handle.store(0, Ordering::Relaxed);
    }
    if let Some(row) = find(graph) {
        // The graph is read again when it becomes executable again.
        row.handle.store(executable, Ordering::Relaxed);
    }
}

/// It is no more, or does something else.
pub(super) fn forget(executable: u64) {
    let _lock = LOCK.take();
    if let Some(row) = find(executable) {
        row.handle.store(0, Ordering::Relaxed);
    }
}

/// The executable has been launched.
pub(super) fn launched(api: Api, words: &[u64], pending: &Pending) {
    if is_captured(api, words) {
        return;
    }
    let mut ranges = [(0, 0); RANGES];
    let mut count = 0;
    {
        let _lock = LOCK.take();
        if let Some(row) = find(words[0]) {
            count = (row.count.load(Ordering::Relaxed) as usize).min(RANGES);
            for (to, from) in ranges.iter_mut().zip(&row.ranges[..count]) {
                *to = (from.0.load(Ordering::Relaxed), from.1.load(Ordering::Relaxed));
            }
        }
    }
    let mut tally = Tally::default();
    for (start, end) in &ranges[..count] {
        let Ok(Some(allocation)) = memory::TABLE.find(*start) else { continue };
        if allocation.kind == memory::MemoryKind::Managed {
            continue;
        }
        let protection = if end & 1 == 1 { libc::PROT_NONE } else { libc::PROT_READ };
        let range = (*start, (end >> 1).min(allocation.end));
        tally.add(fence(range, &allocation, protection, pending, (api, false)));
    }
    tally.tell();
}

/// In a forked child.
pub(super) fn after_fork() {
    LOCK.reset();
}
