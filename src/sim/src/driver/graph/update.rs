//! `cuGraphExecUpdate`: an executable takes the parameters of a graph of the same shape.
//!
//! Nodes are paired by the order of their making, which the manual demands to be the same for
//! graphs that are built or captured alike.

use super::super::sim::Call;
use super::exec::{ExecGraph, ExecNode};
use super::node::NodeKind;
use crate::errors::{CuError, Outcome};

/// Why an update was refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UpdateFailure {
    /// CUgraphExecUpdateResult.
    pub(crate) result: u32,
    /// The node of the updating graph, and where an edge differs the node that it comes from.
    pub(crate) node: u64,
    pub(crate) from: u64,
}

const TOPOLOGY_CHANGED: u32 = 2;
const NODE_TYPE_CHANGED: u32 = 3;
const PARAMETERS_CHANGED: u32 = 5;
const UNSUPPORTED_FUNCTION_CHANGE: u32 = 7;

fn compare(ours: &ExecGraph, theirs: &ExecGraph) -> Option<UpdateFailure> {
    let failure = |result, node| Some(UpdateFailure { result, node, from: 0 });
    if ours.nodes.len() != theirs.nodes.len() {
        let extra = theirs.nodes.get(ours.nodes.len()).map_or(0, |node| node.source);
        return failure(TOPOLOGY_CHANGED, extra);
    }
    for (old, new) in ours.nodes.iter().zip(&theirs.nodes) {
        if old.kind.number() != new.kind.number() {
            return failure(NODE_TYPE_CHANGED, new.source);
        }
        if old.after != new.after {
            let other = new.after.iter().find(|edge| !old.after.contains(edge));
            let from = other.map_or(0, |(place, _)| theirs.nodes[*place].source);
            return Some(UpdateFailure { result: TOPOLOGY_CHANGED, node: new.source, from });
        }
        if let Some(result) = unfit(old, new) {
            return failure(result, new.source);
        }
        if let (Some(ours), Some(theirs)) = (&old.child, &new.child)
            && let Some(found) = compare(ours, theirs)
        {
            return Some(found);
        }
    }
    None
}

/// The parts that an update may not change: the context of a kernel, and the memory of memory
/// nodes.
fn unfit(old: &ExecNode, new: &ExecNode) -> Option<u32> {
    match (&old.kind, &new.kind) {
        (NodeKind::Kernel(old), NodeKind::Kernel(new)) if old.context != new.context => {
            Some(UNSUPPORTED_FUNCTION_CHANGE)
        }
        (NodeKind::Alloc(old), NodeKind::Alloc(new)) if old.length != new.length => {
            Some(PARAMETERS_CHANGED)
        }
        _ => None,
    }
}

impl Call {
    /// Updates an executable. The inner result says why the graph does not fit.
    pub(crate) fn exec_update(&self, exec: u64, graph: u64) -> Outcome<Result<(), UpdateFailure>> {
        let mut driver = self.lock();
        driver.exec(exec)?;
        let new = driver.compile_graph(graph)?;
        let entry = driver.execs.get_mut(exec).ok_or(CuError::INVALID_VALUE)?;
        if let Some(failure) = compare(&entry.graph, &new) {
            return Ok(Err(failure));
        }
        entry.graph.adopt(new);
        Ok(Ok(()))
    }
}
