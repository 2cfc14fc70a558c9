//! The tests that a program marked, and those that made a finding.

use crate::{InTest, Report};
use serde::Serialize;

/// A test that the program marked.
#[derive(Serialize)]
pub(super) struct TestJson<'a> {
    name: &'a str,
    fails: bool,
}

/// Occurrences in a test; null for what no test issued.
#[derive(Serialize)]
pub(super) struct InTestJson<'a> {
    test: Option<&'a str>,
    count: u64,
    allowed: bool,
}

pub(super) fn tests<'a>(report: &'a Report<'_>) -> Vec<TestJson<'a>> {
    let tests = report.failing_tests().into_iter();
    tests.map(|(name, failing)| TestJson { name, fails: !failing.is_empty() }).collect()
}

pub(super) fn in_tests(tests: &[InTest]) -> Vec<InTestJson<'_>> {
    let json = tests.iter().map(|place| InTestJson {
        test: place.test.as_deref(),
        count: place.count,
        allowed: place.allowed,
    });
    json.collect()
}
