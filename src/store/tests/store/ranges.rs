//! The ranges of an operation: what was open on its thread, in every order of begins and ends.

use crate::common;
use std::sync::Arc;
use streamsan_model::*;
use streamsan_store::{Reader, Writer};

const THREADS: u32 = 3;
const DOMAINS: u64 = 3;

/// Numbers that only the seed decides (Knuth's MMIX generator).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// A program of operations, pushes and pops; each thing has the index of its place.
fn program(seed: u64) -> (Vec<Operation>, Vec<NvtxRange>) {
    let shape = common::operations().swap_remove(0);
    let mut numbers = Numbers(seed);
    let (mut operations, mut ranges): (Vec<Operation>, Vec<NvtxRange>) = Default::default();
    // The positions in `ranges` of those that are open, by thread.
    let mut open: Vec<Vec<usize>> = vec![Vec::new(); THREADS as usize];
    for g in 1..200 {
        let thread = numbers.below(THREADS.into()) as u32;
        let open = &mut open[thread as usize];
        let domain = numbers.below(DOMAINS);
        let name: Option<Arc<str>> = (domain > 0).then(|| format!("d{domain}").into());
        match numbers.below(4) {
            0 => {
                let is_free = |depth: &u32| open.iter().all(|&at| ranges[at].depth != *depth);
                let depth = (0..).find(is_free).unwrap();
                ranges.push(NvtxRange {
                    begin: OpSeq(g),
                    end: None,
                    process: ProcessId(0),
                    thread: ThreadId(thread),
                    kind: NvtxKind::Pushed,
                    domain: name,
                    name: format!("r{g}").into(),
                    time: HostTime { start_ns: g, end_ns: g },
                    depth,
                });
                open.push(ranges.len() - 1);
            }
            1 => {
                if let Some(at) = open.iter().rposition(|&at| ranges[at].domain == name) {
                    let range = &mut ranges[open.remove(at)];
                    range.end = Some(OpSeq(g));
                    range.time.end_ns = g;
                }
            }
            2 if numbers.below(4) == 0 => ranges.push(NvtxRange {
                begin: OpSeq(g),
                end: Some(OpSeq(g + 50)),
                process: ProcessId(0),
                thread: ThreadId(thread),
                kind: NvtxKind::Started,
                domain: name,
                name: "started".into(),
                time: HostTime { start_ns: g, end_ns: g + 50 },
                depth: 0,
            }),
            _ => operations.push(Operation {
                g: OpSeq(g),
                exit: Some(OpSeq(g)),
                thread: ThreadId(thread),
                ..shape.clone()
            }),
        }
    }
    (operations, ranges)
}

#[test]
fn ranges_of_an_operation_are_those_open_on_its_thread() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    let mut held = 0;
    for (seed, is_finished) in (0..12).zip([true, false].into_iter().cycle()) {
        let (operations, ranges) = program(seed);
        let mut writer = Writer::create(&path, &common::meta()).unwrap();
        for entity in common::entities() {
            writer.item(&TraceItem::Entity(entity)).unwrap();
        }
        let third = Thread { id: ThreadId(2), process: ProcessId(0), tid: 9 };
        writer.item(&TraceItem::Entity(Entity::Thread(third))).unwrap();
        for operation in &operations {
            writer.item(&TraceItem::Operation(operation.clone())).unwrap();
        }
        // They are written as they end, not as they begin.
        let mut ranges = ranges;
        if !is_finished {
            // A recording that is killed loses those that are open.
            ranges.retain(|range| range.end.is_some());
        }
        let mut written: Vec<&NvtxRange> = ranges.iter().collect();
        written.sort_by_key(|range| range.end.unwrap_or(OpSeq(u64::MAX >> 1)));
        for range in written {
            writer.item(&TraceItem::Range(range.clone())).unwrap();
        }
        if is_finished {
            writer.finalize().unwrap();
        } else {
            writer.commit().unwrap();
            drop(writer);
        }
        let reader = Reader::open(&path).unwrap();
        for operation in &operations {
            let expected: Vec<&NvtxRange> = ranges
                .iter()
                .filter(|range| range.kind == NvtxKind::Pushed && range.thread == operation.thread)
                .filter(|range| range.holds(operation.g))
                .collect();
            held += expected.len();
            let found = reader.ranges_of(operation.g).unwrap();
            assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{:?} of {seed}", operation.g);
        }
        assert_eq!(reader.ranges_of(OpSeq(10_000)).unwrap(), [], "no such operation");
    }
    assert!(held > 500, "{held}");
}
