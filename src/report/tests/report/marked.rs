//! Tests that a program marked: whose a finding is, which do not fail, and what the forms say.

use crate::stacks::{assert_valid, with_report_by};
use std::path::Path;
use std::process::Command;
use streamsan_analysis::analyse;
use streamsan_model::{
    HostTime, NvtxKind, NvtxRange, OpSeq, ProcessId, ThreadId, Threshold, TraceItem, Verdict,
};
use streamsan_report::{Disposition, Gate, MarkedTests, Report, TextOptions};

/// Three races: one mistake by two tests, another one that no test made.
const RACES: &str = "\
memset s1 A
memset s2 A
memset s1 B
memset s2 B
memset s1 C
copy s2 dst:D src:C
";

/// A range with ends before and behind the operations in these lines, or a mark before one.
fn range(name: &str, begin: usize, end: usize, mark: bool) -> (NvtxRange, [usize; 2]) {
    let domain = if mark { NvtxRange::ALLOWED } else { NvtxRange::TESTS };
    let range = NvtxRange {
        begin: OpSeq(0),
        end: None,
        process: ProcessId(0),
        thread: ThreadId(0),
        kind: if mark { NvtxKind::Mark } else { NvtxKind::Started },
        domain: Some(domain.into()),
        name: name.into(),
        time: HostTime { start_ns: 0, end_ns: 0 },
        depth: 0,
    };
    (range, [begin, end])
}

/// The report of the races with these tests.
fn look<T>(ranges: &[(NvtxRange, [usize; 2])], look: impl FnOnce(Report<'_>) -> T) -> T {
    let trace = streamsan_text::parse(RACES).expect("the races are a trace");
    let analysis = analyse(&trace.items);
    let calls: Vec<OpSeq> = trace.items.iter().filter_map(call).collect();
    with_report_by(RACES, Threshold::Likely, (None, None), |report, operations| {
        let process = operations[0].process;
        let ranges = ranges.iter().map(|(range, [begin, end])| NvtxRange {
            process,
            begin: OpSeq(calls[*begin].0 - u64::from(range.kind != NvtxKind::Mark)),
            end: Some(OpSeq(calls[*end].0 + 1)),
            ..range.clone()
        });
        let tests = MarkedTests::of(ranges);
        look(report.in_tests(&tests, (&analysis.findings, &analysis.lints), |_| Some(process)))
    })
}

fn call(item: &TraceItem) -> Option<OpSeq> {
    match item {
        TraceItem::Operation(operation) if !operation.accesses.is_empty() => Some(operation.g),
        _ => None,
    }
}

fn text(report: &Report<'_>) -> String {
    report.render_text(&TextOptions { columns: Some(200), ..TextOptions::default() })
}

#[test]
fn a_mistake_is_told_under_each_test_that_makes_it() {
    let tests = [range("Copies.First", 0, 1, false), range("Copies.Second", 2, 3, false)];
    look(&tests, |report| {
        let text = text(&report);
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("  test")).collect();
        assert!(
            lines.contains(&"  test  Copies.First, seen once; Copies.Second, seen once"),
            "{text}"
        );
        assert!(lines.contains(&"  test  outside of tests, seen once"), "{text}");
        for name in ["First", "Second"] {
            let line = format!("racy test: Copies.{name} - WAW [missing-wait] id ");
            assert!(text.contains(&line), "{text}");
        }
        assert!(text.contains("\ntests: 2 tests, 2 racy\n"), "{text}");
        let junit = report.render_junit();
        for name in ["First", "Second"] {
            let case = format!("<testcase name=\"{name}\" classname=\"Copies\">");
            let (_, rest) = junit.split_once(&case).unwrap_or_else(|| panic!("{junit}"));
            assert!(
                rest.trim_start().starts_with("<failure message=\"WAW [missing-wait]"),
                "{rest}"
            );
        }
        // The race outside of tests fails as a case of its own, and so each once.
        assert_eq!(junit.matches("<failure").count(), 3, "{junit}");
    });
}

#[test]
fn a_finding_fails_unless_all_its_tests_allow_it() {
    let tests = |first: Option<&str>, second: Option<&str>| {
        let mut tests = vec![range("A.First", 0, 1, false)];
        tests.extend(first.map(|word| range(word, 0, 0, true)));
        tests.push(range("A.Second", 2, 3, false));
        tests.extend(second.map(|word| range(word, 2, 2, true)));
        tests.push(range("A.Third", 4, 5, false));
        tests.push(range("*", 4, 4, true));
        tests
    };
    for (first, second, allowed) in [
        (Some("missing-wait"), Some("*"), true),
        (Some("missing-wait"), None, false),
        (Some("missing-wait"), Some("use-after-free"), false),
        (None, None, false),
    ] {
        look(&tests(first, second), |mut report| {
            let expected = if allowed { Verdict::Clean } else { Verdict::Racy };
            assert_eq!(*report.verdict(), expected, "{first:?} {second:?}");
            // The user's files change nothing in what the tests allow.
            report.hold_against(&Gate::default());
            assert_eq!(*report.verdict(), expected, "{first:?} {second:?}");
            let is_allowed = |group: &&streamsan_report::Group| {
                group.disposition == Disposition::Allowed && !group.fails
            };
            let count = report.groups().iter().filter(is_allowed).count();
            assert_eq!(count, if allowed { 2 } else { 1 });
            let text = text(&report);
            assert_eq!(text.contains("racy test: A.Second"), !allowed, "{text}");
            assert_eq!(text.contains("racy test: A.First"), !allowed && first.is_none(), "{text}");
            assert!(text.contains("allowed: "), "{text}");
            assert!(!text.contains("racy test: A.Third"), "{text}");
        });
    }
    // By id.
    let id = look(&tests(None, None), |report| report.groups()[0].finding.fingerprint.to_string());
    look(&tests(Some(&id), Some(&id)), |report| assert_eq!(*report.verdict(), Verdict::Clean));
}

#[test]
fn json_has_tests_as_the_schema_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/report-schema.json");
    let schema = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let tests = [range("Only.One", 0, 1, false), range("missing-wait", 0, 0, true)];
    look(&tests, |report| {
        let json = report.render_json();
        assert_valid(&schema, "tests", &json);
        let document: serde_json::Value = serde_json::from_str(&json).unwrap();
        let expected = serde_json::json!([{ "name": "Only.One", "fails": false }]);
        assert_eq!(document["tests"], expected);
        let findings = document["findings"].as_array().unwrap();
        let of_tests: Vec<_> = findings.iter().map(|finding| &finding["tests"]).collect();
        let expected = serde_json::json!([
            { "test": "Only.One", "count": 1, "allowed": true },
            { "test": null, "count": 1, "allowed": false },
        ]);
        assert!(of_tests.contains(&&expected), "{of_tests:?}");
    });
    look(&[], |report| {
        let document: serde_json::Value = serde_json::from_str(&report.render_json()).unwrap();
        assert_eq!(document.get("tests"), None, "absent where there are none");
    });
}

/// A pushed range is a test as a started one is, for programs that have NVTX.
#[test]
fn a_test_may_be_a_pushed_range() {
    let mut open = range("Cut.Off", 2, 3, false);
    open.0.kind = NvtxKind::Pushed;
    look(&[open], |report| {
        let text = text(&report);
        assert!(text.contains("  test  outside of tests, seen once; Cut.Off, seen once"), "{text}");
    });
}

#[test]
fn several_traces_have_one_list_of_tests() {
    let parts = [range("A.One", 0, 1, false), range("A.Two", 0, 1, false)];
    look(&parts[..1], |first| {
        look(&parts[1..], |second| {
            let report = Report::over(vec![first.clone(), second]).unwrap();
            let text = text(&report);
            assert!(text.contains("tests: 2 tests, 2 racy"), "{text}");
            assert!(text.contains("A.One, seen once; "), "{text}");
        });
    });
}

#[test]
#[ignore = "needs xmllint and a schema of JUnit, whose file STREAMSAN_JUNIT_XSD names"]
fn junit_with_tests_follows_a_schema() {
    let schema = std::env::var_os("STREAMSAN_JUNIT_XSD").expect("STREAMSAN_JUNIT_XSD is set");
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("junit-tests.xml");
    let tests = [
        range("Copies.First", 0, 1, false),
        range("no suite", 2, 3, false),
        range("Copies.Allowed", 4, 5, false),
        range("*", 4, 4, true),
        range("Copies.Clean", 5, 5, false),
    ];
    std::fs::write(&file, look(&tests, |report| report.render_junit())).unwrap();
    let mut xmllint = Command::new("xmllint");
    let output = xmllint.arg("--noout").arg("--schema").arg(&schema).arg(&file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
