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

const SIGSEGV: i32 = 11;

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
    // And the next driver call closes it again.
    ("neighbour_again", "race host-read-early RAW certain 1", "-"),
    ("per_thread", "race host-read-early RAW certain 1", "-"),
    // Memory that a communication library has allocated is not looked at.
    ("of_library", "-", "-"),
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
    "numbered_calls",
    "registered_by_verbs",
    "asynchronous",
    "waiting_read",
    "ring_beside",
    "bare_clone",
    "many_mappings",
    "taken_over",
    "killed",
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
    "numbered_calls",
    "asynchronous",
    "bare_clone",
    "killed",
];

pub(crate) fn add(trials: &mut Vec<Trial>) {
    for (case, racy, clean) in ORDERS {
        trials.push(trial(format!("host_accesses::{case}"), move || orders(case, racy, clean)));
    }
    for case in HOSTILE {
        trials.push(trial(format!("host_accesses::hostile_{case}"), move || hostile(case)));
    }
    trials.push(trial("host_accesses::core", core));
    trials.push(trial("host_accesses::faulthandler", faulthandler));
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

/// The bytes that `hostile core` writes into its page-locked memory before a fence closes that.
fn written() -> Vec<u8> {
    (0..64u32).map(|at| (at * 37 + 11) as u8).collect()
}

/// The core that a program has left in a folder; `None` where the system puts them elsewhere.
fn core_in(folder: &Path) -> Option<Vec<u8>> {
    let entries = std::fs::read_dir(folder).expect("the folder can be read");
    let mut names = entries.map(|entry| entry.expect("the folder can be read").path());
    let path = names.find(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name == "core" || name.starts_with("core.")
    })?;
    let bytes = std::fs::read(&path).expect("the core can be read");
    std::fs::remove_file(path).expect("the core can be removed");
    Some(bytes)
}

/// A program that dies of its own mistake while fences stand dies by the same signal, and leaves the
/// same core: memory inside a fence is in it.
fn core() {
    let scratch = Scratch::new();
    let program = build("hostile", &scratch);
    let words = [OsStr::new("core")];
    let mut alone = scratch.command(&program, &words);
    // Copies stay pending, so that none overwrites what is written.
    alone.env("STREAMSAN_SIM_POLICY", "lazy");
    let alone = scratch.finish(alone.env("LD_LIBRARY_PATH", simulated_driver(&scratch)));
    assert_eq!(alone.status.signal(), Some(SIGSEGV), "{}", alone.stderr);
    let core_alone = core_in(scratch.path());
    let written = written();
    let has_bytes = |core: &[u8]| core.windows(64).any(|bytes| bytes == written);
    assert!(core_alone.as_deref().is_none_or(has_bytes), "the core lacks what is written");
    for how in ["fence", "off"] {
        let how = format!("--host-accesses={how}");
        let first = ["run", "--sim=lazy", &how, "--exit-as-program"];
        let options = scratch.run_options();
        let run = [OsStr::new("--"), program.as_os_str(), words[0]];
        let ended = scratch.finish(&mut scratch.streamsan(&arguments(&first, &options, &run)));
        assert_eq!(ended.stdout, alone.stdout, "{}", ended.stderr);
        assert_eq!(ended.status.code(), Some(128 + SIGSEGV), "{}", ended.stderr);
        let core = core_in(scratch.path());
        assert_eq!(core.is_some(), core_alone.is_some(), "{how}");
        assert!(core.as_deref().is_none_or(has_bytes), "{how}: the core lacks what a fence closed");
    }
}

/// Python's own handler of SIGSEGV tells where a real mistake was made, and touches of fences go past
/// it.
fn faulthandler() {
    let scratch = Scratch::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/host_accesses/handler.py");
    let words = [OsStr::new("-X"), OsStr::new("faulthandler"), script.as_os_str()];
    let python = crate::tools::find("python3");
    let mut alone = scratch.command(&python, &words);
    let alone = scratch.finish(alone.env("LD_LIBRARY_PATH", simulated_driver(&scratch)));
    let told = |stderr: &str| {
        stderr.contains("Fatal Python error: Segmentation fault")
            && stderr.contains("handler.py")
            && stderr.contains("mistake")
    };
    assert_eq!(alone.status.signal(), Some(SIGSEGV), "{}", alone.stderr);
    assert!(told(&alone.stderr), "{}", alone.stderr);
    for how in ["fence", "off"] {
        let how = format!("--host-accesses={how}");
        let first = ["run", "--sim=lazy", &how, "--exit-as-program"];
        let options = scratch.run_options();
        let run: Vec<&OsStr> =
            [OsStr::new("--"), python.as_os_str()].into_iter().chain(words).collect();
        let ended = scratch.finish(&mut scratch.streamsan(&arguments(&first, &options, &run)));
        assert_eq!(ended.stdout, alone.stdout, "{}", ended.stderr);
        assert_eq!(ended.status.code(), Some(128 + SIGSEGV), "{}", ended.stderr);
        assert!(told(&ended.stderr), "{}", ended.stderr);
        let racy = how.ends_with("fence");
        assert_eq!(scratch.report()["verdict"] == "RACY", racy, "{}", ended.stderr);
    }
}
