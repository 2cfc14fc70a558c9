//! The story of a race: from the last point that both sides know to the two accesses.

use crate::names::{number, op};
use crate::text::{self, TextOptions};
use crate::{Group, Report, SourceLine};
use std::collections::BTreeMap;
use std::fmt::Write;
use streamsan_model::{Action, OpSeq, Operation, StreamId};
use streamsan_names::{printable, printable_line, printable_text};

/// Number of operations of a stream that the story tells before an access and after the last common
/// point.
const TOLD: usize = 6;

/// The operations around one finding, collected one by one.
#[derive(Clone, Debug)]
pub struct Story<'a> {
    report: &'a Report<'a>,
    group: &'a Group,
    /// The operations of each side's stream since the last common point.
    of_first: Told,
    of_second: Told,
    /// Records of events on the first side's stream behind the first access.
    records: Vec<(OpSeq, String)>,
}

/// The newest operations of a stream, and how many there were before.
#[derive(Clone, Debug, Default)]
struct Told {
    lines: BTreeMap<OpSeq, String>,
    left_out: u64,
}

impl Told {
    fn add(&mut self, g: OpSeq, line: String) {
        self.lines.insert(g, line);
        if self.lines.len() > TOLD {
            self.lines.pop_first();
            self.left_out += 1;
        }
    }
}

impl<'a> Story<'a> {
    /// The story of a finding of the report.
    pub fn new(report: &'a Report<'a>, group: &'a Group) -> Self {
        let (of_first, of_second) = (Told::default(), Told::default());
        Self { report, group, of_first, of_second, records: Vec::new() }
    }

    /// Takes an operation. They come in the order of the trace.
    pub fn operation(&mut self, operation: &Operation) {
        let finding = &self.group.finding;
        let since = finding.knows.unwrap_or(OpSeq::START);
        if operation.g <= since || operation.g > finding.second.op {
            return;
        }
        let on = |stream: Option<StreamId>| stream.is_some() && operation.action.stream() == stream;
        let line = || {
            let call = self.report.describe(operation);
            let kernel = match operation.action {
                Action::Launch { kernel, .. } => self.report.input.entities.kernel(kernel),
                _ => None,
            };
            let kernel =
                kernel.map(|kernel| format!(": {}", streamsan_names::kernel(&kernel.name)));
            let kernel = kernel.unwrap_or_default();
            let number = match operation.g {
                g if g == finding.first.op => " (1)",
                g if g == finding.second.op => " (2)",
                _ => "",
            };
            let place = self.report.source_place(self.report.stack_of(finding, operation.g));
            let place = place.or_else(|| self.report.source_place(operation.stack));
            let place = place.map_or(String::new(), |place| format!("  ({})", place.description()));
            format!("{}{number}  {call}{kernel}{place}", op(operation.g))
        };
        if on(finding.first.stream) && operation.g <= finding.first.op {
            let line = line();
            self.of_first.add(operation.g, line);
        } else if on(finding.first.stream)
            && matches!(operation.action, Action::EventRecord { .. })
            && self.records.len() < TOLD
        {
            let line = line();
            self.records.push((operation.g, line));
        }
        if on(finding.second.stream) && finding.second.stream != finding.first.stream {
            let line = line();
            self.of_second.add(operation.g, line);
        }
    }

    /// The explanation: the finding as the report prints it, with lines of the source and the proof,
    /// then what led to it.
    pub fn render(&self, options: &TextOptions, source_line: &mut SourceLine<'_>) -> String {
        let (report, finding) = (self.report, &self.group.finding);
        let mut text = text::in_full(report, self.group, Some((1, 1)), options, source_line);
        text.push('\n');
        let first = report.side(finding.first.stream);
        let second = report.side(finding.second.stream);
        self.tell_streams(&mut text);
        let _ = match finding.knows {
            Some(g) => writeln!(text, "the last point that both sides know\n  {}", report.call(g)),
            None => writeln!(text, "the last point that both sides know\n  none"),
        };
        self.tell(&mut text, &format!("what {first} did since, up to (1)"), &self.of_first);
        if finding.second.stream != finding.first.stream {
            self.tell(&mut text, &format!("what {second} did since, up to (2)"), &self.of_second);
        }
        self.tell_records(&mut text);
        self.tell_allocation(&mut text, source_line);
        self.tell_kernels(&mut text);
        printable_text(&text).into_owned()
    }

    /// Adds the properties of the streams that decide what orders them.
    fn tell_streams(&self, text: &mut String) {
        let (report, finding) = (self.report, &self.group.finding);
        let mut title = "streams\n";
        for (what, side) in [("(1)", finding.first.stream), ("(2)", finding.second.stream)] {
            let Some(id) = side else { continue };
            let Some(kind) = report.stream_kind(id) else { continue };
            let _ = writeln!(text, "{title}  {what} {}: {kind}", report.stream_in_full(id));
            title = "";
        }
    }

    /// The records that a wait could have been for, where the later side can be held back.
    fn tell_records(&self, text: &mut String) {
        let (report, finding) = (self.report, &self.group.finding);
        let Some(edge) = finding.proposed_edge else { return };
        let before =
            |g: &OpSeq| edge.record_after_op == finding.first.op && *g < edge.wait_before_op;
        let mut records = self.records.iter().filter(|(g, _)| before(g)).peekable();
        if records.peek().is_none() {
            return;
        }
        let first = report.side(finding.first.stream);
        let place = report.side(edge.in_stream);
        let wait_before = match edge.wait_before_op {
            g if g == finding.second.op => "(2)".to_owned(),
            g => report.call(g),
        };
        let _ = writeln!(
            text,
            "events recorded on {first} behind (1): a wait for one of them in {place} before \
             {wait_before} would have ordered the pair"
        );
        for (_, line) in records {
            let _ = writeln!(text, "  {line}");
        }
    }

    /// Adds the whole names of the kernels whose names the report shortens.
    fn tell_kernels(&self, text: &mut String) {
        let finding = &self.group.finding;
        let mut title = "kernels in full\n";
        for (what, side) in [("(1)", &finding.first), ("(2)", &finding.second)] {
            let whole = side.kernel.as_deref().and_then(streamsan_names::whole);
            if let Some(whole) = whole.filter(|whole| printable(whole) != self.report.what(side)) {
                let _ = writeln!(text, "{title}  {what} {}", printable(&whole));
                title = "";
            }
        }
    }

    /// The line of the source that made the allocation.
    fn tell_allocation(&self, text: &mut String, source_line: &mut SourceLine<'_>) {
        let report = self.report;
        let allocation = report.stack_of_allocation(self.group.finding.allocation);
        let Some(place) = report.source_place(allocation) else { return };
        let _ = writeln!(text, "the allocation\n  {}", place.description());
        let line = place.line.and_then(|line| source_line(&place.path, line));
        if let Some(line) = line {
            let _ = writeln!(text, "    {}", printable_line(&line));
        }
    }

    fn tell(&self, text: &mut String, title: &str, told: &Told) {
        if told.lines.is_empty() {
            return;
        }
        let _ = writeln!(text, "{title}");
        if told.left_out > 0 {
            let _ = writeln!(text, "  ... {} more before", number(told.left_out));
        }
        for line in told.lines.values() {
            let _ = writeln!(text, "  {line}");
        }
    }
}
