//! Memory that graphs allocate.
//!
//! Source of the rules: CUDA Driver API, `cuGraphAddMemAllocNode`, `cuGraphAddMemFreeNode`; CUDA
//! Programming Guide, Graph Memory Nodes: an address is fixed when the node is made; within a graph
//! one is handed out again to a node behind the node that frees it, as NVIDIA's sample
//! `graphMemoryFootprint` shows. Two graphs never share one.
//!
//! Deliberately absent: the physical memory behind the addresses, which the driver moves.

use std::collections::BTreeMap;

use super::super::state::Driver;
use super::exec::{AUTO_FREE, ExecGraph};
use super::node::{AllocNode, NodeKind};
use super::topology::EdgeData;
use crate::errors::{CuError, Outcome};
use crate::memory::Origin;

impl Driver {
    /// Memory of an allocation node behind `after`: its address is fixed now and stays the graph's
    /// until the context ends, for every launch gives it out anew.
    pub(in crate::driver) fn alloc_node(
        &mut self,
        graph: u64,
        after: &[(u64, EdgeData)],
        device: i32,
        length: u64,
    ) -> Outcome<AllocNode> {
        let device = self.device(device)?;
        if length == 0 {
            return Err(CuError::INVALID_VALUE);
        }
        let context = self.current()?;
        let start = match self.freed_before(graph, after, device, length) {
            Some(start) => start,
            None => self.take(length, Origin::Graph, context, device, 0)?,
        };
        self.graph_memory.entry(start).or_insert(false);
        Ok(AllocNode { start, length, device, context })
    }

    /// An address of the graph that is large enough and free behind `after`: every allocation node
    /// that handed it out is followed by a free that `after` is behind. Of several the one that was
    /// handed out last.
    fn freed_before(
        &self,
        graph: u64,
        after: &[(u64, EdgeData)],
        device: u32,
        length: u64,
    ) -> Option<u64> {
        let past = self.past_of(graph, after.iter().map(|(node, _)| *node));
        let mut open: BTreeMap<u64, i64> = BTreeMap::new();
        let mut last = Vec::new();
        for handle in self.nodes_of(graph) {
            match self.node(handle).ok()?.kind {
                NodeKind::Alloc(alloc) => {
                    *open.entry(alloc.start).or_default() += 1;
                    last.push(alloc);
                }
                NodeKind::Free(start) if past.contains(&handle) => {
                    *open.entry(start).or_default() -= 1;
                }
                _ => {}
            }
        }
        let is_free = |alloc: &&AllocNode| {
            let region = self.map.at(alloc.start);
            alloc.device == device
                && open.get(&alloc.start) == Some(&0)
                && region.is_some_and(|region| region.length >= length)
        };
        last.iter().rev().find(is_free).map(|alloc| alloc.start)
    }

    /// A node that frees memory of its graph or of another one: once for each time that the graph
    /// allocates it.
    pub(in crate::driver) fn free_node(&self, graph: u64, start: u64) -> Outcome<NodeKind> {
        self.graph_memory.get(&start).ok_or(CuError::INVALID_VALUE)?;
        let (mut allocated, mut freed) = (0, 0);
        for handle in self.nodes_of(graph) {
            match self.node(handle)?.kind {
                NodeKind::Alloc(alloc) if alloc.start == start => allocated += 1,
                NodeKind::Free(other) if other == start => freed += 1,
                _ => {}
            }
        }
        if freed < allocated.max(1) {
            Ok(NodeKind::Free(start))
        } else {
            Err(CuError::INVALID_VALUE)
        }
    }

    /// Frees memory of a graph outside of it.
    pub(in crate::driver) fn free_graph_memory(&mut self, start: u64) -> Outcome {
        let live = self.graph_memory.get_mut(&start).filter(|live| **live);
        *live.ok_or(CuError::INVALID_VALUE)? = false;
        Ok(())
    }

    /// Checks at a launch that what the graph allocates is free, and books what it leaves allocated.
    pub(super) fn book_memory(&mut self, graph: &ExecGraph, flags: u64) -> Outcome {
        // By address: how often it is allocated, and how often freed.
        let mut counts: BTreeMap<u64, (u32, u32)> = BTreeMap::new();
        graph.visit(&mut |node| match node.kind {
            NodeKind::Alloc(alloc) => counts.entry(alloc.start).or_default().0 += 1,
            NodeKind::Free(start) => counts.entry(start).or_default().1 += 1,
            _ => {}
        });
        for (start, &(allocated, freed)) in &counts {
            let live = self.graph_memory.get(start).is_some_and(|live| *live);
            if allocated != 0 && live && flags & AUTO_FREE == 0 {
                return Err(CuError::INVALID_VALUE);
            }
            if allocated == 0 && freed != 0 && !live {
                return Err(CuError::INVALID_VALUE);
            }
        }
        for (start, (allocated, freed)) in counts {
            self.graph_memory.insert(start, allocated > freed);
        }
        Ok(())
    }
}
