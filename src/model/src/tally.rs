//! Findings counted, the same in reports, exports and the viewer.
//!
//! All occurrences with one fingerprint and severity are one mistake. Its surest occurrence stands
//! for it and decides whether it reaches a threshold.

use crate::{Confidence, Finding, Fingerprint, Severity, Threshold};
use std::collections::BTreeMap;

/// The mistakes of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Races that reach the threshold.
    pub races: u64,
    /// Other mistakes that reach the threshold.
    pub others: u64,
    /// Mistakes that do not reach it.
    pub below: u64,
    /// Occurrences of all of them.
    pub occurrences: u64,
}

impl Tally {
    /// Counts findings whose fingerprints have their call sites.
    pub fn of<'a>(findings: impl IntoIterator<Item = &'a Finding>, threshold: Threshold) -> Self {
        let mut surest: BTreeMap<(Fingerprint, Severity), (Confidence, bool)> = BTreeMap::new();
        let mut tally = Self::default();
        for finding in findings {
            tally.occurrences += 1;
            let this = (finding.confidence, threshold.is_reached_by(finding));
            let best = surest.entry((finding.fingerprint, finding.severity)).or_insert(this);
            *best = this.max(*best);
        }
        for ((_, severity), (_, fails)) in surest {
            *match (fails, severity) {
                (true, Severity::Race) => &mut tally.races,
                (true, _) => &mut tally.others,
                (false, _) => &mut tally.below,
            } += 1;
        }
        tally
    }
}
