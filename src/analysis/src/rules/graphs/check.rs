//! The check inside a graph, once for every snapshot: pairs of nodes whose accesses conflict and
//! that no path of edges orders.
//!
//! Invariant: a pair of calls is reported once, however many snapshots hold their nodes.

use super::order::Ordered;
use crate::Sink;
use crate::conflict::kind;
use crate::core::Core;
use crate::memory::{Conflict, Memory, Scope};
use crate::record::{AccessRecord, Place};
use crate::shadow::{Limits, Order};
use crate::touch::mapping;
use std::sync::Arc;
use streamsan_model::{KernelId, NodeAction, OpSeq, ProcessId, RaceClass};

/// Checks the nodes in a shadow memory of their own. A pair of nodes is reported once, even if
/// several snapshots hold it.
pub(crate) fn check(core: &mut Core, process: ProcessId, nodes: &[Ordered], sink: &mut dyn Sink) {
    let mut memory = Memory::default();
    let limits = Limits::new(core.options.antichain_cap);
    let mut accesses = 0;
    for ordered in nodes {
        let Some(node) = ordered.node.node() else { continue };
        let accesses_of_node = super::summary::accesses(&core.entities, node);
        for (position, access) in accesses_of_node.into_iter().enumerate() {
            let view = ordered.view_of(position);
            let record = AccessRecord {
                id: accesses,
                op: ordered.at,
                process,
                place: Place::Chain(ordered.chain),
                stream: node.captured_from,
                api: core.api_names.number(&node.api),
                kernel: kernel(&node.action),
                stack: node.stack,
                view: view.clone(),
                synchronous: false,
                has_tail: false,
                function: None,
                role: ordered.node.role(&access),
                floating: false,
                shift: 0,
                ambiguous: None,
                access,
            };
            accesses += 1;
            let mapping = mapping(&core.entities, record.access.allocation);
            let spent = memory.keep(&Arc::new(record), mapping, view, limits);
            core.statistics.antichain_overflows += spent.overflows;
        }
    }
    core.statistics.accesses += accesses;
    let node = |op: OpSeq| &nodes[op.0 as usize - 1].node;
    let made_by = |op: OpSeq| node(op).made_by;
    let together =
        |conflict: &&Conflict| !node(conflict.earlier.op).excludes(node(conflict.later.op));
    let conflicts = memory.conflicts.iter().filter(together);
    let mut found: Vec<_> =
        conflicts.filter_map(|conflict| between_calls(conflict, made_by)).collect();
    core.graphs.keep_new(&mut found);
    core.memory.conflicts.append(&mut found);
    if !core.memory.conflicts.is_empty() {
        core.conclude(sink);
    }
}

pub(crate) fn kernel(action: &NodeAction) -> Option<KernelId> {
    match action {
        NodeAction::Kernel { kernel, .. } => Some(*kernel),
        _ => None,
    }
}

/// The conflict as one between the calls that made the nodes, the earlier call first.
fn between_calls(conflict: &Conflict, made_by: impl Fn(OpSeq) -> OpSeq) -> Option<Conflict> {
    let call =
        |record: &AccessRecord| Arc::new(AccessRecord { op: made_by(record.op), ..record.clone() });
    let (mut earlier, mut later) = (call(&conflict.earlier), call(&conflict.later));
    // A use behind the free is a mistake of its own, not a missing order.
    let is_ordered = {
        let (earlier, later) = (&conflict.earlier, &conflict.later);
        later.view.covers(earlier.place, earlier.op)
    };
    let class = if is_ordered { RaceClass::UseAfterFree } else { RaceClass::GraphUnordered };
    if earlier.op > later.op && !is_ordered {
        std::mem::swap(&mut earlier, &mut later);
    }
    let kind = kind(later.effect(), earlier.effect())?;
    let scope = Scope::Graph(class);
    Some(Conflict { scope, kind, earlier, later, ..conflict.clone() })
}
