//! Reports of the simulated driver: exactly what kernels touched.

use std::collections::HashMap;
use streamsan_wire::{Access, ProcessKey};

/// The accesses of one launch's kernel.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) process: ProcessKey,
    /// Entry index of the launch; 0 for none.
    pub(crate) launch: u64,
    pub(crate) touched: Vec<Access>,
}

/// The reports that cannot be used yet.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    /// Reports of which further parts follow, by launch.
    begun: HashMap<u64, Vec<Access>>,
    whole: Vec<Report>,
    /// Reports that came before their launch was resolved, by launch.
    early: HashMap<u64, Vec<Access>>,
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
