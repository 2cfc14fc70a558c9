//! Findings of one fingerprint.

use std::collections::BTreeMap;
use streamsan_model::{AllocationId, Finding, Fingerprint, OpSeq, Severity, Threshold};

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
    /// Whether it reaches the threshold.
    pub fails: bool,
}

/// Where a finding stands.
fn place(finding: &Finding) -> (OpSeq, OpSeq, AllocationId) {
    (finding.second.op, finding.first.op, finding.allocation)
}

/// Folds findings in any order. The groups that reach the threshold come first, then by severity
/// and by where they stand.
pub(crate) fn fold(findings: &[Finding], threshold: Threshold) -> Vec<Group> {
    let mut groups: BTreeMap<(Fingerprint, Severity), Group> = BTreeMap::new();
    for finding in findings {
        let at = finding.second.op;
        let group = groups.entry((finding.fingerprint, finding.severity)).or_insert_with(|| {
            Group { finding: finding.clone(), count: 0, first: at, last: at, fails: false }
        });
        group.count += 1;
        group.first = group.first.min(at);
        group.last = group.last.max(at);
        group.fails |= threshold.is_reached_by(finding);
        let better = finding.confidence > group.finding.confidence
            || (finding.confidence == group.finding.confidence
                && place(finding) < place(&group.finding));
        if better {
            group.finding = finding.clone();
        }
    }
    let mut groups: Vec<Group> = groups.into_values().collect();
    groups.sort_by_key(|group| {
        let finding = &group.finding;
        (!group.fails, finding.severity, place(finding), finding.fingerprint)
    });
    groups
}
