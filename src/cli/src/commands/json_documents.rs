//! What the commands print with `--json` follows the published schemas, of every trace of the corpus.
//!
//! The documents are made as the commands make them, without a process for each: there are thousands.
//! That each command has a schema, and prints what is held here, the tests of the command from
//! outside say.

use super::diff::Comparison;
use super::stats::Stats;
use super::trace::Concluded;
use super::{advise, explain};
use crate::options::{DiffOptions, ExplainOptions, ThresholdOption};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;
use streamsan_model::Threshold;

/// The text traces and the recorded ones.
fn traces() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("readable") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "trace" || ending == "db") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn schema(path: &str) -> jsonschema::Validator {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(path);
    let text = fs::read_to_string(path).expect("readable");
    jsonschema::validator_for(&serde_json::from_str(&text).expect("JSON")).expect("a schema")
}

fn hold(schema: &jsonschema::Validator, what: &str, trace: &Path, document: &Value) {
    let errors: Vec<String> = schema
        .iter_errors(document)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{what} of {}: {errors:#?}\n{document:#}", trace.display());
}

#[test]
fn documents_of_the_corpus_follow_the_schemas() {
    let traces = traces();
    assert!(traces.len() > 800, "{}", traces.len());
    let [report, stats, told, diff, advised] = [
        "report-schema.json",
        "schemas/stats.json",
        "schemas/explain.json",
        "schemas/diff.json",
        "schemas/advise.json",
    ]
    .map(schema);
    let pairs = traces.iter().zip(traces.iter().cycle().skip(1));
    let pairs = Mutex::new(pairs);
    let next = || pairs.lock().expect("not poisoned").next();
    let advice = Mutex::new(0);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some((trace, other)) = next() {
                    let threshold = || ThresholdOption { fail_on: Threshold::default() };
                    let concluded = Concluded::open(trace, false).expect("it is read");
                    let judged = concluded.report(Threshold::default());
                    let text = judged.render_json();
                    hold(&report, "check", trace, &serde_json::from_str(&text).expect("JSON"));
                    hold(&stats, "stats", trace, &Stats::of(trace).expect("it is read").json());
                    let asked = ExplainOptions {
                        file: trace.clone(),
                        id: None,
                        source_root: Vec::new(),
                        threshold: threshold(),
                        strict_host_threads: false,
                        json: true,
                    };
                    // Where nothing fails, there is nothing to explain, and the user is told.
                    if judged.groups().iter().any(|group| group.fails) {
                        let document = explain::as_json(&asked).expect("it is read");
                        hold(&told, "explain", trace, &document);
                    }
                    let (before, after) = (trace.clone(), other.clone());
                    let two = DiffOptions {
                        before,
                        after,
                        threshold: threshold(),
                        suppressions: None,
                        json: true,
                        view: false,
                    };
                    let document = Comparison::of(&two).expect("both are read").as_json();
                    hold(&diff, "diff", trace, &document);
                    if let Some(document) = advise::document(trace).expect("it is read") {
                        hold(&advised, "advise", trace, &document);
                        *advice.lock().expect("not poisoned") += 1;
                    }
                }
            });
        }
    });
    let advice = advice.into_inner().expect("not poisoned");
    assert!(advice > 700, "{advice}");
}
