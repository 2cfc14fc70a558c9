//! The clock against the engine, by random traces: whatever the engine orders before a host access,
//! no fence stands there.

use std::collections::BTreeSet;
use std::fmt::Write;

use proptest::prelude::*;
use streamsan_analysis::{HostModel, Options, analyse_with};
use streamsan_model::Severity;
use streamsan_text::parse;

use super::clock::{Clock, Stream};

/// Streams by their names in text traces.
const STREAMS: [(&str, Stream); 7] = [
    ("legacy", Stream::Legacy),
    ("ptds", Stream::PerThread(7)),
    ("b1", Stream::Handle(0x1040)),
    ("b2", Stream::Handle(0x1080)),
    ("s1", Stream::Handle(0x10c0)),
    ("s2", Stream::Handle(0x1100)),
    ("s3", Stream::Handle(0x1140)),
];
const EVENTS: usize = 3;

#[derive(Debug, Clone, Copy)]
enum Step {
    Download(usize),
    Record(usize, usize),
    Wait(usize, usize),
    SynchronizeStream(usize, bool),
    SynchronizeEvent(usize, bool),
    Elapsed(usize, usize),
    SynchronizeContext,
    UploadNow,
    WriteValue(usize),
    WaitValue(usize),
    RecordContext(usize),
    WaitContext(usize),
    Function(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let stream = || 0..STREAMS.len();
    let event = || 0..EVENTS;
    prop_oneof![
        6 => stream().prop_map(Step::Download),
        3 => (event(), stream()).prop_map(|(e, s)| Step::Record(e, s)),
        3 => (stream(), event()).prop_map(|(s, e)| Step::Wait(s, e)),
        2 => (stream(), any::<bool>()).prop_map(|(s, busy)| Step::SynchronizeStream(s, busy)),
        2 => (event(), any::<bool>()).prop_map(|(e, busy)| Step::SynchronizeEvent(e, busy)),
        1 => (event(), event()).prop_map(|(e, f)| Step::Elapsed(e, f)),
        1 => Just(Step::SynchronizeContext),
        1 => Just(Step::UploadNow),
        1 => stream().prop_map(Step::WriteValue),
        1 => stream().prop_map(Step::WaitValue),
        1 => event().prop_map(Step::RecordContext),
        1 => event().prop_map(Step::WaitContext),
        2 => stream().prop_map(Step::Function),
    ]
}

/// A trace and what the clock makes of it.
struct Run {
    clock: Box<Clock>,
    text: String,
    line: usize,
    /// Line, slot and ticket of each download, whose buffer bears the line's number.
    downloads: Vec<(usize, usize, u64)>,
    /// The word that streams wait for, once written.
    value: u64,
}

impl Run {
    fn new() -> Self {
        let mut run = Self {
            clock: Box::new(Clock::new()),
            text: String::new(),
            line: 0,
            downloads: Vec::new(),
            value: 0,
        };
        for (name, stream) in STREAMS {
            let Stream::Handle(handle) = stream else { continue };
            let non_blocking = name.starts_with('s');
            run.clock.stream_made(handle, non_blocking);
            if !non_blocking {
                run.say(&format!("stream {name}"));
            }
        }
        run.say("alloc D 64");
        run.say("alloc_pinned H 64");
        run.say("alloc V 4");
        run
    }

    fn say(&mut self, line: &str) -> usize {
        writeln!(self.text, "{line}").expect("a string takes text");
        self.line += 1;
        self.line
    }

    fn slot(&self, stream: usize) -> usize {
        self.clock.slot(STREAMS[stream].1)
    }

    fn event(event: usize) -> u64 {
        0x5000 + 64 * event as u64
    }

    /// As the hooks do: see `order` and `leave`.
    fn take(&mut self, step: Step) {
        let name = |stream: usize| STREAMS[stream].0;
        match step {
            Step::Download(stream) => {
                let slot = self.slot(stream);
                let ticket = self.clock.submit();
                let buffer = format!("B{}", self.line + 2);
                self.say(&format!("alloc_pinned {buffer} 64"));
                let line = self.say(&format!("copy {} dst:{buffer} src:D", name(stream)));
                self.clock.pass(slot);
                self.downloads.push((line, slot, ticket));
            }
            Step::Record(event, stream) => {
                self.say(&format!("record e{event} {}", name(stream)));
                self.clock.record(Self::event(event), Some(self.slot(stream)));
            }
            Step::Wait(stream, event) => {
                self.say(&format!("wait {} e{event}", name(stream)));
                let slot = self.slot(stream);
                self.clock.wait(slot, Self::event(event));
                self.clock.pass(slot);
            }
            Step::SynchronizeStream(stream, busy) => {
                let call = if busy { "query_stream" } else { "sync_stream" };
                self.say(&format!("{call} {}", name(stream)));
                let slot = self.slot(stream);
                self.clock.pass(slot);
                let now = self.clock.now();
                self.clock.acquire(slot, now, now);
            }
            Step::SynchronizeEvent(event, query) => {
                let call = if query { "query_event" } else { "sync_event" };
                self.say(&format!("{call} e{event}"));
                self.clock.acquire_event(Self::event(event), self.clock.now());
            }
            Step::Elapsed(first, second) => {
                self.say(&format!("elapsed e{first} e{second}"));
                let now = self.clock.now();
                self.clock.acquire_event(Self::event(first), now);
                self.clock.acquire_event(Self::event(second), now);
            }
            Step::SynchronizeContext => {
                self.say("sync_ctx");
                self.clock.acquire_everything(self.clock.now());
            }
            Step::UploadNow => {
                self.say("copy_sync dst:D src:H");
                let slot = self.slot(0);
                self.clock.pass(slot);
                let now = self.clock.now();
                self.clock.acquire(slot, now, now);
            }
            Step::WriteValue(stream) => {
                self.value += 1;
                self.say(&format!("write_value {} V={}", name(stream), self.value));
                self.clock.pass(self.slot(stream));
            }
            Step::WaitValue(stream) => {
                self.say(&format!("wait_value {} V={}", name(stream), self.value.max(1)));
                let slot = self.slot(stream);
                self.clock.behind_anything(slot);
                self.clock.pass(slot);
            }
            Step::RecordContext(event) => {
                self.say(&format!("record_ctx e{event} c0"));
                self.clock.record(Self::event(event), None);
            }
            Step::WaitContext(event) => {
                self.say(&format!("wait_ctx c0 e{event}"));
                for slot in 0..super::clock::SLOTS {
                    self.clock.wait_for_everything(slot);
                    self.clock.behind_anything(slot);
                }
            }
            Step::Function(stream) => {
                let slot = self.slot(stream);
                let line = self.say(&format!("host_fn {}", name(stream)));
                self.clock.pass(slot);
                let then = self.clock.now();
                self.say(&format!("run_host_fn {line}"));
                self.clock.acquire(slot, then, self.clock.now());
            }
        }
    }

    /// Downloads that the engine orders before a host access here, and those of which a fence stands.
    fn ends(mut self, host_model: HostModel) -> (BTreeSet<usize>, BTreeSet<usize>, String) {
        let downloads = core::mem::take(&mut self.downloads);
        for (line, ..) in &downloads {
            self.say(&format!("host r:B{line}"));
        }
        let trace = parse(&self.text).unwrap_or_else(|error| panic!("{error}\n{}", self.text));
        let options = Options { host_model, ..Options::default() };
        let unordered: BTreeSet<usize> = analyse_with(options, &trace.items)
            .findings
            .iter()
            .filter(|finding| finding.severity != Severity::Lint)
            .map(|finding| finding.first.op.0 as usize)
            .collect();
        let fenced = downloads
            .iter()
            .filter(|(_, slot, ticket)| !self.clock.has(*slot, *ticket))
            .map(|(line, ..)| *line)
            .collect();
        let ordered =
            downloads.iter().map(|(line, ..)| *line).filter(|line| !unordered.contains(line));
        (ordered.collect(), fenced, self.text)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_fence_stands_where_the_engine_orders_the_work_before_the_host(
        steps in prop::collection::vec(step(), 1..40),
        strict in any::<bool>(),
    ) {
        let mut run = Run::new();
        steps.into_iter().for_each(|step| run.take(step));
        let model = if strict { HostModel::Strict } else { HostModel::Observed };
        let (ordered, fenced, text) = run.ends(model);
        let both: Vec<_> = ordered.intersection(&fenced).collect();
        prop_assert!(both.is_empty(), "{both:?} in\n{text}");
    }
}

#[test]
fn a_fence_stands_where_nothing_orders() {
    let mut run = Run::new();
    run.take(Step::Download(4));
    run.take(Step::Download(5));
    run.take(Step::SynchronizeStream(5, false));
    let (ordered, fenced, text) = run.ends(HostModel::Observed);
    assert_eq!((ordered.len(), fenced.len()), (1, 1), "{text}");
    assert!(ordered.is_disjoint(&fenced), "{text}");
}
