//! Every fix, written into the source: the calls of the report are put at the lines that it names, in
//! copies of the programs under test, and the runs of the copies must be clean.
//!
//! What a reader adds to the printed calls is the names of variables. Here they are found as a reader
//! finds them: `stream_of_1` is the stream that the statement at the line is given, and `event` is an
//! event of its own for each fix. Nothing else is decided here: which calls, at which lines and in
//! which order is the report's.
//!
//! The report is asked again after each fix, until nothing that fails is left, or nothing that can be
//! written. All programs are edited between two builds, since a build compiles them all.

mod edit;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use edit::{Refusal, with_fix};
use libtest_mimic::Trial;
use serde_json::Value;

use crate::command::{Scratch, arguments};
use crate::expected::program_rows;
use crate::trial;

pub(crate) fn add(trials: &mut Vec<Trial>) {
    trials.push(trial("source_fixes::make_programs_clean", programs_become_clean));
}

/// Fixes that one program may need, one after the other.
const MOST: usize = 6;
/// Programs that must become clean.
const LEAST: usize = 50;

/// The package of the copies.
struct Copies(PathBuf);

impl Copies {
    fn make() -> Self {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
        let own = Path::new(env!("CARGO_TARGET_TMPDIR")).join("source_fixes");
        let programs = own.join("programs");
        let _ = fs::remove_dir_all(&programs);
        copy_folder(&tests.join("programs"), &programs);
        let workspace = fs::read_to_string(tests.join("../Cargo.toml")).expect("a workspace");
        let cudarc = workspace.lines().find(|line| line.starts_with("cudarc = "));
        let cudarc = cudarc.expect("the programs' bindings of the driver");
        let manifest = format!(
            "[package]\nname = \"fixed-programs\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\
             publish = false\nautobins = false\n\n[workspace]\n\n[lib]\nname = \"program_support\"\n\
             path = \"programs/support/lib.rs\"\n\n[[bin]]\nname = \"programs\"\n\
             path = \"programs/main.rs\"\n\n[dependencies]\n{cudarc}\n\n\
             [lints.rust]\nwarnings = \"allow\"\n"
        );
        fs::write(own.join("Cargo.toml"), manifest).expect("there is room for a manifest");
        // The versions that are there already.
        fs::copy(tests.join("../Cargo.lock"), own.join("Cargo.lock")).expect("a lock file");
        Self(own)
    }

    fn source(&self, program: &str) -> PathBuf {
        self.0.join("programs").join(program).with_extension("rs")
    }

    fn build(&self) -> PathBuf {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        build.args(["build", "--offline", "--quiet"]).current_dir(&self.0);
        // A build of its own, whatever the one around it was told.
        build.env("CARGO_TARGET_DIR", self.0.join("target")).env_remove("RUSTFLAGS");
        let built = build.output().expect("cargo starts");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        self.0.join("target/debug/programs")
    }
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("there is room for a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy_folder(&path, &target);
        } else {
            fs::copy(&path, &target).expect("there is room for a file");
        }
    }
}

/// The findings of a run that fail.
fn failing(programs: &Path, program: &str, variant: &str, fail_on: &str) -> Vec<Value> {
    let scratch = Scratch::new();
    let options = scratch.run_options();
    let words = [OsStr::new("--"), programs.as_os_str(), OsStr::new(program), OsStr::new(variant)];
    let first = ["run", "--sim", "--fail-on", fail_on];
    let run = arguments(&first, &options, &words);
    scratch.finish(&mut scratch.streamsan(&run));
    let report = scratch.report();
    assert_ne!(report["verdict"], "INCOMPLETE", "{program}: {report:#}");
    let findings = report["findings"].as_array().expect("a list").iter();
    let lints = report["lints"].as_array().expect("a list").iter();
    findings.chain(lints).filter(|finding| finding["fails"] == true).cloned().collect()
}

fn programs_become_clean() {
    let copies = Copies::make();
    let mut open: BTreeMap<(String, String), String> = program_rows()
        .into_iter()
        .filter(|row| row.verdict == "RACY")
        .map(|row| ((row.program, row.variant), row.fail_on))
        .collect();
    // A source with several racy variants is edited for the first one only.
    let mut seen = BTreeSet::new();
    open.retain(|(program, _), _| seen.insert(program.clone()));
    let mut clean = Vec::new();
    let mut refused: BTreeMap<Refusal, Vec<String>> = BTreeMap::new();
    for number in 0..=MOST {
        let programs = copies.build();
        let mut left = BTreeMap::new();
        for ((program, variant), fail_on) in open {
            let findings = failing(&programs, &program, &variant, &fail_on);
            if findings.is_empty() {
                assert!(number > 0, "{program} {variant} is racy");
                clean.push(program);
                continue;
            }
            assert!(number < MOST, "{program}: {MOST} fixes are not enough: {findings:#?}");
            let path = copies.source(&program);
            let source = fs::read_to_string(&path).expect("a source");
            let fixes = findings.iter().map(|finding| with_fix(&source, &path, finding, number));
            let fixes: Vec<Result<String, Refusal>> = fixes.collect();
            let Some(fixed) = fixes.iter().find_map(|fixed| fixed.as_ref().ok()) else {
                let why = fixes.into_iter().filter_map(Result::err).min().expect("a finding");
                refused.entry(why).or_default().push(program);
                continue;
            };
            fs::write(&path, fixed).expect("there is room for a source");
            left.insert((program, variant), fail_on);
        }
        open = left;
        if open.is_empty() {
            break;
        }
    }
    assert!(clean.len() >= LEAST, "{} clean: {clean:?}; {refused:#?}", clean.len());
}
