//! Python frames as the runtime reads them against what each installed CPython says itself.
//!
//! An interpreter of a version that is not installed shows as ignored.

use std::path::Path;
use std::process::Command;

use libtest_mimic::{Arguments, Failed, Trial};

mod unload;

use streamsan_testing::interpreters::{MINORS, interpreters};

/// Names the library and the interpreter for this test's own child process.
const UNLOAD: &str = "STREAMSAN_TEST_UNLOAD";

fn main() {
    if let Some(paths) = std::env::var_os(UNLOAD) {
        let paths: Vec<_> = std::env::split_paths(&paths).collect();
        let result = unload::run(&paths[0], &paths[1]);
        if let Err(wrong) = &result {
            eprintln!("{wrong}");
        }
        std::process::exit(result.is_err().into());
    }
    // Cargo has built it beside this binary.
    let test = std::env::current_exe().expect("own path");
    let library = test.with_file_name("libstreamsan_python_frames.so");
    let found = interpreters();
    let mut trials = Vec::new();
    for minor in MINORS {
        if !found.iter().any(|interpreter| interpreter.minor == minor) {
            let missing = Trial::test(format!("python3.{minor}"), || Ok(()));
            trials.push(missing.with_ignored_flag(true).with_kind("not installed"));
        }
    }
    for interpreter in found {
        let parts: &[&'static str] =
            if interpreter.refused { &["refused"] } else { &["frames", "shutdown"] };
        for part in parts {
            let (path, library) = (interpreter.path.clone(), library.clone());
            let name = format!("{} {part}", path.display());
            trials.push(Trial::test(name, move || run(&path, &library, part)));
        }
        if let Some(shared) = interpreter.library {
            let name = format!("{} unload", shared.display());
            let (prefix, library) = (interpreter.prefix, library.clone());
            trials.push(Trial::test(name, move || unloaded(&library, &shared, &prefix)));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// Runs a program that loads and unloads the interpreter.
fn unloaded(library: &Path, interpreter: &Path, prefix: &str) -> Result<(), Failed> {
    let mut child = Command::new(std::env::current_exe()?);
    child.env(UNLOAD, std::env::join_paths([library, interpreter])?).env("PYTHONHOME", prefix);
    let output = child.output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        Ok(())
    } else {
        Err(format!("{}\n{errors}", output.status).into())
    }
}

fn run(python: &Path, library: &Path, part: &str) -> Result<(), Failed> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/program.py");
    // Events at the interpreter's end depend on chance.
    let times = if part == "shutdown" { 5 } else { 1 };
    for _ in 0..times {
        let output = Command::new(python)
            .args([program.as_os_str(), library.as_os_str(), part.as_ref()])
            .output()?;
        let errors = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            return Err(format!("{}\n{errors}", output.status).into());
        }
        if part == "refused" && !String::from_utf8_lossy(&output.stdout).starts_with("refused") {
            return Err("the build gives frames, or no reason".into());
        }
        if part == "frames" && !errors.ends_with(" stacks\n") {
            return Err(format!("the program did not say how much it compared: {errors}").into());
        }
    }
    Ok(())
}
