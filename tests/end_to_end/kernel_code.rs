//! The code of kernels: images that a program copies together, that lie in its own file or in a file
//! beside it, and what a second run keeps of the first; pointers that the program keeps in variables.
//! The driver withholds what kernels touch.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::time::SystemTime;

use libtest_mimic::Trial;
use rustix::process::{Pid, Signal, kill_process_group};
use streamsan_model::{AllocationId, CodeSource, KernelId, Mode, Module, ModuleId};
use streamsan_store::Reader;

use crate::command::{Ended, Scratch, arguments};
use crate::{programs, trial};

const PROGRAM: &str = "loads_code";

pub(crate) fn add(trials: &mut Vec<Trial>) {
    for how in ["memory", "constant", "file", "library"] {
        trials.push(trial(format!("kernel_code::loaded_from::{how}"), move || loaded(how)));
    }
    trials.push(trial("kernel_code::a_program_outruns_the_reader", outrun));
    for (how, verdict, code) in
        [("read", "CLEAN", 0), ("write", "RACY", 66), ("pinned", "INCOMPLETE", 3)]
    {
        let name = format!("kernel_code::pointer_in_variable::{how}");
        trials.push(trial(name, move || pointer_in_variable(how, verdict, code)));
    }
    trials.push(trial("kernel_code::reading_can_be_stopped", stopped));
    trials.push(trial("kernel_code::a_second_run_keeps_the_conclusions", second_run));
    trials.push(trial("kernel_code::stats_tell_the_share_that_is_known", stats));
    trials.push(trial("kernel_code::stats_count_the_kernels_of_graphs", stats_of_graphs));
}

fn run(scratch: &Scratch, how: &str) -> Ended {
    run_program(scratch, PROGRAM, how)
}

fn run_program(scratch: &Scratch, program: &str, how: &str) -> Ended {
    let program = programs::c(program, scratch.path());
    let options = scratch.run_options();
    // Assumed accesses would be reported too.
    let first = ["run", "--sim", "--fail-on", "possible"];
    let run = [OsStr::new("--"), program.as_os_str(), OsStr::new(how)];
    let mut command = scratch.streamsan(&arguments(&first, &options, &run));
    command.env("STREAMSAN_SIM_ACCESSES", "inferred").env("XDG_CACHE_HOME", scratch.file("cache"));
    scratch.finish(&mut command)
}

fn loaded(how: &str) {
    let scratch = Scratch::new();
    let ended = run(&scratch, how);
    assert_eq!(scratch.report()["verdict"], "CLEAN", "{}", ended.stderr);
    ended.expect_code(0);
    let reader = Reader::open(&scratch.trace()).expect("the trace opens");
    let entities = reader.entities().expect("the trace is whole");
    let code = entities.kernel_code(KernelId(0)).expect("its code was looked at");
    assert_eq!((code.source, code.module), (CodeSource::Ptx, Some(ModuleId(0))));
    let modes: Vec<_> = code.words.iter().map(|word| (word.param, word.mode)).collect();
    assert_eq!(modes, [(0, Some(Mode::Read)), (1, Some(Mode::Write))]);
    let module = entities.module(ModuleId(0)).expect("the image is told");
    let Module { hash, size, path, offset, .. } = module;
    let program = scratch.file(PROGRAM);
    match how {
        "memory" => assert!(hash.is_some() && path.is_none() && *size > 100),
        "file" => assert_eq!(path.as_deref(), scratch.file("kernel.ptx").to_str()),
        _ => {
            assert_eq!((hash, path.as_deref()), (&None, program.to_str()));
            let file = fs::read(&program).expect("the program is readable");
            let image = &file[*offset as usize..][..*size as usize];
            assert!(image.starts_with(b".version 7.0") && image.ends_with(b"}\n"));
        }
    }
}

/// Launches that were handed on before the code was known are what the code says in the end.
fn outrun() {
    let scratch = Scratch::new();
    let ended = run_program(&scratch, "outruns_the_reader", "");
    // Dropped records would make it incomplete, and launches that were not looked at again racy.
    assert_eq!(scratch.report()["verdict"], "CLEAN", "{}", ended.stderr);
    ended.expect_code(0);
}

/// Kernels reach a buffer by a pointer that the program has put into a variable.
fn pointer_in_variable(how: &str, verdict: &str, code: i32) {
    let scratch = Scratch::new();
    let ended = run_program(&scratch, "pointer_in_variable", how);
    let report = scratch.report();
    assert_eq!(report["verdict"], verdict, "{}", ended.stderr);
    ended.expect_code(code);
    let findings = report["findings"].as_array().expect("a report has a list of findings");
    let bytes =
        |at: &str| findings.iter().filter_map(|found| found["overlap"][at].as_u64()).collect();
    let (starts, ends): (Vec<u64>, Vec<u64>) = (bytes("start"), bytes("end"));
    let reader = Reader::open(&scratch.trace()).expect("the trace opens");
    let entities = reader.entities().expect("the trace is whole");
    let buffer = entities.allocation(AllocationId(0)).expect("it is the first").range.start;
    match how {
        "write" => assert_eq!((starts, ends), (vec![buffer + 256], vec![buffer + 384])),
        _ => assert!(findings.is_empty(), "{report:#}"),
    }
}

/// The code of a kernel never comes. The user stops waiting for it and gets the verdict without it.
fn stopped() {
    let scratch = Scratch::new();
    let program = programs::c("code_never_comes", scratch.path());
    let options = scratch.run_options();
    let run = [OsStr::new("--"), program.as_os_str()];
    let mut command = scratch.streamsan(&arguments(&["run", "--sim"], &options, &run));
    command.env("STREAMSAN_SIM_ACCESSES", "inferred").env("XDG_CACHE_HOME", scratch.file("cache"));
    command.process_group(0);
    let mut running = scratch.start(&mut command);
    let said = "reading the code of 1 kernel (1 left: fill_words) – Ctrl-C: stop reading; the \
                verdict is made without it";
    running.wait_for_message(said);
    kill_process_group(Pid::from_child(&running.child), Signal::INT).expect("it can be told");
    let ended = running.wait();
    let report = scratch.report();
    assert_eq!(report["verdict"], "INCOMPLETE", "{}", ended.stderr);
    ended.expect_code(3);
    let text = report["reasons"][0]["text"].as_str().expect("a reason has words");
    assert!(text.contains("kernel fill_words, whose code was not read to the end"), "{text}");
}

/// The files of conclusions, and when each was written.
fn kept(scratch: &Scratch) -> BTreeMap<String, SystemTime> {
    let folder = scratch.file("cache").join("streamsan/kernels");
    let entries = fs::read_dir(folder).expect("conclusions are kept");
    let written = |path: &Path| fs::metadata(path).and_then(|file| file.modified());
    entries
        .map(|entry| entry.expect("the folder is readable").path())
        .map(|path| (path.display().to_string(), written(&path).expect("its time is known")))
        .collect()
}

fn second_run() {
    let scratch = Scratch::new();
    run(&scratch, "memory").expect_code(0);
    let first = kept(&scratch);
    assert_eq!(first.len(), 1);
    run(&scratch, "memory").expect_code(0);
    assert_eq!(kept(&scratch), first);
    // One that is damaged is made again.
    let path = first.keys().next().expect("there is one");
    fs::write(path, b"damaged").expect("it can be written");
    run(&scratch, "memory").expect_code(0);
    assert!(fs::read(path).expect("it is there").len() > 100);
}

/// The kernels in the output of `stats`.
fn kernel_modes(scratch: &Scratch) -> serde_json::Value {
    let trace = scratch.trace();
    let told = ["stats", "--json"].map(OsStr::new);
    let told: Vec<&OsStr> = told.into_iter().chain([trace.as_os_str()]).collect();
    let ended = scratch.finish(&mut scratch.streamsan(&told));
    ended.expect_code(0);
    let stats: serde_json::Value = serde_json::from_slice(&ended.stdout).expect("it is JSON");
    stats["kernel_modes"].clone()
}

fn stats() {
    let scratch = Scratch::new();
    run(&scratch, "library").expect_code(0);
    let known = &kernel_modes(&scratch)["by_source"][0];
    assert_eq!((&known["source"], &known["launches"]), (&"PTX".into(), &2.into()), "{known:#}");
    assert_eq!((&known["words"], &known["known"]), (&2.into(), &2.into()));
}

/// Kernels that are launched while a stream captures, and nowhere else.
fn stats_of_graphs() {
    let scratch = Scratch::new();
    let program = programs::rust("graph_kernels_branches");
    let options = scratch.run_options();
    let run = [OsStr::new("--"), program.as_os_str(), OsStr::new("clean")];
    let mut command = scratch.streamsan(&arguments(&["run", "--sim"], &options, &run));
    scratch.finish(&mut command).expect_code(0);
    let modes = kernel_modes(&scratch);
    let kernels = modes["kernels"].as_array().expect("a list").iter().map(|kernel| {
        let [name, launches, known, words] =
            ["kernel", "launches", "known", "words"].map(|key| &kernel[key]);
        format!("{name}: {launches} launches, {known} of {words} words")
    });
    let expected = ["\"scale\": 3 launches, 2 of 2 words", "\"fill\": 1 launches, 1 of 1 words"];
    assert_eq!(kernels.collect::<Vec<_>>(), expected);
}
