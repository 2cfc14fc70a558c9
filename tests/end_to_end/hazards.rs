//! The C programs, each named after a hazard of injecting a library into a stranger's process.

use std::ffi::OsStr;

use libtest_mimic::Trial;
use rusqlite::{Connection, OpenFlags};

use crate::command::{Scratch, arguments};
use crate::expected::{Findings, HazardRow, hazard_rows};
use crate::{programs, trial};

pub(crate) fn add(trials: &mut Vec<Trial>) {
    for row in hazard_rows() {
        let name = format!("hazard::{}", row.program);
        trials.push(trial(name, move || hazard(&row)));
    }
    for (how, verdict, code) in [
        ("kept", "CLEAN", 0),
        ("used", "CLEAN", 0),
        ("racy", "RACY", 66),
        ("outsider", "INCOMPLETE", 3),
    ] {
        let name = format!("hazard::imported_memory::{how}");
        trials.push(trial(name, move || imported_memory(how, verdict, code)));
    }
    trials.push(trial("hazard::a_forked_child_is_a_process_of_its_own", forked_child));
}

fn hazard(row: &HazardRow) {
    let scratch = Scratch::new();
    let program = programs::c(&row.program, scratch.path());
    let options = scratch.run_options();
    let run = [OsStr::new("--"), program.as_os_str()];
    let arguments = arguments(&["run", "--sim"], &options, &run);
    let ended = scratch.finish(&mut scratch.streamsan(&arguments));

    let report = scratch.report();
    let found = Findings::from_report(&report);
    assert_eq!(found.to_string(), row.findings.to_string(), "{}", ended.stderr);
    assert_eq!(report["verdict"], row.verdict.as_str(), "{report:#}");
    ended.expect_code(row.exit_code);
    assert_eq!(String::from_utf8_lossy(&ended.stdout), row.stdout);
}

/// Memory that a process imports is that of its exporter; of an exporter that nobody records it is
/// said that it is used.
fn imported_memory(how: &str, verdict: &str, code: i32) {
    let scratch = Scratch::new();
    let program = programs::c("imports_memory", scratch.path());
    let options = scratch.run_options();
    let run = [OsStr::new("--"), program.as_os_str(), OsStr::new(how)];
    let arguments = arguments(&["run", "--sim"], &options, &run);
    let ended = scratch.finish(&mut scratch.streamsan(&arguments));
    let report = scratch.report();
    assert_eq!(report["verdict"], verdict, "{report:#}");
    ended.expect_code(code);
    let reasons = report["reasons"].as_array().expect("a report has a list of reasons");
    let said = "cuMemImportFromShareableHandle (memory of unknown origin that is used)";
    let unknown =
        reasons.iter().filter(|reason| reason["text"].as_str().is_some_and(|t| t.contains(said)));
    assert_eq!(unknown.count(), usize::from(how == "outsider"), "{report:#}");
    if how == "racy" {
        let found = Findings::from_report(&report).to_string();
        assert_eq!(found, "race missing-wait WAW certain 1", "{report:#}");
    }
}

/// The child that works and its parent both have operations; the child that does nothing has none.
fn forked_child() {
    let scratch = Scratch::new();
    let program = programs::c("fork", scratch.path());
    let options = scratch.run_options();
    let run = [OsStr::new("--"), program.as_os_str()];
    let arguments = arguments(&["run", "--sim"], &options, &run);
    scratch.finish(&mut scratch.streamsan(&arguments)).expect_code(66);

    let trace = Connection::open_with_flags(scratch.trace(), OpenFlags::SQLITE_OPEN_READ_ONLY)
        .expect("the trace opens");
    let processes: i64 = trace
        .query_row("select count(distinct process) from op", (), |row| row.get(0))
        .expect("operations name their process");
    assert_eq!(processes, 2);
}
