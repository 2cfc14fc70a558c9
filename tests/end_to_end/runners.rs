//! streamsan between a test runner and its test programs: as cargo's target runner, also under
//! nextest, as CMake's emulator under ctest and GoogleTest, around pytest. A test that races and
//! passes fails by code 66, in the runner's own report; the others stay as they are.

use std::fs;
use std::path::Path;
use std::process::Command;

use libtest_mimic::Trial;

use crate::command::{Ended, Scratch, streamsan};
use crate::tools::{CTEST, NEXTEST, PYTEST, XDIST, command, find, project, with};
use crate::trial;

pub(crate) fn add(trials: &mut Vec<Trial>) {
    trials.push(trial("runners::cargo_test", cargo_test));
    trials.push(with(NEXTEST, "runners::nextest", nextest));
    trials.push(with(CTEST, "runners::ctest", ctest));
    trials.push(with(PYTEST, "runners::pytest", pytest));
    trials.push(with(XDIST, "runners::pytest_in_several_processes", || {
        python_tests(&["-n", "2"], 66);
    }));
}

/// The command line that stands before a test program.
fn runner(scratch: &Scratch) -> Vec<String> {
    let traces = scratch.file("traces/%p.db");
    let words = [streamsan().as_os_str(), "run".as_ref(), "--sim".as_ref(), "-o".as_ref()];
    let words = words.into_iter().chain([traces.as_os_str(), "--".as_ref()]);
    words.map(|word| word.to_str().expect("a plain path").to_owned()).collect()
}

/// How many traces there are.
fn traces(scratch: &Scratch) -> usize {
    fs::read_dir(scratch.file("traces")).map_or(0, |entries| {
        let names = entries.map(|entry| entry.expect("readable").file_name());
        names.filter(|name| Path::new(name).extension().is_some_and(|e| e == "db")).count()
    })
}

fn finish(scratch: &Scratch, command: &mut Command, code: i32) -> Ended {
    let ended = scratch.finish(command);
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.status.code(), Some(code), "{printed}\n{}", ended.stderr);
    ended
}

fn cargo(scratch: &Scratch, folder: &Path, arguments: &[&str]) -> Command {
    let mut cargo = command(scratch, folder, "cargo");
    cargo.args(arguments).env("CARGO_TARGET_DIR", scratch.file("target"));
    cargo.env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", runner(scratch).join(" "));
    cargo
}

/// Cargo starts one process for all tests of a file, and ends with its code.
fn cargo_test() {
    let scratch = Scratch::new();
    let folder = project(&scratch, "cargo");
    let test = |which| cargo(&scratch, &folder, &["test", "--offline", "--test", which]);
    finish(&scratch, &mut test("clean"), 0);
    assert_eq!(traces(&scratch), 1);
    let ended = finish(&scratch, &mut test("racy"), 66);
    assert!(ended.stderr.contains("error[missing-wait]"), "{}", ended.stderr);
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert!(printed.contains("test result: ok. 2 passed"), "{printed}");
    assert_eq!(traces(&scratch), 2);
}

/// nextest starts a process for each test, after one that lists them.
fn nextest() {
    let scratch = Scratch::new();
    let folder = project(&scratch, "cargo");
    let run = |arguments: &[&str]| {
        let arguments = [&["nextest", "run", "--offline"], arguments].concat();
        let mut cargo = cargo(&scratch, &folder, &arguments);
        // The report stands below it.
        cargo.env_remove("CARGO_TARGET_DIR");
        cargo
    };
    finish(&scratch, &mut run(&["--test", "clean"]), 0);
    // The lists left none.
    assert_eq!(traces(&scratch), 2);
    let ended = finish(&scratch, &mut run(&[]), 100);
    let said = &ended.stderr;
    assert!(said.contains("4 tests run: 3 passed, 1 failed"), "{said}");
    assert!(said.contains("exit code 66"), "{said}");
    assert_eq!(said.matches("error[missing-wait]").count(), 1, "{said}");
    assert_eq!(traces(&scratch), 6);
    // Both runs as one report.
    let together = scratch.file("traces");
    let mut check = scratch.streamsan(&["check".as_ref(), together.as_ref()]);
    let together = finish(&scratch, &mut check, 1);
    let printed = String::from_utf8_lossy(&together.stdout);
    assert!(printed.contains("traces: 6 traces, 1 racy"), "{printed}");
    let report = folder.join("target/nextest/default/junit.xml");
    let report = fs::read_to_string(report).expect("nextest writes its report");
    let failed = report.split("<testcase ").filter(|case| case.contains("<failure"));
    let failed: Vec<&str> = failed.collect();
    let [racy] = failed[..] else { panic!("not one failure: {report}") };
    for part in ["name=\"without_a_wait\"", "exit code 66", "verdict: RACY", "error[missing-wait]"]
    {
        assert!(racy.contains(part), "{part}: {racy}");
    }
}

/// CMake asks test programs for their tests by the same command while it builds.
fn ctest() {
    let scratch = Scratch::new();
    let folder = project(&scratch, "cmake");
    let hazards = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/c");
    let mut configure = command(&scratch, &folder, "cmake");
    configure.args(["-S", ".", "-B", "build"]);
    configure.arg(format!("-DHAZARDS={}", hazards.display()));
    configure.arg(format!("-DCMAKE_CROSSCOMPILING_EMULATOR={}", runner(&scratch).join(";")));
    let configured = finish(&scratch, &mut configure, 0);
    let configured = String::from_utf8_lossy(&configured.stdout).into_owned();
    finish(&scratch, command(&scratch, &folder, "cmake").args(["--build", "build"]), 0);
    assert_eq!(traces(&scratch), 0, "{configured}");
    let mut ctest = command(&scratch, &folder, "ctest");
    ctest.args(["--test-dir", "build", "--output-on-failure", "--output-junit", "junit.xml"]);
    let ended = finish(&scratch, &mut ctest, 8);
    let printed = String::from_utf8_lossy(&ended.stdout);
    let tests =
        fs::read_to_string(folder.join("build/junit.xml")).expect("ctest writes its report");
    let has_units = tests.contains("Memsets.InOneStream");
    let required = std::env::var_os("STREAMSAN_TEST_TOOLS").is_some();
    assert!(has_units || !required, "GoogleTest is missing: {configured}");
    let (all, racy) = if has_units { (4, 2) } else { (2, 1) };
    assert_eq!(traces(&scratch), all);
    assert!(printed.contains(&format!("{racy} tests failed out of {all}")), "{printed}");
    assert_eq!(tests.matches("verdict: RACY").count(), racy, "{tests}");
}

/// All tests are in one run, also where pytest gives them to several processes.
fn python_tests(options: &[&str], code: i32) {
    let scratch = Scratch::new();
    let folder = project(&scratch, "python");
    let mut words = runner(&scratch);
    words.insert(2, "--report".to_owned());
    words.insert(3, format!("json={}", scratch.file("report.json").display()));
    words.push(find("python3").to_str().expect("a plain path").to_owned());
    words.extend(["-m", "pytest", "-q", "-p", "no:cacheprovider"].map(str::to_owned));
    words.extend(options.iter().map(|&option| option.to_owned()));
    let mut run = command(&scratch, &folder, &words[0]);
    let ended = finish(&scratch, run.args(&words[1..]), code);
    assert_eq!(traces(&scratch), 1);
    let findings = &scratch.report()["findings"];
    let races = findings.as_array().expect("a list").len();
    assert_eq!(races, usize::from(code == 66), "{findings:#}");
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert!(printed.contains(" passed"), "{printed}");
}

fn pytest() {
    python_tests(&[], 66);
    python_tests(&["-k", "test_with_a_wait"], 0);
}
