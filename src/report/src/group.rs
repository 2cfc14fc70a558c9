//! Findings of one fingerprint.

use crate::lints::Lints;
use crate::spread::Spread;
use crate::{Disposition, InTest, InTrace, KnownUpstream};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use streamsan_model::{
    AllocationId, Entities, Finding, Fingerprint, Lint, Mode, OpSeq, Severity, StackId, Threshold,
};

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
    /// Whether the group reaches the threshold and counts.
    pub fails: bool,
    /// Whether the group counts, or why it does not.
    pub disposition: Disposition,
    /// The streams and the memory of all occurrences.
    pub(crate) spread: Spread,
    /// The traces in which the mistake occurs, in a report over several traces.
    pub(crate) traces: Vec<InTrace>,
    /// The trace that tells of it, among several.
    pub(crate) part: usize,
    /// The tests that made it, where the program marked its tests.
    pub(crate) tests: Vec<InTest>,
}

/// Where a finding stands.
fn place(finding: &Finding) -> (OpSeq, OpSeq, AllocationId) {
    (finding.second.op, finding.first.op, finding.allocation)
}

/// Call paths and allocations of one mistake that are kept apart until their names are known.
const VARIANTS: usize = 4096;

/// The key by which findings are folded while they come. Names of functions are known only at the
/// end, so stacks stand for call sites until then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    fingerprint: Fingerprint,
    severity: Severity,
    /// The part that differs between occurrences, where stacks are recorded.
    variant: Option<Variant>,
}

/// Properties that may differ between occurrences of one mistake, and that decide whose the
/// occurrence is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Variant {
    stacks: [Option<StackId>; 2],
    modes: [Mode; 2],
    allocation: AllocationId,
}

impl Key {
    fn of(finding: &Finding) -> Self {
        let stacks = [finding.first.stack, finding.second.stack];
        let is_recorded = stacks.iter().any(Option::is_some);
        Self {
            fingerprint: finding.fingerprint,
            severity: finding.severity,
            variant: is_recorded.then_some(Variant {
                stacks,
                modes: [finding.first.access.mode, finding.second.access.mode],
                allocation: finding.allocation,
            }),
        }
    }
}

impl Group {
    fn of(finding: Finding) -> Self {
        let at = finding.second.op;
        let mut spread = Spread::default();
        spread.add(&finding);
        Self {
            spread,
            finding,
            count: 1,
            first: at,
            last: at,
            fails: false,
            disposition: Disposition::Open,
            traces: Vec::new(),
            part: 0,
            tests: Vec::new(),
        }
    }

    /// Adds an occurrence for which it is not yet known whether it counts.
    fn add(&mut self, finding: Finding) {
        let at = finding.second.op;
        self.spread.add(&finding);
        self.count(1, [at, at], finding, Disposition::Open);
    }

    /// Takes the occurrences of another group of the same mistake.
    fn absorb(&mut self, other: Self) {
        self.spread.absorb(&other.spread);
        self.count(other.count, [other.first, other.last], other.finding, other.disposition);
    }

    /// Counts occurrences from the first to the last one; the report shows `new`. An occurrence
    /// that counts represents the mistake rather than one that is known upstream, so that known
    /// occurrences hide none.
    fn count(
        &mut self,
        count: u64,
        [first, last]: [OpSeq; 2],
        new: Finding,
        disposition: Disposition,
    ) {
        self.count += count;
        self.first = self.first.min(first);
        self.last = self.last.max(last);
        let weight = |finding: &Finding, disposition: &Disposition| {
            let is_open = *disposition == Disposition::Open;
            (is_open, finding.confidence, std::cmp::Reverse(place(finding)))
        };
        if weight(&new, &disposition) > weight(&self.finding, &self.disposition) {
            (self.finding, self.disposition) = (new, disposition);
        }
    }
}

/// Findings folded as they come, in any order: a mistake that occurs a million times takes the room
/// of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folded {
    groups: BTreeMap<Key, Group>,
    /// Entries of each mistake.
    variants: BTreeMap<(Fingerprint, Severity), usize>,
    pub(crate) lints: Lints,
    /// Fingerprints have their call sites already.
    is_sited: bool,
}

impl Folded {
    /// Makes the group of one finding whose fingerprint has its call sites already, for the viewer.
    pub fn of_sited(finding: Finding) -> Self {
        let mut folded = Self { is_sited: true, ..Self::default() };
        folded.add(finding);
        folded
    }

    /// Adds an occurrence of a lint.
    pub fn add_lint(&mut self, lint: Lint) {
        self.lints.add(lint);
    }

    /// Adds an occurrence.
    pub fn add(&mut self, finding: Finding) {
        self.lints.note_race(&finding);
        let mut key = Key::of(&finding);
        if !self.groups.contains_key(&key) {
            let variants = self.variants.entry((key.fingerprint, key.severity)).or_default();
            if *variants >= VARIANTS {
                key.variant = None;
            } else {
                *variants += 1;
            }
        }
        match self.groups.entry(key) {
            Entry::Vacant(entry) => {
                entry.insert(Group::of(finding));
            }
            Entry::Occupied(entry) => entry.into_mut().add(finding),
        }
    }

    /// The finding that stands for each mistake.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Finding> {
        self.groups.values_mut().map(|group| &mut group.finding)
    }

    /// Orders the groups: those that reach the threshold first, then by severity and by place. From
    /// here on fingerprints have their call sites, and known upstream races are decided.
    pub(crate) fn ordered(
        &self,
        threshold: Threshold,
        entities: &Entities,
        upstream: Option<&KnownUpstream>,
    ) -> Vec<Group> {
        let mut sited: BTreeMap<(Fingerprint, Severity), Group> = BTreeMap::new();
        for (key, group) in &self.groups {
            let mut group = group.clone();
            // Beyond the limit, only one call path stands for all.
            let known = upstream.filter(|_| self.is_sited || key.variant.is_some());
            if let Some(entry) = known.and_then(|list| list.entry_of(&group.finding, entities)) {
                group.disposition = Disposition::Upstream(entry.into());
            }
            if !self.is_sited {
                group.finding.fingerprint = group.finding.fingerprint_at_sites(entities);
            }
            match sited.entry((group.finding.fingerprint, group.finding.severity)) {
                Entry::Vacant(entry) => {
                    entry.insert(group);
                }
                Entry::Occupied(entry) => entry.into_mut().absorb(group),
            }
        }
        let mut groups: Vec<Group> = sited.into_values().collect();
        for group in &mut groups {
            // The finding that stands for the group is one of its most certain ones.
            group.fails =
                group.disposition == Disposition::Open && threshold.is_reached_by(&group.finding);
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
