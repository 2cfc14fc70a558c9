//! A graph as the driver has it, published node by node.

use core::slice;
use std::collections::HashMap;

use streamsan_wire::node_kind::*;
use streamsan_wire::{GraphPart, ParamKind, RecordKind, WireEdge};

use super::conditional::{self, UNION};
use super::driver::{self, Structure};
use super::node::{FUNCTION, KERNEL_HANDLE, Node};
use crate::attach::Attachment;
use crate::host::fences::GraphTouches;
use crate::thread::{Outgoing, Thread};

/// Most nodes of a graph and all its bodies.
const MOST_NODES: usize = 1 << 20;
/// Most levels of bodies inside each other.
const MOST_LEVELS: usize = 16;
/// Edges in one record.
const EDGES_PER_RECORD: usize = 512;

struct Reader<'a> {
    thread: &'a Thread,
    attachment: &'a Attachment,
    /// The next number of a graph.
    next: u32,
    /// Nodes that may still be read.
    left: usize,
    /// Memory of the host that its copies and memsets touch.
    touched: GraphTouches,
}

/// Publishes a graph that is about to become executable, as number 0.
pub(crate) fn graph(thread: &Thread, attachment: &Attachment, graph: u64) {
    let touched = GraphTouches::default();
    let mut reader = Reader { thread, attachment, next: 1, left: MOST_NODES, touched };
    reader.graph(0, graph, 0);
    reader.touched.keep(graph);
}

/// Publishes the new parameters of a node of an executable: a structure of the node type `kind`,
/// `bytes` long, or `CUgraphNodeParams` for [`ParamKind::ANY_NODE`].
pub(crate) fn node_params(
    thread: &Thread,
    attachment: &Attachment,
    kind: u8,
    at: *const u8,
    first_version: bool,
) {
    // SAFETY: the program gives the driver these bytes to read.
    let words = |at: *const u8, bytes: usize| unsafe {
        let mut words: Structure = [0; 32];
        words.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(at, bytes.min(256));
        words
    };
    let bytes = |kind: i32| match kind {
        KERNEL if first_version => KERNEL_BYTES_1,
        // Parameters that an executable cannot change are not read.
        ALLOCATE | FREE | CONDITIONAL => 0,
        kind => params_bytes(kind).unwrap_or(0),
    };
    let (kind, mut structure) = if kind == ParamKind::ANY_NODE {
        let all = words(at, 256);
        let kind = all[0] as u32 as i32;
        // A copy's descriptor has flags and a context before it.
        let offset = 8 * UNION + if kind == MEMCPY { 16 } else { 0 };
        // SAFETY: inside the structure.
        (kind, words(unsafe { at.add(offset) }, bytes(kind)))
    } else {
        (i32::from(kind), words(at, bytes(i32::from(kind))))
    };
    if kind == KERNEL && structure[FUNCTION] != 0 {
        structure[KERNEL_HANDLE] = 0;
    }
    let len = bytes(kind) / 8;
    let child = kind == CHILD;
    let node = Node {
        place: (0, 0),
        kind,
        handle: 0,
        structure: (len > 0 || kind == EMPTY).then_some(&structure[..len]),
        bodies: if child { &[1] } else { &[] },
        updatable: false,
    };
    node.publish(thread, attachment);
    if child {
        let touched = GraphTouches::default();
        let mut reader = Reader { thread, attachment, next: 2, left: MOST_NODES, touched };
        reader.graph(1, structure[0], 0);
    }
}

impl Reader<'_> {
    /// Publishes a graph under a number, then its bodies.
    fn graph(&mut self, number: u32, graph: u64, level: usize) {
        let nodes = driver::nodes(graph);
        let Some(nodes) = nodes.filter(|n| n.len() <= self.left && level < MOST_LEVELS) else {
            self.end(number, (0, 0), false, graph);
            return;
        };
        self.left -= nodes.len();
        let (mut complete, mut bodies) = (true, Vec::new());
        let mut positions = HashMap::with_capacity(nodes.len());
        for (index, node) in (0u32..).zip(&nodes) {
            positions.insert(*node, index);
            complete &= self.node((number, index), *node, &mut bodies);
        }
        let edges = self.edges(number, graph, &positions);
        complete &= edges.is_some();
        self.end(number, (nodes.len() as u32, edges.unwrap_or(0)), complete, graph);
        for (number, graph) in bodies {
            self.graph(number, graph, level + 1);
        }
    }

    fn node(&mut self, place: (u32, u32), node: u64, bodies: &mut Vec<(u32, u64)>) -> bool {
        let kind = driver::kind(node).unwrap_or(-1);
        let mut structure: Structure = [0; 32];
        let mut len = driver::params(node, kind, &mut structure).map(|bytes| bytes / 8);
        let first = bodies.len();
        let mut body = |graph: u64| {
            bodies.push((self.next, graph));
            self.next += 1;
        };
        match kind {
            CHILD if len.is_some() => body(structure[0]),
            CONDITIONAL => {
                if let Some(conditional) = conditional::of(node) {
                    structure[..4].copy_from_slice(&conditional.words);
                    len = Some(4);
                    conditional.bodies.iter().for_each(|graph| body(*graph));
                }
            }
            _ => {}
        }
        self.touched.note(kind, len.map(|len| &structure[..len]));
        let numbers: Vec<u64> = bodies[first..].iter().map(|(n, _)| u64::from(*n)).collect();
        let node = Node {
            place,
            kind,
            handle: node,
            structure: len.map(|len| &structure[..len]),
            bodies: &numbers,
            updatable: kind == KERNEL && driver::is_updatable(node),
        };
        node.publish(self.thread, self.attachment)
    }

    /// Publishes the edges; answers how many, `None` where some cannot be told.
    fn edges(&self, number: u32, graph: u64, positions: &HashMap<u64, u32>) -> Option<u32> {
        let (from, to, data) = driver::edges(graph)?;
        let mut edges = Vec::with_capacity(from.len());
        for ((from, to), data) in from.iter().zip(&to).zip(&data) {
            edges.push(WireEdge {
                from: *positions.get(from)?,
                to: *positions.get(to)?,
                data: *data,
            });
        }
        for part in edges.chunks(EDGES_PER_RECORD) {
            let body = GraphPart::EDGES_BYTES + part.len() * WireEdge::BYTES;
            self.publish(body, |body| {
                GraphPart::edges(body, number);
                part.iter().for_each(|edge| GraphPart::edge(body, *edge));
            });
        }
        Some(edges.len() as u32)
    }

    fn end(&self, number: u32, counts: (u32, u32), complete: bool, graph: u64) {
        self.publish(GraphPart::END_BYTES, |body| {
            GraphPart::end(body, number, counts, complete, graph);
        });
    }

    fn publish(&self, body: usize, fill: impl FnOnce(&mut streamsan_wire::Body)) {
        let record = Outgoing { kind: RecordKind::Graph, depth: 0, api: 0, body };
        self.thread.publish(self.attachment, record, fill);
    }
}

/// The words of a `CUgraphNodeParams`.
///
/// # Safety
/// `at` points to one.
pub(super) unsafe fn any_node<'a>(at: u64) -> &'a [u64] {
    // SAFETY: 256 bytes, aligned to 8 (caller).
    unsafe { slice::from_raw_parts(at as *const u64, 32) }
}
