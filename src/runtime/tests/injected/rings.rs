//! Rings that are too small for what a program does.

use std::path::Path;
use std::time::Duration;

use streamsan_wire::Api;

use crate::harness::{Options, Owned, run_with};
use crate::lifecycle::program;

const CALLS: u64 = 20_000;

#[test]
fn a_reader_that_keeps_up_loses_nothing_in_a_small_ring() {
    let options = Options { ring_bytes: 64 << 10, ..Options::default() };
    let recorded = run_with(&program(), &["many", &CALLS.to_string()], &options);
    assert_eq!(recorded.count(Api::cuMemFree_v2) as u64, CALLS);
    assert_eq!(recorded.processes[0].dropped, 0);
}

/// A machine that is busy, or a disk that is slow: the reader gets on, and comes to the rings late.
#[test]
fn a_reader_that_gets_on_is_waited_for() {
    // A reader that itself got no processor for longer has not got on, and is waited for no longer:
    // then that is tried again with more patience.
    for patience in [500, 2_000, 8_000, 32_000].map(Duration::from_millis) {
        let busy = 3 * patience;
        let options = Options { ring_bytes: 64 << 10, busy, patience, ..Options::default() };
        let recorded = run_with(&program(), &["many", &CALLS.to_string()], &options);
        if recorded.longest_silence >= patience {
            continue;
        }
        assert_eq!(recorded.count(Api::cuMemFree_v2) as u64, CALLS);
        assert_eq!(recorded.processes[0].dropped, 0);
        assert!(recorded.processes[0].waited > Duration::ZERO, "the wait is told");
        return;
    }
    panic!("the reader never got a processor in time");
}

#[test]
fn what_does_not_fit_is_dropped_and_counted_and_the_program_ends() {
    let patience = Duration::from_millis(200);
    let options = Options { ring_bytes: 64 << 10, late: true, patience, ..Options::default() };
    let recorded = run_with(&program(), &["many", &CALLS.to_string()], &options);
    assert!(recorded.status.success());
    let begins = recorded.count(Api::cuMemFree_v2) as u64;
    assert!(begins > 100, "the ring held {begins}");
    assert_eq!(begins + recorded.processes[0].dropped, CALLS);
    assert!(recorded.processes[0].waited >= patience, "{:?}", recorded.processes[0].waited);
    // Whoever has a BEGIN has an END: room for it is kept.
    let ends = recorded.events.iter().filter(|e| matches!(e.record, Owned::End { .. })).count();
    assert_eq!(ends as u64, begins);
}

#[test]
fn a_limit_on_file_sizes_costs_records_not_the_program() {
    let limited = format!("ulimit -f 100 && exec {} many 50", program().display());
    let recorded = run_with(Path::new("/bin/sh"), &["-c", &limited], &Options::default());
    assert!(recorded.status.success(), "{:?}", recorded.status);
    assert_eq!(recorded.count(Api::cuMemFree_v2), 0);
    assert_eq!(recorded.processes.last().map(|process| process.dropped), Some(50));
}
