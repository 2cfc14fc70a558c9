//! Puts records back into calls, in the order of their entry.
//!
//! Records come by global index, a call's entry and its return apart. The oldest call is held
//! until it has returned; one that stays away too long is handed over without its return, which
//! follows as an event of its own.
//!
//! Invariant: what is handed over has ascending entry indices.

mod host;

use super::call::{Call, FewWords, Origin, Return};
use super::host_event::{HostEvent, HostReturn};
use super::read_back::ReadBack;
use super::resolve::HostRun;
use super::stacks::Stacks;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};
use streamsan_model::{OpSeq, Status, TraceItem};
use streamsan_wire::{Api, Envelope, GraphPart, ProcessKey, Record, ThreadKey};

/// How long the oldest call may keep later ones waiting.
const PATIENCE: Duration = Duration::from_millis(50);
/// How many calls may be held.
const MOST_WAITING: usize = 4096;
/// Bounds memory when a call whose result matters does not come back.
const LAST_PATIENCE: Duration = Duration::from_secs(2);
const MOST_WAITING_EVER: usize = 1 << 16;

/// The next thing to resolve.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are calls, and a box for each would cost an allocation"
)]
pub(crate) enum Ready {
    Call(Call),
    HostRun(HostRun),
    Host(HostEvent),
    Kernel(FirstLaunch),
}

/// A kernel that is about to be launched by this handle for the first time.
#[derive(Clone, Debug)]
pub(crate) struct FirstLaunch {
    pub(crate) origin: Origin,
    pub(crate) function: u64,
    /// Mangled, empty where the driver did not tell.
    pub(crate) name: Box<str>,
    /// Offset and size of each parameter; `None` where the driver could not tell.
    pub(crate) params: Option<Box<[(u32, u32)]>>,
    /// The module or library that it comes from, 0 where the driver did not tell.
    pub(crate) home: u64,
}

#[derive(Debug)]
struct Slot {
    g: u64,
    arrived: Instant,
    complete: bool,
    ready: Ready,
}

/// A call or host function in progress on a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frame {
    Call { g: u64 },
    HostRun { op: u64, g: u64 },
}

/// Decides which calls may be handed over while they run.
pub(crate) trait Policy {
    /// Whether a call cannot be resolved without what it returns.
    fn needs_return(&self, api: Api) -> bool;
    /// Whether a process has ended, so that its calls never return.
    fn has_ended(&self, process: ProcessKey) -> bool;
}

/// The records between the rings and the resolver.
#[derive(Debug, Default)]
pub(crate) struct Merge {
    queue: VecDeque<Slot>,
    frames: HashMap<ThreadKey, Vec<Frame>>,
    /// Entry indices of calls that were handed over without their return.
    running: HashMap<u64, Api>,
    failed_late: bool,
    /// Collective operations in progress of a thread.
    collectives: HashMap<ThreadKey, Vec<u64>>,
    /// The graphs that were read back for the next call of a thread.
    read_back: HashMap<ThreadKey, Box<ReadBack>>,
}

impl Merge {
    /// Takes a record; records of accesses and stacks are not for the merge. Answers the return of a
    /// call that was handed over before.
    pub(crate) fn record(
        &mut self,
        envelope: &Envelope<'_>,
        stacks: &Stacks,
        now: Instant,
    ) -> Option<TraceItem> {
        let Envelope { process, thread, tid, g, t_ns, record } = *envelope;
        let origin = Origin { process, thread, tid };
        match record {
            Record::Begin { api, depth, context, stack, args, blobs } => {
                let mut call = Call::begin(g, t_ns, origin, api, context, args, blobs);
                call.stack = stacks.id(process, stack);
                self.begin(call, depth, now);
                None
            }
            Record::End { begin, api: _, result, outs } => {
                let outs = FewWords::new(outs.iter());
                self.end(thread, begin, Return { exit: g, end_ns: t_ns, result, outs })
            }
            Record::HostFunctionBegin { op } => {
                let run = HostRun { g, origin, enqueued: op, start_ns: t_ns, ended: None };
                self.host_run_begin(run, now);
                None
            }
            Record::HostFunctionEnd { op } => self.host_run_end(thread, op, g, t_ns),
            Record::Kernel { function, name, params, module, library } => {
                let params = params.map(|layout| layout.iter().collect());
                let home = if module != 0 { module } else { library };
                let first = FirstLaunch { origin, function, name: name.into(), params, home };
                self.push(g, now, true, Ready::Kernel(first));
                None
            }
            Record::Image { op, image } => {
                if let Some(Slot { ready: Ready::Call(call), .. }) = self.waiting(op) {
                    call.images.push((&image).into());
                }
                None
            }
            Record::Graph(part) => {
                self.graph_part(thread, &part);
                None
            }
            Record::Host { call, stack, args, text } => {
                let mut event = HostEvent::new((g, t_ns), origin, call, args, text);
                event.stack = stacks.id(process, stack);
                self.host(event, now);
                None
            }
            Record::HostReturn { host, result } => {
                self.host_return(thread, host, HostReturn { exit: g, end_ns: t_ns, result })
            }
            Record::Accesses { .. }
            | Record::Measured { .. }
            | Record::NotMeasured { .. }
            | Record::Object(_)
            | Record::Stack { .. } => None,
        }
    }

    /// Keeps a part of a graph for its call.
    fn graph_part(&mut self, thread: ThreadKey, part: &GraphPart<'_>) {
        let Some(op) = ReadBack::call_of(part) else {
            self.read_back.entry(thread).or_default().add(part);
            return;
        };
        if let Some(Slot { ready: Ready::Call(call), .. }) = self.waiting(op) {
            call.read_back.get_or_insert_default().add(part);
        }
    }

    /// A call was entered, inside `depth` others of the runtime's.
    pub(crate) fn begin(&mut self, mut call: Call, depth: u8, now: Instant) {
        if !self.read_back.is_empty() {
            call.read_back = self.read_back.remove(&call.thread);
        }
        call.of_library =
            !self.collectives.is_empty() && self.collectives.contains_key(&call.thread);
        if self.enter(call.thread, depth, call.g) {
            self.push(call.g, now, false, Ready::Call(call));
        }
    }

    /// The call entered at `begin` has returned.
    pub(crate) fn end(
        &mut self,
        thread: ThreadKey,
        begin: u64,
        returned: Return,
    ) -> Option<TraceItem> {
        self.leave(thread, begin);
        self.returned(begin, returned)
    }

    fn host_run_begin(&mut self, run: HostRun, now: Instant) {
        let frame = Frame::HostRun { op: run.enqueued, g: run.g };
        self.frames.entry(run.origin.thread).or_default().push(frame);
        self.push(run.g, now, false, Ready::HostRun(run));
    }

    fn push(&mut self, g: u64, arrived: Instant, complete: bool, ready: Ready) {
        self.queue.push_back(Slot { g, arrived, complete, ready });
    }

    /// Notes that a thread entered a call. Answers whether the program itself made it: what the
    /// driver calls while it serves the program is no doing of the program's.
    fn enter(&mut self, thread: ThreadKey, depth: u8, g: u64) -> bool {
        let frames = self.frames.entry(thread).or_default();
        if depth == 0 {
            // Calls still open above the last host function never returned: the thread jumped
            // out of it, or the record was lost.
            while matches!(frames.last(), Some(Frame::Call { .. })) {
                frames.pop();
            }
        }
        // A host function may be run inside a call that waits for it; what it calls is the
        // program's own doing.
        let own = !matches!(frames.last(), Some(Frame::Call { .. }));
        frames.push(Frame::Call { g });
        own
    }

    fn leave(&mut self, thread: ThreadKey, begin: u64) {
        let Some(frames) = self.frames.get_mut(&thread) else { return };
        if let Some(at) = frames.iter().rposition(|frame| *frame == Frame::Call { g: begin }) {
            frames.truncate(at);
        }
        if frames.is_empty() {
            self.frames.remove(&thread);
        }
    }

    fn waiting(&mut self, g: u64) -> Option<&mut Slot> {
        // Most calls return before another one is entered.
        let at = match self.queue.back() {
            Some(slot) if slot.g == g => self.queue.len() - 1,
            _ => self.queue.binary_search_by_key(&g, |slot| slot.g).ok()?,
        };
        self.queue.get_mut(at)
    }

    fn returned(&mut self, begin: u64, returned: Return) -> Option<TraceItem> {
        if let Some(slot) = self.waiting(begin) {
            if let Ready::Call(call) = &mut slot.ready {
                call.returned = Some(returned);
                slot.complete = true;
            }
            return None;
        }
        self.running.remove(&begin)?;
        self.failed_late |= returned.result != 0;
        Some(TraceItem::Returned {
            g: OpSeq(begin),
            exit: OpSeq(returned.exit),
            status: Status(returned.result),
        })
    }

    fn host_run_end(
        &mut self,
        thread: ThreadKey,
        op: u64,
        exit: u64,
        end_ns: u64,
    ) -> Option<TraceItem> {
        let frames = self.frames.get_mut(&thread)?;
        let is_it = |f: &Frame| matches!(f, Frame::HostRun { op: o, .. } if *o == op);
        let at = frames.iter().rposition(is_it)?;
        let Frame::HostRun { g, .. } = frames[at] else { return None };
        frames.truncate(at);
        if frames.is_empty() {
            self.frames.remove(&thread);
        }
        if let Some(slot) = self.waiting(g) {
            if let Ready::HostRun(run) = &mut slot.ready {
                run.ended = Some((exit, end_ns));
                slot.complete = true;
            }
            return None;
        }
        Some(TraceItem::Returned { g: OpSeq(g), exit: OpSeq(exit), status: Status::SUCCESS })
    }

    /// The oldest thing that can be resolved now.
    pub(crate) fn next(&mut self, now: Instant, policy: &dyn Policy) -> Option<Ready> {
        let slot = self.queue.front()?;
        if !slot.complete {
            let age = now.saturating_duration_since(slot.arrived);
            let (process, api) = match &slot.ready {
                Ready::Call(call) => (call.process, Some(call.api)),
                Ready::HostRun(run) => (run.origin.process, None),
                Ready::Host(event) => (event.origin.process, None),
                Ready::Kernel(first) => (first.origin.process, None),
            };
            let needs_return = api.is_some_and(|api| policy.needs_return(api));
            let ended = age > PATIENCE && policy.has_ended(process);
            let too_long = self.queue.len() > MOST_WAITING || age > PATIENCE;
            let far_too_long = self.queue.len() > MOST_WAITING_EVER && age > LAST_PATIENCE;
            if !(ended || far_too_long || (too_long && !needs_return)) {
                return None;
            }
        }
        self.pop()
    }

    /// The oldest thing, returned or not: nothing more will come.
    pub(crate) fn pop(&mut self) -> Option<Ready> {
        let slot = self.queue.pop_front()?;
        if !slot.complete
            && let Ready::Call(call) = &slot.ready
        {
            self.running.insert(call.g, call.api);
        }
        Some(slot.ready)
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether a call failed that had been handed over as if it succeeded.
    pub(crate) fn failed_late(&self) -> bool {
        self.failed_late
    }
}

#[cfg(test)]
mod tests;
