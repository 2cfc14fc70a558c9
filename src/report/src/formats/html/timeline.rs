//! The timeline: a row a stream and a host thread, in few enough cells that ten million operations are
//! a small page. The script draws it; the rows stand in a table too.
//!
//! A *view* is a grid of cells over a part of an axis. The first view of an axis is the whole of it;
//! further ones lie around findings and are finer. Cells come from the trace's level of detail, so that
//! nothing reads the operations one by one.

use super::{HtmlInput, drawing};
use crate::Report;
use crate::names::{number, plural};
use maud::{Markup, PreEscaped, html};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use streamsan_model::{
    Axis, Cell, Grid, Lane, LaneId, OpGroup, OpSeq, Overview, Place, QueryError, Span, Strip,
    TraceQuery,
};

/// Rows that are drawn: those of findings, then the busiest ones.
const ROWS: usize = 48;
/// Rows of the table.
const TABLE: usize = 200;
/// Columns of the view of a whole axis that are tried, and the bytes that its cells may take.
const COLUMNS: [u32; 5] = [8192, 4096, 2048, 1024, 512];
const WHOLE: usize = 90_000;
/// Findings that have views of their own, their columns, and the bytes of all of them on an axis.
const FINDINGS: usize = 40;
const WINDOW: u32 = 256;
const WINDOWS: usize = 50_000;
/// Findings that are marked.
const MARKS: usize = 1_000;
/// Names of operations that are kept on an axis.
const NAMES: usize = 2_000;
/// Operations from which on a cell is drawn one step stronger.
const LEVELS: [u64; 3] = [2, 8, 64];

/// The section.
///
/// # Errors
///
/// The trace cannot be read.
pub(super) fn section(report: &Report<'_>, input: &HtmlInput<'_>) -> Result<Markup, QueryError> {
    let overview = input.trace.overview()?;
    if overview.operations == 0 {
        return Ok(html! {});
    }
    let places: HashMap<OpSeq, Place> = places(report, input)?;
    let lanes = rows(&overview, report, &places);
    let idle = overview.lanes.iter().filter(|lane| is_idle(lane)).count();
    let data = data(report, input, &overview, &lanes, &places)?;
    // Nothing in it ends its element, and nothing looks like an escape of the page.
    let data = data.to_string().replace('<', "\\u003c").replace('&', "\\u0026");
    let kinds = OpGroup::ALL.iter().rev();
    Ok(html! {
        section id="timeline" aria-labelledby="h-timeline" {
            h2 #h-timeline { "Timeline" }
            p.muted {
                (plural(overview.operations, "operation", "operations")) " in "
                (plural(overview.lanes.len() as u64, "row", "rows"))
                @if idle > 0 { ", of which " (plural(idle as u64, "idle one is", "idle ones are")) " left out" }
                ". Positions are those of the calls on the host; nothing is a duration on the GPU. "
                "This page holds a grid over the whole, and single operations around the first findings; "
                code { "streamsan view" } " shows every operation."
            }
            noscript { p { "Drawing it needs JavaScript. The table below has the rows." } }
            div #controls hidden {
                button type="button" data-do="in" { "Zoom in" }
                button type="button" data-do="out" { "Zoom out" }
                button type="button" data-do="left" aria-label="Move left" { "\u{2190}" }
                button type="button" data-do="right" aria-label="Move right" { "\u{2192}" }
                button type="button" data-do="whole" { "Whole" }
                button type="button" data-do="next" { "Next finding" }
                label for="axis" { "Axis" }
                select #axis {}
            }
            canvas #lanes hidden tabindex="0" role="img" aria-describedby="place"
                aria-label="Timeline; plus and minus zoom, arrows move, 0 shows the whole, n goes to the next finding" {}
            output #place for="lanes" {}
            ul.legend aria-label="Colours" {
                @for kind in kinds { li class=(drawing::letter(*kind)) { (kind.description()) } }
                @if !report.groups.is_empty() { li.race { "finding" } }
            }
            (table(report, &overview, &places))
            script #data type="application/json" { (PreEscaped(data)) }
        }
    })
}

/// The places of the two sides of each finding.
fn places(report: &Report<'_>, input: &HtmlInput<'_>) -> Result<HashMap<OpSeq, Place>, QueryError> {
    let mut places = HashMap::new();
    for group in report.groups.iter().take(MARKS) {
        for side in [&group.finding.first, &group.finding.second] {
            if !places.contains_key(&side.op)
                && let Some(place) = input.trace.place(side.op)?
            {
                places.insert(side.op, place);
            }
        }
    }
    Ok(places)
}

/// Number of sides of findings in each row.
fn sides(report: &Report<'_>, places: &HashMap<OpSeq, Place>) -> BTreeMap<LaneId, u64> {
    let mut sides = BTreeMap::new();
    for group in report.groups.iter().take(MARKS) {
        for side in [&group.finding.first, &group.finding.second] {
            if let Some(place) = places.get(&side.op) {
                *sides.entry(place.lane).or_default() += 1;
            }
        }
    }
    sides
}

/// Whether a row holds no more than the call that made its stream.
fn is_idle(lane: &Lane) -> bool {
    matches!(lane.id, LaneId::Stream(_)) && lane.operations <= 1
}

/// The rows that are drawn, in the order of the viewer.
fn rows<'a>(
    overview: &'a Overview,
    report: &Report<'_>,
    places: &HashMap<OpSeq, Place>,
) -> Vec<&'a Lane> {
    let sides = sides(report, places);
    let is_drawn = |lane: &&Lane| !is_idle(lane) || sides.contains_key(&lane.id);
    let mut lanes: Vec<&Lane> = overview.lanes.iter().filter(is_drawn).collect();
    let weight = |lane: &Lane| (sides.get(&lane.id).copied().unwrap_or(0), lane.operations);
    lanes.sort_by_key(|lane| (std::cmp::Reverse(weight(lane)), lane.id));
    lanes.truncate(ROWS);
    lanes.sort_by_key(|lane| lane.id);
    lanes
}

fn data(
    report: &Report<'_>,
    input: &HtmlInput<'_>,
    overview: &Overview,
    lanes: &[&Lane],
    places: &HashMap<OpSeq, Place>,
) -> Result<Value, QueryError> {
    let ids: Vec<LaneId> = lanes.iter().map(|lane| lane.id).collect();
    let mut names = Names::new(report, input.trace);
    let mut axes = Vec::new();
    for &(axis, span) in &overview.axes {
        if axis == Axis::Logical || span.is_empty() {
            continue;
        }
        names.left = NAMES;
        let whole = whole(input, axis, span, &ids)?;
        let scale = whole.0.scale;
        let mut views = vec![view(whole, &mut names)?];
        let mut bytes = 0;
        for group in report.groups.iter().take(FINDINGS) {
            let at = |g: OpSeq| places.get(&g)?.on(axis);
            let ends = at(group.finding.first.op).zip(at(group.finding.second.op));
            let Some((first, second)) = ends else { continue };
            let grid = around(axis, first, second);
            if grid.scale >= scale {
                continue;
            }
            let strips = input.trace.strips(grid, &ids)?;
            bytes += strips.iter().map(|strip| encode(strip).len()).sum::<usize>();
            if bytes > WINDOWS {
                break;
            }
            views.push(view((grid, strips), &mut names)?);
        }
        axes.push(json!({
            "name": axis.description(), "isTime": axis == Axis::Time,
            "start": span.start, "end": span.end, "views": views,
        }));
    }
    let marks = report.groups.iter().take(MARKS).filter_map(|group| {
        let side = |g: OpSeq| {
            let place = places.get(&g)?;
            let row = ids.iter().position(|&id| id == place.lane)?;
            Some(json!([row, place.on(Axis::Issue), place.on(Axis::Time)]))
        };
        let finding = &group.finding;
        Some(json!({
            "id": finding.fingerprint.to_string(), "title": report.headline(group),
            "sides": [side(finding.first.op)?, side(finding.second.op)?],
        }))
    });
    let marks: Vec<Value> = marks.collect();
    let rows: Vec<String> = lanes.iter().map(|lane| drawing::lane_name(report, lane.id)).collect();
    Ok(json!({"rows": rows, "axes": axes, "names": names.all, "findings": marks}))
}

type Strips = (Grid, Vec<Strip>);

/// The finest view of a whole axis that is small enough.
fn whole(
    input: &HtmlInput<'_>,
    axis: Axis,
    span: Span,
    lanes: &[LaneId],
) -> Result<Strips, QueryError> {
    let mut found = None;
    for columns in COLUMNS {
        let strips = input.trace.strips(over(axis, span, columns), lanes)?;
        let bytes: usize = strips.iter().map(|strip| encode(strip).len()).sum();
        found = Some((over(axis, span, columns), strips));
        if bytes <= WHOLE {
            break;
        }
    }
    found.ok_or_else(|| QueryError("an axis without columns".to_owned()))
}

/// The grid over a whole axis in at most so many columns.
fn over(axis: Axis, span: Span, most: u32) -> Grid {
    let mut scale = 0;
    let needed = |scale: u32| ((span.end - 1) >> scale) - (span.start >> scale) + 1;
    while scale < 63 && needed(scale) > u64::from(most) {
        scale += 1;
    }
    Grid {
        axis,
        start: span.start >> scale << scale,
        scale: scale as i8,
        columns: needed(scale) as u32,
    }
}

/// The grid around the two sides of a finding.
fn around(axis: Axis, first: u64, second: u64) -> Grid {
    let (start, end) = (first.min(second), first.max(second));
    let mut scale = 0;
    while scale < 62 && (end - start) >> scale > u64::from(WINDOW / 2) {
        scale += 1;
    }
    let middle = start + (end - start) / 2;
    let start = middle.saturating_sub(u64::from(WINDOW / 2) << scale);
    Grid { axis, start: start >> scale << scale, scale: scale as i8, columns: WINDOW }
}

/// Names of operations, each once.
struct Names<'a> {
    report: &'a Report<'a>,
    trace: &'a dyn TraceQuery,
    all: Vec<String>,
    known: HashMap<String, usize>,
    /// The calls that were asked for: an operation may lie in several views.
    calls: HashMap<OpSeq, String>,
    left: usize,
}

impl<'a> Names<'a> {
    fn new(report: &'a Report<'a>, trace: &'a dyn TraceQuery) -> Self {
        let (all, known, calls) = (Vec::new(), HashMap::new(), HashMap::new());
        Self { report, trace, all, known, calls, left: 0 }
    }

    /// The number of a cell's name, where there is one and room for it.
    fn number(&mut self, cell: &Cell) -> Result<Option<usize>, QueryError> {
        let Some((name, left)) = cell.name.as_deref().zip(self.left.checked_sub(1)) else {
            return Ok(None);
        };
        self.left = left;
        let shown = match cell.group {
            // There is little room.
            OpGroup::Kernel => streamsan_names::gist(name).into_owned(),
            _ => self.called(name, cell.first)?,
        };
        Ok(Some(*self.known.entry(shown).or_insert_with_key(|shown| {
            self.all.push(shown.clone());
            self.all.len() - 1
        })))
    }

    /// A call by the name by which the program made it.
    fn called(&mut self, api: &str, g: OpSeq) -> Result<String, QueryError> {
        if let Some(known) = self.calls.get(&g) {
            return Ok(known.clone());
        }
        let stack = self.trace.detail(g)?.and_then(|detail| detail.operation.stack);
        let called = self.report.called(api, stack).into_owned();
        self.calls.insert(g, called.clone());
        Ok(called)
    }
}

fn view((grid, strips): Strips, names: &mut Names<'_>) -> Result<Value, QueryError> {
    let cells: Vec<String> = strips.iter().map(encode).collect();
    let mut labels = Vec::new();
    for strip in &strips {
        let mut row = Vec::new();
        for cell in &strip.cells {
            if let Some(name) = names.number(cell)? {
                row.extend([cell.column as usize, name]);
            }
        }
        labels.push(row);
    }
    Ok(json!({
        "start": grid.start, "scale": grid.scale, "columns": grid.columns, "cells": cells,
        "labels": labels,
    }))
}

/// The cells of a row as text: a letter for a group and how many operations there are, `.` for none,
/// and behind either the number of columns that look alike, where it is more than one.
fn encode(strip: &Strip) -> String {
    let mut text = String::new();
    let mut run: (char, u32) = ('.', 0);
    let mut put = |symbol: char, count: u32, text: &mut String| {
        if symbol == run.0 {
            run.1 += count;
            return;
        }
        flush(run, text);
        run = (symbol, count);
    };
    let mut next = 0;
    for cell in &strip.cells {
        if cell.column > next {
            put('.', cell.column - next, &mut text);
        }
        put(symbol(cell), 1, &mut text);
        next = cell.column + 1;
    }
    put('\0', 0, &mut text);
    text
}

fn flush((symbol, count): (char, u32), text: &mut String) {
    if count > 0 {
        text.push(symbol);
    }
    if count > 1 {
        let _ = write!(text, "{count}");
    }
}

/// Letters from `A` on, and from `a` on behind `Z`: four for each group.
fn symbol(cell: &Cell) -> char {
    let level = LEVELS.iter().filter(|&&from| cell.operations >= from).count();
    let code = (cell.group as usize * (LEVELS.len() + 1) + level) as u8;
    char::from(if code < 26 { b'A' + code } else { b'a' + code - 26 })
}

/// The rows as a table.
fn table(report: &Report<'_>, overview: &Overview, places: &HashMap<OpSeq, Place>) -> Markup {
    let sides = sides(report, places);
    let (idle, mut lanes): (Vec<&Lane>, Vec<&Lane>) =
        overview.lanes.iter().partition(|lane| is_idle(lane) && !sides.contains_key(&lane.id));
    lanes.sort_by_key(|lane| (std::cmp::Reverse(lane.operations), lane.id));
    let left = lanes.len().saturating_sub(TABLE);
    html! {
        details.card {
            summary { h3 { "The rows as a table" } }
            div.body {
                table {
                    thead { tr {
                        th scope="col" { "row" } th.n scope="col" { "operations" }
                        th.n scope="col" { "sides of findings" }
                    } }
                    tbody {
                        @for lane in lanes.iter().take(TABLE) {
                            tr {
                                td { (drawing::lane_name(report, lane.id)) }
                                td.n { (number(lane.operations)) }
                                td.n { (number(sides.get(&lane.id).copied().unwrap_or(0))) }
                            }
                        }
                    }
                }
                @if left > 0 { p { (plural(left as u64, "more row", "more rows")) " with fewer operations." } }
                @if !idle.is_empty() { p.muted { (plural(idle.len() as u64, "idle stream", "idle streams")) "." } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{around, encode, over};
    use streamsan_model::{Axis, Cell, LaneId, OpGroup, OpSeq, Span, StreamId, Strip};

    #[test]
    fn rows_are_written_in_runs() {
        let cell = |column, operations, group| Cell {
            column,
            operations,
            first: OpSeq(0),
            group,
            findings: 0,
            name: None,
        };
        let lane = LaneId::Stream(StreamId(0));
        let strip = |cells| Strip { lane, cells, ranges: vec![] };
        assert_eq!(encode(&strip(vec![])), "");
        let cells = vec![
            cell(3, 1, OpGroup::Other),
            cell(4, 1, OpGroup::Other),
            cell(5, 2, OpGroup::Other),
            cell(7, 64, OpGroup::Kernel),
        ];
        assert_eq!(encode(&strip(cells)), ".3A2B.j");
        assert_eq!(encode(&strip(vec![cell(0, 8, OpGroup::Memset)])), "S");
    }

    #[test]
    fn grids_hold_what_they_are_made_for() {
        for (start, end) in [(0, 1), (5, 9000), (1 << 40, (1 << 40) + 12_345_678), (1, u64::MAX)] {
            let grid = over(Axis::Issue, Span { start, end }, 512);
            assert!(grid.columns <= 512, "{grid:?}");
            assert_eq!(grid.column(start), Some(0));
            assert_eq!(grid.column(end - 1), Some(grid.columns - 1));
        }
        for (first, second) in [(0, 0), (7, 3), (1_000_000, 1_000_100), (5, 1 << 50)] {
            let grid = around(Axis::Time, first, second);
            assert!(grid.column(first).is_some() && grid.column(second).is_some(), "{grid:?}");
        }
    }
}
