//! JUnit XML: a test case for each mistake, and one for each reason of an incomplete run.
//!
//! A finding that fails is a `failure`, a reason of an incomplete run an `error`. A suppressed or
//! known finding is `skipped`, as is a run without a driver call. Findings below the threshold pass
//! and carry their description. Where the program marked its tests, each of them is a case of a second
//! suite, by its own name: there stands what fails in it, and the case of the finding itself fails
//! only where something was issued outside of tests. Invariant: there is always a case, so that no
//! tool takes an empty file for a clean run.

use crate::marked::{Failing, What};
use crate::{Disposition, InTest, Report};
use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};
use streamsan_model::{Fingerprint, Severity, Verdict};
use streamsan_names::{printable, printable_line};

struct Case {
    class: String,
    name: String,
    id: Fingerprint,
    fails: bool,
    /// What fails stands in the cases of the tests that made it.
    in_tests: bool,
    details: String,
}

pub(crate) fn render(report: &Report<'_>) -> String {
    let mut suite = TestSuite::new("streamsan");
    suite.add_test_case(coverage(report));
    for group in &report.groups {
        let finding = &group.finding;
        let case = Case {
            class: report.rule(finding.class, finding.severity),
            name: report.title(group),
            id: finding.fingerprint,
            fails: group.fails,
            in_tests: is_in_tests(&group.tests),
            details: report.in_full(group).join("\n"),
        };
        suite.add_test_case(test_case(case, &group.disposition));
    }
    for group in &report.lints {
        let details = report.lint_in_words(group);
        let case = Case {
            class: report.rule(group.lint.class, Severity::Lint),
            name: report.part_of_lint(group).called(&group.lint.api, group.lint.stack).into_owned(),
            id: group.lint.fingerprint,
            fails: group.fails,
            in_tests: is_in_tests(&group.tests),
            details,
        };
        suite.add_test_case(test_case(case, &group.disposition));
    }
    let mut junit = quick_junit::Report::new("streamsan");
    junit.add_test_suite(suite);
    if !report.tests.is_empty() {
        junit.add_test_suite(tests(report));
    }
    let text = junit.to_string().expect("texts are written into memory");
    without_skipped(&text)
}

/// The root without its count of skipped cases, which the schema of Jenkins' xUnit plugin does not
/// know; each suite has its own.
fn without_skipped(text: &str) -> String {
    let Some((head, (root, rest))) = text.find("<testsuites").and_then(|at| {
        let (head, tail) = text.split_at(at);
        Some((head, tail.split_once('>')?))
    }) else {
        return text.to_owned();
    };
    let kept = root.split(' ').filter(|attribute| !attribute.starts_with("skipped="));
    let root: Vec<&str> = kept.collect();
    format!("{head}{}>{rest}", root.join(" "))
}

/// Whether each occurrence was issued by a test.
fn is_in_tests(tests: &[InTest]) -> bool {
    !tests.is_empty() && tests.iter().all(|place| place.test.is_some())
}

/// A case for each test: its class is what stands before the first dot of its name.
fn tests(report: &Report<'_>) -> TestSuite {
    let mut suite = TestSuite::new("tests");
    for (name, failing) in report.failing_tests() {
        let status = match failing.first() {
            None => TestCaseStatus::success(),
            Some(first) => {
                let lines: Vec<String> = failing.iter().map(Failing::line).collect();
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                let rule = match first.what {
                    What::Finding(group) => {
                        report.rule(group.finding.class, group.finding.severity)
                    }
                    What::Lint(group) => report.rule(group.lint.class, Severity::Lint),
                };
                status.set_type(rule).set_message(lines.join("; "));
                let details = failing.iter().map(|failing| match failing.what {
                    What::Finding(group) => {
                        format!("{}\n{}", failing.line(), report.in_full(group).join("\n"))
                    }
                    What::Lint(group) => {
                        format!("{}\n{}", failing.line(), report.lint_in_words(group))
                    }
                });
                status.set_description(details.collect::<Vec<_>>().join("\n\n"));
                status
            }
        };
        let name = printable(name);
        let (class, name) = name.split_once('.').unwrap_or(("tests", &name));
        let mut case = TestCase::new(name, status);
        case.set_classname(class);
        suite.add_test_case(case);
    }
    suite
}

/// Whether everything was seen.
fn coverage(report: &Report<'_>) -> TestCase {
    let reasons: Vec<String> = report.told_reasons().map(|(_, text)| text).collect();
    let status = if report.verdict == Verdict::NoCuda {
        let mut status = TestCaseStatus::skipped();
        status.set_message(Verdict::NO_CUDA_MEANS);
        status
    } else if reasons.is_empty() {
        TestCaseStatus::success()
    } else if matches!(report.verdict, Verdict::Incomplete(_)) {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
        status.set_type("incomplete").set_message("not everything was seen");
        status.set_description(reasons.join("\n"));
        status
    } else {
        // The races fail already; the lints that explain them need not fail again.
        TestCaseStatus::success()
    };
    let mut case = TestCase::new("everything was seen", status);
    case.set_classname("streamsan.coverage");
    let mut said = report.verdict_in_words();
    if let Some(host) = report.host_accesses_in_words() {
        said = format!("{host}\n{said}");
    }
    for reason in reasons {
        said = format!("incomplete: {reason}\n{said}");
    }
    case.set_system_out(said);
    case
}

fn test_case(case: Case, disposition: &Disposition) -> TestCase {
    let Case { class, name, id, fails, in_tests, details } = case;
    let fails = fails && !in_tests;
    let status = match disposition {
        Disposition::Open if fails => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_type(class.as_str()).set_message(name.as_str());
            status.set_description(details.as_str());
            status
        }
        Disposition::Open => TestCaseStatus::success(),
        Disposition::Known => {
            let mut status = TestCaseStatus::skipped();
            status.set_message("known: the baseline holds it");
            status
        }
        Disposition::Suppressed { line, reason } => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(format!("suppressed in line {line}: {}", printable_line(reason)));
            status
        }
        Disposition::Allowed => {
            let mut status = TestCaseStatus::skipped();
            status.set_message("allowed by the tests that made it");
            status
        }
        Disposition::Upstream(upstream) => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(format!("known upstream in {}", upstream.description()));
            status
        }
    };
    let mut result = TestCase::new(format!("{name}, id {id}"), status);
    result.set_classname(format!("streamsan.{class}"));
    if !fails {
        result.set_system_out(details);
    }
    result
}
