//! The kernels that a run is to measure, from what the user says and from what traces left open.

use super::trace::{Concluded, Trace};
use super::traces::traces;
use crate::error::Error;
use crate::options::{Measure, RunOptions};
use std::path::Path;
use streamsan_model::KernelGap;
use streamsan_report::{Open, Report};
use streamsan_store::KernelCount;
use streamsan_wire::{MeasureRule, Selection};

/// The selection of `--measure`; `None` where the option is not given.
///
/// # Errors
/// A trace that cannot be read.
pub(super) fn selection(options: &RunOptions) -> Result<Option<Selection>, Error> {
    if options.measure.is_empty() {
        return Ok(None);
    }
    let mut rules = Vec::new();
    for measure in &options.measure {
        match measure {
            Measure::Glob(pattern) if pattern == "*" => rules.push(MeasureRule::All),
            Measure::Glob(pattern) => rules.push(MeasureRule::Glob(pattern.clone())),
            Measure::OpenIn(path) => {
                for file in traces(std::slice::from_ref(path))? {
                    rules.extend(open_in(&file, options)?);
                }
            }
        }
    }
    Ok(Some(rules.into_iter().collect()))
}

fn open_in(file: &Path, options: &RunOptions) -> Result<Vec<MeasureRule>, Error> {
    let concluded = Concluded::open(file, options.strict_host_threads)?;
    let report = concluded.report(options.threshold.fail_on);
    let open = open_of(&report, &gaps(&concluded.trace)?);
    Ok(rules(&report, &open))
}

/// The counts of kernels of which a trace does not know all that they touch.
pub(super) fn gaps(trace: &Trace) -> Result<Vec<KernelCount>, Error> {
    match trace {
        Trace::Stored(reader) => Ok(reader.coverage()?.kernels),
        Trace::Text { .. } => Ok(Vec::new()),
    }
}

/// The questions that a run left open.
pub(super) fn open_of(report: &Report<'_>, gaps: &[KernelCount]) -> Open {
    // An image that could not be kept is no kernel.
    let gaps = gaps.iter().filter(|count| count.gap != KernelGap::ImageNotKept);
    report.open(gaps.map(|count| count.name.as_str()))
}

/// The rules that select the kernels of what is open.
pub(super) fn rules(report: &Report<'_>, open: &Open) -> Vec<MeasureRule> {
    let of = |name: &str| {
        let name = name.to_owned();
        let may_be_twin = report.may_be_twin(&name);
        let rule = |image| MeasureRule::Kernel { image, name: name.clone(), may_be_twin };
        report.images_of(&name).into_iter().map(rule).collect::<Vec<_>>()
    };
    open.kernels().flat_map(of).collect()
}
