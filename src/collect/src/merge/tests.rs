//! Records by hand, and the calls that they become.

use super::*;

struct Everything;

impl Policy for Everything {
    fn needs_return(&self, api: Api) -> bool {
        api == Api::cuMemAlloc_v2
    }

    fn has_ended(&self, process: ProcessKey) -> bool {
        process == ProcessKey(9)
    }
}

const SYNC: Api = Api::cuCtxSynchronize;
const ALLOC: Api = Api::cuMemAlloc_v2;

fn call(g: u64, thread: u32, api: Api) -> Call {
    let origin = Origin { process: ProcessKey(0), thread: ThreadKey(thread), tid: thread };
    Call::bare(g, origin, api)
}

fn returns(exit: u64, result: i32) -> Return {
    Return { exit, end_ns: 0, result, outs: FewWords::default() }
}

/// Entry index and exit of everything that can be handed over.
fn handed_over(merge: &mut Merge, now: Instant) -> Vec<(u64, Option<u64>)> {
    let mut all = Vec::new();
    while let Some(ready) = merge.next(now, &Everything) {
        all.push(match ready {
            Ready::Call(call) => (call.g, call.returned.map(|r| r.exit)),
            Ready::HostRun(run) => (run.g, run.ended.map(|(g, _)| g)),
            Ready::Kernel(_) | Ready::Host(_) => panic!("nothing else was recorded"),
        });
    }
    all
}

#[test]
fn later_calls_wait_for_the_oldest() {
    let (mut merge, now) = (Merge::default(), Instant::now());
    merge.begin(call(1, 0, SYNC), 0, now);
    merge.begin(call(2, 1, SYNC), 0, now);
    assert_eq!(merge.end(ThreadKey(1), 2, returns(3, 0)), None);
    assert_eq!(handed_over(&mut merge, now), []);
    assert_eq!(merge.end(ThreadKey(0), 1, returns(4, 0)), None);
    assert_eq!(handed_over(&mut merge, now), [(1, Some(4)), (2, Some(3))]);
    assert_eq!(merge.len(), 0);
}

#[test]
fn call_that_stays_away_is_handed_over_and_its_return_follows() {
    let (mut merge, now) = (Merge::default(), Instant::now());
    merge.begin(call(1, 0, SYNC), 0, now);
    merge.begin(call(2, 1, SYNC), 0, now);
    merge.end(ThreadKey(1), 2, returns(3, 0));
    let later = now + 2 * PATIENCE;
    assert_eq!(handed_over(&mut merge, later), [(1, None), (2, Some(3))]);
    assert_eq!(
        merge.end(ThreadKey(0), 1, returns(4, 0)),
        Some(TraceItem::Returned { g: OpSeq(1), exit: OpSeq(4), status: Status::SUCCESS })
    );
    assert!(!merge.failed_late());
}

#[test]
fn failure_after_handing_over_is_remembered() {
    let (mut merge, now) = (Merge::default(), Instant::now());
    merge.begin(call(1, 0, SYNC), 0, now);
    assert_eq!(handed_over(&mut merge, now + 2 * PATIENCE), [(1, None)]);
    merge.end(ThreadKey(0), 1, returns(4, 700));
    assert!(merge.failed_late());
}

#[test]
fn call_whose_result_matters_is_waited_for() {
    let (mut merge, now) = (Merge::default(), Instant::now());
    merge.begin(call(1, 0, ALLOC), 0, now);
    assert_eq!(handed_over(&mut merge, now + 2 * PATIENCE), []);
    merge.end(ThreadKey(0), 1, returns(4, 0));
    assert_eq!(handed_over(&mut merge, now), [(1, Some(4))]);
}

#[test]
fn call_of_a_dead_process_is_not_waited_for() {
    let (mut merge, now) = (Merge::default(), Instant::now());
    merge.begin(Call { process: ProcessKey(9), ..call(1, 0, ALLOC) }, 0, now);
    assert_eq!(handed_over(&mut merge, now), []);
    assert_eq!(handed_over(&mut merge, now + 2 * PATIENCE), [(1, None)]);
}

#[test]
fn many_waiting_records_are_not_held_up() {
    let (mut merge, now) = (Merge::default(), Instant::now());
    merge.begin(call(1, 0, SYNC), 0, now);
    let last = MOST_WAITING as u64;
    for g in 2..=last {
        merge.begin(call(g, 1, SYNC), 0, now);
    }
    assert_eq!(handed_over(&mut merge, now).first(), None);
    merge.begin(call(last + 1, 1, SYNC), 0, now);
    assert_eq!(handed_over(&mut merge, now), [(1, None)]);
}

#[test]
fn calls_of_the_driver_itself_are_left_out() {
    let (mut merge, now) = (Merge::default(), Instant::now());
    merge.begin(call(1, 0, SYNC), 0, now);
    merge.begin(call(2, 0, SYNC), 1, now);
    assert_eq!(merge.end(ThreadKey(0), 2, returns(3, 0)), None);
    merge.end(ThreadKey(0), 1, returns(4, 0));
    assert_eq!(handed_over(&mut merge, now), [(1, Some(4))]);
}

#[test]
fn calls_of_a_host_function_are_the_programs_own() {
    let (mut merge, now) = (Merge::default(), Instant::now());
    let origin = Origin { process: ProcessKey(0), thread: ThreadKey(0), tid: 0 };
    merge.begin(call(1, 0, SYNC), 0, now);
    let run = HostRun { g: 2, origin, enqueued: 77, start_ns: 0, ended: None };
    merge.host_run_begin(run, now);
    merge.begin(call(3, 0, SYNC), 0, now);
    merge.end(ThreadKey(0), 3, returns(4, 0));
    assert_eq!(merge.host_run_end(ThreadKey(0), 77, 5, 0), None);
    merge.begin(call(6, 0, SYNC), 1, now);
    merge.end(ThreadKey(0), 6, returns(7, 0));
    merge.end(ThreadKey(0), 1, returns(8, 0));
    assert_eq!(handed_over(&mut merge, now), [(1, Some(8)), (2, Some(5)), (3, Some(4))]);
}

/// Parts that a thread reads back go with its next call, or with the one that they name.
#[test]
fn parts_of_graphs_find_their_call() {
    let (mut merge, now) = (Merge::default(), Instant::now());
    let record = |merge: &mut Merge, g: u64, thread: u32, record: Record<'_>| {
        let (process, thread) = (ProcessKey(0), ThreadKey(thread));
        let envelope = Envelope { process, thread, tid: thread.0, g, t_ns: g, record };
        assert_eq!(merge.record(&envelope, &Stacks::default(), now), None);
    };
    let end = |nodes| GraphPart::End { graph: 0, nodes, edges: 0, complete: true, handle: 7 };
    let captured = |op| GraphPart::Captured { op, graph: 7, node: 8 };
    record(&mut merge, 1, 0, Record::Graph(end(3)));
    record(&mut merge, 2, 1, Record::Graph(end(4)));
    // The parts of another thread stay with that thread.
    merge.begin(call(3, 2, SYNC), 0, now);
    for (g, thread) in [(4, 1), (5, 0), (6, 0)] {
        merge.begin(call(g, thread, SYNC), 0, now);
    }
    record(&mut merge, 7, 2, Record::Graph(captured(3)));
    // A call that was never seen.
    record(&mut merge, 8, 2, Record::Graph(captured(99)));
    let mut found = Vec::new();
    while let Some(Ready::Call(call)) = merge.pop() {
        let read = call.read_back.as_deref();
        let nodes = read.and_then(|read| read.graphs.get(&0)?.end).map(|(nodes, _, _)| nodes);
        found.push((call.g, nodes, read.and_then(|read| read.captured)));
    }
    let expected = [(3, None, Some(8)), (4, Some(4), None), (5, Some(3), None), (6, None, None)];
    assert_eq!(found, expected);
}

#[test]
fn call_that_was_jumped_out_of_does_not_hide_the_next() {
    let (mut merge, now) = (Merge::default(), Instant::now());
    merge.begin(call(1, 0, SYNC), 0, now);
    merge.begin(call(2, 0, SYNC), 0, now);
    merge.end(ThreadKey(0), 2, returns(3, 0));
    assert_eq!(handed_over(&mut merge, now + 2 * PATIENCE), [(1, None), (2, Some(3))]);
}
