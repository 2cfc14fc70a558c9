//! The places of calls in reports, from the program to each form.
#![expect(clippy::unwrap_used, reason = "a trial fails by panicking, where it stands")]

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::Trial;
use rusqlite::Connection;
use serde_json::Value;

use crate::command::{Ended, Scratch, arguments};
use crate::trial;

pub(crate) fn add(trials: &mut Vec<Trial>) {
    trials.push(trial("places::forms_agree", forms_agree));
    trials.push(trial("places::ids_outlast_moves", ids_outlast_moves));
    trials.push(trial("places::a_recording_without_names_gets_them", late_names));
}

/// A copy of the C programs in a folder, one of them compiled there with debug information.
fn program(scratch: &Scratch, folder: &str) -> PathBuf {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/c");
    let copy = scratch.file(folder);
    fs::create_dir_all(&copy).unwrap();
    for entry in fs::read_dir(sources).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, copy.join(path.file_name().unwrap())).unwrap();
    }
    let out = copy.join("out");
    let built = Command::new("sh")
        .arg(copy.join("build.sh"))
        .arg(&out)
        .arg("blocks_signals")
        .env("CC", "cc -g")
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    out.join("blocks_signals")
}

fn record(scratch: &Scratch, program: &Path, more: &[&str]) {
    let options = scratch.run_options();
    let rest = [OsStr::new("--"), program.as_os_str()];
    let first: Vec<&str> = ["run", "--sim"].iter().chain(more).copied().collect();
    scratch.finish(&mut scratch.streamsan(&arguments(&first, &options, &rest))).expect_code(66);
}

fn output(ended: &Ended) -> String {
    String::from_utf8_lossy(&ended.stdout).into_owned()
}

/// The line of a source that has a text in it.
fn line_of(scratch: &Scratch, file: &str, text: &str) -> u64 {
    let source = fs::read_to_string(scratch.file(file)).unwrap();
    let at = source.lines().position(|line| line.contains(text)).unwrap();
    at as u64 + 1
}

fn forms_agree() {
    let scratch = Scratch::new();
    let program = program(&scratch, "src");
    record(&scratch, &program, &["--report", "sarif=run.sarif"]);
    let first = line_of(&scratch, "src/work.h", "cuMemsetD8Async(buffer, 1");
    let second = line_of(&scratch, "src/work.h", "cuMemsetD8Async(buffer, 2");
    let made = first - 3;

    let report = scratch.report();
    let finding = &report["findings"][0];
    let place = |value: &Value, line: u64| {
        assert_eq!(value["place"]["file"], "src/work.h", "{value:#}");
        assert_eq!(value["place"]["line"], line, "{value:#}");
        assert_eq!(value["place"]["function"], "racy_memsets", "{value:#}");
        // The program's main is the outermost frame that is told.
        let frames = value["stack"].as_array().unwrap();
        assert_eq!(frames.last().unwrap()["function"], "main", "{value:#}");
    };
    place(&finding["accesses"][0], first);
    place(&finding["accesses"][1], second);
    place(&finding["overlap"], made);
    assert_eq!(finding["proposed_edge"]["record_after"]["line"], first);
    assert_eq!(finding["proposed_edge"]["wait_before"]["line"], second);

    let check = |form: &str| {
        let to = scratch.file("out");
        let mut report = OsString::from(format!("{form}="));
        report.push(&to);
        let trace = scratch.trace();
        let asked =
            [OsStr::new("check"), trace.as_os_str(), OsStr::new("--report"), report.as_os_str()];
        let ended = scratch.finish(&mut scratch.streamsan(&asked));
        ended.expect_code(1);
        (output(&ended), fs::read_to_string(to).unwrap())
    };
    // The stored trace says what the run said.
    let (text, json) = check("json");
    assert_eq!(json, fs::read_to_string(scratch.file("report.json")).unwrap());
    assert!(text.contains(&format!("at src/work.h:{first} in racy_memsets")), "{text}");
    assert!(text.contains(&format!("cuMemAlloc at src/work.h:{made} in racy_memsets")), "{text}");
    let (_, sarif) = check("sarif");
    assert_eq!(sarif, fs::read_to_string(scratch.file("run.sarif")).unwrap());
    let sarif: Value = serde_json::from_str(&sarif).unwrap();
    let location = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(location["artifactLocation"]["uri"], "src/work.h");
    assert_eq!(location["region"]["startLine"], second);
    let (_, github) = check("github");
    assert!(github.contains(&format!("::error file=src/work.h,line={second},")), "{github}");

    let explained = scratch
        .finish(&mut scratch.streamsan(&[OsStr::new("explain"), scratch.trace().as_os_str()]));
    explained.expect_code(0);
    let explained = output(&explained);
    for text in ["  must(cuMemsetD8Async(buffer, 1,", "  must(cuMemsetD8Async(buffer, 2,"] {
        assert!(explained.contains(text), "{}", explained);
    }
    for edge in [
        format!("after src/work.h:{first}: cuEventRecord(event, stream_of_1)\n"),
        format!("before src/work.h:{second}: cuStreamWaitEvent(stream_of_2, event, 0)\n"),
    ] {
        assert!(explained.contains(&edge), "{}", explained);
    }
    assert!(explained.contains("verified: "), "{}", explained);
}

fn id(scratch: &Scratch) -> String {
    scratch.report()["findings"][0]["id"].as_str().unwrap().to_owned()
}

/// The same program elsewhere, with other lines, is the same mistake; with other functions it is not.
fn ids_outlast_moves() {
    let scratch = Scratch::new();
    record(&scratch, &program(&scratch, "here"), &[]);
    let here = id(&scratch);
    let edited = program(&scratch, "there/deeper");
    let header = scratch.file("there/deeper/work.h");
    let text = fs::read_to_string(&header).unwrap();
    let build = |text: &str| {
        fs::write(&header, text).unwrap();
        let script = scratch.file("there/deeper/build.sh");
        let out = edited.parent().unwrap();
        let mut built = Command::new("sh");
        built.arg(script).arg(out).arg("blocks_signals").env("CC", "cc -g");
        assert!(built.status().unwrap().success());
    };
    build(&text.replace("static int device;", "\n\n\nstatic int device;"));
    record(&scratch, &edited, &[]);
    assert_eq!(id(&scratch), here);
    // Without stacks the id has no call sites.
    record(&scratch, &edited, &["--stacks", "off"]);
    assert_ne!(id(&scratch), here);
    build(&text);
    let main = scratch.file("there/deeper/blocks_signals.c");
    for path in [&header, &main] {
        let text = fs::read_to_string(path).unwrap();
        fs::write(path, text.replace("racy_memsets", "other_memsets")).unwrap();
    }
    build(&fs::read_to_string(&header).unwrap());
    record(&scratch, &edited, &[]);
    assert_ne!(id(&scratch), here);
}

/// A recording that was cut off before names were looked up: they are looked up when it is read.
fn late_names() {
    let scratch = Scratch::new();
    let program = program(&scratch, "src");
    record(&scratch, &program, &[]);
    let whole = scratch.report();
    let connection = Connection::open(scratch.trace()).unwrap();
    let native = "frame IN (SELECT id FROM frame WHERE image IS NOT NULL)";
    let gone = connection.execute(&format!("DELETE FROM frame_source WHERE {native}"), []).unwrap();
    assert!(gone > 0);
    let cut_off = "UPDATE meta SET value = 'recording' WHERE key = 'state'; DELETE FROM proof";
    connection.execute_batch(cut_off).unwrap();
    drop(connection);
    let check = |code| {
        let trace = scratch.trace();
        let asked = ["check", "--report", "json=late.json"].map(OsStr::new);
        let asked: Vec<&OsStr> = asked.into_iter().chain([trace.as_os_str()]).collect();
        scratch.finish(&mut scratch.streamsan(&asked)).expect_code(code);
        let text = fs::read_to_string(scratch.file("late.json")).unwrap();
        serde_json::from_str::<Value>(&text).unwrap()
    };
    assert_eq!(check(1)["findings"], whole["findings"]);
    // Another image by now: no name is better than a wrong one.
    let mut bytes = fs::read(&program).unwrap();
    // A note of 20 bytes, of the third type: the build id.
    let note = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0";
    let at = bytes.windows(note.len()).position(|window| window == note).unwrap() + note.len();
    bytes[at] ^= 1;
    fs::write(&program, bytes).unwrap();
    let finding = &check(1)["findings"][0];
    assert_eq!(finding["accesses"][0]["place"], Value::Null, "{finding:#}");
    assert_eq!(finding["class"], whole["findings"][0]["class"]);
}
