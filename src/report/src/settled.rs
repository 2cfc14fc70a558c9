//! Questions that a run left open and that measuring kernels can close, and two runs as one report.
//!
//! Open are findings of which a side is a kernel whose bytes are only bounded, `likely` ones too
//! (two launches that get the same pointer may work on interleaved rows), and the kernels of which
//! the run does not know what they touch. The second run measures these kernels, and the kernel on the
//! other side of such a finding.
//!
//! Invariants:
//! - A finding that rests on known bytes is never withdrawn, in whichever run it was found.
//! - An open finding gives way to the same finding of the second run, or to the bytes of kernels all
//!   of whose launches were measured whole; everything else of the first run stays.
//!
//! Deliberately absent: whether the second run did the same as the first one (the command compares
//! launches), and running anything.

use crate::names::{number, plural};
use crate::report::decide_verdict;
use crate::{Disposition, Group, MeasuredKernel, Report};
use std::collections::{BTreeMap, BTreeSet};
use streamsan_model::{
    Confidence, Finding, FindingAccess, Fingerprint, IncompleteReason, Mode, NodeAction, Severity,
};

/// Kernels of NCCL begin with these: the calls tell what they touch, and they wait for other ranks.
const OF_NCCL: [&str; 2] = ["ncclDevKernel", "ncclKernel"];

/// The questions that a run left open and that measuring can close.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Open {
    /// The findings, each with the mangled names of the kernels on both sides, one of which has bytes
    /// that are only bounded.
    findings: BTreeMap<(Fingerprint, Severity), BTreeSet<String>>,
    /// Findings that are `possible` for reasons of order, or of memory that no kernel touches.
    by_order: u64,
    /// Reasons of incompleteness.
    reasons: BTreeSet<IncompleteReason>,
    /// Mangled names of the kernels.
    kernels: BTreeSet<String>,
}

impl Open {
    /// Whether there is nothing to measure.
    pub fn is_empty(&self) -> bool {
        self.kernels.is_empty()
    }

    /// Mangled names of the kernels to be measured.
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.kernels.iter().map(String::as_str)
    }

    /// Whether a kernel is to be measured, by its mangled name.
    pub fn has_kernel(&self, name: &str) -> bool {
        self.kernels.contains(name)
    }

    /// Whether a finding rests on the kernel, by its mangled name, and not only a reason of
    /// incompleteness.
    pub fn decides_finding(&self, name: &str) -> bool {
        self.findings.values().any(|kernels| kernels.contains(name))
    }

    /// `41 findings are open, 2 reasons keep the run incomplete; 12 kernels decide`.
    pub fn in_words(&self) -> String {
        let mut parts = Vec::new();
        match self.findings.len() as u64 {
            0 => {}
            1 => parts.push("1 finding is open".to_owned()),
            n => parts.push(format!("{} findings are open", number(n))),
        }
        match self.reasons.len() as u64 {
            0 => {}
            1 => parts.push("1 reason keeps the run incomplete".to_owned()),
            n => parts.push(format!("{} reasons keep the run incomplete", number(n))),
        }
        if parts.is_empty() {
            parts.push("not everything is known of what kernels touch".to_owned());
        }
        let kernels = match self.kernels.len() as u64 {
            1 => "1 kernel decides".to_owned(),
            n => format!("{} kernels decide", number(n)),
        };
        format!("{}; {kernels}", parts.join(", "))
    }
}

/// The second run's answers to the questions that the first one left open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Findings that rested on bytes that were only bounded.
    pub open: u64,
    /// Those that rest on known bytes in the second run.
    pub confirmed: u64,
    /// Those that the second run does not have, where all launches of their kernels were measured
    /// whole: the measured bytes do not overlap.
    pub dismissed: u64,
    /// The others: not every launch was measured whole.
    pub left: u64,
    /// Findings that are possible for reasons of order, which nothing measures.
    pub by_order: u64,
    /// Reasons of the first run that measuring can close.
    pub reasons: u64,
    /// Those that hold in the second run, too.
    pub reasons_left: u64,
}

impl Settled {
    /// The line of the text form.
    pub fn in_words(&self) -> String {
        let mut text = match self.open {
            0 => "no finding was open".to_owned(),
            _ => format!(
                "{} open: {} confirmed, {} dismissed (the measured bytes do not overlap), {} left",
                match self.open {
                    1 => "1 finding was".to_owned(),
                    n => format!("{} findings were", number(n)),
                },
                number(self.confirmed),
                number(self.dismissed),
                number(self.left)
            ),
        };
        if self.by_order > 0 {
            text += &format!(
                "; {} possible for reasons of order, which measuring does not tell",
                plural(self.by_order, "more is", "more are")
            );
        }
        if self.reasons > 0 {
            text += &format!(
                "; {} kept the first run incomplete, {} left",
                plural(self.reasons, "reason", "reasons"),
                number(self.reasons_left)
            );
        }
        text
    }
}

/// Whether the bytes of a side are only bounded.
fn is_weak(side: &FindingAccess) -> bool {
    side.access.basis.is_weak() || side.access.mode == Mode::MayWrite
}

fn is_measurable(kernel: &str) -> bool {
    !OF_NCCL.iter().any(|prefix| kernel.starts_with(prefix))
}

/// The kernel that keeps a run incomplete and can be measured.
fn kernel_of(reason: &IncompleteReason) -> Option<&str> {
    match reason {
        IncompleteReason::UnknownKernelParameters { kernel, .. }
        | IncompleteReason::PointersInMemory { kernel, .. } => {
            Some(kernel.as_str()).filter(|kernel| is_measurable(kernel))
        }
        _ => None,
    }
}

impl<'a> Report<'a> {
    /// The open questions. `gaps` are mangled names of kernels of which the run does not know all
    /// that they touch.
    pub fn open<'b>(&self, gaps: impl IntoIterator<Item = &'b str>) -> Open {
        let mut open = Open::default();
        for group in self.groups.iter().filter(|group| is_uncertain(group)) {
            let finding = &group.finding;
            if deciding_kernels(group).is_empty() {
                open.by_order += u64::from(finding.confidence == Confidence::Possible);
                continue;
            }
            // A finding stands for several occurrences: the side whose bytes are known in the one that
            // is told may be only bounded in another.
            let kernels: BTreeSet<String> = sides(group).map(str::to_owned).collect();
            open.kernels.extend(kernels.iter().cloned());
            open.findings.insert((finding.fingerprint, finding.severity), kernels);
        }
        for reason in &self.input.reasons {
            if let Some(kernel) = kernel_of(reason) {
                open.kernels.insert(kernel.to_owned());
                open.reasons.insert(reason.clone());
            }
        }
        let gaps = gaps.into_iter().filter(|kernel| is_measurable(kernel));
        open.kernels.extend(gaps.map(str::to_owned));
        open
    }

    /// The images of the kernels of a name, as hashes of their bytes; `None` for one that nobody
    /// hashed.
    pub fn images_of(&self, kernel: &str) -> BTreeSet<Option<u64>> {
        let entities = &*self.input.entities;
        let named = entities.kernels().filter(|known| known.name == kernel);
        named.map(|known| entities.module(entities.kernel_code(known.id)?.module?)?.hash).collect()
    }

    /// Whether the kernels of a name do the same in a second copy of their module, and are launched
    /// by themselves only: their code is known, refers to no variable of the module, and is in no
    /// graph.
    pub fn may_be_twin(&self, kernel: &str) -> bool {
        let entities = &*self.input.entities;
        let named = |id| entities.kernel(id).is_some_and(|known| known.name == kernel);
        let in_graph = entities
            .graphs()
            .flat_map(|graph| &graph.nodes)
            .any(|node| matches!(node.action, NodeAction::Kernel { kernel, .. } if named(kernel)));
        let mut known = entities.kernels().filter(|known| known.name == kernel).peekable();
        known.peek().is_some()
            && !in_graph
            && known.all(|known| {
                entities
                    .kernel_code(known.id)
                    .is_some_and(|code| code.is_understood() && code.globals.is_empty())
            })
    }

    /// Whether the run is RACY whatever measuring shows of what is open.
    pub fn is_racy_without(&self, open: &Open) -> bool {
        let known = |group: &&Group| !open.findings.contains_key(&key(group));
        self.groups.iter().filter(known).any(|group| group.fails)
            || self.lints.iter().any(|group| group.fails)
    }

    /// One report over a run and the second one, which measured what the first one left open. Both
    /// were held against the gate.
    pub fn settled(first: Self, second: Self, open: &Open) -> Option<Self> {
        let found: BTreeMap<_, &Group> =
            second.groups.iter().map(|group| (key(group), group)).collect();
        let known: BTreeSet<_> = first.groups.iter().map(key).collect();
        // Races under names that the first run does not have.
        let renamed = second.groups.iter().filter(|group| !known.contains(&key(group)));
        let renamed: BTreeMap<Fingerprint, &Group> =
            renamed.map(|group| (second.pair_of(group), group)).collect();
        let mut settled = Settled {
            open: open.findings.len() as u64,
            by_order: open.by_order,
            reasons: open.reasons.len() as u64,
            ..Settled::default()
        };
        let mut given_way = BTreeSet::new();
        for group in &first.groups {
            let key = key(group);
            let Some(kernels) = open.findings.get(&key) else { continue };
            let same = found.get(&key).or_else(|| renamed.get(&first.pair_of(group)));
            let count = match same {
                Some(group) if deciding_kernels(group).is_empty() => &mut settled.confirmed,
                None if kernels.iter().all(|kernel| second.has_measured_whole(kernel)) => {
                    &mut settled.dismissed
                }
                None => {
                    settled.left += 1;
                    continue;
                }
                Some(_) => &mut settled.left,
            };
            *count += 1;
            given_way.insert(key);
        }
        let kernels: BTreeSet<&str> = open.reasons.iter().filter_map(kernel_of).collect();
        let still = second.input.reasons.iter().filter_map(kernel_of);
        settled.reasons_left = still.filter(|kernel| kernels.contains(kernel)).count() as u64;
        let mut both = Self::over(vec![first.giving_way(&given_way, open), second])?;
        both.settled = Some(settled);
        Some(both)
    }

    /// The two accesses of a finding and their memory, by call site. Two runs have the same pair of a
    /// race although they call the race by other names: a kernel that may write by what was concluded
    /// of its code turns out to read only, so that a write-after-write is a write-after-read.
    fn pair_of(&self, group: &Group) -> Fingerprint {
        let Finding { first, second, allocation, .. } = &group.finding;
        let allocation = self.input.entities.allocation(*allocation);
        let pair = Fingerprint::of([
            first.api.as_str(),
            first.kernel.as_deref().unwrap_or(""),
            second.api.as_str(),
            second.kernel.as_deref().unwrap_or(""),
            allocation.map_or("", |a| a.kind.description()),
            allocation.map_or("", |a| a.api.as_str()),
        ]);
        let stacks = [first.stack, second.stack, allocation.and_then(|a| a.stack)];
        pair.at_sites(&self.input.entities, &stacks)
    }

    /// Whether every launch of a kernel was measured whole.
    fn has_measured_whole(&self, kernel: &str) -> bool {
        let measured = self.input.coverage.as_ref().and_then(|known| known.measured.as_ref());
        let mut named = measured.iter().flat_map(|measured| &measured.kernels);
        let whole = |known: &MeasuredKernel| known.whole > 0 && known.whole == known.launches();
        named.find(|known| known.name == kernel).is_some_and(whole)
    }

    /// The report without the findings that gave way, and without the reasons that were open.
    fn giving_way(mut self, given_way: &BTreeSet<(Fingerprint, Severity)>, open: &Open) -> Self {
        self.groups.retain(|group| !given_way.contains(&key(group)));
        self.input.reasons.retain(|reason| !open.reasons.contains(reason));
        let Self { groups, lints, input, .. } = &self;
        self.verdict = decide_verdict(groups, lints, &input.reasons, input.calls());
        self
    }
}

fn key(group: &Group) -> (Fingerprint, Severity) {
    (group.finding.fingerprint, group.finding.severity)
}

/// Whether more knowledge may change a finding, and nobody has accepted it.
fn is_uncertain(group: &Group) -> bool {
    group.disposition == Disposition::Open
        && group.finding.severity != Severity::Lint
        && group.finding.confidence < Confidence::Certain
}

/// The kernels of a finding, by mangled name, that are measurable and whose bytes are only bounded.
fn deciding_kernels(group: &Group) -> Vec<&str> {
    measurable(group, is_weak).collect()
}

/// The measurable kernels of a finding, by mangled name.
fn sides(group: &Group) -> impl Iterator<Item = &str> {
    measurable(group, |_| true)
}

fn measurable(
    group: &Group,
    counts: impl Fn(&FindingAccess) -> bool,
) -> impl Iterator<Item = &str> {
    let sides = [&group.finding.first, &group.finding.second];
    let kernels = sides.into_iter().filter(move |side| counts(side));
    let kernels = kernels.filter_map(|side| side.kernel.as_deref());
    kernels.filter(|kernel| is_measurable(kernel))
}
