//! One report over several traces: the ranks of a job, the processes of a test runner.
//!
//! Each trace is analysed on its own and has a report of its own: nothing orders one trace's
//! operations against another's, and numbers of operations and streams stay those of its trace.
//! Here findings of one fingerprint become one. The trace with the highest confidence shows it, and
//! the finding names all traces that have it.
//!
//! Invariants: a finding that fails in one trace fails in the common report; an entry of the gate
//! is unused only when no trace uses it.

use crate::marked::add_tests;
use crate::names::{number, plural, reason_in_words};
use crate::report::decide_verdict;
use crate::{Coverage, Folded, Group, InTest, Input, LintGroup, Measured, Report, Unused};
use std::borrow::Cow;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use streamsan_model::{
    Confidence, Fingerprint, HostAccesses, IncompleteReason, OpSeq, Severity, StreamNames, Verdict,
};
use streamsan_names::printable;

/// Traces that a line names; the JSON form names all.
const NAMED: usize = 8;

/// Occurrences in one of several traces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InTrace {
    /// Position of the trace.
    pub(crate) part: usize,
    /// Number of occurrences there.
    pub(crate) count: u64,
    /// The first one, by the numbers of that trace.
    pub(crate) first: OpSeq,
    /// The last one.
    pub(crate) last: OpSeq,
}

/// The properties of a group (of findings or lints) that folding needs.
trait Member: Clone {
    fn key(&self) -> (Fingerprint, Severity);
    /// The greatest one tells of all.
    fn weight(&self) -> (bool, bool, Option<Confidence>);
    fn places(&self) -> (u64, OpSeq, OpSeq);
    fn tests(&mut self) -> &mut Vec<InTest>;
    fn settle(&mut self, count: u64, traces: Vec<InTrace>, part: usize);
}

impl Member for Group {
    fn key(&self) -> (Fingerprint, Severity) {
        (self.finding.fingerprint, self.finding.severity)
    }

    fn weight(&self) -> (bool, bool, Option<Confidence>) {
        let is_open = self.disposition == crate::Disposition::Open;
        (self.fails, is_open, Some(self.finding.confidence))
    }

    fn places(&self) -> (u64, OpSeq, OpSeq) {
        (self.count, self.first, self.last)
    }

    fn tests(&mut self) -> &mut Vec<InTest> {
        &mut self.tests
    }

    fn settle(&mut self, count: u64, traces: Vec<InTrace>, part: usize) {
        (self.count, self.traces, self.part) = (count, traces, part);
    }
}

impl Member for LintGroup {
    fn key(&self) -> (Fingerprint, Severity) {
        (self.lint.fingerprint, Severity::Lint)
    }

    fn weight(&self) -> (bool, bool, Option<Confidence>) {
        (self.fails, self.disposition == crate::Disposition::Open, None)
    }

    fn places(&self) -> (u64, OpSeq, OpSeq) {
        (self.count, self.lint.op, self.lint.op)
    }

    fn tests(&mut self) -> &mut Vec<InTest> {
        &mut self.tests
    }

    fn settle(&mut self, count: u64, traces: Vec<InTrace>, part: usize) {
        (self.count, self.traces, self.part) = (count, traces, part);
    }
}

/// Groups of one mistake while they are put together.
struct Together<M> {
    best: M,
    /// The trace of the best one.
    part: usize,
    count: u64,
    traces: Vec<InTrace>,
    tests: Vec<InTest>,
}

/// Folds the groups of all traces; failing groups come first.
fn fold<M: Member>(of: impl Iterator<Item = (usize, Vec<M>)>) -> Vec<M> {
    let mut order = Vec::new();
    let mut folded: BTreeMap<(Fingerprint, Severity), Together<M>> = BTreeMap::new();
    for (part, members) in of {
        for mut member in members {
            let (count, first, last) = member.places();
            let tests = std::mem::take(member.tests());
            let here = InTrace { part, count, first, last };
            match folded.entry(member.key()) {
                Entry::Vacant(entry) => {
                    order.push(*entry.key());
                    let traces = vec![here];
                    entry.insert(Together { best: member, part, count, traces, tests });
                }
                Entry::Occupied(entry) => {
                    let together = entry.into_mut();
                    together.count += count;
                    together.traces.push(here);
                    add_tests(&mut together.tests, &tests);
                    if member.weight() > together.best.weight() {
                        (together.best, together.part) = (member, part);
                    }
                }
            }
        }
    }
    let mut members: Vec<M> = Vec::new();
    for key in order {
        let Some(together) = folded.remove(&key) else { continue };
        let mut member = together.best;
        *member.tests() = together.tests;
        member.settle(together.count, together.traces, together.part);
        members.push(member);
    }
    members.sort_by_key(|member| (!member.weight().0, member.key().1));
    members
}

impl<'a> Report<'a> {
    /// One report over those of several traces, each held against the gate already. `None` for no
    /// trace at all: nothing was seen, which is not the same as nothing to be found.
    pub fn over(parts: Vec<Self>) -> Option<Self> {
        let first = parts.first()?;
        let groups = fold(parts.iter().map(|part| part.groups.clone()).enumerate());
        let lints = fold(parts.iter().map(|part| part.lints.clone()).enumerate());
        let mut reasons: Vec<IncompleteReason> =
            parts.iter().flat_map(|part| part.input.reasons.iter().cloned()).collect();
        reasons.sort();
        reasons.dedup();
        let mut known = BTreeSet::new();
        let tests = parts.iter().flat_map(|part| &part.tests);
        let tests = tests.filter(|test| known.insert(&***test)).cloned().collect();
        // Not counted in one is not counted in all together.
        let calls = parts.iter().map(|part| part.input.calls()).sum();
        let verdict = decide_verdict(&groups, &lints, &reasons, calls);
        let input = Input {
            findings: Folded::default(),
            // Nothing asks for these: data of a trace is asked of its own report.
            entities: first.input.entities,
            threshold: first.input.threshold,
            reasons,
            coverage: coverage(&parts),
            upstream: first.input.upstream,
            trace: None,
        };
        Some(Self {
            verdict,
            groups,
            lints,
            unused: unused(&parts),
            has_baseline: first.has_baseline,
            input,
            effects: BTreeMap::new(),
            operations: BTreeMap::new(),
            ranges: BTreeMap::new(),
            stream_names: StreamNames::of(first.input.entities, printable),
            directory: first.directory.clone(),
            tests,
            settled: None,
            parts,
        })
    }

    /// The report of the trace that shows the finding.
    pub(crate) fn part_of(&self, group: &Group) -> &Self {
        self.parts.get(group.part).unwrap_or(self)
    }

    /// The report of the trace that shows the lint.
    pub(crate) fn part_of_lint(&self, group: &LintGroup) -> &Self {
        self.parts.get(group.part).unwrap_or(self)
    }

    /// Name of one of several traces.
    pub(crate) fn trace_of(&self, part: usize) -> Cow<'_, str> {
        let part = self.parts.get(part);
        let name = part.and_then(|part| part.input.trace.as_deref());
        name.map_or(Cow::Borrowed("a trace without a name"), printable)
    }

    /// `in 2 of 4 traces: rank-1.db (3 times, first at #12), rank-3.db (...)`, where there are
    /// several.
    pub(crate) fn in_traces(&self, traces: &[InTrace]) -> Option<String> {
        if self.parts.is_empty() {
            return None;
        }
        let place = |at: &InTrace| {
            let times = match at.count {
                1 => String::new(),
                count => format!("{} times, first ", number(count)),
            };
            format!("{} ({times}at {})", self.trace_of(at.part), crate::names::op(at.first))
        };
        let mut named: Vec<String> = traces.iter().take(NAMED).map(place).collect();
        if traces.len() > NAMED {
            named.push(format!("{} more", number((traces.len() - NAMED) as u64)));
        }
        let (of, all) =
            (number(traces.len() as u64), plural(self.parts.len() as u64, "trace", "traces"));
        Some(format!("in {of} of {all}: {}", named.join(", ")))
    }

    /// The reasons of incomplete runs; with several traces, each with the traces that it holds for.
    pub(crate) fn told_reasons(&self) -> impl Iterator<Item = (&IncompleteReason, String)> {
        self.reasons_by(reason_in_words).map(|(reason, mut text)| {
            if let Some(launches) = self.not_measured_of(reason) {
                text += &format!(": {launches}");
            }
            (reason, text)
        })
    }

    /// `3 of 4,000 launches not measured`, where the kernel of a reason was to be measured.
    fn not_measured_of(&self, reason: &IncompleteReason) -> Option<String> {
        let (IncompleteReason::UnknownKernelParameters { kernel, .. }
        | IncompleteReason::PointersInMemory { kernel, .. }) = reason
        else {
            return None;
        };
        let measured = self.input.coverage.as_ref()?.measured.as_ref()?;
        let known = measured.kernels.iter().find(|known| known.name == *kernel)?;
        let (of, not) = (known.launches(), known.not_measured);
        let mut text =
            format!("{} of {} not measured", number(not), plural(of, "launch", "launches"));
        if known.in_part > 0 {
            text += &format!(", {} in part", number(known.in_part));
        }
        Some(text)
    }

    /// Like `told_reasons`, with other words for the reasons.
    pub(crate) fn reasons_by(
        &self,
        say: fn(&IncompleteReason) -> String,
    ) -> impl Iterator<Item = (&IncompleteReason, String)> {
        self.input.reasons.iter().map(move |reason| {
            let lacks = |part: &&Report<'_>| part.input.reasons.contains(reason);
            let of: Vec<&str> = self
                .parts
                .iter()
                .filter(lacks)
                .map(|part| part.input.trace.as_deref().unwrap_or_default())
                .collect();
            let said = say(reason);
            let text = match of.as_slice() {
                [] => said,
                few if few.len() <= NAMED => format!("{said} ({})", few.join(", ")),
                many => {
                    format!("{said} ({} and {} more)", many[..NAMED].join(", "), many.len() - NAMED)
                }
            };
            (reason, text)
        })
    }

    /// `4 traces, 1 racy, 1 incomplete`, where there are several.
    pub(crate) fn traces_in_words(&self) -> Option<String> {
        if self.parts.is_empty() {
            return None;
        }
        let count = |of: fn(&Verdict) -> bool| {
            self.parts.iter().filter(|part| of(&part.verdict)).count() as u64
        };
        let mut text = plural(self.parts.len() as u64, "trace", "traces");
        for (count, what) in [
            (count(|verdict| *verdict == Verdict::Racy), "racy"),
            (count(|verdict| matches!(verdict, Verdict::Incomplete(_))), "incomplete"),
            (count(|verdict| *verdict == Verdict::NoCuda), "without a driver call"),
        ] {
            if count > 0 {
                text += &format!(", {} {what}", number(count));
            }
        }
        Some(text)
    }
}

/// The common coverage of all traces. The kernels of one program are the same in each of its
/// processes, so the trace with most of them stands for all.
fn coverage(parts: &[Report<'_>]) -> Option<Coverage> {
    let seen: Vec<&Coverage> =
        parts.iter().filter_map(|part| part.input.coverage.as_ref()).collect();
    if seen.is_empty() {
        return None;
    }
    let mut not_understood: BTreeMap<&str, u64> = BTreeMap::new();
    for (api, calls) in seen.iter().flat_map(|coverage| &coverage.not_understood) {
        *not_understood.entry(api).or_default() += calls;
    }
    Some(Coverage {
        calls: seen.iter().map(|coverage| coverage.calls).sum(),
        dropped: seen.iter().map(|coverage| coverage.dropped).sum(),
        not_understood: not_understood.into_iter().map(|(api, n)| (api.to_owned(), n)).collect(),
        unread: seen
            .iter()
            .filter_map(|coverage| coverage.unread.clone())
            .max_by_key(|unread| unread.kernels),
        host_accesses: seen
            .iter()
            .filter_map(|coverage| coverage.host_accesses.clone())
            .reduce(HostAccesses::joined),
        measured: Measured::over(seen.iter().filter_map(|coverage| coverage.measured.as_ref())),
    })
}

/// Entries of the gate that do nothing in any of them. One that has expired in one has in all.
fn unused(parts: &[Report<'_>]) -> Vec<Unused> {
    let same = |a: &Unused, b: &Unused| match (a, b) {
        (Unused::Gone { entry: a }, Unused::Gone { entry: b }) => a == b,
        (Unused::Gone { .. }, _) | (_, Unused::Gone { .. }) => false,
        (a, b) => a.line() == b.line(),
    };
    let Some((first, rest)) = parts.split_first() else { return Vec::new() };
    let everywhere = first
        .unused
        .iter()
        .filter(|entry| rest.iter().all(|part| part.unused.iter().any(|other| same(entry, other))));
    let told = everywhere.map(|entry| {
        let is_expired =
            |other: &&Unused| matches!(other, Unused::Expired { .. }) && same(entry, other);
        rest.iter().flat_map(|part| &part.unused).find(is_expired).unwrap_or(entry)
    });
    told.cloned().collect()
}
