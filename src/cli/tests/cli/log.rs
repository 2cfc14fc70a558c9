//! `STREAMSAN_LOG`: what the command tells of its work, and that nothing else changes by it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use streamsan_testing::signals;

fn streamsan(directory: &Path, log: &str, arguments: &[&str]) -> Output {
    signals::do_not_inherit_ignored();
    let mut command = Command::new(env!("CARGO_BIN_EXE_streamsan"));
    command.args(arguments).current_dir(directory).stdin(Stdio::null());
    command.env("XDG_CACHE_HOME", directory.join("cache")).env("NO_COLOR", "1");
    command.env_remove("LD_PRELOAD").env("STREAMSAN_LOG", log);
    command.output().expect("the command starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
fn expect_all(log: &str, events: &[&str]) {
    for event in events {
        assert!(log.contains(event), "no '{event}' in:\n{log}");
    }
}

#[test]
fn a_run_is_told_from_the_first_process_to_the_verdict() {
    let directory = tempfile::tempdir().expect("a directory");
    let output = streamsan(directory.path(), "debug:run.log", &["demo", "-o", "demo.db"]);
    let log = fs::read_to_string(directory.path().join("run.log"));
    let log = log.unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)));
    expect_all(
        &log,
        &[
            "the recording begins",
            "driver=",
            "a process said hello",
            "a commit begins",
            "a kernel was read",
            "a process ended",
            "the run ends",
            "the trace is closed",
        ],
    );
    assert_eq!(log.matches("a process said hello").count(), log.matches("a process ended").count());
    assert!(!stderr(&output).contains("a process said hello"), "{}", stderr(&output));
    let quiet = streamsan(directory.path(), "", &["demo", "-o", "quiet.db"]);
    assert_eq!(output.status.code(), quiet.status.code());
    let verdict = |output: &Output| {
        let said = stderr(output);
        said.lines().find(|line| line.starts_with("verdict:")).map(str::to_owned)
    };
    assert!(verdict(&output).is_some() && verdict(&output) == verdict(&quiet));
}

/// The program is over before the collector has looked once.
#[test]
fn the_end_of_every_process_is_told_and_its_name_is_harmless() {
    let directory = tempfile::tempdir().expect("a directory");
    let name = "pro\u{1b}[2J\ngram";
    fs::copy("/bin/true", directory.path().join(name)).expect("the program is copied");
    let output = streamsan(directory.path(), "info", &["run", "--", &format!("./{name}")]);
    let said = stderr(&output);
    expect_all(&said, &["a process said hello", "a process ended", "pro\\x1b[2J\\ngram"]);
    assert!(!said.contains('\u{1b}'), "{said}");
}

#[test]
fn a_log_that_cannot_be_written_is_warned_of_and_changes_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    for log in ["streamsan=loudly", "debug:no/such/directory/log"] {
        let output = streamsan(directory.path(), log, &["run", "--", "sh", "-c", "exit 7"]);
        assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
        assert!(stderr(&output).contains("STREAMSAN_LOG is not obeyed"), "{}", stderr(&output));
    }
}
