//! Limits and ends: too little room, too many processes, files that are cut, output that goes
//! nowhere. Each is told, before the program begins where that is possible, and nothing that was
//! recorded is lost.
#![expect(clippy::unwrap_used, reason = "a trial fails by panicking, where it stands")]

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::fs::chown;
use std::path::Path;
use std::process::{Command, Stdio};

use libtest_mimic::Trial;

use crate::command::{Ended, Scratch, arguments, streamsan};
use crate::{programs, trial};

pub(crate) fn add(trials: &mut Vec<Trial>) {
    trials.push(trial("ends::limit_on_the_size_of_files", file_size_limit));
    trials.push(trial("ends::a_disk_that_is_full_from_the_start", full_from_the_start));
    trials.push(trial("ends::no_more_processes", no_more_processes));
    trials.push(trial("ends::files_of_the_run_that_are_cut", cut_files));
    trials.push(trial("ends::output_that_cannot_be_written", full_output));
    trials.push(trial("ends::a_reader_that_has_seen_enough", closed_output));
    trials.push(trial("ends::many_processes_that_are_not_recorded", many_unrecorded));
    trials.push(trial("ends::mistakes_of_run_have_its_code", mistakes_of_run));
}

/// `streamsan` by way of another command.
fn by_way_of(scratch: &Scratch, way: &[&str], more: &[&OsStr]) -> Ended {
    let (first, rest) = way.split_first().unwrap();
    let arguments: Vec<&OsStr> = rest.iter().map(OsStr::new).chain(more.iter().copied()).collect();
    scratch.finish(&mut scratch.command(Path::new(first), &arguments))
}

/// The libraries that the command unpacks are there already.
fn unpack(scratch: &Scratch) {
    scratch.finish(&mut scratch.streamsan(&[OsStr::new("tsan-stub")])).expect_code(0);
}

/// The signal that a limit sends would end the collector, and with it the verdict.
fn file_size_limit() {
    let scratch = Scratch::new();
    unpack(&scratch);
    let program = programs::c("many_operations", scratch.path());
    // A ring takes one MiB and a page.
    let way = ["prlimit", "--fsize=1150000"];
    let command = [streamsan().as_os_str(), OsStr::new("run"), OsStr::new("--sim")];
    let files = scratch.run_options();
    let rest = [OsStr::new("--"), program.as_os_str()];
    let files = files.iter().map(OsString::as_os_str);
    let all: Vec<&OsStr> = command.into_iter().chain(files).chain(rest).collect();
    let ended = by_way_of(&scratch, &way, &all);
    ended.expect_code(3);
    assert!(ended.stderr.contains("could not be written"), "{}", ended.stderr);
    assert!(ended.stderr.contains("verdict:"), "{}", ended.stderr);
    assert_eq!(scratch.report()["verdict"], "INCOMPLETE");
}

/// Nothing is lost yet: the program has not begun.
fn full_from_the_start() {
    let scratch = Scratch::new();
    unpack(&scratch);
    fs::create_dir(scratch.file("small")).unwrap();
    let script = "mount -t tmpfs -o size=64k tmpfs small && exec \"$@\"";
    let way = ["unshare", "-rm", "sh", "-c", script, "sh"];
    let command = [streamsan().as_os_str(), OsStr::new("run"), OsStr::new("--sim")];
    for (trace, report) in [("small/trace.db", "report.json"), ("trace.db", "small/report.json")] {
        let report = format!("json={report}");
        let more = ["-o", trace, "--report", &report, "--", "touch", "begun"].map(OsStr::new);
        let all: Vec<&OsStr> = command.into_iter().chain(more).collect();
        let ended = by_way_of(&scratch, &way, &all);
        ended.expect_code(125).expect_one_paragraph(&["small", "was not started", "make room"]);
        assert!(!scratch.file("begun").exists());
    }
}

/// A user that may have one process: the command itself.
fn no_more_processes() {
    let scratch = Scratch::new();
    let mut way = vec!["prlimit", "--nproc=1"];
    let mut command = streamsan().to_owned();
    // The limit is none for root.
    if rustix::process::geteuid().is_root() {
        way = vec!["setpriv", "--reuid=4242", "--regid=4242", "--clear-groups"];
        way.extend(["prlimit", "--nproc=1"]);
        command = scratch.file("streamsan");
        // By another process: a file that is written here is open in whatever other trials start at
        // that moment, and cannot be executed as long as it is (ETXTBSY).
        let copied = Command::new("cp").args([streamsan(), &command]).status().unwrap();
        assert!(copied.success());
        chown(scratch.path(), Some(4242), Some(4242)).unwrap();
    }
    let (cache, begun) = (scratch.file("cache"), scratch.file("begun"));
    let mut cache_home = OsString::from("XDG_CACHE_HOME=");
    cache_home.push(cache);
    let run = ["run", "--sim", "--", "touch"].map(OsStr::new);
    let mut all = vec![OsStr::new("env"), &cache_home, command.as_os_str()];
    all.extend(run);
    all.push(begun.as_os_str());
    let ended = by_way_of(&scratch, &way, &all);
    ended.expect_code(125).expect_one_paragraph(&["was not started", "ulimit -u"]);
    assert!(!begun.exists());
}

/// A program that cuts a file loses only its own records. The race that another one has made before
/// is found, and doubted, as after every loss.
fn cut_files() {
    let scratch = Scratch::new();
    let program = programs::rust("use_after_free");
    // The shell waits until the collector has taken over all files, which lose their names by that;
    // the control file keeps its name. To wait by `sleep` would make files of that program.
    let script = "\"$0\" racy; cd \"$STREAMSAN_RUN_DIR\"; \
                  until set -- *; [ \"$*\" = control ]; do :; done; \
                  for file in *; do : > \"$file\"; done; sleep 1; kill -9 $$";
    let files = scratch.run_options();
    let rest = ["--", "sh", "-c", script].map(OsStr::new);
    let rest: Vec<&OsStr> = rest.into_iter().chain([program.as_os_str()]).collect();
    let ended =
        scratch.finish(&mut scratch.streamsan(&arguments(&["run", "--sim"], &files, &rest)));
    // The shell's own end, as it was.
    ended.expect_code(137);
    assert!(ended.stderr.contains("incomplete:"), "{}", ended.stderr);
    let report = scratch.report();
    assert_eq!(report["findings"][0]["class"], "allocator-reuse", "{report:#}");
    assert_eq!(report["reasons"][0]["kind"], "dropped-records", "{report:#}");
    assert_eq!(report["verdict"], "INCOMPLETE", "{report:#}");
}

/// A trace with a race, and the commands that print something of it or of anything else.
fn printing(scratch: &Scratch) -> Vec<Vec<OsString>> {
    let program = programs::rust("use_after_free");
    let files = scratch.run_options();
    let rest = [OsStr::new("--"), program.as_os_str(), OsStr::new("racy")];
    let run = arguments(&["run", "--sim"], &files, &rest);
    scratch.finish(&mut scratch.streamsan(&run)).expect_code(66);
    let trace = scratch.trace();
    let ptx = Path::new(env!("CARGO_MANIFEST_DIR")).join("../src/kernels/tests/access/calls.ptx");
    let mut all: Vec<Vec<OsString>> = Vec::new();
    for words in [
        "check TRACE",
        "check --json TRACE",
        "check --report json=- TRACE",
        "explain TRACE",
        "advise TRACE",
        "export --format json TRACE",
        "export --format perfetto TRACE",
        "export --format html TRACE",
        "export --format dot TRACE",
        "diff TRACE TRACE",
        "diff --json TRACE TRACE",
        "suppress TRACE",
        "stats TRACE",
        "stats --json TRACE",
        "kernels PTX",
        "doctor",
        "doctor --json",
        "known-upstream",
        "tsan-stub",
        "completions bash",
        "man",
        "--help",
        "--version",
        "run --help",
    ] {
        let word = |word: &str| match word {
            "TRACE" => trace.clone().into_os_string(),
            "PTX" => ptx.clone().into_os_string(),
            other => other.into(),
        };
        all.push(words.split(' ').map(word).collect());
    }
    all
}

fn full_output() {
    let scratch = Scratch::new();
    let all = printing(&scratch);
    let full = || File::options().write(true).open("/dev/full").unwrap();
    for words in &all {
        let words: Vec<&OsStr> = words.iter().map(OsString::as_os_str).collect();
        let mut command = scratch.streamsan(&words);
        let output = command.stdin(Stdio::null()).stdout(full()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code().is_some_and(|code| code != 0), "{words:?}: {said}");
        assert!(said.contains("cannot write"), "{words:?}: {said}");
        assert!(!said.contains("panicked"), "{words:?}: {said}");
    }
    // Reports that go into files, of every command that has some.
    let (trace, program) = (scratch.trace(), programs::rust("ping_pong"));
    let (trace, program) = (trace.as_os_str(), program.as_os_str());
    let new = scratch.file("new.db");
    for (words, code) in [
        (vec!["check", "--report", "json=/dev/full"], 2),
        (vec!["check", "--report", "sarif=/dev/full"], 2),
        (vec!["check", "--report", "perfetto=/dev/full"], 2),
        (vec!["check", "--baseline", "no/dev/full", "--update-baseline"], 2),
        (vec!["export", "--format", "json", "-o", "/dev/full"], 2),
        (vec!["run", "--sim", "--report", "json=/dev/full", "-o"], 125),
        (vec!["run", "--sim", "--report", "perfetto=/dev/full", "-o"], 125),
    ] {
        let mut all: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
        match words[0] {
            "run" => all.extend([new.as_os_str(), OsStr::new("--"), program, OsStr::new("clean")]),
            _ => all.push(trace),
        }
        let ended = scratch.finish(&mut scratch.streamsan(&all));
        ended.expect_code(code);
        assert!(ended.stderr.contains("/dev/full"), "{words:?}: {}", ended.stderr);
    }
}

/// `| head`: neither a message nor another code.
fn closed_output() {
    let scratch = Scratch::new();
    for words in printing(&scratch) {
        let words: Vec<&OsStr> = words.iter().map(OsString::as_os_str).collect();
        let open = scratch.finish(&mut scratch.streamsan(&words));
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = scratch.streamsan(&words);
        let closed = command.stdin(Stdio::null()).stdout(writer).output().unwrap();
        let said = String::from_utf8_lossy(&closed.stderr);
        assert_eq!(closed.status.code(), open.status.code(), "{words:?}: {said}");
        assert_eq!(said, open.stderr, "{words:?}");
    }
}

/// A few are named, the rest is counted.
fn many_unrecorded() {
    let scratch = Scratch::new();
    let program = programs::c("ignores_sigint", scratch.path());
    // The collector stands still until all seven have the driver, so that its next look at processes
    // finds all of them; they stay until it has told of them.
    let script = "kill -STOP $PPID; all='3 4 5 6 7 8 9'
                  for n in $all; do mkfifo p$n; env -i LD_LIBRARY_PATH=\"$LD_LIBRARY_PATH\" \
                  \"$0\" < p$n > ready$n & eval \"exec $n> p$n\"; done
                  for n in $all; do until grep -q ready ready$n; do sleep 0.05; done; done
                  kill -CONT $PPID
                  until grep -q 'is not recorded' stderr; do sleep 0.05; done
                  for n in $all; do echo go on >&$n; done; wait";
    let files = scratch.run_options();
    let rest = ["--", "sh", "-c", script].map(OsStr::new);
    let rest: Vec<&OsStr> = rest.into_iter().chain([program.as_os_str()]).collect();
    let ended =
        scratch.finish(&mut scratch.streamsan(&arguments(&["run", "--sim"], &files, &rest)));
    ended.expect_code(3);
    let named = ended.stderr.matches("uses CUDA and is not recorded, so").count();
    assert_eq!(named, 3, "{}", ended.stderr);
    assert!(ended.stderr.contains("4 more processes use CUDA"), "{}", ended.stderr);
}

/// A wrapper's own failures must not look like the program's.
fn mistakes_of_run() {
    let scratch = Scratch::new();
    fs::write(scratch.file("wrong"), "no suppression\n").unwrap();
    for (option, file, words) in [
        ("--suppressions", "missing", "cannot read missing"),
        ("--suppressions", "wrong", "wrong:1:"),
        ("--baseline", "missing", "cannot read missing"),
        ("--baseline", "wrong", "wrong:1:"),
    ] {
        let run = ["run", "--sim", option, file, "--", "touch", "begun"].map(OsStr::new);
        let ended = scratch.finish(&mut scratch.streamsan(&run));
        ended.expect_code(125).expect_one_paragraph(&[words]);
        assert!(!scratch.file("begun").exists());
    }
}
