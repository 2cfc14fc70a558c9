//! Host and device talk through page-locked memory while fences watch the host
//! (`--host-accesses=fence`): what is strong at system scope on both sides is no race, anything else is
//! one; and the report says how far the host was watched.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::Trial;

use crate::command::{Scratch, arguments};
use crate::expected::Findings;
use crate::trial;

/// The instructions of the kernel and of the host in `flags.c`, and how many races are seen between
/// the two. A read lowers the fence, so that the write behind it is seen too; an atomic operation lifts
/// it from the page, and what the host does there afterwards is not seen.
const PAIRS: &[(&str, &str, usize)] = &[
    ("weak", "plain", 2),
    ("weak", "atomic", 1),
    ("volatile", "plain", 0),
    ("system", "plain", 0),
    ("system", "atomic", 0),
    ("system", "wide", 2),
    ("gpu", "plain", 2),
    ("atomic", "plain", 0),
    ("atomic", "atomic", 0),
    ("atomic", "wide", 2),
];

pub(crate) fn add(trials: &mut Vec<Trial>) {
    for (device, host, races) in PAIRS {
        // The interpreter says what the kernel did, or the analysis of its code.
        for accesses in ["exact", "inferred"] {
            let name = format!("system_scope::{device}_{host}_{accesses}");
            trials.push(trial(name, move || talk(device, host, *races, accesses)));
        }
    }
    trials.push(trial("system_scope::not_watched", not_watched));
}

fn build(scratch: &Scratch) -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/host_accesses/build.sh");
    let built =
        Command::new(script).arg(scratch.path()).arg("flags").output().expect("the script starts");
    assert!(
        built.status.success(),
        "flags.c does not build (a C compiler is needed): {}",
        String::from_utf8_lossy(&built.stderr)
    );
    scratch.path().join("flags")
}

fn talk(device: &str, host: &str, races: usize, accesses: &str) {
    let scratch = Scratch::new();
    let program = build(&scratch);
    let options = scratch.run_options();
    let first = ["run", "--sim=lazy", "--host-accesses=fence"];
    let words = [OsStr::new("--"), program.as_os_str(), OsStr::new(device), OsStr::new(host)];
    let mut command = scratch.streamsan(&arguments(&first, &options, &words));
    let ended = scratch.finish(command.env("STREAMSAN_SIM_ACCESSES", accesses));
    ended.expect_code(if races > 0 { 66 } else { 0 });
    let report = scratch.report();
    let found = Findings::from_report(&report).to_string();
    let kinds: Vec<&str> = found.split("; ").filter(|kind| kind.starts_with("race ")).collect();
    assert_eq!(kinds.len(), races, "{found}\n{}", ended.stderr);
    let scope = &report["coverage"]["host_accesses"];
    assert_eq!((&scope["watched"], &scope["operations"]), (&true.into(), &1.into()), "{scope}");
    let said = "host accesses: watched - 1 of 1 asynchronous operations on host memory fenced";
    assert!(ended.stderr.contains(said), "{}", ended.stderr);
    if races > 0 {
        let unbroken = ended.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(unbroken.contains("; first touch at +0x"), "{}", ended.stderr);
    }
}

fn not_watched() {
    let scratch = Scratch::new();
    let program = build(&scratch);
    let options = scratch.run_options();
    let words = [OsStr::new("--"), program.as_os_str(), OsStr::new("weak"), OsStr::new("plain")];
    let ended = scratch.finish(&mut scratch.streamsan(&arguments(
        &["run", "--sim=lazy", "--host-accesses=off"],
        &options,
        &words,
    )));
    ended.expect_code(0);
    let scope = &scratch.report()["coverage"]["host_accesses"];
    assert_eq!((&scope["watched"], &scope["reason"]), (&false.into(), &"off".into()), "{scope}");
    let lines = || ended.stderr.lines().filter(|line| line.starts_with("host accesses: "));
    assert_eq!(lines().count(), 1, "{}", ended.stderr);
    assert!(lines().all(|line| line.contains("--host-accesses=fence")), "{}", ended.stderr);
}
