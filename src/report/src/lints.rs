//! Lints folded by fingerprint; lints that explain a race are folded into it.

use crate::names::{and, plural, seen};
use crate::{Disposition, InTest, InTrace, Report};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use streamsan_model::{
    Entities, Finding, Fingerprint, Lint, OpSeq, RaceClass, Severity, StreamId, Threshold,
};
use streamsan_names::printable;

/// Occurrences of a lint that are held against the races; later ones are only counted.
const HELD: usize = 4096;
/// Number of remembered pairs of streams with a race. A lint about a later pair is reported beside
/// the race.
const PAIRS: usize = 1 << 16;

/// Lints of one fingerprint: one mistake, however often it occurs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LintGroup {
    /// The first occurrence that no race explains better.
    pub lint: Lint,
    /// Number of such occurrences.
    pub count: u64,
    /// Whether the lint reaches the threshold and counts.
    pub fails: bool,
    /// Whether the lint counts, or why it does not.
    pub disposition: Disposition,
    /// The library inside which all of its calls lie, so that the program cannot mend it.
    pub library: Option<String>,
    /// The traces in which the lint occurs, in a report over several traces.
    pub(crate) traces: Vec<InTrace>,
    /// The trace that tells of it, among several.
    pub(crate) part: usize,
    /// The tests that made it, where the program marked its tests.
    pub(crate) tests: Vec<InTest>,
}

/// Lints as they come, and the operations that races name as what comes nearest to ordering them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lints {
    held: BTreeMap<Fingerprint, Vec<Lint>>,
    more: BTreeMap<Fingerprint, u64>,
    explained: BTreeSet<(RaceClass, OpSeq)>,
    /// Streams that race with each other, the lower id first.
    racing: BTreeSet<[StreamId; 2]>,
}

impl LintGroup {
    /// Whether reports for people only count it: inside a library, and it neither fails the build
    /// nor is settled by the gate.
    pub(crate) fn is_only_counted(&self) -> bool {
        self.library.is_some() && !self.fails && self.disposition == Disposition::Open
    }
}

impl Report<'_> {
    /// `3 lints of calls inside NCCL and XLA, seen 70 times`, where there are any that are only
    /// counted.
    pub(crate) fn library_lints_in_words(&self) -> Option<String> {
        let counted = || self.lints.iter().filter(|group| group.is_only_counted());
        let names = counted().filter_map(|group| group.library.as_deref());
        let names: Vec<_> = names.map(printable).collect();
        let names: BTreeSet<&str> = names.iter().map(|name| &**name).collect();
        if names.is_empty() {
            return None;
        }
        let lints = plural(counted().count() as u64, "lint", "lints");
        let times = counted().map(|group| group.count).sum();
        Some(format!("{lints} of calls inside {}, {}", and(&names), seen(times)))
    }
}

impl Lints {
    pub(crate) fn add(&mut self, lint: Lint) {
        let held = self.held.entry(lint.fingerprint).or_default();
        if held.len() < HELD {
            held.push(lint);
        } else {
            *self.more.entry(lint.fingerprint).or_default() += 1;
        }
    }

    /// A race bears the class of the lint that explains it, and names the lint's operation; and a race
    /// of two streams, a latent one too, says that they are not ordered.
    pub(crate) fn note_race(&mut self, finding: &Finding) {
        let is_lint = matches!(
            finding.class,
            RaceClass::WaitBeforeRecord
                | RaceClass::EventRerecorded
                | RaceClass::MemopOnlyOrder
                | RaceClass::LegacyBesideNonblocking
        );
        if let Some(nearest) = finding.nearest
            && is_lint
        {
            self.explained.insert((finding.class, nearest));
        }
        if finding.severity != Severity::Lint
            && self.racing.len() < PAIRS
            && let (Some(a), Some(b)) = (finding.first.stream, finding.second.stream)
            && a != b
        {
            self.racing.insert([a.min(b), a.max(b)]);
        }
    }

    /// The lints that explain no race and repeat none, by where they stand. Fingerprints have their
    /// call sites from here on; occurrences that are only counted count for the first site.
    /// `stream_of` answers the stream of an operation.
    pub(crate) fn ordered(
        &self,
        threshold: Threshold,
        entities: &Entities,
        mut stream_of: impl FnMut(OpSeq) -> Option<StreamId>,
    ) -> Vec<LintGroup> {
        let mut is_explained = |lint: &Lint| {
            [Some(lint.op), lint.related]
                .into_iter()
                .flatten()
                .any(|op| self.explained.contains(&(lint.class, op)))
                || self.is_told_by_race(lint, &mut stream_of)
        };
        let mut sited: BTreeMap<Fingerprint, LintGroup> = BTreeMap::new();
        for (fingerprint, held) in &self.held {
            let mut left: Vec<&Lint> = held.iter().filter(|lint| !is_explained(lint)).collect();
            left.sort_by_key(|lint| lint.op);
            let mut more = self.more.get(fingerprint).copied().unwrap_or(0);
            for lint in left {
                let fingerprint = lint.fingerprint_at_sites(entities);
                let group = sited.entry(fingerprint).or_insert_with(|| LintGroup {
                    lint: Lint { fingerprint, ..lint.clone() },
                    count: 0,
                    fails: threshold == Threshold::Lint,
                    disposition: Disposition::Open,
                    library: lint.library(entities).map(Cow::into_owned),
                    traces: Vec::new(),
                    part: 0,
                    tests: Vec::new(),
                });
                group.count += 1 + std::mem::take(&mut more);
            }
        }
        let mut groups: Vec<LintGroup> = sited.into_values().collect();
        groups.sort_by_key(|group| (group.lint.op, group.lint.fingerprint));
        groups
    }

    /// Whether a race of the two streams says already that they do not order each other.
    fn is_told_by_race(
        &self,
        lint: &Lint,
        stream_of: &mut impl FnMut(OpSeq) -> Option<StreamId>,
    ) -> bool {
        if lint.class != RaceClass::LegacyBesideNonblocking || self.racing.is_empty() {
            return false;
        }
        let beside = lint.related.and_then(stream_of);
        lint.stream.zip(beside).is_some_and(|(legacy, beside)| {
            self.racing.contains(&[legacy.min(beside), legacy.max(beside)])
        })
    }
}
