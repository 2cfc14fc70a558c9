//! Lints folded by fingerprint, and what becomes of those that explain a race.

use crate::Disposition;
use std::collections::{BTreeMap, BTreeSet};
use streamsan_model::{Finding, Fingerprint, Lint, OpSeq, RaceClass, Threshold};

/// Occurrences of a lint that are held against the races; later ones are only counted.
const HELD: usize = 4096;

/// Lints of one fingerprint: one mistake, however often it occurs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LintGroup {
    /// The first occurrence that no race explains better.
    pub lint: Lint,
    /// Number of such occurrences.
    pub count: u64,
    /// Whether it reaches the threshold and counts.
    pub fails: bool,
    /// Whether it counts, or why it does not.
    pub disposition: Disposition,
}

/// Lints as they come, and the operations that races name as what comes nearest to ordering them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lints {
    held: BTreeMap<Fingerprint, Vec<Lint>>,
    more: BTreeMap<Fingerprint, u64>,
    explained: BTreeSet<(RaceClass, OpSeq)>,
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

    /// A race bears the class of the lint that explains it, and names the lint's operation.
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
    }

    /// The lints that explain no race, by where they stand.
    pub(crate) fn ordered(&self, threshold: Threshold) -> Vec<LintGroup> {
        let is_explained = |lint: &Lint| {
            [Some(lint.op), lint.related]
                .into_iter()
                .flatten()
                .any(|op| self.explained.contains(&(lint.class, op)))
        };
        let group = |(fingerprint, held): (&Fingerprint, &Vec<Lint>)| {
            let left = held.iter().filter(|lint| !is_explained(lint));
            let count = left.clone().count() as u64;
            Some(LintGroup {
                lint: left.min_by_key(|lint| lint.op)?.clone(),
                count: count + self.more.get(fingerprint).copied().unwrap_or(0),
                fails: threshold == Threshold::Lint,
                disposition: Disposition::Open,
            })
        };
        let mut groups: Vec<LintGroup> = self.held.iter().filter_map(group).collect();
        groups.sort_by_key(|group| (group.lint.op, group.lint.fingerprint));
        groups
    }
}
