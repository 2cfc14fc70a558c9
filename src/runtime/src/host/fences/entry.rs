//! One fence: the pieces that a fault lifts, and the operation that they are for.
//!
//! A piece is moved from state to state by compare and exchange: see [`super::table`].

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use super::budget::SiteIndex;
use super::pages::{PIECES, Pages, protect};

pub(super) const OPEN: i32 = libc::PROT_READ | libc::PROT_WRITE;

// States of a piece.
pub(super) const OFF: u32 = 0;
pub(super) const UP: u32 = 1;
/// The holder of the lock changes its protection.
pub(super) const MOVING: u32 = 2;
/// It was touched meanwhile: the holder of the lock opens it again.
pub(super) const CANCELLED: u32 = 3;
/// A thread has touched it and records that.
pub(super) const CLAIMED: u32 = 4;

pub(super) struct Piece {
    pub(super) start: AtomicU64,
    pub(super) end: AtomicU64,
    pub(super) state: AtomicU32,
    pub(super) protection: AtomicU32,
    /// Whether it is to be closed again at the next driver call, and how often it was.
    pub(super) again: AtomicBool,
    pub(super) agains: AtomicU32,
}

impl Piece {
    const fn new() -> Self {
        Self {
            start: AtomicU64::new(0),
            end: AtomicU64::new(0),
            state: AtomicU32::new(OFF),
            protection: AtomicU32::new(0),
            again: AtomicBool::new(false),
            agains: AtomicU32::new(0),
        }
    }

    pub(super) fn pages(&self) -> Pages {
        Pages { start: self.start.load(Ordering::SeqCst), end: self.end.load(Ordering::SeqCst) }
    }

    pub(super) fn change(&self, from: u32, to: u32) -> bool {
        self.state.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Ends [`MOVING`] after the pages were protected: whether the fence stands now.
    pub(super) fn set_up(&self) -> bool {
        if self.change(MOVING, UP) {
            return true;
        }
        protect(self.pages(), OPEN);
        self.state.store(OFF, Ordering::SeqCst);
        false
    }
}

pub(super) struct FenceEntry {
    /// Whether it is one. Changed by the holder of the lock.
    pub(super) live: AtomicBool,
    /// Placed only when so many host functions of its slot are over.
    pub(super) waits: AtomicU64,
    pub(super) slot: AtomicU32,
    pub(super) site: AtomicU32,
    pub(super) kernel: AtomicBool,
    /// The protection that its pieces were first given.
    pub(super) protection: AtomicU32,
    pub(super) ticket: AtomicU64,
    /// The operation's bytes.
    pub(super) start: AtomicU64,
    pub(super) end: AtomicU64,
    pub(super) pieces: [Piece; PIECES],
}

/// A fence to be placed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fence {
    pub(super) slot: usize,
    pub(super) ticket: u64,
    /// Host functions of the slot that must be over first.
    pub(super) waits: u64,
    pub(super) kernel: bool,
    pub(super) site: SiteIndex,
    /// The operation's bytes.
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) pieces: [Pages; PIECES],
    pub(super) protection: i32,
}

impl FenceEntry {
    pub(super) const fn new() -> Self {
        Self {
            live: AtomicBool::new(false),
            waits: AtomicU64::new(0),
            slot: AtomicU32::new(0),
            site: AtomicU32::new(0),
            kernel: AtomicBool::new(false),
            protection: AtomicU32::new(0),
            ticket: AtomicU64::new(0),
            start: AtomicU64::new(0),
            end: AtomicU64::new(0),
            pieces: [const { Piece::new() }; PIECES],
        }
    }

    /// Makes a fence of it that does not stand yet. The lock is held.
    pub(super) fn fill(&self, fence: &Fence) {
        for (piece, pages) in self.pieces.iter().zip(&fence.pieces) {
            piece.state.store(OFF, Ordering::SeqCst);
            piece.start.store(pages.start, Ordering::SeqCst);
            piece.end.store(pages.end, Ordering::SeqCst);
            piece.protection.store(fence.protection as u32, Ordering::SeqCst);
            piece.again.store(false, Ordering::SeqCst);
            piece.agains.store(0, Ordering::SeqCst);
        }
        self.protection.store(fence.protection as u32, Ordering::SeqCst);
        self.site.store(fence.site.0, Ordering::SeqCst);
        self.slot.store(fence.slot as u32, Ordering::SeqCst);
        self.ticket.store(fence.ticket, Ordering::SeqCst);
        self.kernel.store(fence.kernel, Ordering::SeqCst);
        self.start.store(fence.start, Ordering::SeqCst);
        self.end.store(fence.end, Ordering::SeqCst);
        self.waits.store(fence.waits, Ordering::SeqCst);
        self.live.store(true, Ordering::SeqCst);
    }
}

/// Pieces side by side that were taken together.
pub(super) struct PieceRun {
    pub(super) first: usize,
    pub(super) last: usize,
    pub(super) pages: Pages,
}

pub(super) fn runs(
    entry: &FenceEntry,
    take: impl Fn(&Piece) -> bool,
) -> impl Iterator<Item = PieceRun> {
    let mut found: [Option<PieceRun>; PIECES] = [const { None }; PIECES];
    let mut count = 0usize;
    for (index, piece) in entry.pieces.iter().enumerate() {
        if !take(piece) {
            continue;
        }
        let pages = piece.pages();
        match count.checked_sub(1).and_then(|last: usize| found[last].as_mut()) {
            Some(run) if run.last + 1 == index && run.pages.end == pages.start => {
                run.last = index;
                run.pages.end = pages.end;
            }
            _ => {
                found[count] = Some(PieceRun { first: index, last: index, pages });
                count += 1;
            }
        }
    }
    found.into_iter().flatten()
}
