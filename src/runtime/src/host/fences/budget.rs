//! How much of the process's time fences may take.
//!
//! Operations are told apart by *site*: allocation, entry point and size class. The first operations
//! of a site are always fenced, so that a mistake which is made in every step is found there. What
//! fences take (placing, lifting, faults) is measured by the processor's counter of ticks; once
//! that is more than its share of the time since the first fence, sites without a touch are fenced at
//! half their rate, and again, down to one operation in 64. They regain it where there is time left.
//!
//! Sites that find no place of their own in the table share one: none is ever taken for new.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

pub(super) use streamsan_wire::ticks;

use super::memory::Allocation;

/// Operations of a site that are fenced in any case.
const FIRST: u32 = 64;
/// Lowest rate of a site: one operation in `1 << SLOWEST`.
const SLOWEST: u32 = 6;
/// In 1024ths of the time: above, sites slow down; below, they regain their rate (3% and 2%).
const MOST: u64 = 31;
const ENOUGH: u64 = 20;

const SITES: usize = 4096;
/// Places that a site may have.
const PLACES: usize = 4;

/// Counts what fences take, by a counter that runs at one rate.
struct Time {
    began: AtomicU64,
    spent: AtomicU64,
}

static TIME: Time = Time { began: AtomicU64::new(0), spent: AtomicU64::new(0) };

/// Fences took the time since `start`. May be called by a signal handler.
#[inline]
pub(super) fn spent_since(start: u64) {
    let now = ticks();
    if TIME.began.load(Ordering::Relaxed) == 0 {
        TIME.began.store(start, Ordering::Relaxed);
    }
    TIME.spent.fetch_add(now.saturating_sub(start), Ordering::Relaxed);
}

/// Share of the time since the first fence, in 1024ths.
fn share() -> u64 {
    let began = TIME.began.load(Ordering::Relaxed);
    if began == 0 {
        return 0;
    }
    let all = ticks().saturating_sub(began).max(1024);
    TIME.spent.load(Ordering::Relaxed) / (all / 1024)
}

struct SubmissionSite {
    key: AtomicU64,
    operations: AtomicU32,
    /// One operation in `1 << rate` is fenced.
    rate: AtomicU32,
    /// Operations to be passed over next.
    pass: AtomicU32,
    touched: AtomicBool,
}

impl SubmissionSite {
    /// Whether the operation at hand is to be fenced, given the share of the time that fences take.
    fn is_due(&self, share: impl FnOnce() -> u64) -> bool {
        if self.operations.load(Ordering::Relaxed) < FIRST {
            self.operations.fetch_add(1, Ordering::Relaxed);
            return true;
        }
        let pass = self.pass.load(Ordering::Relaxed);
        if pass > 0 {
            self.pass.store(pass - 1, Ordering::Relaxed);
            return false;
        }
        let share = share();
        let mut rate = self.rate.load(Ordering::Relaxed);
        if share > MOST && !self.touched.load(Ordering::Relaxed) {
            rate = (rate + 1).min(SLOWEST);
        } else if share < ENOUGH {
            rate = rate.saturating_sub(1);
        }
        self.rate.store(rate, Ordering::Relaxed);
        self.pass.store((1 << rate) - 1, Ordering::Relaxed);
        true
    }
}

static TABLE: [SubmissionSite; SITES] = [const {
    SubmissionSite {
        key: AtomicU64::new(0),
        operations: AtomicU32::new(0),
        rate: AtomicU32::new(0),
        pass: AtomicU32::new(0),
        touched: AtomicBool::new(false),
    }
}; SITES];

/// A site by its place in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SiteIndex(pub(super) u32);

/// The site of an operation: `call` numbers its entry point, `len` are its bytes.
pub(super) fn site(allocation: &Allocation, call: u32, len: u64) -> SiteIndex {
    let class = u64::from(len.checked_ilog2().unwrap_or(0));
    let words = [allocation.identity(), u64::from(call) << 8 | class];
    let key = words
        .iter()
        .fold(0u64, |hash, word| (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29));
    let key = key.max(1);
    let first = (key >> 20) as usize;
    let place = |index: usize| (first + index) % SITES;
    for index in 0..PLACES {
        let known = &TABLE[place(index)].key;
        let found = match known.load(Ordering::Relaxed) {
            0 => known.compare_exchange(0, key, Ordering::Relaxed, Ordering::Relaxed),
            other => Err(other),
        };
        if found.is_ok() || found == Err(key) {
            return SiteIndex(place(index) as u32);
        }
    }
    SiteIndex(place(0) as u32)
}

/// Whether the next operation of a site is to be fenced.
pub(super) fn is_due(site: SiteIndex) -> bool {
    TABLE[site.0 as usize].is_due(share)
}

/// The program has touched a fence of the site. May be called by a signal handler.
pub(super) fn touched(site: SiteIndex) {
    TABLE[site.0 as usize % SITES].touched.store(true, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::super::memory::{MemoryKind, TABLE as MEMORY};
    use super::*;

    fn new() -> SubmissionSite {
        SubmissionSite {
            key: AtomicU64::new(0),
            operations: AtomicU32::new(0),
            rate: AtomicU32::new(0),
            pass: AtomicU32::new(0),
            touched: AtomicBool::new(false),
        }
    }

    fn due(site: &SubmissionSite, operations: usize, share: u64) -> usize {
        (0..operations).filter(|_| site.is_due(|| share)).count()
    }

    #[test]
    fn the_first_operations_are_fenced_whatever_that_takes() {
        assert_eq!(due(&new(), FIRST as usize, 1024), FIRST as usize);
    }

    #[test]
    fn a_site_slows_down_to_one_in_64_and_regains_its_rate() {
        let site = new();
        due(&site, FIRST as usize, 0);
        due(&site, 1000, MOST + 1);
        assert_eq!(due(&site, 64 * 10, MOST + 1), 10);
        // Between the two it stays.
        assert_eq!(due(&site, 64 * 10, (MOST + ENOUGH) / 2), 10);
        due(&site, 1000, ENOUGH - 1);
        assert_eq!(due(&site, 100, ENOUGH - 1), 100);
    }

    #[test]
    fn a_site_that_was_touched_keeps_its_rate() {
        let site = new();
        site.touched.store(true, Ordering::Relaxed);
        assert_eq!(due(&site, 1000, MOST + 1), 1000);
    }

    #[test]
    fn sites_are_told_apart_by_allocation_call_and_size() {
        const AT: u64 = 7 << 40;
        MEMORY.insert(AT, 1 << 20, MemoryKind::Pinned);
        MEMORY.insert(AT + (1 << 20), 1 << 20, MemoryKind::Pinned);
        let of = |at| MEMORY.find(at).unwrap().unwrap();
        let (first, second) = (of(AT), of(AT + (1 << 20)));
        let known = site(&first, 3, 4096);
        assert_eq!(site(&first, 3, 5000), known);
        assert_ne!(site(&first, 4, 4096), known);
        assert_ne!(site(&first, 3, 65536), known);
        assert_ne!(site(&second, 3, 4096), known);
        MEMORY.remove(AT);
        MEMORY.insert(AT, 1 << 20, MemoryKind::Pinned);
        assert_ne!(site(&of(AT), 3, 4096), known);
    }
}
