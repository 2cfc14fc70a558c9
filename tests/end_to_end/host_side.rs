//! Actions of host threads: annotated and instrumented accesses, names, order among threads,
//! cuFile, NCCL.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::Trial;
use streamsan_model::OpSeq;
use streamsan_store::Reader;

use crate::command::{Scratch, arguments, simulated_driver};
use crate::expected::{Findings, HostRow, hazard_rows, host_rows};
use crate::{programs, trial};

pub(crate) fn add(trials: &mut Vec<Trial>) {
    for row in host_rows() {
        let options: String = row.options.iter().map(|option| format!(" {option}")).collect();
        let name = format!("host_side::{}_{}{options}", row.program, row.variant);
        trials.push(trial(name, move || program(&row)));
    }
    trials.push(trial("host_side::strict_traces_are_judged_strictly_again", judged_again));
    trials.push(trial("host_side::ranges_are_kept", ranges_kept));
    trials.push(trial("host_side::hazards_under_strict_host_threads", hazards_strictly));
    trials.push(trial("host_side::every_program_has_rows", every_program));
}

/// Builds a program of `programs/host`, instrumented ones with the stub that the command tells.
fn build(name: &str, scratch: &Scratch) -> PathBuf {
    let told = scratch.finish(&mut scratch.streamsan(&[OsStr::new("tsan-stub")]));
    told.expect_code(0);
    let stub = String::from_utf8(told.stdout).expect("the path is text");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/host/build.sh");
    let built = Command::new(script)
        .arg(scratch.path())
        .args([name, stub.trim_end()])
        .output()
        .expect("the script starts");
    assert!(
        built.status.success(),
        "{name} does not build (a C compiler that knows -fsanitize=thread is needed): {}",
        String::from_utf8_lossy(&built.stderr)
    );
    scratch.path().join(name)
}

fn program(row: &HostRow) {
    let scratch = Scratch::new();
    let program = build(&row.program, &scratch);
    let variant = OsStr::new(&row.variant);

    // Without streamsan it runs just so.
    let mut alone = scratch.command(&program, &[variant]);
    let alone = scratch.finish(alone.env("LD_LIBRARY_PATH", simulated_driver(&scratch)));
    alone.expect_code(0);
    assert_eq!(alone.stderr, "");

    let options = scratch.run_options();
    let mut first = vec!["run", "--sim"];
    first.extend(row.options.iter().map(String::as_str));
    let run = [OsStr::new("--"), program.as_os_str(), variant];
    let ended = scratch.finish(&mut scratch.streamsan(&arguments(&first, &options, &run)));

    let report = scratch.report();
    let found = Findings::from_report(&report);
    assert_eq!(found.to_string(), row.findings.to_string(), "{}", ended.stderr);
    assert_eq!(report["verdict"], row.verdict.as_str(), "{report:#}");
    ended.expect_code(if row.verdict == "RACY" { 66 } else { 0 });
    for name in &row.names {
        assert!(ended.stderr.contains(name), "{name} is not in:\n{}", ended.stderr);
    }
    if row.variant == "clean" {
        assert_eq!(ended.stdout, alone.stdout);
    }
}

/// Forks, threads that end in every way, and the interposed functions in between.
fn hazards_strictly() {
    for name in ["fork", "threads_that_exit", "main_thread_exits", "daemonises"] {
        let row = hazard_rows().into_iter().find(|row| row.program == name).expect("a row");
        let scratch = Scratch::new();
        let program = programs::c(name, scratch.path());
        let options = scratch.run_options();
        let run = [OsStr::new("--"), program.as_os_str()];
        let first = ["run", "--sim", "--strict-host-threads"];
        let ended = scratch.finish(&mut scratch.streamsan(&arguments(&first, &options, &run)));
        ended.expect_code(row.exit_code);
        assert_eq!(String::from_utf8_lossy(&ended.stdout), row.stdout);
        let found = Findings::from_report(&scratch.report());
        assert_eq!(found.to_string(), row.findings.to_string(), "{}", ended.stderr);
    }
}

/// Ranges of every kind are in the trace, and each operation knows those around it.
fn ranges_kept() {
    let scratch = Scratch::new();
    let program = build("nvtx_ranges", &scratch);
    let run = [OsStr::new("--"), program.as_os_str(), OsStr::new("racy")];
    let options = scratch.run_options();
    let mut command = scratch.streamsan(&arguments(&["run", "--sim"], &options, &run));
    scratch.finish(&mut command).expect_code(66);
    let reader = Reader::open(&scratch.trace()).expect("a trace");
    let (mut told, mut main) = (Vec::new(), None);
    reader
        .each_range(|range| {
            let domain = range.domain.as_deref().unwrap_or("-");
            let is_open = if range.end.is_some() { "" } else { ", open" };
            let nested = if range.depth > 0 { ", nested" } else { "" };
            let kind = range.kind.description();
            if &*range.name == "train" {
                main = Some(range.thread);
            }
            told.push(format!("{domain} {kind} {}{nested}{is_open}", range.name));
        })
        .expect("ranges");
    let expected = [
        "- pushed load, open",
        "- started epoch",
        "- pushed train",
        "- pushed step 12, nested",
        "- pushed forw\u{e4}rd, nested",
        "- mark first batch",
        "optimizer pushed adam, nested",
        "optimizer pushed two lines, nested",
    ];
    assert_eq!(told, expected);
    let sides: Vec<OpSeq> = reader.findings().expect("findings")[..1]
        .iter()
        .flat_map(|finding| [finding.first.op, finding.second.op])
        .collect();
    let names = sides.iter().map(|&op| {
        let ranges = reader.ranges_of(op).expect("ranges");
        assert!(ranges.iter().all(|range| Some(range.thread) == main));
        ranges.iter().map(|range| range.name.to_string()).collect::<Vec<_>>().join("/")
    });
    let expected = ["train/step 12/forw\u{e4}rd", "train/step 12/adam/two lines"];
    assert_eq!(names.collect::<Vec<_>>(), expected);

    // They are in the forms that show all of a trace.
    let trace = scratch.trace();
    for (format, told) in
        [("html", "in train/step 12/adam/two lines"), ("perfetto", "ranges of optimizer")]
    {
        let first = ["export", "--format", format];
        let file = [trace.as_os_str()];
        let ended = scratch.finish(&mut scratch.streamsan(&arguments(&first, &[], &file)));
        let text = String::from_utf8_lossy(&ended.stdout);
        assert!(text.contains(told), "{told} is not in the {format}");
    }
}

/// The trace remembers the option; a trace without it can be judged strictly too.
fn judged_again() {
    let scratch = Scratch::new();
    let program = build("joined", &scratch);
    let check = |options: &[&str]| {
        let trace = scratch.trace();
        let mut first = vec!["check"];
        first.extend(options);
        let file = [trace.as_os_str()];
        let arguments = arguments(&first, &[], &file);
        scratch.finish(&mut scratch.streamsan(&arguments)).status.code()
    };
    for (option, plain, strict) in [(None, 0, 1), (Some("--strict-host-threads"), 1, 1)] {
        let options = scratch.run_options();
        let first: Vec<&str> = ["run", "--sim"].into_iter().chain(option).collect();
        let run = [OsStr::new("--"), program.as_os_str(), OsStr::new("racy")];
        scratch.finish(&mut scratch.streamsan(&arguments(&first, &options, &run)));
        assert_eq!(check(&[]), Some(plain), "{option:?}");
        assert_eq!(check(&["--strict-host-threads"]), Some(strict), "{option:?}");
    }
}

/// A program without a row would never be run.
fn every_program() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/host");
    let libraries = ["link_stub", "fake_cufile", "fake_nccl"];
    for entry in std::fs::read_dir(folder).expect("the programs are readable") {
        let path = entry.expect("the programs are readable").path();
        let name = path.file_stem().expect("it has a name").to_string_lossy().into_owned();
        if path.extension().is_some_and(|e| e == "c") && !libraries.contains(&&*name) {
            assert!(host_rows().iter().any(|row| row.program == name), "{name}");
        }
    }
}
