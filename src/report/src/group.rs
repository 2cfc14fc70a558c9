//! Findings of one fingerprint.

use crate::Disposition;
use crate::lints::Lints;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use streamsan_model::{AllocationId, Finding, Fingerprint, Lint, OpSeq, Severity, Threshold};

/// Findings of one fingerprint and severity: one mistake, however often it occurs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The first occurrence among those of the highest confidence.
    pub finding: Finding,
    /// Number of occurrences.
    pub count: u64,
    /// The operation at which the first occurrence stands.
    pub first: OpSeq,
    /// The operation at which the last occurrence stands.
    pub last: OpSeq,
    /// Whether it reaches the threshold and counts.
    pub fails: bool,
    /// Whether it counts, or why it does not.
    pub disposition: Disposition,
}

/// Where a finding stands.
fn place(finding: &Finding) -> (OpSeq, OpSeq, AllocationId) {
    (finding.second.op, finding.first.op, finding.allocation)
}

/// Findings folded as they come, in any order: a mistake that occurs a million times takes the room
/// of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folded {
    groups: BTreeMap<(Fingerprint, Severity), Group>,
    pub(crate) lints: Lints,
}

impl Folded {
    /// Adds an occurrence of a lint.
    pub fn add_lint(&mut self, lint: Lint) {
        self.lints.add(lint);
    }

    /// Adds an occurrence.
    pub fn add(&mut self, finding: Finding) {
        let at = finding.second.op;
        self.lints.note_race(&finding);
        match self.groups.entry((finding.fingerprint, finding.severity)) {
            Entry::Vacant(entry) => {
                entry.insert(Group {
                    finding,
                    count: 1,
                    first: at,
                    last: at,
                    fails: false,
                    disposition: Disposition::Open,
                });
            }
            Entry::Occupied(entry) => {
                let group = entry.into_mut();
                group.count += 1;
                group.first = group.first.min(at);
                group.last = group.last.max(at);
                let better = finding.confidence > group.finding.confidence
                    || (finding.confidence == group.finding.confidence
                        && place(&finding) < place(&group.finding));
                if better {
                    group.finding = finding;
                }
            }
        }
    }

    /// The finding that stands for each mistake.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Finding> {
        self.groups.values_mut().map(|group| &mut group.finding)
    }

    /// The groups that reach the threshold first, then by severity and by where they stand.
    pub(crate) fn ordered(&self, threshold: Threshold) -> Vec<Group> {
        let mut groups: Vec<Group> = self.groups.values().cloned().collect();
        for group in &mut groups {
            // The finding that stands for the group is one of its most certain ones.
            group.fails = threshold.is_reached_by(&group.finding);
        }
        groups.sort_by_key(|group| {
            let finding = &group.finding;
            (!group.fails, finding.severity, place(finding), finding.fingerprint)
        });
        groups
    }
}

impl FromIterator<Finding> for Folded {
    fn from_iter<T: IntoIterator<Item = Finding>>(findings: T) -> Self {
        let mut folded = Self::default();
        findings.into_iter().for_each(|finding| folded.add(finding));
        folded
    }
}
