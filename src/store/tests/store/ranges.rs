//! The ranges of an operation: what was open on its thread, in every order of begins and ends.

use crate::common;
use std::collections::BTreeSet;
use std::path::Path;
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

/// Host times of issue indices.
fn times(begin: u64, end: u64) -> HostTime {
    HostTime { start_ns: 1_000_000 + 10 * begin, end_ns: 1_000_000 + 10 * end }
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
                    time: times(g, g),
                    depth,
                });
                open.push(ranges.len() - 1);
            }
            1 => {
                if let Some(at) = open.iter().rposition(|&at| ranges[at].domain == name) {
                    let range = &mut ranges[open.remove(at)];
                    range.end = Some(OpSeq(g));
                    range.time.end_ns = times(g, g).end_ns;
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
                time: times(g, g + 50),
                depth: 0,
            }),
            _ => operations.push(Operation {
                g: OpSeq(g),
                exit: Some(OpSeq(g)),
                thread: ThreadId(thread),
                time: Some(times(g, g)),
                ..shape.clone()
            }),
        }
    }
    (operations, ranges)
}

/// Writes a trace. Answers the ranges that it holds.
fn write(
    path: &Path,
    operations: &[Operation],
    ranges: Vec<NvtxRange>,
    is_finished: bool,
) -> (Reader, Vec<NvtxRange>) {
    let mut writer = Writer::create(path, &common::meta()).unwrap();
    for entity in common::entities() {
        writer.item(&TraceItem::Entity(entity)).unwrap();
    }
    let third = Thread { id: ThreadId(2), process: ProcessId(0), tid: 9 };
    writer.item(&TraceItem::Entity(Entity::Thread(third))).unwrap();
    for operation in operations {
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
    (Reader::open(path).unwrap(), ranges)
}

#[test]
fn ranges_of_an_operation_are_those_open_on_its_thread() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    let mut held = 0;
    for (seed, is_finished) in (0..12).zip([true, false].into_iter().cycle()) {
        let (operations, ranges) = program(seed);
        let (reader, ranges) = write(&path, &operations, ranges, is_finished);
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

/// The columns from the one in which a range begins to the one behind its last one.
fn columns(grid: Grid, range: &NvtxRange, base: u64) -> Option<(u32, u32)> {
    let (begin, end) = match grid.axis {
        Axis::Issue => (range.begin.0, range.end.map(|end| end.0)),
        _ => {
            let after_base = |ns: u64| ns.saturating_sub(base);
            let begin = after_base(range.time.start_ns);
            (begin, range.end.map(|_| after_base(range.time.end_ns).max(begin + 1)))
        }
    };
    let end = end.unwrap_or(u64::MAX);
    let of = |at: u64| grid.column(at).unwrap_or(if at < grid.start { 0 } else { grid.columns });
    if end <= grid.start || begin >= grid.end() {
        return None;
    }
    let last = if grid.scale >= 0 { of(end - 1) + 1 } else { of(end) };
    let start = of(begin);
    let least = if begin < grid.start { 0 } else { start + 1 };
    let (start, end) = (start, last.max(least).min(grid.columns));
    (start < end).then_some((start, end))
}

/// A column shows a range that is there, or says that there are several; no column with a range is
/// empty, and none without one is filled.
#[test]
fn drawn_ranges_are_those_of_the_columns() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    let (mut named, mut several) = (0, 0);
    for (seed, is_finished) in (0..12).zip([true, true, false].into_iter().cycle()) {
        let (operations, ranges) = program(seed);
        let base = operations[0].time.unwrap().start_ns;
        let (reader, ranges) = write(&path, &operations, ranges, is_finished);
        let mut numbers = Numbers(seed + 1000);
        for _ in 0..60 {
            let (axis, scale) = match numbers.below(2) {
                0 => (Axis::Issue, numbers.below(10) as i8 - 3),
                _ => (Axis::Time, numbers.below(12) as i8 - 1),
            };
            let width = if scale > 0 { 1 << scale } else { 1 };
            let last = if axis == Axis::Issue { 220 } else { 2200 };
            let start = numbers.below(last / width + 1) * width;
            let grid = Grid { axis, start, scale, columns: 1 + numbers.below(40) as u32 };
            let thread = ThreadId(numbers.below(THREADS.into()) as u32);
            let strips = reader.strips(grid, &[LaneId::Host(thread)]).unwrap();
            for (depth, spans) in strips[0].ranges.iter().enumerate() {
                let here: Vec<(&NvtxRange, (u32, u32))> = ranges
                    .iter()
                    .filter(|range| range.kind == NvtxKind::Pushed && range.thread == thread)
                    .filter(|range| range.depth as usize == depth)
                    .filter_map(|range| Some((range, columns(grid, range, base)?)))
                    .collect();
                let filled: BTreeSet<u32> =
                    here.iter().flat_map(|(_, (start, end))| *start..*end).collect();
                let drawn: Vec<u32> = spans.iter().flat_map(|span| span.start..span.end).collect();
                assert_eq!(drawn, filled.into_iter().collect::<Vec<_>>(), "{grid:?} of {seed}");
                for span in spans {
                    let held = |(start, end): (u32, u32)| start <= span.start && span.end <= end;
                    match &span.name {
                        Some(name) => {
                            named += 1;
                            let is_there =
                                here.iter().any(|(range, at)| range.name == *name && held(*at));
                            assert!(is_there, "{span:?} {grid:?} of {seed}");
                            let begin = here.iter().filter(|(_, at)| at.0 == span.start).count();
                            let is_alone = span.end > span.start + 1 || begin <= 1;
                            assert!(is_alone, "{span:?} {grid:?} of {seed}");
                        }
                        None => {
                            several += 1;
                            assert_eq!(span.end, span.start + 1);
                            assert!(here.iter().filter(|(_, at)| held(*at)).count() > 1);
                        }
                    }
                }
            }
        }
        let grid = Grid { axis: Axis::Logical, start: 0, scale: 0, columns: 80 };
        let strips = reader.strips(grid, &[LaneId::Host(ThreadId(0))]).unwrap();
        assert!(strips[0].ranges.is_empty(), "no place in the logical order");
    }
    assert!(named > 500 && several > 20, "{named} {several}");
}

#[test]
fn filter_by_range_finds_the_operations_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    let mut found = 0;
    for seed in 0..6 {
        let (operations, ranges) = program(seed);
        let (reader, ranges) = write(&path, &operations, ranges, seed % 2 == 0);
        for words in [&["r1"][..], &["D2"], &["r3", "r5"], &["started"], &["none"]] {
            let texts: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            let filter = OpFilter { ranges: texts, ..OpFilter::default() };
            let hits: Vec<OpSeq> =
                reader.hits(&filter).unwrap().places.iter().map(|(g, _)| *g).collect();
            let is_meant = |range: &&NvtxRange| {
                let texts = [Some(&range.name), range.domain.as_ref()];
                let contains = |word: &str| {
                    texts.iter().flatten().any(|text| text.contains(&word.to_lowercase()))
                };
                range.kind == NvtxKind::Pushed && words.iter().any(|word| contains(word))
            };
            let meant: Vec<&NvtxRange> = ranges.iter().filter(is_meant).collect();
            let expected: Vec<OpSeq> = operations
                .iter()
                .filter(|operation| {
                    let is_in = |range: &&&NvtxRange| {
                        range.thread == operation.thread && range.holds(operation.g)
                    };
                    meant.iter().any(|range| is_in(&range))
                })
                .map(|operation| operation.g)
                .collect();
            assert_eq!(hits, expected, "{words:?} of {seed}");
            found += hits.len();
        }
    }
    assert!(found > 100, "{found}");
}
