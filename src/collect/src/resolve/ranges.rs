//! NVTX ranges and marks: from begins and ends to ranges.
//!
//! The ranges of a thread and a domain nest; those of several domains may cross. An end without a
//! begin ends nothing. A range is handed on when it has ended, or the recording has.
//!
//! Invariant: what a program opens and never ends is bounded. Beyond the bounds the oldest ranges
//! are handed on as ones that did not end, or, where the process started them, are not kept.

use crate::host_event::HostEvent;
use std::collections::HashMap;
use std::mem;
use std::sync::Arc;
use streamsan_model::{HostTime, NvtxKind, NvtxRange, OpSeq, ProcessId, ThreadId, TraceItem};
use streamsan_wire::HostCall;

/// Open ranges of a thread, of which programs have some tens.
const DEEPEST: usize = if cfg!(test) { 8 } else { 4096 };
/// Threads with open ranges, of which one that ends leaves its ranges open.
const THREADS: usize = if cfg!(test) { 4 } else { 4096 };
/// Open ranges that processes have started.
const STARTED: usize = if cfg!(test) { 8 } else { 1 << 16 };

/// A pushed range and the number of its domain in its process.
#[derive(Debug)]
struct Pushed {
    domain: u64,
    range: NvtxRange,
}

/// The open ranges of a run.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    pushed: HashMap<ThreadId, Vec<Pushed>>,
    /// By the program's number of a range.
    started: HashMap<(ProcessId, u64), NvtxRange>,
}

impl Ranges {
    /// Takes an event. Answers whether it was one of ranges.
    pub(super) fn take(
        &mut self,
        event: &HostEvent,
        (process, thread): (ProcessId, ThreadId),
        items: &mut Vec<TraceItem>,
    ) -> bool {
        match event.call {
            HostCall::NvtxPush => self.push(event, (process, thread), items),
            HostCall::NvtxPop => {
                let Some(open) = self.pushed.get_mut(&thread) else { return true };
                let domain = event.arg(0);
                if let Some(at) = open.iter().rposition(|pushed| pushed.domain == domain) {
                    items.push(ended(open.remove(at).range, event));
                }
                if open.is_empty() {
                    self.pushed.remove(&thread);
                }
            }
            HostCall::NvtxStart => {
                if self.started.len() < STARTED {
                    let range = begun(event, (process, thread), NvtxKind::Started);
                    self.started.insert((process, event.arg(2)), range);
                }
            }
            HostCall::NvtxEnd => {
                let range = self.started.remove(&(process, event.arg(0)));
                items.extend(range.map(|range| ended(range, event)));
            }
            HostCall::NvtxMark => {
                items.push(ended(begun(event, (process, thread), NvtxKind::Mark), event));
            }
            _ => return false,
        }
        true
    }

    fn push(
        &mut self,
        event: &HostEvent,
        (process, thread): (ProcessId, ThreadId),
        items: &mut Vec<TraceItem>,
    ) {
        if self.pushed.len() >= THREADS && !self.pushed.contains_key(&thread) {
            self.end_pushed(items);
        }
        let open = self.pushed.entry(thread).or_default();
        if open.len() >= DEEPEST {
            items.push(TraceItem::Range(open.remove(0).range));
        }
        let mut range = begun(event, (process, thread), NvtxKind::Pushed);
        range.depth = lowest_free(open);
        open.push(Pushed { domain: event.arg(0), range });
    }

    /// The recording has ended: hands on what is open.
    pub(super) fn end(&mut self, items: &mut Vec<TraceItem>) {
        self.end_pushed(items);
        let mut started: Vec<_> = mem::take(&mut self.started).into_values().collect();
        started.sort_by_key(|range| range.begin);
        items.extend(started.into_iter().map(TraceItem::Range));
    }

    fn end_pushed(&mut self, items: &mut Vec<TraceItem>) {
        let mut open: Vec<_> = mem::take(&mut self.pushed).into_values().flatten().collect();
        open.sort_by_key(|pushed| pushed.range.begin);
        items.extend(open.into_iter().map(|pushed| TraceItem::Range(pushed.range)));
    }

    /// How many ranges are kept.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.pushed.values().map(Vec::len).sum::<usize>() + self.started.len()
    }
}

/// The lowest depth that none of them has.
fn lowest_free(open: &[Pushed]) -> u32 {
    let mut used = vec![false; open.len()];
    for pushed in open {
        if let Some(used) = used.get_mut(pushed.range.depth as usize) {
            *used = true;
        }
    }
    used.iter().take_while(|used| **used).count() as u32
}

fn begun(event: &HostEvent, (process, thread): (ProcessId, ThreadId), kind: NvtxKind) -> NvtxRange {
    let of_domain = usize::try_from(event.arg(1)).unwrap_or(usize::MAX);
    let (domain, name) = event.text.split_at_checked(of_domain).unwrap_or(("", &event.text));
    NvtxRange {
        begin: OpSeq(event.g),
        end: None,
        process,
        thread,
        kind,
        domain: (!domain.is_empty()).then(|| Arc::from(domain)),
        name: name.into(),
        time: HostTime { start_ns: event.start_ns, end_ns: event.start_ns },
        depth: 0,
    }
}

fn ended(range: NvtxRange, event: &HostEvent) -> TraceItem {
    let time = HostTime { end_ns: event.start_ns, ..range.time };
    TraceItem::Range(NvtxRange { end: Some(OpSeq(event.g)), time, ..range })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Origin;
    use streamsan_wire::{ProcessKey, ThreadKey};

    struct Bench {
        ranges: Ranges,
        items: Vec<TraceItem>,
        g: u64,
    }

    impl Bench {
        fn new() -> Self {
            Self { ranges: Ranges::default(), items: Vec::new(), g: 0 }
        }

        fn call(&mut self, thread: u32, call: HostCall, args: &[u64], text: &str) -> u64 {
            self.g += 1;
            let origin = Origin { process: ProcessKey(0), thread: ThreadKey(thread), tid: thread };
            let event = HostEvent {
                g: self.g,
                origin,
                call,
                args: args.into(),
                text: text.into(),
                start_ns: 100 * self.g,
                stack: None,
                returned: None,
            };
            let of = (ProcessId(0), ThreadId(thread));
            assert!(self.ranges.take(&event, of, &mut self.items));
            self.g
        }

        /// `name begin..end`, with the domain before and the depth behind.
        fn told(&mut self) -> Vec<String> {
            let told = self.items.drain(..).map(|item| {
                let TraceItem::Range(range) = item else { panic!("{item:?}") };
                let domain = range.domain.map_or(String::new(), |domain| format!("{domain}:"));
                let end = range.end.map_or(String::new(), |end| end.0.to_string());
                let depth = range.depth;
                assert_eq!(range.time.start_ns, 100 * range.begin.0);
                let last = range.end.unwrap_or(range.begin);
                assert_eq!(range.time.end_ns, 100 * last.0);
                format!("{domain}{} {}..{end} at {depth}", range.name, range.begin.0)
            });
            told.collect()
        }
    }

    #[test]
    fn pushes_and_pops_nest_by_thread_and_domain() {
        let mut bench = Bench::new();
        bench.call(0, HostCall::NvtxPush, &[0, 0], "train");
        bench.call(0, HostCall::NvtxPush, &[7, 4], "ncclreduce");
        bench.call(1, HostCall::NvtxPush, &[0, 0], "load");
        bench.call(0, HostCall::NvtxPush, &[0, 0], "step");
        bench.call(0, HostCall::NvtxPop, &[7], "");
        bench.call(0, HostCall::NvtxPush, &[8, 0], "last");
        bench.call(0, HostCall::NvtxPop, &[0], "");
        bench.call(0, HostCall::NvtxPop, &[9], "");
        bench.call(0, HostCall::NvtxPop, &[8], "");
        bench.call(0, HostCall::NvtxPop, &[0], "");
        assert_eq!(
            bench.told(),
            ["nccl:reduce 2..5 at 1", "step 4..7 at 2", "last 6..9 at 1", "train 1..10 at 0"]
        );
        bench.ranges.end(&mut bench.items);
        assert_eq!(bench.told(), ["load 3.. at 0"]);
        assert_eq!(bench.ranges.len(), 0);
    }

    #[test]
    fn started_ranges_end_in_any_thread_and_marks_at_once() {
        let mut bench = Bench::new();
        bench.call(0, HostCall::NvtxStart, &[0, 0, 1], "epoch");
        bench.call(0, HostCall::NvtxStart, &[0, 0, 2], "never");
        bench.call(0, HostCall::NvtxMark, &[5, 1], "dhere");
        bench.call(1, HostCall::NvtxEnd, &[1], "");
        bench.call(1, HostCall::NvtxEnd, &[1], "");
        assert_eq!(bench.told(), ["d:here 3..3 at 0", "epoch 1..4 at 0"]);
        bench.ranges.end(&mut bench.items);
        assert_eq!(bench.told(), ["never 2.. at 0"]);
    }

    #[test]
    fn what_never_ends_is_bounded() {
        let mut bench = Bench::new();
        for thread in 0..100 {
            for _ in 0..20 {
                bench.call(thread, HostCall::NvtxPush, &[0, 0], "leak");
            }
            bench.call(thread, HostCall::NvtxStart, &[0, 0, thread.into()], "lost");
            assert!(bench.ranges.len() <= DEEPEST * THREADS + STARTED, "{}", bench.ranges.len());
        }
        // All that was pushed comes out, each once.
        bench.ranges.end(&mut bench.items);
        let told = bench.told();
        assert_eq!(told.iter().filter(|told| told.starts_with("leak")).count(), 2000);
        assert_eq!(told.iter().filter(|told| told.starts_with("lost")).count(), STARTED);
    }

    /// The runtime, which does not know the model, names the domains as the model does.
    #[test]
    fn tests_are_ranges_of_one_domain() {
        assert_eq!(streamsan_wire::TEST_DOMAIN, NvtxRange::TESTS);
        assert_eq!(streamsan_wire::ALLOW_DOMAIN, NvtxRange::ALLOWED);
    }

    /// The bytes of a domain's name come from the program.
    #[test]
    fn lengths_that_lie_leave_the_name_whole() {
        let mut bench = Bench::new();
        for length in [3, 100, u64::MAX] {
            bench.call(0, HostCall::NvtxMark, &[5, length], "\u{e9}\u{e9}");
        }
        assert_eq!(
            bench.told(),
            ["1..1", "2..2", "3..3"].map(|at| format!("\u{e9}\u{e9} {at} at 0"))
        );
    }
}
