//! The judgement of one pair of accesses: whether the two conflict, of which kind, and how certain
//! the conflict is.
//!
//! Invariant: the judgement rests on the two records alone, not on what else the shadow memory
//! holds.

use crate::record::{AccessRecord, Role};
use streamsan_model::{Basis, ByteRange, Confidence, ConflictKind, Mode};

/// The parts of an access that decide which accesses it conflicts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Effect {
    pub(crate) mode: Mode,
    /// Whether the host makes the access.
    pub(crate) on_host: bool,
}

impl Effect {
    /// Whether the access is an atomic operation whose scope is its device. All scopes of the host
    /// include every device.
    const fn is_atomic_of_device(self) -> bool {
        matches!(self.mode, Mode::Atomic) && !self.on_host
    }
}

/// The kind of conflict of a later access with an earlier access to common bytes, or `None`. Pairs
/// with a free or an allocation win, then RAW, WAW, WAR.
pub(crate) fn kind(later: Effect, earlier: Effect) -> Option<ConflictKind> {
    // An atomic operation of a kernel whose scope is the device is atomic for that device alone: the
    // host is outside of its scope. PTX ISA, Memory Consistency Model: Scope, Morally strong
    // operations; CUDA C++ Programming Guide, Atomic functions (`atomicAdd` and `atomicAdd_system`).
    let beyond_scope = (later.on_host && earlier.is_atomic_of_device())
        || (earlier.on_host && later.is_atomic_of_device());
    let (later, earlier) = (later.mode, earlier.mode);
    match (later, earlier) {
        (Mode::Free, _) | (_, Mode::Free) => Some(ConflictKind::UseAfterFree),
        (Mode::Allocate, _) | (_, Mode::Allocate) => Some(ConflictKind::UseBeforeAlloc),
        // The memory system orders atomic operations among themselves.
        _ if later.is_atomic() && earlier.is_atomic() && !beyond_scope => None,
        // The same holds for strong operations whose scopes include both sides, the host's among
        // them. PTX ISA, Memory Consistency Model: Morally strong operations; Conflict and
        // Data-races.
        _ if later.is_strong() && earlier.is_strong() => None,
        // A prefetch of managed memory is coherent with every use of the memory. A discard is not
        // coherent with any use, nor with a prefetch. Driver API, `cuMemDiscardBatchAsync`.
        (Mode::Prefetch, Mode::Discard) => Some(ConflictKind::ReadAfterWrite),
        (Mode::Discard, Mode::Prefetch) => Some(ConflictKind::WriteAfterRead),
        (Mode::Prefetch, _) | (_, Mode::Prefetch) => None,
        _ if later.reads() && earlier.writes() => Some(ConflictKind::ReadAfterWrite),
        _ if later.writes() && earlier.writes() => Some(ConflictKind::WriteAfterWrite),
        _ if later.writes() => Some(ConflictKind::WriteAfterRead),
        _ => None,
    }
}

/// The confidence of a conflict: `certain` when both accesses are exact or measured, `likely` when both are at
/// least inferred or the overlap holds the anchor of each anchored access, `possible` otherwise.
/// Two cases lower it. An access in the body of a conditional node is `likely` at most, for the
/// body may not run. A word that a stream memory operation waits for, or writes while the host
/// reads it, is meant to be used in this way: `possible` at most.
pub(crate) fn confidence(a: &AccessRecord, b: &AccessRecord, overlap: ByteRange) -> Confidence {
    if a.is_ambiguous() || b.is_ambiguous() || is_polled(a, b) || is_polled(b, a) {
        return Confidence::Possible;
    }
    side(a, overlap).min(side(b, overlap))
}

/// Whether the host reads a word that a stream memory operation writes: a program may poll the word
/// until it sees the value. Driver API, `cuStreamWriteValue32`.
fn is_polled(word: &AccessRecord, host: &AccessRecord) -> bool {
    word.role == Role::Signalled && host.place.is_host() && host.access.mode.reads()
}

fn side(record: &AccessRecord, overlap: ByteRange) -> Confidence {
    let access = &record.access;
    let known = match access.basis {
        _ if record.role == Role::Awaited || access.mode == Mode::MayWrite => Confidence::Possible,
        Basis::Exact | Basis::Measured => Confidence::Certain,
        Basis::Inferred => Confidence::Likely,
        Basis::Anchored if overlap.contains(access.extent.hull().start) => Confidence::Likely,
        Basis::Anchored | Basis::Assumed => Confidence::Possible,
    };
    match record.role {
        Role::Conditional => known.min(Confidence::Likely),
        _ => known,
    }
}

/// The smallest range that holds both ranges.
pub(crate) fn hull(a: ByteRange, b: ByteRange) -> ByteRange {
    ByteRange::new(a.start.min(b.start), a.end.max(b.end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overlap::common_bytes;
    use crate::record::test_support::record;
    use streamsan_model::Extent;

    #[test]
    fn kinds() {
        use ConflictKind::*;
        use Mode::*;
        let table = [
            (Read, Read, None),
            (Read, Write, Some(ReadAfterWrite)),
            (Write, Read, Some(WriteAfterRead)),
            (Write, Write, Some(WriteAfterWrite)),
            (ReadWrite, Write, Some(ReadAfterWrite)),
            (ReadWrite, Read, Some(WriteAfterRead)),
            (Read, ReadWrite, Some(ReadAfterWrite)),
            (Atomic, Atomic, None),
            (Atomic, Read, Some(WriteAfterRead)),
            (StrongRead, StrongWrite, None),
            (StrongWrite, StrongRead, None),
            (StrongWrite, StrongWrite, None),
            (StrongWrite, StrongAtomic, None),
            (StrongAtomic, StrongRead, None),
            (StrongAtomic, Atomic, None),
            (StrongRead, Read, None),
            (StrongRead, Write, Some(ReadAfterWrite)),
            (Read, StrongWrite, Some(ReadAfterWrite)),
            (StrongWrite, Write, Some(WriteAfterWrite)),
            // An atomic operation of a smaller scope is none for the host.
            (StrongRead, Atomic, Some(ReadAfterWrite)),
            (Atomic, StrongWrite, Some(ReadAfterWrite)),
            (StrongWrite, MayWrite, Some(WriteAfterWrite)),
            (Free, StrongRead, Some(UseAfterFree)),
            (Read, Atomic, Some(ReadAfterWrite)),
            (MayWrite, Read, Some(WriteAfterRead)),
            (MayWrite, MayWrite, Some(ReadAfterWrite)),
            (Write, Free, Some(UseAfterFree)),
            (Free, Read, Some(UseAfterFree)),
            (Read, Allocate, Some(UseBeforeAlloc)),
            (Prefetch, Write, None),
            (Write, Prefetch, None),
            (Prefetch, Prefetch, None),
            (Prefetch, Discard, Some(ReadAfterWrite)),
            (Discard, Prefetch, Some(WriteAfterRead)),
            (Discard, Read, Some(WriteAfterRead)),
            (Read, Discard, Some(ReadAfterWrite)),
            (Discard, Discard, Some(WriteAfterWrite)),
            (Discard, Atomic, Some(WriteAfterWrite)),
            (Prefetch, Free, Some(UseAfterFree)),
            (Allocate, Prefetch, Some(UseBeforeAlloc)),
        ];
        let effect = |mode, on_host| Effect { mode, on_host };
        for (later, earlier, expected) in table {
            let found = kind(effect(later, false), effect(earlier, false));
            assert_eq!(found, expected, "{later:?} after {earlier:?}");
        }
        let with_host = [
            // An atomic operation of the device's scope is none for the host.
            (effect(StrongAtomic, true), effect(Atomic, false), Some(ReadAfterWrite)),
            (effect(Atomic, false), effect(StrongAtomic, true), Some(ReadAfterWrite)),
            (effect(StrongAtomic, true), effect(StrongAtomic, false), None),
            (effect(StrongAtomic, false), effect(StrongAtomic, true), None),
            (effect(StrongRead, true), effect(Atomic, false), Some(ReadAfterWrite)),
            (effect(StrongRead, true), effect(StrongAtomic, false), None),
            (effect(Read, true), effect(StrongAtomic, false), Some(ReadAfterWrite)),
        ];
        for (later, earlier, expected) in with_host {
            assert_eq!(kind(later, earlier), expected, "{later:?} after {earlier:?}");
        }
    }

    /// Two tensors in one allocation of the driver; of both accesses only the begin is certain.
    #[test]
    fn neighbours_are_possible_and_one_begin_for_two_is_likely() {
        use Basis::{Anchored, Assumed, Exact, Inferred, Measured};
        use Confidence::{Certain, Likely, Possible};
        const END: u64 = 4096;
        let table = [
            // The overlap is what both accesses may touch.
            ((Anchored, 0, END), (Anchored, 1024, END), Possible),
            ((Anchored, 1024, END), (Anchored, 0, END), Possible),
            ((Anchored, 1024, END), (Anchored, 1024, END), Likely),
            ((Anchored, 0, END), (Exact, 1024, 2048), Possible),
            ((Anchored, 1024, END), (Exact, 1024, 2048), Likely),
            ((Anchored, 1024, END), (Exact, 0, 2048), Likely),
            ((Anchored, 1024, END), (Inferred, 0, 1025), Likely),
            // An access below its begin is no more than assumed.
            ((Assumed, 0, 1024), (Anchored, 0, END), Possible),
            ((Assumed, 0, END), (Exact, 0, END), Possible),
            ((Inferred, 0, 1025), (Inferred, 1024, END), Likely),
            ((Exact, 0, 1025), (Exact, 1024, END), Certain),
            ((Measured, 0, 1025), (Measured, 1024, END), Certain),
            ((Measured, 0, 1025), (Exact, 1024, END), Certain),
            ((Measured, 0, 1025), (Inferred, 1024, END), Likely),
            ((Measured, 1024, 2048), (Anchored, 0, END), Possible),
        ];
        for (a, b, expected) in table {
            let side = |g, (basis, start, end): (Basis, u64, u64)| {
                let mut side = record(g, Mode::Write, basis);
                side.access.extent = Extent::Range(ByteRange::new(start, end));
                side
            };
            let (first, second) = (side(1, a), side(2, b));
            let piece = ByteRange::new(0, END);
            let overlap = common_bytes(&first.access.extent, &second.access.extent, piece);
            let overlap = overlap.expect("they meet");
            assert_eq!(confidence(&first, &second, overlap), expected, "{a:?} {b:?}");
        }
    }
}
