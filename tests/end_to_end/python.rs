//! Python programs: the stack of each call in the trace is the one that the interpreter told the
//! program itself, and a race names the lines of the script. For each interpreter that is installed.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use libtest_mimic::{Arguments, Trial};
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;
use streamsan_testing::interpreters::interpreters;

use crate::command::{Ended, Scratch, arguments};
use crate::trial;

/// Calls of the program that get a stack.
const WITH_STACKS: [&str; 8] = [
    "cuMemAlloc_v2",
    "cuMemFree_v2",
    "cuMemcpyHtoD_v2",
    "cuMemsetD8Async",
    "cuEventRecord",
    "cuStreamWaitEvent",
    "cuStreamSynchronize",
    "cuCtxSynchronize",
];

/// Frames of a trace, one a row, by operation and from the innermost on.
const FRAMES: &str = "
    SELECT op.g, api.value, frame.image IS NULL, file.value, function.value, source.line
    FROM op
    JOIN string AS api ON api.id = op.api
    LEFT JOIN stack ON stack.id = op.stack
    LEFT JOIN frame ON frame.id = stack.frame
    LEFT JOIN frame_source AS source ON source.frame = frame.id
    LEFT JOIN string AS file ON file.id = source.file
    LEFT JOIN string AS function ON function.id = source.function
    ORDER BY op.g, stack.depth, source.ordinal";

pub(crate) fn add(trials: &mut Vec<Trial>) {
    // Test runners start one process a trial: those of others need not ask every interpreter.
    let arguments = Arguments::from_args();
    if arguments.exact && arguments.filter.is_some_and(|name| !name.starts_with("python::")) {
        return;
    }
    for interpreter in interpreters() {
        let path = interpreter.path;
        let name = format!("python::{}", path.display());
        if interpreter.refused {
            trials.push(trial(format!("{name}::refused"), move || refused(&path)));
            continue;
        }
        for mode in ["python", "auto"] {
            let path = path.clone();
            trials.push(trial(format!("{name}::{mode}"), move || stacks(&path, mode)));
        }
    }
}

/// File, function and line.
type Frame = (String, String, i64);

#[derive(Debug, Default, PartialEq)]
struct Call {
    api: String,
    /// Python frames, from the innermost one on.
    python: Vec<Frame>,
    /// Functions of all frames, those of machine code as far as they have names.
    all: Vec<String>,
}

fn run(scratch: &Scratch, python: &Path, mode: &str) -> Ended {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/python/stacks.py");
    let told = scratch.file("told.jsonl");
    let options = scratch.run_options();
    let run = [OsStr::new("--"), python.as_os_str(), program.as_os_str(), told.as_os_str()];
    let first = ["run", "--sim", "--stacks", mode];
    let ended = scratch.finish(&mut scratch.streamsan(&arguments(&first, &options, &run)));
    ended.expect_code(66);
    ended
}

fn stacks(python: &Path, mode: &str) {
    let scratch = Scratch::new();
    run(&scratch, python, mode);
    let told = calls_told(&scratch.file("told.jsonl"));
    let stored = calls_stored(&scratch.trace());
    assert_eq!(stored.len(), told.len(), "{stored:#?}");
    for (stored, told) in stored.iter().zip(&told) {
        // At most 64 Python frames are recorded.
        let expected: Vec<_> = told.python.iter().take(64).cloned().collect();
        assert_eq!((&stored.api, &stored.python), (&told.api, &expected));
    }
    match mode {
        "python" => assert!(stored.iter().all(|call| call.all.len() == call.python.len())),
        _ => mixed(&stored),
    }
    // The one race, and where it comes from.
    let report = scratch.report();
    assert_eq!(report["findings"].as_array().map(Vec::len), Some(1), "{report:#}");
    for (side, writer) in ["first_writer", "second_writer"].into_iter().enumerate() {
        let told = told.iter().find(|call| call.python.iter().any(|(_, name, _)| name == writer));
        let told = &told.expect("the program calls it").python;
        let shown = report["findings"][0]["accesses"][side]["stack"].as_array().expect("a stack");
        let of_script = |frame: &&Value| {
            frame["file"].as_str().is_some_and(|file| file.ends_with("python/stacks.py"))
        };
        let shown = shown.iter().filter(of_script).filter_map(|frame| frame["line"].as_i64());
        let shown: Vec<_> = shown.collect();
        let lines: Vec<_> = told.iter().map(|(_, _, line)| *line).collect();
        assert_eq!(shown, lines, "{report:#}");
    }
}

/// Frames of machine code stand between those of Python, and in the place of the interpreter's
/// evaluation function.
fn mixed(calls: &[Call]) {
    let short = calls.iter().filter(|call| call.all.len() < 64);
    let left =
        short.flat_map(|call| &call.all).find(|name| name.contains("_PyEval_EvalFrameDefault"));
    assert_eq!(left, None);
    let places = calls.iter().find_map(|call| {
        let place = |part: &str| call.all.iter().position(|name| name.contains(part));
        Some((place("lambda")?, place("qsort")?, place("ordered")?))
    });
    // Before 3.11 the name of a lambda says nothing of the function around it.
    let (callback, sort, caller) = places.expect("one call comes from within qsort");
    assert!(callback < sort && (sort < caller || caller == callback), "{places:?}");
}

fn refused(python: &Path) {
    let scratch = Scratch::new();
    let ended = run(&scratch, python, "auto");
    assert!(ended.stderr.contains("have no Python frames"), "{}", ended.stderr);
    assert!(calls_stored(&scratch.trace()).iter().all(|call| call.python.is_empty()));
}

/// The calls that the program wrote.
fn calls_told(path: &Path) -> Vec<Call> {
    let text = fs::read_to_string(path).expect("the program writes its stacks");
    let calls = text.lines().map(|line| {
        let call: Value = serde_json::from_str(line).expect("a JSON object a line");
        let frames = call["stack"].as_array().expect("a list").iter().map(|frame| {
            let text = |index: usize| frame[index].as_str().expect("text").to_owned();
            (text(0), text(1), frame[2].as_i64().expect("a line"))
        });
        let api = call["api"].as_str().expect("a name").to_owned();
        Call { api, python: frames.collect(), all: Vec::new() }
    });
    calls.filter(|call| WITH_STACKS.contains(&call.api.as_str())).collect()
}

/// The calls that the trace has.
fn calls_stored(trace: &Path) -> Vec<Call> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let trace = Connection::open_with_flags(trace, flags).expect("a trace");
    let mut query = trace.prepare(FRAMES).expect("the schema");
    let mut rows = query.query([]).expect("the schema");
    let mut calls: Vec<Call> = Vec::new();
    let mut latest: Option<i64> = None;
    while let Some(row) = rows.next().expect("a row") {
        let g: i64 = row.get(0).expect("an operation");
        if latest.replace(g) != Some(g) {
            let api = row.get(1).expect("a name");
            calls.push(Call { api, ..Call::default() });
        }
        let call = calls.last_mut().expect("the one of this row");
        let function: Option<String> = row.get(4).expect("text or none");
        let line: Option<i64> = row.get(5).expect("a line or none");
        if let (true, Some(name), Some(line)) = (row.get(2).expect("a flag"), &function, line) {
            call.python.push((row.get(3).expect("a file"), name.clone(), line));
        }
        call.all.extend(function);
    }
    calls.retain(|call| WITH_STACKS.contains(&call.api.as_str()));
    calls
}
