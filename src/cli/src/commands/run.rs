//! `streamsan run`: launches, records, concludes.

use super::analysis::{host_model, host_model_meta};
use super::check::summary;
use super::clocks;
use super::conclude::{Judged, deliver, tell};
use super::gate::{known_upstream, read_gate};
use super::measure::selection;
use super::output::warn;
use super::progress::StandardError;
use super::recorded::remembered;
use super::settle::{check_formats, settle_after};
use super::source_lines::SourceLines;
use super::trace::{Trace, directory};
use crate::error::Error;
use crate::launch::{
    Child, Environment, Libraries, RecordedEnvironment, Signals, Watched, become_program,
    choose_directory, find, inspect, is_listing, measuring_library, try_room, try_threads, unpack,
};
use crate::live::{LiveViewer, Printed};
use crate::options::{RunOptions, expand};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use streamsan_collect::{Collector, CollectorOptions, Recording};
use streamsan_directories::Directory;
use streamsan_kernels::disassembler::Disassembler;
use streamsan_kernels::reader::Reader as KernelReader;
use streamsan_kernels::toolkit::Places;
use streamsan_model::{ExitCode, ProgramOutcome, Verdict};
use streamsan_report::{Gate, Input, Report};
use streamsan_store::{Meta, Reader};
use streamsan_wire::{MEASURE_FILE, RingOptions, RunDirectory, Selection};

/// Between two looks at quiet rings.
const SHORTEST_NAP: Duration = Duration::from_micros(200);
const LONGEST_NAP: Duration = Duration::from_millis(5);
/// Between two looks at rings in which little was, and how much of a ring that is. Each look takes
/// the cache lines that the program is writing to away from it, and costs system calls.
const GATHERING_NAP: Duration = Duration::from_millis(1);
const LITTLE: f64 = 1.0 / 16.0;
/// For one run of the disassembler.
const LONGEST_DISASSEMBLY: Duration = Duration::from_secs(120);
/// Processes that are named where there may be many.
const MOST_NAMED: usize = 3;
/// A program that has waited for the recording for so long is told of.
const WORTH_TELLING: Duration = Duration::from_secs(1);
/// After this time of waiting for descendants the user is told why nothing happens.
const SILENT_WAIT: Duration = Duration::from_secs(2);

/// `streamsan run`.
///
/// # Errors
///
/// The obstacle that keeps the program from being run: a machine that is not supported, a program
/// that cannot be found or executed, a trace, directory, thread or file that cannot be made, and a
/// mistake in a suppression file or baseline.
pub(crate) fn run(options: &RunOptions) -> Result<ExitCode, Error> {
    check_platform()?;
    let [name, ..] = options.program.as_slice() else {
        return Err(Error::RunUsage("name the program to run".to_owned()));
    };
    let file = find(name)?;
    check_view(options)?;
    if options.settle.is_some() {
        check_formats(&options.report)?;
    }
    if is_listing(&options.program) {
        return Err(list_tests(&file, options));
    }
    if let Some(obstacle) = inspect(&file)
        && !options.quiet
    {
        warn(&format!(
            "{} cannot be recorded: {}. It runs all the same, and the verdict will be INCOMPLETE",
            file.display(),
            obstacle.description()
        ));
    }
    let libraries = libraries()?;
    // Mistakes in the name are told before anything runs; the real process id comes later.
    check_output(options)?;
    let gate = read_gate(&options.gate).map_err(Error::of_run)?;
    SourceLines::below(&options.listed.source_root).map_err(Error::of_run)?;
    try_threads(options.view)?;
    let selection = selection(options).map_err(Error::of_run)?;
    let measured = selection.map(|selection| Measured::of(selection, options, &file, &libraries));
    let again = Again { libraries: &libraries, file: &file, replayed: None };
    let finished = again.start(options, measured)?;
    match options.settle {
        Some(settle) => settle_after(finished, settle, options, &again, &gate),
        None => Ok(finished.end(options, &gate)),
    }
}

/// The kernels that a run measures.
pub(super) struct Measured {
    selection: Selection,
    /// The program's environment beside the selection; `None` where nothing can be
    /// measured, and the run counts that.
    library: Option<Vec<(&'static str, OsString)>>,
}

impl Measured {
    /// Where nothing can be measured, the user is told.
    fn of(selection: Selection, options: &RunOptions, file: &Path, libraries: &Libraries) -> Self {
        let library = measuring_library(options.sim.as_ref(), Some(file), &libraries.measure);
        let library = library.map_err(|absent| warn(&absent)).ok();
        Self { selection, library }
    }

    pub(super) fn with(selection: Selection, library: Vec<(&'static str, OsString)>) -> Self {
        Self { selection, library: Some(library) }
    }
}

/// The parts that starting a program takes, also a second time.
pub(super) struct Again<'a> {
    pub(super) libraries: &'a Libraries,
    pub(super) file: &'a Path,
    /// The variables of another run.
    pub(super) replayed: Option<RecordedEnvironment>,
}

impl Again<'_> {
    /// Starts the program and records it to its end.
    pub(super) fn start(
        &self,
        options: &RunOptions,
        measured: Option<Measured>,
    ) -> Result<FinishedRun, Error> {
        start(options, self, measured)
    }
}

/// The viewer needs a terminal.
fn check_view(options: &RunOptions) -> Result<(), Error> {
    if options.view && !io::stdout().is_terminal() {
        return Err(Error::RunUsage(
            "--view draws on a terminal, and standard output is none; run it in a terminal without \
             redirecting its output, or without --view and look at the trace with `streamsan view` \
             afterwards"
                .to_owned(),
        ));
    }
    Ok(())
}

pub(super) fn libraries() -> Result<Libraries, Error> {
    unpack().map_err(Error::run(
        "cannot unpack the runtime that is loaded into programs; point XDG_CACHE_HOME to a \
         directory that you can write to",
    ))
}

/// Lets a test program tell its tests to a test runner. Answers only when that fails.
fn list_tests(file: &Path, options: &RunOptions) -> Error {
    match libraries() {
        Ok(libraries) => {
            let failure = become_program(file, &options.program, &libraries, options.sim.as_ref());
            Error::NotExecutable {
                program: file.display().to_string(),
                reason: failure.to_string(),
            }
        }
        Err(error) => error,
    }
}

/// Makes the directory of a file: for the processes of a test runner or launcher nobody else does.
fn make_room(file: &Path) -> io::Result<()> {
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => fs::create_dir_all(parent),
        _ => Ok(()),
    }
}

/// A run whose program has been started.
pub(super) struct FinishedRun {
    pub(super) trace: PathBuf,
    pub(super) recording: Recording,
    pub(super) outcome: ProgramOutcome,
    child: Child,
    signals: Signals,
    viewer: Option<LiveViewer>,
}

fn start(
    options: &RunOptions,
    again: &Again<'_>,
    measured: Option<Measured>,
) -> Result<FinishedRun, Error> {
    let Again { libraries, file, replayed } = again;
    let rings = RingOptions {
        stacks: options.stacks.mode(),
        fences: options.host_accesses.are_fenced(),
        ..RingOptions::default()
    };
    let run = RunDirectory::create(rings).map_err(Error::run(
        "cannot create the shared memory through which programs are recorded; see `streamsan \
         doctor`",
    ))?;
    let watched = Watched {
        threads: options.strict_host_threads,
        accesses: options.host_accesses.are_fenced(),
    };
    let mut environment = Environment::new(libraries, run.path(), options.sim.as_ref(), watched);
    if let Some(allocator) = options.torch_allocator {
        environment.set_torch_allocator(allocator).map_err(Error::RunUsage)?;
    }
    if let Some(replayed) = replayed {
        environment.replay(replayed);
    }
    let measures = measured.is_some();
    let selection =
        measured.map(|measured| measure(measured, &run, &mut environment)).transpose()?;
    let mut signals = Signals::install()?;
    let printed = options.view.then(Printed::open).transpose();
    let printed = printed.map_err(Error::run("cannot make a terminal for the program's output"))?;
    let streams = printed.as_ref().map(Printed::streams).transpose();
    let streams = streams.map_err(Error::run("cannot lead the program's output to the viewer"))?;
    let mut child =
        Child::spawn(file, &options.program, &environment, streams.unwrap_or_default())?;
    let trace = PathBuf::from(expand(&options.output, child.pid()).map_err(Error::RunUsage)?);
    let collector_options = CollectorOptions {
        trace: trace.clone(),
        exact_accesses: options.sim.is_some() && !measures && !sim_withholds_accesses(),
        measure: selection,
        limit: options.max_trace.map(|size| size.0),
        host_model: host_model(options.strict_host_threads),
        meta: meta(options),
        reader: kernel_reader(Some(file)),
        listener: Arc::new(StandardError),
    };
    let mut collector = match Collector::new(run, collector_options) {
        Ok(collector) => collector,
        Err(error) => {
            // Nobody would know of its races: better not to let it run.
            child.kill();
            return Err(Error::RunUsage(format!("{error} (-o names the file)")));
        }
    };
    let mut viewer = match printed.map(|printed| LiveViewer::start(printed, &trace)).transpose() {
        Ok(viewer) => viewer,
        Err(error) => {
            child.kill();
            return Err(error);
        }
    };
    if viewer.is_some() {
        collector.analyse_meanwhile();
    }
    let outcome = record(&mut collector, &mut child, &mut signals, viewer.as_mut());
    if let Some(viewer) = &mut viewer {
        viewer.program_ended();
    }
    let recording = collector.finish(&mut || signals.handle(&child));
    Ok(FinishedRun { trace, recording, outcome, child, signals, viewer })
}

/// Writes the selection where the processes of the run find it.
fn measure(
    measured: Measured,
    run: &RunDirectory,
    environment: &mut Environment,
) -> Result<Selection, Error> {
    let Measured { selection, library } = measured;
    if let Some(library) = library {
        let file = run.path().join(MEASURE_FILE);
        fs::write(&file, selection.to_string())
            .map_err(Error::run(format!("cannot write {}", file.display())))?;
        environment.measure(&file, library);
    }
    Ok(selection)
}

/// Whether the simulated driver keeps to itself what kernels touch, as a GPU does.
fn sim_withholds_accesses() -> bool {
    std::env::var_os("STREAMSAN_SIM_ACCESSES").is_some_and(|value| value == "inferred")
}

/// The reader of kernels' code; its conclusions are kept for the next run.
pub(crate) fn kernel_reader(program: Option<&Path>) -> KernelReader {
    let both =
        |ours: &Directory| Ok((ours.subdirectory("scratch")?, ours.subdirectory("kernels")?));
    let (scratch, cache) = match choose_directory(both) {
        Ok(chosen) => (Some(chosen.made.0), Some(chosen.made.1)),
        Err(refused) => {
            warn(&format!(
                "there is no directory for the files of the disassembler ({refused}), so machine \
                 code is not read; point XDG_CACHE_HOME to a directory of yours"
            ));
            (None, None)
        }
    };
    // A disassembler that is named and cannot be run is told of by `doctor`.
    let tool = Disassembler::locate(&Places::of_this_process(program)).ok().flatten();
    let disassembler =
        tool.zip(scratch).map(|(tool, own)| Disassembler::new(tool, own, LONGEST_DISASSEMBLY));
    KernelReader::new(disassembler, cache)
}

/// Records until the program and all recorded descendants have ended.
fn record(
    collector: &mut Collector,
    child: &mut Child,
    signals: &mut Signals,
    mut viewer: Option<&mut LiveViewer>,
) -> ProgramOutcome {
    let mut nap = SHORTEST_NAP;
    let mut ended: Option<Instant> = None;
    let mut told = false;
    loop {
        let little = collector.pressure() < LITTLE;
        let records = collector.step();
        collector.look_around();
        if let Some(viewer) = &mut viewer {
            viewer.look_after();
        }
        let outcome = child.poll();
        let stop = signals.handle(child);
        if let Some(outcome) = outcome {
            // Who said hello after the step above and before the program ended is there too.
            collector.step();
            let since = *ended.get_or_insert_with(Instant::now);
            let unfinished = collector.any_cuda_alive();
            if stop || !unfinished {
                if unfinished {
                    collector.cut_off();
                }
                let left = collector.left_behind();
                for (pid, program) in left.iter().take(MOST_NAMED) {
                    warn(&format!("process {pid} ({program}) runs on and is no longer recorded"));
                }
                if let more @ 1.. = left.len().saturating_sub(MOST_NAMED) {
                    warn(&format!("{more} more processes run on and are no longer recorded"));
                }
                return outcome;
            }
            if !told && since.elapsed() > SILENT_WAIT {
                told = true;
                warn(
                    "the program has ended; waiting for processes that it left behind and that \
                     use CUDA (Ctrl-C stops waiting)",
                );
            }
        }
        if collector.has_work() || (records > 0 && !little) {
            nap = SHORTEST_NAP;
        } else if records > 0 {
            nap = SHORTEST_NAP;
            std::thread::sleep(GATHERING_NAP);
        } else {
            std::thread::sleep(nap);
            nap = (nap * 2).min(LONGEST_NAP);
        }
    }
}

pub(super) fn check_platform() -> Result<(), Error> {
    if crate::launch::records_here() {
        Ok(())
    } else {
        Err(Error::Platform(std::env::consts::OS, std::env::consts::ARCH))
    }
}

/// Refuses what would fail after the program has begun, and files that are not ours to replace.
pub(super) fn check_output(options: &RunOptions) -> Result<(), Error> {
    let expanded = |name: &str| {
        if Path::new(name).parent().is_some_and(|p| p.to_string_lossy().contains("%p")) {
            return Err(Error::RunUsage(format!(
                "{name}: %p can stand in the name of a file, not in that of its directory"
            )));
        }
        expand(name, std::process::id()).map(PathBuf::from).map_err(Error::RunUsage)
    };
    let trace = expanded(&options.output)?;
    let reports = options.report.iter().filter(|report| !report.is_stream());
    let reports = reports.map(|report| expanded(&report.path.to_string_lossy()));
    let mut tried = BTreeSet::new();
    for path in reports.chain([Ok(trace.clone())]) {
        let path = path?;
        make_room(&path).map_err(Error::run(format!("cannot make room for {}", path.display())))?;
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let writable = rustix::fs::access(directory, rustix::fs::Access::WRITE_OK);
        writable.map_err(io::Error::from).map_err(Error::run(format!(
            "cannot write {} into {}; name another place",
            path.display(),
            directory.display()
        )))?;
        if path.is_dir() {
            return Err(Error::RunUsage(format!(
                "{} is a directory; name a file in it",
                path.display()
            )));
        }
        if path.as_os_str().is_empty() {
            return Err(Error::RunUsage("the name of a file is empty".to_owned()));
        }
        // A device or a pipe takes no room where its name lies.
        let is_file = path.metadata().map_or(true, |there| there.is_file());
        if is_file && tried.insert(directory.to_owned()) {
            try_room(directory)?;
        }
    }
    let is_replaceable = match fs::metadata(&trace) {
        Ok(metadata) if !metadata.is_file() => {
            return Err(Error::RunUsage(format!(
                "{} is not a regular file; name another one with -o",
                trace.display()
            )));
        }
        Ok(metadata) => metadata.len() == 0 || !is_foreign(&trace),
        Err(_) => true,
    };
    if is_replaceable {
        return Ok(());
    }
    Err(Error::RunUsage(format!(
        "{} exists and is no trace of streamsan, so it is not overwritten; remove it, or name \
         another file with -o",
        trace.display()
    )))
}

fn is_foreign(file: &Path) -> bool {
    matches!(Reader::open(file), Err(streamsan_store::Error::NotATrace { .. }))
}

fn meta(options: &RunOptions) -> Meta {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let driver = match &options.sim {
        Some(policy) => format!("simulated, {policy}"),
        None => read("/proc/driver/nvidia/version").lines().next().unwrap_or_default().to_owned(),
    };
    Meta {
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: chrono::Utc::now(),
        command: options.program.iter().map(|a: &OsString| a.to_string_lossy().into()).collect(),
        host: read("/proc/sys/kernel/hostname").trim().to_owned(),
        driver,
        extra: host_model_meta(options.strict_host_threads)
            .into_iter()
            .chain(remembered(options))
            .chain(clocks::remembered())
            .collect(),
    }
}

impl FinishedRun {
    /// Concludes, and lets the user look at the trace as long as they want.
    pub(super) fn end(mut self, options: &RunOptions, gate: &Gate) -> ExitCode {
        let viewer = self.viewer.take();
        let (verdict, code) = self.conclude(options, gate);
        if let Some(viewer) = viewer {
            let words = format!("{}, exit code {}", verdict.description(), code.0);
            viewer.conclude(&words, &mut self.signals, &self.child);
        }
        code
    }

    fn conclude(&self, options: &RunOptions, gate: &Gate) -> (Verdict, ExitCode) {
        let stored = self.stored();
        let report = self.report(options, gate, stored.as_ref());
        tell(options, &report);
        self.tell_of_recording(options);
        let code = self.deliver(options, &report, stored.as_ref());
        (report.verdict().clone(), code)
    }

    /// The trace, where it can be read.
    pub(super) fn stored(&self) -> Option<Trace> {
        Reader::open(&self.trace).ok().map(|reader| Trace::Stored(Box::new(reader)))
    }

    /// Whether the user wanted an end before the program's own.
    pub(super) fn interrupted(&self) -> bool {
        self.signals.interrupted()
    }

    /// The report of this run, held against the gate.
    pub(super) fn report(
        &self,
        options: &RunOptions,
        gate: &Gate,
        stored: Option<&Trace>,
    ) -> Report<'_> {
        let Recording { findings, entities, coverage, reasons, .. } = &self.recording;
        let input = Input {
            findings: findings.clone(),
            entities,
            threshold: options.threshold.fail_on,
            reasons: reasons.clone(),
            coverage: Some(summary(coverage)),
            upstream: known_upstream(&options.gate),
            trace: Some(self.trace.display().to_string()),
        };
        let report = Report::new(input, |g| stored?.operation(g));
        let report = report.in_ranges(|g| stored.map_or(Vec::new(), |trace| trace.ranges_of(g)));
        let report = report.relative_to(directory());
        let mut report = match stored {
            Some(trace) => trace.in_tests(report),
            None => report,
        };
        report.hold_against(gate);
        report
    }

    /// Says the facts about the recording that stand beside the report.
    pub(super) fn tell_of_recording(&self, options: &RunOptions) {
        let Recording { waited, stream_ordered, .. } = &self.recording;
        if options.quiet {
            return;
        }
        if *waited >= WORTH_TELLING {
            warn(&format!(
                "the program waited {:.1} s for the recording, its threads together: the machine is \
                 too busy or its disk too slow to keep up. Nothing was lost by that",
                waited.as_secs_f64()
            ));
        }
        if !options.measure.is_empty() && self.recording.coverage.measured.is_empty() {
            warn("nothing was measured: no kernel of the selection was launched");
        }
        if options.torch_allocator.is_some() && !stream_ordered {
            warn("--torch-allocator changed nothing: nothing was allocated in stream order");
        }
    }

    /// Writes the files that were asked for, and decides the exit code.
    fn deliver(
        &self,
        options: &RunOptions,
        report: &Report<'_>,
        stored: Option<&Trace>,
    ) -> ExitCode {
        let judged = Judged { outcome: self.outcome, pid: self.child.pid(), calls: self.calls() };
        deliver(options, report, stored, judged)
    }

    /// Driver calls that were seen.
    pub(super) fn calls(&self) -> u64 {
        self.recording.coverage.entry_points.iter().map(|entry| entry.calls).sum()
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.pid()
    }
}
