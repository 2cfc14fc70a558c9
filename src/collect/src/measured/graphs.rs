//! Kernel nodes of graphs that the run measures.
//!
//! The declaration of a graph tells the accesses of its nodes for all of its launches. So the bytes
//! that a node touched in each launch are put together at the end of the run. Where they were the
//! same each time, they take the place of what was concluded. Where they were not, the node may touch
//! any of them in each launch.
//!
//! Invariants:
//! - A node keeps what was concluded unless it was measured in every launch of its graph.
//! - A node in the body of a conditional node keeps what was concluded: nobody knows how often it ran.
//! - Every launch of a node is counted once.
//!
//! Deliberately absent: the accesses of a single launch of a graph.

use super::{ConcludedLaunch, Counts, MeasuredLaunch};
use crate::resolve::Gap;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use streamsan_model::{Access, Basis, Graph, GraphId, KernelId, NodeAction};

/// Node launches whose bytes are awaited at once; those beyond are not measured.
const MOST_AWAITED: usize = 1 << 18;
/// Accesses that are put together for a node; one that touches more different bytes is not measured.
const MOST_ACCESSES: usize = 1 << 14;

/// A kernel node that a launch runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LaunchedNode {
    /// The node's handle, by which its bytes are told; 0 in the body of a conditional node.
    pub(crate) handle: u64,
    /// The declared graph that the node is in, and its position there.
    pub(crate) graph: GraphId,
    pub(crate) position: u32,
    /// Whether the kernel has accesses that measuring does not see.
    pub(crate) unseen: bool,
}

/// The bytes of a node in all launches so far.
#[derive(Debug, Default)]
struct NodeBytes {
    launches: u64,
    measured: u64,
    bytes: Option<MeasuredLaunch>,
    /// Whether two launches touched different bytes.
    differs: bool,
}

/// Selected kernels in graphs, and their bytes.
#[derive(Debug, Default)]
pub(super) struct MeasuredGraphs {
    /// The last declarations of graphs with selected kernels.
    graphs: HashMap<GraphId, Arc<Graph>>,
    kernels: HashMap<(GraphId, u32), Arc<str>>,
    nodes: BTreeMap<(GraphId, u32), NodeBytes>,
    /// Nodes whose kernels have accesses that measuring does not see.
    unseen: BTreeSet<(GraphId, u32)>,
    /// The nodes whose bytes are to come, by launch and handle.
    awaited: HashMap<(u64, u64), (GraphId, u32)>,
    /// Gaps of kernels in graphs.
    gaps: Vec<Gap>,
}

impl MeasuredGraphs {
    /// Takes note of a graph, or of what has become known of it.
    pub(super) fn declared(&mut self, graph: &Arc<Graph>, selected: &HashMap<KernelId, Arc<str>>) {
        let mut has_kernel = false;
        for (position, node) in (0..).zip(&graph.nodes).filter(|(_, node)| node.enabled) {
            if let NodeAction::Kernel { kernel, .. } = &node.action
                && let Some(name) = selected.get(kernel)
            {
                self.kernels.insert((graph.id, position), name.clone());
                has_kernel = true;
            }
        }
        if has_kernel {
            self.graphs.insert(graph.id, graph.clone());
        }
    }

    /// The code of a node's kernel has become known.
    pub(super) fn code_known(&mut self, node: (GraphId, u32), unseen: bool) {
        if unseen {
            self.unseen.insert(node);
        } else {
            self.unseen.remove(&node);
        }
    }

    /// Keeps the gaps of kernels in graphs until the end; answers the others.
    pub(super) fn keep_gaps(
        &mut self,
        gaps: Vec<Gap>,
        is_selected: impl Fn(&str) -> bool,
    ) -> Vec<Gap> {
        let (kept, others) = gaps.into_iter().partition(|gap| is_selected(gap.kernel()));
        let kept: Vec<Gap> = kept;
        self.gaps.extend(kept);
        others
    }

    /// A graph was launched.
    pub(super) fn launched(&mut self, g: u64, nodes: &[LaunchedNode]) {
        for &LaunchedNode { handle, graph, position, unseen } in nodes {
            let node = (graph, position);
            if !self.kernels.contains_key(&node) {
                continue;
            }
            let bytes = self.nodes.entry(node).or_default();
            bytes.launches += 1;
            if bytes.launches == 1 && unseen {
                self.unseen.insert(node);
            }
            if handle != 0 && self.awaited.len() < MOST_AWAITED {
                self.awaited.insert((g, handle), node);
            }
        }
    }

    /// Whether the bytes of a node are to come for the launch at `g`.
    pub(super) fn is_awaited(&self, g: u64, handle: u64) -> bool {
        self.awaited.contains_key(&(g, handle))
    }

    /// The bytes of a node in the launch at `g` have come.
    pub(super) fn measured(&mut self, g: u64, handle: u64, measured: MeasuredLaunch) {
        let node = self.awaited.remove(&(g, handle)).and_then(|node| self.nodes.get_mut(&node));
        let Some(node) = node else { return };
        match &mut node.bytes {
            None => node.bytes = Some(measured),
            Some(known) if *known == measured => {}
            Some(known) => {
                node.differs = true;
                if !known.join(measured) {
                    return;
                }
            }
        }
        node.measured += 1;
    }

    /// No more bytes come: counts the launches of nodes. Answers the graphs whose nodes have other
    /// accesses from now on, and the gaps that count.
    pub(super) fn end(
        &mut self,
        counts: &mut BTreeMap<Arc<str>, Counts>,
    ) -> (Vec<Arc<Graph>>, Vec<Gap>) {
        let mut changed = BTreeMap::new();
        let mut open: BTreeSet<Arc<str>> = BTreeSet::new();
        let mut whole: BTreeSet<Arc<str>> = BTreeSet::new();
        for (node, bytes) in std::mem::take(&mut self.nodes) {
            let Some(name) = self.kernels.get(&node) else { continue };
            let counts = counts.entry(name.clone()).or_default();
            let merged =
                bytes.bytes.filter(|_| bytes.measured == bytes.launches).and_then(|seen| {
                    let graph = self.graphs.get_mut(&node.0)?;
                    let unseen = self.unseen.contains(&node);
                    replace(Arc::make_mut(graph), node.1, &seen, unseen, bytes.differs)
                });
            match merged {
                Some(is_whole) => {
                    changed.extend(self.graphs.get(&node.0).map(|graph| (node.0, graph.clone())));
                    if is_whole {
                        counts.whole += bytes.launches;
                        whole.insert(name.clone());
                        let is_pointers = |gap: &Gap| gap.is_pointers_in_memory();
                        let own = self.gaps.iter().filter(|gap| gap.kernel() == &**name);
                        if own.into_iter().any(is_pointers) {
                            counts.follows_pointers += bytes.launches;
                        }
                        continue;
                    }
                    counts.in_part += bytes.launches;
                }
                None => counts.not += bytes.launches,
            }
            open.insert(name.clone());
        }
        let closes = |gap: &Gap| whole.contains(gap.kernel()) && !open.contains(gap.kernel());
        let gaps = std::mem::take(&mut self.gaps).into_iter().filter(|gap| !closes(gap)).collect();
        (changed.into_values().collect(), gaps)
    }
}

/// Gives a node the accesses that were measured; whether they are all that it touches in each launch.
fn replace(
    graph: &mut Graph,
    position: u32,
    measured: &MeasuredLaunch,
    unseen: bool,
    differs: bool,
) -> Option<bool> {
    let node = graph.nodes.get_mut(position as usize)?;
    let NodeAction::Kernel { control, .. } = &mut node.action else { return None };
    let accesses = std::mem::take(&mut node.accesses);
    let concluded = ConcludedLaunch { accesses, early: control.early, unseen };
    let mut merged = measured.merged(&concluded);
    if differs {
        let seen = merged.accesses.iter_mut().filter(|access| access.basis == Basis::Measured);
        seen.for_each(|access| access.basis = Basis::Assumed);
    }
    node.accesses = merged.accesses;
    control.early = merged.early;
    Some(merged.is_whole && !differs)
}

impl MeasuredLaunch {
    /// Takes in the bytes of another launch; `false` where they are too many.
    fn join(&mut self, other: Self) -> bool {
        let Self { accesses, early, knows_early, in_part, has_hulls } = other;
        if self.accesses.len() + accesses.len() > MOST_ACCESSES {
            return false;
        }
        let mut behind = self.accesses.split_off((self.early as usize).min(self.accesses.len()));
        let mut other_before = accesses;
        let other_behind = other_before.split_off((early as usize).min(other_before.len()));
        add(&mut self.accesses, other_before);
        self.early = self.accesses.len() as u32;
        add(&mut behind, other_behind);
        self.accesses.append(&mut behind);
        self.knows_early &= knows_early;
        self.in_part |= in_part;
        self.has_hulls |= has_hulls;
        true
    }
}

fn add(all: &mut Vec<Access>, more: Vec<Access>) {
    for access in more {
        if !all.contains(&access) {
            all.push(access);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use streamsan_model::{AllocationId, ByteRange, Extent, GraphNode, GridControl, Mode};
    use streamsan_model::{OpSeq, ProcessId};

    const GRAPH: GraphId = GraphId(4);
    const NODE: u64 = 0x900;

    fn access(start: u64, basis: Basis) -> Access {
        let extent = Extent::Range(ByteRange::with_len(start, 64));
        Access { allocation: AllocationId(0), extent, mode: Mode::Write, basis }
    }

    fn seen(start: u64) -> MeasuredLaunch {
        MeasuredLaunch { accesses: vec![access(start, Basis::Measured)], ..Default::default() }
    }

    fn declared() -> MeasuredGraphs {
        let node = GraphNode {
            made_by: OpSeq(1),
            api: "cuGraphAddKernelNode_v2".into(),
            captured_from: None,
            enabled: true,
            action: NodeAction::Kernel { kernel: KernelId(3), control: GridControl::default() },
            accesses: vec![access(0x100, Basis::Anchored)],
            stack: None,
        };
        let graph = Graph {
            id: GRAPH,
            process: ProcessId(0),
            name: None,
            nodes: vec![node],
            edges: Vec::new(),
        };
        let mut graphs = MeasuredGraphs::default();
        graphs.declared(&Arc::new(graph), &HashMap::from([(KernelId(3), "fill".into())]));
        assert_eq!(graphs.keep_gaps(vec![Gap::pointers_in_memory("fill")], |_| true), []);
        graphs
    }

    fn launched(graphs: &mut MeasuredGraphs, g: u64, handle: u64) {
        graphs.launched(g, &[LaunchedNode { handle, graph: GRAPH, position: 0, unseen: false }]);
    }

    /// The node's accesses, how its launches were counted (whole, in part, not), and the open gaps.
    fn end(mut graphs: MeasuredGraphs) -> (Vec<(u64, Basis)>, [u64; 3], usize) {
        let mut counts = BTreeMap::new();
        let (changed, gaps) = graphs.end(&mut counts);
        let accesses = changed.iter().flat_map(|graph| &graph.nodes[0].accesses);
        let accesses = accesses.map(|access| (access.extent.hull().start, access.basis));
        let Counts { whole, in_part, not, .. } = counts.remove("fill").unwrap_or_default();
        (accesses.collect(), [whole, in_part, not], gaps.len())
    }

    #[test]
    fn same_bytes_in_each_launch_are_those_of_the_node() {
        let mut graphs = declared();
        for g in [10, 20] {
            launched(&mut graphs, g, NODE);
            graphs.measured(g, NODE, seen(0x140));
            // A second list for the same launch.
            graphs.measured(g, NODE, seen(0x180));
        }
        assert_eq!(end(graphs), (vec![(0x140, Basis::Measured)], [2, 0, 0], 0));
    }

    #[test]
    fn other_bytes_in_another_launch_may_be_touched_in_each() {
        let mut graphs = declared();
        for (g, start) in [(10, 0x140), (20, 0x180), (30, 0x140)] {
            launched(&mut graphs, g, NODE);
            graphs.measured(g, NODE, seen(start));
        }
        let both = vec![(0x140, Basis::Assumed), (0x180, Basis::Assumed)];
        assert_eq!(end(graphs), (both, [0, 3, 0], 1));
    }

    #[test]
    fn nodes_that_were_not_measured_each_time_stay_as_concluded() {
        let mut graphs = declared();
        launched(&mut graphs, 10, NODE);
        launched(&mut graphs, 20, NODE);
        graphs.measured(20, NODE, seen(0x140));
        assert_eq!(end(graphs), (vec![], [0, 0, 2], 1));
        // In the body of a conditional node.
        let mut graphs = declared();
        launched(&mut graphs, 10, 0);
        assert!(!graphs.is_awaited(10, 0));
        assert_eq!(end(graphs), (vec![], [0, 0, 1], 1));
    }

    #[test]
    fn bytes_that_nobody_sees_stay() {
        let mut graphs = declared();
        launched(&mut graphs, 10, NODE);
        graphs.code_known((GRAPH, 0), true);
        graphs.measured(10, NODE, seen(0x140));
        let both = vec![(0x140, Basis::Measured), (0x100, Basis::Anchored)];
        assert_eq!(end(graphs), (both, [0, 1, 0], 1));
    }
}
