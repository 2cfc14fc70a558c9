//! `run` and `check` agree whatever fails: each step of writing the trace, and of reading it again at
//! the end of the run, once and for good. Where anything of the trace is missing, neither says CLEAN.

use super::damaged_traces::meta;
use super::hold_messages;
use super::trace::Concluded;
use std::path::Path;
use std::sync::Arc;
use streamsan_analysis::HostModel;
use streamsan_collect::{Recorder, Recording, Silent};
use streamsan_model::{IncompleteReason, OpSeq, Threshold, TraceItem, Verdict};
use streamsan_report::{Input, Report};
use streamsan_store::{Coverage, EntryPoint, FailingSteps, Treatment, Writer};

const ORDERED: &str =
    "launch s1 produce w:A\nrecord e s1\nwait s2 e\nlaunch s2 consume r:A\nsync_ctx\n";
const RACY: &str = "launch s1 produce w:A\nlaunch s2 consume r:A\nsync_ctx\n";

/// How a run goes.
#[derive(Clone, Copy, Debug)]
struct Way {
    text: &'static str,
    /// The analysis waits for the end of the run.
    deferred: bool,
    /// Accesses of a launch become known late, so that the trace is analysed again.
    late: bool,
    /// An entry point is not understood.
    incomplete: bool,
}

/// Records, with commits on the way as the collector makes them.
fn record(path: &Path, way: Way) -> Option<Recording> {
    let trace = streamsan_text::parse(way.text).expect("a text trace");
    let writer = Writer::create(path, &meta()).ok()?;
    let mut recorder =
        Recorder::new(path, writer, way.deferred, None, HostModel::default(), Arc::new(Silent));
    let mut late = Vec::new();
    for (n, mut item) in trace.items.into_iter().enumerate() {
        if let (true, TraceItem::Operation(operation)) = (way.late, &mut item) {
            let accesses = std::mem::take(&mut operation.accesses);
            if !accesses.is_empty() {
                late.push((operation.g, accesses));
            }
        }
        recorder.item(&item);
        match n % 8 {
            3 => recorder.begin_commit(),
            7 => recorder.commit(),
            _ => {}
        }
    }
    let replaced = !late.is_empty();
    for (g, accesses) in late {
        recorder.replace_accesses(OpSeq(g.0), &accesses);
    }
    let name = "cuLaunchKernel".to_owned();
    let mut entry_points = vec![EntryPoint { name, treatment: Treatment::Recorded, calls: 9 }];
    let mut reasons = Vec::new();
    if way.incomplete {
        let (name, treatment) = ("cuMulticastCreate".to_owned(), Treatment::NotUnderstood);
        reasons.push(IncompleteReason::NotUnderstood { api: name.clone(), calls: 1 });
        entry_points.push(EntryPoint { name, treatment, calls: 1 });
    }
    let coverage = Coverage { entry_points, ..Coverage::default() };
    Some(recorder.finish(replaced, coverage, reasons))
}

/// The verdict of `run`.
fn verdict(recording: &Recording) -> Verdict {
    let input = Input {
        findings: recording.findings.clone(),
        entities: &recording.entities,
        threshold: Threshold::default(),
        reasons: recording.reasons.clone(),
        coverage: Some(super::trace::summary(&recording.coverage)),
        upstream: None,
        trace: None,
    };
    Report::new(input, |_| None).verdict().clone()
}

fn check(path: &Path) -> Option<Verdict> {
    let concluded = Concluded::open(path, false).ok()?;
    Some(concluded.report(Threshold::default()).verdict().clone())
}

fn passes(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Clean | Verdict::NoCuda)
}

/// Answers whether a step failed.
fn agrees(way: Way, first: u64, count: u64) -> bool {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.db");
    let failing = FailingSteps::new(first, count);
    let recording = record(&path, way);
    let is_reached = failing.is_reached();
    drop(failing);
    let Some(recording) = recording else { return is_reached };
    let (run, check) = (verdict(&recording), check(&path));
    let told = format!("{way:?}, {count} steps from {first} on: run {run:?}, check {check:?}");
    let is_lost =
        |reason: &IncompleteReason| matches!(reason, IncompleteReason::TraceNotWritten(_));
    if recording.reasons.iter().any(is_lost) {
        // One of them may know of a race that the other does not.
        assert!(!passes(&run), "{told}");
        assert!(check.is_none_or(|verdict| !passes(&verdict)), "{told}");
    } else {
        let (run, check) = (Some(run.description()), check.as_ref().map(Verdict::description));
        assert_eq!(run, check, "{told}");
    }
    is_reached
}

#[test]
fn run_and_check_agree_whatever_fails() {
    // The messages on the way come a few hundred times.
    hold_messages();
    let way = Way { text: ORDERED, deferred: false, late: false, incomplete: false };
    let mut tried = 0;
    for way in [
        way,
        Way { late: true, ..way },
        Way { deferred: true, incomplete: true, ..way },
        Way { text: RACY, ..way },
        Way { text: RACY, deferred: true, late: true, ..way },
    ] {
        for count in [1, u64::MAX] {
            let mut first = 0;
            while agrees(way, first, count) {
                first += 1;
            }
            tried += first;
        }
    }
    assert!(tried > 150, "{tried} steps can fail");
}
