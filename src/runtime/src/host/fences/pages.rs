//! Which pages of a range are protected, and the system call that does it.

use super::budget;
use super::memory::{Allocation, MemoryKind};
use crate::system_call;

pub(super) const PAGE: u64 = 4096;

/// Ranges up to so many bytes are fenced as a whole.
const WHOLE: u64 = 64 << 10;
/// Bytes at the head of larger ones.
const HEAD: u64 = 32 << 10;

/// Pieces of a fence at most: a fault lifts one.
pub(super) const PIECES: usize = 4;

/// Whole pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Pages {
    pub(super) start: u64,
    pub(super) end: u64,
}

impl Pages {
    pub(super) fn meets(&self, start: u64, end: u64) -> bool {
        self.start < end && start < self.end
    }

    /// The pages that two have in common.
    pub(super) fn common(&self, other: Pages) -> Option<Pages> {
        let both = Pages { start: self.start.max(other.start), end: self.end.min(other.end) };
        (both.start < both.end).then_some(both)
    }
}

/// The pieces of a fence around bytes of an allocation, by address, and whether they are all of it.
/// `whole`: everything, whatever its size. `number` says which page in between gets a post.
pub(super) fn pieces(
    start: u64,
    end: u64,
    allocation: &Allocation,
    whole: bool,
    number: u64,
) -> ([Pages; PIECES], bool) {
    let mut found = [Pages::default(); PIECES];
    let (down, up) =
        (|at: u64| at & !(PAGE - 1), |at: u64| at.saturating_add(PAGE - 1) & !(PAGE - 1));
    // The edge pages of registered memory hold other things.
    let (low, high) = match allocation.kind.is_driver_allocated() {
        true => (down(start), up(end)),
        false => (up(start), down(end)),
    };
    if low >= high {
        return (found, false);
    }
    let all = high - low >= end - start;
    if whole {
        found[0] = Pages { start: low, end: high };
        return (found, all);
    }
    let mut count = 0;
    let mut put = |start: u64, end: u64| {
        if start < end && count < PIECES {
            found[count] = Pages { start, end };
            count += 1;
        }
    };
    // Pages that hold other bytes too are pieces of their own.
    let head = if low < start { low + PAGE } else { low };
    if high - low <= WHOLE {
        let tail = (if end < high { high - PAGE } else { high }).max(head.min(high));
        put(low, head.min(high));
        put(head, tail);
        put(tail, high);
        return (found, all);
    }
    put(low, head);
    put(head, low + HEAD);
    if allocation.kind != MemoryKind::WriteCombined {
        let between = (high - PAGE - low - HEAD) / PAGE;
        // Odd and large: neighbouring numbers lie far apart.
        let page = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % between.max(1);
        if between > 0 {
            put(low + HEAD + page * PAGE, low + HEAD + (page + 1) * PAGE);
        }
    }
    put(high - PAGE, high);
    (found, false)
}

/// Leaves out pages that hold other bytes than those of the range too; whether there were any.
pub(super) fn without_edges(pieces: &mut [Pages; PIECES], start: u64, end: u64) -> bool {
    let mut any = false;
    for piece in pieces.iter_mut().filter(|piece| piece.start < piece.end) {
        if piece.start < start || piece.end > end {
            *piece = Pages { start: piece.start, end: piece.start };
            any = true;
        }
    }
    any
}

/// Changes the protection of pages; whether that was possible. May be called by a signal handler.
pub(super) fn protect(pages: Pages, protection: i32) -> bool {
    let begin = budget::ticks();
    let arguments = [pages.start, pages.end - pages.start, protection as u64, 0, 0, 0];
    // SAFETY: pages of an allocation that the driver said is there; what is taken away is given back
    // to whoever touches it.
    let result = unsafe { system_call::raw(libc::SYS_mprotect, arguments) };
    budget::spent_since(begin);
    result == 0
}

#[cfg(test)]
mod tests {
    use super::super::memory::TABLE;
    use super::*;

    fn allocation(start: u64, kind: MemoryKind) -> Allocation {
        TABLE.insert(start, 1 << 30, kind);
        TABLE.find(start).unwrap().unwrap()
    }

    fn of(start: u64, end: u64, allocation: &Allocation) -> Vec<(u64, u64)> {
        let (pieces, _) = pieces(start, end, allocation, false, 3);
        pieces.iter().filter(|p| p.start < p.end).map(|p| (p.start, p.end)).collect()
    }

    #[test]
    fn edge_pages_are_pieces_of_their_own_and_not_those_of_registered_memory() {
        const AT: u64 = 1 << 40;
        let pinned = allocation(AT, MemoryKind::Pinned);
        assert_eq!(of(AT + 8, AT + 12, &pinned), [(AT, AT + PAGE)]);
        assert_eq!(of(AT, AT + 2 * PAGE, &pinned), [(AT, AT + 2 * PAGE)]);
        assert_eq!(
            of(AT + 8, AT + 3 * PAGE + 1, &pinned),
            [(AT, AT + PAGE), (AT + PAGE, AT + 3 * PAGE), (AT + 3 * PAGE, AT + 4 * PAGE)]
        );
        assert_eq!(
            of(AT + 8, AT + PAGE + 1, &pinned),
            [(AT, AT + PAGE), (AT + PAGE, AT + 2 * PAGE)]
        );
        let registered = allocation(2 * AT, MemoryKind::Registered);
        assert_eq!(of(2 * AT + 8, 2 * AT + 12, &registered), []);
        assert_eq!(
            of(2 * AT + 8, 2 * AT + 3 * PAGE + 1, &registered),
            [(2 * AT + PAGE, 2 * AT + 3 * PAGE)]
        );
    }

    #[test]
    fn large_ranges_have_posts_at_head_and_tail() {
        const AT: u64 = 5 << 40;
        let combined = allocation(AT, MemoryKind::WriteCombined);
        assert_eq!(
            of(AT, AT + (1 << 20), &combined),
            [(AT, AT + HEAD), (AT + (1 << 20) - PAGE, AT + (1 << 20))]
        );
        let pinned = allocation(6 << 40, MemoryKind::Pinned);
        for end in [(6 << 40) + WHOLE + 1, (6 << 40) + (1 << 28)] {
            let posts = of(6 << 40, end, &pinned);
            assert_eq!(posts.len(), 3);
            assert!(posts.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{posts:?}");
            assert!(posts[2].1 >= end);
        }
    }

    #[test]
    fn pages_that_others_share_can_be_left_out() {
        const AT: u64 = 9 << 40;
        let pinned = allocation(AT, MemoryKind::Pinned);
        let (start, end) = (AT + 8, AT + 3 * PAGE + 1);
        let (mut found, _) = pieces(start, end, &pinned, false, 0);
        assert!(without_edges(&mut found, start, end));
        let left: Vec<_> = found.iter().filter(|p| p.start < p.end).collect();
        assert_eq!(left, [&Pages { start: AT + PAGE, end: AT + 3 * PAGE }]);
        assert!(!without_edges(&mut found, start, end));
    }
}
