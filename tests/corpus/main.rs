//! The corpus of text traces: one trial a file of `traces/pass` and `traces/fail`; what is made of
//! them, and the traces of real runs, in modules.
//!
//! A trial holds the findings of the analysis against the expectations of the file, and for a
//! failing trace the printed report against the golden one beside it. `BLESS=1` writes the golden
//! reports anew; a missing one is a failure.

mod documents;
mod mutation;
mod pages;
mod proposals;
mod recorded;

use libtest_mimic::{Arguments, Failed, Trial};
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::Path;
use streamsan_analysis::{Analysis, HostModel, Options, analyse_with};
use streamsan_model::{Fingerprint, OpSeq, Operation, Severity, Threshold, TraceItem};
use streamsan_report::{Folded, Input, KnownUpstream, Report, TextOptions};
use streamsan_testing::corpus::{files, traces};
use streamsan_testing::golden;
use streamsan_text::{TextTrace, compare, parse, write, wrong_directory};

const SIDES: [&str; 2] = ["pass", "fail"];

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for side in SIDES {
        for file in files(side) {
            let name = format!("{side}/{}", shown(&file, side));
            trials.push(Trial::test(name, move || trial(&file, side)));
        }
    }
    trials.push(Trial::test("names_are_unique", names_are_unique));
    documents::add(&mut trials);
    mutation::add(&mut trials);
    pages::add(&mut trials);
    proposals::add(&mut trials);
    recorded::add(&mut trials);
    libtest_mimic::run(&arguments, trials).exit();
}

/// `CHAPTER/NAME.trace`.
fn shown(file: &Path, side: &str) -> String {
    let parts: Vec<_> = file.iter().map(|part| part.to_string_lossy()).collect();
    let at = parts.iter().rposition(|part| part == side).expect("it lies below its side");
    parts[at + 1..].join("/")
}

/// Documents and tables name a trace without its chapter.
fn names_are_unique() -> Result<(), Failed> {
    for side in SIDES {
        let mut names = BTreeSet::new();
        for file in traces(side) {
            if !names.insert(file.file_name().map(ToOwned::to_owned)) {
                return Err(format!("{}: another chapter has this name", file.display()).into());
            }
        }
    }
    Ok(())
}

/// A trial that fails by panicking, as an ordinary test function does.
fn check(name: &str, test: fn()) -> Trial {
    Trial::test(name, move || {
        test();
        Ok(())
    })
}

fn trial(file: &Path, side: &str) -> Result<(), Failed> {
    let extension = file.extension().unwrap_or_default().to_string_lossy();
    match &*extension {
        "trace" => check_trace(file),
        "report" => check_report_has_a_trace(file, side),
        _ => Err("neither a trace nor a golden report".into()),
    }
}

/// The host model that the trace asks for.
fn host_model(trace: &TextTrace) -> HostModel {
    match trace.strict_host_threads() {
        true => HostModel::Strict,
        false => HostModel::default(),
    }
}

fn analyse(trace: &TextTrace, host_model: HostModel) -> Analysis {
    analyse_with(Options { host_model, ..Options::default() }, &trace.items)
}

fn check_report_has_a_trace(file: &Path, side: &str) -> Result<(), Failed> {
    if side == "fail" && file.with_extension("trace").exists() {
        return Ok(());
    }
    Err("a golden report without a failing trace of its name; remove it".into())
}

fn check_trace(file: &Path) -> Result<(), Failed> {
    let text = fs::read_to_string(file)?;
    let trace = parse(&text)?;
    if let Some(advice) = wrong_directory(file, &trace) {
        return Err(advice.into());
    }
    let analysis = analyse(&trace, host_model(&trace));
    let mismatches = compare(&trace, &analysis.findings, &analysis.lints);
    if !mismatches.is_empty() {
        let lines: Vec<String> = mismatches.iter().map(ToString::to_string).collect();
        return Err(format!("{}\n\n{}", lines.join("\n"), numbered(&text)).into());
    }
    check_written_form(&trace, &analysis)?;
    if trace.expectations.is_empty() { Ok(()) } else { check_golden(file, &trace, &analysis) }
}

/// The trace written from its items and read again has other line numbers and the same findings.
fn check_written_form(trace: &TextTrace, analysis: &Analysis) -> Result<(), Failed> {
    // Without the line of the option, which would move the lines that lines refer to.
    let written = write(&trace.items);
    let again = analyse(&parse(&written)?, host_model(trace));
    // Nodes of graphs may stand elsewhere than before, so only the order is another.
    let essence = |analysis: &Analysis| -> Vec<(Fingerprint, Severity)> {
        let findings = analysis.findings.iter().map(|f| (f.fingerprint, f.severity));
        let lints = analysis.lints.iter().map(|l| (l.fingerprint, Severity::Lint));
        let mut all: Vec<_> = findings.chain(lints).collect();
        all.sort();
        all
    };
    if essence(&again) == essence(analysis) {
        return Ok(());
    }
    Err(format!("the written form has other findings:\n{}", numbered(&written)).into())
}

fn check_golden(file: &Path, trace: &TextTrace, analysis: &Analysis) -> Result<(), Failed> {
    let golden = file.with_extension("report");
    let report = normalise(&render(file, trace, analysis));
    golden::compare(&golden, &report).map_err(Failed::from)
}

fn render(file: &Path, trace: &TextTrace, analysis: &Analysis) -> String {
    let name = format!("traces/fail/{}", shown(file, "fail"));
    let report = report_of(name, trace, analysis);
    let text = report.render_text(&TextOptions::default());
    // What a report over several traces keeps of one says the same.
    let (json, detached) = (report.render_json(), report.detached());
    assert_eq!(detached.render_text(&TextOptions::default()), text, "{}", file.display());
    assert_eq!(detached.render_json(), json, "{}", file.display());
    text
}

/// The report of a trace of this name.
fn report_of<'a>(name: String, trace: &TextTrace, analysis: &'a Analysis) -> Report<'a> {
    let operations: HashMap<OpSeq, &Operation> = trace
        .items
        .iter()
        .filter_map(|item| match item {
            TraceItem::Operation(operation) => Some((operation.g, operation)),
            _ => None,
        })
        .collect();
    let mut findings: Folded = analysis.findings.iter().cloned().collect();
    analysis.lints.iter().for_each(|lint| findings.add_lint(lint.clone()));
    let input = Input {
        findings,
        entities: &analysis.entities,
        threshold: Threshold::default(),
        reasons: Vec::new(),
        coverage: None,
        upstream: Some(KnownUpstream::shipped()),
        trace: Some(name),
    };
    Report::new(input, |g| operations.get(&g).map(|&operation| operation.clone()))
}

/// The one normaliser: addresses, which follow from the order of a trace's buffers and mean nothing,
/// become `$ADDRESS`. Offsets and sizes are short and stay.
fn normalise(text: &str) -> String {
    const SHORTEST_ADDRESS: usize = 9;
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("0x") {
        let digits = &rest[at + 2..];
        let len = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
        out.push_str(&rest[..at]);
        if len >= SHORTEST_ADDRESS {
            out.push_str("$ADDRESS");
        } else {
            out.push_str(&rest[at..at + 2 + len]);
        }
        rest = &digits[len..];
    }
    out.push_str(rest);
    out
}

fn numbered(text: &str) -> String {
    text.lines().enumerate().map(|(index, line)| format!("{:4}  {line}\n", index + 1)).collect()
}
