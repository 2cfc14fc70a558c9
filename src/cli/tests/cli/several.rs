//! `check` over many traces: as one report, whatever reads them and whatever state they are in.

use crate::formats::{Bench, corpus};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The text traces of the corpus, some of them racy.
fn corpus_traces() -> Vec<PathBuf> {
    fn below(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(directory).expect("readable") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                below(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "trace") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    below(&corpus("fail"), &mut found);
    below(&corpus("pass"), &mut found);
    found.sort();
    assert!(found.len() > 100, "{}", found.len());
    found
}

#[test]
fn the_number_of_jobs_changes_nothing() {
    let bench = Bench::new();
    let mut files: Vec<String> =
        corpus_traces().iter().map(|path| path.display().to_string()).collect();
    files.push(corpus("recorded/racy").display().to_string());
    bench.write("torn.db", "torn");
    bench.write("wrong.trace", "launch\n");
    files.insert(1, "torn.db".to_owned());
    files.push("wrong.trace".to_owned());
    let forms = ["text", "json", "sarif", "junit", "github", "github-summary"];
    let mut first: Option<Vec<String>> = None;
    for jobs in ["1", "2", "7"] {
        let mut arguments: Vec<String> =
            vec!["check".to_owned(), "--jobs".to_owned(), jobs.to_owned()];
        arguments.extend(files.iter().cloned());
        for form in forms {
            arguments.extend(["--report".to_owned(), format!("{form}=report.{form}")]);
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut outputs = vec![bench.run(&arguments, 1)];
        for form in forms {
            let file = bench.file(&format!("report.{form}"));
            outputs.push(fs::read_to_string(&file).expect("a report"));
            fs::remove_file(&file).expect("it is there");
        }
        for (options, code) in [(["--format", "concise"], 1), (["--statistics", "--verify"], 1)] {
            let listed: Vec<&str> = arguments[..3 + files.len()].to_vec();
            outputs.push(bench.run(&[&listed[..], &options[..]].concat(), code));
        }
        let expected = first.get_or_insert_with(|| outputs.clone());
        for (position, (output, expected)) in outputs.iter().zip(expected).enumerate() {
            assert!(output == expected, "output {position} with {jobs} jobs is another one");
        }
    }
    let outputs = first.expect("it ran");
    assert!(outputs[0].contains(" not read\n"), "{}", outputs[0]);
    let json: Value = serde_json::from_str(&outputs[2]).expect("JSON");
    let traces = json["traces"].as_array().expect("a list");
    assert!(traces.len() > files.len(), "a directory is several traces");
    assert!(json["findings"].as_array().expect("a list").len() > 50);
}

/// Broken, unfinished and missing files are named, each in a line, and the others are judged.
#[test]
fn files_that_cannot_be_read_stop_nothing() {
    let bench = Bench::new();
    let racy = corpus("fail/csan/csan_expired_record.trace").display().to_string();
    bench.write("clean.trace", "stream s1\n");
    bench.write("torn.db", "torn");
    bench.write("empty.trace", "");
    bench.write("wrong.trace", "launch\n");
    let broken = ["torn.db", "empty.trace", "wrong.trace", "gone.db"];
    let with = |first: &str, code| bench.run(&[&["check", first][..], &broken[..]].concat(), code);
    let text = with("clean.trace", 3);
    for file in broken {
        let told = |line: &&str| line.starts_with("incomplete: ") && line.contains(file);
        assert_eq!(text.lines().filter(told).count(), 1, "{file}: {text}");
    }
    let end = "traces: 5 traces, 4 not read\nverdict: INCOMPLETE - no races found, but not everything \
               was seen\n";
    assert!(text.ends_with(end), "{text}");
    let text = with(&racy, 1);
    assert!(text.contains("traces: 5 traces, 1 racy, 4 not read\n"), "{text}");
    // Where nothing can be read, nothing was judged.
    let output = bench.output(&[&["check"][..], &broken[..]].concat());
    assert_eq!(output.status.code(), Some(5));
    let said = String::from_utf8_lossy(&output.stderr);
    broken.iter().for_each(|file| assert!(said.contains(file), "{file}: {said}"));
    assert!(output.stdout.is_empty());
    // What the baseline knows of a trace that is missing today stays known.
    let baseline = |more: &[&str], code| {
        let gate = ["--baseline", "known", "--update-baseline"];
        bench.run(&[&["check", "clean.trace"][..], more, &gate[..]].concat(), code);
        fs::read_to_string(bench.file("known")).expect("a baseline")
    };
    let known = baseline(&[&racy], 1);
    assert_eq!(baseline(&["torn.db"], 3), known);
    assert_ne!(baseline(&[], 0), known);
}

/// A user who has seen enough waits for no trace that is in work.
#[test]
fn an_interrupt_ends_it_at_once() {
    let bench = Bench::new();
    mknodat(CWD, bench.file("slow.trace"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
        .expect("a pipe");
    bench.write("clean.trace", "stream s1\n");
    let mut child = Command::new(env!("CARGO_BIN_EXE_streamsan"))
        .args(["check", "--jobs", "2", "slow.trace", "clean.trace"])
        .current_dir(bench.file(""))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("the command runs");
    // Opened once the command reads it, which then waits for what is never written.
    let pipe = fs::OpenOptions::new().write(true).open(bench.file("slow.trace")).expect("a reader");
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::INT).expect("it is there");
    let status = child.wait().expect("it ends");
    assert_eq!(status.signal(), Some(Signal::INT.as_raw()), "{status}");
    drop(pipe);
}

/// All files below a directory, by their names.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).expect("readable") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            let bytes = fs::read(&path).expect("readable");
            found.insert(path, bytes);
        }
    }
    found
}

/// Tables of many traces are the same whatever writes them, and a trace that cannot be read keeps
/// nothing from the others.
#[test]
fn tables_of_many_traces() {
    let bench = Bench::new();
    let mut files: Vec<String> =
        corpus_traces().iter().step_by(20).map(|path| path.display().to_string()).collect();
    files.push(corpus("recorded").display().to_string());
    let export = |directory: &str, jobs: &str, more: &[&str], code: i32| {
        let mut arguments = vec!["export", "--format", "parquet", "-o", directory, "--jobs", jobs];
        arguments.extend(files.iter().map(String::as_str).chain(more.iter().copied()));
        assert_eq!(bench.run(&arguments, code), "");
    };
    let tables = || {
        let all = contents(&bench.file("tables"));
        fs::remove_dir_all(bench.file("tables")).expect("it is there");
        all
    };
    export("tables", "1", &[], 0);
    let one = tables();
    assert!(one.len() > 12 * files.len(), "a directory is several traces");
    export("tables", "5", &[], 0);
    assert!(tables() == one);
    bench.write("torn.db", "torn");
    export("tables", "2", &["torn.db", "gone.db"], 5);
    assert_eq!(tables().len(), one.len());
}

#[test]
fn exports_that_say_nothing_are_refused() {
    let bench = Bench::new();
    bench.write("clean.trace", "stream s1\n");
    for arguments in [
        &["--format", "parquet", "clean.trace"][..],
        &["--format", "parquet", "-o", "tables", "--verify", "clean.trace"],
        &["--format", "parquet", "-o", "tables", "--source-root", ".", "clean.trace"],
        &["--format", "parquet", "-o", "tables", "."],
        &["--format", "json", "clean.trace", "clean.trace"],
        &["--format", "json", "--jobs", "2", "clean.trace"],
        &["--format", "arrow", "clean.trace"],
        &["--format", "json"],
    ] {
        let output = bench.output(&[&["export"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{arguments:?}");
    }
    assert!(!bench.file("tables").exists());
    bench.run(&["export", "--format", "parquet", "-o", "tables", "gone.trace"], 5);
}
