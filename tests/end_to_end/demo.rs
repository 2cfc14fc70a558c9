//! `streamsan demo`: one race of class missing-wait with a trace to look at; none with --clean.

use std::ffi::OsStr;

use libtest_mimic::Trial;
use rusqlite::{Connection, OpenFlags};

use crate::command::Scratch;
use crate::trial;

pub(crate) fn add(trials: &mut Vec<Trial>) {
    trials.push(trial("demo::racy", racy));
    trials.push(trial("demo::clean", clean));
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
