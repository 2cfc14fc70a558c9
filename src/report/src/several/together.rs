//! The reports of several traces, put together as they come.

use super::fold::Fold;
use crate::report::{Facts, decide_verdict};
use crate::{Coverage, Group, LintGroup, Measured, Report, Unused};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use streamsan_model::{Entities, HostAccesses, IncompleteReason, StreamNames};
use streamsan_names::printable;

/// A report over several traces that are not at hand at the same time.
#[derive(Debug, Default)]
pub struct Several<'a> {
    /// The reports of the single traces. Of those that show no finding the verdict and what led to it
    /// are left.
    parts: Vec<Report<'a>>,
    groups: Fold<Group>,
    lints: Fold<LintGroup>,
    reasons: BTreeSet<IncompleteReason>,
    /// Entries of the gate that no trace has used so far; `None` before the first one.
    unused: Option<Vec<Unused>>,
}

impl<'a> Several<'a> {
    /// Adds the report of the next trace, held against the gate already. The order of the traces
    /// decides between two that know a finding equally well.
    pub fn add(&mut self, mut part: Report<'a>) {
        let mut idle = self.groups.add(std::mem::take(&mut part.groups));
        idle.extend(self.lints.add(std::mem::take(&mut part.lints)));
        idle.push(self.parts.len());
        self.reasons.extend(part.input.reasons.iter().cloned());
        self.note_unused(std::mem::take(&mut part.unused));
        self.parts.push(part);
        for part in idle {
            if !self.groups.shows(part) && !self.lints.shows(part) {
                self.parts[part].forget_what_is_shown();
            }
        }
    }

    /// Keeps the entries of the gate that do nothing in this trace either. One that has expired in one
    /// has in all.
    fn note_unused(&mut self, here: Vec<Unused>) {
        let same = |a: &Unused, b: &Unused| match (a, b) {
            (Unused::Gone { entry: a }, Unused::Gone { entry: b }) => a == b,
            (Unused::Gone { .. }, _) | (_, Unused::Gone { .. }) => false,
            (a, b) => a.line() == b.line(),
        };
        let Some(everywhere) = &mut self.unused else {
            self.unused = Some(here);
            return;
        };
        everywhere.retain_mut(|entry| {
            let Some(other) = here.iter().find(|other| same(entry, other)) else { return false };
            if matches!(other, Unused::Expired { .. }) {
                entry.clone_from(other);
            }
            true
        });
    }

    /// The common report. `None` for no trace at all: nothing was seen, which is not the same as
    /// nothing to be found.
    pub fn finish(self) -> Option<Report<'a>> {
        let Self { parts, groups, lints, reasons, unused } = self;
        let first = parts.first()?;
        let (groups, lints) = (groups.finish(), lints.finish());
        let reasons: Vec<IncompleteReason> = reasons.into_iter().collect();
        // Not counted in one is not counted in all together.
        let calls = parts.iter().map(|part| part.input.calls()).sum();
        let mut known = BTreeSet::new();
        let tests = parts.iter().flat_map(|part| &part.tests);
        let tests = tests.filter(|test| known.insert(&***test)).cloned().collect();
        let verdict = decide_verdict(&groups, &lints, &reasons, calls);
        // Nothing asks for these: data of a trace is asked of its own report.
        let entities = Entities::default();
        Some(Report {
            verdict,
            groups,
            lints,
            unused: unused.unwrap_or_default(),
            has_baseline: parts.iter().any(|part| part.has_baseline),
            effects: BTreeMap::new(),
            operations: BTreeMap::new(),
            ranges: BTreeMap::new(),
            stream_names: StreamNames::of(&entities, printable),
            directory: first.directory.clone(),
            tests,
            settled: None,
            input: Facts {
                entities: Cow::Owned(entities),
                threshold: first.input.threshold,
                reasons,
                coverage: coverage(&parts),
                trace: None,
            },
            parts,
        })
    }
}

impl<'a> Report<'a> {
    /// One report over those of several traces, each held against the gate already. `None` for no
    /// trace at all.
    pub fn over(parts: Vec<Self>) -> Option<Self> {
        let mut several = Several::default();
        parts.into_iter().for_each(|part| several.add(part));
        several.finish()
    }

    /// Gives back the room of all that only a finding asks for.
    fn forget_what_is_shown(&mut self) {
        let nothing = Entities::default();
        self.stream_names = StreamNames::of(&nothing, printable);
        self.input.entities = Cow::Owned(nothing);
        self.operations.clear();
        self.ranges.clear();
        self.effects.clear();
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
