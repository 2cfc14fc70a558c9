//! Native stacks, from the program to the trace: programs without frame pointers whose calls come
//! from functions that are known by name and line, in C, C++ and Rust. Python has a file of its own.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::Trial;
use rusqlite::{Connection, OpenFlags};

use crate::command::{Ended, Scratch, arguments};
use crate::{programs, trial};

/// Functions of a call's frames from the innermost on, inlined ones too.
const FRAMES: &str = "
    SELECT op.g, function.value, file.value, source.line, source.is_inlined, image.value
    FROM op JOIN string AS api ON api.id = op.api
    JOIN stack ON stack.id = op.stack
    JOIN frame ON frame.id = stack.frame
    LEFT JOIN string AS image ON image.id = frame.image
    LEFT JOIN frame_source AS source ON source.frame = frame.id
    LEFT JOIN string AS function ON function.id = source.function
    LEFT JOIN string AS file ON file.id = source.file
    WHERE api.value = ? ORDER BY op.g, stack.depth, source.ordinal";

pub(crate) fn add(trials: &mut Vec<Trial>) {
    trials.push(trial("stacks::c_without_frame_pointers", c));
    trials.push(trial("stacks::cpp_in_libraries_that_come_and_go", cpp));
    trials.push(trial("stacks::rust", rust));
    trials.push(trial("stacks::off_records_none", off));
}

#[derive(Debug)]
struct Frame {
    function: String,
    file: String,
    line: i64,
    inlined: bool,
    image: String,
}

/// The stacks of all calls of an entry point.
fn stacks(scratch: &Scratch, api: &str) -> Vec<Vec<Frame>> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let connection = Connection::open_with_flags(scratch.trace(), flags).expect("a trace");
    let mut statement = connection.prepare(FRAMES).expect("the trace has these tables");
    let base = |text: Option<String>| {
        let text = text.unwrap_or_default();
        text.rsplit('/').next().unwrap_or_default().to_owned()
    };
    let rows = statement.query_map([api], |row| {
        let frame = Frame {
            function: row.get::<_, Option<String>>(1)?.unwrap_or_default(),
            file: base(row.get(2)?),
            line: row.get::<_, Option<i64>>(3)?.unwrap_or_default(),
            inlined: row.get::<_, Option<bool>>(4)?.unwrap_or_default(),
            image: base(row.get(5)?),
        };
        Ok((row.get::<_, i64>(0)?, frame))
    });
    let mut stacks: Vec<(i64, Vec<Frame>)> = Vec::new();
    for row in rows.expect("the trace is readable") {
        let (g, frame) = row.expect("the trace is readable");
        match stacks.last_mut() {
            Some((last, frames)) if *last == g => frames.push(frame),
            _ => stacks.push((g, vec![frame])),
        }
    }
    stacks.into_iter().map(|(_, frames)| frames).collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/stacks")
}

fn build(scratch: &Scratch) {
    let built = Command::new(folder().join("build.sh")).arg(scratch.path()).output();
    let built = built.expect("the script starts");
    assert!(
        built.status.success(),
        "the programs do not build (C and C++ compilers are needed): {}",
        String::from_utf8_lossy(&built.stderr)
    );
}

fn run(scratch: &Scratch, stacks: &str, program: &Path, words: &[&OsStr]) -> Ended {
    let options = scratch.run_options();
    let mut run = vec![OsStr::new("--"), program.as_os_str()];
    run.extend(words);
    let first = ["run", "--sim", "--stacks", stacks];
    scratch.finish(&mut scratch.streamsan(&arguments(&first, &options, &run)))
}

/// Function and line of each frame up to `main`.
fn up_to_main(frames: &[Frame]) -> Vec<(&str, i64)> {
    let end = frames.iter().position(|frame| frame.function == "main").expect("main");
    frames[..=end].iter().map(|frame| (frame.function.as_str(), frame.line)).collect()
}

fn c() {
    let scratch = Scratch::new();
    build(&scratch);
    run(&scratch, "native", &scratch.file("inlined"), &[]).expect_code(66);
    let source = std::fs::read_to_string(folder().join("inlined.c")).expect("the source");
    let line = |mark: &str| {
        let mark = format!("/* line: {mark} */");
        let at = source.lines().position(|line| line.contains(&mark)).expect("a marked line");
        at as i64 + 1
    };
    let memsets = stacks(&scratch, "cuMemsetD8Async");
    let expected =
        [("fill_left", "work, left"), ("fill_right", "work, right")].map(|(own, from)| {
            [("fill", line("fill")), (own, line(own)), ("work", line(from)), ("main", line("main"))]
        });
    assert_eq!(memsets.len(), expected.len());
    for (found, expected) in memsets.iter().zip(expected) {
        assert_eq!(up_to_main(found), expected, "{found:#?}");
        assert!(found[0].inlined && !found[1].inlined);
        assert_eq!((found[0].file.as_str(), found[0].image.as_str()), ("inlined.c", "inlined"));
    }
    let allocations = stacks(&scratch, "cuMemAlloc_v2");
    assert_eq!(allocations.len(), 1);
    assert_eq!(
        up_to_main(&allocations[0])[..1],
        [("make_buffer", line("make_buffer"))],
        "{allocations:#?}"
    );
}

fn cpp() {
    let scratch = Scratch::new();
    build(&scratch);
    let [first, second] = ["libfirst.so", "libsecond.so"].map(|name| scratch.file(name));
    let libraries = [first.as_os_str(), second.as_os_str(), first.as_os_str()];
    run(&scratch, "native", &scratch.file("plugins"), &libraries).expect_code(0);
    let memsets = stacks(&scratch, "cuMemsetD8Async");
    let expected = [("first", "libfirst.so"), ("second", "libsecond.so"), ("first", "libfirst.so")];
    assert_eq!(memsets.len(), expected.len());
    for (found, (namespace, library)) in memsets.iter().zip(expected) {
        let names: Vec<&str> = up_to_main(found).into_iter().map(|(name, _)| name).collect();
        let job = format!("{namespace}::Job<float>::run");
        assert_eq!(names[0], "clear", "{found:#?}");
        assert!(names[1].starts_with(&job), "{found:#?}");
        assert_eq!(names[2..], ["plugin", "main"], "{found:#?}");
        assert_eq!(found[1].image, library);
        assert_eq!(found[1].file, "plugin.cpp");
    }
}

/// A program with the usual settings of cargo, through the crates that it uses.
fn rust() {
    let scratch = Scratch::new();
    let program = programs::rust("use_after_free");
    run(&scratch, "auto", &program, &[OsStr::new("racy")]).expect_code(66);
    for api in ["cuMemFreeAsync", "cuMemsetD8Async"] {
        let found = stacks(&scratch, api);
        assert_eq!(found.len(), 1, "{api}");
        for found in found {
            let names: Vec<&str> = found.iter().map(|frame| frame.function.as_str()).collect();
            let own = names.iter().position(|name| *name == "programs::use_after_free::program");
            let main = names.iter().position(|name| *name == "programs::main");
            assert!(own.is_some() && own < main, "{api}: {names:#?}");
        }
    }
}

fn off() {
    let scratch = Scratch::new();
    build(&scratch);
    run(&scratch, "off", &scratch.file("inlined"), &[]).expect_code(66);
    assert!(stacks(&scratch, "cuMemsetD8Async").is_empty());
}
