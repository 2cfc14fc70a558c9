//! The JSON form, schema 1. Additions keep the schema's number; anything else raises it.

mod accepted;
mod access;
mod fix;
mod marked;
mod measured;

use crate::{Group, LintGroup, Report, SourcePlace};
use accepted::{AcceptedJson, accepted};
use access::{Access, access};
use fix::{Edge, FixJson, edge};
use marked::{InTestJson, TestJson, in_tests, tests};
use serde::Serialize;
use streamsan_model::{
    CallFrame, CallStack, Confidence, ConflictKind, IncompleteReason, RaceClass, Severity, StackId,
    Threshold, Unwatched, shown_path,
};

/// Version of the form.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    verdict: &'static str,
    threshold: Threshold,
    reasons: Vec<Reason>,
    coverage: Option<CoverageJson<'a>>,
    findings: Vec<Finding<'a>>,
    lints: Vec<Lint<'a>>,
    unused: Vec<String>,
    /// The tests that the program marked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tests: Vec<TestJson<'a>>,
    /// In the report of a run that was settled only.
    #[serde(skip_serializing_if = "Option::is_none")]
    settled: Option<measured::Settling>,
    /// The traces of a report over several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    traces: Vec<TraceJson<'a>>,
}

#[derive(Serialize)]
struct TraceJson<'a> {
    trace: Option<&'a str>,
    verdict: &'static str,
    calls: Option<u64>,
    reasons: Vec<Reason>,
}

/// Occurrences in one of several traces; operations have the numbers of that trace.
#[derive(Serialize)]
struct InTraceJson {
    /// Position in `traces`.
    trace: usize,
    count: u64,
    first_op: u64,
    last_op: u64,
}

#[derive(Serialize)]
struct Lint<'a> {
    id: String,
    class: RaceClass,
    fails: bool,
    #[serde(flatten)]
    disposition: AcceptedJson<'a>,
    /// Null where the program can mend it.
    library: Option<&'a str>,
    count: u64,
    op: u64,
    api: &'a str,
    call: &'a str,
    stream: Option<u32>,
    event: Option<u32>,
    related: Option<u64>,
    #[serde(flatten)]
    called: Called<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    related_place: Option<Line>,
    #[serde(skip_serializing_if = "Option::is_none")]
    related_stack: Option<Vec<Frame<'a>>>,
    /// Absent where the program marked no tests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tests: Vec<InTestJson<'a>>,
    #[serde(flatten)]
    several: Several,
}

/// The traces in which a finding occurs, and the trace whose numbers the finding shows.
#[derive(Serialize)]
struct Several {
    #[serde(skip_serializing_if = "Option::is_none")]
    told_by: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    in_traces: Vec<InTraceJson>,
}

/// Where a call was made; nothing where no stack was recorded.
#[derive(Serialize)]
struct Called<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<Line>,
    /// The frames of the stack that are worth showing, innermost first.
    #[serde(skip_serializing_if = "Option::is_none")]
    stack: Option<Vec<Frame<'a>>>,
    /// There are frames further out that were not recorded.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stack_truncated: bool,
}

/// A line of the program.
#[derive(Serialize)]
struct Line {
    file: String,
    line: Option<u32>,
    function: Option<String>,
}

#[derive(Serialize)]
struct Frame<'a> {
    function: Option<&'a str>,
    file: Option<String>,
    line: Option<u32>,
    inlined: bool,
    origin: &'static str,
    /// Null for functions of Python.
    image: Option<&'a str>,
    /// Where the call ends in the image, as a virtual address of the file.
    offset: Option<u64>,
}

#[derive(Serialize)]
struct Reason {
    kind: &'static str,
    text: String,
}

#[derive(Serialize)]
struct CoverageJson<'a> {
    calls: u64,
    dropped: u64,
    not_understood: Vec<Calls<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unread_kernels: Option<UnreadKernelsJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host_accesses: Option<HostAccesses<'a>>,
    /// Absent where no kernel was to be measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    measured: Option<measured::MeasuredJson<'a>>,
}

/// How far the host's own loads and stores were watched.
#[derive(Serialize)]
pub(crate) struct HostAccesses<'a> {
    watched: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    operations: u64,
    fenced: u64,
    fenced_in_part: u64,
    ranges_not_fenced: Vec<Because<'a>>,
    allocations_left_alone: Vec<Because<'a>>,
    text: String,
}

#[derive(Serialize)]
struct Because<'a> {
    reason: &'a str,
    count: u64,
}

#[derive(Serialize)]
struct UnreadKernelsJson<'a> {
    kernels: u64,
    package: &'a str,
}

#[derive(Serialize)]
struct Calls<'a> {
    api: &'a str,
    calls: u64,
}

#[derive(Serialize)]
struct Finding<'a> {
    id: String,
    class: RaceClass,
    kind: ConflictKind,
    severity: Severity,
    confidence: Confidence,
    fails: bool,
    #[serde(flatten)]
    disposition: AcceptedJson<'a>,
    count: u64,
    first_op: u64,
    last_op: u64,
    stream_pairs: Vec<StreamPair>,
    allocations: Vec<u32>,
    /// There are more of them than are kept.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    more_streams_or_allocations: bool,
    overlap: Overlap<'a>,
    accesses: [Access<'a>; 2],
    knows: Option<u64>,
    nearest: Option<u64>,
    masked_by: Option<u64>,
    proposed_edge: Option<Edge>,
    fix: Option<FixJson>,
    /// Absent where the program marked no tests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tests: Vec<InTestJson<'a>>,
    #[serde(flatten)]
    several: Several,
}

/// Occurrences whose accesses are in these streams; null is the host.
#[derive(Serialize)]
struct StreamPair {
    first: Option<u32>,
    second: Option<u32>,
    count: u64,
}

#[derive(Serialize)]
struct Overlap<'a> {
    allocation: u32,
    start: u64,
    end: u64,
    name: Option<&'a str>,
    memory: Option<&'static str>,
    allocated_by: Option<&'a str>,
    /// The same by the name that the program's language has for it.
    allocated_by_call: Option<&'a str>,
    #[serde(flatten)]
    called: Called<'a>,
}

#[derive(Serialize)]
struct Range {
    start: u64,
    end: u64,
}

pub(crate) fn render(report: &Report<'_>) -> String {
    let document = Document {
        schema: SCHEMA,
        verdict: report.verdict.description(),
        threshold: report.input.threshold,
        reasons: reasons(report),
        coverage: report.input.coverage.as_ref().map(|coverage| CoverageJson {
            calls: coverage.calls,
            dropped: coverage.dropped,
            not_understood: coverage
                .not_understood
                .iter()
                .map(|(api, calls)| Calls { api, calls: *calls })
                .collect(),
            unread_kernels: coverage.unread.as_ref().map(|unread| UnreadKernelsJson {
                kernels: unread.kernels,
                package: &unread.package,
            }),
            host_accesses: coverage.host_accesses.as_ref().map(host_accesses),
            measured: coverage.measured.as_ref().map(measured::measured),
        }),
        findings: report.groups.iter().map(|group| finding(report, group)).collect(),
        lints: report.lints.iter().map(|group| lint(report, group)).collect(),
        unused: report.unused().iter().map(crate::Unused::description).collect(),
        tests: tests(report),
        settled: report.settled.as_ref().map(measured::settled),
        traces: report.parts.iter().map(trace).collect(),
    };
    let text = serde_json::to_string_pretty(&document);
    text.expect("numbers, texts and lists of them are JSON") + "\n"
}

/// How far the host's own loads and stores were watched.
pub(crate) fn host_accesses(host: &streamsan_model::HostAccesses) -> HostAccesses<'_> {
    HostAccesses {
        watched: host.unwatched.is_none(),
        reason: host.unwatched.map(Unwatched::id),
        operations: host.operations,
        fenced: host.fenced,
        fenced_in_part: host.in_part,
        ranges_not_fenced: because(&host.not_fenced),
        allocations_left_alone: because(&host.left_alone),
        text: host.description(),
    }
}

fn because(reasons: &[(String, u64)]) -> Vec<Because<'_>> {
    reasons.iter().map(|(reason, count)| Because { reason, count: *count }).collect()
}

/// Stable ids and words of the reasons.
fn reasons(report: &Report<'_>) -> Vec<Reason> {
    let reason = |(reason, text)| Reason { kind: reason_kind(reason), text };
    report.reasons_by(ToString::to_string).map(reason).collect()
}

fn trace<'a>(part: &'a Report<'_>) -> TraceJson<'a> {
    TraceJson {
        trace: part.input.trace.as_deref(),
        verdict: part.verdict.description(),
        calls: part.input.coverage.as_ref().map(|coverage| coverage.calls),
        reasons: reasons(part),
    }
}

fn several(traces: &[crate::InTrace], part: usize) -> Several {
    let here = |at: &crate::InTrace| InTraceJson {
        trace: at.part,
        count: at.count,
        first_op: at.first.0,
        last_op: at.last.0,
    };
    Several {
        told_by: (!traces.is_empty()).then_some(part),
        in_traces: traces.iter().map(here).collect(),
    }
}

/// Stable id of a reason.
pub(crate) const fn reason_kind(reason: &IncompleteReason) -> &'static str {
    match reason {
        IncompleteReason::NotAttached => "not-attached",
        IncompleteReason::DroppedRecords(_) => "dropped-records",
        IncompleteReason::NotUnderstood { .. } => "not-understood",
        IncompleteReason::UnknownKernelParameters { .. } => "unknown-kernel-parameters",
        IncompleteReason::PointersInMemory { .. } => "pointers-in-memory",
        IncompleteReason::TruncatedTrace => "truncated-trace",
        IncompleteReason::TraceLimit(_) => "trace-limit",
        IncompleteReason::TraceNotWritten(_) => "trace-not-written",
        IncompleteReason::FindingsNotFoundAgain { .. } => "findings-not-found-again",
        IncompleteReason::TraceNotRead(_) => "trace-not-read",
    }
}

impl From<SourcePlace> for Line {
    fn from(place: SourcePlace) -> Self {
        Self { file: place.shown, line: place.line, function: place.function }
    }
}

fn called<'a>(report: &'a Report<'_>, id: Option<StackId>) -> Called<'a> {
    let stack = report.stack(id);
    Called {
        place: line(report, id),
        stack_truncated: stack.as_ref().is_some_and(|stack| stack.truncated),
        stack: stack.map(|stack| frames(report, &stack)),
    }
}

fn frames<'a>(report: &'a Report<'_>, stack: &CallStack<'a>) -> Vec<Frame<'a>> {
    let directory = report.directory.as_deref();
    let frame = |frame: &CallFrame<'a>| Frame {
        function: frame.function(),
        file: frame
            .source
            .and_then(|source| source.file.as_deref())
            .map(|file| shown_path(file, directory)),
        line: frame.line(),
        inlined: frame.source.is_some_and(|source| source.inlined),
        origin: frame.origin.description(),
        image: frame.image.map(|(image, _)| image),
        offset: frame.image.map(|(_, offset)| offset),
    };
    stack.frames.iter().map(frame).collect()
}

fn lint<'a>(report: &'a Report<'_>, group: &'a LintGroup) -> Lint<'a> {
    let (lint, report) = (&group.lint, report.part_of_lint(group));
    Lint {
        id: lint.fingerprint.to_string(),
        class: lint.class,
        fails: group.fails,
        disposition: accepted(&group.disposition),
        library: group.library.as_deref(),
        count: group.count,
        op: lint.op.0,
        api: &lint.api,
        call: report.input.entities.called(&lint.api, lint.stack),
        stream: lint.stream.map(|s| s.0),
        event: lint.event.map(|e| e.0),
        related: lint.related.map(|g| g.0),
        called: called(report, lint.stack),
        related_place: line(report, lint.related_stack),
        related_stack: report.stack(lint.related_stack).map(|stack| frames(report, &stack)),
        tests: in_tests(&group.tests),
        several: several(&group.traces, group.part),
    }
}

fn finding<'a>(report: &'a Report<'_>, group: &'a Group) -> Finding<'a> {
    let (finding, report) = (&group.finding, report.part_of(group));
    let allocation = report.allocation(finding.allocation);
    Finding {
        id: finding.fingerprint.to_string(),
        class: finding.class,
        kind: finding.kind,
        severity: finding.severity,
        confidence: finding.confidence,
        fails: group.fails,
        disposition: accepted(&group.disposition),
        count: group.count,
        first_op: group.first.0,
        last_op: group.last.0,
        stream_pairs: stream_pairs(group),
        allocations: group.spread.allocations.iter().map(|id| id.0).collect(),
        more_streams_or_allocations: group.spread.truncated.contains(&true),
        overlap: Overlap {
            allocation: finding.allocation.0,
            start: finding.overlap.start,
            end: finding.overlap.end,
            name: allocation.and_then(|a| a.name.as_deref()),
            memory: allocation.map(|a| a.kind.description()),
            allocated_by: allocation.map(|a| a.api.as_str()).filter(|api| !api.is_empty()),
            allocated_by_call: allocation
                .map(|a| report.input.entities.called(&a.api, a.stack))
                .filter(|call| !call.is_empty()),
            called: called(report, report.stack_of_allocation(finding.allocation)),
        },
        accesses: [access(report, &finding.first), access(report, &finding.second)],
        knows: finding.knows.map(|g| g.0),
        nearest: finding.nearest.map(|g| g.0),
        masked_by: finding.masked_by.map(|g| g.0),
        proposed_edge: finding.proposed_edge.map(|e| edge(report, finding, &e)),
        fix: report.fix(finding).map(FixJson::from),
        tests: in_tests(&group.tests),
        several: several(&group.traces, group.part),
    }
}

fn stream_pairs(group: &Group) -> Vec<StreamPair> {
    let pair = |(pair, &count): (&crate::spread::StreamPair, &u64)| {
        let [first, second] = pair.map(|stream| stream.map(|stream| stream.0));
        StreamPair { first, second, count }
    };
    group.spread.pairs.iter().map(pair).collect()
}

fn line(report: &Report<'_>, id: Option<StackId>) -> Option<Line> {
    report.source_place(id).map(Line::from)
}
