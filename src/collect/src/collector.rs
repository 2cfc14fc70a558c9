//! The collector's loop body: drain, resolve, store, analyse, commit, release.

mod end;

use super::coverage;
use super::descendants::Descendants;
use super::kernel_code::Answer;
use super::launch::{Entrance, MeasuredReport, Pressure, Report, Reports};
use super::listener::Listener;
use super::log::{self, Log};
use super::measured::Measuring;
use super::merge::{Merge, Policy, Ready};
use super::reading::Reading;
use super::recorder::{Recorder, Recording, leave};
use super::relay::{Relay, Step};
use super::resolve::Resolver;
use super::stacks::Stacks;
use super::unattached::Telling;
use std::fmt::{self, Debug, Formatter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use streamsan_analysis::HostModel;
use streamsan_kernels::reader::Reader;
use streamsan_model::{Entity, IncompleteReason, OpSeq, Process, ProcessId, TraceItem};
use streamsan_store::{Error, Meta, Writer};
use streamsan_wire::{Api, ProcessInfo, ProcessKey, Record, RunDirectory, Selection};
use tracing::{debug, info};

/// Records handed out in one step.
const BATCH: usize = 8192;
/// The longest that a record stays uncommitted.
const COMMIT_INTERVAL: Duration = Duration::from_millis(200);
/// Launches are looked at again when the code of their kernels is known: so many at once, for so
/// long a step, up to which share of the fullest ring and with so many bytes waiting to be written.
/// The rest is left to the end of the run.
const LOOKED_AT_AGAIN: usize = 32;
const TIME_TO_LOOK_AGAIN: Duration = Duration::from_millis(1);
const NOT_PRESSED: f64 = 0.25;
const NOT_BEHIND: u64 = 512 << 10;

/// Key of a trace's fact: how many milliseconds the threads of the program waited for room in their
/// rings, all together.
pub const WAITED: &str = "waited_for_recording_ms";

/// Where and how to record.
#[derive(Debug)]
pub struct CollectorOptions {
    /// The trace.
    pub trace: PathBuf,
    /// Whether kernels report late what they touched (the simulated driver does).
    pub exact_accesses: bool,
    /// The kernels that are measured, where any are.
    pub measure: Option<Selection>,
    /// Size of the trace in bytes from which on nothing more is stored.
    pub limit: Option<u64>,
    pub host_model: HostModel,
    pub meta: Meta,
    /// The reader of the code of kernels.
    pub reader: Reader,
    /// Who is told.
    pub listener: Arc<dyn Listener>,
}

/// Records one run.
pub struct Collector {
    listener: Arc<dyn Listener>,
    log: Log,
    run: RunDirectory,
    descendants: Descendants,
    unattached: Telling,
    merge: Merge,
    stacks: Stacks,
    resolver: Resolver,
    recorder: Relay,
    /// `None` where its thread could not be started: nothing is known of code then.
    reading: Option<Reading>,
    entrance: Entrance,
    items: Vec<TraceItem>,
    processes_declared: usize,
    reports: Reports,
    /// Entry index of the newest operation that was handed on.
    newest: u64,
    committed: Instant,
    unreadable: u64,
    /// Which processes made a call, by key.
    recorded: Vec<bool>,
    /// Whether what was analysed on the way rests on accesses that were replaced later.
    replaced: bool,
    cut_off: bool,
}

impl Debug for Collector {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collector").field("run", &self.run.path()).finish_non_exhaustive()
    }
}

struct RunPolicy<'a> {
    resolver: &'a Resolver,
    processes: &'a [ProcessInfo],
}

impl Policy for RunPolicy<'_> {
    fn needs_return(&self, api: Api) -> bool {
        self.resolver.needs_return(api)
    }

    fn has_ended(&self, process: ProcessKey) -> bool {
        self.processes.get(process.0 as usize).is_none_or(|p| !p.alive)
    }
}

fn is_graph(item: &TraceItem) -> bool {
    matches!(item, TraceItem::Entity(Entity::Graph(_)))
}

impl Collector {
    /// Creates the trace.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn new(run: RunDirectory, options: CollectorOptions) -> Result<Self, Error> {
        let writer = Writer::create(&options.trace, &options.meta)?;
        log::begin(&options.trace, &options.meta.driver, options.exact_accesses);
        let deferred = options.exact_accesses;
        let mut resolver = Resolver::new(options.exact_accesses);
        if let Some(selection) = options.measure {
            resolver.measure(Measuring::new(selection));
        }
        let reading = Reading::start(options.reader, run.path()).ok();
        Ok(Self {
            log: Log::default(),
            reading,
            entrance: Entrance::default(),
            descendants: Descendants::new(run.path()),
            unattached: Telling::default(),
            run,
            merge: Merge::default(),
            stacks: Stacks::default(),
            resolver,
            recorder: Relay::new(Recorder::new(
                &options.trace,
                writer,
                deferred,
                options.limit,
                options.host_model,
                Arc::clone(&options.listener),
            )),
            listener: options.listener,
            items: Vec::new(),
            processes_declared: 0,
            reports: Reports::default(),
            newest: 0,
            committed: Instant::now(),
            unreadable: 0,
            recorded: Vec::new(),
            replaced: false,
            cut_off: false,
        })
    }

    /// Somebody looks at the trace meanwhile.
    pub fn analyse_meanwhile(&mut self) {
        self.record(Step::AnalyseMeanwhile);
    }

    /// Whether a process that uses CUDA is still running: one that made a call, or has loaded the
    /// driver. One that only inherited the runtime (a shell's background job) is not waited for.
    pub fn any_cuda_alive(&self) -> bool {
        (self.run.any_alive() && self.alive().any(|p| self.uses_cuda(p)))
            || self.descendants.any_recorded()
    }

    /// Looks for descendants of the program that use CUDA without being recorded, now and then.
    pub fn look_around(&mut self) {
        let found = self.descendants.look(self.run.processes());
        self.unattached.tell(&found, &*self.listener);
    }

    /// The user does not wait for processes that use CUDA: what they do from now on is missing.
    pub fn cut_off(&mut self) {
        self.cut_off = true;
    }

    /// Processes that are still running, and will no longer be recorded: number and program.
    pub fn left_behind(&self) -> Vec<(u32, String)> {
        if !self.run.any_alive() {
            return Vec::new();
        }
        self.alive().map(|p| (p.pid, p.exe.clone())).collect()
    }

    fn alive(&self) -> impl Iterator<Item = &ProcessInfo> {
        // The run directory's knowledge may be a moment old.
        let exists = |p: &&ProcessInfo| Path::new(&format!("/proc/{}", p.pid)).exists();
        self.run.processes().iter().filter(|p| p.alive).filter(exists)
    }

    fn uses_cuda(&self, process: &ProcessInfo) -> bool {
        self.recorded.get(process.key.0 as usize) == Some(&true)
            || std::fs::read_to_string(format!("/proc/{}/maps", process.pid))
                .is_ok_and(|maps| maps.contains("/libcuda.so"))
    }

    /// Takes what has been published and hands on what can be. Answers how many records came.
    pub fn step(&mut self) -> usize {
        let now = Instant::now();
        let (merge, reports, items, recorded) =
            (&mut self.merge, &mut self.reports, &mut self.items, &mut self.recorded);
        let (stacks, resolver) = (&mut self.stacks, &mut self.resolver);
        let drained = self.run.drain(BATCH, &mut |envelope| {
            let process = envelope.process.0 as usize;
            if recorded.len() <= process {
                recorded.resize(process + 1, false);
            }
            // Annotations of host threads are no use of CUDA.
            recorded[process] |= !matches!(
                envelope.record,
                Record::Host { .. } | Record::Object(_) | Record::Stack { .. }
            );
            match envelope.record {
                Record::Accesses { op, list, complete } => {
                    reports.part(envelope.process, op, list.iter(), complete);
                }
                Record::Measured { op, node, complete, flags, runs } => {
                    let list = (runs.iter(), flags);
                    reports.measured_part(envelope.process, (op, node), list, complete);
                }
                Record::NotMeasured { op, reason, detail } => {
                    resolver.not_measured(envelope.process, op, reason, detail);
                }
                Record::Object(object) => stacks.object(envelope.process, &object),
                Record::Stack { key, truncated, frames } => {
                    stacks.stack(envelope.process, key, truncated, frames, items);
                }
                _ => items.extend(merge.record(&envelope, stacks, now)),
            }
        });
        let count = drained.unwrap_or_else(|error| {
            if self.unreadable == 0 {
                self.listener.warn(&format!(
                    "a part of the recording cannot be read ({error}), so the verdict will be \
                     INCOMPLETE; look at the limits for open files and memory"
                ));
            }
            self.unreadable += 1;
            0
        });
        self.hand_on();
        self.declare_processes();
        self.take_reports();
        self.learn();
        while let Some(ready) = self.next(now) {
            self.resolve(&ready);
            self.ask();
        }
        if self.has_work() {
            self.look_again(Some(Instant::now() + TIME_TO_LOOK_AGAIN));
        }
        self.commit_if_due(now);
        count
    }

    /// Used share of the fullest ring in `0.0..=1.0`.
    pub fn pressure(&self) -> f64 {
        self.run.pressure()
    }

    /// Whether a step has something to do although no records came.
    pub fn has_work(&self) -> bool {
        self.resolver.has_code_known()
            && self.run.pressure() < NOT_PRESSED
            && self.recorder.bytes_behind() < NOT_BEHIND
    }

    fn declare_processes(&mut self) {
        for info in &self.run.processes()[self.processes_declared..] {
            let process = Process {
                id: ProcessId(info.key.0),
                pid: info.pid,
                parent_pid: info.parent,
                executable: info.exe.clone(),
                arguments: info.args.clone(),
            };
            self.resolver.process(process, &mut self.items);
        }
        self.processes_declared = self.run.processes().len();
        self.log.processes(self.run.processes());
        self.hand_on();
    }

    /// Takes reports: what they say replaces what was concluded from the words of launches that were
    /// handed on.
    fn take_reports(&mut self) {
        for Report { process, launch, touched } in self.reports.of_resolved(self.newest) {
            let (accesses, early) =
                self.resolver.exact_accesses(process, launch, &touched, &mut self.items);
            self.hand_on();
            self.record(Step::Exact(OpSeq(launch), accesses, (early > 0).then_some(early)));
            self.replaced = true;
        }
        for report in self.reports.measured_of_resolved(self.newest) {
            let MeasuredReport { process, launch, node, runs, flags } = report;
            if node != 0 {
                let (of, bytes) = ((launch, node), (&runs[..], flags));
                self.resolver.measured_node(process, of, bytes, &mut self.items);
                self.hand_on();
                continue;
            }
            let found =
                self.resolver.measured_accesses(process, launch, (&runs, flags), &mut self.items);
            self.hand_on();
            if let Some((accesses, early)) = found {
                self.record(Step::Exact(OpSeq(launch), accesses, Some(early)));
                self.replaced = true;
            }
        }
    }

    /// The next thing to resolve.
    fn next(&mut self, now: Instant) -> Option<Ready> {
        let ready = match self.entrance.take() {
            Some(waiting) => waiting,
            None => {
                let (resolver, processes) = (&self.resolver, self.run.processes());
                self.merge.next(now, &RunPolicy { resolver, processes })?
            }
        };
        let asked = match &ready {
            Ready::Call(call) if call.returned.is_some() => self.resolver.awaited(call),
            _ => None,
        };
        let (run, merge) = (&self.run, &self.merge);
        let pressure = || Pressure { rings: run.pressure(), behind: merge.len() };
        self.entrance.pass(ready, asked, now, pressure)
    }

    /// Has kernels read that were looked up.
    fn ask(&mut self) {
        let (questions, hurried) = self.resolver.questions();
        if let Some(reading) = &self.reading {
            reading.ask(questions, hurried);
        }
    }

    /// Takes what was read.
    fn learn(&mut self) {
        if self.resolver.is_waiting()
            && let Some(reading) = &self.reading
        {
            let answers = reading.answers();
            self.take_answers(answers);
        }
    }

    fn take_answers(&mut self, answers: Vec<Answer>) {
        for answer in answers {
            self.resolver.learn(answer, &mut self.items);
        }
        self.hand_on();
    }

    /// Looks at launches again with what is known of their kernels by now, until `end`. There may be
    /// a hundred thousand of them, and the rings fill meanwhile.
    fn look_again(&mut self, end: Option<Instant>) {
        while self.resolver.has_code_known() {
            let known = self.resolver.look_again(LOOKED_AT_AGAIN, &mut self.items);
            self.replaced |= self.items.iter().any(is_graph) || !known.is_empty();
            self.hand_on();
            for launch in known {
                self.record(Step::Known(launch));
            }
            if end.is_some_and(|end| Instant::now() >= end) {
                return;
            }
        }
    }

    fn resolve(&mut self, ready: &Ready) {
        match ready {
            Ready::Call(call) => {
                self.newest = call.g;
                let exact = self.reports.take(call.g);
                self.resolver.call(call, exact.as_deref(), &mut self.items);
            }
            Ready::HostRun(run) => {
                self.newest = run.g;
                self.resolver.host_run(run, &mut self.items);
            }
            Ready::Host(event) => {
                self.newest = event.g;
                self.resolver.host(event, &mut self.items);
            }
            Ready::Kernel(first) => self.resolver.kernel(first, &mut self.items),
        }
        self.hand_on();
    }

    fn hand_on(&mut self) {
        for item in self.items.drain(..) {
            self.recorder.put(Step::Item(item), &|| self.run.note_progress());
            // Programs that wait for room go on waiting.
            self.run.note_progress();
        }
    }

    fn record(&mut self, step: Step) {
        self.recorder.put(step, &|| self.run.note_progress());
        self.run.note_progress();
    }

    /// Gives the rings their room back, and begins a commit where one is due. Records that were handed
    /// out are in this process, where no crash of the program touches them. Rings are small, and a
    /// program that finds them full waits, so nothing here waits for the disk.
    fn commit_if_due(&mut self, now: Instant) {
        self.run.release();
        if now.saturating_duration_since(self.committed) >= COMMIT_INTERVAL {
            self.log.commit(self.newest, self.recorder.bytes_behind());
            self.recorder.put(Step::BeginCommit, &|| self.run.note_progress());
            self.committed = now;
        }
        self.recorder.flush(&|| self.run.note_progress());
    }

    /// Every process has ended, or is no longer waited for: takes the rest and concludes. `stopped`
    /// says whether the user wants the verdict without what is not read yet.
    pub fn finish(mut self, stopped: &mut dyn FnMut() -> bool) -> Recording {
        // A process that is no longer waited for may publish for ever: only what it had published
        // by now is taken.
        let end = self.run.close();
        debug!("the run ends: what is left in the rings is taken");
        while self.step() > 0 && self.run.handed_out() + 1 < end {}
        if let Some(ready) = self.entrance.take() {
            self.resolve(&ready);
        }
        while let Some(ready) = self.merge.pop() {
            self.resolve(&ready);
        }
        self.resolver.end_ranges(&mut self.items);
        self.hand_on();
        self.take_reports();
        self.log.finish(self.run.processes());
        self.finish_reading(stopped);
        self.symbolize(stopped);
        self.tell_of_python();
        let measured = self.resolver.end_measuring(&mut self.items);
        self.replaced |= self.items.iter().any(is_graph);
        self.hand_on();
        let waited: Duration = self.run.processes().iter().map(|process| process.waited).sum();
        if waited > Duration::ZERO {
            self.record(Step::Note(WAITED, waited.as_millis().to_string()));
        }
        let mut recorder = self.recorder.end(&|| self.run.note_progress());
        self.log.commit(self.newest, recorder.bytes_behind());
        recorder.commit();
        let (mut coverage, mut reasons) =
            coverage::conclude(&self.run, &self.resolver, self.unreadable);
        coverage.measured = measured;
        self.unattached.tell(&self.descendants.finish(self.run.processes()), &*self.listener);
        self.unattached.end(&*self.listener);
        if self.descendants.has_unattached() && !reasons.contains(&IncompleteReason::NotAttached) {
            reasons.push(IncompleteReason::NotAttached);
        }
        if self.cut_off {
            reasons.push(IncompleteReason::TruncatedTrace);
        }
        let again = self.merge.failed_late() || self.replaced || self.resolver.shared_late();
        let goes_on = recorder.is_watched();
        debug!(again, "the analysis is concluded");
        let recording = recorder.finish(again, coverage, reasons);
        let reasons = recording.reasons.len();
        info!(reasons, "the trace is closed");
        leave(goes_on, (self.merge, self.resolver, self.stacks, self.reports));
        Recording { waited, ..recording }
    }
}
