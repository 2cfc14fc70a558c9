//! `pytest --streamsan`: races are told under the tests that made them, and nothing else changes.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use libtest_mimic::Trial;

use crate::command::{Ended, Scratch, simulated_driver, streamsan};
use crate::python_package::python_path;
use crate::tools::{PYTEST, XDIST, command, path, project, with};

pub(crate) fn add(trials: &mut Vec<Trial>) {
    trials.push(with(PYTEST, "pytest_plugin::races", races));
    trials.push(with(PYTEST, "pytest_plugin::junit", junit));
    trials.push(with(XDIST, "pytest_plugin::in_several_processes", in_several_processes));
    trials.push(with(PYTEST, "pytest_plugin::inert_when_off", inert_when_off));
    trials.push(with(PYTEST, "pytest_plugin::outcomes", outcomes));
    trials.push(with(PYTEST, "pytest_plugin::incomplete", incomplete));
    trials.push(with(PYTEST, "pytest_plugin::ends_of_the_process", ends_of_the_process));
    trials.push(with(PYTEST, "pytest_plugin::inside_a_run", inside_a_run));
}

/// The summary of the suite in `tests/runners/plugin`, without the ids of findings.
const TOLD: [&str; 8] = [
    "RACY test_helper.py::test_first_by_helper - RAW [missing-wait], seen 2 times",
    "RACY test_helper.py::test_second_by_helper - RAW [missing-wait], seen once",
    "RACY test_pipeline.py::TestInAClass::test_pipeline[racy] - RAW [missing-wait], seen once",
    "RACY test_pipeline.py::test_racy - RAW [missing-wait], seen once",
    "RACY test_pipeline.py::test_racy_in_another_way_than_is_allowed - RAW [missing-wait], seen once",
    "RACY test_pipeline.py::test_racy_in_its_fixture - RAW [missing-wait], seen once",
    "RACY test_pipeline.py::test_racy_with_the_one_before - RAW [missing-wait], seen once",
    "allowed test_pipeline.py::test_allowed - RAW [missing-wait], seen once",
];

const WITH_STREAMSAN: [&str; 2] = ["--streamsan", "--streamsan-sim"];

/// pytest with the package of the repository, and the command under test among those in `PATH`.
fn pytest(scratch: &Scratch, folder: &Path, options: &[&str]) -> Command {
    let mut pytest = command(scratch, folder, "python3");
    let own = streamsan().parent().expect("it is in a folder").as_os_str();
    let folders: Vec<OsString> = vec![own.to_owned(), path()];
    pytest.env("PATH", folders.join(":".as_ref())).env("PYTHONPATH", python_path());
    pytest.args(["-m", "pytest", "-p", "no:cacheprovider", "-p", "streamsan.pytest_plugin"]);
    pytest.args(options);
    pytest
}

/// Runs pytest to its end; gives what it printed.
fn finish(scratch: &Scratch, pytest: &mut Command, code: i32) -> (Ended, String) {
    let ended = scratch.finish(pytest);
    let printed = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert_eq!(ended.status.code(), Some(code), "{printed}\n{}", ended.stderr);
    (ended, printed)
}

fn run(scratch: &Scratch, folder: &Path, options: &[&str], code: i32) -> String {
    let options: Vec<&str> = WITH_STREAMSAN.iter().chain(options).copied().collect();
    finish(scratch, &mut pytest(scratch, folder, &options), code).1
}

/// The lines of the summary, sorted: which of two processes is first is a matter of luck.
fn told(printed: &str) -> Vec<String> {
    let lines = printed.lines().filter(|line| {
        ["RACY ", "allowed ", "INCOMPLETE "].iter().any(|word| line.starts_with(word))
    });
    let mut lines: Vec<String> = lines
        .map(|line| match line.split_once(" id ") {
            Some((head, rest)) => format!("{head}{}", &rest[8..]),
            None => line.to_owned(),
        })
        .collect();
    lines.sort();
    lines
}

/// The section of a test, with the report of its races.
fn section<'a>(printed: &'a str, test: &str) -> &'a str {
    let title = format!("_ {test} _");
    let (_, rest) = printed.split_once(&title).unwrap_or_else(|| panic!("no {title}: {printed}"));
    rest.split("\n__").next().expect("a first part")
}

fn races() {
    let scratch = Scratch::new();
    let folder = project(&scratch, "plugin");
    let printed = run(&scratch, &folder, &[], 1);
    assert!(printed.contains("12 passed"), "{printed}");
    assert_eq!(told(&printed), TOLD);
    assert!(printed.contains("streamsan: 7 tests race, trace: streamsan-pytest.db"), "{printed}");
    assert!(folder.join("streamsan-pytest.db").exists());

    let racy = section(&printed, "test_pipeline.py::test_racy");
    let issued = "(2) was issued at test_pipeline.py:14 in test_racy, in region \"step\", in region \"copies\"";
    for part in ["error[missing-wait]", "in Pipeline.upload", issued] {
        assert!(racy.contains(part), "{part}: {racy}");
    }
    let fixture = section(&printed, "test_pipeline.py::test_racy_in_its_fixture");
    assert!(fixture.contains("(1) was issued in the setup of the test"), "{fixture}");
    assert!(fixture.contains("(2) was issued in the teardown of the test"), "{fixture}");
    let across = section(&printed, "test_pipeline.py::test_racy_with_the_one_before");
    let other = "(1) was issued in test_pipeline.py::test_leaves_an_upload";
    assert!(across.contains(other), "{across}");
}

/// The JUnit file is pytest's, with a failure in each test that races and one more case for what is
/// no test's.
fn junit() {
    let scratch = Scratch::new();
    let folder = project(&scratch, "plugin");
    let cases = |options: &[&str], code: i32| {
        let options: Vec<&str> = ["--junit-xml=junit.xml"].iter().chain(options).copied().collect();
        run(&scratch, &folder, &options, code);
        let text = fs::read_to_string(folder.join("junit.xml")).expect("pytest writes its report");
        let (head, cases) = text.split_once("<testcase").expect("a case");
        let failed = cases.split("<testcase").filter(|case| case.contains("<failure"));
        let mut failed: Vec<String> = failed
            .map(|case| {
                let attribute = |name: &str| {
                    let (_, rest) = case.split_once(name).expect("an attribute");
                    rest.split('"').next().expect("a value").to_owned()
                };
                assert!(case.contains("streamsan: RAW [missing-wait]"), "{case}");
                assert!(case.contains("no happens-before path"), "{case}");
                format!("{} {}", attribute("classname=\""), attribute(" name=\""))
            })
            .collect();
        failed.sort();
        (head.to_owned(), failed)
    };
    let (head, failed) = cases(&[], 1);
    let expected = [
        "test_helper test_first_by_helper",
        "test_helper test_second_by_helper",
        "test_pipeline test_racy",
        "test_pipeline test_racy_in_another_way_than_is_allowed",
        "test_pipeline test_racy_in_its_fixture",
        "test_pipeline test_racy_with_the_one_before",
        "test_pipeline.TestInAClass test_pipeline[racy]",
    ];
    assert_eq!(failed, expected);
    assert!(head.contains("failures=\"7\"") && head.contains("tests=\"12\""), "{head}");
    let (head, failed) = cases(&["-k", "clean"], 0);
    assert_eq!(failed, [""; 0]);
    assert!(head.contains("failures=\"0\""), "{head}");

    fs::write(folder.join("test_import.py"), "import driver\ndriver.round_trip(False)\n")
        .expect("there is room");
    let (head, failed) = cases(&["-k", "clean", "--junit-prefix", "gpu"], 1);
    assert_eq!(failed, ["streamsan outside of tests"]);
    assert!(head.contains("failures=\"1\"") && head.contains("tests=\"4\""), "{head}");
}

/// One trace for all processes: the tests of each are told by the marks of each.
fn in_several_processes() {
    let scratch = Scratch::new();
    let folder = project(&scratch, "plugin");
    let printed = run(&scratch, &folder, &["-n", "2", "--dist", "loadfile"], 1);
    assert!(printed.contains("12 passed"), "{printed}");
    assert_eq!(told(&printed), TOLD);
}

fn inert_when_off() {
    let scratch = Scratch::new();
    let folder = project(&scratch, "plugin");
    let mut pytest = pytest(&scratch, &folder, &[]);
    pytest.env("LD_LIBRARY_PATH", simulated_driver(&scratch));
    let (ended, printed) = finish(&scratch, &mut pytest, 0);
    assert!(printed.contains("12 passed"), "{printed}");
    assert_eq!(told(&printed), [""; 0]);
    assert_eq!(ended.stderr, "");
    assert!(!folder.join("streamsan-pytest.db").exists());
}

/// pytest's own exit codes stay, and a race makes a success a failure.
fn outcomes() {
    let scratch = Scratch::new();
    let folder = project(&scratch, "plugin");
    let clean = run(&scratch, &folder, &["-k", "clean"], 0);
    assert!(clean.contains("streamsan: no test races"), "{clean}");
    let allowed = run(&scratch, &folder, &["-k", "test_allowed"], 0);
    assert_eq!(told(&allowed), TOLD[7..]);
    let none = run(&scratch, &folder, &["-k", "nothing_has_this_name"], 5);
    assert!(none.contains("no driver call was seen"), "{none}");
    // The command is not needed, nor is a trace made, where no test runs.
    let listed = run(&scratch, &folder, &["--collect-only", "-q"], 0);
    assert!(listed.contains("12 tests collected") && !listed.contains("streamsan:"), "{listed}");

    // A refusal of `streamsan run` is no success of pytest's.
    let refused = ["-o", "streamsan_options=--no-such-option", "-k", "clean"];
    let options: Vec<&str> = WITH_STREAMSAN.iter().chain(&refused).copied().collect();
    let (ended, _) = finish(&scratch, &mut pytest(&scratch, &folder, &options), 125);
    assert!(ended.stderr.contains("--no-such-option"), "{}", ended.stderr);

    let mut missing = pytest(&scratch, &folder, &WITH_STREAMSAN);
    missing.env("PATH", path());
    let (ended, _) = finish(&scratch, &mut missing, 4);
    assert!(ended.stderr.contains("--streamsan: the command streamsan"), "{}", ended.stderr);
}

/// A suite of one file with this text.
fn suite(scratch: &Scratch, text: &str) {
    fs::write(scratch.file("test_it.py"), text).expect("there is room");
}

fn incomplete() {
    let scratch = Scratch::new();
    suite(
        &scratch,
        "import driver\n\
         def test_graphics():\n    driver.round_trip(True)\n    \
         driver._driver().cuGraphicsMapResources(0, None, None)\n",
    );
    let reason = ["INCOMPLETE cuGraphicsMapResources called 1 times and not understood"];
    let folder = scratch.path();
    assert_eq!(told(&run(&scratch, folder, &[], 1)), reason);
    assert_eq!(told(&run(&scratch, folder, &["--streamsan-allow-incomplete"], 0)), reason);
}

/// Marks are written as the tests go, so that what a killed process has done is told.
fn ends_of_the_process() {
    let scratch = Scratch::new();
    suite(
        &scratch,
        "import os, signal, driver\n\
         def test_killed():\n    driver.round_trip(False)\n    \
         os.kill(os.getpid(), signal.SIGKILL)\n",
    );
    let told_of = ["RACY test_it.py::test_killed - RAW [missing-wait], seen once"];
    assert_eq!(told(&run(&scratch, scratch.path(), &[], 128 + 9)), told_of);

    // A child of a test is the test's; what runs when the module is imported is no test's.
    suite(
        &scratch,
        "import subprocess, sys, driver\n\
         driver.round_trip(False)\n\
         def test_failing():\n    code = 'import driver; driver.round_trip(False)'\n    \
         subprocess.run([sys.executable, '-c', code], check=True)\n    assert False\n",
    );
    let printed = run(&scratch, scratch.path(), &[], 1);
    assert!(printed.contains("1 failed"), "{printed}");
    let told_of = [
        "RACY outside of tests - RAW [missing-wait], seen once",
        "RACY test_it.py::test_failing - RAW [missing-wait], seen once",
    ];
    assert_eq!(told(&printed), told_of);
}

/// Where the command is around pytest already, its report tells the races.
fn inside_a_run() {
    let scratch = Scratch::new();
    let folder = project(&scratch, "plugin");
    let inner = pytest(&scratch, &folder, &["--streamsan", "-k", "TestInAClass"]);
    let words = ["run".into(), "--sim".into(), "-o".into(), scratch.trace().into(), "--".into()];
    let mut words: Vec<OsString> = words.into();
    words.push(inner.get_program().to_owned());
    words.extend(inner.get_args().map(OsString::from));
    let mut run = command(&scratch, &folder, streamsan().to_str().expect("a plain path"));
    run.args(words).env("PYTHONPATH", python_path());
    let (ended, printed) = finish(&scratch, &mut run, 66);
    assert!(printed.contains("streamsan: the tests are recorded"), "{printed}");
    assert_eq!(told(&printed), [""; 0]);
    assert_eq!(ended.stderr.matches("error[missing-wait]").count(), 1, "{}", ended.stderr);
}
