//! The package for Python: its annotations in a program, and the wheel that it is installed from.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use libtest_mimic::Trial;

use crate::command::{Scratch, arguments, profile, simulated_driver};
use crate::tools::{MATURIN, PYTEST, PYTHON, command, find, project, with};

pub(crate) fn add(trials: &mut Vec<Trial>) {
    trials.push(with(PYTEST, "python_package::parts", parts));
    trials.push(with(PYTHON, "python_package::annotations", annotations));
    trials.push(with(PYTHON, "python_package::without_the_command", without_the_command));
    trials.push(with(MATURIN, "python_package::wheel", wheel));
}

/// A path of the repository.
pub(crate) fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// `PYTHONPATH` with the package as it stands in the repository, and the driver by ctypes.
pub(crate) fn python_path() -> OsString {
    env::join_paths([repository("src/python"), repository("tests/runners/python")])
        .expect("no colon in the path")
}

/// The package's own tests, of the parts that need no run.
fn parts() {
    let scratch = Scratch::new();
    let mut pytest = command(&scratch, &repository("src/python"), "python3");
    pytest.args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]);
    pytest.env("PYTHONPATH", python_path());
    let ended = scratch.finish(&mut pytest);
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success() && printed.contains(" passed"), "{printed}\n{}", ended.stderr);
}

/// Objects are told by what they offer; accesses are the bytes that they have, and no others.
fn annotations() {
    let python = find("python3");
    let program = repository("tests/programs/python/annotated.py");
    for (when, code) in [("early", 66), ("late", 0), ("apart", 0)] {
        let scratch = Scratch::new();
        let options = scratch.run_options();
        let run = ["--".as_ref(), python.as_os_str(), program.as_os_str(), when.as_ref()];
        let run: Vec<&OsStr> = run.to_vec();
        let arguments = arguments(&["run", "--sim"], &options, &run);
        let ended = scratch.finish(scratch.streamsan(&arguments).env("PYTHONPATH", python_path()));
        ended.expect_code(code);
        assert_eq!(String::from_utf8_lossy(&ended.stdout), "recorded\n", "{when}");
        if when == "early" {
            for part in ["error[host-read-early]", "4.0 KiB of `result`", "\"download\""] {
                assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
            }
            let report = scratch.report();
            let read = &report["findings"][0]["accesses"][1];
            assert_eq!(read["api"], "streamsan_host_read", "{report:#}");
        }
    }
}

fn without_the_command() {
    let scratch = Scratch::new();
    let mut program = scratch.command(&find("python3"), &[]);
    program.arg(repository("tests/programs/python/annotated.py")).arg("early");
    program.env("PYTHONPATH", python_path()).env("LD_LIBRARY_PATH", simulated_driver(&scratch));
    let ended = scratch.finish(&mut program);
    ended.expect_code(0);
    assert_eq!(String::from_utf8_lossy(&ended.stdout), "not recorded\n");
    assert_eq!(ended.stderr, "");
}

/// Runs a command to its end and gives what it printed.
fn output(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().expect("it starts");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{printed}\n{said}", output.status);
    printed
}

/// The command under test in a wheel. It has been built already, and in the environment of this
/// process, so that cargo finds it up to date.
fn build_wheel(to: &Path) -> PathBuf {
    let mut maturin = Command::new(find("maturin"));
    maturin.current_dir(repository("")).args(["build", "--locked", "--compatibility", "linux"]);
    maturin.args(["--profile", profile(), "--out"]).arg(to);
    maturin.arg("--target-dir").arg(to.join("target"));
    maturin.env("STREAMSAN_TEST_CARGO", env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    maturin.env("STREAMSAN_TEST_PROFILE", profile());
    maturin.env("STREAMSAN_TEST_COPY", to.join("command/streamsan"));
    maturin.env("CARGO", repository("tests/runners/wheel/cargo"));
    output(&mut maturin);
    let files = fs::read_dir(to).expect("a folder").map(|entry| entry.expect("readable").path());
    let mut wheels = files.filter(|file| file.extension().is_some_and(|e| e == "whl"));
    wheels.next().expect("maturin writes a wheel")
}

/// The check of a release tells too old a C library from one that serves.
fn versions_of_glibc(command: &Path) {
    let newest_of = |most: &str| {
        let mut check = Command::new(find("python3"));
        let ended = check.arg(repository(".ci/glibc")).arg(most).arg(command).output();
        let ended = ended.expect("it starts");
        (ended.status.code(), String::from_utf8_lossy(&ended.stdout).into_owned())
    };
    assert_eq!(newest_of("2.99").0, Some(0));
    let (code, said) = newest_of("2.1");
    assert!(code == Some(1) && said.contains(", newer than 2.1"), "{said}");
}

/// A fresh environment with nothing but the wheel: no Rust, no compiler, no other command.
fn wheel() {
    let scratch = Scratch::new();
    let wheel = build_wheel(&scratch.file("dist"));
    let environment = scratch.file("environment");
    output(Command::new(find("python3")).args(["-m", "venv"]).arg(&environment));
    let python = environment.join("bin/python");
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-index"]);
    output(pip.arg(&wheel));

    let bare = |program: &Path| {
        let mut command = scratch.command(program, &[]);
        command.env("PATH", "/usr/bin:/bin").env_remove("PYTHONPATH").env_remove("STREAMSAN");
        command
    };
    versions_of_glibc(&environment.join("bin/streamsan"));
    let version = format!("streamsan {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(output(bare(&environment.join("bin/streamsan")).arg("--version")), version);
    assert_eq!(output(bare(&python).args(["-m", "streamsan", "--version"])), version);

    // What C++ programs and CTest include lies in the package.
    let files = "import os, streamsan; print(os.path.dirname(streamsan.__file__))";
    let files = output(bare(&python).args(["-c", files]));
    for file in ["include/streamsan.h", "include/streamsan_gtest.h", "cmake/StreamsanTest.cmake"] {
        assert!(Path::new(files.trim()).join(file).is_file(), "{file} is not in the wheel");
    }

    let mut demo = bare(&python);
    let demo = scratch.finish(demo.args(["-m", "streamsan", "demo"]));
    let said = format!("{}{}", String::from_utf8_lossy(&demo.stdout), demo.stderr);
    assert!(said.contains("error[missing-wait]"), "{said}");
    assert!(said.contains("result::memcpy_dtod_async(image, inbox"), "{said}");

    let mut run = bare(&environment.join("bin/streamsan"));
    run.args(["run", "--sim", "-o", "trace.db", "--"]).arg(&python);
    run.arg(repository("tests/programs/python/annotated.py")).arg("early");
    run.env("PYTHONPATH", repository("tests/runners/python"));
    let ended = scratch.finish(&mut run);
    ended.expect_code(66);
    // The package is a library, so the place is the program's own line.
    let place = "(2) later  READ   streamsan_host_read ";
    let (_, rest) = ended.stderr.split_once(place).expect("the access is reported");
    let at = rest.lines().nth(1).expect("its place stands below");
    assert!(at.contains("annotated.py:") && at.ends_with(" in main"), "{}", ended.stderr);

    // An extra lies beside the command, whose environment is not the active one. Nothing runs it.
    let packages = "import sysconfig; print(sysconfig.get_path('purelib'))";
    let packages = output(bare(&python).args(["-c", packages]));
    let tools = Path::new(packages.trim()).join("nvidia/cu13/bin");
    fs::create_dir_all(&tools).expect("there is room");
    fs::copy(&python, tools.join("nvdisasm")).expect("there is room");
    let mut doctor = bare(&environment.join("bin/streamsan"));
    let doctor = scratch.finish(doctor.arg("doctor"));
    let said = format!("{}{}", String::from_utf8_lossy(&doctor.stdout), doctor.stderr);
    let found = format!("nvdisasm was found in a Python package: {}", tools.display());
    assert!(said.contains(&found), "{said}");

    pytest_finds_the_plugin(&scratch, &python);
}

/// pytest itself comes from the tools; the plugin is found by what the wheel registers.
fn pytest_finds_the_plugin(scratch: &Scratch, python: &Path) {
    let mut ask = command(scratch, scratch.path(), "python3");
    let packages = "import os, pytest; print(os.path.dirname(os.path.dirname(pytest.__file__)))";
    let packages = output(ask.args(["-c", packages]));
    let paths = [PathBuf::from(packages.trim()), repository("tests/runners/python")];
    let folder = project(scratch, "plugin");
    let mut pytest = command(scratch, &folder, python.to_str().expect("a plain path"));
    pytest.env("PYTHONPATH", env::join_paths(paths).expect("no colon in the paths"));
    pytest.args(["-m", "pytest", "-p", "no:cacheprovider", "-k", "TestInAClass"]);
    pytest.args(["--streamsan", "--streamsan-sim"]);
    let ended = scratch.finish(&mut pytest);
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.status.code(), Some(1), "{printed}\n{}", ended.stderr);
    let told = "RACY test_pipeline.py::TestInAClass::test_pipeline[racy] - RAW [missing-wait]";
    assert!(printed.contains(told), "{printed}");
}
