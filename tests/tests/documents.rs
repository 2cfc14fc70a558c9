//! The documents name traces: each named one exists, and each pair of traces is named.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn traces(folder: &str) -> BTreeSet<String> {
    fs::read_dir(root().join("traces").join(folder))
        .expect("the folder of traces")
        .filter_map(|entry| {
            let name = entry.expect("an entry").file_name().into_string().expect("a UTF-8 name");
            name.strip_suffix(".trace").map(str::to_owned)
        })
        .collect()
}

/// The names in backticks that look like traces, each with what stands right behind it.
fn named(text: &str) -> Vec<(&str, &str)> {
    let pieces: Vec<&str> = text.split('`').collect();
    pieces
        .windows(2)
        .skip(1)
        .step_by(2)
        .map(|pair| (pair[0], pair[1]))
        .filter(|(name, _)| {
            name.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit())
        })
        .collect()
}

#[test]
fn semantics_names_every_rule_trace_and_no_other() {
    let text = fs::read_to_string(root().join("docs/semantics.md")).expect("docs/semantics.md");
    let (pass, fail) = (traces("pass"), traces("fail"));
    let mut missing = Vec::new();
    let mut seen = BTreeSet::new();
    for (name, behind) in named(&text) {
        if !pass.contains(name) && !fail.contains(name) {
            // Words of reports and options are in backticks too; a trace has two words or more.
            if name.contains('_') {
                missing.push(name.to_owned());
            }
            continue;
        }
        seen.insert(name.to_owned());
        let (in_pass, in_fail) = (pass.contains(name), fail.contains(name));
        let as_said = if behind.starts_with(" (pass only)") || behind.starts_with(", pass only") {
            in_pass && !in_fail
        } else if behind.starts_with(" (fail only)") {
            in_fail && !in_pass
        } else {
            in_pass && in_fail
        };
        if !as_said {
            missing.push(format!("{name}: pass {in_pass}, fail {in_fail}"));
        }
    }
    assert!(missing.is_empty(), "named in docs/semantics.md, but not so in traces: {missing:#?}");
    let unnamed: Vec<_> = pass
        .union(&fail)
        .filter(|name| !name.starts_with("csan_") && !name.starts_with("wild_"))
        .filter(|name| !seen.contains(*name))
        .collect();
    assert!(unnamed.is_empty(), "traces that docs/semantics.md does not name: {unnamed:#?}");
}
