//! Which pairs of accesses are to be reported.

use super::bytes::Bytes;
use super::graph::Node;
use super::rules::{Inside, Order, PlacedAccess};
use std::collections::{BTreeMap, BTreeSet};
use streamsan_model::{
    AllocationId, Basis, ByteRange, ConflictKind, Finding, Mode, OpSeq, Severity,
};

/// Two operations and the allocation on which they meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pair {
    pub(crate) first: OpSeq,
    pub(crate) second: OpSeq,
    pub(crate) allocation: AllocationId,
}

impl Pair {
    pub(crate) fn of(finding: &Finding) -> Self {
        let (first, second) = (finding.first.op, finding.second.op);
        Self { first, second, allocation: finding.allocation }
    }
}

/// The judgement that a finding makes of its pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Reported {
    pub(crate) pair: Pair,
    pub(crate) kind: ConflictKind,
    pub(crate) severity: Severity,
    pub(crate) overlap: ByteRange,
}

impl Reported {
    pub(crate) fn of(finding: &Finding) -> Self {
        Self {
            pair: Pair::of(finding),
            kind: finding.kind,
            severity: finding.severity,
            overlap: finding.overlap,
        }
    }
}

/// Every pair of conflicting operations without a documented order, with its severity: `Latent`
/// where incidental edges order it. Pairs with a free that came first are among them.
pub(crate) fn unordered_pairs(order: &Order) -> BTreeMap<Pair, Severity> {
    let located = locate(order);
    let mut pairs = BTreeMap::new();
    for conflict in conflicts(order, &located) {
        let severity = severity(order, conflict.first, conflict.second);
        let entry = pairs.entry(pair(conflict.first, conflict.second)).or_insert(severity);
        *entry = severity.min(*entry);
    }
    for inside in &order.inside {
        let found = unordered_pairs(&inside.order);
        pairs.extend(found.into_iter().map(|(pair, severity)| (inside.outside(pair), severity)));
    }
    pairs
}

impl Inside {
    /// The pair as one of calls.
    fn outside(&self, pair: Pair) -> Pair {
        self.part_of.map_or(pair, |call| Pair { first: call, second: call, ..pair })
    }
}

/// The pairs of [`unordered_pairs`] whose first access is maximal on some byte that both touch:
/// no access that happens after it is unordered with the second one and in conflict with it too.
pub(crate) fn maximal_pairs(order: &Order) -> BTreeSet<Reported> {
    maximal(order, Floating::Apart)
}

/// The pairs of [`maximal_pairs`] that have to be reported. Among reads that copies of one stream
/// may make at any time up to their end, the newest may stand for all: an operation behind its end
/// is behind the end of the others.
pub(crate) fn necessary_pairs(order: &Order) -> BTreeSet<Reported> {
    maximal(order, Floating::Together)
}

/// How reads are treated that copies of one stream may make at any time up to their end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Floating {
    /// Each is told.
    Apart,
    /// The newest stands for all.
    Together,
}

fn maximal(order: &Order, floating: Floating) -> BTreeSet<Reported> {
    let located = locate(order);
    let mut reported: BTreeMap<Pair, Reported> = BTreeMap::new();
    for conflict in conflicts(order, &located) {
        let Conflict { first, second, shared } = conflict;
        let visible = located
            .iter()
            .filter(|(access, _)| first.op < access.op && access.op < second.op)
            .filter(|(access, _)| access.access.allocation == first.access.allocation)
            .filter(|(access, _)| stands_for(order, access, first, second, floating))
            .fold(shared.clone(), |visible, (_, bytes)| visible.without(bytes));
        let after_free = is_submitted_after_free(order, first, second);
        let bytes = if after_free { shared } else { visible };
        if bytes.is_empty() {
            continue;
        }
        let allocation = order.entities.allocation(first.access.allocation).expect("declared");
        let new = Reported {
            pair: pair(first, second),
            kind: kind(first.access.mode, second.access.mode),
            severity: severity(order, first, second),
            overlap: bytes.hull(allocation.range.start),
        };
        add(&mut reported, new);
    }
    for inside in &order.inside {
        for found in maximal(&inside.order, floating) {
            add(&mut reported, Reported { pair: inside.outside(found.pair), ..found });
        }
    }
    reported.into_values().collect()
}

/// One finding for a pair and an allocation.
fn add(reported: &mut BTreeMap<Pair, Reported>, new: Reported) {
    let entry = reported.entry(new.pair).or_insert(new);
    // The nodes of one launch may be at several places in the order.
    entry.severity = entry.severity.min(new.severity);
    // The order of `ConflictKind` is its precedence.
    entry.kind = entry.kind.min(new.kind);
    entry.overlap.start = entry.overlap.start.min(new.overlap.start);
    entry.overlap.end = entry.overlap.end.max(new.overlap.end);
}

/// How many operations of the first side's stream the second side is ordered behind: as the finding
/// says, by the index up to which it knows the stream, and as it is.
pub(crate) fn known_operations(order: &Order, finding: &Finding) -> (usize, usize) {
    let side = &finding.second;
    let is_side = |a: &&PlacedAccess| a.op == side.op && a.access == side.access;
    let second = order.accesses.iter().find(is_side).expect("the operation touches this");
    let Some(issued) = finding.first.stream.and_then(|stream| order.issued.get(&stream)) else {
        return (0, 0);
    };
    let behind = |node: Node| order.documented.happens_before(node, second.node);
    let said = issued.iter().filter(|&&(g, _)| Some(g) <= finding.knows);
    let is = issued.iter().filter(|&&(_, node)| behind(node));
    (said.count(), is.count())
}

struct Conflict<'a> {
    first: &'a PlacedAccess,
    second: &'a PlacedAccess,
    shared: Bytes,
}

type Located<'a> = (&'a PlacedAccess, Bytes);

fn locate(order: &Order) -> Vec<Located<'_>> {
    let locate = |access: &PlacedAccess| {
        let allocation = order.entities.allocation(access.access.allocation).expect("declared");
        Bytes::of(&access.access.extent, allocation.range)
    };
    order.accesses.iter().map(|access| (access, locate(access))).collect()
}

/// All pairs of accesses of different operations that share a byte, conflict and have no
/// documented order; and the uses of freed memory.
fn conflicts<'a>(
    order: &'a Order,
    located: &'a [Located<'a>],
) -> impl Iterator<Item = Conflict<'a>> {
    located.iter().flat_map(move |(second, second_bytes)| {
        located
            .iter()
            .filter(move |(first, _)| first.op < second.op)
            .filter(move |(first, _)| first.access.allocation == second.access.allocation)
            .filter(move |(first, _)| are_in_conflict(first, second))
            .filter(move |(first, _)| {
                !order.documented.happens_before(first.node, second.node)
                    || is_submitted_after_free(order, first, second)
            })
            .map(move |(first, bytes)| Conflict {
                first,
                second,
                shared: bytes.clone().and(second_bytes),
            })
            .filter(|conflict| !conflict.shared.is_empty())
    })
}

fn are_in_conflict(first: &PlacedAccess, second: &PlacedAccess) -> bool {
    // Host against host is never reported.
    !(first.on_host && second.on_host) && have_conflicting_modes(first, second)
}

fn have_conflicting_modes(first: &PlacedAccess, second: &PlacedAccess) -> bool {
    let (a, b) = (first.access.mode, second.access.mode);
    let moves_only = |mode| mode == Mode::Prefetch;
    let is_atomic = |mode| matches!(mode, Mode::Atomic | Mode::StrongAtomic);
    let is_strong =
        |mode| matches!(mode, Mode::StrongRead | Mode::StrongWrite | Mode::StrongAtomic);
    let spares_moves = |mode| !matches!(mode, Mode::Discard | Mode::Allocate | Mode::Free);
    (a.writes() || b.writes())
        && !(moves_only(a) && spares_moves(b))
        && !(moves_only(b) && spares_moves(a))
        && !(is_atomic(a) && is_atomic(b) && !is_beyond_scope(first, second))
        && !(is_strong(a) && is_strong(b))
}

/// Whether one side is the host and the other one an atomic operation whose scope is its device.
fn is_beyond_scope(first: &PlacedAccess, second: &PlacedAccess) -> bool {
    let is_of_device = |side: &PlacedAccess| !side.on_host && side.access.mode == Mode::Atomic;
    (first.on_host && is_of_device(second)) || (second.on_host && is_of_device(first))
}

/// Whether `later`, on the bytes it touches, is the one to report with `new` and `earlier` is not.
/// (It is not reported either where both are on the host, of two threads: others look for that.)
///
/// An access that may not have happened, or not to all of these bytes, never stands for one of
/// which more is known.
fn stands_for(
    order: &Order,
    later: &PlacedAccess,
    earlier: &PlacedAccess,
    new: &PlacedAccess,
    floating: Floating,
) -> bool {
    let is_of_stream = later.floating.is_some() && later.floating == earlier.floating;
    have_conflicting_modes(later, new)
        && strength(later) >= strength(earlier)
        && (order.documented.happens_before(earlier.node, later.node)
            || floating == Floating::Together && is_of_stream)
}

fn strength(access: &PlacedAccess) -> Basis {
    let is_uncertain = access.may || access.access.mode == Mode::MayWrite;
    match access.access.basis {
        _ if is_uncertain => Basis::Assumed,
        Basis::Measured => Basis::Exact,
        basis => basis,
    }
}

/// Whether memory is used by a call issued after the (newest) one that freed it, which no order
/// makes right.
fn is_submitted_after_free(order: &Order, first: &PlacedAccess, second: &PlacedAccess) -> bool {
    let frees = |access: &&PlacedAccess| {
        access.access.mode == Mode::Free && access.access.allocation == first.access.allocation
    };
    let newest = order.accesses.iter().filter(frees).rfind(|free| free.op < second.op);
    newest.is_some_and(|free| free.op == first.op)
}

fn kind(first: Mode, second: Mode) -> ConflictKind {
    if first == Mode::Free || second == Mode::Free {
        ConflictKind::UseAfterFree
    } else if first == Mode::Allocate || second == Mode::Allocate {
        ConflictKind::UseBeforeAlloc
    } else if first.writes() && (second.reads() || second == Mode::Prefetch) {
        ConflictKind::ReadAfterWrite
    } else if first.writes() {
        ConflictKind::WriteAfterWrite
    } else {
        ConflictKind::WriteAfterRead
    }
}

fn severity(order: &Order, first: &PlacedAccess, second: &PlacedAccess) -> Severity {
    if is_submitted_after_free(order, first, second) {
        Severity::Race
    } else if order.incidental.happens_before(first.node, second.node) {
        Severity::Latent
    } else {
        Severity::Race
    }
}

fn pair(first: &PlacedAccess, second: &PlacedAccess) -> Pair {
    Pair { first: first.op, second: second.op, allocation: first.access.allocation }
}
