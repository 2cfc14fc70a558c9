//! The recording's coverage, as far as reports tell it.

use crate::names::{number, plural};
use std::collections::BTreeMap;
use streamsan_names::printable;

use streamsan_model::HostAccesses;

/// Summary of coverage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Driver calls seen.
    pub calls: u64,
    /// Records lost.
    pub dropped: u64,
    /// Entry points that may order or touch memory and are not understood, with their calls.
    pub not_understood: Vec<(String, u64)>,
    /// The way to learn what unread kernels touch, where there is one.
    pub unread: Option<UnreadKernels>,
    /// How far the host's own loads and stores were watched; `None` where nothing needed watching, or
    /// nobody knows.
    pub host_accesses: Option<HostAccesses>,
    /// The counts of measuring; `None` where nothing was to be measured.
    pub measured: Option<Measured>,
}

/// Kernels that are machine code which nothing could read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadKernels {
    /// Number of launched kernels whose code could not be read.
    pub kernels: u64,
    /// The Python package that brings what reads it.
    pub package: String,
}

/// The outcome for the kernels that were to be measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// The kernels that were launched, by name.
    pub kernels: Vec<MeasuredKernel>,
    /// Why launches were not measured, and how many.
    pub reasons: Vec<(String, u64)>,
    /// Why nothing was measured in a process, and in how many.
    pub off: Vec<(String, u64)>,
}

/// The launches of a kernel that was to be measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct MeasuredKernel {
    /// The mangled name.
    pub name: String,
    /// Launches of which every byte was seen.
    pub whole: u64,
    /// Launches of which some accesses were seen, or bounds.
    pub in_part: u64,
    /// Launches of which nothing was seen.
    pub not_measured: u64,
    /// Launches that follow pointers which the kernel loads from memory, of those that were measured
    /// whole.
    pub follows_pointers: u64,
    /// Launches that touched bytes outside of what the kernel's code was read to touch.
    pub outside: u64,
}

impl MeasuredKernel {
    /// All launches.
    pub fn launches(&self) -> u64 {
        self.whole + self.in_part + self.not_measured
    }
}

impl Measured {
    /// Launches of all kernels, by a count of one.
    pub(crate) fn sum(&self, count: fn(&MeasuredKernel) -> u64) -> u64 {
        self.kernels.iter().map(count).sum()
    }

    /// The sums over several traces.
    pub(crate) fn over<'a>(parts: impl Iterator<Item = &'a Self>) -> Option<Self> {
        let (mut kernels, mut any) = (BTreeMap::<&str, MeasuredKernel>::new(), false);
        let mut counts = [BTreeMap::<&str, u64>::new(), BTreeMap::new()];
        for part in parts {
            any = true;
            for kernel in &part.kernels {
                let sum = kernels.entry(&kernel.name).or_default();
                sum.name.clone_from(&kernel.name);
                sum.whole += kernel.whole;
                sum.in_part += kernel.in_part;
                sum.not_measured += kernel.not_measured;
                sum.follows_pointers += kernel.follows_pointers;
                sum.outside += kernel.outside;
            }
            for (sums, list) in counts.iter_mut().zip([&part.reasons, &part.off]) {
                for (reason, count) in list {
                    *sums.entry(reason).or_default() += count;
                }
            }
        }
        let [reasons, off] = counts.map(|sums| {
            sums.into_iter().map(|(reason, count)| (reason.to_owned(), count)).collect()
        });
        any.then(|| Self { kernels: kernels.into_values().collect(), reasons, off })
    }

    /// The lines of the text form.
    pub(crate) fn in_words(&self) -> Vec<String> {
        let kernels = self.kernels.iter().filter(|kernel| kernel.whole + kernel.in_part > 0);
        let follow = self.kernels.iter().filter(|kernel| kernel.follows_pointers > 0).count();
        let mut text = format!(
            "{} measured in this run",
            plural(kernels.count() as u64, "kernel was", "kernels were"),
        );
        match follow {
            0 => {}
            1 => text += "; 1 of them touches what its data says",
            n => text += &format!("; {} of them touch what their data says", number(n as u64)),
        }
        let launches = plural(self.sum(MeasuredKernel::launches), "launch", "launches");
        text += &format!("; {launches}");
        for (count, what) in [
            (self.sum(|kernel| kernel.in_part), "in part"),
            (self.sum(|kernel| kernel.not_measured), "not measured"),
        ] {
            if count > 0 {
                text += &format!(", {} {what}", number(count));
            }
        }
        let mut lines = vec![text];
        for kernel in self.kernels.iter().filter(|kernel| kernel.outside > 0) {
            lines.push(format!(
                "{} of {} touched bytes that the kernel's code was read not to touch: an access out of \
                 bounds, or an error of streamsan, which its authors want to know of",
                plural(kernel.outside, "launch", "launches"),
                printable(&kernel.name)
            ));
        }
        for (reason, count) in &self.reasons {
            let launches = plural(*count, "launch", "launches");
            lines.push(format!("{launches} not measured: {}", printable(reason)));
        }
        for (reason, count) in &self.off {
            let processes = plural(*count, "process", "processes");
            lines.push(format!("nothing was measured in {processes}: {}", printable(reason)));
        }
        lines
    }
}
