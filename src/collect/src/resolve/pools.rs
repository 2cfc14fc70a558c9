//! Memory pools of the program, as NVTX's memory extension tells of them: heaps, and the regions
//! that their sub-allocators hand out.
//!
//! A region is an allocation of its own, on the physical memory of what it is a part of: what its
//! users do conflicts with each other, with former owners of its bytes, and with whatever touches
//! the pool's memory without it. It lives until it is unregistered, its heap is reset or
//! unregistered, or the memory behind it is freed.
//!
//! Deliberately absent: heaps of a usage that leaves memory accessible without regions (the whole
//! process, layouts), whose regions are no lifetimes, and pools of host or managed memory, which
//! have rules that a region would hide.

use super::host_names;
use super::memory::Block;
use super::resolution::Resolution;
use crate::host_event::HostEvent;
use std::collections::{BTreeMap, HashMap, VecDeque};
use streamsan_model::{
    Action, Allocation, AllocationId, Backing, Basis, ByteRange, Entity, Extent, MemoryKind, Mode,
};
use streamsan_wire::HostCall;

/// `NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR`.
const SUB_ALLOCATOR: u64 = 1;

/// A region that has ended.
#[derive(Clone, Copy, Debug)]
struct EndedRegion {
    block: Block,
    died: u64,
}

/// The heaps and regions of a process.
#[derive(Debug, Default)]
pub(super) struct Pools {
    heaps: BTreeMap<u64, ByteRange>,
    live: BTreeMap<u64, Block>,
    /// Ended regions of heaps by start address, oldest first.
    ended: BTreeMap<u64, VecDeque<EndedRegion>>,
    /// Bounds how far below an address an ended region that holds it can begin.
    longest_ended: u64,
    /// The sizes of live regions, which are declared again when they change.
    names: HashMap<AllocationId, Box<str>>,
}

impl Pools {
    /// The live region that holds `address`.
    pub(super) fn find(&self, address: u64) -> Option<&Block> {
        let (_, block) = self.live.range(..=address).next_back()?;
        block.range.contains(address).then_some(block)
    }

    /// The region that held `address` when the call at `g` was entered.
    pub(super) fn find_at(&self, address: u64, g: u64) -> Option<&Block> {
        let live = self.find(address).filter(|block| block.born <= g);
        let was_alive = |ended: &&EndedRegion| ended.block.born <= g && g < ended.died;
        live.or_else(|| self.ended_at(address).find(was_alive).map(|ended| &ended.block))
    }

    /// The last region that held all of `range` and had ended when the call at `g` was entered.
    pub(super) fn ended_before(&self, range: ByteRange, g: u64) -> Option<&Block> {
        self.ended_at(range.start)
            .filter(|ended| ended.died <= g && ended.block.range.covers(range))
            .max_by_key(|ended| ended.died)
            .map(|ended| &ended.block)
    }

    /// Where the next region above `address` begins that was alive at `g`.
    pub(super) fn next_start_at(&self, address: u64, g: u64) -> Option<u64> {
        let above = address.saturating_add(1)..;
        let live = self.live.range(above.clone()).find(|(_, b)| b.born <= g).map(|(&s, _)| s);
        let was_alive = |ended: &EndedRegion| ended.block.born <= g && g < ended.died;
        let ended =
            self.ended.range(above).find(|(_, all)| all.iter().any(was_alive)).map(|(&s, _)| s);
        live.into_iter().chain(ended).min()
    }

    fn ended_at(&self, address: u64) -> impl Iterator<Item = &EndedRegion> {
        let lowest = address.saturating_sub(self.longest_ended);
        self.ended
            .range(lowest..=address)
            .flat_map(|(_, all)| all)
            .filter(move |ended| ended.block.range.contains(address))
    }

    /// Forgets the pools in `range`: their memory is gone.
    pub(super) fn forget(&mut self, range: ByteRange) {
        if self.heaps.is_empty() && self.live.is_empty() && self.ended.is_empty() {
            return;
        }
        let lies_in = |other: ByteRange| other.intersection(range).is_some();
        self.heaps.retain(|_, heap| !range.covers(*heap));
        let names = &mut self.names;
        self.live.retain(|_, block| {
            let stays = !lies_in(block.range);
            if !stays {
                names.remove(&block.id);
            }
            stays
        });
        self.ended.retain(|_, all| !all.back().is_some_and(|ended| lies_in(ended.block.range)));
    }

    /// The region that begins at `address` ends; `depth` ended ones are kept for each address.
    fn end(&mut self, address: u64, died: u64, depth: usize) -> Option<Block> {
        let block = self.live.remove(&address)?;
        self.names.remove(&block.id);
        self.longest_ended = self.longest_ended.max(block.range.len());
        if depth == 1 {
            // Nobody asks what stood there earlier.
            let inside = block.range.start..block.range.end;
            let covered: Vec<u64> = self.ended.range(inside).map(|(&start, _)| start).collect();
            for start in covered {
                let all = self.ended.get(&start).and_then(VecDeque::back);
                if all.is_some_and(|ended| block.range.covers(ended.block.range)) {
                    self.ended.remove(&start);
                }
            }
        }
        let all = self.ended.entry(address).or_default();
        all.push_back(EndedRegion { block, died });
        if all.len() > depth {
            all.pop_front();
        }
        Some(block)
    }

    /// The live regions in `range`, by their start addresses.
    fn inside(&self, range: ByteRange) -> Vec<u64> {
        self.live.range(range.start..range.end).map(|(&start, _)| start).collect()
    }
}

/// The heaps and regions that NVTX tells of.
pub(super) fn resolve(resolution: &mut Resolution<'_>, event: &HostEvent) -> Option<Action> {
    match event.call {
        HostCall::NvtxHeapRegister => heap(resolution, event),
        HostCall::NvtxHeapReset => {
            let heap = *resolution.tables.memory.pools().heaps.get(&event.arg(0))?;
            end_all(resolution, heap)
        }
        HostCall::NvtxHeapUnregister => {
            let heap = resolution.tables.memory.pools_mut().heaps.remove(&event.arg(0))?;
            let action = end_all(resolution, heap);
            // From here on it is memory like any other.
            resolution.tables.memory.pools_mut().forget(heap);
            action
        }
        HostCall::NvtxRegionRegister => register(resolution, event),
        HostCall::NvtxRegionResize => {
            let range = ByteRange::with_len(event.arg(0), event.arg(1));
            resize(resolution, range);
            None
        }
        HostCall::NvtxRegionUnregister => {
            let block = end(resolution, event.arg(0))?;
            Some(Action::Free { allocation: block.id, stream: None })
        }
        _ => None,
    }
}

/// `nvtxMemHeapRegister`.
fn heap(resolution: &mut Resolution<'_>, event: &HostEvent) -> Option<Action> {
    let range = ByteRange::with_len(event.arg(0), event.arg(1));
    if event.arg(2) != SUB_ALLOCATOR || range.is_empty() {
        return None;
    }
    let block = *resolution.tables.memory.find_made(range.start)?;
    if !block.kind.holds_regions() {
        return None;
    }
    // Known by its physical memory before anything is handed out.
    resolution.share(&block);
    if !event.text.is_empty() {
        host_names::memory(resolution, range.start, &event.text);
    }
    resolution.tables.memory.pools_mut().heaps.insert(range.start, range);
    None
}

/// `nvtxMemRegionsRegister`, of one region.
fn register(resolution: &mut Resolution<'_>, event: &HostEvent) -> Option<Action> {
    let range = ByteRange::with_len(event.arg(0), event.arg(1));
    let heap = *resolution.tables.memory.pools().heaps.get(&event.arg(2))?;
    if range.is_empty() || !heap.covers(range) {
        return None;
    }
    let of = *resolution.tables.memory.find_made(range.start)?;
    if !of.range.covers(range) {
        resolution.gaps.not_understood("nvtxMemRegionsRegister (across mappings)");
        return None;
    }
    let whole = resolution.share(&of);
    let offset = whole.offset + (range.start - of.range.start);
    let backing = Some(Backing { offset, ..whole });
    for overlapped in overlapping(resolution, range) {
        // Its end was not told.
        end(resolution, overlapped);
    }
    resolution.accesses.clear();
    let born = resolution.call.g;
    let block = Block {
        id: resolution.ids.allocation(),
        range,
        kind: MemoryKind::Region,
        context: of.context,
        backing,
        made_by: of.made_by,
        born,
        returned: born,
        stack: resolution.call.stack,
    };
    declare(resolution, &block);
    resolution.tables.memory.pools_mut().live.insert(range.start, block);
    resolution.tables.memory.pools_changed();
    resolution.touch(block.id, Extent::Range(range), Mode::Allocate, Basis::Exact);
    Some(Action::Allocate { allocation: block.id, stream: None })
}

/// The live regions that share bytes with `range`, by their start addresses.
fn overlapping(resolution: &Resolution<'_>, range: ByteRange) -> Vec<u64> {
    let pools = resolution.tables.memory.pools();
    let mut found = pools.inside(range);
    let below = pools.find(range.start).map(|block| block.range.start);
    found.extend(below.filter(|start| !found.contains(start)));
    found
}

/// `nvtxMemRegionsResize`, of one region: it stays what it is.
fn resize(resolution: &mut Resolution<'_>, range: ByteRange) {
    let memory = &mut resolution.tables.memory;
    let room = memory.find_made(range.start).is_some_and(|of| of.range.covers(range));
    let next = memory.pools().live.range(range.start.saturating_add(1)..).next();
    let is_free = next.is_none_or(|(&start, _)| start >= range.end);
    if range.is_empty() || !room || !is_free {
        return;
    }
    let Some(block) = memory.pools_mut().live.get_mut(&range.start) else { return };
    block.range = range;
    let block = *block;
    memory.pools_changed();
    declare(resolution, &block);
}

fn declare(resolution: &mut Resolution<'_>, block: &Block) {
    resolution.declare(Entity::Allocation(Allocation {
        id: block.id,
        process: resolution.tables.id,
        context: block.context,
        kind: block.kind,
        range: block.range,
        api: block.api().to_owned(),
        backing: block.backing,
        name: resolution.tables.memory.pools().names.get(&block.id).map(|name| (**name).to_owned()),
        stack: block.stack,
    }));
}

/// Names the region or allocation that holds an address.
pub(super) fn name(resolution: &mut Resolution<'_>, address: u64, name: &str) -> Option<Action> {
    if let Some(&Block { id, .. }) = resolution.tables.memory.pools().find(address) {
        resolution.tables.memory.pools_mut().names.insert(id, name.into());
    }
    host_names::memory(resolution, address, name)
}

/// The region that begins at `address` ends.
fn end(resolution: &mut Resolution<'_>, address: u64) -> Option<Block> {
    let g = resolution.call.g;
    let block = resolution.tables.memory.end_region(address, g)?;
    resolution.touch(block.id, Extent::Range(block.range), Mode::Free, Basis::Exact);
    Some(block)
}

/// All regions in `range` end.
fn end_all(resolution: &mut Resolution<'_>, range: ByteRange) -> Option<Action> {
    let regions = resolution.tables.memory.pools().inside(range);
    let ended: Vec<Block> =
        regions.into_iter().filter_map(|start| end(resolution, start)).collect();
    Some(Action::Free { allocation: ended.first()?.id, stream: None })
}

impl super::memory::Memory {
    /// The region that begins at `address` ends with a call that was entered at `g`.
    fn end_region(&mut self, address: u64, g: u64) -> Option<Block> {
        let depth = self.depth();
        let block = self.pools_mut().end(address, g, depth)?;
        self.pools_changed();
        Some(block)
    }

    /// The memory that a pointer into `block` meant in the call at `g`: where it lay in a pool
    /// outside of every region, the region that stood there last.
    pub(super) fn meant(&self, block: &Block, address: u64, g: u64) -> Block {
        *self.former_region(block, ByteRange::with_len(address, 1), g).unwrap_or(block)
    }

    /// The block that bytes of the call at `g` belong to of which the first lies in `block`: a region
    /// only if all of them do, also one that had ended.
    pub(super) fn owner_of(&self, block: &Block, bytes: ByteRange, g: u64) -> Block {
        let owner = if block.kind != MemoryKind::Region {
            self.former_region(block, bytes, g)
        } else if block.range.covers(bytes) {
            None
        } else {
            self.find_made(block.range.start)
        };
        *owner.unwrap_or(block)
    }

    /// The region that held all of `bytes` and had ended, where the driver's `block` holds them.
    fn former_region(&self, block: &Block, bytes: ByteRange, g: u64) -> Option<&Block> {
        let pools = self.pools();
        if pools.ended.is_empty() || !block.kind.holds_regions() {
            return None;
        }
        pools.ended_before(bytes, g)
    }

    /// The first bytes of `range` that belong together, as they did at `g`: whose they are, and
    /// where they end.
    pub(super) fn piece_at(&self, range: ByteRange, g: u64) -> (Option<&Block>, u64) {
        if let Some(region) = self.pools().find_at(range.start, g) {
            return (Some(region), region.range.end.min(range.end));
        }
        let (block, end) = match self.find_at(range.start, g) {
            Some(block) => (Some(block), block.range.end),
            None => (None, self.next_start_at(range.start, g).unwrap_or(u64::MAX)),
        };
        let next = self.pools().next_start_at(range.start, g).unwrap_or(u64::MAX);
        let end = end.min(next).min(range.end);
        let former = self.pools().ended_before(ByteRange::new(range.start, end), g);
        (former.filter(|_| block.is_some()).or(block), end)
    }
}
