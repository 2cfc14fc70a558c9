//! Programs that are compiled with a sanitizer of the C compiler run as they do without streamsan:
//! the same exit code, and no word of the sanitizer's.
//!
//! ThreadSanitizer's runtime looks functions up before it is ready itself, AddressSanitizer's wants
//! to come first among the libraries, and LeakSanitizer's reports what is never freed.

use std::ffi::OsStr;

use libtest_mimic::Trial;

use crate::command::{Scratch, arguments};
use crate::{programs, trial};

/// What the compiler is told for each sanitizer and each form of its runtime.
const SANITIZERS: [(&str, &str); 6] = [
    ("thread", "-g -fsanitize=thread"),
    ("thread_static", "-g -fsanitize=thread -static-libtsan"),
    ("address", "-g -fsanitize=address"),
    ("address_static", "-g -fsanitize=address -static-libasan"),
    ("leak", "-g -fsanitize=leak"),
    ("undefined", "-g -fsanitize=undefined"),
];

/// One with threads of its own, one that forks.
const PROGRAMS: [&str; 2] = ["threads_that_exit", "fork"];

pub(crate) fn add(trials: &mut Vec<Trial>) {
    for (name, options) in SANITIZERS {
        let name = format!("sanitizer::{name}");
        trials.push(trial(name, move || PROGRAMS.iter().for_each(|name| runs(name, options))));
    }
}

/// The programs are racy and succeed, so the verdict shows that they were recorded, and the exit
/// code that nothing else went wrong.
fn runs(name: &str, options: &str) {
    let scratch = Scratch::new();
    let program = programs::c_with(options, name, scratch.path());
    let files = scratch.run_options();
    let run = [OsStr::new("--"), program.as_os_str()];
    let first = ["run", "--sim", "--exit-as-program"];
    let ended = scratch.finish(&mut scratch.streamsan(&arguments(&first, &files, &run)));
    ended.expect_code(0);
    assert!(!ended.stderr.contains("Sanitizer"), "{name}: {}", ended.stderr);
    assert_eq!(scratch.report()["verdict"], "RACY", "{name}: {}", ended.stderr);
}
