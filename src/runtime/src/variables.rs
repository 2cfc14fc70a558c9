//! Which device memory may belong to variables of modules, so that what a small copy brings there is
//! worth recording ([`streamsan_wire::ParamKind::InBytes`]): to look whether its source can be read
//! is a system call, which costs more than all else of a recorded call.
//!
//! A filter of the pages of all variables that the program asked the driver for. A program learns an
//! address from the call that is noted here before it returns, so no copy to a variable is missed.
//! Pages stay in the filter when a module is unloaded, and others may look like them: both cost time,
//! nothing else.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const PAGE_SHIFT: u32 = 12;

/// Bits of the filter, a power of two.
const BITS: usize = 1 << 15;

/// Pages of a variable beyond which all memory may hold one: the filter would be full.
const MOST_PAGES: u64 = 1024;

static FILTER: [AtomicU64; BITS / 64] = [const { AtomicU64::new(0) }; BITS / 64];
static EVERYWHERE: AtomicBool = AtomicBool::new(false);

/// The driver has just told that a variable lies here.
pub(crate) fn found(start: u64, len: u64) {
    let Some(last) = len.checked_sub(1) else { return };
    let (first, last) = (start >> PAGE_SHIFT, start.saturating_add(last) >> PAGE_SHIFT);
    if last - first >= MOST_PAGES {
        return EVERYWHERE.store(true, Ordering::Release);
    }
    for page in first..=last {
        let (word, bit) = place(page);
        FILTER[word].fetch_or(bit, Ordering::Release);
    }
}

/// Whether a variable may lie in the memory, which is shorter than a page.
#[inline]
pub(crate) fn may_lie_in(start: u64, len: u64) -> bool {
    let end = start.saturating_add(len.saturating_sub(1));
    let is_marked = |page| {
        let (word, bit) = place(page);
        FILTER[word].load(Ordering::Acquire) & bit != 0
    };
    EVERYWHERE.load(Ordering::Acquire)
        || is_marked(start >> PAGE_SHIFT)
        || is_marked(end >> PAGE_SHIFT)
}

#[inline]
fn place(page: u64) -> (usize, u64) {
    let hash = page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - BITS.trailing_zeros());
    (hash as usize / 64, 1 << (hash % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_found_wherever_a_copy_meets_it() {
        // The one test that marks anything: others would share the filter.
        let start = 0x7f12_3456_7f00;
        assert!(!may_lie_in(start, 8));
        found(start, 0);
        assert!(!may_lie_in(start, 8));
        found(start, 0x2000);
        for (at, len) in [(start, 8), (start + 0x1ff8, 8), (start + 0x100, 64), (start - 32, 64)] {
            assert!(may_lie_in(at, len), "{at:x}");
        }
        assert!(!may_lie_in(start + 0x3000, 64));
        found(0x7f20_0000_0000, (MOST_PAGES + 1) << PAGE_SHIFT);
        assert!(may_lie_in(start + 0x3000, 64));
    }
}
