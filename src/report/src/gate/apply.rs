//! Suppressions and a baseline, applied to a report.

use super::{Baseline, KernelNames, Suppressions};
use crate::{Report, UpstreamEntry};
use chrono::NaiveDate;
use std::collections::BTreeSet;
use streamsan_model::{Fingerprint, Severity};
use streamsan_names::printable_line;

/// The disposition of a finding: whether it counts, or why not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Disposition {
    /// The finding counts.
    #[default]
    Open,
    /// The baseline knows it: it counts no more.
    Known,
    /// A suppression accepts it.
    Suppressed {
        /// Line of the suppression.
        line: usize,
        /// Why.
        reason: String,
    },
    /// The finding is a race known in a library, which the program cannot mend.
    Upstream(Upstream),
    /// The tests that made it allow it.
    Allowed,
}

/// The shipped list's entry for a race known in a library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// The name of the entry.
    pub entry: String,
    /// The library's usual name.
    pub library: String,
    /// The mistake in the library.
    pub reason: String,
    /// The public report that comes nearest to it.
    pub report: Option<String>,
}

impl From<&UpstreamEntry> for Upstream {
    fn from(entry: &UpstreamEntry) -> Self {
        Self {
            entry: entry.name.clone(),
            library: entry.library.clone(),
            reason: entry.reason.clone(),
            report: entry.report.clone(),
        }
    }
}

impl Upstream {
    /// `cuFFT, cufft-plan-table: what happens there (https://...)`.
    pub fn description(&self) -> String {
        let Self { entry, library, reason, report } = self;
        let report = report.as_ref().map_or(String::new(), |report| format!(" ({report})"));
        format!("{library}, {entry}: {reason}{report}")
    }
}

impl Disposition {
    /// The word of reports.
    pub const fn description(&self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Known => "known",
            Self::Suppressed { .. } => "suppressed",
            Self::Upstream(_) => "known upstream",
            Self::Allowed => "allowed",
        }
    }

    /// The shipped list's entry, for a race known in a library.
    pub const fn upstream(&self) -> Option<&Upstream> {
        match self {
            Self::Upstream(upstream) => Some(upstream),
            Self::Open | Self::Known | Self::Suppressed { .. } | Self::Allowed => None,
        }
    }

    /// Whether a suppression, the shipped list or its tests accept the finding, so that a baseline need
    /// not name it.
    pub const fn is_accepted(&self) -> bool {
        matches!(self, Self::Suppressed { .. } | Self::Upstream(_) | Self::Allowed)
    }

    /// What is open by the user's files stays allowed by its tests.
    fn unless_allowed(self, before: &Self) -> Self {
        if self == Self::Open && *before == Self::Allowed { Self::Allowed } else { self }
    }

    /// Whether a suppression accepts it.
    pub const fn is_suppressed(&self) -> bool {
        matches!(self, Self::Suppressed { .. })
    }
}

/// Suppressions, baseline and list of known races that a report is checked against.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gate {
    /// The accepted findings.
    pub suppressions: Option<Suppressions>,
    /// The findings of an earlier run.
    pub baseline: Option<Baseline>,
    /// The day on which expiry is decided.
    pub today: NaiveDate,
}

/// Entries that do nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unused {
    /// A suppression that accepted nothing.
    Suppression {
        /// Its line.
        line: usize,
    },
    /// A suppression that would accept something and has expired.
    Expired {
        /// Its line.
        line: usize,
        /// Its last day.
        last: NaiveDate,
    },
    /// A finding of the baseline that was not found.
    Gone {
        /// The line of the baseline.
        entry: String,
    },
}

impl Unused {
    /// The line of a suppression.
    pub(crate) fn line(&self) -> Option<usize> {
        match self {
            Self::Suppression { line } | Self::Expired { line, .. } => Some(*line),
            Self::Gone { .. } => None,
        }
    }

    /// The line of reports.
    pub fn description(&self) -> String {
        match self {
            Self::Suppression { line } => {
                format!("the suppression in line {line} matches nothing; remove it")
            }
            Self::Expired { line, last } => {
                format!("the suppression in line {line} has expired (its last day was {last})")
            }
            Self::Gone { entry } => {
                format!("in the baseline and not found: {}", printable_line(entry))
            }
        }
    }
}

impl Report<'_> {
    /// Holds the report against suppressions and a baseline, and decides the verdict again.
    pub fn hold_against(&mut self, gate: &Gate) {
        let empty = Suppressions::default();
        let suppressions = gate.suppressions.as_ref().unwrap_or(&empty);
        let entities = &*self.input.entities;
        let mut used = BTreeSet::new();
        let mut expired = BTreeSet::new();
        // Every entry that matches is in use, so that the order of the file decides nothing. What the
        // user says of a finding counts before what the shipped list says, and that before the
        // baseline.
        let mut decide = |id: Fingerprint,
                          severity,
                          upstream: Option<Upstream>,
                          accepts: &dyn Fn(usize) -> bool| {
            let mut disposition = Disposition::Open;
            for (index, entry) in suppressions.entries.iter().enumerate() {
                if !accepts(index) {
                } else if entry.is_expired(gate.today) {
                    expired.insert(index);
                } else {
                    used.insert(index);
                    if disposition == Disposition::Open {
                        let (line, reason) = (entry.line, entry.reason.clone());
                        disposition = Disposition::Suppressed { line, reason };
                    }
                }
            }
            if let (Disposition::Open, Some(upstream)) = (&disposition, upstream) {
                disposition = Disposition::Upstream(upstream);
            }
            let known = gate.baseline.as_ref().is_some_and(|b| b.knows(id, severity));
            if disposition == Disposition::Open && known {
                disposition = Disposition::Known;
            }
            disposition
        };
        let entry = |index: usize| &suppressions.entries[index];
        for group in &mut self.groups {
            let finding = &group.finding;
            let kernels = KernelNames::of(finding);
            let upstream = group.disposition.upstream().cloned();
            let disposition = decide(finding.fingerprint, finding.severity, upstream, &|index| {
                entry(index).accepts(group, &kernels, entities)
            });
            group.disposition = disposition.unless_allowed(&group.disposition);
            group.fails &= group.disposition == Disposition::Open;
        }
        for group in &mut self.lints {
            let lint = &group.lint;
            let disposition = decide(lint.fingerprint, Severity::Lint, None, &|index| {
                entry(index).accepts_lint(lint, entities)
            });
            group.disposition = disposition.unless_allowed(&group.disposition);
            group.fails &= group.disposition == Disposition::Open;
        }
        self.has_baseline = gate.baseline.is_some();
        // Groups that still fail come first, as before.
        self.groups.sort_by_key(|group| !group.fails);
        self.unused = (0..suppressions.entries.len())
            .filter(|index| !used.contains(index))
            .map(|index| match entry(index).expires {
                Some(last) if expired.contains(&index) => {
                    Unused::Expired { line: entry(index).line, last }
                }
                _ => Unused::Suppression { line: entry(index).line },
            })
            .collect();
        let is_found = |id: u64, severity: Severity| {
            let lint = |g: &crate::LintGroup| g.lint.fingerprint.short() == id;
            self.groups
                .iter()
                .any(|g| g.finding.fingerprint.short() == id && g.finding.severity == severity)
                || (severity == Severity::Lint && self.lints.iter().any(lint))
        };
        let gone = gate.baseline.iter().flat_map(|baseline| &baseline.known);
        let gone = gone.filter(|((id, severity), _)| !is_found(*id, *severity));
        let gone: Vec<Unused> =
            gone.map(|(_, entry)| Unused::Gone { entry: entry.clone() }).collect();
        self.unused.extend(gone);
        self.decide();
    }

    /// Entries of the gate that did nothing.
    pub fn unused(&self) -> &[Unused] {
        &self.unused
    }
}
