//! The forms for other tools: valid, complete, and within the limits of those tools.

use crate::fixture;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use streamsan_model::{
    Edge, EdgeKind, Finding, Fingerprint, HostAccesses, IncompleteReason, Lint, OpSeq, RaceClass,
    StreamId, Threshold, Tier, Verdict,
};
use streamsan_report::{
    Baseline, Coverage, Disposition, Folded, Gate, Input, Neighbourhood, Report, Suppressions,
    TextOptions,
};

const TODAY: &str = "2026-06-15";

/// A report of a test: name, findings, lints, reasons, gate, trace.
pub(crate) struct Case {
    findings: Vec<Finding>,
    lints: Vec<Lint>,
    reasons: Vec<IncompleteReason>,
    gate: Option<Gate>,
    /// A text trace has lines and no coverage.
    is_text: bool,
    /// Driver calls.
    calls: u64,
}

impl Case {
    fn of(findings: Vec<Finding>) -> Self {
        let (lints, reasons) = (vec![], vec![]);
        Self { findings, lints, reasons, gate: None, is_text: false, calls: 10 }
    }

    pub(crate) fn look<T>(&self, look: impl FnOnce(&Report<'_>) -> T) -> T {
        let entities = fixture::entities();
        let mut findings: Folded = self.findings.iter().cloned().collect();
        self.lints.iter().for_each(|lint| findings.add_lint(lint.clone()));
        // One run that was not seen completely is one whose host was not watched either.
        let host_accesses = (!self.reasons.is_empty()).then(HostAccesses::off);
        let coverage = Coverage { calls: self.calls, host_accesses, ..Coverage::default() };
        let input = Input {
            findings,
            entities: &entities,
            threshold: Threshold::Likely,
            reasons: self.reasons.clone(),
            coverage: (!self.is_text).then_some(coverage),
            upstream: None,
            trace: Some(if self.is_text { "a b.trace" } else { "serve.db" }.to_owned()),
        };
        let mut report = Report::new(input, fixture::operation);
        if let Some(gate) = &self.gate {
            report.hold_against(gate);
        }
        look(&report)
    }
}

fn lint() -> Lint {
    Lint {
        fingerprint: Fingerprint(77),
        class: RaceClass::WaitBeforeRecord,
        op: OpSeq(18_121),
        api: "cuStreamWaitEvent".into(),
        stream: Some(StreamId(3)),
        event: None,
        related: Some(OpSeq(18_120)),
        stack: None,
        related_stack: None,
    }
}

fn gate() -> Gate {
    let file = "race[stale-wait]: * & * reason=\"upstream, see #12 & <b>\"\nlint[*]: * reason=x\n";
    let baseline = Case::of(vec![fixture::programmatic()]).look(Baseline::of);
    Gate {
        suppressions: Some(Suppressions::parse(file).unwrap()),
        baseline: Some(baseline),
        today: TODAY.parse().unwrap(),
    }
}

pub(crate) fn cases() -> Vec<(&'static str, Case)> {
    let mut mixed = fixture::every_class();
    mixed.extend((0..3).map(fixture::stale_wait));
    mixed.extend([fixture::latent(), fixture::programmatic(), fixture::possible(3)]);
    let mut odd = fixture::stale_wait(0);
    // Names are the program's own: they may hold anything that is text.
    odd.first.kernel =
        Some("f<int, 'x'>(\"a\" & b) ]]> % \u{1b}[31m\n::error::x | ``` \u{0}".to_owned());
    let everything = vec![lint()];
    let reasons = vec![IncompleteReason::NotAttached, IncompleteReason::DroppedRecords(3)];
    vec![
        ("clean", Case::of(vec![])),
        ("mixed", Case { lints: everything.clone(), ..Case::of(mixed.clone()) }),
        ("odd", Case::of(vec![odd])),
        ("incomplete", Case { reasons: reasons.clone(), ..Case::of(vec![]) }),
        ("racy and incomplete", Case { reasons, ..Case::of(vec![fixture::stale_wait(0)]) }),
        ("text", Case { is_text: true, ..Case::of(vec![fixture::stale_wait(0)]) }),
        ("no cuda", Case { calls: 0, ..Case::of(vec![]) }),
        ("gate", Case { gate: Some(gate()), lints: everything, ..Case::of(mixed) }),
    ]
}

pub(crate) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[track_caller]
pub(crate) fn assert_valid(schema: &Value, name: &str, document: &Value) {
    let validator = jsonschema::validator_for(schema).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(document)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{name}: {errors:#?}\n{document:#}");
}

pub(crate) fn published_schema() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/report-schema.json");
    json(&std::fs::read_to_string(path).unwrap())
}

/// The published schema describes everything that is written, and nothing else is written.
#[test]
fn json_follows_the_published_schema() {
    let schema = published_schema();
    for (name, case) in cases() {
        let document = case.look(|report| json(&report.render_json()));
        assert_valid(&schema, name, &document);
        // A check that cannot fail is none.
        let mut wrong = document.clone();
        wrong["verdict"] = Value::from("FINE");
        assert!(!jsonschema::is_valid(&schema, &wrong));
        let mut more = document;
        more["undescribed"] = Value::Null;
        assert!(!jsonschema::is_valid(&schema, &more));
    }
}

/// The schema of SARIF, as OASIS publishes it.
pub(crate) fn sarif_schema() -> Value {
    let path = std::env::var_os("STREAMSAN_SARIF_SCHEMA").expect("STREAMSAN_SARIF_SCHEMA is set");
    let text = std::fs::read_to_string(path).unwrap();
    // Its pattern of a language has a bracket that stands for itself, which only older rules of
    // regular expressions allow.
    json(&text.replace("[a-zA-Z]{2}]?$", "[a-zA-Z]{2}\\\\]?$"))
}

#[test]
#[ignore = "needs the schema of OASIS, which may not be copied; STREAMSAN_SARIF_SCHEMA names its file"]
fn sarif_follows_the_schema_of_oasis() {
    let schema = sarif_schema();
    for (name, case) in cases() {
        assert_valid(&schema, name, &case.look(|report| json(&report.render_sarif("1.2.3"))));
    }
    assert_valid(&schema, "several", &over_several(|report| json(&report.render_sarif("1.2.3"))));
}

/// The report over several traces, each as in `cases`.
fn over_several<T>(look: impl FnOnce(&Report<'_>) -> T) -> T {
    let cases = cases();
    let case = |wanted| &cases.iter().find(|(name, _)| *name == wanted).unwrap().1;
    case("mixed").look(|mixed| {
        case("racy and incomplete").look(|racy| {
            case("text").look(|text| {
                look(&Report::over(vec![mixed.clone(), racy.clone(), text.clone()]).unwrap())
            })
        })
    })
}

#[test]
fn several_traces_make_the_same_forms() {
    let schema = published_schema();
    over_several(|report| {
        let document = json(&report.render_json());
        assert_valid(&schema, "several", &document);
        let findings = document["findings"].as_array().unwrap();
        // Every finding of the others is one of the first trace's.
        let alone = cases().swap_remove(1).1.look(|report| report.groups().len());
        assert_eq!(findings.len(), alone);
        let stale = findings.iter().find(|f| f["in_traces"].as_array().unwrap().len() == 3);
        let stale = stale.unwrap();
        let counts: Vec<u64> = stale["in_traces"]
            .as_array()
            .unwrap()
            .iter()
            .map(|t| t["count"].as_u64().unwrap())
            .collect();
        assert_eq!(stale["count"], counts.iter().sum::<u64>());
        assert_eq!(document["traces"].as_array().unwrap().len(), 3);
        let reason = document["reasons"][0]["text"].as_str().unwrap();
        assert!(reason.ends_with(" (serve.db)"), "{reason}");
        let sarif = json(&report.render_sarif("1.2.3"));
        assert_eq!(
            sarif["runs"][0]["results"].as_array().unwrap().len(),
            alone + report.lints().len()
        );
        assert!(report.render_junit().contains("in 3 of 3 traces: serve.db ("));
    });
    assert!(Report::over(vec![]).is_none());
}

/// The standard's demands beside the schema, and the fields that GitHub needs to show a result.
#[test]
fn sarif_results_refer_to_what_is_there() {
    for (name, case) in cases() {
        let document = case.look(|report| json(&report.render_sarif("1.2.3")));
        assert_eq!(document["version"], "2.1.0");
        let run = &document["runs"][0];
        let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
        let results = run["results"].as_array().unwrap();
        case.look(|report| {
            assert_eq!(results.len(), report.groups().len() + report.lints().len(), "{name}");
        });
        let complete = case.reasons.is_empty();
        let invocation = &run["invocations"][0];
        assert_eq!(invocation["executionSuccessful"], complete, "{name}");
        let told = invocation["toolExecutionNotifications"].as_array().unwrap();
        assert!(complete || told.len() >= case.reasons.len());
        let mut ids = BTreeSet::new();
        for result in results {
            let rule = &rules[result["ruleIndex"].as_u64().unwrap() as usize];
            assert_eq!(rule["id"], result["ruleId"]);
            let id = result["partialFingerprints"]["streamsan/v1"].as_str().unwrap();
            ids.insert((id.to_owned(), result["ruleId"].as_str().unwrap().to_owned()));
            let location = &result["locations"][0]["physicalLocation"];
            let uri = location["artifactLocation"]["uri"].as_str().unwrap();
            assert_eq!(uri, if case.is_text { "a%20b.trace" } else { "serve.db" });
            assert_eq!(location["region"]["startLine"].is_u64(), case.is_text);
            if case.gate.is_some() {
                assert!(result["baselineState"].is_string());
            }
            let Some(flows) = result["codeFlows"][0]["threadFlows"].as_array() else { continue };
            let names: BTreeSet<&str> = flows.iter().map(|f| f["id"].as_str().unwrap()).collect();
            assert_eq!(names.len(), flows.len(), "one thread flow a stream");
            let mut orders: Vec<u64> = flows
                .iter()
                .flat_map(|flow| flow["locations"].as_array().unwrap())
                .map(|location| location["executionOrder"].as_u64().unwrap())
                .collect();
            orders.sort_unstable();
            let expected: Vec<u64> = (1..=orders.len() as u64).collect();
            assert_eq!(orders, expected);
        }
        assert_eq!(ids.len(), results.len(), "{name}: fingerprints tell the results apart");
    }
}

/// Each rule says what its class means, in words of its own, and has the page on the class.
#[test]
fn sarif_rules_have_the_pages_of_their_classes() {
    let cases = cases();
    let (_, case) = cases.iter().find(|(name, _)| *name == "mixed").unwrap();
    let document = case.look(|report| json(&report.render_sarif("1.2.3")));
    let rules = document["runs"][0]["tool"]["driver"]["rules"].as_array().unwrap();
    let (mut classes, mut short) = (BTreeSet::new(), BTreeSet::new());
    for rule in rules {
        let id = rule["id"].as_str().unwrap();
        let class = id.trim_start_matches("latent-").trim_start_matches("lint-");
        let markdown = rule["help"]["markdown"].as_str().unwrap();
        assert!(markdown.starts_with(&format!("# {class}\n")), "{id}: {markdown}");
        let text = rule["help"]["text"].as_str().unwrap();
        assert!(text.starts_with(&format!("{class}\n")) && !text.contains("```"), "{id}: {text}");
        let about = rule["fullDescription"]["text"].as_str().unwrap();
        let sentence = rule["shortDescription"]["text"].as_str().unwrap();
        assert!(about.len() > sentence.len() && about.len() < 1024, "{id}: {about}");
        assert!(short.insert(sentence), "{id}: another rule has this description: {sentence}");
        assert!(rule["helpUri"].is_null(), "{id}: the project has no public address");
        classes.insert(class);
    }
    assert_eq!(classes.len(), RaceClass::ALL.len());
}

#[test]
fn sarif_tells_what_is_suppressed_and_what_is_known() {
    let (_, case) = cases().pop().unwrap();
    let document = case.look(|report| json(&report.render_sarif("1.2.3")));
    let results = document["runs"][0]["results"].as_array().unwrap();
    let suppressed = results.iter().filter(|r| r["suppressions"].is_array());
    for result in suppressed.clone() {
        assert_ne!(result["level"], "error");
        assert_eq!(result["suppressions"][0]["kind"], "external");
    }
    assert!(suppressed.count() >= 2);
    assert_eq!(results.iter().filter(|r| r["baselineState"] == "unchanged").count(), 1);
}

/// What GitLab reads: each issue with a file and a line, and an id of its own.
#[test]
fn code_quality_has_what_gitlab_reads() {
    let mut severities = BTreeSet::new();
    for (name, case) in cases() {
        let document = case.look(|report| json(&report.render_code_quality()));
        let issues = document.as_array().unwrap();
        let open = case.look(|report| {
            let open = |d: &Disposition| *d == Disposition::Open;
            report.groups().iter().filter(|group| open(&group.disposition)).count()
                + report.lints().iter().filter(|group| open(&group.disposition)).count()
        });
        assert_eq!(issues.len(), open, "{name}: what is accepted or known is left out");
        let mut ids = BTreeSet::new();
        for issue in issues {
            assert!(ids.insert(issue["fingerprint"].as_str().unwrap()), "{name}: {issue}");
            assert!(!issue["description"].as_str().unwrap().is_empty(), "{name}: {issue}");
            assert!(!issue["check_name"].as_str().unwrap().is_empty(), "{name}: {issue}");
            assert!(!issue["location"]["path"].as_str().unwrap().is_empty(), "{name}: {issue}");
            assert!(issue["location"]["lines"]["begin"].as_u64().unwrap() > 0, "{name}: {issue}");
            severities.insert(issue["severity"].as_str().unwrap().to_owned());
        }
    }
    let known = ["critical", "info", "major", "minor"];
    assert!(severities.iter().all(|severity| known.contains(&&**severity)), "{severities:?}");
    assert!(severities.contains("critical") || severities.contains("major"), "{severities:?}");
}

/// Elements of JUnit's XML: name, attributes. Enough of a reader for well-formed text.
fn elements(xml: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open: Vec<String> = Vec::new();
    let mut rest = xml.strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>").unwrap();
    while let Some((before, after)) = rest.split_once('<') {
        assert!(!before.contains("]]>"), "{before}");
        let (tag, after) = after.split_once('>').unwrap();
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name));
            continue;
        }
        let name = tag.trim_end_matches('/').split_whitespace().next().unwrap().to_owned();
        if !tag.ends_with('/') {
            open.push(name.clone());
        }
        found.push((name, tag.to_owned()));
    }
    assert!(open.is_empty());
    found
}

#[test]
fn junit_counts_what_it_holds() {
    for (name, case) in cases() {
        let (xml, groups, fails) = case.look(|report| {
            let fails = report.groups().iter().filter(|g| g.fails).count()
                + report.lints().iter().filter(|g| g.fails).count();
            (report.render_junit(), report.groups().len() + report.lints().len(), fails)
        });
        assert!(!xml.contains(['\u{0}', '\u{1b}']), "{name}: characters that XML does not allow");
        let elements = elements(&xml);
        let count = |wanted: &str| elements.iter().filter(|(name, _)| name == wanted).count();
        assert_eq!(count("testcase"), groups + 1, "{name}: {xml}");
        assert_eq!(count("failure"), fails, "{name}");
        let errors = usize::from(!case.reasons.is_empty() && fails == 0);
        assert_eq!(count("error"), errors, "{name}");
        let suite = &elements.iter().find(|(name, _)| name == "testsuite").unwrap().1;
        for (attribute, value) in [
            ("tests", groups + 1),
            ("failures", fails),
            ("errors", errors),
            ("skipped", count("skipped")),
        ] {
            assert!(suite.contains(&format!("{attribute}=\"{value}\"")), "{name}: {suite}");
        }
    }
}

#[test]
#[ignore = "needs xmllint and a schema of JUnit, whose file STREAMSAN_JUNIT_XSD names"]
fn junit_follows_a_schema() {
    let schema = std::env::var_os("STREAMSAN_JUNIT_XSD").expect("STREAMSAN_JUNIT_XSD is set");
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("junit.xml");
    let mut written: Vec<(&str, String)> =
        cases().iter().map(|(name, case)| (*name, case.look(|r| r.render_junit()))).collect();
    written.push(("several", over_several(|report| report.render_junit())));
    for (name, text) in written {
        std::fs::write(&file, text).unwrap();
        let mut xmllint = Command::new("xmllint");
        let output = xmllint.arg("--noout").arg("--schema").arg(&schema).arg(&file).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn github_annotations_stay_within_the_limits() {
    for (name, case) in cases() {
        let text = case.look(|report| report.render_github());
        for level in ["error", "warning", "notice"] {
            let prefix = format!("::{level} ");
            let commands = text.lines().filter(|line| line.starts_with(&prefix)).count();
            assert!(commands <= 10, "{name}: {commands} times {level}");
        }
        // Every line is a command: nothing that a program calls itself ends one.
        for line in text.lines() {
            let (properties, _) = line.strip_prefix("::").unwrap().split_once("::").unwrap();
            assert!(["error ", "warning ", "notice "].iter().any(|l| properties.starts_with(l)));
        }
        assert_eq!(text.contains("file=a b.trace,line=18240"), case.is_text, "{name}: {text}");
        assert_eq!(text.lines().last().unwrap().split("::").nth(1), Some("notice title=streamsan"));
    }
    let many: Vec<Finding> = (0..30)
        .map(|n| Finding { fingerprint: Fingerprint(n), ..fixture::stale_wait(n) })
        .collect();
    let text = Case::of(many).look(|report| report.render_github());
    assert_eq!(text.lines().filter(|line| line.starts_with("::error ")).count(), 10);
    assert!(text.contains("21 more findings"), "{text}");
}

#[test]
fn github_summary_stays_within_a_mebibyte() {
    let many: Vec<Finding> = (0..12_000)
        .map(|n| Finding { fingerprint: Fingerprint(n), ..fixture::stale_wait(n) })
        .collect();
    let text = Case::of(many).look(|report| report.render_github_summary());
    assert!(text.len() < 1 << 20, "{}", text.len());
    assert!(text.contains("more findings; the JSON form lists all of them"));
    for (name, case) in cases() {
        let text = case.look(|report| report.render_github_summary());
        let rows = text.lines().filter(|line| line.starts_with("| ")).count();
        let expected = case.look(|report| report.groups().len() + report.lints().len());
        // The head of the table begins with an empty cell, too.
        assert_eq!(rows, if expected == 0 { 0 } else { expected + 1 }, "{name}: {text}");
    }
}

#[test]
fn dot_draws_what_is_around_a_race() {
    let case = Case::of(vec![fixture::stale_wait(0)]);
    let edges = [(18_120, 18_121), (1, 2)].map(|(from, to)| Edge {
        from: OpSeq(from),
        to: OpSeq(to),
        kind: EdgeKind::EventWait,
        tier: Tier::Documented,
    });
    let text = case.look(|report| {
        let finding = &report.groups()[0].finding;
        let mut around = Neighbourhood::new(report, finding, &edges);
        for g in [1, 2, 18_120, 18_121] {
            if let Some(operation) = fixture::operation(OpSeq(g)) {
                around.operation(&operation);
            }
        }
        Neighbourhood::render(&[around.clone(), around])
    });
    assert!(text.contains("f1_op18120 -> f1_op18121 [label=\"event wait\""), "{text}");
    assert!(text.contains("f2_op18233 -> f2_op18240 [label=\"not ordered\""), "{text}");
    assert!(text.starts_with("digraph ") && text.matches("digraph").count() == 1, "{text}");
    assert!(!text.contains("op1 ") && !text.contains("op2 "), "{text}");
    assert_eq!(text.matches('{').count(), text.matches('}').count());
}

/// Every form says that nothing was seen.
#[test]
fn a_run_without_a_driver_call_is_not_clean() {
    const WORDS: &str = "no driver call was seen, so there was nothing to check";
    let mut case = Case { calls: 0, ..Case::of(vec![]) };
    for gate in [None, Some(gate())] {
        case.gate = gate;
        case.look(|report| {
            let text = report.render_text(&TextOptions::default());
            assert!(text.ends_with(&format!("verdict: NO CUDA - {WORDS}\n")), "{text}");
            assert_eq!(json(&report.render_json())["verdict"], "NO CUDA");
            let sarif = &json(&report.render_sarif("1"))["runs"][0]["invocations"][0];
            assert_eq!(sarif["properties"]["verdict"], "NO CUDA");
            let notes = sarif["toolExecutionNotifications"].as_array().unwrap();
            let note = notes.iter().find(|note| note["descriptor"]["id"] == "no-cuda");
            assert_eq!(note.unwrap()["message"]["text"], WORDS);
            let junit = report.render_junit();
            assert!(junit.contains(&format!("<skipped message=\"{WORDS}\"")));
            let annotations = report.render_github();
            assert!(annotations.contains(&format!("title=streamsan saw no CUDA::{WORDS}\n")));
            assert!(report.render_github_summary().starts_with("### streamsan: NO CUDA\n"));
        });
    }
    // Whatever was not seen may be the calls.
    case.reasons = vec![IncompleteReason::NotAttached];
    case.look(|report| {
        assert_eq!(*report.verdict(), Verdict::Incomplete(case.reasons.clone()));
    });
}

/// Among several traces, one with driver calls is enough.
#[test]
fn several_traces_without_a_driver_call() {
    let entities = fixture::entities();
    let part = |calls: Option<u64>| {
        let coverage = calls.map(|calls| Coverage { calls, ..Coverage::default() });
        let input = Input {
            findings: Folded::default(),
            entities: &entities,
            threshold: Threshold::Likely,
            upstream: None,
            reasons: vec![],
            coverage,
            trace: Some("rank.db".to_owned()),
        };
        Report::new(input, fixture::operation)
    };
    for (calls, verdict, traces) in [
        (&[Some(0), Some(0)][..], "NO CUDA", "2 traces, 2 without a driver call"),
        (&[Some(0), Some(3)], "CLEAN", "2 traces, 1 without a driver call"),
        (&[None, Some(0)], "CLEAN", "2 traces, 1 without a driver call"),
    ] {
        let report = Report::over(calls.iter().map(|&calls| part(calls)).collect()).unwrap();
        let text = report.render_text(&TextOptions::default());
        let ending = format!("traces: {traces}\nverdict: {verdict} - ");
        assert!(text.contains(&ending), "{calls:?}: {text}");
    }
}
