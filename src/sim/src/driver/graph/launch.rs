//! Launching executables.
//!
//! Every node becomes an operation of its own that waits for the nodes it depends on and for
//! nothing else, so that a policy may run nodes that no edge orders in any order. All of them are
//! behind what the stream holds and behind the executable's previous launch (CUDA Driver API,
//! cuGraphLaunch), and what the stream is given next is behind all of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::event::Recorded;
use super::super::fill::FillSpec;
use super::super::launch::KernelRun;
use super::super::sim::Call;
use super::super::state::Driver;
use super::super::stream::DefaultStream;
use super::super::words::Words;
use super::super::work::{Job, Stamp, Work};
use super::exec::{ExecGraph, ExecNode};
use super::node::NodeKind;
use crate::errors::{CuError, Outcome};
use crate::exports::runtime;
use crate::schedule::{Lane, OpId};

/// Bytes of new graph memory that are overwritten at most: it holds no particular value.
const SCRIBBLED: u64 = 1 << 20;

impl ExecGraph {
    /// Places, each behind those that it depends on, in the order of the making of the nodes.
    pub(super) fn in_order(&self) -> Vec<usize> {
        self.walk(0..self.nodes.len())
    }

    /// The order of a host that awaits the node made last first: only what that node needs runs
    /// before it, so a node that merely was made earlier has definitely not run.
    fn adverse_order(&self) -> Vec<usize> {
        self.walk((0..self.nodes.len()).rev())
    }

    /// Each place of `wanted` with its past before it.
    fn walk(&self, wanted: impl Iterator<Item = usize>) -> Vec<usize> {
        let mut seen = vec![false; self.nodes.len()];
        let mut order = Vec::new();
        for place in wanted {
            let mut open = vec![(place, false)];
            while let Some((place, past_done)) = open.pop() {
                if past_done {
                    order.push(place);
                } else if !std::mem::replace(&mut seen[place], true) {
                    open.push((place, true));
                    open.extend(
                        self.nodes[place].after.iter().map(|(earlier, _)| (*earlier, false)),
                    );
                }
            }
        }
        order
    }
}

/// A launch while it is submitted.
struct Submission {
    ordinal: u32,
    context: u64,
    /// The number of the driver call, 0 if nobody counts.
    tag: u64,
    adverse: bool,
    ops: Vec<OpId>,
    records: BTreeMap<u64, Recorded>,
}

impl Driver {
    fn push(&mut self, to: &Submission, node: &ExecNode, after: &[OpId], work: Work) -> OpId {
        let context = if node.kind.context() == 0 { to.context } else { node.kind.context() };
        let lane = Lane { stream: node.lane, ordinal: to.ordinal };
        self.queue.push(lane, after, Job { context, tag: to.tag, work })
    }

    /// Submits the nodes of a graph behind `begin`.
    fn submit_graph(&mut self, to: &mut Submission, graph: &ExecGraph, begin: OpId) -> Vec<OpId> {
        let order = if to.adverse { graph.adverse_order() } else { graph.in_order() };
        let mut started: Vec<Vec<OpId>> = vec![Vec::new(); graph.nodes.len()];
        let mut done: Vec<OpId> = vec![begin; graph.nodes.len()];
        for place in order {
            let node = &graph.nodes[place];
            let (mut after, mut overtakes) = (vec![begin], false);
            for (earlier, data) in &node.after {
                // A dependent launch that never waits for its primary may start when that does.
                if data.is_programmatic() && !waits_for_primary(&node.kind) {
                    after.extend(&started[*earlier]);
                    overtakes = true;
                } else {
                    after.push(done[*earlier]);
                }
            }
            done[place] = self.submit_node(to, node, &mut after);
            started[place] = after;
            if overtakes {
                self.queue.hurry(done[place]);
            }
            to.ops.push(done[place]);
        }
        done
    }

    fn submit_node(&mut self, to: &mut Submission, node: &ExecNode, after: &mut Vec<OpId>) -> OpId {
        if let Some(child) = &node.child {
            let begin = self.push(to, node, after, Work::Marker);
            let mut inside = self.submit_graph(to, child, begin);
            inside.push(begin);
            return self.push(to, node, &inside, Work::Marker);
        }
        let work = match &node.kind {
            _ if !node.enabled => Work::Marker,
            NodeKind::Kernel(kernel) => {
                Work::Kernel(Box::new(KernelRun::of_node(kernel.template.clone(), node.source)))
            }
            NodeKind::Copy(copy) => {
                copy.copy.clone().map_or(Work::Marker, |copy| Work::Copy(Box::new(copy)))
            }
            NodeKind::Fill(fill) => Work::Fill(fill.fill),
            NodeKind::Host(host) => Work::Host(host.call),
            NodeKind::Words(words) => Work::Words(Words::new(Arc::clone(&words.ops))),
            NodeKind::EventWait(event) => {
                // The event's content when the launch is called: the weaker reading.
                let recorded = self.events.get(*event).and_then(|event| event.recorded.as_ref());
                after.extend(recorded.map(|recorded| recorded.ops.clone()).unwrap_or_default());
                Work::Marker
            }
            NodeKind::EventRecord(event) => {
                let stamp = Arc::new(Stamp::default());
                let op = self.push(to, node, after, Work::Record(Arc::clone(&stamp)));
                to.records.insert(*event, Recorded { ops: vec![op], stamp, awaited: Vec::new() });
                return op;
            }
            NodeKind::Alloc(alloc) => {
                let width = alloc.length.min(SCRIBBLED);
                let (start, value, element) = (alloc.start, 0xcc, 1);
                let spec = FillSpec { start, pitch: 0, value, element, width, height: 1 };
                self.prepare_fill(spec).map_or(Work::Marker, |(fill, _)| Work::Fill(fill))
            }
            NodeKind::Child(_) | NodeKind::Conditional(_) | NodeKind::Empty | NodeKind::Free(_) => {
                Work::Marker
            }
        };
        self.push(to, node, after, work)
    }

    fn launch_exec(&mut self, handle: u64, stream: u64) -> Outcome {
        let exec = self.execs.get_mut(handle).ok_or(CuError::INVALID_VALUE)?;
        let (graph, last, flags) = (std::mem::take(&mut exec.graph), exec.last.clone(), exec.flags);
        let result = self.book_memory(&graph, flags);
        let mut end = None;
        if result.is_ok() {
            let entry = self.streams.get(&stream);
            let (ordinal, context) = entry.map_or((0, 0), |entry| (entry.ordinal, entry.context));
            let adverse = self.policy.reorders_nodes();
            let (ops, records) = (Vec::new(), BTreeMap::new());
            let tag = runtime::current_op();
            let mut to = Submission { ordinal, context, tag, adverse, ops, records };
            let begin = self.submit(stream, Work::Marker, &last);
            self.submit_graph(&mut to, &graph, begin);
            end = Some(self.submit(stream, Work::Marker, &to.ops));
            for (event, recorded) in to.records {
                if let Some(event) = self.events.get_mut(event) {
                    event.recorded = Some(recorded);
                    event.captured = None;
                }
            }
        }
        if let Some(exec) = self.execs.get_mut(handle) {
            exec.graph = graph;
            if end.is_some() {
                exec.last = end.into_iter().collect();
            }
        }
        result
    }
}

/// Whether a kernel executes the wait for the kernels that it depends on.
fn waits_for_primary(kind: &NodeKind) -> bool {
    match kind {
        NodeKind::Kernel(kernel) => kernel.template.waits_for_primary(),
        _ => true,
    }
}

impl Call {
    pub(crate) fn graph_launch(&self, exec: u64, stream: u64, default: DefaultStream) -> Outcome {
        let mut driver = self.lock();
        driver.exec(exec)?;
        let id = driver.resolve(stream, default)?;
        driver.refuse_capture(id)?;
        driver.launch_exec(exec, id)?;
        drop(self.sim.submitted(driver));
        Ok(())
    }

    /// `cuGraphUpload`: ordered like a launch, without effect on memory.
    pub(crate) fn graph_upload(&self, exec: u64, stream: u64, default: DefaultStream) -> Outcome {
        let mut driver = self.lock();
        let last = driver.exec(exec)?.last.clone();
        let id = driver.resolve(stream, default)?;
        driver.refuse_capture(id)?;
        let end = driver.submit(id, Work::Marker, &last);
        if let Some(exec) = driver.execs.get_mut(exec) {
            exec.last = vec![end];
        }
        drop(self.sim.submitted(driver));
        Ok(())
    }
}
