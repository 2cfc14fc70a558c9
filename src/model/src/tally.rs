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
    /// Mistakes of libraries that are known there, and count for nothing.
    pub upstream: u64,
    /// Occurrences of all of them.
    pub occurrences: u64,
}

impl Tally {
    /// Counts findings whose fingerprints have their call sites, each with whether it is known
    /// upstream. A mistake is known only where all of its occurrences are.
    pub fn of<'a>(
        findings: impl IntoIterator<Item = (&'a Finding, bool)>,
        threshold: Threshold,
    ) -> Self {
        let mut surest: BTreeMap<(Fingerprint, Severity), (bool, Confidence, bool)> =
            BTreeMap::new();
        let mut tally = Self::default();
        for (finding, is_known) in findings {
            tally.occurrences += 1;
            let this = (!is_known, finding.confidence, threshold.is_reached_by(finding));
            let best = surest.entry((finding.fingerprint, finding.severity)).or_insert(this);
            *best = this.max(*best);
        }
        for ((_, severity), (is_open, _, fails)) in surest {
            *match (is_open, fails, severity) {
                (false, ..) => &mut tally.upstream,
                (true, true, Severity::Race) => &mut tally.races,
                (true, true, _) => &mut tally.others,
                (true, false, _) => &mut tally.below,
            } += 1;
        }
        tally
    }

    /// The mistakes of all kinds.
    pub fn mistakes(&self) -> u64 {
        self.races + self.others + self.below + self.upstream
    }
}
