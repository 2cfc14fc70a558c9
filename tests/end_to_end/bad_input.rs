//! Bad input: one clear paragraph, the documented exit code, never a panic.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;

use libtest_mimic::Trial;
use rusqlite::Connection;

use crate::command::{Ended, Scratch, arguments, streamsan};
use crate::{programs, trial};

pub(crate) fn add(trials: &mut Vec<Trial>) {
    trials.push(trial("bad_input::missing_program", missing_program));
    trials.push(trial("bad_input::program_that_is_not_executable", not_executable));
    trials.push(trial("bad_input::trace_that_is_missing", missing_trace));
    trials.push(trial("bad_input::trace_that_is_no_database", no_database));
    trials.push(trial("bad_input::trace_that_is_cut_short", cut_short));
    trials.push(trial("bad_input::trace_of_a_newer_schema", newer_schema));
    trials.push(trial("bad_input::text_trace_with_a_syntax_error", syntax_error));
    trials.push(trial("bad_input::full_disk_while_recording", full_disk));
    trials.push(trial("bad_input::unknown_policy", unknown_policy));
    trials.push(trial("bad_input::trace_that_was_changed_by_hand", changed_by_hand));
    trials.push(trial("bad_input::trace_renamed_while_recording", renamed));
}

fn run(scratch: &Scratch, program: &Path) -> Ended {
    let files = scratch.run_options();
    let run = [OsStr::new("--"), program.as_os_str()];
    scratch.finish(&mut scratch.streamsan(&arguments(&["run", "--sim"], &files, &run)))
}

fn check(scratch: &Scratch, trace: &Path) -> Ended {
    scratch.finish(&mut scratch.streamsan(&[OsStr::new("check"), trace.as_os_str()]))
}

/// A trace of a short clean run.
fn record(scratch: &Scratch) {
    let files = scratch.run_options();
    let program = programs::rust("use_before_alloc");
    let run = [OsStr::new("--"), program.as_os_str(), OsStr::new("clean")];
    scratch
        .finish(&mut scratch.streamsan(&arguments(&["run", "--sim"], &files, &run)))
        .expect_code(0);
}

fn missing_program() {
    let scratch = Scratch::new();
    let ended = run(&scratch, Path::new("no-such-program"));
    ended.expect_code(127).expect_one_paragraph(&["no-such-program"]);
}

fn not_executable() {
    let scratch = Scratch::new();
    let program = scratch.file("plain.txt");
    fs::write(&program, "not a program\n").expect("there is room");
    run(&scratch, &program).expect_code(126).expect_one_paragraph(&["plain.txt"]);
}

fn missing_trace() {
    let scratch = Scratch::new();
    let ended = check(&scratch, &scratch.file("gone.db"));
    ended.expect_code(5).expect_one_paragraph(&["gone.db"]);
}

fn no_database() {
    let scratch = Scratch::new();
    let trace = scratch.file("noise.db");
    let noise: Vec<u8> =
        (0..20_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    fs::write(&trace, noise).expect("there is room");
    check(&scratch, &trace).expect_code(5).expect_one_paragraph(&["noise.db"]);
}

/// The start of a trace is a database still, with pages missing.
fn cut_short() {
    let scratch = Scratch::new();
    record(&scratch);
    let whole = fs::read(scratch.trace()).expect("the trace is there");
    let trace = scratch.file("short.db");
    fs::write(&trace, &whole[..whole.len() / 2]).expect("there is room");
    check(&scratch, &trace).expect_code(5).expect_one_paragraph(&["short.db"]);
}

fn newer_schema() {
    let scratch = Scratch::new();
    record(&scratch);
    let trace = Connection::open(scratch.trace()).expect("the trace opens");
    trace.pragma_update(None, "user_version", 1_000_000).expect("the version can be set");
    drop(trace);
    check(&scratch, &scratch.trace()).expect_code(5).expect_one_paragraph(&["1000000", "newer"]);
}

fn syntax_error() {
    let scratch = Scratch::new();
    let trace = scratch.file("wrong.trace");
    fs::write(&trace, "stream s1\nalloc A 1024\nlaunch s1 fill q:A\n").expect("there is room");
    check(&scratch, &trace).expect_code(2).expect_one_paragraph(&["wrong.trace:3:16"]);
}

fn unknown_policy() {
    let scratch = Scratch::new();
    let arguments = ["run", "--sim=sideways", "--", "true"].map(OsStr::new);
    let ended = scratch.finish(&mut scratch.streamsan(&arguments));
    ended.expect_code(125);
    assert!(ended.stderr.contains("sideways"), "{}", ended.stderr);
}

/// The trace lies on a file system that fills up while the program runs. The program is not
/// disturbed, the verdict cannot be clean, and what was stored before opens.
fn full_disk() {
    let scratch = Scratch::new();
    let program = programs::c("many_operations", scratch.path());
    let small = scratch.file("small");
    fs::create_dir(&small).expect("there is room");
    // A mount namespace of its own: no privilege needed, and nothing to clean up.
    let script = "mount -t tmpfs -o size=512k tmpfs small && \"$@\"; code=$?; \
                  cp small/trace.db* .; exit $code";
    let mut arguments: Vec<OsString> = ["-rm", "sh", "-c", script, "sh"].map(OsString::from).into();
    arguments.push(streamsan().into());
    arguments.extend(["run", "--sim", "-o", "small/trace.db", "--"].map(OsString::from));
    arguments.push(program.into());
    let arguments: Vec<&OsStr> = arguments.iter().map(OsString::as_os_str).collect();
    let ended = scratch.finish(&mut scratch.command(Path::new("unshare"), &arguments));
    ended.expect_code(3);
    assert!(ended.stderr.contains("could not be written"), "{}", ended.stderr);
    check(&scratch, &scratch.trace()).expect_code(3);
}

/// The missing rows of a finished trace are told, with both counts, by everything that reads it.
fn changed_by_hand() {
    let scratch = Scratch::new();
    record(&scratch);
    let trace = Connection::open(scratch.trace()).expect("the trace opens");
    trace.execute_batch("DELETE FROM access").expect("rows can be deleted");
    drop(trace);
    for command in ["check", "stats", "explain", "advise"] {
        let mut arguments = vec![OsString::from(command), scratch.trace().into()];
        if command == "explain" {
            arguments.push("1".into());
        }
        let arguments: Vec<&OsStr> = arguments.iter().map(OsString::as_os_str).collect();
        let ended = scratch.finish(&mut scratch.streamsan(&arguments));
        ended.expect_code(5).expect_one_paragraph(&["`access`", "and 0 found", "record it again"]);
    }
}

/// The end of a run on the simulated driver reads its trace again, and finds none by that name. What
/// was recorded goes on into the file that there is, which is not taken for a whole one.
fn renamed() {
    let scratch = Scratch::new();
    let files = scratch.run_options();
    let program = programs::rust("use_before_alloc");
    let script = "\"$@\"; until [ -s trace.db-wal ]; do :; done; mv trace.db moved.db";
    let run = [OsStr::new("--"), OsStr::new("sh"), OsStr::new("-c"), OsStr::new(script)];
    let program = [OsStr::new("sh"), program.as_os_str(), OsStr::new("clean")];
    let run: Vec<&OsStr> = run.into_iter().chain(program).collect();
    let ended = scratch.finish(&mut scratch.streamsan(&arguments(&["run", "--sim"], &files, &run)));
    ended.expect_code(3);
    assert!(ended.stderr.contains("could not be written"), "{}", ended.stderr);
    check(&scratch, &scratch.file("moved.db")).expect_code(3);
}
