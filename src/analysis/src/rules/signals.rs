//! Stream memory operations and external semaphores: signals, and waits for them.
//!
//! A wait is behind the signal that satisfies it. Which one that is, a trace does not tell: of the
//! signals issued before, those count whose value satisfies the wait and that are not known to be
//! overwritten when it begins. Where several do, the wait is behind what all of them are behind.
//! Where none does, somebody else must: a later call, a kernel, another process (`outside`).

use crate::clock::{Agent, Know, Part};
use crate::core::{Core, View};
use crate::lints::Call;
use crate::record::{Place, Role};
use crate::touch::{Site, mapping};
use crate::{Rule, Sink};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use streamsan_model::{
    Access, AllocationId, BackingId, EdgeKind, Operation, ProcessId, RaceClass, SemaphoreId,
    SignalObject, SignalOperation, Signals, StreamId, Tier, ValueCompare,
};

/// Signals remembered for an object.
const REMEMBERED: usize = 256;
/// From so many on those that nobody can wait for any more are looked for.
const TIDY: usize = 32;

/// What a signal is set on, whichever address it is reached by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Object {
    Semaphore(SemaphoreId),
    Word(AllocationId, u64),
    /// A word of memory that several address ranges stand for.
    SharedWord(BackingId, u64),
}

/// A signal that has been issued.
#[derive(Clone, Debug)]
struct Signal {
    value: u64,
    releases: bool,
    process: ProcessId,
    stream: StreamId,
    call: Call,
    part: Part,
}

impl Signal {
    /// Whether it comes after another one that was issued before it.
    fn is_behind(&self, other: &Self) -> bool {
        (self.part.chain == other.part.chain && self.part.g >= other.part.g)
            || self.part.know.documented.covers(other.part.chain, other.part.g)
    }
}

/// What has been signalled on an object.
#[derive(Debug, Default)]
pub(crate) struct Signalled {
    signals: VecDeque<Signal>,
    /// The greatest value that is not remembered.
    forgotten: Option<u64>,
}

/// What a wait is behind.
#[derive(Debug)]
pub(crate) enum Satisfied {
    /// Nothing that its stream does not know already.
    ByKnown,
    /// What these signals are all behind.
    By {
        know: Know,
        /// One of them, for a lint.
        call: Call,
        stream: StreamId,
    },
    /// Somebody else.
    FromOutside,
}

/// Stream memory operations, external semaphores: one operation of its stream. Its parts take place
/// in order. Documented: Driver API, Stream Memory Operations, External Resource Interoperability.
pub(crate) fn signals(core: &mut Core, op: &Operation, signals: &Signals, sink: &mut dyn Sink) {
    let stream = signals.stream;
    let view = core.enqueue(op, stream, sink);
    let Some((chain, _)) = view.own else { return };
    for access in &op.accesses {
        let role = role(&signals.operations, access);
        let site = Site { role, ..Site::stream(&view, stream, Place::Chain(chain)) };
        core.touch(op, access, &site);
    }
    let mut know = Arc::clone(&view.know);
    for &operation in &signals.operations {
        match operation {
            SignalOperation::Signal { .. } => {
                signal(core, op, stream, operation, Part { chain, g: op.g.0, know: know.clone() });
            }
            SignalOperation::Wait { .. } => {
                let before = View { know: Arc::clone(&know), ..view.clone() };
                match wait(core, op, &before, operation, sink) {
                    Satisfied::ByKnown => {}
                    Satisfied::By { know: news, stream: from, call, .. } => {
                        Arc::make_mut(&mut know).join(&news);
                        core.note_foreign(chain.context, stream, op.process);
                        let memory = matches!(object_of(operation), SignalObject::Memory { .. });
                        // Signal and wait order memory, but CUDA does not see that they do.
                        if memory && core.memop_pairs.insert((from, stream)) {
                            let class = RaceClass::MemopOnlyOrder;
                            core.lint(op, class, None, Some(&call), sink);
                        }
                    }
                    Satisfied::FromOutside => core.outside.note(chain, op.g),
                }
            }
        }
    }
    if let Some(state) = core.stream_mut(stream) {
        state.know = know;
    }
}

/// What the operations use the word for that an access of theirs is to.
pub(crate) fn role(operations: &[SignalOperation], access: &Access) -> Role {
    let start = access.extent.hull().start;
    let is_waited_for = |operation: &SignalOperation| {
        matches!(operation, SignalOperation::Wait {
            object: SignalObject::Memory { address, .. }, ..
        } if *address == start)
    };
    if operations.iter().any(is_waited_for) { Role::Awaited } else { Role::Signalled }
}

const fn object_of(operation: SignalOperation) -> SignalObject {
    match operation {
        SignalOperation::Signal { object, .. } | SignalOperation::Wait { object, .. } => object,
    }
}

fn object(core: &Core, object: SignalObject) -> Object {
    match object {
        SignalObject::Semaphore(semaphore) => Object::Semaphore(semaphore),
        SignalObject::Memory { allocation, address, .. } => {
            match mapping(&core.entities, allocation) {
                Some(mapping) => {
                    Object::SharedWord(mapping.memory, address.wrapping_add(mapping.shift))
                }
                None => Object::Word(allocation, address),
            }
        }
    }
}

/// `cuStreamWriteValue32`: "a system-wide memory fence is performed before the write", unless the
/// flag says not; then the value says nothing of earlier work. Documented: Driver API, Stream Memory
/// Operations. An external semaphore is signalled once the earlier work is done.
pub(crate) fn signal(
    core: &mut Core,
    op: &Operation,
    stream: StreamId,
    operation: SignalOperation,
    part: Part,
) {
    let SignalOperation::Signal { object: of, value, releases } = operation else { return };
    let object = object(core, of);
    let (call, process) = (Call::of(op), op.process);
    let done = Arc::clone(&core.host(process).know);
    let signalled = core.signalled.entry(object).or_default();
    signalled.signals.push_back(Signal { value, releases, process, stream, call, part });
    if signalled.signals.len() >= TIDY {
        signalled.tidy(&done);
    }
}

impl Signalled {
    /// Forgets signals that are overwritten for whoever comes, and beyond a bound the oldest.
    fn tidy(&mut self, done: &Know) {
        let one_process = self.signals.iter().all(|s| s.process == self.signals[0].process);
        if one_process {
            let over: Vec<bool> = (0..self.signals.len())
                .map(|i| {
                    self.signals.range(i + 1..).any(|later| {
                        done.documented.covers(later.part.chain, later.part.g)
                            && later.is_behind(&self.signals[i])
                    })
                })
                .collect();
            let mut over = over.into_iter();
            self.signals.retain(|_| !over.next().unwrap_or(false));
        }
        while self.signals.len() > REMEMBERED {
            let Some(oldest) = self.signals.pop_front() else { return };
            let next_is_behind = self.signals.front().is_some_and(|next| next.is_behind(&oldest));
            let greatest = self.forgotten.map_or(oldest.value, |value| value.max(oldest.value));
            // One that is not in a line with the others may be met by any wait.
            self.forgotten = Some(if next_is_behind { greatest } else { u64::MAX });
        }
    }

    /// Whether a wait may be satisfied by a signal that is not remembered.
    fn may_be_forgotten(&self, wanted: u64, compare: ValueCompare, knows: bool) -> bool {
        self.forgotten.is_some_and(|greatest| match compare {
            ValueCompare::GreaterOrEqual => greatest >= wanted,
            // The oldest remembered one has overwritten them, if the waiter is behind it.
            _ => !knows || greatest == u64::MAX,
        })
    }
}

/// `cuStreamWaitValue32`, `cuWaitExternalSemaphoresAsync`: what a wait that looks back from `view`
/// is behind. Documented: Driver API, Stream Memory Operations: later work is behind the write that
/// satisfies the wait, with the fence that the write makes.
pub(crate) fn wait(
    core: &mut Core,
    op: &Operation,
    view: &View,
    operation: SignalOperation,
    sink: &mut dyn Sink,
) -> Satisfied {
    let SignalOperation::Wait { object: of, value, compare } = operation else {
        return Satisfied::ByKnown;
    };
    let (rule, width) = match of {
        SignalObject::Memory { width, .. } => (Rule::SignalWait, width),
        SignalObject::Semaphore(_) => (Rule::SemaphoreWait, 8),
    };
    if !core.applies(rule) {
        return Satisfied::ByKnown;
    }
    let object = object(core, of);
    let Some(signalled) = core.signalled.get(&object) else { return Satisfied::FromOutside };
    let knows = |signal: &Signal| {
        view.own.is_some_and(|(own, _)| own == signal.part.chain)
            || view.know.documented.covers(signal.part.chain, signal.part.g)
    };
    let known: Vec<usize> =
        (0..signalled.signals.len()).filter(|&i| knows(&signalled.signals[i])).collect();
    let oldest_is_known = known.first() == Some(&0);
    let mut candidates: Vec<&Signal> = Vec::new();
    for (i, signal) in signalled.signals.iter().enumerate() {
        let overwritten = known.iter().any(|&j| j > i && signalled.signals[j].is_behind(signal));
        if !overwritten && compare.is_met_by(signal.value, value, width) {
            if known.binary_search(&i).is_ok() {
                return Satisfied::ByKnown;
            }
            candidates.push(signal);
        }
    }
    let Some(&newest) = candidates.last() else { return Satisfied::FromOutside };
    if signalled.may_be_forgotten(value, compare, oldest_is_known) {
        return Satisfied::FromOutside;
    }
    if candidates.iter().any(|signal| !signal.releases) {
        return Satisfied::ByKnown;
    }
    let parts: Vec<Part> = candidates.iter().map(|signal| of_process(core, op, signal)).collect();
    let only = (candidates.len() == 1).then_some(newest.call.g);
    let (call, stream) = (newest.call.clone(), newest.stream);
    let know = core.common_knowledge(&parts);
    if let Some(only) = only {
        core.edge(only, op.g, EdgeKind::Signal, Tier::Documented, sink);
    }
    Satisfied::By { know, call, stream }
}

/// A signal's point; one of another process is behind what that process's host did before it.
fn of_process(core: &Core, op: &Operation, signal: &Signal) -> Part {
    let mut part = signal.part.clone();
    // With strict host threads the point knows it already.
    if signal.process != op.process && !core.strict {
        let know = Arc::make_mut(&mut part.know);
        know.documented.raise_host(Agent(signal.process.0), signal.part.g);
    }
    part
}

impl Core {
    /// What all of the points are behind, themselves included where they are in one line.
    fn common_knowledge(&self, parts: &[Part]) -> Know {
        if let [part] = parts {
            let mut know = Know::default();
            know.acquire(part);
            return know;
        }
        Know::common(parts, &self.slot_contexts)
    }
}

/// The pairs of streams, signaller first, that a lint has named.
pub(crate) type MemopPairs = BTreeSet<(StreamId, StreamId)>;
