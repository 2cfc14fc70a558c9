//! Reports of the simulated driver, exactly what kernels touched, and of what was measured.

use std::collections::HashMap;
use streamsan_wire::{Access, MeasuredRun, ProcessKey};

/// The accesses of one launch's kernel.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) process: ProcessKey,
    /// Entry index of the launch; 0 for none.
    pub(crate) launch: u64,
    pub(crate) touched: Vec<Access>,
}

/// The bytes measured of one launch's kernel.
#[derive(Debug)]
pub(crate) struct MeasuredReport {
    pub(crate) process: ProcessKey,
    /// Entry index of the launch.
    pub(crate) launch: u64,
    /// The handle of the graph's node, or 0 for the launch of a kernel.
    pub(crate) node: u64,
    pub(crate) runs: Vec<MeasuredRun>,
    /// The flags of the list, as the wire has them.
    pub(crate) flags: u32,
}

/// The reports that cannot be used yet.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    /// Reports of which further parts follow, by launch.
    begun: HashMap<u64, Vec<Access>>,
    whole: Vec<Report>,
    /// Reports that came before their launch was resolved, by launch.
    early: HashMap<u64, Vec<Access>>,
    measured_begun: HashMap<(u64, u64), Vec<MeasuredRun>>,
    measured: Vec<MeasuredReport>,
}

impl Reports {
    /// Takes a part of a report, the last one if `complete`.
    pub(crate) fn part(
        &mut self,
        process: ProcessKey,
        launch: u64,
        part: impl Iterator<Item = Access>,
        complete: bool,
    ) {
        let touched = self.begun.entry(launch).or_default();
        touched.extend(part);
        if complete {
            let touched = self.begun.remove(&launch).unwrap_or_default();
            self.whole.push(Report { process, launch, touched });
        }
    }

    /// Takes a part of what was measured of a launch, or of a node of it, the last one if `complete`.
    pub(crate) fn measured_part(
        &mut self,
        process: ProcessKey,
        (launch, node): (u64, u64),
        (part, flags): (impl Iterator<Item = MeasuredRun>, u32),
        complete: bool,
    ) {
        let runs = self.measured_begun.entry((launch, node)).or_default();
        runs.extend(part);
        if complete {
            let runs = self.measured_begun.remove(&(launch, node)).unwrap_or_default();
            self.measured.push(MeasuredReport { process, launch, node, runs, flags });
        }
    }

    /// The measurements of launches that were resolved; `newest` is the last such launch. The rest
    /// is kept.
    pub(crate) fn measured_of_resolved(&mut self, newest: u64) -> Vec<MeasuredReport> {
        self.measured.extract_if(.., |report| report.launch <= newest).collect()
    }

    /// The whole reports of launches that were resolved, of which `newest` is the last one. Those of
    /// later launches are kept.
    pub(crate) fn of_resolved(&mut self, newest: u64) -> Vec<Report> {
        let mut resolved = Vec::new();
        for report in std::mem::take(&mut self.whole) {
            if report.launch > newest {
                self.early.insert(report.launch, report.touched);
            } else if report.launch != 0 {
                resolved.push(report);
            }
        }
        resolved
    }

    /// The report of the launch that is resolved now, where it has come.
    pub(crate) fn take(&mut self, launch: u64) -> Option<Vec<Access>> {
        self.early.remove(&launch)
    }
}
