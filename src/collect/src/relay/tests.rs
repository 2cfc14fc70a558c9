use super::{
    BATCH, BATCH_BYTES, Batch, Beside, MOST_WAITING, Place, Relay, RelayState, Step, record,
};
use crate::listener::Silent;
use crate::recorder::Recorder;
use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;
use streamsan_analysis::HostModel;
use streamsan_model::{OpSeq, TraceItem};
use streamsan_store::{Coverage, Reader, Writer};

fn recorder(path: &Path, deferred: bool) -> Recorder {
    let meta = streamsan_store::Meta {
        tool_version: String::new(),
        started_at: chrono::DateTime::UNIX_EPOCH,
        command: Vec::new(),
        host: String::new(),
        driver: String::new(),
        extra: Default::default(),
    };
    let writer = Writer::create(path, &meta).expect("the trace is made");
    Recorder::new(path, writer, deferred, None, HostModel::default(), Arc::new(Silent))
}

/// The steps of a program, with accesses that come late and commits on the way.
fn steps() -> Vec<Step> {
    let text = "launch s1 k w:A\nrecord e s1\nwait s2 e\nlaunch s2 k r:A\nlaunch s3 k r:A\n";
    let trace = streamsan_text::parse(&text.repeat(600)).expect("the text is a trace");
    let mut steps = Vec::new();
    for item in trace.items {
        let late = match &item {
            TraceItem::Operation(operation) if operation.g.0 % 7 == 0 => {
                Some(Step::Exact(operation.g, operation.accesses.clone(), None))
            }
            _ => None,
        };
        steps.push(Step::Item(item));
        steps.extend(late);
        if steps.len() % 1000 == 0 {
            steps.push(Step::BeginCommit);
        }
    }
    steps.push(Step::Note("a_fact", "of the run".to_owned()));
    steps
}

/// The stored items and the findings, by a recorder on a thread of its own or on this one.
fn recorded(beside: bool, deferred: bool) -> (Vec<TraceItem>, Vec<(OpSeq, OpSeq)>, u64, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.db");
    let recorder = recorder(&path, deferred);
    let mut relay = if beside { Relay::new(recorder) } else { Relay::here(recorder) };
    assert_eq!(matches!(relay.place, Place::Beside(_)), beside);
    for step in steps() {
        relay.put(step, &|| {});
    }
    let recording = relay.end(&|| {}).finish(false, Coverage::default(), Vec::new());
    let reader = Reader::open(&path).expect("the trace is readable");
    let findings = reader.findings().expect("findings");
    let sides = findings.iter().map(|finding| (finding.first.op, finding.second.op)).collect();
    let items = reader.items().collect::<Result<Vec<_>, _>>().expect("items");
    let fact = reader.meta().expect("facts").extra["a_fact"].clone();
    (items, sides, recording.findings.clone().iter_mut().count() as u64, fact)
}

#[test]
fn thread_of_its_own_changes_nothing() {
    for deferred in [false, true] {
        let beside = recorded(true, deferred);
        assert!(!beside.1.is_empty(), "a race is found");
        assert!(beside == recorded(false, deferred));
    }
}

/// The collector waits where much waits for the recorder, and says meanwhile that it gets on.
#[test]
fn what_waits_for_the_recorder_is_bounded() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut relay = Relay::new(recorder(&folder.path().join("trace.db"), false));
    let waited = Cell::new(0u64);
    let (mut most, mut batches) = (0, 0);
    for step in steps() {
        relay.put(step, &|| waited.set(waited.get() + 1));
        let Place::Beside(beside) = &relay.place else { panic!("it has a thread") };
        let queue = beside.shared.queue();
        most = most.max(queue.bytes);
        batches = batches.max(queue.batches.len() + queue.spares.len());
    }
    assert!(most <= MOST_WAITING + 2 * BATCH_BYTES, "{most} bytes waited");
    // Those that waited go round.
    assert!(batches <= 2 + MOST_WAITING / (BATCH_BYTES / 4), "{batches} batches");
    drop(relay.end(&|| {}));
}

/// However often the collector has nothing more for the moment: a recorder that is behind gets full
/// batches, of which there are few.
#[test]
fn batches_that_wait_are_full() {
    let folder = tempfile::tempdir().expect("a folder");
    let (give, given) = sync_channel(1);
    let shared = Arc::new(RelayState::default());
    let seen = Arc::clone(&shared);
    // It takes nothing until it has a recorder.
    let thread = thread::spawn(move || record(&seen, &given));
    let place = Place::Beside(Beside { shared, thread, batch: Batch::default() });
    let mut relay = Relay { place };
    let mut steps = steps().into_iter();
    let (mut bytes, mut count) = (0, 0);
    for step in steps.by_ref() {
        bytes += step.bytes();
        if bytes > MOST_WAITING {
            break;
        }
        count += 1;
        relay.put(step, &|| panic!("nothing gets on"));
        relay.flush(&|| panic!("nothing gets on"));
    }
    assert!(count > BATCH / 2, "{count} steps");
    let Place::Beside(beside) = &relay.place else { panic!("it has a thread") };
    let waiting = beside.shared.queue().batches.len();
    let full = BATCH_BYTES.min(BATCH * size_of::<Step>());
    assert!(waiting <= 1 + MOST_WAITING / full, "{waiting} batches");
    give.send(recorder(&folder.path().join("trace.db"), false)).expect("the thread runs");
    for step in steps {
        relay.put(step, &|| {});
        relay.flush(&|| {});
        let Place::Beside(beside) = &relay.place else { panic!("it has a thread") };
        let queue = beside.shared.queue();
        let there = queue.batches.len() + queue.spares.len();
        // Two may not have been full, the recorder's and the first that waited; one crossed the bound.
        assert!(there <= 3 + MOST_WAITING / full, "{there} batches");
    }
    drop(relay.end(&|| {}));
}

/// A recorder that panics is the collector's panic, as if it worked there.
#[test]
fn panic_of_the_recorder_is_passed_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut relay = Relay::new(recorder(&folder.path().join("trace.db"), false));
    relay.put(Step::Panic, &|| {});
    relay.flush(&|| {});
    for step in steps() {
        relay.put(step, &|| {});
    }
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| relay.end(&|| {})));
    assert!(ended.is_err());
}

/// A recording that is given up leaves what was committed.
#[test]
fn recording_that_is_dropped_ends_its_thread() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.db");
    let mut relay = Relay::new(recorder(&path, false));
    for step in steps() {
        relay.put(step, &|| {});
    }
    drop(relay);
    let state = Reader::open(&path).expect("the trace is readable").state();
    assert_eq!(state, streamsan_store::TraceState::Recording);
}
