//! Which allocation an address belongs to, now or earlier.
//!
//! Regions of memory pools (`super::pools`) lie over the blocks that the driver made.

use super::graphs::Lives;
use super::pools::Pools;
use std::collections::{BTreeMap, VecDeque};
use streamsan_model::{AllocationId, Backing, ByteRange, ContextId, MemoryKind, StackId};
use streamsan_wire::{Api, HostCall};

/// One generation of an address range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) id: AllocationId,
    pub(super) range: ByteRange,
    pub(super) kind: MemoryKind,
    pub(super) context: Option<ContextId>,
    /// The physical memory behind it, where others may stand for the same.
    pub(super) backing: Option<Backing>,
    /// The call of the driver that made it, or what it is a part of.
    pub(super) made_by: Api,
    /// Global index at the entry of that call.
    pub(super) born: u64,
    /// Global index at its return: nobody knew the address earlier.
    pub(super) returned: u64,
    /// The stack of that call.
    pub(super) stack: Option<StackId>,
}

impl Block {
    /// The name of the call that made it.
    pub(super) fn api(&self) -> &'static str {
        match self.kind {
            MemoryKind::Region => HostCall::NvtxRegionRegister.name(),
            _ => self.made_by.name(),
        }
    }

    /// Whether it is the device address of host memory that has another one.
    pub(super) fn is_host_alias(&self) -> bool {
        matches!(self.made_by, Api::cuMemHostGetDevicePointer | Api::cuMemHostGetDevicePointer_v2)
    }
}

/// Former generations that are kept altogether, of addresses that were never handed out again too.
const MOST_PAST: usize = if cfg!(test) { 8 } else { 1 << 16 };

#[derive(Clone, Copy, Debug)]
struct Past {
    block: Block,
    died: u64,
    /// The driver handed the addresses out again before the call that frees them was entered here:
    /// the two calls overlapped.
    displaced: bool,
}

/// The address space of a process.
#[derive(Debug)]
pub(super) struct Memory {
    live: BTreeMap<u64, Block>,
    /// Former generations by start address, oldest first.
    past: BTreeMap<u64, VecDeque<Past>>,
    /// Start address and allocation of each, oldest first, and of some that are not kept any more.
    ended: VecDeque<(u64, AllocationId)>,
    /// Bounds how far below an address a former generation that holds it can begin.
    longest_past: u64,
    /// Generations kept for each start address.
    depth: usize,
    /// How often a block came or went.
    changes: u64,
    pools: Pools,
    /// While the nodes of a graph are resolved whose memory shares addresses.
    graph: Option<Lives>,
}

impl Memory {
    /// `depth`: former generations to keep for each start address.
    pub(super) fn new(depth: usize) -> Self {
        Self {
            live: BTreeMap::new(),
            past: BTreeMap::new(),
            ended: VecDeque::new(),
            longest_past: 0,
            depth,
            changes: 0,
            pools: Pools::default(),
            graph: None,
        }
    }

    /// From here on addresses are those of a graph's nodes, or of no graph.
    pub(super) fn of_graph(&mut self, lives: Option<Lives>) {
        self.graph = lives;
    }

    pub(super) fn graph_mut(&mut self) -> Option<&mut Lives> {
        self.graph.as_mut()
    }

    /// The graph's memory that the node at hand means by `address`.
    fn find_in_graph(&self, address: u64) -> Option<&Block> {
        self.graph.as_ref()?.find(address)
    }

    pub(super) fn pools(&self) -> &Pools {
        &self.pools
    }

    pub(super) fn pools_mut(&mut self) -> &mut Pools {
        &mut self.pools
    }

    /// A region came, went or has other bytes.
    pub(super) fn pools_changed(&mut self) {
        self.changes += 1;
    }

    /// A pointer in a variable may lead elsewhere from now on.
    pub(super) fn contents_changed(&mut self) {
        self.changes += 1;
    }

    /// Former generations kept for each start address.
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// New memory. Ranges that it overlaps have lost their life unseen, or are about to.
    pub(super) fn insert(&mut self, block: Block) {
        let mut overlapped: Vec<u64> = Vec::new();
        if let Some(before) = self.find_live(block.range.start) {
            overlapped.push(before.range.start);
        }
        let inside = self.live.range(block.range.start..block.range.end.max(block.range.start));
        overlapped.extend(inside.map(|(&start, _)| start));
        overlapped.dedup();
        for start in overlapped {
            self.retire(start, block.born, true);
        }
        self.live.insert(block.range.start, block);
        self.changes += 1;
    }

    /// Grows whenever an address may have come to mean something else.
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    /// The memory that begins at `address` is freed by a call that was entered at `g`.
    pub(super) fn free(&mut self, address: u64, g: u64) -> Option<Block> {
        match self.live.get(&address) {
            // Each launch of its graph brings it to life again at the same addresses.
            Some(block) if block.kind == MemoryKind::GraphOrdered => Some(*block),
            // A block whose address was not yet known then is not the one that is freed.
            Some(block) if block.returned <= g => {
                let block = *block;
                self.retire(address, g, false);
                Some(block)
            }
            _ => {
                let past = self.past.get_mut(&address)?.iter_mut().rev().find(|p| p.displaced)?;
                past.displaced = false;
                past.died = g;
                Some(past.block)
            }
        }
    }

    /// Ends the life of every block that `ends` selects, without a call that frees it.
    pub(super) fn end_where(&mut self, g: u64, ends: impl Fn(&Block) -> bool) {
        let ended: Vec<u64> =
            self.live.values().filter(|b| ends(b)).map(|b| b.range.start).collect();
        for start in ended {
            self.retire(start, g, false);
        }
    }

    /// How many generations are known, and places where some were.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        let past: usize = self.past.values().map(VecDeque::len).sum();
        self.live.len() + self.past.len() + past + self.ended.len()
    }

    /// The live region or block that holds `address`.
    pub(super) fn find(&self, address: u64) -> Option<&Block> {
        let of_graph = self.find_in_graph(address);
        of_graph.or_else(|| self.pools.find(address)).or_else(|| self.find_live(address))
    }

    /// The live block that holds `address` as the driver made it.
    pub(super) fn find_made(&self, address: u64) -> Option<&Block> {
        self.find_in_graph(address).or_else(|| self.find_live(address))
    }

    fn find_live(&self, address: u64) -> Option<&Block> {
        let (_, block) = self.live.range(..=address).next_back()?;
        block.range.contains(address).then_some(block)
    }

    /// The block that begins there stands for this physical memory.
    pub(super) fn set_backing(&mut self, start: u64, backing: Backing) {
        if let Some(block) = self.live.get_mut(&start) {
            block.backing = Some(backing);
        }
    }

    /// The mapped blocks that follow each other without a gap around `block`, in ascending order,
    /// as far as they lie in `within`.
    pub(super) fn contiguous(&self, block: &Block, within: ByteRange) -> Vec<Block> {
        let belongs = |b: &&Block| b.kind == MemoryKind::Mapped && within.covers(b.range);
        let mut run = Vec::new();
        let mut edge = block.range.start;
        for before in self.live.range(..edge).rev().map(|(_, b)| b).take_while(belongs) {
            if before.range.end != edge {
                break;
            }
            edge = before.range.start;
            run.push(*before);
        }
        run.reverse();
        run.push(*block);
        let mut edge = block.range.end;
        for after in self.live.range(edge..).map(|(_, b)| b).take_while(belongs) {
            if after.range.start != edge {
                break;
            }
            edge = after.range.end;
            run.push(*after);
        }
        run
    }

    /// The block that held `address` last, and holds it no more.
    pub(super) fn find_past(&self, address: u64) -> Option<&Block> {
        self.past_holding(address).max_by_key(|p| p.died).map(|p| &p.block)
    }

    /// The block of the driver that held `address` when the call at `g` was entered; failing that,
    /// the last one that did before.
    pub(super) fn find_at(&self, address: u64, g: u64) -> Option<&Block> {
        if let Some(of_graph) = self.find_in_graph(address) {
            return Some(of_graph);
        }
        let live = self.find_live(address).filter(|b| b.born <= g);
        live.or_else(|| {
            self.past_holding(address)
                .filter(|p| p.block.born <= g)
                .max_by_key(|p| (p.died > g, p.died))
                .map(|p| &p.block)
        })
    }

    /// The block that held `address` when the call at `g` was entered.
    pub(super) fn alive_at(&self, address: u64, g: u64) -> Option<&Block> {
        if let Some(of_graph) = self.find_in_graph(address) {
            return Some(of_graph);
        }
        let region = self.pools.find_at(address, g);
        let live = region.or_else(|| self.find_live(address).filter(|b| b.born <= g));
        live.or_else(|| {
            let held = self.past_holding(address).filter(|p| p.block.born <= g && g < p.died);
            held.max_by_key(|p| p.died).map(|p| &p.block)
        })
    }

    /// Where the next block above `address` begins that was alive at `g`.
    pub(super) fn next_start_at(&self, address: u64, g: u64) -> Option<u64> {
        let above = address.saturating_add(1)..;
        let live = self.live.range(above.clone()).find(|(_, b)| b.born <= g).map(|(&s, _)| s);
        let past = self
            .past
            .range(above)
            .find(|(_, all)| all.iter().any(|p| p.block.born <= g && g < p.died))
            .map(|(&s, _)| s);
        live.into_iter().chain(past).min()
    }

    fn past_holding(&self, address: u64) -> impl Iterator<Item = &Past> {
        let lowest = address.saturating_sub(self.longest_past);
        self.past
            .range(lowest..=address)
            .flat_map(|(_, all)| all)
            .filter(move |p| p.block.range.contains(address))
    }

    fn retire(&mut self, start: u64, died: u64, displaced: bool) {
        let Some(block) = self.live.remove(&start) else { return };
        self.changes += 1;
        self.pools.forget(block.range);
        self.longest_past = self.longest_past.max(block.range.len());
        let all = self.past.entry(start).or_default();
        all.push_back(Past { block, died, displaced });
        if all.len() > self.depth {
            all.pop_front();
        }
        self.ended.push_back((start, block.id));
        if self.ended.len() > MOST_PAST {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let Some((start, id)) = self.ended.pop_front() else { return };
        let Some(all) = self.past.get_mut(&start) else { return };
        if all.front().is_some_and(|past| past.block.id == id) {
            all.pop_front();
        }
        if all.is_empty() {
            self.past.remove(&start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(id: u32, start: u64, len: u64, born: u64) -> Block {
        Block {
            id: AllocationId(id),
            range: ByteRange::with_len(start, len),
            kind: MemoryKind::Device,
            context: None,
            backing: None,
            made_by: Api::cuMemAlloc_v2,
            born,
            returned: born + 1,
            stack: None,
        }
    }

    fn id(block: Option<&Block>) -> Option<u32> {
        block.map(|b| b.id.0)
    }

    #[test]
    fn addresses_inside_and_outside() {
        let mut memory = Memory::new(4);
        memory.insert(block(0, 100, 50, 1));
        memory.insert(block(1, 200, 50, 3));
        for (address, expected) in
            [(99, None), (100, Some(0)), (149, Some(0)), (150, None), (200, Some(1)), (250, None)]
        {
            assert_eq!(id(memory.find(address)), expected, "{address}");
        }
    }

    #[test]
    fn generations_at_one_address_are_told_apart_by_time() {
        let mut memory = Memory::new(4);
        memory.insert(block(0, 100, 50, 1));
        assert_eq!(memory.free(100, 10).map(|b| b.id.0), Some(0));
        memory.insert(block(1, 100, 20, 20));
        for (g, expected) in [(0, None), (5, Some(0)), (15, Some(0)), (25, Some(1))] {
            assert_eq!(id(memory.find_at(110, g)), expected, "{g}");
        }
        // Only the first generation ever reached there.
        assert_eq!(id(memory.find_at(140, 25)), Some(0));
        assert_eq!(id(memory.find(140)), None);
        assert_eq!(id(memory.find_past(140)), Some(0));
    }

    #[test]
    fn free_that_overlaps_the_next_allocation_frees_the_former_generation() {
        let mut memory = Memory::new(4);
        memory.insert(block(0, 100, 50, 1));
        // The allocation is entered first and returns last, with the addresses freed in between.
        memory.insert(Block { returned: 13, ..block(1, 100, 50, 10) });
        assert_eq!(memory.free(100, 11).map(|b| b.id.0), Some(0));
        assert_eq!(id(memory.find(100)), Some(1));
        assert_eq!(memory.free(100, 14).map(|b| b.id.0), Some(1));
        assert_eq!(memory.free(100, 15), None);
    }

    #[test]
    fn former_generations_are_bounded() {
        let mut memory = Memory::new(2);
        for n in 0..5 {
            memory.insert(block(n, 100, 10, u64::from(n) * 10 + 1));
            memory.free(100, u64::from(n) * 10 + 5);
        }
        assert_eq!(memory.past[&100].len(), 2);
        assert_eq!(id(memory.find_past(100)), Some(4));
    }

    /// A driver need not hand addresses out again.
    #[test]
    fn former_generations_at_addresses_of_their_own_are_bounded() {
        let mut memory = Memory::new(2);
        for n in 0..50 {
            memory.insert(block(n, u64::from(n) * 100, 10, u64::from(n) * 10 + 1));
            memory.free(u64::from(n) * 100, u64::from(n) * 10 + 5);
        }
        assert_eq!((memory.past.len(), memory.ended.len()), (MOST_PAST, MOST_PAST));
        assert_eq!(id(memory.find_past(4900)), Some(49));
        assert_eq!(id(memory.find_past(100)), None);
    }
}
