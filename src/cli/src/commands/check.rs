//! `streamsan check`: the verdict over a trace again.

use super::analyse_with;
use super::gate::{fails_by_unused, read_gate, update_baseline};
use super::output::{Stdout, color, columns, print, print_bytes, warn};
use super::several::{judge, judge_all};
use super::source_lines::SourceLines;
pub(super) use super::trace::summary;
use super::trace::{Concluded, Trace, parse};
use super::traces::traces;
use super::write_report::{write_findings, write_report};
use crate::error::Error;
use crate::options::{CheckOptions, ReportFile};
use std::fs;
use std::io;
use std::path::Path;
use streamsan_analysis::Analysis;
use streamsan_model::{ExitCode, check_exit_code};
use streamsan_names::{printable_line, printable_path};
use streamsan_report::Report;

/// `streamsan check`.
///
/// # Errors
///
/// A trace, a suppression file or a baseline that cannot be read or has a mistake in it, options
/// that exclude each other, and a report that cannot be written.
pub(crate) fn check(options: &CheckOptions) -> Result<ExitCode, Error> {
    if options.expect {
        return expect(&options.files);
    }
    if options.json && options.listed.is_of_text() {
        let message = "--json has all findings; --format and --statistics are of the text form";
        return Err(Error::Usage(message.to_owned()));
    }
    let files = traces(&options.files)?;
    let whole = |report: &&ReportFile| report.format.shows_the_whole_trace();
    if let (Some(report), true) = (options.report.iter().find(whole), files.len() > 1) {
        let format = report.format.description();
        return Err(Error::Usage(format!("{format} shows one trace, and several are named")));
    }
    let gate = read_gate(&options.gate)?;
    let sources = SourceLines::below(&options.listed.source_root)?;
    if let [file] = files.as_slice() {
        let concluded = Concluded::open(file, options.strict_host_threads)?;
        let mut sources = sources.with_demo(concluded.trace.is_demo());
        let report = judge(&concluded, options, &gate)?;
        tell(options, &report, Some(&concluded), &mut sources)
    } else {
        match judge_all(&files, options, &gate) {
            Some(report) => tell(options, &report, None, &mut { sources }),
            None => Ok(ExitCode::UNREADABLE),
        }
    }
}

/// Prints and writes a report, and decides the exit code. `concluded` is the trace of a report over
/// one.
fn tell(
    options: &CheckOptions,
    report: &Report<'_>,
    concluded: Option<&Concluded>,
    sources: &mut SourceLines,
) -> Result<ExitCode, Error> {
    if options.json {
        print_bytes(report.render_json().as_bytes());
    } else {
        let text = options.listed.text(color(&io::stdout()), columns(&io::stdout()));
        let text = report.render_text_with(&text, &mut |path, line| sources.line(path, line));
        print(&text);
    }
    for file in &options.report {
        write_file(file, report, concluded, sources)?;
    }
    if report.unread() > 0 && options.gate.update_baseline {
        // It would lose what is known of the traces that are missing today.
        warn("the baseline stays as it was, since not every trace could be read");
    } else {
        update_baseline(&options.gate, report).map_err(Error::Output)?;
    }
    Ok(match check_exit_code(report.verdict()) {
        _ if fails_by_unused(&options.gate, report) => ExitCode::FINDINGS,
        code => code,
    })
}

/// Writes a report where the user wants it.
///
/// # Errors
///
/// A file that cannot be written, and a trace that cannot be read.
pub(super) fn write_file(
    file: &ReportFile,
    report: &Report<'_>,
    concluded: Option<&Concluded>,
    sources: &mut SourceLines,
) -> Result<(), Error> {
    let mut write = |out: &mut dyn io::Write| match concluded {
        Some(concluded) => write_report(file.format, report, concluded.whole(), sources, out),
        None => write_findings(file.format, report, sources, out),
    };
    if file.is_stream() {
        return write(&mut Stdout);
    }
    let failed = || Error::output(&file.path);
    let mut out = open(&file.path, file.format.is_appended()).map_err(failed())?;
    write(&mut out).map_err(|error| match error {
        Error::Output(error) => failed()(error),
        other => other,
    })
}

/// Opens the file of a report.
///
/// # Errors
///
/// As [`fs::OpenOptions::open`].
pub(super) fn open(path: &Path, append: bool) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).append(append).truncate(!append).open(path)
}

fn expect(files: &[std::path::PathBuf]) -> Result<ExitCode, Error> {
    let mut agree = true;
    for file in files {
        let bytes = fs::read(file).map_err(|source| Error::Read { path: file.clone(), source })?;
        let trace = Trace::of_text(parse(file, bytes)?);
        let Trace::Text { trace: text, .. } = &trace else { continue };
        let mut analysis = Analysis::default();
        analyse_with(trace.options(false)?, &text.items, None, &mut analysis);
        if let Some(what) = streamsan_text::wrong_directory(file, text) {
            agree = false;
            print(&format!("{}: {}\n", printable_path(file), printable_line(what)));
        }
        for mismatch in streamsan_text::compare(text, &analysis.findings, &analysis.lints) {
            agree = false;
            let mismatch = mismatch.to_string();
            print(&format!("{}: {}\n", printable_path(file), printable_line(&mismatch)));
        }
    }
    if agree {
        let traces = if files.len() == 1 { "trace agrees" } else { "traces agree" };
        warn(&format!("{} {traces} with what is expected", files.len()));
    }
    Ok(if agree { ExitCode::SUCCESS } else { ExitCode::FINDINGS })
}
