//! Borders that fences leave in mappings.
//!
//! The mappings of write-combined and managed memory stay split where their protection once changed,
//! as measured on an H200 (driver 580.159.04), and a process may have 65,530 mappings by default
//! (`vm.max_map_count`, Linux's `Documentation/admin-guide/sysctl/vm.rst`). At most [`MOST`] of them
//! are made by fences; then only borders are used that exist.

use core::sync::atomic::{AtomicU64, Ordering};

use super::memory::{Allocation, MemoryKind};
use super::pages::{PIECES, Pages};
use crate::spin::Spin;

const MOST: usize = 8192;

const PLACES: usize = 2 * MOST;
const FREE: u64 = 0;
/// Was a border. Others of its hash may lie behind it.
const GONE: u64 = 1;

/// The borders that were made.
struct Borders {
    lock: Spin,
    count: AtomicU64,
    list: [AtomicU64; PLACES],
}

static BORDERS: Borders = Borders::new();

impl Borders {
    const fn new() -> Self {
        Self {
            lock: Spin::new(),
            count: AtomicU64::new(0),
            list: [const { AtomicU64::new(FREE) }; PLACES],
        }
    }

    /// Notes a border; whether it is there, or there is room for it. The lock is held.
    fn note(&self, border: u64) -> bool {
        let first = (border.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize;
        let mut vacant = None;
        for step in 0..PLACES {
            let place = &self.list[(first + step) % PLACES];
            match place.load(Ordering::Relaxed) {
                known if known == border => return true,
                GONE => vacant = vacant.or(Some(place)),
                FREE => {
                    vacant = vacant.or(Some(place));
                    break;
                }
                _ => {}
            }
        }
        match vacant {
            Some(place) if self.count.load(Ordering::Relaxed) < MOST as u64 => {
                place.store(border, Ordering::Relaxed);
                self.count.fetch_add(1, Ordering::Relaxed);
                true
            }
            _ => false,
        }
    }

    fn forget(&self, start: u64, end: u64) {
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let _lock = self.lock.take();
        for place in &self.list {
            let border = place.load(Ordering::Relaxed);
            if border > GONE && (start..=end).contains(&border) {
                place.store(GONE, Ordering::Relaxed);
                self.count.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }
}

fn stays_split(kind: MemoryKind) -> bool {
    matches!(kind, MemoryKind::WriteCombined | MemoryKind::Managed)
}

/// Whether the pieces can be protected without more mappings than fences may make.
pub(super) fn is_room(allocation: &Allocation, pieces: &[Pages; PIECES]) -> bool {
    if !stays_split(allocation.kind) {
        return true;
    }
    let _lock = BORDERS.lock.take();
    let mut pieces = pieces.iter().filter(|piece| piece.start < piece.end);
    pieces.all(|piece| BORDERS.note(piece.start) && BORDERS.note(piece.end))
}

/// The memory is no more, and its mapping neither.
pub(super) fn forget(allocation: &Allocation) {
    if stays_split(allocation.kind) {
        BORDERS
            .forget(allocation.start, allocation.end.saturating_add(streamsan_wire::page_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_new_borders_take_room_and_freed_memory_gives_it_back() {
        let borders: Box<Borders> = Box::new(Borders::new());
        let at = |index: usize| (index as u64 + 2) << 12;
        assert!((0..MOST).all(|index| borders.note(at(index))));
        assert!(!borders.note(at(MOST)));
        assert!((0..MOST).all(|index| borders.note(at(index))));
        borders.forget(at(10), at(19));
        assert!((0..10).all(|index| borders.note(at(MOST + index))));
        assert!(!borders.note(at(10)));
    }
}
