//! The page-locked and managed allocations of the process.
//!
//! A sorted table with a count that is odd while somebody writes: readers look again, and the fault
//! handler, which may have interrupted the writer, looks a few times only.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use streamsan_wire::{LeftAlone, page_bytes};

use crate::spin::Spin;

/// Allocations that are kept; memory of further ones is not fenced.
const MOST: usize = 16_384;

/// Looks at the table before the fault handler gives up.
const LOOKS: usize = 1000;

/// Touches after which an allocation is left alone: inside fences of kernels, outside the bytes of
/// copies, in all.
const MOST_IN_KERNELS: u32 = 16;
const MOST_BESIDE: u32 = 64;
const MOST_RECORDED: u32 = 64;

/// The kind of host memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemoryKind {
    /// The driver's: its pages hold nothing else of the program.
    Pinned,
    /// The same, write-combined: its mapping stays split.
    WriteCombined,
    /// The program's own: its edge pages hold other things.
    Registered,
    Managed,
}

impl MemoryKind {
    const ALL: [Self; 4] = [Self::Pinned, Self::WriteCombined, Self::Registered, Self::Managed];

    pub(crate) fn is_driver_allocated(self) -> bool {
        self != Self::Registered
    }
}

/// An allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Allocation {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) kind: MemoryKind,
    /// Its place among the counters.
    id: u32,
    /// How many allocations had that place.
    generation: u32,
}

impl Allocation {
    /// Tells it from every other allocation of the process.
    pub(super) fn identity(&self) -> u64 {
        u64::from(self.id) << 32 | u64::from(self.generation)
    }
}

#[derive(Default)]
struct AllocationRow {
    start: AtomicU64,
    end: AtomicU64,
    /// Kind in the low byte, then the id, and the generation from bit 32.
    what: AtomicU64,
}

/// The counts of an allocation.
pub(super) struct AllocationCounts {
    in_kernels: AtomicU32,
    beside: AtomicU32,
    recorded: AtomicU32,
    /// Not 0 where it is left alone.
    left: AtomicU32,
    /// Operations that were to be fenced.
    operations: AtomicU32,
    /// In the list of free ones: the next one.
    next: AtomicU32,
    /// Allocations that had this place.
    generation: AtomicU32,
}

/// All allocations.
pub(super) struct AllocationTable {
    lock: Spin,
    version: AtomicU64,
    used: AtomicU32,
    /// All allocations that ever were lie between the two.
    lowest: AtomicU64,
    highest: AtomicU64,
    rows: [AllocationRow; MOST],
    counts: [AllocationCounts; MOST],
    free: AtomicU32,
    fresh: AtomicU32,
}

const NONE: u32 = u32::MAX;

pub(super) static TABLE: AllocationTable = AllocationTable::new();

impl AllocationTable {
    const fn new() -> Self {
        Self {
            lock: Spin::new(),
            version: AtomicU64::new(0),
            used: AtomicU32::new(0),
            lowest: AtomicU64::new(u64::MAX),
            highest: AtomicU64::new(0),
            rows: [const {
                AllocationRow {
                    start: AtomicU64::new(0),
                    end: AtomicU64::new(0),
                    what: AtomicU64::new(0),
                }
            }; MOST],
            counts: [const {
                AllocationCounts {
                    in_kernels: AtomicU32::new(0),
                    beside: AtomicU32::new(0),
                    recorded: AtomicU32::new(0),
                    left: AtomicU32::new(0),
                    operations: AtomicU32::new(0),
                    next: AtomicU32::new(0),
                    generation: AtomicU32::new(0),
                }
            }; MOST],
            free: AtomicU32::new(NONE),
            fresh: AtomicU32::new(0),
        }
    }

    /// How many there are.
    #[inline]
    pub(super) fn count(&self) -> &AtomicU32 {
        &self.used
    }

    /// Whether there is none.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.used.load(Ordering::Acquire) == 0
    }

    /// New memory.
    pub(super) fn insert(&self, start: u64, len: u64, kind: MemoryKind) {
        if start == 0 || len == 0 {
            return;
        }
        let _lock = self.lock.take();
        let used = self.used.load(Ordering::Relaxed) as usize;
        let at = self.position(start, used);
        let replaces = at < used && self.rows[at].start.load(Ordering::Relaxed) == start;
        if replaces || used == MOST {
            return;
        }
        let Some((id, generation)) = self.take_counts() else { return };
        self.lowest.fetch_min(start & !(page_bytes() - 1), Ordering::SeqCst);
        self.highest.fetch_max(start.saturating_add(len) | (page_bytes() - 1), Ordering::SeqCst);
        self.version.fetch_add(1, Ordering::SeqCst);
        for index in (at..used).rev() {
            self.copy_row(index, index + 1);
        }
        let row = &self.rows[at];
        row.start.store(start, Ordering::SeqCst);
        row.end.store(start.saturating_add(len), Ordering::SeqCst);
        row.what.store(
            kind as u64 | u64::from(id) << 8 | u64::from(generation) << 32,
            Ordering::SeqCst,
        );
        self.used.store(used as u32 + 1, Ordering::SeqCst);
        self.version.fetch_add(1, Ordering::SeqCst);
    }

    /// The memory that starts here is no more; answers what it was.
    pub(super) fn remove(&self, start: u64) -> Option<Allocation> {
        let _lock = self.lock.take();
        let used = self.used.load(Ordering::Relaxed) as usize;
        let at = self.position(start, used);
        let found = (at < used).then(|| self.read_row(at)).filter(|found| found.start == start)?;
        self.version.fetch_add(1, Ordering::SeqCst);
        for index in at + 1..used {
            self.copy_row(index, index - 1);
        }
        self.used.store(used as u32 - 1, Ordering::SeqCst);
        self.version.fetch_add(1, Ordering::SeqCst);
        let counts = &self.counts[found.id as usize];
        counts.next.store(self.free.load(Ordering::Relaxed), Ordering::Relaxed);
        self.free.store(found.id, Ordering::Relaxed);
        Some(found)
    }

    fn take_counts(&self) -> Option<(u32, u32)> {
        let free = self.free.load(Ordering::Relaxed);
        let id = match self.counts.get(free as usize) {
            Some(counts) => {
                self.free.store(counts.next.load(Ordering::Relaxed), Ordering::Relaxed);
                free
            }
            None => self.fresh.fetch_add(1, Ordering::Relaxed),
        };
        let counts = self.counts.get(id as usize)?;
        let all = [&counts.in_kernels, &counts.beside, &counts.recorded, &counts.left];
        all.into_iter().for_each(|count| count.store(0, Ordering::Relaxed));
        counts.operations.store(0, Ordering::Relaxed);
        Some((id, counts.generation.fetch_add(1, Ordering::Relaxed)))
    }

    fn copy_row(&self, from: usize, to: usize) {
        let (from, to) = (&self.rows[from], &self.rows[to]);
        to.start.store(from.start.load(Ordering::Relaxed), Ordering::SeqCst);
        to.end.store(from.end.load(Ordering::Relaxed), Ordering::SeqCst);
        to.what.store(from.what.load(Ordering::Relaxed), Ordering::SeqCst);
    }

    fn read_row(&self, index: usize) -> Allocation {
        let row = &self.rows[index];
        let what = row.what.load(Ordering::SeqCst);
        Allocation {
            start: row.start.load(Ordering::SeqCst),
            end: row.end.load(Ordering::SeqCst),
            kind: MemoryKind::ALL[(what & 3) as usize],
            id: ((what >> 8) as u32 & 0xff_ffff).min(MOST as u32 - 1),
            generation: (what >> 32) as u32,
        }
    }

    /// The first row that starts at or behind the address.
    fn position(&self, start: u64, used: usize) -> usize {
        let (mut low, mut high) = (0, used.min(MOST));
        while low < high {
            let middle = (low + high) / 2;
            if self.rows[middle].start.load(Ordering::SeqCst) < start {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Whether the address may lie in an allocation: a look that costs nothing.
    #[inline]
    pub(super) fn may_hold(&self, address: u64) -> bool {
        address >= self.lowest.load(Ordering::Relaxed)
            && address <= self.highest.load(Ordering::Relaxed)
    }

    /// The allocation that holds the byte.
    ///
    /// # Errors
    ///
    /// The table changed during each look.
    pub(super) fn find(&self, address: u64) -> Result<Option<Allocation>, ()> {
        if !self.may_hold(address) {
            return Ok(None);
        }
        for _ in 0..LOOKS {
            let version = self.version.load(Ordering::SeqCst);
            if version % 2 == 1 {
                core::hint::spin_loop();
                continue;
            }
            let used = self.used.load(Ordering::SeqCst) as usize;
            let behind = self.position(address.saturating_add(1), used);
            let found = behind.checked_sub(1).map(|index| self.read_row(index));
            if self.version.load(Ordering::SeqCst) == version {
                return Ok(found.filter(|found| (found.start..found.end).contains(&address)));
            }
        }
        Err(())
    }

    /// The allocation that holds the byte, or the first one behind it.
    pub(super) fn next(&self, address: u64) -> Option<Allocation> {
        if let Ok(Some(found)) = self.find(address) {
            return Some(found);
        }
        let _lock = self.lock.take();
        let used = self.used.load(Ordering::Relaxed) as usize;
        let at = self.position(address, used);
        (at < used).then(|| self.read_row(at))
    }

    /// Whether the page of an address has bytes of an allocation. `true` where that cannot be told.
    pub(super) fn is_on_page(&self, address: u64) -> bool {
        self.is_on_pages(address, address.saturating_add(1))
    }

    /// The same of the pages of some bytes.
    pub(super) fn is_on_pages(&self, start: u64, end: u64) -> bool {
        if end <= self.lowest.load(Ordering::SeqCst) || start > self.highest.load(Ordering::SeqCst)
        {
            return false;
        }
        let rest = page_bytes() - 1;
        let (start, end) = (start & !rest, ((end.max(1) - 1) | rest).saturating_add(1));
        for _ in 0..LOOKS {
            let version = self.version.load(Ordering::SeqCst);
            let used = self.used.load(Ordering::SeqCst) as usize;
            let behind = self.position(end, used);
            let found = behind.checked_sub(1).map(|index| self.read_row(index));
            if version.is_multiple_of(2) && self.version.load(Ordering::SeqCst) == version {
                return found.is_some_and(|found| found.end > start);
            }
        }
        true
    }

    fn counts(&self, allocation: &Allocation) -> &AllocationCounts {
        &self.counts[allocation.id as usize]
    }

    /// Whether it is left alone.
    pub(super) fn is_left_alone(&self, allocation: &Allocation) -> bool {
        self.counts(allocation).left.load(Ordering::Relaxed) != 0
    }

    /// Another operation that was to be fenced: which one it is, from 0.
    pub(super) fn count_operation(&self, allocation: &Allocation) -> u32 {
        self.counts(allocation).operations.fetch_add(1, Ordering::Relaxed)
    }

    /// Leaves it alone from now on; whether it was not before.
    pub(super) fn leave_alone(&self, allocation: &Allocation) -> bool {
        self.counts(allocation).left.swap(1, Ordering::Relaxed) == 0
    }

    /// The program has touched it in a fence; answers why it is left alone from now on, if it was not
    /// before.
    pub(super) fn count_touch(
        &self,
        allocation: &Allocation,
        kernel: bool,
        beside: bool,
    ) -> Option<LeftAlone> {
        let counts = self.counts(allocation);
        let more = |count: &AtomicU32, most| count.fetch_add(1, Ordering::Relaxed) + 1 >= most;
        let mut reason = more(&counts.recorded, MOST_RECORDED).then_some(LeftAlone::Touches);
        if kernel && more(&counts.in_kernels, MOST_IN_KERNELS) {
            reason = Some(LeftAlone::Kernels);
        } else if !kernel && beside && more(&counts.beside, MOST_BESIDE) {
            reason = Some(LeftAlone::Beside);
        }
        reason.filter(|_| self.leave_alone(allocation))
    }

    /// In a forked child, which cannot use the parent's memory on a device; the lock's holder may not
    /// exist here.
    pub(super) fn after_fork(&self) {
        self.lock.reset();
        self.used.store(0, Ordering::SeqCst);
        self.version.store(0, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_holds_an_address_after_any_order_of_changes() {
        let table: Box<AllocationTable> = Box::new(AllocationTable::new());
        for start in [0x5000, 0x1000, 0x9000, 0x3000] {
            table.insert(start, 0x1000, MemoryKind::Pinned);
        }
        let start = |address| table.find(address).unwrap().map(|found| found.start);
        assert_eq!(start(0x1fff), Some(0x1000));
        assert_eq!(start(0x2000), None);
        assert_eq!(start(0x9000), Some(0x9000));
        assert!(table.remove(0x3000).is_some() && table.remove(0x3000).is_none());
        assert_eq!(start(0x3000), None);
        assert_eq!(start(0x5010), Some(0x5000));
        assert_eq!(start(0xfff), None);
        assert_eq!(start(u64::MAX), None);
        assert!(table.is_on_pages(0xf00, 0x1001) && table.is_on_pages(0x1fff, 0x2100));
        assert!(!table.is_on_pages(0x2000, 0x4fff) && !table.is_on_pages(0xa000, 0xb000));
    }

    #[test]
    fn memory_at_the_place_of_other_memory_is_told_from_it() {
        let table: Box<AllocationTable> = Box::new(AllocationTable::new());
        table.insert(0x1000, 64, MemoryKind::Pinned);
        let first = table.find(0x1000).unwrap().unwrap();
        table.remove(0x1000);
        table.insert(0x1000, 64, MemoryKind::Pinned);
        let second = table.find(0x1000).unwrap().unwrap();
        assert_ne!(first, second);
        assert_ne!(first.identity(), second.identity());
    }

    #[test]
    fn memory_by_which_host_and_device_talk_is_left_alone() {
        let table: Box<AllocationTable> = Box::new(AllocationTable::new());
        table.insert(0x1000, 64, MemoryKind::Managed);
        let flag = table.find(0x1000).unwrap().unwrap();
        let touches = |most: u32, kernel, beside| {
            let left: Vec<_> =
                (0..most + 4).map(|_| table.count_touch(&flag, kernel, beside)).collect();
            assert_eq!(left.iter().position(Option::is_some), Some(most as usize - 1));
            left.into_iter().flatten().collect::<Vec<_>>()
        };
        assert_eq!(touches(MOST_IN_KERNELS, true, false), [LeftAlone::Kernels]);
        assert!(table.is_left_alone(&flag));
        table.remove(0x1000);
        table.insert(0x1000, 64, MemoryKind::Managed);
        assert!(!table.is_left_alone(&table.find(0x1000).unwrap().unwrap()));
    }
}
