//! The tables of expectations, and findings in the words of the tables.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

/// How many pairs of operations were reported of each sort. Lints are left out: the tables speak
/// of conflicts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Findings(BTreeMap<String, u64>);

impl Findings {
    /// From a cell of a table: `race missing-wait RAW certain 1; ...`, or `-`.
    fn from_cell(cell: &str) -> Self {
        let mut findings = BTreeMap::new();
        for part in cell.split("; ").filter(|part| *part != "-") {
            let (sort, count) = part.rsplit_once(' ').expect("a finding ends in a count");
            let count = count.parse::<u64>().expect("a count is a number");
            let twice = findings.insert(sort.to_owned(), count);
            assert!(twice.is_none(), "two entries of one sort: {cell}");
        }
        Self(findings)
    }

    /// From a report in JSON.
    pub(crate) fn from_report(report: &Value) -> Self {
        let mut findings = BTreeMap::new();
        let listed = report["findings"].as_array().expect("a report has a list of findings");
        for finding in listed.iter().filter(|finding| finding["severity"] != "lint") {
            let word = |key: &str| {
                finding[key].as_str().unwrap_or_else(|| panic!("finding without {key}: {finding}"))
            };
            let sort = ["severity", "class", "kind", "confidence"].map(word).join(" ");
            let count = finding["count"].as_u64().expect("a finding has a count");
            *findings.entry(sort).or_default() += count;
        }
        Self(findings)
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("-");
        }
        let parts: Vec<String> = self.0.iter().map(|(sort, n)| format!("{sort} {n}")).collect();
        f.write_str(&parts.join("; "))
    }
}

/// A row of `programs/expected.tsv`.
#[derive(Clone, Debug)]
pub(crate) struct ProgramRow {
    pub(crate) program: String,
    pub(crate) variant: String,
    pub(crate) fail_on: String,
    pub(crate) verdict: String,
    pub(crate) findings: Findings,
    /// Verdict and findings where the driver withholds what kernels touched.
    pub(crate) withheld: (String, Findings),
}

/// A row of `programs/c/expected.tsv`.
#[derive(Clone, Debug)]
pub(crate) struct HazardRow {
    pub(crate) program: String,
    pub(crate) verdict: String,
    pub(crate) exit_code: i32,
    pub(crate) stdout: String,
    pub(crate) findings: Findings,
}

pub(crate) fn program_rows() -> Vec<ProgramRow> {
    rows(include_str!("../programs/expected.tsv"))
        .map(|[program, variant, decided_by, fail_on, verdict, findings, withheld]| {
            assert!(matches!(decided_by, "copies" | "kernels"), "decided by {decided_by}?");
            ProgramRow {
                program: program.to_owned(),
                variant: variant.to_owned(),
                fail_on: fail_on.to_owned(),
                verdict: verdict.to_owned(),
                findings: Findings::from_cell(findings),
                withheld: match withheld.split_once(' ') {
                    Some((verdict, findings)) => {
                        (verdict.to_owned(), Findings::from_cell(findings))
                    }
                    None => {
                        assert_eq!(withheld, "=", "a verdict and findings, or =");
                        (verdict.to_owned(), Findings::from_cell(findings))
                    }
                },
            }
        })
        .collect()
}

pub(crate) fn hazard_rows() -> Vec<HazardRow> {
    rows(include_str!("../programs/c/expected.tsv"))
        .map(|[program, verdict, exit_code, stdout, findings]| HazardRow {
            program: program.to_owned(),
            verdict: verdict.to_owned(),
            exit_code: exit_code.parse().expect("an exit code is a number"),
            stdout: format!("{stdout}\n"),
            findings: Findings::from_cell(findings),
        })
        .collect()
}

/// A row of `programs/host/expected.tsv`.
#[derive(Clone, Debug)]
pub(crate) struct HostRow {
    pub(crate) program: String,
    pub(crate) variant: String,
    pub(crate) options: Vec<String>,
    pub(crate) verdict: String,
    pub(crate) findings: Findings,
    /// Words of the printed report.
    pub(crate) names: Vec<String>,
}

pub(crate) fn host_rows() -> Vec<HostRow> {
    let list = |cell: &str, separator: &str| {
        cell.split(separator).filter(|part| *part != "-").map(str::to_owned).collect()
    };
    rows(include_str!("../programs/host/expected.tsv"))
        .map(|[program, variant, options, verdict, findings, names]| HostRow {
            program: program.to_owned(),
            variant: variant.to_owned(),
            options: list(options, " "),
            verdict: verdict.to_owned(),
            findings: Findings::from_cell(findings),
            names: list(names, ","),
        })
        .collect()
}

/// The rows below the heading of a tab-separated table; `#` starts a comment line.
fn rows<const COLUMNS: usize>(table: &str) -> impl Iterator<Item = [&str; COLUMNS]> {
    table.lines().filter(|line| !line.starts_with('#')).skip(1).map(|line| {
        let cells: Vec<&str> = line.split('\t').collect();
        cells.try_into().unwrap_or_else(|_| panic!("not {COLUMNS} columns: {line}"))
    })
}
