//! Items to text and back, on random programs; and a parser that survives anything.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use std::fmt::Debug;
use streamsan_model::{Action, Entity, EventId, OpSeq, Operation, TraceItem};
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
    ])
    .prop_map(str::to_owned)
}

fn event() -> impl Strategy<Value = String> {
    select(vec!["e1", "e2", "D1/e1", "tick"]).prop_map(str::to_owned)
}

fn buffer() -> impl Strategy<Value = String> {
    select(vec!["A", "B", "D1/A", "P", "M", "Q", "H", "G", "R", "far", "elder"])
        .prop_map(str::to_owned)
}

fn context() -> impl Strategy<Value = String> {
    select(vec!["c0", "c1", "c2", "D1"]).prop_map(str::to_owned)
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
    ]
}

fn line() -> impl Strategy<Value = String> {
    (select(vec!["", "", "", "T2: ", "T3: "]), call()).prop_map(|(t, call)| format!("{t}{call}"))
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

/// Operations, numbered from 1 whatever their lines, with events numbered by first use: a name that
/// a destroyed event had is declared before the line that uses it, not on it.
fn operations(items: &[TraceItem]) -> Vec<Operation> {
    let mut numbers = vec![OpSeq::START];
    let mut events = Vec::new();
    let mut operations = Vec::new();
    for item in items {
        let TraceItem::Operation(operation) = item else { continue };
        let mut operation = operation.clone();
        numbers.push(operation.g);
        operation.g = OpSeq(operations.len() as u64 + 1);
        operation.exit = Some(operation.g);
        if let Action::HostFunctionRun { enqueued } = &mut operation.action {
            let number = numbers.iter().position(|g| g == enqueued);
            *enqueued = OpSeq(number.expect("an earlier operation") as u64);
        }
        for event in events_of(&mut operation.action) {
            let known = events.iter().position(|known| known == event);
            let number = known.unwrap_or_else(|| {
                events.push(*event);
                events.len() - 1
            });
            *event = EventId(number as u32);
        }
        operations.push(operation);
    }
    operations
}

fn events_of(action: &mut Action) -> Vec<&mut EventId> {
    match action {
        Action::EventElapsedTime { start, end } => vec![start, end],
        Action::EventRecord { event, .. }
        | Action::StreamWaitEvent { event, .. }
        | Action::ContextRecordEvent { event, .. }
        | Action::ContextWaitEvent { event, .. }
        | Action::EventCreate { event }
        | Action::EventDestroy { event }
        | Action::EventSynchronize { event }
        | Action::EventQuery { event } => vec![event],
        _ => Vec::new(),
    }
}

/// Entities, a kind at a time: the kinds need not come in the same order.
fn entities(items: &[TraceItem]) -> Vec<impl PartialEq + Debug> {
    let mut entities: Vec<_> = items
        .iter()
        .filter_map(|item| match item {
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn written_items_read_back_equal(text in program()) {
        let items = parse(&text).expect("checked line by line").items;
        let written = write(&items);
        let again = parse(&written);
        let again = again.map_err(|e| TestCaseError::fail(format!("{e}\n{text}\n---\n{written}")))?;
        prop_assert_eq!(operations(&items), operations(&again.items), "{}---\n{}", text, written);
        prop_assert_eq!(write(&again.items), written);
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
        operations(items).iter().map(|operation| operation.api.to_string()).collect()
    };
    assert_eq!(apis(&items), apis(&again), "{written}");
    assert_eq!(write(&again), written);
}
