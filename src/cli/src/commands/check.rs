//! `streamsan check`: the verdict over a trace again.

use super::analysis::{host_model, is_strict};
use super::output::{MOST_FINDINGS, color, print, warn};
use super::{Folding, analyse_with};
use crate::error::Error;
use crate::options::CheckOptions;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::Path;
use streamsan_analysis::{Analysis, Options};
use streamsan_model::{
    ExitCode, IncompleteReason, OpSeq, Operation, TraceItem, check_exit_code, doubt_after_losses,
};
use streamsan_report::{Coverage, Input, Report, TextOptions};
use streamsan_store::{Reader, Treatment};

/// Every SQLite file begins with it.
const DATABASE_MAGIC: &[u8] = b"SQLite format 3\0";

pub(crate) fn check(options: &CheckOptions) -> Result<ExitCode, Error> {
    if options.expect {
        return expect(&options.files);
    }
    let [file] = options.files.as_slice() else {
        return Err(Error::Usage(
            "check takes one trace at a time; with --expect it takes several text traces"
                .to_owned(),
        ));
    };
    match text(file)? {
        Some(bytes) => check_text(options, file, bytes),
        None => check_stored(options, file),
    }
}

/// What a file is is told by its content; its name decides only where the content is too short.
/// Answers the content of a text trace. It is read once, so that a pipe will do.
fn text(file: &Path) -> Result<Option<Vec<u8>>, Error> {
    let read = |source| Error::Read { path: file.to_owned(), source };
    let mut bytes = Vec::new();
    let mut opened = fs::File::open(file).map_err(read)?;
    let head = DATABASE_MAGIC.len() as u64;
    opened.by_ref().take(head).read_to_end(&mut bytes).map_err(read)?;
    let named_stored = file.extension().is_some_and(|extension| extension == "db");
    if bytes == DATABASE_MAGIC || named_stored {
        return Ok(None);
    }
    opened.read_to_end(&mut bytes).map_err(read)?;
    Ok(Some(bytes))
}

fn parse(file: &Path, bytes: Vec<u8>) -> Result<streamsan_text::TextTrace, Error> {
    let read = |source| Error::Read { path: file.to_owned(), source };
    if bytes.is_empty() {
        // A trace that was never written must not pass for a clean one.
        return Err(read(io::Error::other("it is empty; record or copy it again")));
    }
    let text = String::from_utf8(bytes).map_err(|_| {
        read(io::Error::other("it is neither a stored trace nor a text trace in UTF-8"))
    })?;
    streamsan_text::parse(&text).map_err(|source| Error::Syntax { path: file.to_owned(), source })
}

/// How a text trace wants to be analysed.
fn text_options(trace: &streamsan_text::TextTrace, strict: bool) -> Options {
    let host_model = host_model(strict || trace.strict_host_threads());
    Options { host_model, ..Options::default() }
}

fn check_text(options: &CheckOptions, file: &Path, bytes: Vec<u8>) -> Result<ExitCode, Error> {
    let trace = parse(file, bytes)?;
    let mut findings = Folding::default();
    let (_, entities) = analyse_with(
        text_options(&trace, options.strict_host_threads),
        &trace.items,
        None,
        &mut findings,
    );
    let operations: BTreeMap<OpSeq, &Operation> = trace
        .items
        .iter()
        .filter_map(|item| match item {
            TraceItem::Operation(operation) => Some((operation.g, operation)),
            _ => None,
        })
        .collect();
    let input = Input {
        findings: findings.0,
        entities: &entities,
        threshold: options.threshold.fail_on,
        reasons: Vec::new(),
        coverage: None,
        trace: Some(file.display().to_string()),
    };
    let report = Report::new(input, |g| operations.get(&g).map(|&o| o.clone()));
    Ok(print_report(options, &report))
}

fn check_stored(options: &CheckOptions, file: &Path) -> Result<ExitCode, Error> {
    let reader = Reader::open(file)?;
    let mut reasons = reader.incomplete_reasons()?;
    let coverage = reader.coverage()?;
    let mut failure = None;
    let items = reader.items().map_while(|item| item.map_err(|e| failure = Some(e)).ok());
    let mut findings = Folding::default();
    let strict = options.strict_host_threads || is_strict(&reader.meta()?);
    let engine = Options { host_model: host_model(strict), ..Options::default() };
    let operations = Some(reader.counts()?.operations);
    let (_, entities) = analyse_with(engine, items, operations, &mut findings);
    if let Some(error) = failure {
        return Err(error.into());
    }
    reasons.sort();
    doubt_after_losses(findings.0.iter_mut(), &reasons);
    let mut summary = summary(&coverage);
    if coverage.entry_points.is_empty() {
        // Calls are counted at the end of a recording, which this one has not reached.
        summary.calls = reader.counts()?.operations;
    }
    let input = Input {
        findings: findings.0,
        entities: &entities,
        threshold: options.threshold.fail_on,
        reasons,
        coverage: Some(summary),
        trace: Some(file.display().to_string()),
    };
    let report = Report::new(input, |g| reader.operation(g).ok().flatten());
    Ok(print_report(options, &report))
}

/// The part of the coverage that a report tells.
pub(super) fn summary(coverage: &streamsan_store::Coverage) -> Coverage {
    let not_understood = coverage.reasons.iter().filter_map(|reason| match reason {
        IncompleteReason::NotUnderstood { api, calls } => Some((api.clone(), *calls)),
        _ => None,
    });
    let counted = coverage.entry_points.iter();
    let counted = counted.filter(|e| e.treatment == Treatment::NotUnderstood);
    let all: BTreeMap<String, u64> =
        not_understood.chain(counted.map(|e| (e.name.clone(), e.calls))).collect();
    Coverage {
        calls: coverage.entry_points.iter().map(|e| e.calls).sum(),
        dropped: coverage.dropped,
        not_understood: all.into_iter().collect(),
    }
}

fn print_report(options: &CheckOptions, report: &Report<'_>) -> ExitCode {
    if options.json {
        print(&report.render_json());
    } else {
        let color = color(&io::stdout());
        print(&report.render_text(&TextOptions { color, max_findings: Some(MOST_FINDINGS) }));
    }
    check_exit_code(report.verdict())
}

fn expect(files: &[std::path::PathBuf]) -> Result<ExitCode, Error> {
    let mut agree = true;
    for file in files {
        let bytes = fs::read(file).map_err(|source| Error::Read { path: file.clone(), source })?;
        let trace = parse(file, bytes)?;
        let mut analysis = Analysis::default();
        analyse_with(text_options(&trace, false), &trace.items, None, &mut analysis);
        if let Some(what) = streamsan_text::wrong_directory(file, &trace) {
            agree = false;
            print(&format!("{}: {what}\n", file.display()));
        }
        for mismatch in streamsan_text::compare(&trace, &analysis.findings, &analysis.lints) {
            agree = false;
            print(&format!("{}: {mismatch}\n", file.display()));
        }
    }
    if agree {
        let traces = if files.len() == 1 { "trace agrees" } else { "traces agree" };
        warn(&format!("{} {traces} with what is expected", files.len()));
    }
    Ok(if agree { ExitCode::SUCCESS } else { ExitCode::FINDINGS })
}
