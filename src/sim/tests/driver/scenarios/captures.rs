//! Stream capture. The statuses are those of driver 580.159 on an H200.

use std::thread;

use super::graphs::{fill_node, graph, instantiate, run};
use crate::raw::*;

pub(super) fn find(name: &str) -> Option<fn()> {
    Some(match name {
        "capture_makes_the_graph_of_the_calls" => calls,
        "capture_forks_and_joins" => || fork(true),
        "capture_without_a_wait" => || fork(false),
        "capture_of_memory" => memory,
        "capture_into_a_graph" => into_graph,
        "capture_rules" => rules,
        "capture_modes_of_threads" => modes,
        "capture_information" => information,
        _ => return None,
    })
}

const GLOBAL: u64 = 0;
const THREAD_LOCAL: u64 = 1;
const RELAXED: u64 = 2;

fn begin(stream: u64, mode: u64) {
    ok("cuStreamBeginCapture_v2", &[stream, mode]);
}

fn end(stream: u64) -> u64 {
    let mut graph = 0u64;
    ok("cuStreamEndCapture", &[stream, &raw mut graph as u64]);
    graph
}

fn nodes(graph: u64) -> Vec<u64> {
    let (mut nodes, mut count) = (vec![0u64; 16], 16u64);
    ok("cuGraphGetNodes", &[graph, nodes.as_mut_ptr() as u64, &raw mut count as u64]);
    nodes.truncate(count as usize);
    nodes
}

fn kinds(graph: u64) -> Vec<u32> {
    let kind = |node: &u64| {
        let mut kind = 99u32;
        ok("cuGraphNodeGetType", &[*node, &raw mut kind as u64]);
        kind
    };
    nodes(graph).iter().map(kind).collect()
}

fn edges(graph: u64) -> Vec<[usize; 2]> {
    let all = nodes(graph);
    let (mut from, mut to, mut count) = ([0u64; 16], [0u64; 16], 16u64);
    let [from_at, to_at] = [from.as_mut_ptr() as u64, to.as_mut_ptr() as u64];
    ok("cuGraphGetEdges", &[graph, from_at, to_at, &raw mut count as u64]);
    let place = |node| all.iter().position(|other| *other == node).unwrap();
    let ends = from.into_iter().zip(to).take(count as usize);
    ends.map(|(from, to)| [place(from), place(to)]).collect()
}

extern "C" fn nothing(_: u64) {}

fn calls() {
    start();
    let put = function(module(), "put");
    let (stream, word, host, external) = (stream(NON_BLOCKING), device(4), pinned(0), event());
    begin(stream, GLOBAL);
    fill(word, 3, stream);
    assert_eq!(launch(put, 1, 1, stream, &[9, word]), 0);
    fetch(host, word, stream);
    ok("cuLaunchHostFunc", &[stream, nothing as *const () as u64, 7]);
    ok("cuEventRecordWithFlags", &[external, stream, 1]);
    ok("cuStreamWaitEvent", &[stream, external, 1]);
    let graph = end(stream);
    assert_eq!(kinds(graph), [2, 0, 1, 3, 7, 6]);
    assert_eq!(edges(graph), [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5]]);
    let all = nodes(graph);
    let mut copy = [0u64; 25];
    ok("cuGraphMemcpyNodeGetParams", &[all[2], copy.as_mut_ptr() as u64]);
    assert_eq!((copy[4], copy[6], copy[15], copy[16]), (2, word, 1, host));
    assert_eq!(copy[22..], [4, 1, 1]);
    let mut called = [0u64; 2];
    ok("cuGraphHostNodeGetParams", &[all[3], called.as_mut_ptr() as u64]);
    assert_eq!(called, [nothing as *const () as u64, 7]);
    assert_eq!(read(host), 0, "nothing of it has run");
    run(instantiate(graph), stream);
    assert_eq!(read(host), 9);
    println!("ok");
}

fn fork(wait: bool) {
    start();
    let (origin, forked) = (stream(NON_BLOCKING), stream(NON_BLOCKING));
    let (word, host, other) = (device(4), pinned(0), device(4));
    let (begun, written, done) = (event(), event(), event());
    begin(origin, GLOBAL);
    ok("cuEventRecord", &[begun, origin]);
    ok("cuStreamWaitEvent", &[forked, begun, 0]);
    fill(word, 1, origin);
    ok("cuEventRecord", &[written, origin]);
    if wait {
        ok("cuStreamWaitEvent", &[forked, written, 0]);
    }
    fetch(host, word, forked);
    ok("cuEventRecord", &[done, forked]);
    ok("cuStreamWaitEvent", &[origin, done, 0]);
    fill(other, 1, origin);
    let graph = end(origin);
    run(instantiate(graph), origin);
    if wait {
        let joined = edges(graph).contains(&[0, 1]) && edges(graph).contains(&[1, 2]);
        println!("{} {}", read(host), u32::from(joined));
    } else {
        println!("{}", read(host));
    }
}

fn memory() {
    start();
    let (stream, other) = (stream(NON_BLOCKING), device(4));
    let host = pinned(0);
    fill(other, 3, stream);
    ok("cuStreamSynchronize", &[stream]);
    begin(stream, GLOBAL);
    let word = make("cuMemAllocAsync", &[4, stream]);
    ok("cuMemcpyDtoDAsync_v2", &[word, other, 4, stream]);
    fetch(host, word, stream);
    ok("cuMemFreeAsync", &[word, stream]);
    let graph = end(stream);
    let kinds = kinds(graph);
    run(instantiate(graph), stream);
    println!("{} {} {} {}", read(host), kinds[0], kinds[1], kinds[3]);
}

fn into_graph() {
    start();
    let (stream, graph, word, host) = (stream(NON_BLOCKING), graph(), device(4), pinned(0));
    let first = [fill_node(graph, &[], word, 1)];
    let begin = [stream, graph, first.as_ptr() as u64, 0, 1, GLOBAL];
    ok("cuStreamBeginCaptureToGraph", &begin);
    fetch(host, word, stream);
    assert_eq!(end(stream), graph);
    run(instantiate(graph), stream);
    println!("{} {}", nodes(graph).len(), read(host));
}

/// A step within a capture, its status, and the status of the end of the capture.
type Rule = (&'static str, fn(&Stage) -> u32, u32, u32);

/// Everything that a rule may use. The origin is non-blocking.
struct Stage {
    origin: u64,
    other: u64,
    word: u64,
    managed: u64,
    event: u64,
    graph: u64,
    exec: u64,
    source: Box<u32>,
}

impl Stage {
    fn fork(&self) {
        ok("cuEventRecord", &[self.event, self.origin]);
        ok("cuStreamWaitEvent", &[self.other, self.event, 0]);
    }
}

fn rules() {
    start();
    let rules: &[Rule] = &[
        ("synchronise the stream", |s| cu("cuStreamSynchronize", &[s.origin]), 900, 901),
        ("query the stream", |s| cu("cuStreamQuery", &[s.origin]), 900, 901),
        ("synchronise another", |s| cu("cuStreamSynchronize", &[s.other]), 900, 901),
        ("query another", |s| cu("cuStreamQuery", &[s.other]), 900, 901),
        ("synchronise the context", |_| cu("cuCtxSynchronize", &[]), 900, 901),
        ("allocate", |s| cu("cuMemAlloc_v2", &[&raw const s.word as u64, 4]), 900, 901),
        ("free", |s| cu("cuMemFree_v2", &[s.word]), 900, 901),
        (
            "synchronous copy",
            |s| cu("cuMemcpyHtoD_v2", &[s.word, &raw const *s.source as u64, 4]),
            0,
            0,
        ),
        ("synchronous memset", |s| cu("cuMemsetD32_v2", &[s.word, 1, 1]), 0, 0),
        ("work in the legacy stream", |s| cu("cuMemsetD32Async", &[s.word, 1, 1, 0]), 0, 0),
        ("query an event", |s| cu("cuEventQuery", &[s.event]), 900, 901),
        ("wait for an event on the host", |s| cu("cuEventSynchronize", &[s.event]), 900, 901),
        (
            "query a captured event",
            |s| {
                ok("cuEventRecord", &[s.event, s.origin]);
                cu("cuEventQuery", &[s.event])
            },
            907,
            901,
        ),
        ("wait for nothing", |s| cu("cuStreamWaitEvent", &[s.origin, s.event, 0]), 0, 0),
        (
            "wait for work outside",
            |s| {
                ok("cuEventRecord", &[s.event, s.other]);
                cu("cuStreamWaitEvent", &[s.origin, s.event, 0])
            },
            905,
            901,
        ),
        (
            "fork without joining",
            |s| {
                s.fork();
                cu("cuMemsetD32Async", &[s.word, 1, 1, s.other])
            },
            0,
            904,
        ),
        (
            "fork without work",
            |s| {
                s.fork();
                0
            },
            0,
            0,
        ),
        (
            "end in the fork",
            |s| {
                s.fork();
                let mut graph = 0u64;
                cu("cuStreamEndCapture", &[s.other, &raw mut graph as u64])
            },
            903,
            901,
        ),
        ("launch a graph", |s| cu("cuGraphLaunch", &[s.exec, s.origin]), 900, 901),
        (
            "instantiate a graph",
            |s| {
                let mut exec = 0u64;
                cu("cuGraphInstantiateWithFlags", &[&raw mut exec as u64, s.graph, 0])
            },
            900,
            901,
        ),
        ("begin again", |s| cu("cuStreamBeginCapture_v2", &[s.origin, 0]), 401, 0),
        ("prefetch", |s| cu("cuMemPrefetchAsync", &[s.managed, 4, 0, s.origin]), 900, 901),
        ("attach", |s| cu("cuStreamAttachMemAsync", &[s.origin, s.managed, 0, 1]), 900, 901),
        (
            "add a callback",
            |s| cu("cuStreamAddCallback", &[s.origin, nothing as *const () as u64, 0, 0]),
            900,
            901,
        ),
        (
            "copy from pageable memory",
            |s| {
                let source = &raw const *s.source as u64;
                cu("cuMemcpyHtoDAsync_v2", &[s.word, source, 4, s.origin])
            },
            0,
            0,
        ),
        (
            "merge two captures",
            |s| {
                begin(s.other, GLOBAL);
                fill(s.word, 1, s.other);
                ok("cuEventRecord", &[s.event, s.other]);
                let merged = cu("cuStreamWaitEvent", &[s.origin, s.event, 0]);
                let mut graph = 9u64;
                let ended = cu("cuStreamEndCapture", &[s.other, &raw mut graph as u64]);
                assert_eq!((ended, graph), (901, 0));
                merged
            },
            902,
            901,
        ),
        (
            "go on when it is invalid",
            |s| {
                cu("cuStreamQuery", &[s.origin]);
                cu("cuMemsetD32Async", &[s.word, 1, 1, s.origin])
            },
            901,
            901,
        ),
    ];
    for (what, act, expected, at_end) in rules {
        let empty = graph();
        let stage = Stage {
            graph: empty,
            exec: instantiate(empty),
            origin: stream(NON_BLOCKING),
            other: stream(NON_BLOCKING),
            word: device(4),
            managed: make("cuMemAllocManaged", &[4, 1]),
            event: event(),
            source: Box::new(1),
        };
        begin(stage.origin, GLOBAL);
        fill(stage.word, 1, stage.origin);
        assert_eq!(act(&stage), *expected, "{what}");
        let mut graph = 9u64;
        let ended = cu("cuStreamEndCapture", &[stage.origin, &raw mut graph as u64]);
        assert_eq!(ended, *at_end, "{what}: end");
        assert_eq!(graph == 0, ended != 0, "{what}: a graph only where it succeeds");
        ok("cuStreamSynchronize", &[stage.origin]);
    }
    blocking_origin();
    after_the_end();
    println!("ok");
}

/// The legacy stream would wait for a blocking stream.
fn blocking_origin() {
    let (origin, word) = (stream(0), device(4));
    let (mut status, mut graph) = (0u32, 0u64);
    let graph_at = &raw mut graph as u64;
    begin(origin, RELAXED);
    fill(word, 1, origin);
    assert_eq!(cu("cuStreamIsCapturing", &[0, &raw mut status as u64]), 906);
    ok("cuStreamIsCapturing", &[origin, &raw mut status as u64]);
    assert_eq!(status, 1, "asking does no harm");
    assert_eq!(cu("cuMemsetD32Async", &[word, 1, 1, 0]), 906);
    ok("cuStreamIsCapturing", &[origin, &raw mut status as u64]);
    assert_eq!(status, 2);
    assert_eq!(cu("cuStreamEndCapture", &[origin, graph_at]), 901);
    // A relaxed capture lets its thread do what may be unsafe, not wait for the context.
    begin(origin, RELAXED);
    let done = event();
    ok("cuStreamSynchronize", &[stream(NON_BLOCKING)]);
    ok("cuEventQuery", &[done]);
    device(4);
    assert_eq!(cu("cuCtxSynchronize", &[]), 900);
    assert_eq!(cu("cuStreamEndCapture", &[origin, graph_at]), 901);
}

fn after_the_end() {
    let (origin, word, done) = (stream(NON_BLOCKING), device(4), event());
    let mut graph = 0u64;
    begin(origin, GLOBAL);
    fill(word, 1, origin);
    ok("cuEventRecord", &[done, origin]);
    end(origin);
    assert_eq!(cu("cuStreamWaitEvent", &[origin, done, 0]), 1);
    assert_eq!(cu("cuEventQuery", &[done]), 1);
    assert_eq!(cu("cuEventSynchronize", &[done]), 1);
    assert_eq!(cu("cuStreamEndCapture", &[origin, &raw mut graph as u64]), 401);
    assert_eq!(cu("cuStreamBeginCapture_v2", &[origin, 3]), 1);
    ok("cuEventRecord", &[done, origin]);
    ok("cuEventSynchronize", &[done]);
    begin(origin, GLOBAL);
    ok("cuStreamDestroy_v2", &[origin]);
    device(4);
}

fn modes() {
    start();
    let context = make("cuCtxGetCurrent", &[]);
    let origin = stream(NON_BLOCKING);
    let beside = |capture: u64, thread_mode: Option<u32>| {
        begin(origin, capture);
        let other = thread::spawn(move || {
            ok("cuCtxSetCurrent", &[context]);
            if let Some(mut mode) = thread_mode {
                ok("cuThreadExchangeStreamCaptureMode", &[&raw mut mode as u64]);
                assert_eq!(mode, 0, "the mode before");
            }
            let mut address = 0u64;
            cu("cuMemAlloc_v2", &[&raw mut address as u64, 4])
        });
        let status = other.join().unwrap();
        let mut graph = 0u64;
        let ended = cu("cuStreamEndCapture", &[origin, &raw mut graph as u64]);
        assert_eq!(ended, if status == 0 { 0 } else { 901 });
        status
    };
    let global = beside(GLOBAL, None);
    let local = beside(THREAD_LOCAL, None);
    let relaxed = beside(RELAXED, None);
    println!("{global} {local} {relaxed} {}", beside(GLOBAL, Some(RELAXED as u32)));
}

fn information() {
    start();
    let (origin, word) = (stream(NON_BLOCKING), device(4));
    let (mut status, mut id, mut graph, mut list, mut count) = (9u32, 9u64, 9u64, 9u64, 9u64);
    let [status_at, id_at, graph_at] =
        [&raw mut status as u64, &raw mut id as u64, &raw mut graph as u64];
    let [list_at, count_at] = [&raw mut list as u64, &raw mut count as u64];
    let ask = [origin, status_at, id_at, graph_at, list_at, count_at];
    ok("cuStreamGetCaptureInfo_v2", &ask);
    assert_eq!((status, id), (0, 9), "nothing else is told of a stream that is not captured");
    begin(origin, GLOBAL);
    fill(word, 1, origin);
    fill(word, 2, origin);
    ok("cuStreamGetCaptureInfo_v2", &ask);
    let all = nodes(graph);
    // SAFETY: the driver's list, valid until the next call that changes it.
    let last = unsafe { (list as *const u64).read() };
    assert_eq!((status, count, all.len(), last), (1, 1, 2, all[1]));
    assert_ne!(id, 9);
    assert_eq!(cu("cuGraphDestroy", &[graph]), 401, "it is the capture's");
    assert_eq!(cu("cuStreamUpdateCaptureDependencies", &[origin, 0, 0, 5]), 1);
    // The next node is to depend on nothing.
    ok("cuStreamUpdateCaptureDependencies", &[origin, 0, 0, 1]);
    fill(word, 3, origin);
    let made = end(origin);
    assert_eq!((made, edges(made)), (graph, vec![[0, 1]]));
    ok("cuGraphDestroy", &[made]);
    assert_eq!(cu("cuStreamUpdateCaptureDependencies", &[origin, 0, 0, 0]), 401);
    println!("ok");
}
