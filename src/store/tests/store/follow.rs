//! A trace that is read while it is written, compared with its operations.

use crate::common;
use crate::query::{Expected, compare, many, without_names};
use streamsan_model::*;
use streamsan_store::{Reader, Writer};

fn begin(folder: &tempfile::TempDir) -> (Writer, Reader) {
    let path = folder.path().join("trace.db");
    let writer = Writer::create(&path, &common::meta()).unwrap();
    let reader = Reader::follow(&path).unwrap();
    (writer, reader)
}

/// Takes in all that there is.
fn catch_up(reader: &Reader) -> Refreshed {
    let mut all = Refreshed::default();
    loop {
        let step = reader.refresh().unwrap();
        all.changed |= step.changed;
        all.findings |= step.findings;
        all.ended |= step.ended;
        // As a viewer does: what was seen does not come again.
        reader.overview().unwrap();
        reader.finding_places().unwrap();
        if !step.more {
            return all;
        }
    }
}

fn operation(item: &TraceItem) -> bool {
    matches!(item, TraceItem::Operation(_))
}

#[test]
fn every_step_shows_what_was_committed() {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, reader) = begin(&folder);
    assert!(reader.overview().unwrap().axes.is_empty());
    let (entities, operations): (Vec<_>, Vec<_>) =
        common::items().into_iter().partition(|item| !operation(item));
    entities.iter().for_each(|item| writer.item(item).unwrap());
    let mut written = entities;
    for part in operations.chunks(7) {
        part.iter().for_each(|item| writer.item(item).unwrap());
        // Nothing of it is to be seen before the commit.
        assert!(!catch_up(&reader).changed);
        written.extend(part.iter().cloned());
        writer.commit().unwrap();
        assert!(catch_up(&reader).changed);
        let overview = reader.overview().unwrap();
        let axes: Vec<Axis> = overview.axes.iter().map(|&(axis, _)| axis).collect();
        assert!(axes.starts_with(&[Axis::Issue]) && !axes.contains(&Axis::Logical), "{axes:?}");
        assert!(overview.incomplete.is_empty(), "it goes on: {:?}", overview.incomplete);
        compare(&reader, &Expected::new(&written, &[]));
    }
    assert!(!catch_up(&reader).changed);
}

#[test]
fn findings_and_edges_appear_as_they_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, reader) = begin(&folder);
    common::items().iter().for_each(|item| writer.item(item).unwrap());
    writer.commit().unwrap();
    assert!(!catch_up(&reader).findings);
    let mut findings = Vec::new();
    for finding in common::findings() {
        writer.finding(&finding).unwrap();
        findings.push(finding);
        writer.commit().unwrap();
        assert!(catch_up(&reader).findings);
        assert_eq!(TraceQuery::findings(&reader).unwrap(), findings);
        let places = reader.finding_places().unwrap();
        for finding in &findings {
            for side in [finding.first.op, finding.second.op] {
                let place = reader.place(side).unwrap();
                assert_eq!(places.iter().find(|(g, _)| *g == side).map(|(_, p)| *p), place);
            }
        }
        compare(&reader, &Expected::new(&common::items(), &findings));
    }
    common::edges().iter().for_each(|edge| writer.edge(edge).unwrap());
    writer.commit().unwrap();
    catch_up(&reader);
    for edge in common::edges().into_iter().filter(|edge| edge.from != edge.to) {
        let detail = reader.detail(edge.to).unwrap();
        let known = reader.detail(edge.from).unwrap().is_some();
        assert!(detail.is_none_or(|d| !known || d.incoming.iter().any(|(e, _)| *e == edge)));
    }
}

/// The edges of a call that was stored while it ran come behind those of later calls.
#[test]
fn edges_of_calls_that_return_late_appear() {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, reader) = begin(&folder);
    let mut items = many(&[(0, 0, 1), (0, 1, 1), (1, 0, 1), (1, 1, 1)]);
    let operations: Vec<_> = items.iter_mut().filter(|item| operation(item)).collect();
    let mut gs = Vec::new();
    for item in operations {
        let TraceItem::Operation(op) = item else { unreachable!() };
        op.exit = op.exit.filter(|_| gs.len() != 1);
        gs.push(op.g);
    }
    items.iter().for_each(|item| writer.item(item).unwrap());
    let edge = |from: usize, to: usize| Edge {
        from: gs[from],
        to: gs[to],
        kind: EdgeKind::StreamHost,
        tier: Tier::Documented,
    };
    let later = [edge(2, 3), edge(0, 3)];
    later.iter().for_each(|edge| writer.edge(edge).unwrap());
    writer.commit().unwrap();
    catch_up(&reader);
    let returned = TraceItem::Returned { g: gs[1], exit: gs[3], status: Status::SUCCESS };
    writer.item(&returned).unwrap();
    writer.commit().unwrap();
    catch_up(&reader);
    writer.edge(&edge(0, 1)).unwrap();
    writer.commit().unwrap();
    catch_up(&reader);
    let edges = |list: &[(Edge, Place)]| list.iter().map(|(edge, _)| *edge).collect::<Vec<_>>();
    let compare = |reader: &Reader| {
        let detail = |at: usize| reader.detail(gs[at]).unwrap().unwrap();
        assert_eq!(edges(&detail(1).incoming), [edge(0, 1)]);
        assert_eq!(edges(&detail(3).incoming), later);
        assert_eq!(edges(&detail(0).outgoing), [edge(0, 1), edge(0, 3)]);
        assert_eq!(edges(&detail(2).outgoing), [edge(2, 3)]);
    };
    compare(&reader);
    // A recording that was killed, and a finished one.
    compare(&Reader::open(&folder.path().join("trace.db")).unwrap());
    drop(reader);
    writer.finalize().unwrap();
    let reader = Reader::open(&folder.path().join("trace.db")).unwrap();
    compare(&reader);
    let stored = reader.edges().unwrap();
    assert_eq!(stored, [edge(0, 1), edge(0, 3), edge(2, 3)]);
}

/// A finding and its two sides stand in two tables, and the writer commits while they are read.
#[test]
fn what_is_read_is_of_one_moment() {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, reader) = begin(&folder);
    common::items().iter().for_each(|item| writer.item(item).unwrap());
    writer.commit().unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..300 {
                common::findings().iter().for_each(|finding| writer.finding(finding).unwrap());
                writer.commit().unwrap();
            }
            done.store(true, std::sync::atomic::Ordering::Release);
        });
        while !done.load(std::sync::atomic::Ordering::Acquire) {
            TraceQuery::findings(&reader).expect("no trace is damaged by being written");
            reader.refresh().unwrap();
            reader.overview().unwrap();
        }
    });
    catch_up(&reader);
    assert_eq!(TraceQuery::findings(&reader).unwrap().len(), 300 * common::findings().len());
}

#[test]
fn calls_that_fail_later_are_counted_as_failures() {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, reader) = begin(&folder);
    let mut items = common::items();
    let running = items.iter_mut().rev().find_map(|item| match item {
        TraceItem::Operation(op) if op.status.is_success() => Some(op),
        _ => None,
    });
    let running = running.expect("an operation that succeeds");
    let (g, api) = (running.g, running.api.clone());
    running.exit = None;
    items.iter().for_each(|item| writer.item(item).unwrap());
    writer.commit().unwrap();
    catch_up(&reader);
    let count = |reader: &Reader| {
        let calls = reader.calls().unwrap();
        let found = calls.into_iter().find(|c| c.api == api).expect("it was called");
        (found.calls, found.failures)
    };
    let (calls, failures) = count(&reader);
    writer.item(&TraceItem::Returned { g, exit: g, status: Status(700) }).unwrap();
    writer.commit().unwrap();
    catch_up(&reader);
    assert_eq!(count(&reader), (calls, failures + 1));
}

#[test]
fn finished_trace_takes_the_place_of_what_was_followed() {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, reader) = begin(&folder);
    common::items().iter().for_each(|item| writer.item(item).unwrap());
    writer.commit().unwrap();
    catch_up(&reader);
    common::edges().iter().for_each(|edge| writer.edge(edge).unwrap());
    common::findings().iter().for_each(|finding| writer.finding(finding).unwrap());
    writer.finalize().unwrap();
    let step = catch_up(&reader);
    assert!(step.ended && step.findings && step.changed);
    assert_eq!(reader.overview().unwrap().axes.len(), 3);
    compare(&reader, &Expected::new(&common::items(), &common::findings()));
    assert_eq!(catch_up(&reader), Refreshed::default());
    // Somebody had it open, so the log is still there; the last one merges it.
    drop(reader);
    streamsan_store::merge_log(&folder.path().join("trace.db")).unwrap();
    let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().flatten().collect();
    assert_eq!(files.len(), 1, "{files:?}");
    assert_eq!(Reader::open(&folder.path().join("trace.db")).unwrap().findings().unwrap().len(), 2);
}

#[test]
fn trace_that_was_finished_before_is_an_ordinary_one() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, reader) = begin(&folder);
    drop(reader);
    writer.finalize().unwrap();
    let reader = Reader::follow(&folder.path().join("trace.db")).unwrap();
    assert_eq!(reader.refresh().unwrap(), Refreshed::default());
}

/// More operations than those by which the levels are chosen, in commits of several steps.
#[test]
fn levels_are_chosen_on_the_way() {
    let pattern: Vec<(u8, u8, u16)> =
        (0..90_000u32).map(|n| ((n / 3) as u8, (n / 5) as u8, (n * 7919 % 1500) as u16)).collect();
    let items = many(&pattern);
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, reader) = begin(&folder);
    for part in items.chunks(30_000) {
        part.iter().for_each(|item| writer.item(item).unwrap());
        writer.commit().unwrap();
        let first = reader.refresh().unwrap();
        assert_eq!(first.more, part.len() == 30_000, "one step takes a part");
        catch_up(&reader);
    }
    let expected = Expected::new(&items, &[]);
    let overview = reader.overview().unwrap();
    assert_eq!(overview.operations, 90_000);
    let lanes: Vec<LaneId> = overview.lanes.iter().map(|lane| lane.id).collect();
    for &(axis, span) in &overview.axes {
        for (scale, part) in [(0i8, 99), (4, 70), (9, 60), (16, 0), (30, 0)] {
            let start = (span.start + span.len() * part / 100) >> scale << scale;
            let grid = Grid { axis, start, scale, columns: 200 };
            let found = without_names(reader.strips(grid, &lanes).unwrap());
            assert_eq!(found, expected.strips(grid, &lanes), "{grid:?}");
        }
        let all = reader.minimap(axis, 100).unwrap();
        assert_eq!(all.iter().map(|cell| cell.operations).sum::<u64>(), 90_000);
    }
    drop(writer);
}
