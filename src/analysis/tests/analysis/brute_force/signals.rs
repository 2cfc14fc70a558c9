//! Signals: which of those issued before a wait may satisfy it, and what all of them are behind.

use super::bytes::Bytes;
use super::graph::{Graph, Node, Reachability};
use super::rules::{Moment, Rules};
use streamsan_model::{
    Access, Basis, ByteRange, Extent, Mode, OpSeq, SignalObject, SignalOperation,
};

/// A signal, and where in its stream it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signal {
    node: Node,
    value: u64,
    releases: bool,
}

impl Rules {
    pub(super) fn signals(&mut self, g: OpSeq, node: Node, operation: SignalOperation) {
        match operation {
            SignalOperation::Signal { object, value, releases } => {
                self.signals.entry(object).or_default().push(Signal { node, value, releases });
            }
            SignalOperation::Wait { object, value, compare } => {
                let signals = self.signals.get(&object).cloned().unwrap_or_default();
                let (documented, both) = self.reachable_by_now(g);
                let before = |a: Node, b: Node| documented.happens_before(a, b);
                // Overwritten when the wait begins: another one, or anything else that is certain to
                // write the word, is behind it and before the wait.
                let others: Vec<Node> =
                    signals.iter().map(|other| other.node).chain(self.resets(object)).collect();
                let stands = |signal: &Signal| {
                    !others.iter().any(|&other| before(signal.node, other) && before(other, node))
                };
                let width = match object {
                    SignalObject::Memory { width, .. } => width,
                    SignalObject::Semaphore(_) => 8,
                };
                let met = |signal: &&Signal| compare.is_met_by(signal.value, value, width);
                let candidates: Vec<Signal> =
                    signals.iter().filter(met).filter(|signal| stands(signal)).copied().collect();
                let is_known = candidates.iter().any(|signal| before(signal.node, node));
                if is_known || candidates.iter().any(|signal| !signal.releases) {
                    return;
                }
                let behind_all = |reachable: &Reachability, earlier: Node| {
                    !candidates.is_empty()
                        && candidates.iter().all(|signal| {
                            earlier == signal.node || reachable.happens_before(earlier, signal.node)
                        })
                };
                for earlier in 0..self.graph.len() {
                    if behind_all(&documented, earlier) {
                        self.graph.edge(earlier, node);
                    } else if behind_all(&both, earlier) {
                        self.incidental_edges.push((earlier, node));
                    }
                }
            }
        }
    }

    /// Where something else than a stream memory operation is certain to write the word.
    fn resets(&self, object: SignalObject) -> Vec<Node> {
        let SignalObject::Memory { allocation, address, width } = object else { return Vec::new() };
        let whole = self.entities.allocation(allocation).expect("declared").range;
        let bytes = |extent: &Extent| Bytes::of(extent, whole);
        let word = bytes(&Extent::Range(ByteRange::with_len(address, width.into())));
        let resets = self.accesses.iter().filter(|placed| {
            let Access { mode, basis, .. } = placed.access;
            let is_certain = mode.writes()
                && !matches!(mode, Mode::MayWrite | Mode::Allocate | Mode::Free)
                && matches!(basis, Basis::Exact | Basis::Measured | Basis::Inferred)
                && !placed.may;
            is_certain
                && placed.access.allocation == allocation
                && !self.memory_operations.contains(&placed.op)
                && word.clone().without(&bytes(&placed.access.extent)).is_empty()
        });
        resets.map(|placed| placed.node).collect()
    }

    /// The order so far, by documented edges and by both kinds.
    fn reachable_by_now(&self, g: OpSeq) -> (Reachability, Reachability) {
        let mut graph: Graph = self.graph.clone();
        let mut host = self.host.clone();
        host.retain(|&(_, at, moment, _)| (at, moment) <= (g, Moment::Entry));
        host.sort();
        for pair in host.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
            graph.edge(pair[0].3, pair[1].3);
        }
        let documented = graph.closure();
        for &(from, to) in &self.incidental_edges {
            graph.edge(from, to);
        }
        (documented, graph.closure())
    }
}
