//! The end of a run: its report on the terminal and in files, and the exit code.

use super::check::open;
use super::demo::is_demo;
use super::gate::{fails_by_unused, update_baseline};
use super::output::{Stderr, color, columns, say, warn};
use super::source_lines::SourceLines;
use super::trace::Trace;
use super::write_report::{Whole, write_findings, write_report};
use crate::error::Error;
use crate::options::{ReportFile, RunOptions, expand};
use std::ffi::OsString;
use std::io;
use std::path::Path;
use streamsan_model::{ExitCode, ProgramOutcome, run_exit_code};
use streamsan_report::{Report, TextOptions};

/// Prints a report to the user.
pub(super) fn tell(options: &RunOptions, report: &Report<'_>) {
    if options.quiet {
        let text = report.render_text(&TextOptions::default());
        let is_verdict =
            |line: &&str| line.starts_with("verdict:") || line.starts_with("incomplete:");
        text.lines().filter(is_verdict).for_each(|line| say(&format!("{line}\n")));
    } else {
        let text = options.listed.text(color(&io::stderr()), columns(&io::stderr()));
        let mut sources = sources(options);
        say(&report.render_text_with(&text, &mut |path, line| sources.line(path, line)));
    }
}

/// The lines of sources that a report may show. A directory that has gone since the run began has
/// none.
fn sources(options: &RunOptions) -> SourceLines {
    let sources = SourceLines::below(&options.listed.source_root).unwrap_or_default();
    sources.with_demo(is_demo(options.program.iter().map(OsString::as_os_str)))
}

/// The facts that decide the exit code beside the verdict.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judged {
    pub(super) outcome: ProgramOutcome,
    /// For the names of files.
    pub(super) pid: u32,
    pub(super) calls: u64,
}

/// Writes the files that were asked for, and decides the exit code.
pub(super) fn deliver(
    options: &RunOptions,
    report: &Report<'_>,
    stored: Option<&Trace>,
    Judged { outcome, pid, calls }: Judged,
) -> ExitCode {
    let mut failure = None;
    let mut sources = sources(options);
    for file in &options.report {
        if let Err(error) = write(file, report, stored, (pid, &mut sources)) {
            let name = file.path.display();
            warn(&format!("cannot write the report {name}: {error}"));
            failure = Some(ExitCode::RUN_FAILED);
        }
    }
    if let Err(error) = update_baseline(&options.gate, report) {
        warn(&format!("cannot write the baseline: {error}"));
        failure = Some(ExitCode::RUN_FAILED);
    }
    let missing_cuda = options.require_cuda && calls == 0;
    if missing_cuda {
        warn("the program made no CUDA call, and --require-cuda asks for one");
    }
    let code = run_exit_code(report.verdict(), outcome, options.allow_incomplete, missing_cuda);
    // A program that failed may have ended before it came to what is accepted.
    let unused = outcome == ProgramOutcome::Succeeded && fails_by_unused(&options.gate, report);
    let code = if unused { ExitCode::RACY } else { code };
    let code = if options.exit_as_program { outcome.exit_code() } else { code };
    // A build that relies on the report must not pass without it.
    failure.filter(|_| code == ExitCode::SUCCESS).unwrap_or(code)
}

fn write(
    file: &ReportFile,
    report: &Report<'_>,
    stored: Option<&Trace>,
    (pid, sources): (u32, &mut SourceLines),
) -> Result<(), Error> {
    let open_file = || {
        let name = expand(&file.path.to_string_lossy(), pid).map_err(io::Error::other)?;
        open(Path::new(&name), file.format.is_appended())
    };
    let mut out: Box<dyn io::Write> = match file.is_stream() {
        true => Box::new(Stderr),
        false => Box::new(open_file().map_err(Error::Output)?),
    };
    match stored {
        // Whether host threads were watched stands in the trace.
        Some(trace) => {
            let whole = Whole { trace, file: Path::new(""), strict: false };
            write_report(file.format, report, whole, sources, &mut out)
        }
        None if file.format.shows_the_whole_trace() => {
            Err(Error::Output(io::Error::other("there is no trace that can be read")))
        }
        None => write_findings(file.format, report, sources, &mut out),
    }
}
