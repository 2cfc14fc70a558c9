//! GoogleTest programs that tell their tests by `streamsan_gtest.h`, and the module for CTest: races
//! are told under the tests that made them, and what a test may have does not fail.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::command::{Scratch, simulated_driver, streamsan};
use crate::python_package::repository;
use crate::tools::{GOOGLETEST, command, project, with};

pub(crate) fn add(trials: &mut Vec<Trial>) {
    trials.push(with(GOOGLETEST, "googletest::in_one_process", in_one_process));
    trials.push(with(GOOGLETEST, "googletest::under_ctest", under_ctest));
    trials.push(with(GOOGLETEST, "googletest::without_the_command", without_the_command));
}

/// Configures and builds the project, with a driver that programs find without streamsan; answers the
/// build folder.
fn build(scratch: &Scratch, options: &[String], driver: Option<&OsStr>) -> PathBuf {
    let folder = project(scratch, "googletest");
    let mut cmake = command(scratch, &folder, "cmake");
    cmake.args(["-S", ".", "-B", "build"]).args(options);
    cmake.arg(format!("-DSTREAMSAN_FILES={}", repository("src/annotate").display()));
    cmake.arg(format!("-DHAZARDS={}", repository("tests/programs/c").display()));
    for cmake in [&mut cmake, command(scratch, &folder, "cmake").args(["--build", "build"])] {
        // The program is asked for its tests when it has been built.
        cmake.envs(driver.map(|driver| ("LD_LIBRARY_PATH", driver)));
        let ended = scratch.finish(cmake);
        let printed = String::from_utf8_lossy(&ended.stdout);
        assert!(ended.status.success(), "{printed}\n{}", ended.stderr);
    }
    folder.join("build")
}

fn under_streamsan() -> [String; 2] {
    [format!("-DSTREAMSAN_COMMAND={}", streamsan().display()), "-DSTREAMSAN_OPTIONS=--sim".into()]
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The names of the cases of a JUnit file that have a failure, each with its class.
fn failed(junit: &str) -> Vec<String> {
    let attribute = |case: &str, name: &str| {
        let (_, rest) = case.split_once(name).expect("an attribute");
        rest.split('"').next().expect("a value").to_owned()
    };
    let cases = junit.split("<testcase ").skip(1).filter(|case| case.contains("<failure"));
    let name = |case| {
        let case = format!(" {case}");
        format!("{}.{}", attribute(&case, " classname=\""), attribute(&case, " name=\""))
    };
    let mut failed: Vec<String> = cases.map(name).collect();
    failed.sort();
    failed
}

const RACY: [&str; 2] = ["Children.RaceInAChild", "Memsets.InTwoStreams"];

/// All tests in one process: the report says whose a race is, and what a test allows fails nothing.
fn in_one_process() {
    let scratch = Scratch::new();
    let build = build(&scratch, &under_streamsan(), None);
    let units = build.join("units");
    let run = |filter: &str, code: i32| -> (String, String, Value) {
        let mut options = scratch.run_options();
        let junit = scratch.file("junit.xml");
        options.extend(["--report".into(), format!("junit={}", junit.display()).into()]);
        let mut run = scratch.streamsan(&["run", "--sim"].map(OsStr::new));
        run.args(options).arg("--").arg(&units).arg(format!("--gtest_filter={filter}"));
        let ended = scratch.finish(&mut run);
        ended.expect_code(code);
        let printed = String::from_utf8_lossy(&ended.stdout);
        assert!(printed.contains("[  PASSED  ]"), "{printed}");
        (ended.stderr, read(&junit), scratch.report())
    };
    let (said, junit, report) = run("*", 66);
    for test in RACY {
        assert!(said.contains(&format!("\nracy test: {test} - WAW [missing-wait] id ")), "{said}");
        assert!(said.contains(&format!("\n  test  {test}, seen once\n")), "{said}");
    }
    assert!(said.contains("\nallowed: write-after-write"), "{said}");
    assert!(said.contains("test Memsets.AllowedInTwoStreams, seen once (allowed)"), "{said}");
    assert!(said.contains("\ntests: 7 tests, 2 racy\n"), "{said}");
    assert_eq!(failed(&junit), RACY);
    let fails = |test: &Value| test["fails"] == true;
    let tests = report["tests"].as_array().expect("a list").iter().filter(|test| fails(test));
    let tests: Vec<&str> = tests.filter_map(|test| test["name"].as_str()).collect();
    assert_eq!(tests, RACY);
    let allowed = report["findings"].as_array().expect("a list").iter();
    let allowed: Vec<&Value> = allowed.filter(|f| f["disposition"] == "allowed").collect();
    let of = json!([{ "test": "Memsets.AllowedInTwoStreams", "count": 1, "allowed": true }]);
    assert!(allowed.len() == 1 && allowed[0]["tests"] == of, "{report:#}");

    // The stored trace says the same.
    let trace = scratch.trace();
    let check = scratch.finish(&mut scratch.streamsan(&["check".as_ref(), trace.as_os_str()]));
    check.expect_code(1);
    let checked = String::from_utf8_lossy(&check.stdout);
    assert!(checked.contains("\nracy test: Memsets.InTwoStreams - WAW"), "{checked}");

    let (said, junit, _) = run("Memsets.InOneStream:Memsets.Allowed*", 0);
    assert!(said.contains("verdict: CLEAN") && said.contains("tests: 2 tests, 0 racy"), "{said}");
    assert_eq!(failed(&junit), [""; 0]);
}

/// Each test by itself, and the whole program as one test, each with its files.
fn under_ctest() {
    let scratch = Scratch::new();
    let build = build(&scratch, &under_streamsan(), None);
    let ctest = |arguments: &[&str], code: i32| {
        let mut ctest = command(&scratch, &build, "ctest");
        let ended = scratch.finish(ctest.args(["--output-junit", "ctest.xml"]).args(arguments));
        let printed = String::from_utf8_lossy(&ended.stdout).into_owned();
        assert_eq!(ended.status.code(), Some(code), "{printed}\n{}", ended.stderr);
        printed
    };
    let printed = ctest(&["-j", "2"], 8);
    assert!(printed.contains("3 tests failed out of 8"), "{printed}");
    let tests = read(&build.join("ctest.xml"));
    let names: Vec<String> = failed(&tests);
    let names: Vec<&str> =
        names.iter().map(|name| name.split_at(name.len() / 2).1.trim_start_matches('.')).collect();
    assert_eq!(names, [RACY[0], RACY[1], "all/units"], "{tests}");
    // What makes no call of the driver is skipped, and not passed.
    assert!(printed.contains("Arithmetic.WithoutDevice"), "{printed}");
    assert!(printed.contains("***Skipped"), "{printed}");

    let files: Vec<String> = fs::read_dir(build.join("streamsan"))
        .expect("the tests make it")
        .map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned())
        .collect();
    let has = |begin: &str, end: &str| {
        let named = files.iter().filter(|file| file.starts_with(begin) && file.ends_with(end));
        assert_eq!(named.count(), 1, "{begin}*{end}: {files:?}");
    };
    for test in ["Memsets.InOneStream", "Memsets.InTwoStreams", "Some_Times.InOneStream_3-"] {
        has(test, ".db");
        has(test, ".json");
    }
    has("all_units-", ".xml");
    let report = read(&build.join("streamsan/Memsets.InTwoStreams.json"));
    let report: Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!(report["tests"], json!([{ "name": "Memsets.InTwoStreams", "fails": true }]));

    let listed = |label: &str| {
        let printed = ctest(&["-N", "-L", label], 0);
        let (_, count) = printed.split_once("Total Tests: ").expect("a count");
        count.trim().to_owned()
    };
    assert_eq!(["streamsan", "single", "gpu", "whole"].map(listed), ["8", "7", "7", "1"]);

    // All traces in one report.
    let traces = build.join("streamsan");
    let mut check = scratch.streamsan(&["check".as_ref(), traces.as_os_str()]);
    let check = scratch.finish(&mut check);
    check.expect_code(1);
    let checked = String::from_utf8_lossy(&check.stdout);
    assert!(checked.contains("tests: 7 tests, 2 racy"), "{checked}");
}

/// Header and module do nothing where the command is not there.
fn without_the_command() {
    let scratch = Scratch::new();
    let driver = simulated_driver(&scratch);
    let build = build(&scratch, &["-DSTREAMSAN=OFF".to_owned()], Some(&driver));
    let mut ctest = command(&scratch, &build, "ctest");
    ctest.env("LD_LIBRARY_PATH", driver);
    let ended = scratch.finish(ctest.arg("--output-on-failure"));
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{printed}\n{}", ended.stderr);
    assert!(printed.contains("100% tests passed"), "{printed}");
    assert!(!build.join("streamsan").exists());
}
