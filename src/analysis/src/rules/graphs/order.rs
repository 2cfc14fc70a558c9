//! The happens-before order of a graph's nodes: a topological order (Kahn, "Topological sorting of
//! large networks", CACM 1962), and a small vector clock for each node.
//!
//! The nodes are decomposed into chains greedily: a node continues the chain of the first
//! predecessor that is the end of its chain, or begins a chain of its own. Positions in the
//! topological order are the time stamps, so the clocks and the shadow memory of streams serve
//! graphs as well.
//!
//! A kernel behind a programmatic edge is behind less at its begin than after its wait, as in a
//! stream (`rules::launches`).
//!
//! Invariant: a node is behind another one exactly if a path of edges leads to it.

use super::flatten::FlatNode;
use crate::clock::{Chain, Know, Part};
use crate::core::View;
use crate::rules::catalogue::Rule;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use streamsan_model::{ContextId, EdgePort, GridControl, NodeAction, OpSeq, Trigger};

/// A node and its place.
#[derive(Debug)]
pub(crate) struct Ordered {
    pub(crate) node: FlatNode,
    /// The node's place in the topological order, from 1.
    pub(crate) at: OpSeq,
    pub(crate) chain: Chain,
    /// The node's view; for a kernel that begins before others have ended, the view after its wait.
    pub(crate) view: View,
    /// The view at the begin of such a kernel.
    early: Option<View>,
}

impl Ordered {
    /// The view of the access at `position`.
    pub(crate) fn view_of(&self, position: usize) -> &View {
        match (&self.early, control(&self.node)) {
            (Some(early), Some(control)) if control.is_early(position) => early,
            _ => &self.view,
        }
    }
}

fn control(node: &FlatNode) -> Option<GridControl> {
    match node.node()?.action {
        NodeAction::Kernel { control, .. } => Some(control),
        _ => None,
    }
}

/// The knowledge with which the dependents of a kernel begin.
#[derive(Clone, Debug)]
struct Begun {
    /// The knowledge once all blocks of the kernel have begun.
    begin: Arc<Know>,
    /// The knowledge once all blocks have triggered or ended.
    start: Arc<Know>,
}

/// The nodes in a topological order that follows the order of the calls that made them, as far as
/// that is one.
pub(crate) fn order(nodes: Vec<FlatNode>, applies: &dyn Fn(Rule) -> bool) -> Vec<Ordered> {
    let sequence = topological(&nodes);
    let mut has_early_dependents = vec![false; nodes.len()];
    for before in nodes.iter().flat_map(|node| &node.before) {
        has_early_dependents[before.node] |= before.port != EdgePort::End;
    }
    let mut slots: Vec<Option<FlatNode>> = nodes.into_iter().map(Some).collect();
    // By flat index: the node's place, and what early dependents need of the node.
    let mut parts: Vec<Option<Part>> = vec![None; slots.len()];
    let mut begun: Vec<Option<Begun>> = vec![None; slots.len()];
    let mut ends: Vec<u64> = Vec::new();
    let mut ordered = Vec::with_capacity(slots.len());
    for (index, at) in sequence.into_iter().zip(1u64..) {
        let Some(node) = slots[index].take() else { continue };
        let mut shared: Option<Arc<Know>> = None;
        let mut chain = None;
        let is_early = node.before.iter().any(|before| before.port != EdgePort::End);
        for before in &node.before {
            // Missing only in a malformed graph with a cycle.
            let Some(part) = &parts[before.node] else { continue };
            if before.port != EdgePort::End {
                if let Some(begun) = begun[before.node].as_ref()
                    && applies(Rule::ProgrammaticBase)
                {
                    let triggered = before.port == EdgePort::Triggered;
                    let know = if triggered { &begun.start } else { &begun.begin };
                    Arc::make_mut(shared.get_or_insert_default()).join(know);
                }
                continue;
            }
            if chain.is_none() && ends[part.chain.slot as usize] == part.g {
                chain = Some(part.chain);
                // Most nodes have one predecessor, and share its knowledge.
                match &mut shared {
                    None => shared = Some(Arc::clone(&part.know)),
                    Some(shared) => Arc::make_mut(shared).join(&part.know),
                }
            } else {
                Arc::make_mut(shared.get_or_insert_default()).acquire(part);
            }
        }
        let mut shared = shared.unwrap_or_default();
        let control = control(&node);
        let needs_begin = is_early || has_early_dependents[index];
        let begin = needs_begin.then(|| with_chain(&shared, chain, at));
        if control.is_some_and(|control| control.waits) {
            for before in node.before.iter().filter(|before| before.is_covered) {
                let Some(part) = &parts[before.node] else { continue };
                if chain.is_none() && ends[part.chain.slot as usize] == part.g {
                    chain = Some(part.chain);
                }
                Know::acquire_shared(&mut shared, part);
            }
        }
        let chain = chain.unwrap_or_else(|| {
            ends.push(0);
            Chain { slot: ends.len() as u32 - 1, context: ContextId(0) }
        });
        ends[chain.slot as usize] = at;
        parts[index] = Some(Part { chain, g: at, know: Arc::clone(&shared) });
        let view = View { own: Some((chain, at - 1)), know: shared, ..View::default() };
        let early = begin.as_ref().filter(|_| is_early);
        let early = early.map(|begin| View { know: Arc::clone(begin), ..View::default() });
        if let Some(begin) = begin.filter(|_| has_early_dependents[index]) {
            let waited = with_chain(&view.know, Some(chain), at);
            let trigger = control.map_or(Trigger::AtEnd, |control| control.trigger);
            let known = trigger != Trigger::Early && applies(Rule::ProgrammaticTrigger);
            let mut start = if known { waited } else { Arc::clone(&begin) };
            if trigger == Trigger::AtEnd && applies(Rule::ProgrammaticEnd) {
                Arc::make_mut(&mut start).documented.raise_reads(chain, at);
            }
            begun[index] = Some(Begun { begin, start });
        }
        ordered.push(Ordered { node, at: OpSeq(at), chain, view, early });
    }
    ordered
}

/// The knowledge, joined with the node's chain before `at`.
fn with_chain(know: &Arc<Know>, chain: Option<Chain>, at: u64) -> Arc<Know> {
    let mut know = Arc::clone(know);
    if let Some(chain) = chain {
        Arc::make_mut(&mut know).documented.raise(chain, at - 1);
    }
    know
}

/// Kahn's algorithm; among several nodes that could come next, the one that was made first.
fn topological(nodes: &[FlatNode]) -> Vec<usize> {
    let mut waiting: Vec<usize> = nodes.iter().map(|node| node.before.len()).collect();
    let mut behind: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for (index, node) in nodes.iter().enumerate() {
        for before in &node.before {
            behind[before.node].push(index);
        }
    }
    let key = |index: usize| Reverse((nodes[index].made_by, index));
    let mut ready: BinaryHeap<_> =
        (0..nodes.len()).filter(|&index| waiting[index] == 0).map(key).collect();
    let mut sequence = Vec::with_capacity(nodes.len());
    let mut is_placed = vec![false; nodes.len()];
    loop {
        while let Some(Reverse((_, index))) = ready.pop() {
            if std::mem::replace(&mut is_placed[index], true) {
                continue;
            }
            sequence.push(index);
            for &next in &behind[index] {
                waiting[next] = waiting[next].saturating_sub(1);
                if waiting[next] == 0 {
                    ready.push(key(next));
                }
            }
        }
        // A cycle, which the driver refuses to build: any node of the cycle may break it.
        let Some(rest) = (0..nodes.len()).find(|&index| !is_placed[index]) else { break };
        ready.push(key(rest));
    }
    sequence
}
