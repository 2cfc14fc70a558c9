//! The shadow memories of all allocations, and the conflicts of the current operation.
//!
//! Several address ranges may stand for the same physical memory. Such memory has one shadow for
//! its bytes, in which addresses are offsets into the physical memory, and one shadow per range for
//! the life of that range.
//!
//! A graph that is launched repeatedly, and whose memory nobody else touches meanwhile, would meet
//! its own former launch everywhere. Such a shadow is *leased* to the executable instead: its
//! entries stand for the newest launch, and they are brought up to date when another operation
//! looks at the shadow.
//!
//! Invariant: a lease never hides a conflict; a shadow that another operation reads is settled
//! first.

use crate::conflict;
use crate::core::View;
use crate::overlap::common_bytes;
use crate::record::{AccessRecord, shifted};
use crate::shadow::{Leased, Limits, Shadow};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use streamsan_model::{AllocationId, BackingId, ByteRange, ConflictKind, Mode, RaceClass, Table};

/// The two sides of a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Two operations.
    Operations,
    /// Two nodes of one graph, with the class of the finding.
    Graph(RaceClass),
    /// Two parts of one operation.
    Parts,
}

/// An unordered conflicting predecessor of an access.
#[derive(Clone, Debug)]
pub(crate) struct Conflict {
    pub(crate) scope: Scope,
    pub(crate) kind: ConflictKind,
    pub(crate) earlier: Arc<AccessRecord>,
    pub(crate) later: Arc<AccessRecord>,
    /// The common bytes, in the later side's addresses.
    pub(crate) overlap: ByteRange,
    /// Whether incidental order separates the two sides.
    pub(crate) latent: bool,
}

/// The place of an allocation in physical memory that other ranges may stand for too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mapping {
    pub(crate) memory: BackingId,
    /// Added to addresses (with wrap-around) to get offsets.
    pub(crate) shift: u64,
    /// Whether the physical memory ends with the allocation. Physical memory outlives a mapping or
    /// an import of it.
    pub(crate) is_owner: bool,
    /// Whether the allocation is a region of a memory pool. The end of a region is no use of its
    /// memory.
    pub(crate) is_region: bool,
}

/// Number of new shadows below which no search for finished shadows is made.
const ROOM: usize = if cfg!(test) { 16 } else { 1 << 14 };

/// Number of frees that are remembered, so that a use of the memory after its free is reported.
const REMEMBERED_FREES: usize = if cfg!(test) { 64 } else { 1 << 16 };

#[derive(Debug, Default)]
pub(crate) struct Memory {
    shadows: Table<Box<Shadow>>,
    /// The shadows of physical memory that several ranges stand for. Numbers of physical memory are
    /// declared nowhere, so nothing bounds them.
    physical: BTreeMap<BackingId, Box<Shadow>>,
    /// Freed allocations, the oldest first.
    freed: VecDeque<AllocationId>,
    /// Allocations whose free is no longer remembered.
    gone: Vec<AllocationId>,
    /// Number of shadows from which on the engine searches for finished ones.
    room: usize,
    leases: BTreeMap<u64, Lease>,
    next_lease: u64,
    /// Conflicts of the current operation; `findings` takes them.
    pub(crate) conflicts: Vec<Conflict>,
}

/// The lease of some shadows to an executable graph, whose launches then need no check there.
#[derive(Debug)]
struct Lease {
    /// The newest launch; the access in the record has no meaning.
    newest: Arc<AccessRecord>,
    /// Parts of the graph's summary whose shadows the lease does not hold.
    due: Vec<u32>,
}

/// Saved shadows of an allocation.
#[derive(Debug)]
pub(crate) struct Saved {
    allocation: AllocationId,
    life: Shadow,
    bytes: Option<(BackingId, Shadow)>,
}

/// The cost of a touch.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spent {
    pub(crate) overflows: u64,
}

/// The shadow that an access goes to, and the pairs that count there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Realm {
    /// The shadow of the allocation; every pair counts.
    Allocation,
    /// The shadow of the allocation; only pairs with the allocation's begin or end count.
    Life,
    /// The shadow of the physical memory.
    Bytes(BackingId),
}

fn slot<T: Default>(table: &mut Table<Box<T>>, index: usize) -> &mut T {
    table.get_or_insert_with(index, Box::default)
}

impl Memory {
    /// Returns the shadow as it is now, leased to nobody.
    fn shadow(&mut self, id: AllocationId) -> &mut Shadow {
        let shadow = slot(&mut self.shadows, id.index());
        if let Some(leased) = shadow.lease.take() {
            settle(&mut self.leases, shadow, leased);
        }
        shadow
    }

    /// Checks an access against the shadow and keeps the access.
    pub(crate) fn keep(
        &mut self,
        new: &Arc<AccessRecord>,
        mapping: Option<Mapping>,
        view: &View,
        limits: Limits<'_>,
    ) -> Spent {
        let Some(mapping) = mapping else {
            return self.touch(new, Realm::Allocation, view, limits);
        };
        if mapping.is_region && new.access.mode == Mode::Free {
            // Work that still runs is compared with the next owner of the bytes.
            self.shadow(new.access.allocation).freed = Some(Arc::clone(new));
            self.remember_free(new.access.allocation);
            return Spent::default();
        }
        let mut spent = Spent::default();
        let touches_bytes = match new.access.mode {
            Mode::Allocate => false,
            Mode::Free => mapping.is_owner,
            _ => true,
        };
        if touches_bytes {
            let placed = Arc::new(AccessRecord { shift: mapping.shift, ..(**new).clone() });
            spent = self.touch(&placed, Realm::Bytes(mapping.memory), view, limits);
        }
        spent.overflows += self.touch(new, Realm::Life, view, limits).overflows;
        spent
    }

    fn touch(
        &mut self,
        new: &Arc<AccessRecord>,
        realm: Realm,
        view: &View,
        limits: Limits<'_>,
    ) -> Spent {
        let mut found = std::mem::take(&mut self.conflicts);
        let shadow = match realm {
            Realm::Bytes(memory) => self.physical.entry(memory).or_default(),
            _ => self.shadow(new.access.allocation),
        };
        let mut note = |earlier: &Arc<AccessRecord>, piece: ByteRange, latent: bool| {
            if earlier.op == new.op {
                return;
            }
            let Some(kind) = conflict::kind(new.effect(), earlier.effect()) else { return };
            let of_life = matches!(kind, ConflictKind::UseAfterFree | ConflictKind::UseBeforeAlloc);
            if realm == Realm::Life && !of_life {
                return;
            }
            // One run of an expanded pattern is exact by itself; a sparse side is compared exactly
            // here.
            let overlap = if new.is_sparse() || earlier.is_sparse() {
                let (a, b) = (new.placed_extent(), earlier.placed_extent());
                common_bytes(&a, &b, piece)
            } else {
                Some(piece)
            };
            if let Some(overlap) = overlap {
                let overlap = shifted(overlap, new.shift.wrapping_neg());
                let (earlier, later) = (Arc::clone(earlier), Arc::clone(new));
                let scope = Scope::Operations;
                found.push(Conflict { scope, kind, earlier, later, overlap, latent });
            }
        };
        let extent = new.placed_extent();
        // CUDA: "any submission of p after the free returns is undefined", ordered or not.
        if let Some(freed) = &shadow.freed
            && !(freed.place.is_host() && new.place.is_host())
        {
            note(freed, extent.hull(), false);
        }
        let overflows = shadow.access(&extent, new, view, limits, &mut |earlier, piece| {
            note(earlier, piece, view.covers_incidentally(earlier));
        });
        if new.access.mode == Mode::Free {
            shadow.freed = Some(Arc::clone(new));
            self.remember_free(new.access.allocation);
        }
        self.conflicts = found;
        Spent { overflows }
    }

    fn remember_free(&mut self, id: AllocationId) {
        // Memory of graphs is freed repeatedly.
        if self.freed.back() != Some(&id) {
            self.freed.push_back(id);
        }
        if self.freed.len() > REMEMBERED_FREES
            && let Some(oldest) = self.freed.pop_front()
        {
            if let Some(shadow) = self.shadows.get_mut(oldest.index()) {
                shadow.freed = None;
            }
            self.gone.push(oldest);
        }
    }

    /// Saves the shadows of an allocation for [`Memory::restore`].
    pub(crate) fn save(&mut self, id: AllocationId, mapping: Option<Mapping>) -> Saved {
        let life = self.shadow(id).clone();
        let bytes = mapping.map(|mapping| {
            let shadow = self.physical.entry(mapping.memory).or_default();
            (mapping.memory, (**shadow).clone())
        });
        Saved { allocation: id, life, bytes }
    }

    /// Puts saved shadows back.
    pub(crate) fn restore(&mut self, saved: &Saved) {
        *self.shadow(saved.allocation) = saved.life.clone();
        if let Some((memory, bytes)) = &saved.bytes {
            self.physical.insert(*memory, Box::new(bytes.clone()));
        }
    }

    /// Begins another life of an allocation node's memory, at the same addresses.
    pub(crate) fn begin_generation(&mut self, id: AllocationId) {
        self.shadow(id).begin_generation();
    }

    /// Makes a lease that holds no shadow yet.
    pub(crate) fn new_lease(&mut self, launch: Arc<AccessRecord>) -> u64 {
        self.next_lease += 1;
        let lease = Lease { newest: launch, due: Vec::new() };
        self.leases.insert(self.next_lease, lease);
        self.next_lease
    }

    /// Renews the lease for another launch of the executable. Returns the parts of its summary that
    /// are to be checked, or `None` where the lease no longer exists.
    pub(crate) fn renew_lease(
        &mut self,
        lease: u64,
        launch: &Arc<AccessRecord>,
    ) -> Option<Vec<u32>> {
        let lease = self.leases.get_mut(&lease)?;
        lease.newest = Arc::clone(launch);
        Some(std::mem::take(&mut lease.due))
    }

    /// Notes that the part has been checked: its shadow holds the newest launch. A part that was in
    /// `conflict` is checked again at the next launch.
    pub(crate) fn checked(&mut self, id: u64, item: u32, allocation: AllocationId, clean: bool) {
        let Some(lease) = self.leases.get_mut(&id) else { return };
        if clean && let Some(shadow) = self.shadows.get_mut(allocation.index()) {
            shadow.lease = Some(Leased { lease: id, op: lease.newest.op, item });
        } else {
            lease.due.push(item);
        }
    }

    /// Whether the allocation has been freed, as far as frees are remembered.
    pub(crate) fn is_freed(&self, id: AllocationId) -> bool {
        self.shadows.get(id.index()).is_some_and(|shadow| shadow.freed.is_some())
    }

    /// Whether the allocation has been touched, is not known to be finished, and is not freed.
    pub(crate) fn is_in_use(&self, id: AllocationId) -> bool {
        self.shadows.get(id.index()).is_some_and(|shadow| shadow.freed.is_none())
    }

    /// Forgets accesses for which `dead` holds, and allocations without any access.
    pub(crate) fn prune(&mut self, dead: &impl Fn(&AccessRecord) -> bool) {
        let leases = &mut self.leases;
        let mut is_needed = |shadow: &mut Box<Shadow>| {
            if let Some(leased) = shadow.lease.take() {
                settle(leases, shadow, leased);
            }
            shadow.prune(dead);
            !shadow.is_empty()
        };
        self.shadows.retain(&mut is_needed);
        self.physical.retain(|_, shadow| is_needed(shadow));
        self.room = self.held() + self.held() / 4;
        // No shadow is leased now; an executable that is launched again gets a new lease.
        self.leases.clear();
    }

    /// Whether there are enough shadows that a search for finished ones is due.
    pub(crate) fn is_full(&self) -> bool {
        self.held() > self.room + ROOM
    }

    /// Number of shadows.
    pub(crate) fn held(&self) -> usize {
        self.shadows.len() + self.physical.len()
    }

    /// The allocations that were forgotten since the last call.
    pub(crate) fn take_gone(&mut self) -> Vec<AllocationId> {
        let mut gone = std::mem::take(&mut self.gone);
        self.gone = gone.extract_if(.., |id| self.shadows.contains(id.index())).collect();
        gone
    }

    pub(crate) fn segments(&self) -> u64 {
        let shadows = self.shadows.values().chain(self.physical.values());
        shadows.map(|shadow| shadow.segments() as u64).sum()
    }
}

/// Brings a leased shadow up to date and ends its lease.
fn settle(leases: &mut BTreeMap<u64, Lease>, shadow: &mut Shadow, leased: Leased) {
    let Some(lease) = leases.get_mut(&leased.lease) else { return };
    if lease.newest.op != leased.op {
        shadow.renew(leased.op, &lease.newest);
    }
    lease.due.push(leased.item);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::test_support::record;
    use streamsan_model::{Basis, Extent, StridedPattern};

    const BUFFER: AllocationId = AllocationId(0);

    fn write(g: u64) -> AccessRecord {
        record(g, Mode::Write, Basis::Exact)
    }

    /// Adds a write that is behind nothing, and returns the operations that it conflicts with.
    fn add(memory: &mut Memory, g: u64) -> Vec<u64> {
        memory.keep(&Arc::new(write(g)), None, &View::default(), Limits::new(16));
        std::mem::take(&mut memory.conflicts).iter().map(|c| c.earlier.op.0).collect()
    }

    #[test]
    fn a_leased_shadow_stands_for_the_newest_launch() {
        let mut memory = Memory::default();
        let lease = memory.new_lease(Arc::new(write(1)));
        assert!(add(&mut memory, 1).is_empty());
        memory.checked(lease, 7, BUFFER, true);
        for launch in [2, 3] {
            assert_eq!(memory.renew_lease(lease, &Arc::new(write(launch))), Some(Vec::new()));
        }
        assert_eq!(add(&mut memory, 4), [3], "not the launch whose entries were made");
        let due = memory.renew_lease(lease, &Arc::new(write(5)));
        assert_eq!(due, Some(vec![7]), "somebody else has been there");
    }

    /// The owner frees memory that another range still maps.
    #[test]
    fn a_use_after_the_owner_s_free_is_told_in_the_user_s_addresses() {
        let mapping = |start: u64, is_owner| Mapping {
            memory: BackingId(0),
            shift: start.wrapping_neg(),
            is_owner,
            is_region: false,
        };
        let rows =
            StridedPattern { start: 5010, width: 2, pitch: 8, rows: 3, slice_pitch: 0, slices: 1 };
        let many = StridedPattern { pitch: 3, rows: 100, ..rows };
        let range = ByteRange::new(5010, 5020);
        let uses = [
            (Extent::Range(range), range),
            (Extent::Strided(rows), rows.hull()),
            (Extent::Strided(many), many.hull()),
        ];
        for (extent, overlap) in uses {
            let mut memory = Memory::default();
            let mut free = record(1, Mode::Free, Basis::Exact);
            free.access.extent = Extent::Range(ByteRange::new(100, 1100));
            memory.keep(
                &Arc::new(free),
                Some(mapping(100, true)),
                &View::default(),
                Limits::new(16),
            );
            let mut user = record(2, Mode::Read, Basis::Exact);
            user.access.allocation = AllocationId(1);
            user.access.extent = extent;
            memory.keep(
                &Arc::new(user),
                Some(mapping(5000, false)),
                &View::default(),
                Limits::new(16),
            );
            let told: Vec<_> = memory.conflicts.iter().map(|c| (c.kind, c.overlap)).collect();
            assert!(told.contains(&(ConflictKind::UseAfterFree, overlap)), "{told:?}");
            assert!(told.iter().all(|(_, told)| overlap.covers(*told)), "{told:?}");
        }
    }

    #[test]
    fn a_launch_in_conflict_gets_no_lease() {
        let mut memory = Memory::default();
        let lease = memory.new_lease(Arc::new(write(1)));
        memory.keep(&Arc::new(write(1)), None, &View::default(), Limits::new(16));
        memory.checked(lease, 0, BUFFER, false);
        assert_eq!(memory.renew_lease(lease, &Arc::new(write(2))), Some(vec![0]));
    }

    #[test]
    fn pruning_ends_leases() {
        let mut memory = Memory::default();
        let lease = memory.new_lease(Arc::new(write(1)));
        memory.keep(&Arc::new(write(1)), None, &View::default(), Limits::new(16));
        memory.checked(lease, 0, BUFFER, true);
        memory.renew_lease(lease, &Arc::new(write(2)));
        // Only the first launch is known to be done.
        memory.prune(&|record| record.op.0 < 2);
        assert_eq!(memory.renew_lease(lease, &Arc::new(write(3))), None);
        assert_eq!(add(&mut memory, 4), [2]);
    }
}
