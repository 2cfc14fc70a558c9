//! Raw loads and stores of host memory, seen by fences (`--host-accesses=fence`): what is found, and
//! that programs which handle signals, memory and processes themselves run as they do without us.

use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::Trial;

use crate::command::{Ended, Scratch, arguments, simulated_driver};
use crate::expected::Findings;
use crate::trial;

/// A case of `orders.c`, and what is found of its racy and of its clean variant, `-` for nothing.
const ORDERS: &[(&str, &str, &str)] = &[
    ("read_early", "race host-read-early RAW certain 1", "-"),
    ("overwritten", "race host-buffer-reuse WAR certain 1", "-"),
    // Both only read.
    ("read_of_source", "-", "-"),
    ("other_stream", "race host-read-early RAW certain 1", "-"),
    ("other_event", "race stale-wait RAW certain 1", "-"),
    ("query", "race host-read-early RAW certain 1", "-"),
    ("second_stream", "race host-read-early RAW certain 1", "-"),
    ("legacy", "race host-read-early RAW certain 1", "-"),
    ("function_before", "race host-buffer-reuse WAR certain 1", "-"),
    ("function_behind", "race host-buffer-reuse WAR certain 1", "-"),
    ("graph_copy", "race host-read-early RAW certain 1", "-"),
    ("managed", "race host-read-early RAW certain 1", "-"),
    ("zero_copy", "race host-read-early RAW certain 1", "-"),
    // The touch lifts the fence of the page, and nothing is said of it.
    ("neighbour", "-", "-"),
    ("tail", "race host-read-early RAW certain 1", "-"),
    ("registered", "race host-read-early RAW certain 1", "-"),
    ("twice", "race host-read-early RAW certain 3", "-"),
    ("many_streams", "-", "-"),
    // More events than the runtime remembers count for more than they say.
    ("many_events", "race host-read-early RAW certain 1", "-"),
];

/// The cases of `hostile.c`.
const HOSTILE: &[&str] = &[
    "handler_before",
    "handler_after",
    "reset_hand",
    "null_dereference",
    "raised",
    "small_stack",
    "blocked",
    "threads",
    "forked",
    "vforked",
    "system_calls",
    "unmapped",
    "protected",
    "freed",
    "registered_again",
    "pinned_down",
];

/// Those of them that touch what the device uses.
const RACY: &[&str] = &[
    "handler_before",
    "handler_after",
    "reset_hand",
    "null_dereference",
    "raised",
    "small_stack",
    "blocked",
    "threads",
    "forked",
    "vforked",
    "system_calls",
];

pub(crate) fn add(trials: &mut Vec<Trial>) {
    for (case, racy, clean) in ORDERS {
        trials.push(trial(format!("host_accesses::{case}"), move || orders(case, racy, clean)));
    }
    for case in HOSTILE {
        trials.push(trial(format!("host_accesses::hostile_{case}"), move || hostile(case)));
    }
}

fn build(name: &str, scratch: &Scratch) -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/host_accesses/build.sh");
    let built =
        Command::new(script).arg(scratch.path()).arg(name).output().expect("the script starts");
    assert!(
        built.status.success(),
        "{name} does not build (a C compiler is needed): {}",
        String::from_utf8_lossy(&built.stderr)
    );
    scratch.path().join(name)
}

/// Runs a program under streamsan. Operations stay pending until a call needs them.
fn run(scratch: &Scratch, how: &str, program: &Path, words: &[&str]) -> Ended {
    let options = scratch.run_options();
    let how = format!("--host-accesses={how}");
    let first = ["run", "--sim=lazy", &how];
    let mut run = vec![OsStr::new("--"), program.as_os_str()];
    run.extend(words.iter().map(OsStr::new));
    scratch.finish(&mut scratch.streamsan(&arguments(&first, &options, &run)))
}

fn orders(case: &str, racy: &str, clean: &str) {
    let scratch = Scratch::new();
    let program = build("orders", &scratch);
    let expected = format!("{case}: done\n");
    for (variant, findings) in [("racy", racy), ("clean", clean)] {
        for (how, findings) in [("fence", findings), ("off", "-")] {
            let ended = run(&scratch, how, &program, &[case, variant]);
            let report = scratch.report();
            let found = Findings::from_report(&report);
            assert_eq!(found.to_string(), findings, "{variant} {how}: {}", ended.stderr);
            let race = findings != "-";
            ended.expect_code(if race { 66 } else { 0 });
            assert_eq!(report["verdict"], if race { "RACY" } else { "CLEAN" }, "{report:#}");
            assert_eq!(String::from_utf8_lossy(&ended.stdout), expected);
        }
    }
}

fn hostile(case: &str) {
    let scratch = Scratch::new();
    let program = build("hostile", &scratch);
    let mut alone = scratch.command(&program, &[OsStr::new(case)]);
    let alone = scratch.finish(alone.env("LD_LIBRARY_PATH", simulated_driver(&scratch)));
    assert!(!alone.stdout.is_empty(), "{case} says nothing: {}", alone.stderr);
    let code = alone.status.code().unwrap_or_else(|| 128 + alone.status.signal().unwrap_or(0));
    let words = String::from_utf8_lossy(&alone.stdout).into_owned();
    assert!(code > 128 || words.ends_with("end\n"), "{words} {}", alone.stderr);
    for how in ["fence", "off"] {
        let ended = run(&scratch, how, &program, &[case]);
        assert_eq!(
            String::from_utf8_lossy(&ended.stdout),
            String::from_utf8_lossy(&alone.stdout),
            "{how}: {}",
            ended.stderr
        );
        // A race that is found has an exit code of its own; the program's own is tried without.
        let verdict = scratch.report()["verdict"].clone();
        let expected = if verdict == "RACY" { 66 } else { code };
        assert!(how == "fence" || verdict != "RACY", "{}", ended.stderr);
        assert_eq!(ended.status.code(), Some(expected), "{how}: {}", ended.stderr);
    }
    let how = ["run", "--sim=lazy", "--host-accesses=fence", "--exit-as-program"];
    let options = scratch.run_options();
    let words = [OsStr::new("--"), program.as_os_str(), OsStr::new(case)];
    let ended = scratch.finish(&mut scratch.streamsan(&arguments(&how, &options, &words)));
    assert_eq!(ended.status.code(), Some(code), "{}", ended.stderr);
    if RACY.contains(&case) {
        assert_eq!(scratch.report()["verdict"], "RACY", "{}", ended.stderr);
    }
}
