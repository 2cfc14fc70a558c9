//! Which pages of a range are protected, and the system call that does it.

use streamsan_wire::page_bytes;

use super::budget;
use super::memory::{Allocation, MemoryKind};
use crate::system_call;

/// Ranges up to so many bytes are fenced as a whole; one page in any case.
const WHOLE: u64 = 64 << 10;

/// Bytes at the head of larger ranges, a multiple of the page.
#[inline]
const fn head_bytes(page: u64) -> u64 {
    if page > 32 << 10 { page } else { 32 << 10 }
}

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
    pieces_of(page_bytes(), (start, end), allocation.kind, whole, number)
}

#[inline]
fn pieces_of(
    page: u64,
    (start, end): (u64, u64),
    kind: MemoryKind,
    whole: bool,
    number: u64,
) -> ([Pages; PIECES], bool) {
    let mut found = [Pages::default(); PIECES];
    let (down, up) =
        (|at: u64| at & !(page - 1), |at: u64| at.saturating_add(page - 1) & !(page - 1));
    // The edge pages of registered memory hold other things.
    let (low, high) = match kind.is_driver_allocated() {
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
    let head = if low < start { low + page } else { low };
    if high - low <= WHOLE {
        let tail = (if end < high { high - page } else { high }).max(head.min(high));
        put(low, head.min(high));
        put(head, tail);
        put(tail, high);
        return (found, all);
    }
    let head_bytes = head_bytes(page);
    put(low, head);
    put(head, low + head_bytes);
    if kind != MemoryKind::WriteCombined {
        let between = (high - page - low - head_bytes) / page;
        // Odd and large: neighbouring numbers lie far apart.
        let post = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % between.max(1);
        if between > 0 {
            let first = low + head_bytes + post * page;
            put(first, first + page);
        }
    }
    put(high - page, high);
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
    use super::*;

    /// The pages that systems have.
    const SIZES: [u64; 3] = [4 << 10, 16 << 10, 64 << 10];
    const AT: u64 = 1 << 40;

    fn of(page: u64, start: u64, end: u64, kind: MemoryKind) -> Vec<(u64, u64)> {
        let (pieces, _) = pieces_of(page, (start, end), kind, false, 3);
        pieces.iter().filter(|p| p.start < p.end).map(|p| (p.start, p.end)).collect()
    }

    #[test]
    fn edge_pages_are_pieces_of_their_own_and_not_those_of_registered_memory() {
        use MemoryKind::{Pinned, Registered};
        for page in SIZES {
            assert_eq!(of(page, AT + 8, AT + 12, Pinned), [(AT, AT + page)]);
            assert_eq!(of(page, AT + 8, AT + 12, Registered), []);
        }
        const PAGE: u64 = SIZES[0];
        assert_eq!(of(PAGE, AT, AT + 2 * PAGE, Pinned), [(AT, AT + 2 * PAGE)]);
        assert_eq!(
            of(PAGE, AT + 8, AT + 3 * PAGE + 1, Pinned),
            [(AT, AT + PAGE), (AT + PAGE, AT + 3 * PAGE), (AT + 3 * PAGE, AT + 4 * PAGE)]
        );
        assert_eq!(
            of(PAGE, AT + 8, AT + PAGE + 1, Pinned),
            [(AT, AT + PAGE), (AT + PAGE, AT + 2 * PAGE)]
        );
        assert_eq!(of(PAGE, AT + 8, AT + 3 * PAGE + 1, Registered), [(AT + PAGE, AT + 3 * PAGE)]);
    }

    #[test]
    fn large_ranges_have_posts_at_head_and_tail() {
        for page in SIZES {
            let head = page.max(32 << 10);
            assert_eq!(
                of(page, AT, AT + (1 << 20), MemoryKind::WriteCombined),
                [(AT, AT + head), (AT + (1 << 20) - page, AT + (1 << 20))]
            );
            for end in [AT + 4 * WHOLE + 1, AT + (1 << 28)] {
                let posts = of(page, AT, end, MemoryKind::Pinned);
                assert_eq!(posts.len(), 3);
                assert!(posts.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{posts:?}");
                assert!(posts[2].1 >= end);
            }
        }
    }

    #[test]
    fn pieces_are_whole_pages_that_do_not_overlap() {
        use MemoryKind::{Pinned, Registered, WriteCombined};
        let lengths = (0..19).map(|bits| 1 << bits).chain([40 << 10, 65 << 10, 129 << 10]);
        for len in lengths {
            for (page, start) in SIZES.iter().flat_map(|page| [(*page, AT), (*page, AT + 24)]) {
                for kind in [Pinned, Registered, WriteCombined] {
                    let found = of(page, start, start + len, kind);
                    let whole = found.iter().all(|it| it.0 % page == 0 && it.1 % page == 0);
                    assert!(whole, "{page} {len} {found:x?}");
                    let ordered = found.windows(2).all(|pair| pair[0].1 <= pair[1].0);
                    assert!(ordered, "{page} {len} {found:x?}");
                    if kind == Pinned {
                        let (first, last) = (found[0].0, found[found.len() - 1].1);
                        assert!(first <= start && last >= start + len, "{page} {len}");
                    }
                }
            }
        }
    }

    #[test]
    fn pages_that_others_share_can_be_left_out() {
        const PAGE: u64 = SIZES[0];
        let (start, end) = (AT + 8, AT + 3 * PAGE + 1);
        let (mut found, _) = pieces_of(PAGE, (start, end), MemoryKind::Pinned, false, 0);
        assert!(without_edges(&mut found, start, end));
        let left: Vec<_> = found.iter().filter(|p| p.start < p.end).collect();
        assert_eq!(left, [&Pages { start: AT + PAGE, end: AT + 3 * PAGE }]);
        assert!(!without_edges(&mut found, start, end));
    }
}
