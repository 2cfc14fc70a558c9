//! A second run that measures what the first one left open: selection, merging, verdicts, exit codes
//! and words. The driver withholds what kernels touch, and tells it of those that are measured.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use libtest_mimic::Trial;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

use crate::command::{Ended, Scratch, arguments};
use crate::{programs, trial};

pub(crate) fn add(trials: &mut Vec<Trial>) {
    for (variant, verdict, code) in [("clean", "CLEAN", 0), ("racy", "RACY", 66)] {
        let name = format!("settle::table_of_pointers::{variant}");
        trials.push(trial(name, move || table_of_pointers(variant, verdict, code)));
    }
    for (views, verdict, code) in [
        ("interleaved", "CLEAN", 0),
        ("overlapping", "RACY", 66),
        ("one-pointer-interleaved", "CLEAN", 0),
        ("one-pointer-overlapping", "RACY", 66),
    ] {
        for how in ["", "graph", "child"] {
            let name = ["settle::views", views, how].into_iter().filter(|part| !part.is_empty());
            let name = name.collect::<Vec<_>>().join("::");
            trials.push(trial(name, move || views_of(views, how, verdict, code)));
        }
    }
    trials.push(trial("settle::launches_that_were_not_measured_stay_open", unmeasured));
    trials.push(trial("settle::nothing_open_runs_nothing", nothing_open));
    trials.push(trial("settle::a_racy_run_is_measured_when_asked", racy_first));
    // Every launch is left out; and every other one of a node that each of two graphs launches twice.
    for (name, how, each) in [("launch", "", "1"), ("graph", "graph", "2")] {
        let name = format!("settle::a_race_that_is_not_measured_stays::{name}");
        trials.push(trial(name, move || race_stays(how, each)));
    }
    for (how, said) in [
        ("fails", "the program failed in the second run (exit code 7)"),
        ("other", "the second run made other launches at the open places (scatter"),
    ] {
        trials.push(trial(format!("settle::the_first_verdict_stands::{how}"), move || {
            stands(how, said)
        }));
    }
    trials.push(trial("settle::the_first_verdict_stands::interrupted", interrupted));
    trials.push(trial("settle::a_recorded_command_runs_as_it_ran", recorded_command));
    trials.push(trial("settle::kernels_are_measured_by_name_and_by_trace", by_name_and_by_trace));
}

/// `streamsan`, where the driver withholds what kernels touch.
fn streamsan(scratch: &Scratch, command: &[&OsStr]) -> std::process::Command {
    let mut command = scratch.streamsan(command);
    command.env("STREAMSAN_SIM_ACCESSES", "inferred").env("XDG_CACHE_HOME", scratch.file("cache"));
    command
}

fn command(scratch: &Scratch, first: &[&str], program: &[&OsStr]) -> std::process::Command {
    let options = scratch.run_options();
    let run: Vec<&OsStr> = [OsStr::new("--")].into_iter().chain(program.iter().copied()).collect();
    streamsan(scratch, &arguments(first, &options, &run))
}

fn run(scratch: &Scratch, first: &[&str], program: &[&OsStr]) -> Ended {
    scratch.finish(&mut command(scratch, first, program))
}

fn settled_trace(scratch: &Scratch) -> PathBuf {
    scratch.file("trace.settled.db")
}

fn program_of_c(scratch: &Scratch) -> PathBuf {
    programs::c("settles", scratch.path())
}

/// Kernels follow pointers that they load from memory: INCOMPLETE until they are measured.
fn table_of_pointers(variant: &str, verdict: &str, code: i32) {
    let scratch = Scratch::new();
    let program = programs::rust("pointer_table");
    let program = [program.as_os_str(), OsStr::new(variant)];
    let ended = run(&scratch, &["run", "--sim", "--settle"], &program);
    let report = scratch.report();
    assert_eq!(report["verdict"], verdict, "{}", ended.stderr);
    ended.expect_code(code);
    assert!(
        ended.stderr.contains("1 reason keeps the run incomplete; 1 kernel decides; it runs again")
    );
    let settled = &report["settled"];
    assert_eq!(
        (&settled["reasons"], &settled["reasons_left"]),
        (&1.into(), &0.into()),
        "{report:#}"
    );
    let measured = &report["coverage"]["measured"];
    assert_eq!((&measured["kernels"], &measured["whole"]), (&1.into(), &measured["launches"]));
    assert_eq!(measured["by_kernel"][0]["follows_pointers"], measured["launches"], "{measured:#}");
    assert!(ended.stderr.contains("1 of them touches what its data says"), "{}", ended.stderr);
    let bases = |finding: &Value| {
        let of = |side: usize| finding["accesses"][side]["basis"].as_str().map(str::to_owned);
        (finding["confidence"].as_str().map(str::to_owned), of(0), of(1))
    };
    let found: Vec<_> = report["findings"].as_array().expect("a list").iter().map(bases).collect();
    let race = ["certain", "exact", "measured"].map(|word| Some(word.to_owned()));
    let [confidence, first, second] = race;
    let expected = if code == 0 { Vec::new() } else { vec![(confidence, first, second)] };
    assert_eq!(found, expected, "{report:#}");
    assert!(scratch.trace().exists() && settled_trace(&scratch).exists());
}

/// Kernels write at places that they read from memory: a race on bounded bytes until they are
/// measured, `likely` where both begin with one byte. `how` says where the kernels are launched: by
/// themselves, or in graphs.
fn views_of(views: &str, how: &str, verdict: &str, code: i32) {
    let scratch = Scratch::new();
    let program = program_of_c(&scratch);
    let ended = run(
        &scratch,
        &["run", "--sim", "--settle"],
        &[program.as_os_str(), views.as_ref(), how.as_ref()],
    );
    let report = scratch.report();
    assert_eq!(report["verdict"], verdict, "{}", ended.stderr);
    ended.expect_code(code);
    let settled = &report["settled"];
    let counts = ["open", "confirmed", "dismissed", "left"].map(|key| settled[key].as_u64());
    let expected = if code == 0 { [1, 0, 1, 0] } else { [1, 1, 0, 0] };
    assert_eq!(counts, expected.map(Some), "{report:#}");
    let said = match code {
        0 => {
            "settled: 1 finding was open: 0 confirmed, 1 dismissed (the measured bytes do not overlap), 0 left"
        }
        _ => {
            "settled: 1 finding was open: 1 confirmed, 0 dismissed (the measured bytes do not overlap), 0 left"
        }
    };
    assert!(ended.stderr.contains(said), "{}", ended.stderr);
    // A finding that was withdrawn is nowhere in the report of both runs.
    let findings = report["findings"].as_array().expect("a list");
    assert_eq!(findings.len(), usize::from(code != 0), "{report:#}");
    if let Some(found) = findings.first() {
        assert_eq!((&found["confidence"], &found["kind"]), (&"certain".into(), &"WAW".into()));
    }
    // The second trace alone gives the same verdict.
    let trace = settled_trace(&scratch);
    let check = [OsStr::new("check"), trace.as_os_str()];
    scratch.finish(&mut scratch.streamsan(&check)).expect_code(i32::from(code != 0));
}

fn unmeasured() {
    let scratch = Scratch::new();
    let program = programs::rust("pointer_table");
    let mut command =
        command(&scratch, &["run", "--sim", "--settle"], &[program.as_os_str(), "clean".as_ref()]);
    let ended = scratch.finish(command.env("STREAMSAN_SIM_UNMEASURED", "1"));
    let report = scratch.report();
    assert_eq!(report["verdict"], "INCOMPLETE", "{}", ended.stderr);
    ended.expect_code(3);
    assert_eq!(report["settled"]["reasons_left"], 1, "{report:#}");
    let measured = &report["coverage"]["measured"];
    assert_eq!((&measured["whole"], &measured["not_measured"]), (&0.into(), &measured["launches"]));
    assert_eq!(measured["reasons"][0]["reason"], "no log was free", "{measured:#}");
    assert!(ended.stderr.contains("1 of 1 launch not measured"), "{}", ended.stderr);
}

fn nothing_open() {
    let scratch = Scratch::new();
    let program = programs::rust("offset_halves");
    let program = [program.as_os_str(), OsStr::new("clean")];
    let ended = run(&scratch, &["run", "--sim", "--settle"], &program);
    assert_eq!(scratch.report()["verdict"], "CLEAN", "{}", ended.stderr);
    ended.expect_code(0);
    assert!(ended.stderr.contains("nothing is open that measuring can close"), "{}", ended.stderr);
    assert!(!settled_trace(&scratch).exists());
    // A form that shows a whole trace has no place for two.
    let first = ["run", "--sim", "--settle", "--report", "perfetto=all.pftrace"];
    let ended = run(&scratch, &first, &program);
    ended.expect_code(125);
    let said = "shows one trace, and a settled run has two";
    assert!(ended.stderr.contains(said), "{}", ended.stderr);
}

/// A first run that is RACY by known bytes is run again with `=all` only; one that is RACY by bounded
/// bytes is measured.
fn racy_first() {
    for settle in ["--settle", "--settle=all"] {
        let scratch = Scratch::new();
        let program = program_of_c(&scratch);
        let first = ["run", "--sim", "--fail-on", "possible", settle];
        let program = [program.as_os_str(), OsStr::new("interleaved")];
        let ended = run(&scratch, &first, &program);
        assert_eq!(scratch.report()["verdict"], "CLEAN", "{}", ended.stderr);
        ended.expect_code(0);
        assert!(settled_trace(&scratch).exists(), "{settle}: {}", ended.stderr);
    }
    for (settle, is_run_again) in [("--settle", false), ("--settle=all", true)] {
        let scratch = Scratch::new();
        let program = program_of_c(&scratch);
        let program = [program.as_os_str(), OsStr::new("interleaved"), OsStr::new("early")];
        let ended = run(&scratch, &["run", "--sim", settle], &program);
        assert_eq!(scratch.report()["verdict"], "RACY", "{}", ended.stderr);
        ended.expect_code(66);
        assert_eq!(settled_trace(&scratch).exists(), is_run_again, "{settle}: {}", ended.stderr);
        let said = ended.stderr.contains("the run is RACY whatever is measured");
        assert_eq!(said, !is_run_again, "{settle}: {}", ended.stderr);
    }
}

/// A finding that was not measured whole is not dismissed.
fn race_stays(how: &str, each: &str) {
    let scratch = Scratch::new();
    let program = program_of_c(&scratch);
    let program = [program.as_os_str(), "one-pointer-interleaved".as_ref(), how.as_ref()];
    let mut command = command(&scratch, &["run", "--sim", "--settle"], &program);
    let ended = scratch.finish(command.env("STREAMSAN_SIM_UNMEASURED", each));
    let report = scratch.report();
    assert_eq!(report["verdict"], "RACY", "{}", ended.stderr);
    ended.expect_code(66);
    let settled = &report["settled"];
    assert_eq!((&settled["open"], &settled["left"]), (&1.into(), &1.into()), "{report:#}");
}

fn stands(how: &str, said: &str) {
    let scratch = Scratch::new();
    let program = program_of_c(&scratch);
    let program = [program.as_os_str(), OsStr::new("overlapping"), OsStr::new(how)];
    let ended = run(&scratch, &["run", "--sim", "--settle"], &program);
    let report = scratch.report();
    assert_eq!(report["verdict"], "CLEAN", "{}", ended.stderr);
    ended.expect_code(0);
    assert_eq!(report["findings"][0]["confidence"], "possible", "{report:#}");
    assert_eq!(report["settled"], Value::Null);
    assert!(ended.stderr.contains(said), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("the verdict of the first run, CLEAN, stands"),
        "{}",
        ended.stderr
    );
}

fn interrupted() {
    let scratch = Scratch::new();
    let program = program_of_c(&scratch);
    let program = [program.as_os_str(), OsStr::new("overlapping"), OsStr::new("waits")];
    let mut command = command(&scratch, &["run", "--sim", "--settle"], &program);
    command.process_group(0);
    let mut running = scratch.start(&mut command);
    running.wait_for_line("settles: waiting");
    kill_process_group(Pid::from_child(&running.child), Signal::INT).expect("it can be told");
    let ended = running.wait();
    assert_eq!(scratch.report()["verdict"], "CLEAN", "{}", ended.stderr);
    ended.expect_code(0);
    assert!(ended.stderr.contains("the second run was interrupted"), "{}", ended.stderr);
}

/// `streamsan settle`, from another directory and with another environment. Twice, the reports are
/// the same byte by byte.
fn recorded_command() {
    let scratch = Scratch::new();
    program_of_c(&scratch);
    let program = [OsStr::new("./settles"), OsStr::new("interleaved")];
    let mut first = command(&scratch, &["run", "--sim"], &program);
    first.env("NCCL_DEBUG", "WARN");
    scratch.finish(&mut first).expect_code(0);
    let elsewhere = scratch.file("elsewhere");
    fs::create_dir(&elsewhere).expect("there is room");
    let (trace, report) = (scratch.trace(), scratch.file("settled.json"));
    let mut written = OsString::from("json=");
    written.push(&report);
    let settle = ["settle", "--report"].map(OsStr::new);
    let settle: Vec<&OsStr> =
        settle.into_iter().chain([written.as_os_str(), trace.as_os_str()]).collect();
    let mut reports = Vec::new();
    for _ in 0..2 {
        let mut command = streamsan(&scratch, &settle);
        command.current_dir(&elsewhere).env_remove("NCCL_DEBUG").env("CUDA_OTHER", "1");
        let ended = scratch.finish(&mut command);
        ended.expect_code(0);
        for said in [
            "it runs again with measuring: ./settles interleaved",
            "NCCL_DEBUG is set to WARN, as it was when the trace was recorded",
            "CUDA_OTHER is not set for the program, as when the trace was recorded",
        ] {
            assert!(ended.stderr.contains(said), "{said}: {}", ended.stderr);
        }
        reports.push(fs::read_to_string(&report).expect("a report"));
    }
    assert_eq!(reports[0], reports[1]);
    let report: Value = serde_json::from_str(&reports[0]).expect("it is JSON");
    assert_eq!((&report["verdict"], &report["settled"]["dismissed"]), (&"CLEAN".into(), &1.into()));
    // A command given behind -- runs here, as everything is.
    let given = elsewhere.join("none");
    let tail = [OsStr::new("--"), given.as_os_str()];
    let settle: Vec<&OsStr> = settle.into_iter().chain(tail).collect();
    scratch.finish(&mut streamsan(&scratch, &settle)).expect_code(127);
}

/// `run --measure`, by the kernel's name and by what a trace left open.
fn by_name_and_by_trace() {
    let scratch = Scratch::new();
    let program = program_of_c(&scratch);
    let program = [program.as_os_str(), OsStr::new("overlapping")];
    run(&scratch, &["run", "--sim"], &program).expect_code(0);
    let kept = scratch.file("kept");
    fs::create_dir(&kept).expect("there is room");
    let open = kept.join("first.db");
    fs::rename(scratch.trace(), &open).expect("it can be moved");
    let of = |path: &Path| format!("--measure=@{}", path.display());
    for (measure, measured) in [
        ("--measure=scat*".to_owned(), true),
        ("--measure=*".to_owned(), true),
        (of(&open), true),
        (of(&kept), true),
        ("--measure=other".to_owned(), false),
    ] {
        let ended = run(&scratch, &["run", "--sim", &measure], &program);
        let report = scratch.report();
        ended.expect_code(if measured { 66 } else { 0 });
        let launches = &report["coverage"]["measured"]["launches"];
        assert_eq!(launches.as_u64(), measured.then_some(2), "{measure}: {report:#}");
    }
}
