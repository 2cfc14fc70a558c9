//! Memory over time by allocation, and who touched it.

use super::{HtmlInput, findings};
use crate::Report;
use crate::names::{number, op, plural, size};
use maud::{Markup, html};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use streamsan_model::{
    Allocation, AllocationId, Axis, History, Lifetime, MemoryKind, Mode, OpSeq, QueryError, Span,
    StreamId,
};
use streamsan_names::printable;

/// Allocations that are added up, the largest.
const ADDED: u32 = 50_000;
/// Allocations of the table: those of findings, then the largest.
const TABLE: usize = 24;
/// Allocations that have a colour of their own.
const OWN: usize = 7;
/// Classes of their areas in the style sheet, and of the others.
const CLASSES: [&str; OWN + 1] = ["k", "c", "h", "s", "m", "d", "u", "o"];
/// The drawing's columns, and its size.
const COLUMNS: u64 = 200;
const WIDTH: u64 = 1000;
const HEIGHT: u64 = 150;
/// Ranges from here on end nowhere: no memory is that large.
const UNBOUNDED: u64 = 1 << 56;
/// Findings that a row of the table links to.
const LINKS: usize = 3;

/// The section; nothing where the trace holds no allocation.
///
/// # Errors
///
/// The trace cannot be read.
pub(super) fn section(report: &Report<'_>, input: &HtmlInput<'_>) -> Result<Markup, QueryError> {
    let lifetimes = input.trace.allocations(ADDED)?;
    if lifetimes.is_empty() {
        return Ok(html! {});
    }
    let overview = input.trace.overview()?;
    let axes = overview.axes.iter();
    let span = axes.filter(|(axis, _)| *axis == Axis::Issue).map(|&(_, span)| span).next();
    let chart = span.and_then(|span| Chart::of(&lifetimes, span));
    let rows = rows(report, &lifetimes);
    let mut histories = Vec::new();
    for lifetime in &rows {
        histories.push(input.trace.history(lifetime.allocation.id)?);
    }
    let left = lifetimes.len() - rows.len();
    let has_findings = !report.groups.is_empty();
    Ok(html! {
        section id="memory" aria-labelledby="h-memory" {
            h2 #h-memory { "Memory" }
            @if let Some(chart) = &chart { (chart.draw(report)) }
            div.scroll {
                table {
                    caption {
                        @if has_findings { "Allocations of findings, and the largest" }
                        @else { "The largest allocations" }
                    }
                    thead { tr {
                        th scope="col" { "memory" } th.n scope="col" { "size" }
                        th scope="col" { "made by" } th scope="col" { "life" }
                        th scope="col" { "touched by" }
                        @if has_findings { th scope="col" { "findings" } }
                    } }
                    tbody {
                        @for (lifetime, history) in rows.iter().zip(&histories) {
                            (row(report, lifetime, history.as_ref()))
                        }
                    }
                }
            }
            @if left > 0 { p.muted { (plural(left as u64, "other allocation", "other allocations")) "." } }
        }
    })
}

/// The allocations of the table.
fn rows<'a>(report: &Report<'_>, lifetimes: &'a [Lifetime]) -> Vec<&'a Lifetime> {
    let of_findings: BTreeSet<AllocationId> =
        report.groups.iter().map(|group| group.finding.allocation).collect();
    let (mut rows, others): (Vec<_>, Vec<_>) =
        lifetimes.iter().partition(|life| of_findings.contains(&life.allocation.id));
    rows.extend(others);
    rows.truncate(TABLE);
    rows
}

/// `kv_cache (allocation 41)`, or the kind of memory.
fn name(allocation: &Allocation) -> String {
    match &allocation.name {
        Some(name) => format!("{} (allocation {})", printable(name), allocation.id),
        None => format!("allocation {}", allocation.id),
    }
}

fn row(report: &Report<'_>, lifetime: &Lifetime, history: Option<&History>) -> Markup {
    let allocation = &lifetime.allocation;
    let place = report.place_in_words(allocation.stack);
    let groups = report.groups.iter().take(findings::LISTED);
    let of: Vec<String> = groups
        .filter(|group| group.finding.allocation == allocation.id)
        .map(|group| group.finding.fingerprint.to_string())
        .collect();
    html! {
        tr {
            th scope="row" { (name(allocation)) " " span.muted { (allocation.kind.description()) } }
            td.n { @if allocation.range.len() < UNBOUNDED { (size(allocation.range.len())) } }
            td {
                (report.called(&allocation.api, allocation.stack))
                @if let Some(place) = place { " " span.muted { "at " (place) } }
            }
            td.life { (life(lifetime)) }
            td { (touched(report, history)) }
            @if !report.groups.is_empty() { td {
                @for id in of.iter().take(LINKS) { a href={ "#f-" (id) } { code { (id) } } " " }
                @if of.len() > LINKS { "and " (number((of.len() - LINKS) as u64)) " more" }
            } }
        }
    }
}

fn life(lifetime: &Lifetime) -> String {
    match (lifetime.allocated, lifetime.freed) {
        (Some(from), Some(to)) => format!("{} to {}", op(from), op(to)),
        (Some(from), None) => format!("from {}", op(from)),
        (None, Some(to)) => format!("up to {}", op(to)),
        (None, None) => "throughout".to_owned(),
    }
}

/// `stream 7 "decode": 3 reads, 1 write`, a row each.
fn touched(report: &Report<'_>, history: Option<&History>) -> Markup {
    let Some(history) = history else { return html! {} };
    let mut sides: BTreeMap<Option<StreamId>, [u64; 2]> = BTreeMap::new();
    for used in &history.uses {
        let mode = used.access.mode;
        if matches!(mode, Mode::Allocate | Mode::Free) {
            continue;
        }
        sides.entry(used.stream).or_default()[usize::from(mode.writes())] += 1;
    }
    html! {
        @for (side, [reads, writes]) in &sides {
            div {
                (report.side(*side)) ": "
                @if *reads > 0 { (plural(*reads, "read", "reads")) }
                @if *reads > 0 && *writes > 0 { ", " }
                @if *writes > 0 { (plural(*writes, "write", "writes")) }
            }
        }
        @if history.more {
            div.muted { "of the first " (number(history.uses.len() as u64)) " uses" }
        }
    }
}

/// Bytes of device memory over the order of issue. Sums cannot overflow, whatever a trace says.
struct Chart<'a> {
    span: Span,
    own: Vec<&'a Allocation>,
    /// Bytes by allocation, in the order of `own` with the others behind, in each column where the sum
    /// is greatest.
    columns: Vec<[u128; OWN + 1]>,
    /// The greatest sum, and where.
    peak: (u128, OpSeq),
}

/// Whether memory takes room of a device by itself.
fn is_added(allocation: &Allocation) -> bool {
    let is_of_device = matches!(
        allocation.kind,
        MemoryKind::Device
            | MemoryKind::StreamOrdered
            | MemoryKind::Managed
            | MemoryKind::Array
            | MemoryKind::Mapped
            | MemoryKind::GraphOrdered
    );
    is_of_device && allocation.range.len() < UNBOUNDED
}

/// As [`size`].
fn sum_in_words(bytes: u128) -> String {
    size(u64::try_from(bytes).unwrap_or(u64::MAX))
}

impl<'a> Chart<'a> {
    fn of(lifetimes: &'a [Lifetime], span: Span) -> Option<Self> {
        let added: Vec<&Lifetime> =
            lifetimes.iter().filter(|life| is_added(&life.allocation)).collect();
        if added.is_empty() || span.is_empty() {
            return None;
        }
        // They come by size.
        let own: Vec<&Allocation> = added.iter().take(OWN).map(|life| &life.allocation).collect();
        let mut changes: Vec<(u64, bool, usize, u128)> = Vec::new();
        for (position, life) in added.iter().enumerate() {
            let (slot, bytes) = (position.min(OWN), u128::from(life.allocation.range.len()));
            changes.push((life.allocated.map_or(span.start, |g| g.0), true, slot, bytes));
            // A call frees before it allocates.
            changes.extend(life.freed.map(|g| (g.0, false, slot, bytes)));
        }
        changes.sort_unstable();
        let mut changes = changes.into_iter().peekable();
        let (mut now, mut sum, mut peak) = ([0; OWN + 1], 0, (0, OpSeq(span.start)));
        let mut columns = Vec::new();
        for column in 1..=COLUMNS {
            // A column shows each call that lies in it, be it in part.
            let width = (u128::from(span.len()) * u128::from(column)).div_ceil(COLUMNS.into());
            let end = span.start + width as u64;
            let (mut greatest, mut shown) = (sum, now);
            while let Some((at, grows, slot, bytes)) = changes.next_if(|change| change.0 < end) {
                let change = if grows { u128::saturating_add } else { u128::saturating_sub };
                now[slot] = change(now[slot], bytes);
                sum = now.iter().sum();
                if sum > greatest {
                    (greatest, shown) = (sum, now);
                }
                if sum > peak.0 {
                    peak = (sum, OpSeq(at));
                }
            }
            columns.push(shown);
        }
        (peak.0 > 0).then_some(Self { span, own, columns, peak })
    }

    fn draw(&self, report: &Report<'_>) -> Markup {
        let left = self.columns.iter().map(|column| column[OWN]).max().unwrap_or(0);
        let last = self.columns.last().map_or(0, |column| column.iter().sum::<u128>());
        let ticks: String = report
            .groups
            .iter()
            .take(200)
            .filter_map(|group| self.x(group.finding.second.op))
            .map(|x| format!("M{x} {HEIGHT}v6"))
            .collect();
        let (end, last_call) = (HEIGHT + 22, OpSeq(self.span.end.saturating_sub(1)));
        html! {
            figure {
                figcaption {
                    "Bytes of device and managed memory over the order of issue: at most "
                    (sum_in_words(self.peak.0)) ", at " (op(self.peak.1)) "; " (sum_in_words(last)) " at the end"
                }
                div.scroll {
                    svg.chart role="img" width=(WIDTH) height=(HEIGHT + 28) {
                        title { "Bytes of memory by allocation" }
                        desc { "The table below has the allocations." }
                        @for (slot, class) in CLASSES.iter().enumerate() {
                            @let area = self.area(slot);
                            @if !area.is_empty() { path class=(class) d=(area) {} }
                        }
                        @if !ticks.is_empty() { path.ticks d=(ticks) {} }
                        text y=(end) { (op(OpSeq(self.span.start))) }
                        text.end x=(WIDTH) y=(end) { (op(last_call)) }
                    }
                }
                ul.legend aria-label="Colours of allocations" {
                    @for (allocation, class) in self.own.iter().zip(CLASSES) {
                        li class=(class) { (name(allocation)) ", " (size(allocation.range.len())) }
                    }
                    @if left > 0 { li.o { "others, at most " (sum_in_words(left)) } }
                    @if !ticks.is_empty() { li.race { "findings" } }
                }
            }
        }
    }

    fn x(&self, g: OpSeq) -> Option<u64> {
        let offset = u128::from(g.0.checked_sub(self.span.start)?) * u128::from(WIDTH);
        Some((offset / u128::from(self.span.len().max(1))) as u64)
    }

    /// Boxes of equal columns above what lies below.
    fn area(&self, slot: usize) -> String {
        let y = |bytes: u128| HEIGHT - (bytes * u128::from(HEIGHT) / self.peak.0) as u64;
        let bounds = self.columns.iter().map(|column| {
            let below: u128 = column[..slot].iter().sum();
            (y(below), y(below + column[slot]))
        });
        let bounds: Vec<(u64, u64)> = bounds.collect();
        let mut area = String::new();
        let mut start = 0;
        while start < bounds.len() {
            let alike = bounds[start..].iter().take_while(|&&next| next == bounds[start]).count();
            let ((low, high), step) = (bounds[start], WIDTH / COLUMNS);
            if low > high {
                let (x, width) = (start as u64 * step, alike as u64 * step);
                let _ = write!(area, "M{x} {high}h{width}v{}h-{width}z", low - high);
            }
            start += alike;
        }
        area
    }
}

#[cfg(test)]
mod tests {
    use super::{COLUMNS, Chart, HEIGHT};
    use streamsan_model::*;

    fn lifetime(id: u32, bytes: u64, allocated: Option<u64>, freed: Option<u64>) -> Lifetime {
        Lifetime {
            allocation: Allocation {
                id: AllocationId(id),
                process: ProcessId(0),
                context: None,
                kind: MemoryKind::Device,
                range: ByteRange::with_len(0x1000, bytes),
                api: "cuMemAlloc_v2".to_owned(),
                backing: None,
                name: None,
                stack: None,
            },
            allocated: allocated.map(OpSeq),
            freed: freed.map(OpSeq),
        }
    }

    #[test]
    fn columns_show_their_greatest_sum() {
        let all = [
            lifetime(0, 100, Some(0), Some(500)),
            lifetime(1, 50, Some(500), None),
            // Within one column.
            lifetime(2, 40, Some(901), Some(902)),
        ];
        let chart = Chart::of(&all, Span { start: 0, end: 1000 }).expect("a chart");
        assert_eq!(chart.peak, (100, OpSeq(0)));
        let sums: Vec<u128> = chart.columns.iter().map(|column| column.iter().sum()).collect();
        assert_eq!(sums.len() as u64, COLUMNS);
        assert_eq!((sums[0], sums[99], sums[100], sums[180], sums[199]), (100, 100, 100, 90, 50));
        assert_eq!(chart.area(0), format!("M0 0h505v{HEIGHT}h-505z"));
        // Without a begin memory is there from the begin.
        let all = [lifetime(0, 8, None, None)];
        let chart = Chart::of(&all, Span { start: 3, end: 4 }).expect("a chart");
        assert_eq!(chart.columns.first().map(|column| column[0]), Some(8));
        assert_eq!(chart.columns.last().map(|column| column[0]), Some(8));
    }
    #[test]
    fn sums_of_any_trace_are_drawn() {
        let huge = (1 << 56) - 1;
        let all: Vec<Lifetime> = (0..500).map(|id| lifetime(id, huge, Some(5), None)).collect();
        let chart = Chart::of(&all, Span { start: 0, end: 10 }).expect("a chart");
        assert_eq!(chart.peak.0, 500 * u128::from(huge));
        // Memory without a known end has no size.
        assert!(
            Chart::of(&[lifetime(0, u64::MAX, None, None)], Span { start: 0, end: 10 }).is_none()
        );
    }
}
