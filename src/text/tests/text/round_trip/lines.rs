//! Random lines, and programs made of lines that fit together.

use proptest::prelude::*;
use proptest::sample::select;
use streamsan_text::parse;

/// Declarations that random lines build on.
pub(crate) const PRELUDE: &str = "\
context c1 device=1
context c2 existing
stream work
stream c1/side nonblocking priority=-2
stream old ctx=c2 existing
alloc_pinned P 1024
alloc_managed M 1024
alloc_async Q 1024 work
pageable H 1024
global G 1024
register R 1024
alloc far 1024 ctx=c1 api=cuMemAllocPitch_v2
alloc elder 1024 existing
event tick ctx=c1
host_fn work
context c3 green=D1 no_concurrent_managed
stream c3/part nonblocking
event distant imported existing
array R2 1024
map V 1024 phys=m offset=512
map V2 512 phys=m
P2: stream near
P2: alloc A 1024
P2: import B P1/elder
import outside 64 existing
P2T2: record e9 s1
graph G
node G fill launch kernel w:A
node G move copy dst:B src:A
node G clear memset C[0..8]
node G scratch alloc T 64
node G last free T
edge G fill move
edge G scratch last
instantiate G X
launch_graph X s1
";

fn stream() -> impl Strategy<Value = String> {
    select(vec![
        "s1",
        "s2",
        "D1/s1",
        "work",
        "c1/side",
        "old",
        "legacy",
        "ptds",
        "D1/legacy",
        "c1/ptds",
        "c3/part",
        "P2/near",
        "P2/s1",
    ])
    .prop_map(str::to_owned)
}

fn event() -> impl Strategy<Value = String> {
    select(vec!["e1", "e2", "D1/e1", "tick", "distant", "e9"]).prop_map(str::to_owned)
}

fn buffer() -> impl Strategy<Value = String> {
    select(vec![
        "A", "B", "D1/A", "P", "M", "Q", "H", "G", "R", "far", "elder", "R2", "V", "V2", "T",
        "P2/A", "P2/B", "outside",
    ])
    .prop_map(str::to_owned)
}

fn context() -> impl Strategy<Value = String> {
    select(vec!["c0", "c1", "c2", "D1", "c3", "P2/c0"]).prop_map(str::to_owned)
}

fn bytes() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        (0u64..64, 1u64..64).prop_map(|(a, n)| format!("[{}..{}]", a * 8, (a + n) * 8)),
        (0u64..32, 1u64..16, 1u64..8)
            .prop_map(|(a, n, rows)| { format!("[{}..{}/64*{rows}]", a * 8, a * 8 + n) }),
        (0u64..32, 1u64..4, 1u64..3, 1u64..3).prop_map(|(a, n, rows, slices)| {
            format!("[{a}..{}/32*{rows}/128*{slices}]", a + n)
        }),
    ]
}

fn accesses() -> impl Strategy<Value = String> {
    let mode = select(vec!["r", "w", "rw", "at", "?", "~w", "~r", "=rw", "?w", "!?"]);
    proptest::collection::vec((mode, buffer(), bytes()), 0..4).prop_map(|list| {
        list.into_iter().map(|(mode, buffer, bytes)| format!(" {mode}:{buffer}{bytes}")).collect()
    })
}

fn call() -> impl Strategy<Value = String> {
    let pair = || (0u64..64, 0u64..64, 1u64..64);
    prop_oneof![
        4 => (stream(), select(vec!["", " pdl", " pdl_wait", " coop"]), accesses())
            .prop_map(|(s, option, a)| format!("launch {s} kernel{option}{a}")),
        2 => (stream(), buffer(), buffer(), pair()).prop_map(|(s, x, y, (a, b, n))| {
            let (a, b, n) = (a * 8, b * 8, n * 8);
            format!("copy {s} dst:{x}[{a}..{}] src:{y}[{b}..{}]", a + n, b + n)
        }),
        1 => (buffer(), buffer(), select(vec!["", " ptds", " ctx=c1"]))
            .prop_map(|(x, y, option)| format!("copy_sync dst:{x} src:{y}{option}")),
        1 => (stream(), buffer(), buffer(), 1u64..32, 1u64..16).prop_map(|(s, x, y, w, h)| {
            format!("copy2d {s} dst:{x}(8,64) src:{y}(0,32) {w} {h}")
        }),
        1 => (stream(), buffer(), buffer())
            .prop_map(|(s, x, y)| format!("copy3d {s} dst:{x}(0,64,4) src:{y}(0,32,2) 8 2 3")),
        1 => (buffer(), buffer()).prop_map(|(x, y)| format!("copy_peer_sync dst:{x} src:{y}")),
        1 => (stream(), buffer(), bytes()).prop_map(|(s, x, b)| format!("memset {s} {x}{b}")),
        1 => buffer().prop_map(|x| format!("memset_sync {x}")),
        2 => (event(), stream()).prop_map(|(e, s)| format!("record {e} {s}")),
        2 => (stream(), event(), select(vec!["", " status=1"]))
            .prop_map(|(s, e, status)| format!("wait {s} {e}{status}")),
        1 => event().prop_map(|e| format!("sync_event {e}")),
        1 => (event(), select(vec!["", " busy"])).prop_map(|(e, b)| format!("query_event {e}{b}")),
        1 => stream().prop_map(|s| format!("sync_stream {s}")),
        1 => stream().prop_map(|s| format!("query_stream {s} busy")),
        1 => context().prop_map(|c| format!("sync_ctx {c}")),
        1 => (event(), context()).prop_map(|(e, c)| format!("record_ctx {e} {c}")),
        1 => (event(), context()).prop_map(|(e, c)| format!("wait_ctx {c} {e}")),
        1 => (event(), event()).prop_map(|(a, b)| format!("elapsed {a} {b}")),
        1 => accesses().prop_map(|a| format!("host{a}")),
        1 => (stream(), accesses()).prop_map(|(s, a)| format!("host_fn {s}{a}")),
        1 => accesses().prop_map(|a| format!("run_host_fn 15{a}")),
        1 => event().prop_map(|e| format!("destroy_event {e}")),
        1 => event().prop_map(|e| format!("event {e}")),
        1 => select(vec!["work", "c1/side", "s1"]).prop_map(|s| format!("destroy_stream {s}")),
        1 => select(vec!["work", "c1/side nonblocking"]).prop_map(|s| format!("stream {s}")),
        1 => select(vec!["free A", "free far", "free_pinned P", "free M", "unregister R"])
            .prop_map(str::to_owned),
        1 => select(vec!["alloc A 64 at=A[8..72]", "alloc far 1024", "alloc_async Q 1024 s1 at=Q"])
            .prop_map(str::to_owned),
        1 => stream().prop_map(|s| format!("free_async Q {s}")),
        1 => select(vec!["destroy_context c1", "destroy_context D1", "context D3"])
            .prop_map(str::to_owned),
        3 => part(),
        3 => graph_line(),
    ]
}

/// Calls that do several things, signals, managed memory, files, host threads.
fn part() -> impl Strategy<Value = String> {
    let order = || select(vec!["", " order=any", " order=call"]);
    let word = || select(vec!["A=3", "A[8..16]=2", "B", "C[4..8]=9"]);
    let option = select(vec!["programmatic_event=e1", "completion_event=tick"]);
    prop_oneof![
        (stream(), buffer(), buffer(), order(), buffer(), order()).prop_map(
            |(s, x, y, o, z, p)| {
                format!("batch {s} dst:{x}[0..8] src:{y}[8..16]{o} dst:{z}[16..24] src:A{p}")
            }
        ),
        (stream(), buffer()).prop_map(|(s, x)| format!("decompress {s} dst:{x} src:C[0..32]")),
        (stream(), buffer(), buffer(), order())
            .prop_map(|(s, x, y, o)| format!("copy {s} dst:{x}[0..8] src:{y}[8..16]{o}")),
        (buffer(), buffer())
            .prop_map(|(x, y)| format!("copy_sync dst:{x}[0..8] src:{y}[8..16] sync_memops")),
        buffer().prop_map(|x| format!("memset_sync {x} sync_memops")),
        (stream(), accesses(), stream(), accesses(), select(vec!["", "no_pre ", "no_post "]))
            .prop_map(|(s, a, t, b, o)| format!("launch_multi {o}{s} kernel{a} & {t} kernel{b}")),
        (stream(), option).prop_map(|(s, o)| format!("launch {s} kernel {o}")),
        (
            stream(),
            select(vec!["prefetch", "discard", "discard_prefetch"]),
            select(vec!["M", "M[8..16]", "M[0..8] M[16..32]"]),
        )
            .prop_map(|(s, verb, x)| format!("{verb} {s} {x}")),
        (stream(), select(vec!["global", "host", "single"]))
            .prop_map(|(s, how)| format!("attach {s} M {how}")),
        (stream(), word(), select(vec!["", " no_barrier"]))
            .prop_map(|(s, v, o)| format!("write_value {s} {v}{o}")),
        (stream(), word(), word(), select(vec!["", " eq", " and", " nor"])).prop_map(
            |(s, v, w, o)| format!("wait_value {s} {v}{o} & write_value {w} & wait_value {w}{o}")
        ),
        (stream(), select(vec!["signal", "wait_signal"]))
            .prop_map(|(s, verb)| format!("{verb} {s} done=7")),
        select(vec!["release lock", "acquire lock", "acquire ready api=sem_wait"])
            .prop_map(str::to_owned),
        stream().prop_map(|s| format!("hand_out {s}")),
        buffer().prop_map(|x| format!("file_read {x}[0..8]")),
        buffer().prop_map(|x| format!("file_write {x}")),
        (stream(), buffer(), select(vec!["read", "write"]))
            .prop_map(|(s, x, verb)| format!("file_{verb}_async {s} {x}")),
        (stream(), accesses(), select(vec!["ncclAllReduce", "ncclSend"]))
            .prop_map(|(s, a, name)| format!("collective {s} {name}{a}")),
        accesses().prop_map(|a| format!("file_batch F{a}")),
        Just("file_batch_done F".to_owned()),
        select(vec!["free_array R2", "unmap V", "close_import outside", "free_async T s1"])
            .prop_map(str::to_owned),
    ]
}

/// Lines that build, change, capture and launch graphs.
fn graph_line() -> impl Strategy<Value = String> {
    let body = prop_oneof![
        accesses().prop_map(|a| format!("launch kernel{a}")),
        (buffer(), buffer()).prop_map(|(x, y)| format!("copy dst:{x}[0..8] src:{y}[8..16]")),
        buffer().prop_map(|x| format!("memset {x}")),
        accesses().prop_map(|a| format!("host_fn{a}")),
        select(vec![
            "record e1",
            "wait e2",
            "empty",
            "child C",
            "if C",
            "if C C",
            "switch C C C",
            "while C",
            "alloc W 64",
            "free W",
            "write_value A=2 & wait_value B eq",
            "signal done",
        ])
        .prop_map(str::to_owned),
    ];
    let node = || select(vec!["fill", "move", "clear", "scratch", "last", "n1", "n2"]);
    let captured = || select(vec!["s7", "s8"]);
    prop_oneof![
        1 => select(vec!["graph C", "node C only launch kernel w:D", "instantiate G Y"])
            .prop_map(str::to_owned),
        3 => (node(), body.clone()).prop_map(|(n, b)| format!("node G {n} {b}")),
        1 => body.clone().prop_map(|b| format!("set_node X fill {b}")),
        2 => (node(), body).prop_map(|(n, b)| format!("set_node X {n} {b}")),
        1 => (node(), node(), select(vec!["", " pdl"]))
            .prop_map(|(a, b, o)| format!("edge G {a} {b}{o}")),
        1 => (select(vec!["enable_node", "disable_node"]), node())
            .prop_map(|(verb, n)| format!("{verb} X {n}")),
        1 => select(vec!["update X G", "update Y G", "destroy_graph Y", "instantiate K Z"])
            .prop_map(str::to_owned),
        3 => (select(vec!["X", "Y", "Z"]), stream()).prop_map(|(x, s)| format!("launch_graph {x} {s}")),
        1 => stream().prop_map(|s| format!("upload_graph X {s}")),
        1 => captured().prop_map(|s| format!("capture_begin {s}")),
        1 => captured().prop_map(|s| format!("capture_end {s} K")),
        2 => (captured(), accesses()).prop_map(|(s, a)| format!("launch {s} kernel{a}")),
        1 => (captured(), event()).prop_map(|(s, e)| format!("record {e} {s}")),
        1 => (captured(), event()).prop_map(|(s, e)| format!("wait {s} {e}")),
        1 => captured().prop_map(|s| format!("alloc_async U 64 {s}")),
    ]
}

fn line() -> impl Strategy<Value = String> {
    (select(vec!["", "", "", "T2: ", "T3: ", "P2: ", "P2T2: "]), call())
        .prop_map(|(t, call)| format!("{t}{call}"))
}

/// A program: random lines, those left out that do not fit behind the ones before.
pub(crate) fn program() -> impl Strategy<Value = String> {
    proptest::collection::vec(line(), 0..40).prop_map(|lines| {
        let mut text = PRELUDE.to_owned();
        for line in lines {
            let longer = format!("{text}{line}\n");
            if parse(&longer).is_ok() {
                text = longer;
            }
        }
        text
    })
}
