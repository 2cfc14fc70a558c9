//! Items to text and back, on random programs; and a parser that survives anything.

mod essence;
mod lines;

use essence::{entities, operations};
use lines::{PRELUDE, program};
use proptest::prelude::*;
use proptest::sample::Index;
use streamsan_model::TraceItem;
use streamsan_text::{parse, write};

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

/// Graphs in every way that the grammar knows, behind one another.
const GRAPHS: &[&str] = &[
    "capture_begin s1\nlaunch s1 root w:A\nrecord fork s1\nwait s2 fork\n\
     launch s2 side r:A w:B\ncopy s1 dst:C src:A order=any\nrecord join s2\nwait s1 join\n\
     alloc_async T 64 s1\nlaunch s1 both r:B w:T pdl pdl_wait\nfree_async T s1\n\
     write_value s1 V=2 & wait_value W eq\nhost_fn s1 r:C\nmemset s1 B\n\
     capture_end s1 K\ninstantiate K Z\nlaunch_graph Z s1\nlaunch_graph Z s2",
    "graph C\nnode C only launch k w:A\ngraph G\nnode G kid child C\nnode C more launch k r:A\n\
     node G again child C\nnode G maybe if C C\nnode G loop while C\nnode G some switch C C C\n\
     edge G kid again\nedge G again maybe\ninstantiate G X\nlaunch_graph X legacy",
    "graph G\nnode G a launch one w:A\nnode G b memset B\nnode G c record e\nedge G a b\n\
     instantiate G X\nlaunch_graph X s1\ndisable_node X b\nset_node X a launch two r:A w:C\n\
     launch_graph X s1\nenable_node X b\nset_node X c record f\nlaunch_graph X s1\n\
     update X G status=910\nupdate X G\nlaunch_graph X s2\nupload_graph X s2\n\
     node G d alloc T 64\ninstantiate G Y\nnode G e free T\ninstantiate G Z\n\
     launch_graph Y s1\nlaunch_graph Z s1\ndestroy_graph X\ninstantiate G X\nlaunch_graph X s1",
    "P2: graph G\nP2: node G a copy_peer dst:D1/A src:B\nP2: instantiate G X\n\
     graph G\nnode G a launch k w:A\ninstantiate G X\nP2T2: launch_graph X s1\n\
     launch_graph X s1\nP2: set_node X a copy_peer dst:D1/A src:C\nP2: launch_graph X s1",
    // Memory of graphs is named before the graph is written, or its graph never is.
    "graph G\nnode G a alloc T 64\nlaunch s1 k w:T\ninstantiate G X\nlaunch_graph X s1",
    "graph G\nnode G a alloc T 64\nlaunch s1 k w:T\nfree_async T s1",
    "graph G\nnode G a alloc T 64\ngraph H\nnode H b free T\ninstantiate H X\nlaunch_graph X s1",
    "graph C\nnode C a alloc T 64\ngraph G\nnode G kid child C\nnode G b launch k w:T\n\
     graph H\nnode H b launch k w:T\ninstantiate H X\nlaunch_graph X s1\ninstantiate G Y\n\
     launch_graph Y s1\nfree_async T s1",
    "host\nP2: graph C\nP2: node C a alloc T 64\nP2: launch s1 k w:T\nP2: graph G\n\
     P2: node G b free T\nP2: instantiate G X\nP2: launch_graph X s1",
    "graph G\nnode G a launch k w:A\ngraph H\nnode H a alloc T 64\ninstantiate G X\n\
     launch_graph X s1\nset_node X a launch k w:T\nlaunch_graph X s1\ninstantiate H Y\n\
     launch_graph Y s1",
    // An event of a node that is never launched, and the first that is written of its process.
    "graph G\nnode G a launch k w:A\ninstantiate G X\nlaunch_graph X s1\n\
     node G b record e5\nP2: wait s1 e5",
    "graph G\nnode G a record e5\ninstantiate G X\nlaunch_graph X s1\n\
     set_node X a record e6\nP2: wait s1 e6",
];

#[test]
fn graphs_survive() {
    for text in GRAPHS {
        let items = parse(text).unwrap_or_else(|error| panic!("{error}\n{text}")).items;
        let written = write(&items);
        let again = parse(&written).unwrap_or_else(|error| panic!("{error}:\n{written}")).items;
        let (before, after) = (operations(&items), operations(&again));
        assert!(
            before.len() >= 2 && before == after,
            "{text}\n---\n{written}\n{before:#?}\n{after:#?}"
        );
        let twice = write(&again);
        assert_eq!(calls(&twice), calls(&written));
    }
}
