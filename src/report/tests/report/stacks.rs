//! Reports of text traces whose calls have stacks, in all forms. `BLESS=1` writes the goldens again.

use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use streamsan_analysis::analyse;
use streamsan_model::{OpSeq, Operation, Threshold, TraceItem};
use streamsan_report::{
    Detail, Disposition, Folded, Gate, Input, KnownUpstream, Report, Story, Suppressions,
    TextOptions,
};
use streamsan_testing::golden;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stacks")
}

fn names() -> Vec<String> {
    let entries = std::fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().path());
    let traces = entries.filter(|path| path.extension().is_some_and(|e| e == "trace"));
    let mut names: Vec<String> =
        traces.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    names.sort();
    assert!(names.len() >= 6, "{names:?}");
    names
}

fn text(name: &str) -> String {
    std::fs::read_to_string(directory().join(name).with_extension("trace")).unwrap()
}

/// The report of a trace, for a reader in `/proj`.
pub(crate) fn with_report<T>(text: &str, look: impl FnOnce(Report<'_>, &[Operation]) -> T) -> T {
    with_report_at(text, Threshold::Possible, look)
}

/// `with_report` at another threshold.
pub(crate) fn with_report_at<T>(
    text: &str,
    threshold: Threshold,
    look: impl FnOnce(Report<'_>, &[Operation]) -> T,
) -> T {
    with_report_by(text, threshold, (Some(KnownUpstream::shipped()), Some("case.trace")), look)
}

/// `with_report` with another list of known races, or none, and another name of the trace, or none.
pub(crate) fn with_report_by<T>(
    text: &str,
    threshold: Threshold,
    (upstream, file): (Option<&KnownUpstream>, Option<&str>),
    look: impl FnOnce(Report<'_>, &[Operation]) -> T,
) -> T {
    let trace = streamsan_text::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let analysis = analyse(&trace.items);
    let operations = trace.items.iter().filter_map(|item| match item {
        TraceItem::Operation(operation) => Some(operation.clone()),
        _ => None,
    });
    let operations: Vec<Operation> = operations.collect();
    let mut findings: Folded = analysis.findings.iter().cloned().collect();
    analysis.lints.iter().for_each(|lint| findings.add_lint(lint.clone()));
    let input = Input {
        findings,
        entities: &analysis.entities,
        threshold,
        reasons: vec![],
        coverage: None,
        upstream,
        trace: file.map(str::to_owned),
    };
    let operation = |g: OpSeq| operations.iter().find(|o| o.g == g).cloned();
    let report = Report::new(input, operation).relative_to(Some("/proj".to_owned()));
    look(report, &operations)
}

/// Every line of every file, as the tests have it.
pub(crate) fn source_line(path: &str, line: u32) -> Option<String> {
    (!path.contains("missing")).then(|| format!("line {line} of {path}"))
}

fn everything(report: &Report<'_>, operations: &[Operation]) -> String {
    let options = TextOptions::default();
    let mut text = report.render_text(&options);
    for group in report.groups() {
        let mut story = Story::new(report, group);
        operations.iter().for_each(|operation| story.operation(operation));
        let told = story.render(&options, &mut source_line);
        let _ = write!(text, "\nexplain {}\n{told}", group.finding.fingerprint);
        let _ = write!(text, "\nsuppress {}", report.suppression_of(group));
    }
    for group in report.lints() {
        let _ = write!(text, "\nsuppress {}", report.suppression_of_lint(group));
    }
    let _ = write!(text, "\ngithub\n{}", report.render_github());
    text
}

#[track_caller]
fn compare(file: &str, text: &str) {
    golden::check(&directory().join(file), text);
}

#[test]
fn reports_say_where_calls_were_made() {
    for name in names() {
        let found = with_report(&text(&name), |report, operations| everything(&report, operations));
        compare(&format!("{name}.txt"), &found);
    }
}

#[test]
fn lines_and_counts_say_where_calls_were_made() {
    let found = with_report(&text("languages"), |report, _| {
        [Detail::Concise, Detail::Counted]
            .map(|detail| report.render_text(&TextOptions { detail, ..TextOptions::default() }))
            .join("\n")
    });
    compare("languages.short.txt", &found);
}

#[test]
fn forms_for_programs_have_places_and_stacks() {
    with_report(&text("mixed"), |report, _| {
        compare("mixed.json", &report.render_json());
        compare("mixed.sarif", &report.render_sarif("1.2.3"));
        compare("mixed.xml", &report.render_junit());
    });
}

pub(crate) fn assert_valid(schema: &Value, name: &str, document: &str) {
    let document: Value = serde_json::from_str(document).unwrap();
    let validator = jsonschema::validator_for(schema).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(&document)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{name}: {errors:#?}\n{document:#}");
}

#[test]
fn json_with_stacks_follows_the_published_schema() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/report-schema.json");
    let schema = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    for name in names() {
        let document = with_report(&text(&name), |report, _| report.render_json());
        assert_valid(&schema, &name, &document);
    }
}

#[test]
#[ignore = "needs the schema of OASIS, which may not be copied; STREAMSAN_SARIF_SCHEMA names its file"]
fn sarif_with_stacks_follows_the_schema_of_oasis() {
    let schema = crate::formats::sarif_schema();
    for name in names() {
        let document = with_report(&text(&name), |report, _| report.render_sarif("1.2.3"));
        assert_valid(&schema, &name, &document);
    }
}

/// The ids of a trace and how often each was seen.
fn ids(text: &str) -> Vec<(String, u64)> {
    with_report(text, |report, _| {
        report.groups().iter().map(|g| (g.finding.fingerprint.to_string(), g.count)).collect()
    })
}

#[test]
fn call_sites_are_part_of_the_id_and_lines_are_not() {
    let with = text("folded");
    let counts: Vec<u64> = ids(&with).iter().map(|(_, count)| *count).collect();
    // Two lines of one function, another function, and a pair without stacks.
    assert_eq!(counts, [2, 1, 1]);
    // The program moves to another directory and gets a few more lines.
    let moved = with.replace("/w/", "/home/me/checkout/").replace("pool.cc:4", "pool.cc:14");
    assert_eq!(ids(&moved), ids(&with));
    let renamed = with.replace("drain@", "flush@");
    let (old, new) = (ids(&with), ids(&renamed));
    let changed = old.iter().zip(&new).filter(|(a, b)| a != b).count();
    assert_eq!((old.len(), new.len(), changed), (3, 3, 1), "{old:?} {new:?}");
    // Without stacks all four are one, with the id of the pair that has none.
    let without: String = with
        .lines()
        .filter(|line| !line.starts_with("stack"))
        .map(|line| line.split(" stack=").next().unwrap_or(line).to_owned() + "\n")
        .collect();
    let folded = ids(&without);
    assert_eq!(folded.len(), 1);
    assert_eq!(folded[0].1, 4);
    assert!(old.iter().any(|(id, _)| *id == folded[0].0), "{old:?} {folded:?}");
}

#[test]
fn the_site_of_the_allocation_is_part_of_the_id() {
    let trace = |site: &str| {
        format!(
            "stack m /w/app+1:{site}@/w/a.cc:1\nstack u /w/app+2:use@/w/a.cc:9\n\
             alloc A 8 stack=m\nlaunch s1 k w:A stack=u\nlaunch s2 k w:A stack=u\n"
        )
    };
    assert_eq!(ids(&trace("make")), ids(&trace("make")));
    assert_ne!(ids(&trace("make")), ids(&trace("other")));
}

/// More call paths of one mistake than are kept apart: all are counted.
#[test]
fn many_call_paths_are_bounded() {
    let mut trace = String::new();
    for path in 0..5000 {
        let _ = writeln!(trace, "stack p{path} /w/app+{path}:use@/w/a.cc:{}", path + 1);
    }
    for path in 0..5000 {
        let _ = writeln!(trace, "launch s1 k w:A[{path}..{}] stack=p{path}", path + 1);
        let _ = writeln!(trace, "launch s2 k w:A[{path}..{}] stack=p{path}", path + 1);
    }
    let trace = format!("alloc A 5000\n{trace}");
    let found = ids(&trace);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].1, 5000);
}

#[test]
fn suppressions_match_functions_and_files() {
    let is_suppressed = |line: &str| {
        let suppressions = Suppressions::parse(line).unwrap();
        let today = "2026-06-15".parse().unwrap();
        let gate = Gate { suppressions: Some(suppressions), baseline: None, today };
        with_report(&text("cpp"), |mut report, _| {
            report.hold_against(&gate);
            let [group] = report.groups() else { panic!("one finding") };
            matches!(group.disposition, Disposition::Suppressed { .. })
        })
    };
    for (sides, expected) in [
        ("fun:Pool<float>::refill & fun:Model::forward", true),
        ("fun:Model::forward & fun:Pool*", true),
        ("fun:step src:*/src/model.cc & *", true),
        ("fun:main & src:/proj/src/pool.cc", true),
        ("fun:cudaMemcpyAsync & *", true),
        ("src:/proj/app & *", true),
        // Both sides are asked.
        ("fun:Model::forward & fun:Model::forward", false),
        ("fun:Pool*refill src:*model.cc & *", false),
        ("src:*/python3.* & *", false),
        ("fun:__libc_start_main & *", false),
    ] {
        assert_eq!(is_suppressed(&format!("race[*]: {sides} reason=x")), expected, "{sides}");
    }
    // The block that `suppress` prints accepts its own finding.
    for name in names() {
        with_report(&text(&name), |mut report, _| {
            let blocks: String =
                report.groups().iter().map(|group| report.suppression_of(group)).collect();
            let suppressions = Suppressions::parse(&blocks.replace("\"\"", "x")).unwrap();
            let today = "2026-06-15".parse().unwrap();
            report.hold_against(&Gate { suppressions: Some(suppressions), baseline: None, today });
            assert!(report.groups().iter().all(|g| g.disposition.is_suppressed()), "{blocks}");
            assert!(report.unused().is_empty(), "{name}: {blocks}");
        });
    }
}
