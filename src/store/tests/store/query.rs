//! What a viewer is told of a trace, compared with the same worked out from its operations.

use crate::common;
use std::collections::BTreeSet;
use streamsan_model::*;
use streamsan_store::{Reader, Writer};

/// The fixed trace: operations 2, 4, 6, ... and two findings.
fn reader(folder: &tempfile::TempDir) -> Reader {
    with_findings(folder, &common::findings())
}

fn with_findings(folder: &tempfile::TempDir, findings: &[Finding]) -> Reader {
    let path = folder.path().join("trace.db");
    let mut writer = Writer::create(&path, &common::meta()).unwrap();
    for item in common::items() {
        writer.item(&item).unwrap();
    }
    for finding in findings {
        writer.finding(finding).unwrap();
    }
    writer.finalize().unwrap();
    Reader::open(&path).unwrap()
}

fn window(first: u64, end: u64) -> OpWindow {
    OpWindow { first: OpSeq(first), end: OpSeq(end) }
}

fn lane_of(operation: &Operation) -> LaneId {
    operation.action.stream().map_or(LaneId::Host(operation.process), LaneId::Stream)
}

/// The buckets by their definition.
fn expected(window: OpWindow, columns: u32) -> Vec<Bucket> {
    let length = window.end.0 - window.first.0;
    let column = |g: OpSeq| ((g.0 - window.first.0) * u64::from(columns) / length) as u32;
    let operations = common::operations();
    let shown: Vec<_> =
        operations.iter().filter(|o| o.g >= window.first && o.g < window.end).collect();
    let keys: BTreeSet<_> = shown.iter().map(|o| (lane_of(o), column(o.g))).collect();
    keys.into_iter()
        .map(|(lane, place)| {
            let inside: Vec<_> =
                shown.iter().filter(|o| (lane_of(o), column(o.g)) == (lane, place)).collect();
            let holds = |g: OpSeq| inside.iter().any(|o| o.g == g);
            let findings = common::findings();
            Bucket {
                lane,
                column: place,
                operations: inside.len() as u64,
                first: inside[0].g,
                group: inside.iter().map(|o| o.action.group()).max().unwrap(),
                findings: findings
                    .iter()
                    .filter(|f| holds(f.first.op) || holds(f.second.op))
                    .count() as u64,
            }
        })
        .collect()
}

#[test]
fn span_reaches_from_the_first_operation_past_the_last() {
    let folder = tempfile::tempdir().unwrap();
    let last = common::operations().last().unwrap().g.0;
    assert_eq!(reader(&folder).span().unwrap(), Some(window(2, last + 1)));
}

#[test]
fn trace_without_operations_has_no_span_and_no_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    Writer::create(&path, &common::meta()).unwrap().finalize().unwrap();
    let reader = Reader::open(&path).unwrap();
    assert_eq!(reader.span().unwrap(), None);
    assert_eq!(reader.lanes().unwrap(), []);
    assert_eq!(reader.buckets(window(0, 10), 5).unwrap(), []);
    assert_eq!(TraceQuery::findings(&reader).unwrap(), []);
}

#[test]
fn rows_hold_every_operation_hosts_before_streams() {
    let folder = tempfile::tempdir().unwrap();
    let lanes = reader(&folder).lanes().unwrap();
    let ids: Vec<_> = lanes.iter().map(|l| l.id).collect();
    assert!(ids.is_sorted());
    assert_eq!(ids[0], LaneId::Host(ProcessId(0)));
    let operations = common::operations();
    for lane in &lanes {
        let count = operations.iter().filter(|o| lane_of(o) == lane.id).count() as u64;
        assert_eq!(lane.operations, count, "{:?}", lane.id);
        let stream = lane.stream.as_ref().map(|s| LaneId::Stream(s.id));
        assert_eq!(stream, matches!(lane.id, LaneId::Stream(_)).then_some(lane.id));
    }
    assert_eq!(lanes.iter().map(|l| l.operations).sum::<u64>(), operations.len() as u64);
    assert_eq!(lanes[2].stream.as_ref().and_then(|s| s.name.as_deref()), Some("decode"));
}

#[test]
fn buckets_follow_their_definition_at_every_zoom() {
    let folder = tempfile::tempdir().unwrap();
    let reader = reader(&folder);
    for (first, end) in [(2, 66), (0, 1000), (14, 17), (16, 17), (17, 18), (20, 40), (100, 200)] {
        for columns in [1, 2, 3, 7, 64, 500] {
            let window = window(first, end);
            let found = reader.buckets(window, columns).unwrap();
            assert_eq!(found, expected(window, columns), "{window:?} in {columns}");
            assert!(found.iter().all(|b| b.column < columns));
        }
    }
}

/// Both sides in one cell are one finding; a side outside the window does not hide the other.
#[test]
fn findings_are_counted_once_a_bucket() {
    let folder = tempfile::tempdir().unwrap();
    let operations = common::operations();
    let (first, second) = (&operations[7], &operations[8]);
    assert_eq!(lane_of(first), lane_of(second));
    let mut finding = common::findings().remove(0);
    (finding.first.op, finding.second.op) = (first.g, second.g);
    let reader = with_findings(&folder, &[finding.clone(), finding]);
    let counts = |window, columns| -> Vec<_> {
        let buckets = reader.buckets(window, columns).unwrap();
        buckets.iter().map(|b| (b.operations, b.findings)).collect()
    };
    let (first, end) = (first.g.0, second.g.0 + 1);
    assert_eq!(counts(window(first, end), 1), [(2, 2)]);
    assert_eq!(counts(window(first, end), 3), [(1, 2), (1, 2)]);
    assert_eq!(counts(window(first, first + 1), 1), [(1, 2)]);
    assert_eq!(counts(window(end - 1, end), 1), [(1, 2)]);
}

#[test]
fn no_window_and_no_columns_are_no_buckets() {
    let folder = tempfile::tempdir().unwrap();
    let reader = reader(&folder);
    for (window, columns) in [(window(2, 2), 10), (window(9, 2), 10), (window(2, 60), 0)] {
        assert_eq!(reader.buckets(window, columns).unwrap(), []);
    }
    let everything = reader.buckets(window(0, u64::MAX), u32::MAX).unwrap();
    assert!(everything.iter().all(|b| b.column == 0));
    let all = everything.iter().map(|b| b.operations).sum::<u64>();
    assert_eq!(all, common::operations().len() as u64);
}

#[test]
fn neighbours_lead_through_a_row_and_end_at_its_ends() {
    let folder = tempfile::tempdir().unwrap();
    let reader = reader(&folder);
    for lane in reader.lanes().unwrap() {
        let row: Vec<_> =
            common::operations().iter().filter(|o| lane_of(o) == lane.id).map(|o| o.g).collect();
        let mut forward = Vec::new();
        let mut at = OpSeq(0);
        while let Some(next) = reader.neighbour(lane.id, at, true).unwrap() {
            forward.push(next);
            at = next;
        }
        assert_eq!(forward, row);
        let mut backward = Vec::new();
        let mut at = OpSeq(u64::MAX);
        while let Some(next) = reader.neighbour(lane.id, at, false).unwrap() {
            backward.push(next);
            at = next;
        }
        backward.reverse();
        assert_eq!(backward, row);
    }
    let unknown = LaneId::Stream(StreamId(77));
    assert_eq!(reader.neighbour(unknown, OpSeq(0), true).unwrap(), None);
}

#[test]
fn operations_and_findings_are_the_stored_ones() {
    let folder = tempfile::tempdir().unwrap();
    let reader = reader(&folder);
    for operation in common::operations() {
        let found = TraceQuery::operation(&reader, operation.g).unwrap();
        assert_eq!(found, Some(operation));
    }
    assert_eq!(TraceQuery::operation(&reader, OpSeq(3)).unwrap(), None);
    let findings = TraceQuery::findings(&reader).unwrap();
    assert!(findings.is_sorted_by_key(|f| f.second.op));
    assert_eq!(findings, common::findings());
}

#[test]
fn damaged_trace_is_told() {
    let folder = tempfile::tempdir().unwrap();
    drop(reader(&folder));
    let path = folder.path().join("trace.db");
    let mut bytes = std::fs::read(&path).unwrap();
    assert!(bytes.len() > 4096);
    let middle = bytes.len() / 3;
    bytes[4096..middle].fill(0xee);
    std::fs::write(&path, bytes).unwrap();
    let told = match Reader::open(&path) {
        Err(error) => error.to_string(),
        Ok(reader) => reader.buckets(window(0, 100), 10).unwrap_err().to_string(),
    };
    assert!(told.contains("damaged"), "{told}");
}
