//! Findings counted: by class, by allocation and by pair of call sites. Where hundreds of findings
//! have a few causes, the tables say which.

use crate::names::{number, plural};
use crate::{Disposition, Group, Report};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;
use streamsan_model::{Finding, FindingAccess, Severity};

/// A property and how many findings and occurrences have it.
pub(crate) type Row = (String, (u64, u64));

/// Findings and their occurrences by a property.
#[derive(Default)]
struct Counts(BTreeMap<String, (u64, u64)>);

impl Counts {
    fn add(&mut self, row: String, occurrences: u64) {
        let (findings, all) = self.0.entry(row).or_default();
        *findings += 1;
        *all += occurrences;
    }

    /// The rows with most findings first.
    fn rows(self) -> Vec<Row> {
        let mut rows: Vec<Row> = self.0.into_iter().collect();
        rows.sort_by_key(|(_, counts)| Reverse(*counts));
        rows
    }
}

/// The findings that count, each table by another property; no table where it would have no row.
pub(crate) fn tables(report: &Report<'_>) -> Vec<(&'static str, Vec<Row>)> {
    let is_open = |disposition: &Disposition| *disposition == Disposition::Open;
    let (mut classes, mut memory, mut pairs) =
        (Counts::default(), Counts::default(), Counts::default());
    for group in report.groups.iter().filter(|group| is_open(&group.disposition)) {
        let own = report.part_of(group);
        classes.add(class(group), group.count);
        if group.finding.severity != Severity::Lint {
            memory.add(allocation(own, &group.finding), group.count);
            pairs.add(pair(own, &group.finding), group.count);
        }
    }
    for group in report.lints.iter().filter(|group| is_open(&group.disposition)) {
        let inside = if group.library.is_some() { ", inside a library" } else { "" };
        classes.add(format!("{}, lint{inside}", group.lint.class.description()), group.count);
    }
    let tables =
        [("by class", classes), ("by allocation", memory), ("by pair of call sites", pairs)];
    tables
        .into_iter()
        .map(|(title, counts)| (title, counts.rows()))
        .filter(|(_, rows)| !rows.is_empty())
        .collect()
}

/// The tables, at most `limit` rows of each.
pub(super) fn render(report: &Report<'_>, limit: usize, text: &mut String) {
    for (title, rows) in tables(report) {
        let _ = writeln!(text, "{title}\n  findings  seen");
        for (row, (findings, seen)) in rows.iter().take(limit) {
            let _ = writeln!(text, "  {:>8}  {:>4}  {row}", number(*findings), number(*seen));
        }
        if rows.len() > limit {
            let more = plural((rows.len() - limit) as u64, "more row", "more rows");
            let _ = writeln!(text, "  ... {more}; --max-findings 0 prints all");
        }
        text.push('\n');
    }
}

fn class(group: &Group) -> String {
    let finding = &group.finding;
    let class = finding.class.description();
    match finding.severity {
        Severity::Race => format!("{class}, {}", finding.confidence.description()),
        severity => format!("{class}, {}", severity.description()),
    }
}

/// `` `kv_cache`, cudaMalloc at pool.cc:12 in Pool ``.
fn allocation(report: &Report<'_>, finding: &Finding) -> String {
    let mut row = report.memory(finding.allocation);
    let allocation = report.allocation(finding.allocation);
    if let Some(allocation) = allocation.filter(|allocation| !allocation.api.is_empty()) {
        let _ = write!(row, ", {}", report.called(&allocation.api, allocation.stack));
    }
    let place = report.place_in_words(report.stack_of_allocation(finding.allocation));
    place.map_or(row.clone(), |place| format!("{row} at {place}"))
}

/// The two calls in the order of their issue.
fn pair(report: &Report<'_>, finding: &Finding) -> String {
    let side = |access: &FindingAccess| {
        let what = report.what(access);
        let place = report.place_in_words(access.stack);
        place.map_or(what.clone().into_owned(), |place| format!("{what} at {place}"))
    };
    format!("{} / {}", side(&finding.first), side(&finding.second))
}
