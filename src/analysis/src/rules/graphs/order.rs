//! Which node of a graph is behind which: a topological order, and a small vector clock a node.
//!
//! The nodes are decomposed into chains greedily: a node goes on the chain of the first node that
//! it is behind and that ends its chain, or begins a chain of its own. Positions in the topological
//! order are the time stamps, so the clocks and the shadow memory of streams serve graphs as well.

use super::flatten::FlatNode;
use crate::clock::{Chain, Know, Part};
use crate::core::View;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use streamsan_model::{ContextId, OpSeq};

/// A node and its place.
#[derive(Debug)]
pub(crate) struct Ordered {
    pub(crate) node: FlatNode,
    /// Its place, from 1.
    pub(crate) at: OpSeq,
    pub(crate) chain: Chain,
    /// What it is behind.
    pub(crate) view: View,
}

/// The nodes in topological order, by the calls that made them as far as that is one.
pub(crate) fn order(nodes: Vec<FlatNode>) -> Vec<Ordered> {
    let sequence = topological(&nodes);
    let mut slots: Vec<Option<FlatNode>> = nodes.into_iter().map(Some).collect();
    // By flat index: where the node has come to stand.
    let mut parts: Vec<Option<Part>> = vec![None; slots.len()];
    let mut ends: Vec<u64> = Vec::new();
    let mut ordered = Vec::with_capacity(slots.len());
    for (index, at) in sequence.into_iter().zip(1u64..) {
        let Some(node) = slots[index].take() else { continue };
        let mut shared: Option<Arc<Know>> = None;
        let mut chain = None;
        for before in &node.before {
            // Missing in a malformed graph with a circle only.
            let Some(part) = &parts[before.node] else { continue };
            if before.only_begun {
                let know = Arc::make_mut(shared.get_or_insert_default());
                know.join(&part.know);
                know.documented.raise(part.chain, part.g - 1);
                continue;
            }
            if chain.is_none() && ends[part.chain.slot as usize] == part.g {
                chain = Some(part.chain);
                // Most nodes have one predecessor, and share what that one knows.
                match &mut shared {
                    None => shared = Some(Arc::clone(&part.know)),
                    Some(shared) => Arc::make_mut(shared).join(&part.know),
                }
            } else {
                Arc::make_mut(shared.get_or_insert_default()).acquire(part);
            }
        }
        let chain = chain.unwrap_or_else(|| {
            ends.push(0);
            Chain { slot: ends.len() as u32 - 1, context: ContextId(0) }
        });
        let shared = shared.unwrap_or_default();
        ends[chain.slot as usize] = at;
        parts[index] = Some(Part { chain, g: at, know: Arc::clone(&shared) });
        let view = View { own: Some((chain, at - 1)), know: shared, ..View::default() };
        ordered.push(Ordered { node, at: OpSeq(at), chain, view });
    }
    ordered
}

/// Kahn's algorithm; of several nodes that could come next, the one that was made first.
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
        // A circle, which the driver refuses to build: any node of it may break it.
        let Some(rest) = (0..nodes.len()).find(|&index| !is_placed[index]) else { break };
        ready.push(key(rest));
    }
    sequence
}
