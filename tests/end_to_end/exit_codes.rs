//! The exit codes of `run` and `check`, on programs that have little else to say.

use std::ffi::OsStr;

use libtest_mimic::Trial;

use crate::command::{Ended, Scratch, arguments};
use crate::{programs, trial};

pub(crate) fn add(trials: &mut Vec<Trial>) {
    trials.push(trial("exit_code::no_cuda_call", no_cuda_call));
    trials.push(trial("exit_code::static_program_is_incomplete", static_program_is_incomplete));
    trials.push(trial("exit_code::doctor_looks_at_programs", doctor_looks_at_programs));
    trials.push(trial("exit_code::own_code_of_the_program_comes_through", own_code));
    trials.push(trial("exit_code::a_race_wins_over_nothing_else", latent_needs_asking_for));
}

/// `streamsan run` with `options` on a C program.
fn run(scratch: &Scratch, options: &[&str], program: &str) -> Ended {
    let source = program.trim_end_matches("_static");
    programs::c(source, scratch.path());
    let program = scratch.file(program);
    let first: Vec<&str> = ["run"].into_iter().chain(options.iter().copied()).collect();
    let files = scratch.run_options();
    let run = [OsStr::new("--"), program.as_os_str()];
    scratch.finish(&mut scratch.streamsan(&arguments(&first, &files, &run)))
}

fn no_cuda_call() {
    let scratch = Scratch::new();
    run(&scratch, &["--sim"], "calls_nothing").expect_code(0);
    run(&scratch, &["--sim", "--require-cuda"], "calls_nothing").expect_code(4);
}

/// No preload takes effect in a static program: it must not pass for a clean one.
fn static_program_is_incomplete() {
    let scratch = Scratch::new();
    let ended = run(&scratch, &["--sim"], "calls_nothing_static");
    ended.expect_code(3);
    assert!(ended.stderr.contains("not attached"), "{}", ended.stderr);
    assert_eq!(scratch.report()["verdict"], "INCOMPLETE");
    run(&scratch, &["--sim", "--allow-incomplete"], "calls_nothing_static").expect_code(0);
}

/// An obstacle that keeps the runtime out of a program is told without running the program.
fn doctor_looks_at_programs() {
    let scratch = Scratch::new();
    programs::c("calls_nothing", scratch.path());
    programs::c("fork", scratch.path());
    for (program, code, words) in [
        ("calls_nothing_static", 1, "it is statically linked"),
        ("calls_nothing", 0, "can be recorded"),
        ("fork", 0, "is linked with the driver directly"),
    ] {
        let file = scratch.file(program);
        let ended = scratch.finish(&mut scratch.streamsan(&["doctor".as_ref(), file.as_ref()]));
        ended.expect_code(code);
        let printed = String::from_utf8_lossy(&ended.stdout);
        assert!(printed.contains(words), "{program}: {printed}");
        assert_eq!(printed.contains("BAD"), code != 0, "{program}: {printed}");
    }
}

fn own_code() {
    let scratch = Scratch::new();
    for option in ["--allow-incomplete", "--exit-as-program"] {
        run(&scratch, &["--sim", option], "exits_7").expect_code(7);
    }
}

/// A latent finding fails a run that asks for it, and no other.
fn latent_needs_asking_for() {
    let scratch = Scratch::new();
    let program = programs::rust("free_in_flight");
    let files = scratch.run_options();
    let run = [OsStr::new("--"), program.as_os_str(), OsStr::new("racy")];
    for (fail_on, code) in [("certain", 0), ("likely", 0), ("possible", 0), ("latent", 66)] {
        let first = ["run", "--sim", "--fail-on", fail_on];
        let ended = scratch.finish(&mut scratch.streamsan(&arguments(&first, &files, &run)));
        ended.expect_code(code);
    }
    let first = ["run", "--sim", "--fail-on", "latent", "--exit-as-program"];
    let ended = scratch.finish(&mut scratch.streamsan(&arguments(&first, &files, &run)));
    ended.expect_code(0);
    assert_eq!(scratch.report()["verdict"], "RACY");
}
