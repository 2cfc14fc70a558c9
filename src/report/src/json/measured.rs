//! The counts of measuring, in the JSON form.

use serde::Serialize;

/// Launches of the kernels that were to be measured.
#[derive(Serialize)]
pub(super) struct MeasuredJson<'a> {
    kernels: usize,
    launches: u64,
    whole: u64,
    in_part: u64,
    not_measured: u64,
    by_kernel: Vec<MeasuredKernelJson<'a>>,
    reasons: Vec<WhyNot<'a>>,
    off: Vec<Off<'a>>,
}

#[derive(Serialize)]
pub(super) struct MeasuredKernelJson<'a> {
    kernel: &'a str,
    launches: u64,
    whole: u64,
    in_part: u64,
    not_measured: u64,
    follows_pointers: u64,
    outside: u64,
}

#[derive(Serialize)]
pub(super) struct WhyNot<'a> {
    reason: &'a str,
    launches: u64,
}

#[derive(Serialize)]
pub(super) struct Off<'a> {
    reason: &'a str,
    processes: u64,
}

/// The second run's answers to the questions that the first one left open.
#[derive(Serialize)]
pub(super) struct Settling {
    open: u64,
    confirmed: u64,
    dismissed: u64,
    left: u64,
    by_order: u64,
    reasons: u64,
    reasons_left: u64,
}

pub(super) fn measured(measured: &crate::Measured) -> MeasuredJson<'_> {
    let by_kernel = measured.kernels.iter().map(|kernel| MeasuredKernelJson {
        kernel: &kernel.name,
        launches: kernel.launches(),
        whole: kernel.whole,
        in_part: kernel.in_part,
        not_measured: kernel.not_measured,
        follows_pointers: kernel.follows_pointers,
        outside: kernel.outside,
    });
    let reasons = measured.reasons.iter();
    let off = measured.off.iter();
    MeasuredJson {
        kernels: measured.kernels.len(),
        launches: measured.sum(crate::MeasuredKernel::launches),
        whole: measured.sum(|kernel| kernel.whole),
        in_part: measured.sum(|kernel| kernel.in_part),
        not_measured: measured.sum(|kernel| kernel.not_measured),
        by_kernel: by_kernel.collect(),
        reasons: reasons.map(|(reason, launches)| WhyNot { reason, launches: *launches }).collect(),
        off: off.map(|(reason, processes)| Off { reason, processes: *processes }).collect(),
    }
}

pub(super) fn settled(settled: &crate::Settled) -> Settling {
    let crate::Settled { open, confirmed, dismissed, left, by_order, reasons, reasons_left } =
        *settled;
    Settling { open, confirmed, dismissed, left, by_order, reasons, reasons_left }
}
