//! Calls counted by their names in a row, compared with a count over the operations.

use crate::common;
use crate::query::reader;
use std::collections::HashMap;
use std::path::Path;
use streamsan_model::*;
use streamsan_store::Reader;

/// Every operation of a trace, with its row and the name it is counted by.
fn named(reader: &Reader) -> Vec<(OpSeq, LaneId, String, bool)> {
    let entities = reader.entities().unwrap();
    let items = reader.items().map(Result::unwrap);
    let operations = items.filter_map(|item| match item {
        TraceItem::Operation(operation) => Some(operation),
        _ => None,
    });
    operations
        .map(|op| {
            let lane = op.action.stream().map_or(LaneId::Host(op.thread), LaneId::Stream);
            let kernel = match op.action {
                Action::Launch { kernel, .. } => entities.kernel(kernel).map(|k| k.name.clone()),
                _ => None,
            };
            let is_kernel = kernel.is_some();
            (op.g, lane, kernel.unwrap_or_else(|| op.api.to_string()), is_kernel)
        })
        .collect()
}

fn check(reader: &Reader) -> usize {
    let mut counts: HashMap<(LaneId, String, bool), u64> = HashMap::new();
    let operations = named(reader);
    for (g, lane, name, is_kernel) in &operations {
        let number = counts.entry((*lane, name.clone(), *is_kernel)).or_default();
        *number += 1;
        let expected =
            CallNumber { name: name.as_str().into(), is_kernel: *is_kernel, number: *number };
        assert_eq!(reader.call_number(*g).unwrap(), Some(expected.clone()), "#{g}");
        assert_eq!(reader.call_of_number(*lane, &expected).unwrap(), Some(*g), "{expected:?}");
    }
    for ((lane, name, is_kernel), number) in counts {
        let beyond = CallNumber { name: name.as_str().into(), is_kernel, number: number + 1 };
        assert_eq!(reader.call_of_number(lane, &beyond).unwrap(), None);
        assert_eq!(reader.call_of_number(lane, &CallNumber { number: 0, ..beyond }).unwrap(), None);
    }
    operations.len()
}

#[test]
fn calls_are_found_again_by_their_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let reader = reader(&folder);
    assert!(check(&reader) > 20);
    assert_eq!(reader.call_number(OpSeq(1 << 40)).unwrap(), None);
    let nobody = CallNumber { name: "nobody".into(), is_kernel: false, number: 1 };
    assert_eq!(reader.call_of_number(LaneId::Stream(StreamId(0)), &nobody).unwrap(), None);
}

#[test]
fn calls_of_traces_of_every_schema_have_numbers() {
    for schema in 1..=streamsan_store::SCHEMA_VERSION {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
        let reader = Reader::open(&golden.join(format!("schema-{schema}.db"))).unwrap();
        assert!(check(&reader) > 5, "{schema}");
    }
}

#[test]
fn clock_of_a_trace_is_that_of_its_first_call() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("whole.db");
    common::write_everything(&path);
    let reader = Reader::open(&path).unwrap();
    let first = reader.items().map(Result::unwrap).find_map(|item| match item {
        TraceItem::Operation(operation) => operation.time,
        _ => None,
    });
    let base = reader.clock_base().unwrap().expect("calls with times");
    assert!(base <= first.expect("a time").start_ns);
}
