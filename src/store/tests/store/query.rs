//! The answers to a viewer's queries, compared with answers worked out from the trace's operations.

use crate::common;
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use streamsan_model::*;
use streamsan_store::{Reader, Writer};

pub(crate) fn finished(
    folder: &tempfile::TempDir,
    items: &[TraceItem],
    findings: &[Finding],
) -> Reader {
    write(folder, items, findings).finalize().unwrap();
    Reader::open(&folder.path().join("trace.db")).unwrap()
}

pub(crate) fn write(
    folder: &tempfile::TempDir,
    items: &[TraceItem],
    findings: &[Finding],
) -> Writer {
    let mut writer = Writer::create(&folder.path().join("trace.db"), &common::meta()).unwrap();
    items.iter().for_each(|item| writer.item(item).unwrap());
    common::edges().iter().for_each(|edge| writer.edge(edge).unwrap());
    findings.iter().for_each(|finding| writer.finding(finding).unwrap());
    writer
}

/// The fixed trace: operations 2, 4, 6, ... and two findings.
pub(crate) fn reader(folder: &tempfile::TempDir) -> Reader {
    finished(folder, &common::items(), &common::findings())
}

fn lane_of(operation: &Operation) -> LaneId {
    operation.action.stream().map_or(LaneId::Host(operation.thread), LaneId::Stream)
}

/// Depths by their definition: rows, host calls of a thread, and documented edges.
fn depths(operations: &[Operation], edges: &[Edge]) -> HashMap<OpSeq, u64> {
    use EdgeKind as K;
    let mut depths = HashMap::new();
    let (mut rows, mut hosts) = (HashMap::new(), HashMap::new());
    for op in operations {
        let (lane, mut host) = (lane_of(op), lane_of(op) == LaneId::Host(op.thread));
        let known = *rows.get(&lane).unwrap_or(&0).max(hosts.get(&op.thread).unwrap_or(&0));
        let mut depth: u64 = known + 1;
        for edge in edges.iter().filter(|e| e.to == op.g && e.tier == Tier::Documented) {
            depth = depth.max(depths.get(&edge.from).map_or(0, |d: &u64| d + 1));
            host |= matches!(
                edge.kind,
                K::EventHost
                    | K::StreamHost
                    | K::ContextHost
                    | K::Blocking
                    | K::HostThreads
                    | K::FileBatch
            );
        }
        rows.insert(lane, depth);
        if host {
            hosts.insert(op.thread, depth);
        }
        depths.insert(op.g, depth);
    }
    depths
}

pub(crate) struct Expected {
    operations: Vec<Operation>,
    depths: HashMap<OpSeq, u64>,
    base: u64,
    findings: Vec<Finding>,
}

impl Expected {
    pub(crate) fn new(items: &[TraceItem], findings: &[Finding]) -> Self {
        let operations: Vec<Operation> = items
            .iter()
            .filter_map(|item| match item {
                TraceItem::Operation(operation) => Some(operation.clone()),
                _ => None,
            })
            .collect();
        let depths = depths(&operations, &common::edges());
        let base = operations.iter().find_map(|o| o.time).map_or(0, |t| t.start_ns);
        Self { operations, depths, base, findings: findings.to_vec() }
    }

    fn at(&self, place: usize, axis: Axis) -> u64 {
        let op = &self.operations[place];
        match axis {
            Axis::Issue => op.g.0,
            Axis::Time => {
                let last = self.operations[..=place].iter().rev().find_map(|o| o.time);
                last.map_or(0, |t| t.start_ns.saturating_sub(self.base))
            }
            Axis::Logical => self.depths[&op.g],
        }
    }

    /// Cells by their definition, without names.
    pub(crate) fn strips(&self, grid: Grid, lanes: &[LaneId]) -> Vec<Strip> {
        let strip = |&lane: &LaneId| {
            let mut cells: BTreeMap<u32, Cell> = BTreeMap::new();
            for (place, op) in self.operations.iter().enumerate() {
                let Some(column) = grid.column(self.at(place, grid.axis)) else { continue };
                if lane_of(op) != lane {
                    continue;
                }
                let sides = self.findings.iter().flat_map(|f| [f.first.op, f.second.op]);
                let new = Cell {
                    column,
                    operations: 0,
                    first: op.g,
                    group: op.action.group(),
                    findings: 0,
                    name: None,
                };
                let cell = cells.entry(column).or_insert(new);
                cell.operations += 1;
                cell.group = cell.group.max(op.action.group());
                cell.findings += sides.filter(|&g| g == op.g).count() as u64;
            }
            Strip { lane, cells: cells.into_values().collect(), ranges: vec![] }
        };
        lanes.iter().map(strip).collect()
    }
}

pub(crate) fn without_names(mut strips: Vec<Strip>) -> Vec<Strip> {
    strips.iter_mut().flat_map(|s| &mut s.cells).for_each(|cell| cell.name = None);
    strips
}

/// Every zoom of every axis, at its begin, in its middle and at its end.
pub(crate) fn compare(reader: &Reader, expected: &Expected) {
    let overview = reader.overview().unwrap();
    let lanes: Vec<LaneId> = overview.lanes.iter().map(|lane| lane.id).collect();
    for &(axis, span) in &overview.axes {
        for scale in [-3i8, -1, 0, 1, 2, 3, 5, 8, 13, 20, 30] {
            let width = if scale > 0 { 1u64 << scale } else { 1 };
            for start in [span.start, span.start + span.len() / 2, span.end] {
                let start = start / width * width;
                let grid = Grid { axis, start, scale, columns: 37 };
                let found = without_names(reader.strips(grid, &lanes).unwrap());
                assert_eq!(found, expected.strips(grid, &lanes), "{grid:?}");
            }
        }
        let all = reader.minimap(axis, 50).unwrap();
        assert!(all.iter().all(|cell| cell.column < 50));
        let sum = |of: fn(&Cell) -> u64| all.iter().map(of).sum::<u64>();
        assert_eq!(sum(|c| c.operations), expected.operations.len() as u64);
        let stored = |g| expected.operations.iter().any(|o| o.g == g);
        let sides = expected.findings.iter().flat_map(|f| [f.first.op, f.second.op]);
        assert_eq!(sum(|c| c.findings), sides.filter(|&g| stored(g)).count() as u64);
    }
    for (place, op) in expected.operations.iter().enumerate() {
        let found = reader.place(op.g).unwrap().unwrap();
        assert_eq!(found.lane, lane_of(op));
        for &(axis, _) in &overview.axes {
            if axis != Axis::Time || op.time.is_some() {
                assert_eq!(found.on(axis), Some(expected.at(place, axis)), "{op:?}");
            }
        }
    }
}

#[test]
fn cells_follow_their_definition_at_every_zoom() {
    let folder = tempfile::tempdir().unwrap();
    let expected = Expected::new(&common::items(), &common::findings());
    compare(&reader(&folder), &expected);
}

/// Findings at calls without a time lie where the call before them does, however far back that is.
#[test]
fn findings_lie_somewhere_where_few_calls_have_a_time() {
    for timed in [1, 7, 1000] {
        let mut items = common::items();
        for item in &mut items {
            if let TraceItem::Operation(operation) = item {
                let number = operation.g.0 / 2;
                operation.time = operation.time.filter(|_| number == 1 || number % timed == 0);
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let reader = finished(&folder, &items, &common::findings());
        let expected = Expected::new(&items, &common::findings());
        compare(&reader, &expected);
        for (g, place) in reader.finding_places().unwrap() {
            let Some(at) = expected.operations.iter().position(|op| op.g == g) else { continue };
            assert_eq!(place.on(Axis::Time), Some(expected.at(at, Axis::Time)), "{g}, {timed}");
        }
    }
}

/// An unfinished trace has no level-of-detail tables: the reader makes them.
#[test]
fn unfinished_trace_shows_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = write(&folder, &common::items(), &common::findings());
    writer.commit().unwrap();
    let reader = Reader::open(&folder.path().join("trace.db")).unwrap();
    compare(&reader, &Expected::new(&common::items(), &common::findings()));
    drop(writer);
}

#[test]
fn traces_of_earlier_schemas_show_their_rows() {
    for schema in ["schema-1.db", "schema-2.db"] {
        let golden = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
        let reader = Reader::open(&golden.join(schema)).unwrap();
        let overview = reader.overview().unwrap();
        assert!(overview.operations > 10, "{schema}");
        assert_eq!(overview.axes.len(), 3, "{schema}");
        // Their lists lead to operations, and to no graphs where the schema had none.
        let lives = reader.allocations(1000).unwrap();
        let uses = lives.iter().map(|life| {
            let history = reader.history(life.allocation.id).unwrap();
            history.expect("it is there").uses.len()
        });
        assert!(uses.sum::<usize>() > 0, "{schema}");
    }
}

#[test]
fn a_row_that_is_asked_for_twice_is_answered_twice() {
    let folder = tempfile::tempdir().unwrap();
    let reader = reader(&folder);
    let overview = reader.overview().unwrap();
    let lane = overview.lanes[0].id;
    for (axis, span) in overview.axes {
        let grid = Grid { axis, start: span.start, scale: 0, columns: 100 };
        let strips = reader.strips(grid, &[lane, overview.lanes[1].id, lane]).unwrap();
        assert_eq!(strips.len(), 3);
        assert_eq!(strips[0], strips[2]);
        assert!(axis != Axis::Issue || !strips[0].cells.is_empty());
    }
}

/// An analysis that is done again counts its own findings.
#[test]
fn finishing_again_builds_again() {
    let folder = tempfile::tempdir().unwrap();
    drop(reader(&folder));
    let mut writer = Writer::open(&folder.path().join("trace.db")).unwrap();
    let findings = &common::findings()[..1];
    writer.replace_analysis(&common::edges(), findings).unwrap();
    writer.finalize().unwrap();
    let reader = Reader::open(&folder.path().join("trace.db")).unwrap();
    compare(&reader, &Expected::new(&common::items(), findings));
}

/// Many operations in a few rows, so that there are several levels.
pub(crate) fn many(steps: &[(u8, u8, u16)]) -> Vec<TraceItem> {
    let mut items: Vec<TraceItem> = common::entities().into_iter().map(TraceItem::Entity).collect();
    let mut g = 7;
    let mut start_ns = 1_000_000;
    for &(row, kind, step) in steps {
        g += 1 + u64::from(step % 5);
        start_ns += u64::from(step);
        let stream = StreamId(u32::from(row % 4));
        let action = match kind % 4 {
            0 => Action::HostFunction { stream },
            1 => Action::StreamSynchronize { stream },
            2 => Action::Prefetch { stream },
            _ => Action::HostAccess,
        };
        items.push(TraceItem::Operation(Operation {
            g: OpSeq(g),
            exit: Some(OpSeq(g)),
            process: ProcessId(0),
            thread: ThreadId(u32::from(row / 4 % 2)),
            api: "cuSomething".into(),
            time: Some(HostTime { start_ns, end_ns: start_ns + 10 }),
            status: Status::SUCCESS,
            action,
            accesses: vec![],
            stack: None,
        }));
    }
    items
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, failure_persistence: None, ..Default::default() })]

    /// More operations than the finest level of a small trace holds.
    #[test]
    fn several_levels_say_what_the_operations_say(
        pattern in prop::collection::vec((0u8..8, 0u8..4, 0u16..2000), 40..200),
    ) {
        let steps: Vec<_> = pattern.iter().cycle().take(9000).copied().collect();
        let items = many(&steps);
        let folder = tempfile::tempdir().unwrap();
        let expected = Expected::new(&items, &[]);
        let reader = finished(&folder, &items, &[]);
        let overview = reader.overview().unwrap();
        let lanes: Vec<LaneId> = overview.lanes.iter().map(|lane| lane.id).collect();
        for &(axis, span) in &overview.axes {
            for scale in [-1i8, 0, 1, 3, 4, 6, 7, 10] {
                let width = 1u64 << scale.max(0);
                for part in 0..3 {
                    let start = (span.start + span.len() * part / 3) / width * width;
                    let grid = Grid { axis, start, scale, columns: 61 };
                    let found = without_names(reader.strips(grid, &lanes).unwrap());
                    prop_assert_eq!(found, expected.strips(grid, &lanes));
                }
            }
        }
        for (place, op) in expected.operations.iter().enumerate().step_by(97) {
            let found = reader.place(op.g).unwrap().unwrap();
            for axis in Axis::ALL {
                prop_assert_eq!(found.on(axis), Some(expected.at(place, axis)));
                let at = expected.at(place, axis);
                let near = reader.nearest(lane_of(op), axis, at).unwrap().unwrap();
                let near = expected.operations.iter().position(|o| o.g == near).unwrap();
                prop_assert_eq!(expected.at(near, axis), at);
            }
        }
    }
}

/// More operations than those by which the levels are chosen, and others than those.
#[test]
fn levels_hold_beyond_what_they_were_chosen_by() {
    let mut state = 1u32;
    let steps: Vec<(u8, u8, u16)> = (0..70_000)
        .map(|n| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let row = if n < 66_000 { 0 } else { (state >> 28) as u8 % 8 };
            (row, (state >> 20) as u8, (state >> 8) as u16 % 500)
        })
        .collect();
    let items = many(&steps);
    let folder = tempfile::tempdir().unwrap();
    let expected = Expected::new(&items, &[]);
    let reader = finished(&folder, &items, &[]);
    let overview = reader.overview().unwrap();
    let lanes: Vec<LaneId> = overview.lanes.iter().map(|lane| lane.id).collect();
    for &(axis, span) in &overview.axes {
        for (scale, part) in [(0i8, 99), (4, 93), (9, 90), (16, 0), (30, 0)] {
            let start = (span.start + span.len() * part / 100) >> scale << scale;
            let grid = Grid { axis, start, scale, columns: 200 };
            let found = without_names(reader.strips(grid, &lanes).unwrap());
            assert_eq!(found, expected.strips(grid, &lanes), "{grid:?}");
        }
        let all = reader.minimap(axis, 100).unwrap();
        assert_eq!(all.iter().map(|cell| cell.operations).sum::<u64>(), 70_000);
        assert!(all.len() > 90, "{axis:?}: {}", all.len());
    }
}

#[test]
fn lone_operations_with_room_have_names() {
    let folder = tempfile::tempdir().unwrap();
    let reader = reader(&folder);
    let overview = reader.overview().unwrap();
    let lanes: Vec<LaneId> = overview.lanes.iter().map(|lane| lane.id).collect();
    let grid = Grid { axis: Axis::Issue, start: 0, scale: -3, columns: 2000 };
    let strips = reader.strips(grid, &lanes).unwrap();
    let names: Vec<Arc<str>> =
        strips.iter().flat_map(|s| &s.cells).filter_map(|cell| cell.name.clone()).collect();
    assert!(names.iter().any(|name| &**name == "_Z5scalePfi"), "{names:?}");
    assert!(names.iter().any(|name| &**name == "cuMemcpyHtoDAsync"), "{names:?}");
}

#[test]
fn trace_without_operations_has_no_axis_and_no_rows() {
    let folder = tempfile::tempdir().unwrap();
    let reader = finished(&folder, &[], &[]);
    let overview = reader.overview().unwrap();
    assert!(overview.lanes.is_empty() && overview.axes.is_empty() && overview.operations == 0);
    let grid = Grid { axis: Axis::Issue, start: 0, scale: 0, columns: 5 };
    let lane = LaneId::Stream(StreamId(0));
    assert_eq!(
        reader.strips(grid, &[lane]).unwrap(),
        [Strip { lane, cells: vec![], ranges: vec![] }]
    );
    assert_eq!(reader.minimap(Axis::Logical, 10).unwrap(), []);
    assert_eq!(reader.detail(OpSeq(0)).unwrap(), None);
    assert_eq!(reader.neighbour(lane, OpSeq(0), true).unwrap(), None);
    assert_eq!(reader.nearest(lane, Axis::Time, 9).unwrap(), None);
    assert_eq!(TraceQuery::findings(&reader).unwrap(), []);
}

#[test]
fn neighbours_lead_through_a_row_and_end_at_its_ends() {
    let folder = tempfile::tempdir().unwrap();
    let reader = reader(&folder);
    for lane in reader.overview().unwrap().lanes {
        let row: Vec<_> =
            common::operations().iter().filter(|o| lane_of(o) == lane.id).map(|o| o.g).collect();
        assert_eq!(lane.operations, row.len() as u64);
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
    assert_eq!(reader.neighbour(LaneId::Stream(StreamId(77)), OpSeq(0), true).unwrap(), None);
}

#[test]
fn details_are_those_of_the_trace() {
    let folder = tempfile::tempdir().unwrap();
    let reader = reader(&folder);
    for operation in common::operations() {
        let detail = reader.detail(operation.g).unwrap().unwrap();
        let edges = |of: &[(Edge, Place)]| of.iter().map(|(edge, _)| *edge).collect::<Vec<_>>();
        for edge in common::edges() {
            let other = |g| common::operations().iter().any(|o| o.g == g) && edge.from != edge.to;
            if edge.to == operation.g && other(edge.from) {
                assert!(edges(&detail.incoming).contains(&edge));
            }
            if edge.from == operation.g && other(edge.to) {
                assert!(edges(&detail.outgoing).contains(&edge));
            }
        }
        for access in &operation.accesses {
            assert!(detail.allocations.iter().any(|a| a.id == access.allocation));
        }
        assert_eq!(detail.operation, operation);
    }
    assert_eq!(reader.detail(OpSeq(3)).unwrap(), None);
    let findings = TraceQuery::findings(&reader).unwrap();
    assert!(findings.is_sorted_by_key(|f| f.second.op));
    assert_eq!(findings, common::findings());
}

#[test]
fn search_finds_names_in_any_case_both_ways() {
    let folder = tempfile::tempdir().unwrap();
    let reader = reader(&folder);
    for text in ["scale", "MEMCPY", "cu", "_z5"] {
        let lower = text.to_lowercase();
        let kernel = |op: &Operation| match op.action {
            Action::Launch { kernel, .. } => kernel == KernelId(0),
            _ => false,
        };
        let hits: Vec<OpSeq> = common::operations()
            .iter()
            .filter(|op| {
                op.api.to_lowercase().contains(&lower)
                    || kernel(op) && "_z5scalepfi".contains(&lower)
            })
            .map(|op| op.g)
            .collect();
        assert!(!hits.is_empty());
        let (mut found, mut at) = (Vec::new(), OpSeq(0));
        while let Some(g) = reader.search(text, at, true).unwrap() {
            found.push(g);
            at = g;
        }
        assert_eq!(found, hits, "{text}");
        assert_eq!(reader.search(text, OpSeq(u64::MAX), false).unwrap(), hits.last().copied());
    }
    for text in ["", "no such call", "%", "_%_"] {
        assert_eq!(reader.search(text, OpSeq(0), true).unwrap(), None, "{text}");
    }
}

#[test]
fn calls_are_counted_by_entry_point() {
    let folder = tempfile::tempdir().unwrap();
    let calls = reader(&folder).calls().unwrap();
    let operations = common::operations();
    assert_eq!(calls.iter().map(|c| c.calls).sum::<u64>(), operations.len() as u64);
    for call in calls {
        let of: Vec<_> = operations.iter().filter(|o| o.api == call.api).collect();
        assert_eq!(call.calls, of.len() as u64);
        assert_eq!(call.failures, of.iter().filter(|o| !o.status.is_success()).count() as u64);
        let time: u64 = of.iter().filter_map(|o| o.time).map(|t| t.end_ns - t.start_ns).sum();
        assert_eq!(call.driver_ns, time);
    }
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
        Ok(reader) => reader.overview().unwrap_err().to_string(),
    };
    assert!(told.contains("damaged"), "{told}");
}

/// A trace of schema 3 from before it had level-of-detail tables.
#[test]
fn trace_of_schema_3_without_level_of_detail_shows_its_rows() {
    let folder = tempfile::tempdir().unwrap();
    let golden = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/schema-3.db");
    let path = folder.path().join("trace.db");
    std::fs::copy(&golden, &path).unwrap();
    let connection = rusqlite::Connection::open(&path).unwrap();
    for table in ["lod", "lod_axis", "lod_lane", "lod_finding", "lod_lifetime", "lod_call"] {
        connection.execute_batch(&format!("DROP TABLE {table}")).unwrap();
    }
    drop(connection);
    let (whole, bare) = (Reader::open(&golden).unwrap(), Reader::open(&path).unwrap());
    let (expected, found) = (whole.overview().unwrap(), bare.overview().unwrap());
    assert_eq!((found.operations, &found.lanes), (expected.operations, &expected.lanes));
    assert_eq!(found.axes, expected.axes);
    let lanes: Vec<LaneId> = found.lanes.iter().map(|lane| lane.id).collect();
    for &(axis, span) in &found.axes {
        let grid = Grid { axis, start: span.start, scale: 0, columns: 500 };
        assert_eq!(bare.strips(grid, &lanes).unwrap(), whole.strips(grid, &lanes).unwrap());
    }
    for lifetime in whole.allocations(100).unwrap() {
        let id = lifetime.allocation.id;
        let own = |reader: &Reader| -> Vec<Use> {
            let uses = reader.history(id).unwrap().unwrap().uses;
            uses.into_iter().filter(|used| used.graph.is_none()).collect()
        };
        assert_eq!(own(&bare), own(&whole));
    }
}

/// The remains of a killed recording: the file, and a log that nothing merged.
#[test]
fn trace_of_a_killed_recording_shows_what_was_committed() {
    let (folder, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut writer = write(&folder, &common::items(), &common::findings());
    writer.commit().unwrap();
    for file in std::fs::read_dir(folder.path()).unwrap().flatten() {
        std::fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
    }
    drop(writer);
    let path = copy.path().join("trace.db");
    let expected = Expected::new(&common::items(), &common::findings());
    let reader = Reader::open(&path).unwrap();
    assert_eq!(reader.state(), streamsan_store::TraceState::Recording);
    compare(&reader, &expected);
    compare(&Reader::follow(&path).unwrap(), &expected);
}
