//! A second run that measures what the first one left open: `run --settle` and `streamsan settle`.
//!
//! Invariants:
//! - Where the second run gives nothing (it cannot measure, failed, was interrupted, did something
//!   else), the verdict of the first run stands, and the reason is said.
//! - Nothing that rests on known bytes in either run is withdrawn ([`Report::settled`]).
//! - The command that runs again is printed before it starts.
//!
//! Deliberately absent: what is open (`streamsan_report::Open`) and which launches are compared
//! (`launches`).

use super::analysis::is_strict;
use super::conclude::{Judged, deliver, tell};
use super::gate::{known_upstream, read_gate};
use super::launches::{Difference, difference, launches};
use super::measure::{gaps, open_of, rules};
use super::output::warn;
use super::recorded::Recorded;
use super::run::{Again, FinishedRun, Measured, check_output, check_platform, libraries};
use super::source_lines::SourceLines;
use super::trace::{Concluded, Trace};
use crate::error::Error;
use crate::launch::{find, measuring_library};
use crate::options::{ReportFile, RunOptions, Settle, SettleOptions};
use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use streamsan_model::{ExitCode, ProgramOutcome};
use streamsan_report::{Gate, Open, Report};
use streamsan_store::Meta;
use streamsan_wire::Selection;

/// The signal of Ctrl-C.
const SIGINT: u8 = 2;
/// The end of the name of the second run's trace.
const SETTLED: &str = "settled.db";

/// The first of the two runs.
struct First<'a> {
    report: Report<'a>,
    trace: &'a Path,
    stored: Option<Trace>,
    judged: Judged,
}

/// `run --settle`, behind the first run.
pub(super) fn settle_after(
    finished: FinishedRun,
    settle: Settle,
    options: &RunOptions,
    again: &Again<'_>,
    gate: &Gate,
) -> Result<ExitCode, Error> {
    let stored = finished.stored();
    let report = finished.report(options, gate, stored.as_ref());
    let open = open_of(&report, &finished.recording.coverage.kernels);
    let why_not = if finished.interrupted() {
        Some("the run was interrupted, so that nothing is run again".to_owned())
    } else if finished.outcome != ProgramOutcome::Succeeded {
        Some("the program failed, so that it is not run again".to_owned())
    } else {
        needless(&report, &open, settle)
    };
    if let Some(why_not) = why_not {
        drop(report);
        let quiet = options.quiet;
        let code = finished.end(options, gate);
        if !quiet {
            warn(&why_not);
        }
        return Ok(code);
    }
    if !options.quiet {
        tell(options, &report);
    }
    finished.tell_of_recording(options);
    let judged = Judged { outcome: finished.outcome, pid: finished.pid(), calls: finished.calls() };
    let first = First { report, trace: &finished.trace, stored, judged };
    let output = settled_name(&finished.trace);
    second(first, &open, &RunOptions { output, ..options.clone() }, again, gate)
}

/// A form that shows a whole trace has no place for two.
pub(super) fn check_formats(reports: &[ReportFile]) -> Result<(), Error> {
    match reports.iter().find(|report| report.format.shows_the_whole_trace()) {
        Some(report) => Err(Error::RunUsage(format!(
            "{} shows one trace, and a settled run has two; `streamsan export` writes it of either",
            report.format.description()
        ))),
        None => Ok(()),
    }
}

/// `streamsan settle TRACE.db [-- PROGRAM]`.
pub(crate) fn settle(options: &SettleOptions) -> Result<ExitCode, Error> {
    check_platform()?;
    check_formats(&options.report)?;
    let gate = read_gate(&options.gate).map_err(Error::of_run)?;
    SourceLines::below(&options.listed.source_root).map_err(Error::of_run)?;
    let trace = std::path::absolute(&options.trace).unwrap_or_else(|_| options.trace.clone());
    let concluded = Concluded::open(&options.trace, false).map_err(Error::of_run)?;
    let Trace::Stored(reader) = &concluded.trace else {
        return Err(Error::RunUsage(format!(
            "{} is a text trace, of which no program can be run again; name the trace of a run (.db)",
            options.trace.display()
        )));
    };
    let meta = reader.meta().map_err(Error::from).map_err(Error::of_run)?;
    let recorded = Recorded::of(&meta);
    let run = run_options(options, &recorded, &meta, &trace)?;
    let mut report = concluded.report_with(run.threshold.fail_on, known_upstream(&run.gate));
    report.hold_against(&gate);
    let open = open_of(&report, &gaps(&concluded.trace).map_err(Error::of_run)?);
    let calls = reader.coverage().map_err(Error::from)?;
    let calls = calls.entry_points.iter().map(|entry| entry.calls).sum();
    let judged = Judged { outcome: ProgramOutcome::Succeeded, pid: std::process::id(), calls };
    let stored = Trace::open(&options.trace).ok();
    let first = First { report, trace: &trace, stored, judged };
    if !run.quiet {
        tell(&run, &first.report);
    }
    if let Some(why_not) = needless(&first.report, &open, Settle::All) {
        warn(&why_not);
        return Ok(first.stands(&run));
    }
    let replayed = options.program.is_empty().then(|| {
        enter(&recorded);
        recorded.environment()
    });
    for (name, value) in replayed.iter().flat_map(|replayed| &replayed.set) {
        warn(&format!("{name} is set to {value}, as it was when the trace was recorded"));
    }
    for name in replayed.iter().flat_map(|replayed| &replayed.unset) {
        warn(&format!("{name} is not set for the program, as when the trace was recorded"));
    }
    let [name, ..] = run.program.as_slice() else {
        return Err(Error::RunUsage("name the program to run behind --".to_owned()));
    };
    let (file, libraries) = (find(name)?, libraries()?);
    check_output(&run)?;
    let again = Again { libraries: &libraries, file: &file, replayed };
    second(first, &open, &run, &again, &gate)
}

/// Goes where the recorded program ran.
fn enter(recorded: &Recorded) {
    let Some(directory) = &recorded.directory else {
        return warn("the trace does not tell where its program ran; it runs here");
    };
    if let Err(error) = std::env::set_current_dir(directory) {
        warn(&format!(
            "the directory that the program ran in, {}, cannot be entered ({error}); it runs here",
            directory.display()
        ));
    }
}

/// The options of the second run of a trace: those of the first one, as the trace tells them.
fn run_options(
    options: &SettleOptions,
    recorded: &Recorded,
    meta: &Meta,
    trace: &Path,
) -> Result<RunOptions, Error> {
    let program: Vec<OsString> = match options.program.as_slice() {
        [] => meta.command.iter().map(OsString::from).collect(),
        given => given.to_vec(),
    };
    // Arguments that are no text were not kept as they were.
    if options.program.is_empty()
        && meta.command.iter().any(|argument| argument.contains('\u{fffd}'))
    {
        return Err(Error::RunUsage(
            "the recorded command has arguments that are no UTF-8 and were not kept; name the \
             program and its arguments behind --"
                .to_owned(),
        ));
    }
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let output = match &options.output {
        Some(output) => absolute(Path::new(output)).display().to_string(),
        None => settled_name(trace),
    };
    let report = options.report.iter().cloned().map(|mut file| {
        if !file.is_stream() {
            file.path = absolute(&file.path);
        }
        file
    });
    let mut gate = options.gate.clone();
    gate.baseline = gate.baseline.as_deref().map(absolute);
    Ok(RunOptions {
        output,
        sim: recorded.sim.clone(),
        threshold: options.threshold,
        allow_incomplete: options.allow_incomplete,
        require_cuda: false,
        exit_as_program: false,
        strict_host_threads: is_strict(meta),
        host_accesses: recorded.host_accesses,
        torch_allocator: recorded.torch_allocator,
        measure: Vec::new(),
        settle: None,
        stacks: recorded.stacks,
        max_trace: None,
        report: report.collect(),
        gate,
        listed: options.listed.clone(),
        quiet: options.quiet,
        view: false,
        program,
    })
}

/// `X.settled.db` for `X.db`, as `-o` takes it.
fn settled_name(trace: &Path) -> String {
    let path: PathBuf = trace.with_extension(SETTLED);
    path.to_string_lossy().replace('%', "%%")
}

/// Why no second run is made, where none is.
fn needless(report: &Report<'_>, open: &Open, settle: Settle) -> Option<String> {
    if open.is_empty() {
        return Some(
            "nothing is open that measuring can close, so that nothing is run again".to_owned(),
        );
    }
    let racy = report.is_racy_without(open) && settle == Settle::Open;
    racy.then(|| {
        "the run is RACY whatever is measured, so that nothing is run again; --settle=all measures all the same"
            .to_owned()
    })
}

impl First<'_> {
    /// The first verdict stands. It was told before, unless little is to be said.
    fn stands(&self, options: &RunOptions) -> ExitCode {
        if options.quiet {
            tell(options, &self.report);
        }
        deliver(options, &self.report, self.stored.as_ref(), self.judged)
    }
}

/// Runs the program again with the kernels measured that decide what is open, and concludes.
fn second(
    first: First<'_>,
    open: &Open,
    options: &RunOptions,
    again: &Again<'_>,
    gate: &Gate,
) -> Result<ExitCode, Error> {
    let stands = |why: String| {
        warn(&format!("{why}; the verdict of the first run, {}, stands", word(&first.report)));
        Ok(first.stands(options))
    };
    let library =
        match measuring_library(options.sim.as_ref(), Some(again.file), &again.libraries.measure) {
            Ok(library) => library,
            Err(absent) => return stands(absent),
        };
    let selection: Selection = rules(&first.report, open).into_iter().collect();
    warn(&format!(
        "{}; it runs again with measuring: {}",
        open.in_words(),
        shown(&options.program)
    ));
    let measured = Measured::with(selection, library);
    let finished = match again.start(options, Some(measured)) {
        Ok(finished) => finished,
        Err(error) => return stands(format!("the second run did not start ({error})")),
    };
    // The program may be gone before the signal comes here.
    if finished.interrupted() || finished.outcome == ProgramOutcome::Signalled(SIGINT) {
        return stands("the second run was interrupted".to_owned());
    }
    if finished.outcome != first.judged.outcome {
        let code = finished.outcome.exit_code().0;
        return stands(format!("the program failed in the second run (exit code {code})"));
    }
    let compared = launches(first.trace, open)
        .and_then(|before| Ok((before, launches(&finished.trace, open)?)))
        .map(|(before, after)| difference(&before, &after, |kernel| open.decides_finding(kernel)));
    match compared {
        Ok(None) => {}
        Ok(Some(Difference::OtherNumbers(other))) => warn(&format!(
            "the second run made another number of launches at the open places ({other}); it counts, \
             for no finding rests on them"
        )),
        Ok(Some(Difference::Other(other))) => {
            return stands(format!(
                "the second run made other launches at the open places ({other})"
            ));
        }
        Err(error) => return stands(format!("the two runs cannot be compared ({error})")),
    }
    let stored = finished.stored();
    let report = finished.report(options, gate, stored.as_ref());
    let judged = first.judged;
    let Some(both) = Report::settled(first.report, report, open) else {
        return Err(Error::RunUsage("there is no report to judge".to_owned()));
    };
    tell(options, &both);
    finished.tell_of_recording(options);
    Ok(deliver(options, &both, stored.as_ref(), judged))
}

fn word(report: &Report<'_>) -> &'static str {
    report.verdict().description()
}

/// A command as a shell takes it.
fn shown(program: &[OsString]) -> String {
    let mut text = String::new();
    for argument in program {
        let argument = argument.to_string_lossy();
        let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
        let separator = if text.is_empty() { "" } else { " " };
        let _ = match !argument.is_empty() && argument.chars().all(is_plain) {
            true => write!(text, "{separator}{argument}"),
            false => write!(text, "{separator}'{}'", argument.replace('\'', "'\\''")),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_trace_lies_beside_the_first() {
        assert_eq!(settled_name(Path::new("/t/a.db")), "/t/a.settled.db");
        assert_eq!(settled_name(Path::new("/t/100%.db")), "/t/100%%.settled.db");
    }

    #[test]
    fn commands_are_printed_as_a_shell_takes_them() {
        let program = ["./a b", "--x=1", "it's", ""].map(OsString::from);
        assert_eq!(shown(&program), r"'./a b' --x=1 'it'\''s' ''");
    }
}
