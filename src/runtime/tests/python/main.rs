//! Python frames as the runtime reads them against what each installed CPython says itself.
//!
//! Interpreters are looked for in PATH, at their usual places and among pyenv's; others are named
//! in `STREAMSAN_TEST_PYTHON` (paths, apart by `:`). One of a version that is not installed shows
//! as ignored.

use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Arguments, Failed, Trial};

mod unload;

/// Names the library and the interpreter for this test's own child process.
const UNLOAD: &str = "STREAMSAN_TEST_UNLOAD";

const MINORS: [u32; 6] = [9, 10, 11, 12, 13, 14];

/// What an interpreter says of itself: its version, whether it is one that is refused, its
/// shared library, and where its modules are.
const QUESTION: &str = "import ctypes, sys, sysconfig; \
    get = sysconfig.get_config_var; \
    print(sys.version_info[1], int(bool(get('Py_GIL_DISABLED') or hasattr(sys, 'gettotalrefcount'))), \
    get('LIBDIR') + '/' + str(get('INSTSONAME')), sys.base_prefix, sep='\\n')";

struct Interpreter {
    path: PathBuf,
    minor: u32,
    refused: bool,
    library: Option<PathBuf>,
    prefix: String,
}

fn main() {
    if let Some(paths) = std::env::var_os(UNLOAD) {
        let paths: Vec<_> = std::env::split_paths(&paths).collect();
        let result = unload::run(&paths[0], &paths[1]);
        if let Err(wrong) = &result {
            eprintln!("{wrong}");
        }
        std::process::exit(result.is_err().into());
    }
    let library = build();
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

/// The library beside this test, made by cargo, which does so on its own only where all targets
/// are built.
fn build() -> PathBuf {
    let test = std::env::current_exe().expect("own path");
    let target = test.ancestors().nth(3).expect("a target directory");
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["build", "--quiet", "--offline", "--package", env!("CARGO_PKG_NAME")])
        .args(["--example", "python_frames", "--target-dir"])
        .arg(target)
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    assert!(cargo.status().expect("cargo runs").success(), "the library is built");
    target.join("debug/examples/libpython_frames.so")
}

fn interpreters() -> Vec<Interpreter> {
    let mut paths: Vec<PathBuf> = std::env::var_os("STREAMSAN_TEST_PYTHON")
        .map(|list| std::env::split_paths(&list).collect())
        .unwrap_or_default();
    let mut names = vec!["python3".to_owned()];
    names.extend(MINORS.map(|minor| format!("python3.{minor}")));
    let directories = std::env::var_os("PATH").unwrap_or_default();
    for directory in std::env::split_paths(&directories).chain(["/usr/bin".into()]) {
        paths.extend(names.iter().map(|name| directory.join(name)));
    }
    if let Some(home) = std::env::var_os("HOME") {
        let versions = Path::new(&home).join(".pyenv/versions");
        for version in versions.read_dir().into_iter().flatten().flatten() {
            paths.push(version.path().join("bin/python3"));
        }
    }
    let mut found: Vec<Interpreter> = Vec::new();
    let mut executables = Vec::new();
    for path in paths {
        let Some(executable) = real_executable(&path) else { continue };
        if executables.contains(&executable) {
            continue;
        }
        executables.push(executable);
        let Ok(answer) = Command::new(&path).args(["-c", QUESTION]).output() else { continue };
        let answer = String::from_utf8_lossy(&answer.stdout).into_owned();
        let mut lines = answer.lines();
        let (Some(Ok(minor)), Some(refused)) = (lines.next().map(str::parse), lines.next()) else {
            continue;
        };
        let library = lines.next().map(PathBuf::from);
        let library =
            library.filter(|path| path.is_file() && path.to_string_lossy().contains(".so"));
        if MINORS.contains(&minor) {
            let prefix = lines.next().unwrap_or_default().to_owned();
            found.push(Interpreter { path, minor, refused: refused != "0", library, prefix });
        }
    }
    found.sort_by_key(|interpreter| interpreter.minor);
    found
}

/// Where the interpreter at `path` really is: shims lead there.
fn real_executable(path: &Path) -> Option<PathBuf> {
    let question = "import os, sys; print(os.path.realpath(sys.executable))";
    let answer =
        Command::new(path.is_file().then_some(path)?).args(["-c", question]).output().ok()?;
    let answer = String::from_utf8(answer.stdout).ok()?;
    (!answer.trim().is_empty()).then(|| answer.trim().into())
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
    // What happens while the interpreter ends depends on chance.
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
