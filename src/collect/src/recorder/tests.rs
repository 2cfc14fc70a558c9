use super::finish::FINDINGS_LEFT_OUT;
use super::results::MOST_STORED;
use super::*;
use crate::listener::Silent;
use streamsan_model::{Action, Operation, ProcessId, Status, ThreadId};
use streamsan_store::{Coverage, Reader};

const OPERATIONS: u64 = 50_000;

fn meta() -> streamsan_store::Meta {
    streamsan_store::Meta {
        tool_version: String::new(),
        started_at: chrono::DateTime::UNIX_EPOCH,
        command: Vec::new(),
        host: String::new(),
        driver: String::new(),
        extra: Default::default(),
    }
}

#[test]
fn commit_waits_for_one_that_was_begun() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.db");
    let writer = Writer::create(&path, &meta()).expect("the trace is made");
    let mut recorder =
        Recorder::new(&path, writer, true, None, HostModel::default(), Arc::new(Silent));
    for g in 1..=OPERATIONS {
        recorder.item(&TraceItem::Operation(Operation {
            g: OpSeq(g),
            exit: None,
            process: ProcessId(0),
            thread: ThreadId(0),
            api: "cuCtxSynchronize".into(),
            time: None,
            status: Status::SUCCESS,
            action: Action::Other,
            accesses: Vec::new(),
            stack: None,
        }));
    }
    recorder.begin_commit();
    recorder.commit();
    let counts = Reader::open(&path).and_then(|reader| reader.counts()).expect("it is readable");
    assert_eq!(counts.operations, OPERATIONS);
}

/// The number of items that a failure would take out of the trace again is bounded, however far the
/// disk is behind.
#[test]
fn what_is_not_committed_is_waited_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.db");
    let writer = Writer::create(&path, &meta()).expect("the trace is made");
    let mut recorder =
        Recorder::new(&path, writer, true, None, HostModel::default(), Arc::new(Silent));
    let trace = streamsan_text::parse(&"launch s1 k w:A\n".repeat(2 * MOST_KEPT));
    for item in trace.expect("the text is a trace").items {
        recorder.item(&item);
    }
    assert!(recorder.is_behind());
    recorder.commit();
    assert!(!recorder.is_behind());
}

/// There are as many edges as synchronisations: an analysis at the end keeps none of them.
#[test]
fn edges_are_written_as_they_are_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.db");
    let writer = Writer::create(&path, &meta()).expect("the trace is made");
    let mut recorder =
        Recorder::new(&path, writer, true, None, HostModel::default(), Arc::new(Silent));
    let waits = 2000;
    let text = "launch s1 k w:A\nrecord e s1\nwait s2 e\nlaunch s2 k r:A\nsync_ctx\n";
    let trace = streamsan_text::parse(&text.repeat(waits)).expect("the text is a trace");
    trace.items.iter().for_each(|item| recorder.item(item));
    recorder.commit();
    recorder.analyse_again().expect("the trace is analysed");
    assert!(recorder.results.edges.capacity() < 16, "{}", recorder.results.edges.capacity());
    let counts = Reader::open(&path).and_then(|reader| reader.counts()).expect("readable");
    assert_eq!(counts.edges, 2 * waits as u64);
}

/// A mistake in a loop: the trace keeps its first occurrences, the report counts all of them.
#[test]
fn a_mistake_is_stored_so_many_times_and_counted_always() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.db");
    let writer = Writer::create(&path, &meta()).expect("the trace is made");
    let mut recorder =
        Recorder::new(&path, writer, false, None, HostModel::default(), Arc::new(Silent));
    let loops = u64::from(MOST_STORED) + 100;
    let one = "launch s1 produce w:A\nlaunch s2 consume r:A\nsync_ctx\n";
    let text = one.repeat(loops as usize);
    let trace = streamsan_text::parse(&text).expect("the text is a trace");
    trace.items.iter().for_each(|item| recorder.item(item));
    let recording = recorder.finish(false, Coverage::default(), Vec::new());
    let occurrences = recording.findings.clone().iter_mut().count();
    assert_eq!(occurrences, 1, "one mistake");
    let reader = Reader::open(&path).expect("the trace is readable");
    assert_eq!(reader.findings().expect("findings").len() as u64, u64::from(MOST_STORED));
    let left_out = reader.meta().expect("facts").extra.get(FINDINGS_LEFT_OUT).cloned();
    assert_eq!(left_out.as_deref(), Some("100"));
}
