//! Every Rust program under test, racy and clean, under every scheduling policy: the verdict and
//! the findings of the table whatever the schedule, the program's standard output untouched, and
//! the same findings again from the stored trace.

use std::ffi::OsStr;

use libtest_mimic::Trial;

use crate::command::{Scratch, arguments, simulated_driver};
use crate::expected::{Findings, ProgramRow, program_rows};
use crate::{programs, trial};

/// Eager runs in issue order, lazy only what is awaited, starve holds one stream back, random
/// draws from a seed.
const POLICIES: [&str; 4] = ["eager", "lazy", "starve:1", "random:7"];

pub(crate) fn add(trials: &mut Vec<Trial>) {
    trials.push(trial("verdict::every_program_is_in_the_table", every_program_is_in_the_table));
    for row in program_rows() {
        let name = format!("verdict::{}::{}", row.program, row.variant);
        let of_code = row.clone();
        trials.push(trial(name, move || verdict(&row)));
        let name = format!("withheld::{}::{}", of_code.program, of_code.variant);
        trials.push(trial(name, move || withheld(&of_code)));
    }
}

/// The accesses of kernels are concluded from their code, as on a GPU.
fn withheld(row: &ProgramRow) {
    let scratch = Scratch::new();
    let program = programs::rust(&row.program);
    let options = scratch.run_options();
    let first = ["run", "--sim", "--fail-on", row.fail_on.as_str()];
    let run = [OsStr::new("--"), program.as_os_str(), OsStr::new(&row.variant)];
    let mut command = scratch.streamsan(&arguments(&first, &options, &run));
    let ended = scratch.finish(command.env("STREAMSAN_SIM_ACCESSES", "inferred"));
    let (report, (verdict, findings)) = (scratch.report(), &row.withheld);
    let found = Findings::from_report(&report);
    assert_eq!(found.to_string(), findings.to_string(), "{}", ended.stderr);
    assert_eq!(report["verdict"], verdict.as_str(), "{report:#}");
    ended.expect_code(match verdict.as_str() {
        "RACY" => 66,
        "INCOMPLETE" => 3,
        _ => 0,
    });
}

fn every_program_is_in_the_table() {
    let mut listed: Vec<(String, String)> =
        program_rows().into_iter().map(|row| (row.program, row.variant)).collect();
    listed.sort();
    let expected: Vec<(String, String)> = programs::rust_names()
        .into_iter()
        .flat_map(|name| [(name.clone(), "clean".to_owned()), (name, "racy".to_owned())])
        .collect();
    assert_eq!(listed, expected);
}

fn verdict(row: &ProgramRow) {
    let scratch = Scratch::new();
    let program = programs::rust(&row.program);
    let driver = simulated_driver(&scratch);
    for policy in POLICIES {
        // Without streamsan.
        let mut alone = scratch.command(&program, &[OsStr::new(&row.variant)]);
        alone.env("LD_LIBRARY_PATH", &driver).env("STREAMSAN_SIM_POLICY", policy);
        let alone = scratch.finish(&mut alone);
        alone.expect_code(0);
        assert_eq!(alone.stderr, "", "{policy}");

        // With it.
        let options = scratch.run_options();
        let sim = format!("--sim={policy}");
        let first = ["run", sim.as_str(), "--fail-on", row.fail_on.as_str()];
        let run = [OsStr::new("--"), program.as_os_str(), OsStr::new(&row.variant)];
        let wrapped = scratch.finish(&mut scratch.streamsan(&arguments(&first, &options, &run)));

        let report = scratch.report();
        let found = Findings::from_report(&report);
        assert_eq!(found.to_string(), row.findings.to_string(), "{policy}\n{}", wrapped.stderr);
        assert_eq!(report["verdict"], row.verdict.as_str(), "{policy}\n{report:#}");
        wrapped.expect_code(if row.verdict == "RACY" { 66 } else { 0 });
        assert_eq!(wrapped.stdout, alone.stdout, "{policy}");

        // And from the stored trace.
        let trace = scratch.trace();
        let first = ["check", "--fail-on", row.fail_on.as_str()];
        let again =
            scratch.finish(&mut scratch.streamsan(&arguments(&first, &[], &[trace.as_os_str()])));
        again.expect_code(i32::from(row.verdict == "RACY"));
    }
}
