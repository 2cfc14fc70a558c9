//! The published schemas of JSON: each command that prints JSON has one, and what it prints follows it.
//! The whole corpus is held against them inside the command (`commands/json_documents.rs`).

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;
use std::thread;

/// The command whose JSON is the report, whose schema lies beside the folder of the others.
const REPORT: &str = "check";
/// Schemas of answers over MCP.
const OVER_MCP: &str = "mcp-";

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_streamsan"));
    command.args(arguments).env("NO_COLOR", "1").current_dir(repository(""));
    command.output().expect("the command starts")
}

fn help(arguments: &[&str]) -> String {
    String::from_utf8(run(arguments).stdout).expect("help is text")
}

/// The schema files, by their names without the ending.
fn schemas() -> BTreeMap<String, Value> {
    let files = fs::read_dir(repository("docs/schemas")).expect("the folder is there");
    let files = files.map(|entry| entry.expect("readable").path());
    let schemas = files.filter(|file| file.extension().is_some_and(|e| e == "json"));
    let read = |file: PathBuf| {
        let text = fs::read_to_string(&file).expect("readable");
        let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
        (name, serde_json::from_str(&text).expect("JSON"))
    };
    let mut schemas: BTreeMap<String, Value> = schemas.map(read).collect();
    let report = fs::read_to_string(repository("docs/report-schema.json")).expect("readable");
    schemas.insert(REPORT.to_owned(), serde_json::from_str(&report).expect("JSON"));
    schemas
}

/// A new command with `--json`, and a new tool, need a schema and a line on the page.
#[test]
fn every_command_with_json_has_a_schema() {
    let help_of_all = help(&["--help"]);
    let (_, commands) = help_of_all.split_once("Commands:\n").expect("a list of commands");
    let names = commands.lines().take_while(|line| line.starts_with("  "));
    let names = names.filter(|line| !line.starts_with("   "));
    let names: BTreeSet<&str> = names.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.contains("check") && names.contains("stats"), "{names:?}");
    let with_json = names.iter().filter(|name| {
        help(&[name, "--help"]).lines().any(|line| line.trim_start().starts_with("--json"))
    });
    let with_json: BTreeSet<String> = with_json.map(|name| (*name).to_owned()).collect();
    let schemas = schemas();
    let of_commands = schemas.keys().filter(|name| !name.starts_with(OVER_MCP)).cloned();
    assert_eq!(with_json, of_commands.collect());
    let page = fs::read_to_string(repository("docs/schemas/README.md")).expect("readable");
    for name in schemas.keys().filter(|name| *name != REPORT) {
        assert!(page.contains(&format!("]({name}.json)")), "{name} is missing on the page");
        jsonschema::meta::validate(&schemas[name]).expect("a schema");
    }
}

/// Runs each command line and holds what it prints against the schema of its first word. Answers how
/// many documents there were of each.
fn hold(lines: Vec<Vec<String>>) -> BTreeMap<String, usize> {
    let validators: BTreeMap<String, jsonschema::Validator> = schemas()
        .into_iter()
        .map(|(name, schema)| (name, jsonschema::validator_for(&schema).expect("a schema")))
        .collect();
    let lines = Mutex::new(lines.into_iter());
    let counts = Mutex::new(BTreeMap::new());
    let next = || lines.lock().expect("not poisoned").next();
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some(line) = next() {
                    let words: Vec<&str> = line.iter().map(String::as_str).collect();
                    let output = run(&words);
                    let said = String::from_utf8_lossy(&output.stderr);
                    let code = output.status.code();
                    assert!(matches!(code, Some(0 | 1 | 3)), "{line:?}: {code:?} {said}");
                    let document: Value =
                        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
                            panic!("{line:?} prints no JSON: {error}\n{said}");
                        });
                    let errors: Vec<String> = validators[&line[0]]
                        .iter_errors(&document)
                        .map(|error| format!("{}: {error}", error.instance_path()))
                        .collect();
                    assert!(errors.is_empty(), "{line:?}: {errors:#?}\n{document:#}");
                    *counts.lock().expect("not poisoned").entry(line[0].clone()).or_insert(0) += 1;
                }
            });
        }
    });
    counts.into_inner().expect("not poisoned")
}

#[test]
fn documents_follow_the_schemas() {
    let trace = |name: &str| repository("traces/recorded").join(name).display().to_string();
    let (racy, incomplete) = (trace("racy/torch_unordered.db"), trace("jax.db"));
    let mut lines: Vec<Vec<String>> = Vec::new();
    let mut add = |words: &[&str]| lines.push(words.iter().map(|&word| word.to_owned()).collect());
    for trace in [&racy, &incomplete] {
        add(&["check", "--json", "--verify", trace]);
        add(&["stats", "--json", trace]);
        add(&["explain", "--json", trace]);
        add(&["diff", "--json", &racy, trace]);
    }
    add(&["advise", "--json", &racy]);
    add(&["doctor", "--json"]);
    add(&["doctor", "--json", "/bin/sh"]);
    for class in streamsan_model::RaceClass::ALL {
        add(&["explain", "--json", class.description()]);
    }
    // What is kept of the kernels of images is held against what the command prints (`kernels.rs`).
    let schema = jsonschema::validator_for(&schemas()["kernels"]).expect("a schema");
    let kept = ["fill", "library", "sum"].map(|name| format!("src/cli/tests/kernels/{name}.json"));
    for file in kept {
        let text = fs::read_to_string(repository(&file)).expect("readable");
        let document: Value = serde_json::from_str(&text).expect("JSON");
        let errors: Vec<String> = schema.iter_errors(&document).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{file}: {errors:#?}");
    }
    let all = lines.len();
    assert_eq!(hold(lines).values().sum::<usize>(), all);
}
