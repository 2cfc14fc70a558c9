//! A program that launches one graph over and over, and the same program with a kernel in its place.

use super::Program;
use std::sync::Arc;
use streamsan_model::{
    Action, EdgePort, Entity, ExecutableId, Graph, GraphEdge, GraphId, GraphNode, GridControl,
    KernelId, Mode, NodeAction, OpSeq, ProcessId, StreamId,
};

const BUFFER: u64 = 1 << 20;
const GRAPH: GraphId = GraphId(0);

/// Other work of the program.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Around {
    Nothing,
    /// Fills the input before and reads the output after each launch.
    Copies,
    /// The same, and waits for it.
    CopiesAndSynchronization,
    /// Launches in two streams, which take turns and are ordered by events.
    TwoStreams,
    /// Launches two executable graphs in turn, which share all buffers.
    TwoGraphs,
    /// Touches ten buffers with other kernels after each launch.
    OtherKernels,
}

/// As many launches of a graph with so many nodes, or of a kernel, in a program with so many
/// buffers.
pub(crate) fn graph_launches(
    launches: u32,
    nodes: Option<u32>,
    buffers: u32,
    around: Around,
) -> Program {
    let mut program = Program::new(2, (0..buffers).map(|_| BUFFER));
    if let Some(nodes) = nodes {
        let graph = graph(&program, nodes, buffers);
        program.declare(Entity::Graph(Arc::new(graph)));
        for executable in [ExecutableId(0), ExecutableId(1)] {
            let action = Action::GraphInstantiate { executable, graph: GRAPH };
            program.call(&"cuGraphInstantiateWithFlags".into(), action, Vec::new());
        }
    }
    let api: Arc<str> = "cuGraphLaunch".into();
    for launch in 0..launches {
        let stream = if around == Around::TwoStreams { launch % 2 } else { 0 };
        if around == Around::TwoStreams {
            program.wait(stream, 1 - stream);
        }
        let copies = matches!(around, Around::Copies | Around::CopiesAndSynchronization);
        if copies {
            program.launch(stream, vec![program.whole(0, Mode::Write)]);
        }
        if nodes.is_some() {
            let stream = StreamId(stream);
            let executable = ExecutableId(if around == Around::TwoGraphs { launch % 2 } else { 0 });
            let action = Action::GraphLaunch { stream, executable, graph: GRAPH };
            program.call(&api, action, Vec::new());
        } else {
            let accesses = vec![
                program.whole(0, Mode::Read),
                program.whole(1, Mode::Read),
                program.whole(buffers - 1, Mode::Write),
            ];
            program.launch(stream, accesses);
        }
        if copies {
            program.launch(stream, vec![program.whole(buffers - 1, Mode::Read)]);
        }
        if around == Around::OtherKernels {
            for other in 0..10 {
                let buffer = (launch * 10 + other) % buffers;
                program.launch(stream, vec![program.whole(buffer, Mode::Write)]);
            }
        }
        if around == Around::CopiesAndSynchronization {
            program.synchronize();
        }
        if around == Around::TwoStreams {
            program.record(stream);
        }
    }
    program
}

/// Four branches, each a chain of kernels that read two buffers and write the next one of the
/// branch, and a node that joins them.
fn graph(program: &Program, nodes: u32, buffers: u32) -> Graph {
    const BRANCHES: u32 = 4;
    let per_branch = (buffers - 2) / BRANCHES;
    let buffer = |branch: u32, step: u32| 1 + branch * per_branch + step % per_branch;
    let node = |accesses| GraphNode {
        made_by: OpSeq(1),
        api: "cuGraphAddKernelNode".into(),
        captured_from: None,
        enabled: true,
        action: NodeAction::Kernel { kernel: KernelId(0), control: GridControl::default() },
        accesses,
        stack: None,
    };
    let mut graph =
        Graph { id: GRAPH, process: ProcessId(0), name: None, nodes: vec![], edges: vec![] };
    for index in 0..nodes - 1 {
        let (branch, step) = (index % BRANCHES, index / BRANCHES);
        graph.nodes.push(node(vec![
            program.whole(0, Mode::Read),
            program.whole(buffer(branch, step), Mode::Read),
            program.whole(buffer(branch, step + 1), Mode::Write),
        ]));
        if step > 0 {
            graph.edges.push(GraphEdge { from: index - BRANCHES, to: index, port: EdgePort::End });
        }
    }
    let join = nodes - 1;
    graph.nodes.push(node(vec![program.whole(buffers - 1, Mode::Write)]));
    for branch in 1..=BRANCHES {
        graph.edges.push(GraphEdge { from: join - branch, to: join, port: EdgePort::End });
    }
    graph
}
