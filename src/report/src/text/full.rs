//! A finding as somebody reads it in ten seconds: the headline, the two lines of the source with
//! their calls marked, one sentence why nothing orders them, and one fix.

use super::wrap::{columns, wrapped};
use super::{Color, Style, TextOptions, headline};
use crate::marked::tests_in_words;
use crate::names::{op, seen, size};
use crate::{Group, Report, SourceLine};
use std::fmt::Write;
use streamsan_model::{Extent, Finding, FindingAccess, MemoryKind, RaceClass, Severity};

/// Longer cells move the rest of their own line only.
const WIDEST_CELL: usize = 48;
/// Columns before the text behind a label.
const LABEL: usize = 8;
/// Frames that are listed below an access, up to the one at which an edit would stand.
pub(crate) const FRAMES: usize = 6;

/// How a finding is printed.
pub(crate) struct Printing<'p, 's> {
    pub(crate) style: Style,
    pub(crate) columns: usize,
    /// Whether every recorded frame of the program is listed, and the proof of the missing order.
    pub(crate) in_detail: bool,
    pub(crate) sources: &'p mut SourceLine<'s>,
}

impl<'p, 's> Printing<'p, 's> {
    pub(crate) fn new(options: &TextOptions, sources: &'p mut SourceLine<'s>) -> Self {
        Self {
            style: Style { color: options.color },
            columns: columns(options.columns),
            in_detail: false,
            sources,
        }
    }

    /// A finding in full; `position` is its number among those of its severity, and theirs, where
    /// the report is of all findings.
    pub(crate) fn finding(
        &mut self,
        whole: &Report<'_>,
        group: &Group,
        position: Option<(usize, usize)>,
        text: &mut String,
    ) {
        let report = whole.part_of(group);
        let finding = &group.finding;
        self.title(report, group, position, text);
        self.note(&occurrences(whole, group), text);
        if let Some(upstream) = group.disposition.upstream() {
            self.note(&[format!("known upstream in {}", upstream.description())], text);
        }
        self.accesses(report, finding, text);
        if let Some(tests) = tests_in_words(&group.tests) {
            self.labelled("test", Color::Strong, &tests, text);
        }
        if finding.severity != Severity::Lint {
            self.labelled("why", Color::Strong, &report.why(finding), text);
        }
        if let Some(fix) = report.fix(finding) {
            self.labelled("fix", Color::Good, &fix.sentence, text);
            for step in &fix.steps {
                // Code is to be copied, and so never broken.
                let _ = writeln!(text, "{:LABEL$}  {}", "", step.description());
            }
            if let Some(effect) = report.effect(finding) {
                let word = if effect.is_verified() { "verified" } else { "not enough" };
                let effect = format!("{word}: {}", effect.description());
                *text += &wrapped(&" ".repeat(LABEL), LABEL, &effect, self.columns);
            }
        }
        if finding.severity != Severity::Lint {
            self.labelled("in", Color::Strong, &memory(report, finding), text);
        }
        let confidence = report.confidence(finding);
        *text += &wrapped("  confidence ", LABEL, &confidence, self.columns);
        if self.in_detail {
            self.details(report, group, text);
        }
    }

    fn title(
        &self,
        report: &Report<'_>,
        group: &Group,
        position: Option<(usize, usize)>,
        text: &mut String,
    ) {
        let finding = &group.finding;
        let (word, color) =
            if group.fails { ("error", Color::Error) } else { ("warning", Color::Warning) };
        let class = format!("{word}[{}]", finding.class.description());
        let headline = headline(report, finding);
        let severity = finding.severity.description();
        let mut which = format!("id {}", finding.fingerprint);
        if let Some((position, total)) = position {
            which = format!("{severity} {position} of {total}, {}, {which}", seen(group.count));
        }
        let width = [&class, &headline, &which].map(|part| part.chars().count()).iter().sum();
        let gap = if usize::saturating_add(width, 5) > self.columns { "\n  " } else { "   " };
        let (class, headline) =
            (self.style.paint(color, &class), self.style.paint(Color::Strong, &headline));
        let _ = writeln!(text, "{class}: {headline}{gap}{which}");
    }

    /// Lines that say of which occurrence the rest is.
    fn note(&self, lines: &[String], text: &mut String) {
        for line in lines {
            *text += &wrapped("  = ", 4, line, self.columns);
        }
    }

    fn labelled(&self, label: &str, color: Color, line: &str, text: &mut String) {
        let head = format!("  {label:<width$}", width = LABEL - 2);
        let lines = wrapped(&head, LABEL, line, self.columns);
        let rest = lines.strip_prefix(&head).unwrap_or_default();
        let label_width = label.chars().count();
        let blanks = " ".repeat(LABEL - 2 - label_width);
        let _ = write!(text, "  {}{blanks}{rest}", self.style.paint(color, label));
    }

    /// The two accesses in the order of their issue, each with its line.
    fn accesses(&mut self, report: &Report<'_>, finding: &Finding, text: &mut String) {
        let sides = [&finding.first, &finding.second];
        let with_device = report.devices_differ(sides[0], sides[1]);
        let rows = sides.map(|side| {
            [
                side.access.mode.weak().description().to_uppercase(),
                report.what(side).into_owned(),
                op(side.op),
                match finding.class {
                    RaceClass::GraphUnordered => report.node(side),
                    _ => report.side_in_full(side, with_device),
                },
            ]
        });
        let width = |column: usize| {
            let cells = rows.iter().map(|row| row[column].chars().count());
            cells.filter(|&width| width <= WIDEST_CELL).max().unwrap_or(0)
        };
        let widths = [0, 1, 2].map(width);
        let lines = report.apart(sides.map(|side| side.stack));
        let heads = ["(1) first", "(2) later"]
            .iter()
            .zip(&rows)
            .map(|(when, row)| format!("  {when}  {:<mode$}  ", row[0], mode = widths[0]));
        let heads: Vec<String> = heads.collect();
        let in_columns = rows.each_ref().map(|[_, what, number, place]| {
            format!("{what:<0$}  {number:<1$}  {place}", widths[1], widths[2])
        });
        let fits = |(head, cells): (&String, &String)| {
            head.chars().count() + cells.chars().count() <= self.columns
        };
        let fit = heads.iter().zip(&in_columns).all(fits);
        for (at, side) in sides.into_iter().enumerate() {
            let [mode, what, number, place] = &rows[at];
            let row = match fit {
                true => format!("{}{}\n", heads[at], in_columns[at]),
                false => {
                    let cells = format!("{what}, {number}, {place}");
                    wrapped(&heads[at], 13, &cells, self.columns)
                }
            };
            let strong = self.style.paint(Color::Strong, mode);
            *text += &row.replacen(mode.as_str(), &strong, 1);
            if let Some(around) = report.around_in_words(side) {
                *text += &wrapped("        in ", 11, &around, self.columns);
            }
            self.frames(report, side, lines[at], text);
        }
    }

    /// The frames of an access from the call outwards to the line at which an edit would stand, and
    /// that line as its source has it; in detail all frames, and all lines up to that one.
    fn frames(
        &mut self,
        report: &Report<'_>,
        side: &FindingAccess,
        line: usize,
        text: &mut String,
    ) {
        let most = if self.in_detail { usize::MAX } else { (line + 1).min(FRAMES) };
        let places = report.own_places(side.stack);
        for (depth, frame) in report.listed(side.stack, most).iter().enumerate() {
            let word = if depth == 0 { "at" } else { "by" };
            let _ = writeln!(text, "        {word} {frame}");
            let is_quoted = depth == line || (self.in_detail && depth < line);
            let place = places.get(depth).filter(|_| is_quoted);
            if let Some(source) = place.and_then(|place| (self.sources)(&place.path, place.line?)) {
                *text += &report.quoted(&source, side, depth, self.columns);
            }
        }
    }

    fn details(&self, report: &Report<'_>, group: &Group, text: &mut String) {
        let lines = details(report, group);
        if lines.is_empty() {
            return;
        }
        let _ = writeln!(text, "{}", self.style.paint(Color::Strong, "in detail"));
        for line in lines {
            *text += &wrapped("  ", 4, &line, self.columns);
        }
    }
}

/// The addresses, and how far each side knows the other: the proof of what is said of a finding.
pub(crate) fn details(report: &Report<'_>, group: &Group) -> Vec<String> {
    let finding = &group.finding;
    let mut lines = Vec::new();
    if finding.severity != Severity::Lint {
        lines.push(addresses(report, finding));
        for (number, side) in [("(1)", &finding.first), ("(2)", &finding.second)] {
            lines.extend(touched(finding, side).map(|all| format!("{number} touches {all}")));
        }
        lines.extend(report.clocks(finding));
    }
    if group.count > 1 && group.traces.is_empty() {
        lines.push(format!("first seen at {}, last at {}", op(group.first), op(group.last)));
        lines.extend(report.pairs_in_words(&group.spread));
    }
    lines
}

/// Where else the mistake occurs.
pub(crate) fn occurrences(whole: &Report<'_>, group: &Group) -> Vec<String> {
    if let Some(traces) = whole.in_traces(&group.traces) {
        let told = whole.trace_of(group.part);
        vec![format!("{traces}; numbers below are those of {told}")]
    } else if let Some(amounts) = group.spread.amounts() {
        let at = op(group.finding.second.op);
        vec![format!("seen {amounts}; below is the occurrence at {at}")]
    } else {
        Vec::new()
    }
}

/// `4.0 KiB at +0x1000 of 64.0 MiB of device memory, cudaMalloc at pool.cc:12 in Pool`.
pub(crate) fn memory(report: &Report<'_>, finding: &Finding) -> String {
    let mut text = report.allocation_in_words(finding.allocation);
    let range = finding.overlap;
    if let Some(allocation) = report.allocation(finding.allocation)
        && allocation.kind != MemoryKind::Pageable
        && allocation.range.covers(range)
        && allocation.range != range
    {
        let offset = range.start - allocation.range.start;
        text = format!("{} at +{offset:#x} of {text}", size(range.len()));
    }
    let allocated = report.stack_of_allocation(finding.allocation);
    if let Some(place) = report.place_in_words(allocated) {
        let _ = write!(text, " at {place}");
    }
    if let Some(touch) = first_touch(finding) {
        let _ = write!(text, "; {touch}");
    }
    text
}

/// `bytes 0x2000..0x3000 of allocation 41`.
fn addresses(report: &Report<'_>, finding: &Finding) -> String {
    let range = finding.overlap;
    let bytes = format!("bytes {:#x}..{:#x}", range.start, range.end);
    match report.allocation(finding.allocation) {
        // All ordinary memory of a process is one allocation.
        Some(allocation) if allocation.kind == MemoryKind::Pageable => bytes,
        Some(allocation) => {
            let whole = allocation.range;
            let id = finding.allocation;
            format!("{bytes} of allocation {id} at {:#x}..{:#x}", whole.start, whole.end)
        }
        None => bytes,
    }
}

/// Where the host's touch of one byte lies among the bytes of the other side. A fence shows the
/// first touch of the memory that it protects, whatever the host does with the rest.
pub(crate) fn first_touch(finding: &Finding) -> Option<String> {
    let (host, other, number) = match (finding.first.stream, finding.second.stream) {
        (Some(_), None) => (&finding.second, &finding.first, "(1)"),
        (None, Some(_)) => (&finding.first, &finding.second, "(2)"),
        _ => return None,
    };
    let (touch, bytes) = (host.access.extent.hull(), other.access.extent.hull());
    let is_one_byte = host.api == TOUCHED && touch.len() == 1 && bytes.len() > 1;
    let at =
        touch.start.checked_sub(bytes.start).filter(|_| is_one_byte && touch.end <= bytes.end)?;
    Some(format!("first touch at +{at:#x} of the bytes of {number}"))
}

/// The recording's name of a host load or store that was seen without an annotation.
const TOUCHED: &str = "host access";

/// The bytes that an access touches, where they are more than the overlap.
fn touched(finding: &Finding, access: &FindingAccess) -> Option<String> {
    match &access.access.extent {
        Extent::Range(range) if *range == finding.overlap => None,
        Extent::Range(range) => Some(format!("{:#x}..{:#x}", range.start, range.end)),
        Extent::Strided(p) => Some(format!(
            "{} of {} every {} from {:#x}",
            crate::names::plural(p.rows.saturating_mul(p.slices), "row", "rows"),
            size(p.width),
            size(p.pitch),
            p.start
        )),
    }
}
