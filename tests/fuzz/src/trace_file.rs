//! Stored traces, byte by byte: everything that `check` and the viewer ask of one.

use crate::analysis::{analyse, gate, report};
use crate::scratch;
use chrono::DateTime;
use rusqlite::Connection;
use std::fs;
use std::path::Path;
use streamsan_model::{
    Axis, Edge, Finding, Grid, LaneId, Lint, OpSeq, TraceItem, TraceQuery, Verdict,
};
use streamsan_store::{Coverage, EntryPoint, Error, Meta, Reader, Treatment, Writer};

/// A small trace has some 70 tables and indexes, a page each.
pub(crate) const LONGEST: usize = 96 << 10;

/// A race between two streams with an event that is recorded too early.
const SMALL: &str = "alloc A 4096\nlaunch s1 fill w:A\nrecord e1 s2\nwait s1 e1\n\
                     launch s2 sum r:A[0..64/128*8]\nsync_stream s1\n";
/// Traces of the corpus with what the small one has not: graphs, batches, signals, several
/// contexts, memory that several ranges stand for.
const CORPUS: [&str; 4] = [
    include_str!("../../../traces/fail/memory/alias_freed_in_stream.trace"),
    include_str!("../../../traces/fail/memory/allocation_between_two_streams.trace"),
    include_str!("../../../traces/fail/copies/array_boxes.trace"),
    include_str!("../../../traces/fail/copies/async_copy_from_pinned.trace"),
];

pub(crate) fn run(input: &[u8]) {
    let path = scratch::file("trace.db");
    fs::write(&path, input).expect("there is room");
    let _ = check(&path);
    let _ = view(&path);
}

/// The work of `check`. The verdict, or why there is none.
pub(crate) fn check(path: &Path) -> Result<Verdict, Error> {
    let reader = Reader::open(path)?;
    reader.meta()?;
    reader.entities()?;
    let analysed = analyse(false, reader.items())?;
    let reasons = reader.incomplete_reasons()?;
    let stored = reader.coverage()?;
    let calls = match stored.entry_points.is_empty() {
        true => reader.counts()?.operations,
        false => stored.entry_points.iter().fold(0, |sum, e| e.calls.saturating_add(sum)),
    };
    let seen = streamsan_report::Coverage { calls, dropped: stored.dropped, ..Default::default() };
    let operation = |g| reader.operation(g).ok().flatten();
    Ok(report(&analysed, (reasons, Some(seen)), &gate(None, None), operation))
}

/// The queries of a viewer.
fn view(path: &Path) -> Result<(), Error> {
    let reader = Reader::open(path)?;
    reader.edges()?;
    reader.findings()?;
    reader.lints()?;
    reader.each_range(drop)?;
    reader.calls_by_api()?;
    let Ok(overview) = reader.overview() else { return Ok(()) };
    let lanes: Vec<LaneId> = overview.lanes.iter().map(|lane| lane.id).take(8).collect();
    for axis in Axis::ALL {
        let _ = reader.minimap(axis, 100);
        for scale in [-3, 0, 7] {
            let _ = reader.strips(Grid { axis, start: 0, scale, columns: 80 }, &lanes);
        }
        for &lane in &lanes {
            let _ = reader.nearest(lane, axis, 5);
            let _ = reader.neighbour(lane, OpSeq(3), true);
        }
    }
    let _ = TraceQuery::findings(&reader);
    let _ = reader.finding_places();
    for g in [0, 4, 5, u64::MAX] {
        let _ = reader.detail(OpSeq(g));
    }
    let _ = reader.search("fill", OpSeq(0), true);
    for allocation in reader.allocations(8).unwrap_or_default() {
        let _ = reader.history(allocation.allocation.id);
    }
    let _ = reader.calls();
    Ok(())
}

/// A finished trace of what a text trace says, in pages as small as they can be.
pub(crate) fn trace_of(text: &str) -> Vec<u8> {
    let path = scratch::file("seed.db");
    let _ = fs::remove_file(&path);
    let items = streamsan_text::parse(text).expect("a text trace").items;
    let meta = Meta {
        tool_version: "0".to_owned(),
        started_at: DateTime::UNIX_EPOCH,
        command: vec!["program".to_owned()],
        host: "host".to_owned(),
        driver: "simulated".to_owned(),
        extra: Default::default(),
    };
    let analysis = streamsan_analysis::analyse(&items);
    let write = || -> Result<(), Error> {
        let mut writer = Writer::create(&path, &meta)?;
        let mut calls = 0;
        for item in &items {
            writer.item(item)?;
            calls += u64::from(matches!(item, TraceItem::Operation(_)));
        }
        let (edges, findings): (&[Edge], &[Finding]) = (&analysis.edges, &analysis.findings);
        let lints: &[Lint] = &analysis.lints;
        edges.iter().try_for_each(|edge| writer.edge(edge))?;
        findings.iter().try_for_each(|finding| writer.finding(finding))?;
        lints.iter().try_for_each(|lint| writer.lint(lint))?;
        let name = "cuLaunchKernel".to_owned();
        let entry = EntryPoint { name, treatment: Treatment::ALL[0], calls };
        writer.set_coverage(&Coverage { entry_points: vec![entry], ..Coverage::default() })?;
        writer.finalize()
    };
    write().expect("a trace is written");
    let shrink = || -> rusqlite::Result<()> {
        let connection = Connection::open(&path)?;
        connection.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()))?;
        connection.execute_batch("PRAGMA page_size = 512; VACUUM")
    };
    shrink().expect("a trace is shrunk");
    fs::read(&path).expect("the trace is there")
}

/// Traces with a race each.
pub(crate) fn racy() -> Vec<Vec<u8>> {
    [SMALL].iter().chain(&CORPUS).map(|text| trace_of(text)).collect()
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = racy();
    seeds.push(trace_of("alloc A 64\nlaunch s1 fill w:A\nsync_stream s1\n"));
    seeds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seeds_are_racy() {
        for (at, seed) in racy().iter().enumerate() {
            assert!(seed.len() <= LONGEST, "seed {at} has {} bytes", seed.len());
            let path = scratch::file("trace.db");
            fs::write(&path, seed).expect("there is room");
            assert_eq!(check(&path).expect("a verdict"), Verdict::Racy, "seed {at}");
        }
    }
}
