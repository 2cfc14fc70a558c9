//! The fences that stand.
//!
//! One lock serialises who places and who lifts; it is never held across a driver call, and the
//! fault handler never takes it. A piece of a fence is moved from state to state by compare and
//! exchange, so that the handler, which may have interrupted anybody, and who holds the lock agree.
//! A page that two fences cover keeps the stricter protection, as far as that is cheap: a fence that
//! is open where it should not be costs a finding, nothing else.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use streamsan_wire::NotFenced;

use super::budget::SiteIndex;
use super::entry::{CANCELLED, CLAIMED, Fence, FenceEntry, MOVING, OFF, OPEN, Piece, UP, runs};
use super::in_use;
use super::memory::Allocation;
use super::pages::{Pages, protect};
use crate::spin::Spin;

const ENTRIES: usize = 1024;
/// Entries of one word of the map of those that are in use.
const BITS: usize = 64;
/// How often a piece is closed again that was touched beside the operation's bytes.
const MOST_AGAIN: u32 = 3;

/// All fences of the process.
pub(super) struct FenceTable {
    lock: Spin,
    live: AtomicU32,
    /// A bit for each entry that is one, so that nobody looks at the others.
    map: [AtomicU64; ENTRIES / BITS],
    /// Pieces to be closed again.
    agains: AtomicU32,
    /// Changes whenever a fence is placed or lifted.
    moves: AtomicU64,
    entries: [FenceEntry; ENTRIES],
}

/// The kind of a fault inside the watched memory.
pub(super) enum Fault {
    /// The calling thread has it: to be recorded and then to be let go of with [`FenceTable::open`].
    Claimed(Claim),
    /// Another thread is at it: look again.
    Again,
    /// No fence is there.
    Nothing,
}

/// A piece that the calling thread's touch has claimed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Claim {
    entry: usize,
    piece: usize,
    pub(super) kernel: bool,
    pub(super) site: SiteIndex,
    /// Whether the byte is none of the operation's.
    pub(super) beside: bool,
}

pub(super) static TABLE: FenceTable = FenceTable::new();

impl FenceTable {
    const fn new() -> Self {
        Self {
            lock: Spin::new(),
            live: AtomicU32::new(0),
            map: [const { AtomicU64::new(0) }; ENTRIES / BITS],
            agains: AtomicU32::new(0),
            moves: AtomicU64::new(0),
            entries: [const { FenceEntry::new() }; ENTRIES],
        }
    }

    pub(super) fn moves(&self) -> u64 {
        self.moves.load(Ordering::SeqCst)
    }

    /// Whether any fence stands, or waits for a host function.
    #[inline]
    pub(super) fn any(&self) -> bool {
        self.live.load(Ordering::SeqCst) != 0
    }

    /// The entries that are fences, as far as nobody changes that meanwhile.
    fn used(&self) -> impl Iterator<Item = (usize, &FenceEntry)> {
        self.map.iter().enumerate().flat_map(move |(word, bits)| {
            let mut left = bits.load(Ordering::SeqCst);
            core::iter::from_fn(move || {
                let bit = left.trailing_zeros() as usize;
                left &= left.wrapping_sub(1);
                (bit < BITS).then(|| word * BITS + bit)
            })
            .map(move |index| (index, &self.entries[index]))
            .filter(|(_, entry)| entry.live.load(Ordering::SeqCst))
        })
    }

    /// An entry that is free. The lock is held.
    fn vacant(&self) -> Option<usize> {
        self.map.iter().enumerate().find_map(|(word, bits)| {
            let bit = bits.load(Ordering::SeqCst).trailing_ones() as usize;
            (bit < BITS).then(|| word * BITS + bit)
        })
    }

    /// Places a fence, unless `is_over` says that its work has been acquired meanwhile, or lets it
    /// wait for host functions, of which `finished` tells how many are over. `None` where there is
    /// no room; else whether the system has protected the pages.
    pub(super) fn place(
        &self,
        fence: &Fence,
        finished: impl Fn() -> u64,
        is_over: impl Fn() -> bool,
    ) -> Option<bool> {
        let _lock = self.lock.take();
        let at = self.vacant()?;
        let entry = &self.entries[at];
        entry.fill(fence);
        self.map[at / BITS].fetch_or(1 << (at % BITS), Ordering::SeqCst);
        // Who acquires raises the clock first and looks at this count then.
        self.live.fetch_add(1, Ordering::SeqCst);
        if is_over() {
            self.forget(at);
            return Some(true);
        }
        if finished() < fence.waits {
            return Some(true);
        }
        entry.waits.store(0, Ordering::SeqCst);
        let placed = self.raise(entry, |_| true);
        if !placed {
            self.lower(entry);
            self.forget(at);
        }
        Some(placed)
    }

    /// Protects the pages of an entry, as far as no system call uses them at the moment. The lock is
    /// held.
    fn raise(&self, entry: &FenceEntry, which: impl Fn(&Piece) -> bool) -> bool {
        self.moves.fetch_add(1, Ordering::SeqCst);
        let mut done = true;
        for run in runs(entry, |piece| {
            let pages = piece.pages();
            if pages.start >= pages.end || !which(piece) {
                return false;
            }
            if in_use::LIST.meets(pages) {
                super::count_not_fenced(NotFenced::InUse);
                return false;
            }
            piece.change(OFF, MOVING)
        }) {
            let protection = entry.pieces[run.first].protection.load(Ordering::SeqCst) as i32;
            done &= self.protect_strictly(run.pages, protection);
            entry.pieces[run.first..=run.last].iter().for_each(|piece| {
                piece.set_up();
            });
        }
        done
    }

    /// Protects pages, but opens nothing that another fence closes. The lock is held.
    fn protect_strictly(&self, pages: Pages, protection: i32) -> bool {
        let done = protect(pages, protection);
        if protection != libc::PROT_NONE {
            self.raise_others(pages);
        }
        done
    }

    /// Protects again what other fences want closed among these pages. The lock is held.
    fn raise_others(&self, pages: Pages) {
        if self.live.load(Ordering::SeqCst) <= 1 {
            return;
        }
        for (_, entry) in self.used() {
            for piece in &entry.pieces {
                let Some(common) = piece.pages().common(pages) else { continue };
                if piece.change(UP, MOVING) {
                    protect(common, piece.protection.load(Ordering::SeqCst) as i32);
                    piece.set_up();
                }
            }
        }
    }

    /// Opens what is still closed of an entry. The lock is held.
    fn lower(&self, entry: &FenceEntry) {
        self.moves.fetch_add(1, Ordering::SeqCst);
        for run in runs(entry, |piece| piece.change(UP, MOVING)) {
            if !protect(run.pages, OPEN) {
                // A border inside a mapping may be one too many; those of the whole exist.
                let last = entry.pieces.iter().map(|piece| piece.pages().end).max();
                let start = entry.pieces[0].pages().start;
                protect(Pages { start, end: last.unwrap_or(start) }, OPEN);
            }
            entry.pieces[run.first..=run.last]
                .iter()
                .for_each(|piece| piece.state.store(OFF, Ordering::SeqCst));
            self.raise_others(run.pages);
        }
        // A thread that has touched a piece opens it when it has recorded that.
        for piece in &entry.pieces {
            while piece.state.load(Ordering::SeqCst) == CLAIMED {
                // SAFETY: no preconditions.
                unsafe { libc::sched_yield() };
            }
        }
    }

    fn forget(&self, at: usize) {
        self.entries[at].live.store(false, Ordering::SeqCst);
        self.map[at / BITS].fetch_and(!(1 << (at % BITS)), Ordering::SeqCst);
        self.live.fetch_sub(1, Ordering::SeqCst);
    }

    /// Closes again what was touched beside the bytes of its operation, after a driver call.
    #[inline]
    pub(super) fn close_again(&self) {
        if self.agains.load(Ordering::SeqCst) != 0 {
            self.close_all_again();
        }
    }

    #[cold]
    fn close_all_again(&self) {
        let _lock = self.lock.take();
        self.agains.store(0, Ordering::SeqCst);
        for (_, entry) in self.used() {
            let first = entry.protection.load(Ordering::SeqCst);
            for piece in &entry.pieces {
                if !piece.again.swap(false, Ordering::SeqCst) {
                    continue;
                }
                if piece.state.load(Ordering::SeqCst) == OFF {
                    piece.protection.store(first, Ordering::SeqCst);
                    self.raise(entry, |other| core::ptr::eq(other, piece));
                } else if !in_use::LIST.meets(piece.pages()) && piece.change(UP, MOVING) {
                    // It was read, and lowered.
                    self.moves.fetch_add(1, Ordering::SeqCst);
                    protect(piece.pages(), first as i32);
                    piece.protection.store(first, Ordering::SeqCst);
                    piece.set_up();
                }
            }
        }
    }

    /// Lifts the fences whose work `is_over`, by slot and ticket.
    pub(super) fn sweep(&self, is_over: impl Fn(usize, u64) -> bool) {
        if self.live.load(Ordering::SeqCst) == 0 {
            return;
        }
        let _lock = self.lock.take();
        for (at, entry) in self.used() {
            let slot = entry.slot.load(Ordering::Relaxed) as usize;
            if is_over(slot, entry.ticket.load(Ordering::Relaxed)) {
                self.lower(entry);
                self.forget(at);
            }
        }
    }

    /// Host functions of the slot are over: places what waited for them.
    pub(super) fn place_waiting(&self, slot: usize, finished: u64) {
        if self.live.load(Ordering::SeqCst) == 0 {
            return;
        }
        let _lock = self.lock.take();
        for (_, entry) in self.used() {
            let waits = entry.waits.load(Ordering::Relaxed);
            if entry.slot.load(Ordering::Relaxed) as usize == slot
                && (1..=finished).contains(&waits)
            {
                entry.waits.store(0, Ordering::SeqCst);
                self.raise(entry, |_| true);
            }
        }
    }

    /// Lifts every fence that has a page among these bytes. The memory goes, or is the program's
    /// again.
    pub(super) fn drop_range(&self, start: u64, end: u64) {
        if self.live.load(Ordering::SeqCst) == 0 {
            return;
        }
        let _lock = self.lock.take();
        self.drop_held(start, end);
    }

    fn drop_held(&self, start: u64, end: u64) {
        for (at, entry) in self.used() {
            if entry.pieces.iter().any(|piece| piece.pages().meets(start, end)) {
                self.lower(entry);
                self.forget(at);
            }
        }
    }

    /// Opens the bytes for a system call; whether a fence stood there. What is only read may stay
    /// readable.
    pub(super) fn open_range(&self, start: u64, end: u64, writes: bool) -> bool {
        // A fence is in the table before its pages are closed.
        let meets = |entry: &FenceEntry| entry.pieces.iter().any(|it| it.pages().meets(start, end));
        if !self.any() || !self.used().any(|(_, entry)| meets(entry)) {
            return false;
        }
        let _lock = self.lock.take();
        let mut stood = false;
        for (_, entry) in self.used() {
            for piece in entry.pieces.iter().filter(|piece| piece.pages().meets(start, end)) {
                let readable = piece.protection.load(Ordering::SeqCst) as i32 != libc::PROT_NONE;
                if (writes || !readable) && piece.change(UP, MOVING) {
                    protect(piece.pages(), OPEN);
                    piece.state.store(OFF, Ordering::SeqCst);
                    stood = true;
                }
                while piece.state.load(Ordering::SeqCst) == CLAIMED {
                    // SAFETY: no preconditions.
                    unsafe { libc::sched_yield() };
                }
            }
        }
        stood
    }

    /// Lifts everything.
    pub(super) fn drop_all(&self) {
        self.drop_range(0, u64::MAX);
    }

    /// Lifts everything, unless somebody holds the lock, perhaps the very thread that a signal
    /// handler has interrupted.
    pub(super) fn drop_all_unless_held(&self) {
        if let Some(_lock) = self.lock.try_take() {
            self.drop_held(0, u64::MAX);
        }
    }

    /// In a forked child, whose protections are its own: opens everything, and forgets it.
    pub(super) fn after_fork(&self) {
        self.lock.reset();
        for (_, entry) in self.used() {
            entry.live.store(false, Ordering::SeqCst);
            for piece in &entry.pieces {
                if piece.state.swap(OFF, Ordering::SeqCst) != OFF {
                    protect(piece.pages(), OPEN);
                }
            }
        }
        self.map.iter().for_each(|bits| bits.store(0, Ordering::SeqCst));
        self.live.store(0, Ordering::SeqCst);
    }

    /// A thread has faulted. Takes no lock: called by the signal handler.
    pub(super) fn fault(&self, address: u64, writes: bool) -> Fault {
        for (index, entry) in self.used() {
            for (number, piece) in entry.pieces.iter().enumerate() {
                let pages = piece.pages();
                if !(pages.start..pages.end).contains(&address) {
                    continue;
                }
                match piece.state.load(Ordering::SeqCst) {
                    UP => {
                        let closed = piece.protection.load(Ordering::SeqCst) as i32;
                        // Readable, and yet a read failed: the other fence of the page.
                        if !writes && closed != libc::PROT_NONE {
                            continue;
                        }
                        if piece.change(UP, CLAIMED) {
                            let bytes = entry.start.load(Ordering::SeqCst)
                                ..entry.end.load(Ordering::SeqCst);
                            return Fault::Claimed(Claim {
                                entry: index,
                                piece: number,
                                kernel: entry.kernel.load(Ordering::SeqCst),
                                site: SiteIndex(entry.site.load(Ordering::SeqCst)),
                                beside: !bytes.contains(&address),
                            });
                        }
                        return Fault::Again;
                    }
                    // Who moves it may be the very thread that was interrupted.
                    MOVING | CANCELLED => {
                        piece.change(MOVING, CANCELLED);
                        protect(pages, OPEN);
                        return Fault::Again;
                    }
                    CLAIMED => return Fault::Again,
                    _ => {}
                }
            }
        }
        Fault::Nothing
    }

    /// Ends a claim: a read leaves the pages readable, a write opens them. Whether that was
    /// possible. Called by the signal handler.
    pub(super) fn open(&self, claim: Claim, writes: bool) -> bool {
        let entry = &self.entries[claim.entry];
        let piece = &entry.pieces[claim.piece];
        let pages = piece.pages();
        if claim.beside && !claim.kernel && piece.agains.fetch_add(1, Ordering::SeqCst) < MOST_AGAIN
        {
            piece.again.store(true, Ordering::SeqCst);
            self.agains.fetch_add(1, Ordering::SeqCst);
        }
        let lower = !writes && piece.protection.load(Ordering::SeqCst) as i32 == libc::PROT_NONE;
        if lower && protect(pages, libc::PROT_READ) {
            piece.protection.store(libc::PROT_READ as u32, Ordering::SeqCst);
            self.moves.fetch_add(1, Ordering::SeqCst);
            piece.state.store(UP, Ordering::SeqCst);
            return true;
        }
        let mut done = protect(pages, OPEN);
        if !done {
            let last = entry.pieces.iter().map(|piece| piece.pages().end).max();
            let start = entry.pieces[0].pages().start;
            done = protect(Pages { start, end: last.unwrap_or(start) }, OPEN);
        }
        self.moves.fetch_add(1, Ordering::SeqCst);
        piece.state.store(OFF, Ordering::SeqCst);
        done
    }
}

/// Whether an allocation is still the one that a fence was made for.
pub(super) fn is_same(allocation: &Allocation, now: Result<Option<Allocation>, ()>) -> bool {
    now == Ok(Some(*allocation))
}
