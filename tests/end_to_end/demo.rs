//! `streamsan demo`: one race of class missing-wait with a trace to look at; none with --clean.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use libtest_mimic::Trial;
use rusqlite::{Connection, OpenFlags};
use streamsan_testing::golden;

use crate::command::Scratch;
use crate::trial;

pub(crate) fn add(trials: &mut Vec<Trial>) {
    trials.push(trial("demo::racy", racy));
    trials.push(trial("demo::clean", clean));
    trials.push(trial("demo::is_what_the_readme_shows", readme));
}

fn racy() {
    let scratch = Scratch::new();
    let trace = scratch.trace();
    let arguments = [OsStr::new("demo"), OsStr::new("-o"), trace.as_os_str()];
    let ended = scratch.finish(&mut scratch.streamsan(&arguments));
    ended.expect_code(66);
    let printed = format!("{}{}", String::from_utf8_lossy(&ended.stdout), ended.stderr);
    assert!(printed.contains("missing-wait"), "{printed}");
    assert!(printed.contains(&*trace.to_string_lossy()), "{printed}");
    // There is no source tree in this folder: the command brings the lines.
    let quoted = "result::memcpy_dtod_async(image, inbox, IMAGE_BYTES, compute)?;";
    assert!(printed.contains(quoted), "{printed}");
    let check = [OsStr::new("check"), trace.as_os_str()];
    let check = scratch.finish(&mut scratch.streamsan(&check));
    assert!(String::from_utf8_lossy(&check.stdout).contains(quoted));

    let trace = Connection::open_with_flags(&trace, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .expect("the trace opens");
    let count = |table: &str| -> i64 {
        let query = format!("select count(*) from {table}");
        trace.query_row(&query, (), |row| row.get(0)).expect("the table is there")
    };
    assert_eq!(count("finding"), 1);
    assert!(count("access") > 0);
    assert!(count("edge") > 0);
}

fn clean() {
    let scratch = Scratch::new();
    let trace = scratch.trace();
    let arguments =
        [OsStr::new("demo"), OsStr::new("--clean"), OsStr::new("-o"), trace.as_os_str()];
    scratch.finish(&mut scratch.streamsan(&arguments)).expect_code(0);
}

/// The report in the README, which a reader sees before anything else. Addresses and ids differ from
/// build to build.
fn readme() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let scratch = Scratch::new();
    let trace = scratch.trace();
    let arguments = [OsStr::new("demo"), OsStr::new("-o"), trace.as_os_str()];
    let mut command = scratch.streamsan(&arguments);
    let ended = scratch.finish(command.current_dir(&root));
    let printed = ended.stderr.replace(&*trace.to_string_lossy(), "streamsan-demo.db");
    let shown = report_in(&printed).expect("the demo reports its race");

    let path = root.join("README.md");
    let readme = fs::read_to_string(&path).expect("the README is readable");
    let kept = report_in(&readme).expect("the README shows the demo's report");
    if lasting(kept) != lasting(shown) {
        golden::check(&path, &readme.replacen(kept, shown, 1));
    }
}

/// From the headline of the race to the verdict.
fn report_in(text: &str) -> Option<&str> {
    let begin = text.find("error[missing-wait]")?;
    let verdict = begin + text[begin..].find("\nverdict: ")? + 1;
    let end = text[verdict..].find('\n').map_or(text.len(), |len| verdict + len);
    Some(&text[begin..end])
}

/// A report without the handles of streams, the id of the race, and the module that an inlined function
/// has no name of.
fn lasting(report: &str) -> String {
    let is_lasting = |word: &&str| !word.starts_with("0x");
    let lines = report.lines().map(|line| {
        let line = line.split_once(", id ").map_or(line, |(before, _)| before);
        let words = line.split_inclusive(' ').filter(is_lasting).collect::<String>();
        words.replace("streamsan_demo::", "")
    });
    lines.collect::<Vec<_>>().join("\n")
}
