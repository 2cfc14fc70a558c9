//! Graphs: the items of lines that build, capture, change and launch them.

use streamsan_model::EdgePort::{End, Triggered};
use streamsan_model::{
    Action, EdgePort, Entity, Graph, MemoryKind, NodeAction, OpSeq, Operation, TraceItem,
};
use streamsan_text::parse;

fn items(text: &str) -> Vec<TraceItem> {
    parse(text).unwrap_or_else(|error| panic!("{error}\n{text}")).items
}

fn graphs(items: &[TraceItem]) -> Vec<&Graph> {
    items
        .iter()
        .filter_map(|item| match item {
            TraceItem::Entity(Entity::Graph(graph)) => Some(&**graph),
            _ => None,
        })
        .collect()
}

fn operations(items: &[TraceItem]) -> Vec<&Operation> {
    items
        .iter()
        .filter_map(|item| match item {
            TraceItem::Operation(operation) => Some(operation),
            _ => None,
        })
        .collect()
}

/// Lines of the nodes, and the edges as pairs of them.
fn shape(graph: &Graph) -> (Vec<u64>, Vec<(u64, u64, EdgePort)>) {
    let line = |at: u32| graph.nodes[at as usize].made_by.0;
    let nodes = graph.nodes.iter().map(|node| node.made_by.0).collect();
    let edges = graph.edges.iter().map(|e| (line(e.from), line(e.to), e.port)).collect();
    (nodes, edges)
}

#[test]
fn a_launch_runs_the_snapshot_of_its_moment() {
    let items = items(
        "graph G\nnode G a launch first w:A\nnode G b launch second r:A pdl_wait\nedge G a b pdl\n\
         instantiate G X\nlaunch_graph X s1\nset_node X b launch second r:B\nlaunch_graph X s1\n\
         launch_graph X s2\ndisable_node X a\nlaunch_graph X s1\nenable_node X a\n\
         graph H\nnode H a launch first w:C\nnode H b launch second r:C\nedge H a b pdl\n\
         update X H\nupload_graph X s1\nlaunch_graph X s1\ndestroy_graph X",
    );
    let snapshots: Vec<u32> = operations(&items)
        .iter()
        .filter_map(|o| match o.action {
            Action::GraphInstantiate { graph, .. }
            | Action::GraphUpdate { graph, .. }
            | Action::GraphLaunch { graph, .. } => Some(graph.0),
            _ => None,
        })
        .collect();
    assert_eq!(snapshots, [0, 0, 1, 1, 2, 3, 3]);
    let graphs = graphs(&items);
    assert_eq!(graphs.len(), 4);
    assert_eq!(shape(graphs[0]), (vec![2, 3], vec![(2, 3, Triggered)]));
    assert_eq!(shape(graphs[2]).0, [2, 3]);
    assert_eq!(shape(graphs[3]).0, [14, 15]);
    assert!(!graphs[2].nodes[0].enabled && graphs[1].nodes[0].enabled);
    assert_ne!(graphs[0].nodes[1].accesses, graphs[1].nodes[1].accesses);
    assert_eq!(&*graphs[0].nodes[0].api, "cuGraphAddKernelNode_v2");
}

/// The body of a node and the entry point that adds it.
const NODES: &[(&str, &str)] = &[
    ("launch k w:A", "cuGraphAddKernelNode_v2"),
    ("copy dst:A src:B", "cuGraphAddMemcpyNode"),
    ("copy2d dst:A(0,64) src:B(0,64) 8 4", "cuGraphAddMemcpyNode"),
    ("memset A[0..16]", "cuGraphAddMemsetNode"),
    ("host_fn r:A", "cuGraphAddHostNode"),
    ("record e1", "cuGraphAddEventRecordNode"),
    ("wait e1", "cuGraphAddEventWaitNode"),
    ("alloc X 64", "cuGraphAddMemAllocNode"),
    ("free Y", "cuGraphAddMemFreeNode"),
    ("child H", "cuGraphAddChildGraphNode"),
    ("empty", "cuGraphAddEmptyNode"),
    ("if H", "cuGraphAddNode_v2"),
    ("if H I", "cuGraphAddNode_v2"),
    ("while H", "cuGraphAddNode_v2"),
    ("switch H I H", "cuGraphAddNode_v2"),
    ("write_value V=2", "cuGraphAddBatchMemOpNode"),
    ("wait_value V eq", "cuGraphAddBatchMemOpNode"),
    ("signal done=2", "cuGraphAddExternalSemaphoresSignalNode"),
    ("wait_signal done", "cuGraphAddExternalSemaphoresWaitNode"),
    ("launch k api=cuGraphAddNode", "cuGraphAddNode"),
];

#[test]
fn nodes_stand_for_entry_points() {
    for (body, api) in NODES {
        let text = format!(
            "graph H\ngraph I\ngraph G\nnode G y alloc Y 64\nnode G n {body}\ninstantiate G X"
        );
        let items = items(&text);
        let last = graphs(&items).last().map(|graph| graph.nodes[1].clone()).expect("a graph");
        assert_eq!((&*last.api, last.made_by), (*api, OpSeq(5)), "{body}");
        let operation = operations(&items)[4];
        assert_eq!((&operation.action, &*operation.api), (&Action::Other, *api), "{body}");
        assert!(operation.accesses.is_empty());
    }
}

#[test]
fn a_capture_builds_a_graph() {
    let items = items(
        "launch s2 before w:A\n\
         capture_begin s1\n\
         launch s1 root w:A\n\
         record fork s1\n\
         wait s2 fork\n\
         launch s2 side r:A w:B\n\
         copy s1 dst:C src:A\n\
         record join s2\n\
         wait s1 join\n\
         alloc_async T 64 s1\n\
         launch s1 both r:B r:C w:T\n\
         free_async T s1\n\
         launch s1 early pdl\n\
         launch s1 failed status=1\n\
         capture_end s1 G\n\
         launch s1 after w:A\n\
         instantiate G X\n\
         launch_graph X s2\n",
    );
    let graph = graphs(&items)[0];
    let (nodes, edges) = shape(graph);
    assert_eq!(nodes, [3, 6, 7, 10, 11, 12, 13]);
    assert_eq!(
        edges,
        [(3, 6, End), (3, 7, End), (6, 10, End), (7, 10, End), (10, 11, End)]
            .into_iter()
            .chain([(11, 12, End), (12, 13, End)])
            .collect::<Vec<_>>()
    );
    assert_eq!(graph.name.as_deref(), Some("G"));
    assert!(matches!(graph.nodes[3].action, NodeAction::Allocate { .. }));
    assert_eq!(&*graph.nodes[3].api, "cuMemAllocAsync");
    assert_eq!(graph.nodes[1].accesses.len(), 2);
    let is_captured = |o: &&&Operation| matches!(o.action, Action::Captured { .. });
    let operations = operations(&items);
    let captured: Vec<_> = operations.iter().filter(is_captured).collect();
    assert_eq!(captured.len(), 12);
    assert!(captured.iter().all(|o| o.accesses.is_empty()));
    for line in [1, 16] {
        assert!(matches!(operations[line - 1].action, Action::Launch { .. }));
    }
    let kinds: Vec<_> = items
        .iter()
        .filter_map(|item| match item {
            TraceItem::Entity(Entity::Allocation(a)) if a.name.as_deref() == Some("T") => {
                Some(a.kind)
            }
            _ => None,
        })
        .collect();
    assert_eq!(kinds, [MemoryKind::GraphOrdered]);
}

#[test]
fn a_capture_that_fails_ends_without_a_graph() {
    let items = items(
        "capture_begin s1\nrecord e s1\nwait s2 e\nlaunch s2 k\ncapture_end s1 G status=904\n\
         launch s2 k\ngraph G",
    );
    let operations = operations(&items);
    assert!(matches!(operations[3].action, Action::Captured { .. }));
    assert!(matches!(operations[5].action, Action::Launch { .. }));
}

#[test]
fn programmatic_serialization_is_captured_as_an_edge() {
    let items = items(
        "capture_begin s1\nlaunch s1 one\nlaunch s1 two pdl pdl_wait\nlaunch s1 three\n\
         capture_end s1 G\ninstantiate G X",
    );
    assert_eq!(shape(graphs(&items)[0]).1, [(2, 3, Triggered), (3, 4, End)]);
}

#[test]
fn a_graph_launched_in_a_capture_is_a_child_graph() {
    let items = items(
        "graph C\nnode C only launch k w:A\ninstantiate C X\n\
         capture_begin s1\nlaunch s1 before w:B\nlaunch_graph X s1\nlaunch s1 behind r:A\n\
         capture_end s1 G\ninstantiate G Y\nlaunch_graph Y s2",
    );
    let (inner, outer) = (graphs(&items)[0], graphs(&items)[1]);
    let (nodes, edges) = shape(outer);
    assert_eq!((nodes, edges), (vec![5, 6, 7], vec![(5, 6, End), (6, 7, End)]));
    assert_eq!(outer.nodes[1].action, NodeAction::Child { graph: inner.id });
    assert_eq!(&*outer.nodes[1].api, "cuGraphLaunch");
    assert!(outer.nodes[1].accesses.is_empty());
    assert!(matches!(operations(&items)[5].action, Action::Captured { .. }));
}

#[test]
fn calls_beside_a_capture_that_the_driver_takes() {
    for text in [
        // The legacy stream waits for blocking streams only.
        "stream n nonblocking\ncapture_begin n\nlaunch legacy k w:A\ncapture_end n G",
        "stream n nonblocking\ncapture_begin n\ncopy_sync dst:A src:B\ncapture_end n G",
        // ... of its context.
        "stream b\ncapture_begin b\nlaunch D1/legacy k w:D1/A\ncapture_end b G",
        "capture_begin s1 mode=relaxed\nsync_ctx D1\ncapture_end s1 G",
        "capture_begin s1 mode=relaxed\nalloc A 8\nfree A\nsync_stream s2\ncapture_end s1 G",
        "capture_begin s1 mode=thread_local\nT2: alloc A 8\ncapture_end s1 G",
        "capture_begin s1\nP2: alloc A 8\nP2: sync_ctx\ncapture_end s1 G",
        "capture_begin s1 mode=relaxed\nT2: capture_end s1 G",
        // An event without a record stands for no work.
        "capture_begin s1\nwait s1 e\nlaunch s1 k\ncapture_end s1 G",
        "capture_begin s1\nsync_stream s2 status=900\ncapture_end s1 G status=901",
    ] {
        assert!(parse(text).is_ok(), "{text}: {:?}", parse(text));
    }
}

/// Each graph holds the one before twice: thirty lines would come to a thousand million nodes.
#[test]
fn bodies_that_multiply_are_refused() {
    let nested = |depth: usize| {
        let mut text = "alloc A 64\ngraph G0\nnode G0 n launch k w:A\n".to_owned();
        for at in 1..=depth {
            let below = at - 1;
            text +=
                &format!("graph G{at}\nnode G{at} a child G{below}\nnode G{at} b if G{below}\n");
        }
        text + &format!("instantiate G{depth} X\nlaunch_graph X s1\n")
    };
    assert!(parse(&nested(8)).is_ok());
    let error = parse(&nested(30)).expect_err("too many nodes");
    assert!(error.message.contains("each body is put in its place"), "{error}");
}
