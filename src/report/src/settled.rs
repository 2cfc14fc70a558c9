//! What is open after a run and can be closed by measuring kernels, and two runs as one report.
//!
//! Open are `possible` findings of which a side is a kernel whose bytes are only bounded, and the
//! kernels of which the run does not know what they touch. The second run measures these kernels.
//!
//! Invariants:
//! - A finding that fails is never withdrawn, in whichever run it was found.
//! - What gives way is exactly what was open; everything else of the first run stays.
//!
//! Deliberately absent: whether the second run did the same as the first one (the command compares
//! launches), and running anything.

use crate::names::{number, plural};
use crate::report::decide_verdict;
use crate::{Disposition, Group, Report};
use std::collections::BTreeSet;
use streamsan_model::{Confidence, FindingAccess, Fingerprint, IncompleteReason, Mode, Severity};

/// Kernels of NCCL begin with these: the calls tell what they touch, and they wait for other ranks.
const OF_NCCL: [&str; 2] = ["ncclDevKernel", "ncclKernel"];

/// What a run left open and measuring can close.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Open {
    /// The findings.
    findings: BTreeSet<(Fingerprint, Severity)>,
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

    /// `41 findings are possible, 2 reasons make the run incomplete; 12 kernels decide`.
    pub fn in_words(&self) -> String {
        let mut parts = Vec::new();
        match self.findings.len() as u64 {
            0 => {}
            1 => parts.push("1 finding is possible".to_owned()),
            n => parts.push(format!("{} findings are possible", number(n))),
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

/// What the second run made of what the first one left open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Findings that were possible.
    pub possible: u64,
    /// Those that are sure by now.
    pub confirmed: u64,
    /// Those whose measured bytes do not overlap.
    pub dismissed: u64,
    /// Those that are as they were.
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
        let mut text = match self.possible {
            0 => "no finding was possible only".to_owned(),
            _ => format!(
                "{} possible: {} confirmed, {} dismissed (the measured bytes do not overlap), {} left",
                match self.possible {
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
    /// What is open. `gaps` are mangled names of kernels of which the run does not know all that they
    /// touch.
    pub fn open<'b>(&self, gaps: impl IntoIterator<Item = &'b str>) -> Open {
        let mut open = Open::default();
        for group in self.groups.iter().filter(|group| is_possible(group)) {
            let finding = &group.finding;
            let sides = [&finding.first, &finding.second];
            let kernels = sides.into_iter().filter(|side| is_weak(side));
            let kernels = kernels.filter_map(|side| side.kernel.as_deref());
            let kernels: Vec<&str> = kernels.filter(|kernel| is_measurable(kernel)).collect();
            if kernels.is_empty() {
                open.by_order += 1;
                continue;
            }
            open.findings.insert((finding.fingerprint, finding.severity));
            open.kernels.extend(kernels.into_iter().map(str::to_owned));
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
        let entities = self.input.entities;
        let named = entities.kernels().filter(|known| known.name == kernel);
        named.map(|known| entities.module(entities.kernel_code(known.id)?.module?)?.hash).collect()
    }

    /// One report over a run and the second one, which measured what the first one left open. Both
    /// were held against the gate.
    pub fn settled(first: Self, second: Self, open: &Open) -> Option<Self> {
        let count = |settled: fn(&Group) -> bool| {
            let groups = second.groups.iter().filter(|group| {
                open.findings.contains(&(group.finding.fingerprint, group.finding.severity))
            });
            groups.filter(|group| settled(group)).count() as u64
        };
        let possible = open.findings.len() as u64;
        let left = count(|group| group.finding.confidence == Confidence::Possible);
        let confirmed = count(|group| group.finding.confidence > Confidence::Possible);
        let kernels: BTreeSet<&str> = open.reasons.iter().filter_map(kernel_of).collect();
        let still = second.input.reasons.iter().filter_map(kernel_of);
        let settled = Settled {
            possible,
            confirmed,
            dismissed: possible - left - confirmed,
            left,
            by_order: open.by_order,
            reasons: open.reasons.len() as u64,
            reasons_left: still.filter(|kernel| kernels.contains(kernel)).count() as u64,
        };
        let mut both = Self::over(vec![first.giving_way(open), second])?;
        both.settled = Some(settled);
        Some(both)
    }

    /// The report without what was open.
    fn giving_way(mut self, open: &Open) -> Self {
        self.groups.retain(|group| {
            let key = (group.finding.fingerprint, group.finding.severity);
            group.fails || !open.findings.contains(&key)
        });
        self.input.reasons.retain(|reason| !open.reasons.contains(reason));
        let Self { groups, lints, input, .. } = &self;
        self.verdict = decide_verdict(groups, lints, &input.reasons, input.calls());
        self
    }
}

/// Whether a finding counts for nothing for want of knowledge, and nobody has accepted it.
fn is_possible(group: &Group) -> bool {
    !group.fails
        && group.disposition == Disposition::Open
        && group.finding.severity != Severity::Lint
        && group.finding.confidence == Confidence::Possible
}
