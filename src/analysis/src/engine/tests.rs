//! Memory of the engine for programs that repeat themselves.

use super::Engine;
use crate::{Options, Sink};
use streamsan_model::{Edge, Finding, Lint};

/// Number of rounds of a program, and the factor for the longer run.
const ROUNDS: usize = 600;
const TIMES: usize = 4;

struct Nobody;

impl Sink for Nobody {
    fn edge(&mut self, _: &Edge) {}

    fn finding(&mut self, finding: Finding) {
        panic!("the programs are in order: {finding:?}");
    }

    fn lint(&mut self, _: Lint) {}
}

/// The most pieces that the engine holds while the program runs.
fn most_held(before: &str, round: &str, rounds: usize) -> usize {
    let mut text = format!("{before}\n");
    for n in 0..rounds {
        let second = 3 + n * round.lines().count();
        let round = round.replace("@second", &second.to_string());
        text.push_str(&round.replace("@sometimes", if n % 16 == 15 { "sync_ctx" } else { "" }));
        text.push('\n');
    }
    let trace = streamsan_text::parse(&text).expect("the program is a text trace");
    let options = Options { forgets: true, prune_interval: 64, ..Options::default() };
    let mut engine = Engine::new(options);
    let mut most = 0;
    for item in &trace.items {
        engine.feed(item, &mut Nobody);
        most = most.max(engine.held());
    }
    most
}

#[test]
fn what_is_kept_does_not_grow_with_the_length_of_a_program() {
    let programs = [
        (
            "launches on streams",
            "",
            "launch s1 k w:A\nlaunch s2 k w:B\nlaunch s3 k w:C\n@sometimes",
        ),
        ("never waited for", "", "launch s1 k w:A r:B\nlaunch s2 k w:C r:B"),
        (
            "events in a ring",
            "",
            "launch s1 k w:A\nrecord e1 s1\nwait s2 e1\nlaunch s2 k w:A\nrecord e2 s2\nwait s1 e2",
        ),
        (
            "streams that come and go",
            "",
            "stream t nonblocking\nlaunch t k w:A\nsync_stream t\ndestroy_stream t",
        ),
        (
            "streams that nobody asks",
            "",
            "stream t nonblocking\nlaunch t k r:A\ndestroy_stream t\n@sometimes",
        ),
        (
            "events that come and go",
            "",
            "event e\nlaunch s1 k w:A\nrecord e s1\nsync_event e\ndestroy_event e",
        ),
        ("memory that comes and goes", "", "alloc X 64\nmemset s1 X\nsync_stream s1\nfree X"),
        (
            "memory in stream order",
            "",
            "alloc_async X 64 s1\nmemset s1 X\nfree_async X s1\n@sometimes",
        ),
        (
            "pinned memory",
            "",
            "alloc_pinned H 64\ncopy s1 dst:A[0..64] src:H\nsync_stream s1\nfree_pinned H",
        ),
        ("host functions", "", "launch s1 k w:A\nhost_fn s1\nrun_host_fn @second\n@sometimes"),
        (
            "copies",
            "alloc_pinned H 64",
            "copy s1 dst:A[0..64] src:H\ncopy s1 dst:H src:A[0..64]\nsync_stream s1",
        ),
    ];
    for (name, before, round) in programs {
        let (short, long) =
            (most_held(before, round, ROUNDS), most_held(before, round, TIMES * ROUNDS));
        assert!(long <= short + short / 10, "{name}: {short} pieces, then {long}");
    }
}
