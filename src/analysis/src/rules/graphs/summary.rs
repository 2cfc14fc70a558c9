//! The summary of a graph: the accesses of one launch with their views. Accesses of several nodes
//! become one where no operation outside the graph can tell the nodes apart.
//!
//! Seen from outside, nodes differ in two ways only. Nodes before an event record node (or a
//! signal, or a host function) are done when the event fires, the others are not: these are the
//! *classes*. Nodes behind an event wait node (or a wait for a signal) know what that node waited
//! for: these are the *intakes*. A graph without such nodes has one group of accesses.
//!
//! Invariant: an access of the summary conflicts with an outside access exactly if one of the
//! accesses that it stands for does.

use super::check::kernel;
use super::order::Ordered;
use crate::core::View;
use crate::record::{Place, Role};
use crate::shadow::Order;
use std::collections::BTreeMap;
use streamsan_model::{
    Access, AllocationId, Basis, ByteRange, Entities, EventId, Extent, GraphNode, KernelId, Mode,
    NodeAction, SignalOperation,
};

/// The summary of a snapshot.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    /// The touched allocations.
    pub(crate) items: Vec<Item>,
    pub(crate) groups: Vec<Group>,
    /// Number of classes; class 0 holds the nodes whose end nothing in the graph tells.
    pub(crate) classes: usize,
    pub(crate) intakes: Vec<Intake>,
    pub(crate) outlets: Vec<Outlet>,
    /// One of the graph's kernels, if there is any.
    pub(crate) kernel: Option<KernelId>,
}

/// The accesses of the nodes to one allocation.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) allocation: AllocationId,
    /// Whether each launch begins a new generation of the allocation.
    pub(crate) begins: bool,
    pub(crate) touches: Vec<Touch>,
}

/// An access that stands for those of one or many nodes.
#[derive(Debug)]
pub(crate) struct Touch {
    pub(crate) access: Access,
    pub(crate) role: Role,
    /// The kernel, where all of the nodes run the same one.
    pub(crate) kernel: Option<KernelId>,
    pub(crate) group: usize,
}

/// The place in the order, seen from outside, of a group of nodes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Group {
    pub(crate) class: usize,
    /// Indices of the intakes that the nodes are behind.
    pub(crate) intakes: Vec<usize>,
}

/// A node at which order comes in besides the launch itself.
#[derive(Clone, Debug)]
pub(crate) enum Intake {
    Event(EventId),
    Signals(Vec<SignalOperation>),
}

/// A node at which order goes out besides the end of the launch.
#[derive(Clone, Debug)]
pub(crate) struct Outlet {
    pub(crate) to: Target,
    /// The classes of nodes that are done at the outlet.
    pub(crate) classes: Vec<usize>,
    /// Indices of the intakes that the outlet is behind.
    pub(crate) intakes: Vec<usize>,
}

#[derive(Clone, Debug)]
pub(crate) enum Target {
    Event(EventId),
    Signals(Vec<SignalOperation>),
    /// The host, at the begin of the graph's host functions.
    HostBegin,
    /// The host, once the graph's host function has ended.
    HostEnd,
}

impl Summary {
    /// Whether all nodes have the same place in the order.
    pub(crate) fn is_plain(&self) -> bool {
        self.intakes.is_empty() && self.outlets.is_empty()
    }

    pub(crate) fn of(entities: &Entities, nodes: &[Ordered]) -> Self {
        let mut summary = Self::default();
        let mut begins: Vec<&Ordered> = Vec::new();
        let mut hosts: Vec<&Ordered> = Vec::new();
        // Positions of the outlets' nodes, and whether those nodes are done themselves.
        let mut ends: Vec<(Target, Vec<&Ordered>, bool)> = Vec::new();
        for ordered in nodes {
            let Some(node) = ordered.node.node() else { continue };
            match &node.action {
                // Nothing can rely on a node that may not run.
                _ if ordered.node.may => {}
                NodeAction::EventWait { event } => {
                    begins.push(ordered);
                    summary.intakes.push(Intake::Event(*event));
                }
                NodeAction::EventRecord { event } => {
                    ends.push((Target::Event(*event), vec![ordered], false));
                }
                NodeAction::HostFunction => hosts.push(ordered),
                NodeAction::Signals { operations } => {
                    if operations.iter().any(|o| matches!(o, SignalOperation::Wait { .. })) {
                        begins.push(ordered);
                        summary.intakes.push(Intake::Signals(operations.clone()));
                    }
                    if operations.iter().any(|o| matches!(o, SignalOperation::Signal { .. })) {
                        ends.push((Target::Signals(operations.clone()), vec![ordered], false));
                    }
                }
                _ => {}
            }
            summary.kernel = summary.kernel.or(kernel(&node.action));
        }
        if !hosts.is_empty() {
            // Which of several functions runs cannot be told: the outlet is what all of them are
            // behind.
            let itself = hosts.len() == 1;
            ends.push((Target::HostBegin, hosts.clone(), false));
            ends.push((Target::HostEnd, hosts, itself));
        }
        summary.group(entities, nodes, &begins, &ends);
        summary
    }

    /// Puts every access into its group.
    fn group(
        &mut self,
        entities: &Entities,
        nodes: &[Ordered],
        begins: &[&Ordered],
        ends: &[(Target, Vec<&Ordered>, bool)],
    ) {
        let intakes_of = |node: &Ordered, view: &View| -> Vec<usize> {
            let is_behind = |begin: &&Ordered| is_before(begin, view) || begin.at == node.at;
            (0..begins.len()).filter(|&index| is_behind(&begins[index])).collect()
        };
        let mut classes = BTreeMap::from([(Vec::new(), 0)]);
        let mut groups: BTreeMap<Group, usize> = BTreeMap::new();
        let mut items: BTreeMap<AllocationId, Builder> = BTreeMap::new();
        for node in nodes {
            let Some(action) = node.node.node() else { continue };
            let done_for: Vec<usize> = ends
                .iter()
                .enumerate()
                .filter(|(_, (_, at, itself))| {
                    at.iter()
                        .all(|end| is_before(node, &end.view) || (*itself && end.at == node.at))
                })
                .map(|(index, _)| index)
                .collect();
            let next = classes.len();
            let class = *classes.entry(done_for).or_insert(next);
            for (position, access) in accesses(entities, action).into_iter().enumerate() {
                let intakes = intakes_of(node, node.view_of(position));
                let next = groups.len();
                let group = *groups.entry(Group { class, intakes }).or_insert(next);
                let role = node.node.role(&access);
                items.entry(access.allocation).or_default().add(
                    access,
                    role,
                    kernel(&action.action),
                    group,
                );
            }
        }
        self.classes = classes.len();
        for (index, (to, at, _)) in ends.iter().enumerate() {
            let done = classes.iter().filter(|(done_for, _)| done_for.contains(&index));
            let classes = done.map(|(_, &class)| class).collect();
            let intakes = if let [end] = at[..] { intakes_of(end, &end.view) } else { Vec::new() };
            self.outlets.push(Outlet { to: to.clone(), classes, intakes });
        }
        let mut in_order: Vec<_> = groups.into_iter().collect();
        in_order.sort_by_key(|(_, index)| *index);
        self.groups = in_order.into_iter().map(|(group, _)| group).collect();
        self.items = items.into_iter().map(|(id, builder)| builder.finish(id)).collect();
    }
}

fn is_before(node: &Ordered, view: &View) -> bool {
    view.covers(Place::Chain(node.chain), node.at)
}

/// The accesses of a node. Allocation and free touch the whole generation, also where the trace
/// does not say so.
pub(crate) fn accesses(entities: &Entities, node: &GraphNode) -> Vec<Access> {
    let mut accesses = node.accesses.clone();
    let life = match node.action {
        NodeAction::Allocate { allocation } => Some((allocation, Mode::Allocate)),
        NodeAction::Free { allocation } => Some((allocation, Mode::Free)),
        _ => None,
    };
    if let Some((allocation, mode)) = life
        && !accesses.iter().any(|a| a.allocation == allocation && a.mode == mode)
        && let Some(declared) = entities.allocation(allocation)
    {
        let extent = Extent::Range(declared.range);
        accesses.push(Access { allocation, extent, mode, basis: Basis::Exact });
    }
    accesses
}

/// The properties that accesses must share to become one.
type Key = (Mode, Basis, Role, usize);

/// Accesses to one allocation.
#[derive(Default)]
struct Builder {
    ranges: BTreeMap<Key, Kind>,
    /// Accesses that stay single: patterns, and accesses of which only the start is certain.
    single: Vec<Touch>,
}

struct Kind {
    ranges: Vec<ByteRange>,
    kernel: Option<KernelId>,
}

impl Builder {
    fn add(&mut self, access: Access, role: Role, kernel: Option<KernelId>, group: usize) {
        match access.extent {
            Extent::Range(range) if access.basis != Basis::Anchored => {
                let key = (access.mode, access.basis, role, group);
                let new = || Kind { ranges: Vec::new(), kernel };
                let kind = self.ranges.entry(key).or_insert_with(new);
                kind.kernel = kind.kernel.filter(|_| kind.kernel == kernel);
                kind.ranges.push(range);
            }
            _ => {
                let same =
                    |t: &&mut Touch| t.access == access && t.role == role && t.group == group;
                match self.single.iter_mut().find(same) {
                    Some(touch) => touch.kernel = touch.kernel.filter(|_| touch.kernel == kernel),
                    None => self.single.push(Touch { access, role, kernel, group }),
                }
            }
        }
    }

    fn finish(self, allocation: AllocationId) -> Item {
        let mut touches = self.single;
        for ((mode, basis, role, group), kind) in self.ranges {
            touches.extend(run_together(kind.ranges).into_iter().map(|range| Touch {
                access: Access { allocation, extent: Extent::Range(range), mode, basis },
                role,
                kernel: kind.kernel,
                group,
            }));
        }
        // A generation begins with its allocation and ends with its free.
        touches.sort_by_key(|touch| match touch.access.mode {
            Mode::Allocate => 0,
            Mode::Free => 2,
            _ => 1,
        });
        let begins = touches.iter().any(|touch| touch.access.mode == Mode::Allocate);
        Item { allocation, begins, touches }
    }
}

/// Joins ranges that overlap or adjoin.
fn run_together(mut ranges: Vec<ByteRange>) -> Vec<ByteRange> {
    ranges.sort_unstable();
    let mut result: Vec<ByteRange> = Vec::new();
    for range in ranges {
        match result.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => result.push(range),
        }
    }
    result
}
