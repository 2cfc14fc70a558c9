//! Programs that are compiled with a sanitizer of a C compiler run as they do without streamsan:
//! the same exit code, and no word of the sanitizer's.
//!
//! ThreadSanitizer's runtime looks functions up before it is ready itself, AddressSanitizer's wants
//! to come first among the libraries, and LeakSanitizer's reports what is never freed.

use std::ffi::OsStr;
use std::process::Command;

use libtest_mimic::Trial;

use crate::command::{Scratch, arguments};
use crate::{programs, trial};

/// Each sanitizer in each form of its runtime: what the test is called, the compiler, and what it is
/// told. Clang's runtimes are static unless `-shared-libsan` says otherwise.
///
/// Deliberately absent: the dynamic ThreadSanitizer of clang 14, whose programs crash before `main`
/// without streamsan too, and HWAddressSanitizer, which needs tagged addresses.
const SANITIZERS: [(&str, &str, &str); 13] = [
    ("gcc_thread", "gcc", "-fsanitize=thread"),
    ("gcc_thread_static", "gcc", "-fsanitize=thread -static-libtsan"),
    ("gcc_address", "gcc", "-fsanitize=address"),
    ("gcc_address_static", "gcc", "-fsanitize=address -static-libasan"),
    ("gcc_leak", "gcc", "-fsanitize=leak"),
    ("gcc_undefined", "gcc", "-fsanitize=undefined"),
    ("clang_thread", "clang", "-fsanitize=thread"),
    ("clang_address", "clang", "-fsanitize=address"),
    ("clang_address_shared", "clang", "-fsanitize=address -shared-libsan"),
    ("clang_leak", "clang", "-fsanitize=leak"),
    ("clang_memory", "clang", "-fsanitize=memory"),
    ("clang_undefined", "clang", "-fsanitize=undefined"),
    ("clang_safe_stack", "clang", "-fsanitize=safe-stack"),
];

/// One with threads of its own, one that forks.
const PROGRAMS: [&str; 2] = ["threads_that_exit", "fork"];

pub(crate) fn add(trials: &mut Vec<Trial>) {
    for (name, compiler, options) in SANITIZERS {
        let name = format!("sanitizer::{name}");
        trials.push(trial(name, move || {
            let options = format!("-g {options} {}", where_runtimes_are(compiler, options));
            PROGRAMS.iter().for_each(|name| runs(compiler, &options, name));
        }));
    }
}

/// Clang's shared runtimes lie where the loader does not look.
fn where_runtimes_are(compiler: &str, options: &str) -> String {
    if !options.contains("-shared-libsan") {
        return String::new();
    }
    let asked = Command::new(compiler).arg("-print-runtime-dir").output();
    let asked = asked.unwrap_or_else(|e| panic!("{compiler} is needed: {e}"));
    format!("-Wl,-rpath,{}", String::from_utf8_lossy(&asked.stdout).trim())
}

/// The programs are racy and succeed, so the verdict shows that they were recorded, and the exit
/// code that nothing else went wrong.
fn runs(compiler: &str, options: &str, name: &str) {
    let scratch = Scratch::new();
    let program = programs::c_with(compiler, options, name, scratch.path());
    let files = scratch.run_options();
    let run = [OsStr::new("--"), program.as_os_str()];
    let first = ["run", "--sim", "--exit-as-program"];
    let ended = scratch.finish(&mut scratch.streamsan(&arguments(&first, &files, &run)));
    ended.expect_code(0);
    assert!(!ended.stderr.contains("Sanitizer"), "{name}: {}", ended.stderr);
    assert_eq!(scratch.report()["verdict"], "RACY", "{name}: {}", ended.stderr);
}
