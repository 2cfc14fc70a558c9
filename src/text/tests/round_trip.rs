//! Items to text and back, on random programs; and a parser that survives anything.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;
use streamsan_model::{
    Access, Action, ByteRange, Entities, Entity, Extent, GraphId, NodeAction, OpSeq, Operation,
    SignalObject, SignalOperation, StreamId, TraceItem,
};
use streamsan_text::{parse, write};

/// Declarations that random lines build on.
const PRELUDE: &str = "\
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
fn program() -> impl Strategy<Value = String> {
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

/// What the operations say, whatever their lines, the numbers of what they name, and the addresses:
/// graphs are told where operations refer to them, and calls that only build one are left out.
fn operations(items: &[TraceItem]) -> Vec<String> {
    let mut entities = Entities::default();
    let mut lines = Vec::new();
    for item in items {
        match item {
            TraceItem::Entity(entity) => entities.declare(entity.clone()),
            TraceItem::Operation(operation) => {
                lines.extend(operation_text(&entities, operation));
            }
            TraceItem::Returned { .. } => {}
        }
    }
    renumbered(&lines)
}

fn operation_text(entities: &Entities, operation: &Operation) -> Option<String> {
    let mut operation = operation.clone();
    operation.accesses.iter_mut().for_each(|access| shift(entities, access));
    let mut text = String::new();
    match &mut operation.action {
        Action::Other | Action::Captured { .. } => return None,
        Action::GraphInstantiate { graph, .. }
        | Action::GraphUpdate { graph, .. }
        | Action::GraphLaunch { graph, .. } => {
            text = graph_text(entities, *graph);
            *graph = GraphId(0);
        }
        Action::Signals(signals) => {
            let signals = Arc::make_mut(signals);
            signals.operations.iter_mut().for_each(|one| shift_word(entities, one));
        }
        _ => {}
    }
    Some(format!("{operation:?} {text}"))
}

fn graph_text(entities: &Entities, id: GraphId) -> String {
    let graph = entities.graph(id).expect("declared before");
    let mut text = String::new();
    for node in &graph.nodes {
        let mut node = node.clone();
        node.made_by = OpSeq::START;
        node.captured_from = None;
        node.accesses.iter_mut().for_each(|access| shift(entities, access));
        match &mut node.action {
            NodeAction::Copy(copy) => copy.stream = StreamId(0),
            NodeAction::Child { graph } => {
                text += &graph_text(entities, *graph);
                *graph = GraphId(0);
            }
            NodeAction::Conditional { bodies, .. } => {
                for body in bodies {
                    text += &graph_text(entities, *body);
                    *body = GraphId(0);
                }
            }
            NodeAction::Signals { operations } => {
                operations.iter_mut().for_each(|one| shift_word(entities, one));
            }
            _ => {}
        }
        text += &format!("{node:?} ");
    }
    text + &format!("{:?}", graph.edges)
}

/// Addresses are told from the begin of the allocation.
fn shift(entities: &Entities, access: &mut Access) {
    let start = entities.allocation(access.allocation).expect("declared before").range.start;
    match &mut access.extent {
        Extent::Range(range) => *range = ByteRange::new(range.start - start, range.end - start),
        Extent::Strided(pattern) => pattern.start -= start,
    }
}

fn shift_word(entities: &Entities, operation: &mut SignalOperation) {
    let (SignalOperation::Signal { object, .. } | SignalOperation::Wait { object, .. }) = operation;
    if let SignalObject::Memory { allocation, address, .. } = object {
        *address -= entities.allocation(*allocation).expect("declared before").range.start;
    }
}

/// Ids, which are a letter or `#` and a number, by the order in which they come.
fn renumbered(lines: &[String]) -> Vec<String> {
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let is_id = |word: &str| {
        let mut chars = word.chars();
        let kind = chars.next().is_some_and(|c| c == '#' || c.is_ascii_lowercase());
        kind && !chars.as_str().is_empty() && chars.all(|c| c.is_ascii_digit())
    };
    let mut rename = |word: &str| -> String {
        if !is_id(word) {
            return word.to_owned();
        }
        let next = numbers.len();
        let number = numbers.entry(word.to_owned()).or_insert(next);
        format!("{}{number}", &word[..1])
    };
    let is_word = |c: char| c == '#' || c == '_' || c.is_alphanumeric();
    lines
        .iter()
        .map(|line| {
            let (mut out, mut word) = (String::new(), String::new());
            for c in line.chars().chain([' ']) {
                if is_word(c) {
                    word.push(c);
                } else {
                    out.push_str(&rename(&std::mem::take(&mut word)));
                    out.push(c);
                }
            }
            out
        })
        .collect()
}

/// Entities, a kind at a time: the kinds need not come in the same order. Graphs name lines, which
/// are others; operations tell them.
fn entities(items: &[TraceItem]) -> Vec<impl PartialEq + Debug> {
    let mut entities: Vec<_> = items
        .iter()
        .filter_map(|item| match item {
            TraceItem::Entity(Entity::Graph(_)) => None,
            TraceItem::Entity(entity) => Some(entity.clone()),
            _ => None,
        })
        .collect();
    entities.sort_by_key(|entity| match entity {
        Entity::Process(_) => 0,
        Entity::Thread(_) => 1,
        Entity::Context(_) => 2,
        Entity::Stream(_) => 3,
        Entity::Event(_) => 4,
        Entity::Allocation(_) => 5,
        Entity::Graph(_) => 7,
        Entity::Kernel(_) => 6,
    });
    entities
}

/// A text without the comments that stand for what cannot be written.
fn calls(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.starts_with('#')).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn written_items_read_back_equal(text in program()) {
        let items = parse(&text).expect("checked line by line").items;
        let written = write(&items);
        let again = parse(&written);
        let again = again.map_err(|e| TestCaseError::fail(format!("{e}\n{text}\n---\n{written}")))?;
        prop_assert_eq!(operations(&items), operations(&again.items), "{}---\n{}", text, written);
        let twice = write(&again.items);
        prop_assert_eq!(calls(&twice), calls(&written));
    }

    #[test]
    fn equal_texts_give_equal_items(text in program()) {
        prop_assert_eq!(parse(&text), parse(&text));
    }

    #[test]
    fn mutated_programs_are_read_or_refused(
        text in program(),
        changes in proptest::collection::vec((any::<Index>(), any::<char>(), 0..4u8), 1..8),
    ) {
        let mut chars: Vec<char> = text.chars().collect();
        for (at, with, how) in changes {
            if chars.is_empty() { break }
            let at = at.index(chars.len());
            match how {
                0 => chars[at] = with,
                1 => drop(chars.remove(at)),
                2 => chars.insert(at, chars[(at * 7) % chars.len()]),
                _ => chars.truncate(at),
            }
        }
        let text: String = chars.into_iter().collect();
        match parse(&text) {
            Ok(trace) => drop(write(&trace.items)),
            Err(error) => {
                prop_assert!(error.line <= text.lines().count() && error.column > 0);
                prop_assert!(!error.message.is_empty());
            }
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in ".{0,200}") {
        let _ = parse(&text);
    }
}

#[test]
fn names_and_kinds_survive() {
    let items = parse(PRELUDE).expect("the prelude parses").items;
    let again = parse(&write(&items)).expect("written text parses").items;
    assert_eq!(entities(&items), entities(&again));
}

/// As a stored trace gives them: all declarations, then all calls.
#[test]
fn what_lives_in_a_context_is_declared_behind_the_call_that_makes_it() {
    let text = "context c0\ncontext c1\nglobal counters 64\nlaunch s1 store w:counters\n\
                launch c1/s2 load r:c1/A[0..8]\nrecord c1/e1 c1/s2\nwait s1 c1/e1\n";
    let mut items = parse(text).expect("it parses").items;
    items.sort_by_key(|item| matches!(item, TraceItem::Operation(_)));
    let written = write(&items);
    let again = parse(&written).unwrap_or_else(|error| panic!("{error}:\n{written}")).items;
    let apis = |items: &[TraceItem]| -> Vec<String> {
        let api = |item: &TraceItem| match item {
            TraceItem::Operation(operation) => Some(operation.api.to_string()),
            _ => None,
        };
        items.iter().filter_map(api).collect()
    };
    assert_eq!(apis(&items), apis(&again), "{written}");
    assert_eq!(write(&again), written);
}
