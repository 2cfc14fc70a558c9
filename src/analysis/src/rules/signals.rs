//! Stream memory operations and external semaphores: signals, and waits for signals. Source: Driver
//! API, Stream Memory Operations, External Resource Interoperability.
//!
//! A wait is behind the signal that satisfies it. A trace does not tell which signal that is. The
//! candidates are the signals issued before the wait whose value satisfies it, and that no other
//! write is known to have overwritten before the wait begins (`signalled`). With several
//! candidates, the wait is behind what all of them are behind. Without a candidate, another agent
//! must satisfy the wait: a later call, a kernel, another process (`outside`). Where it is not
//! certain whether the candidates were overwritten, both cases hold: the wait may be for a
//! candidate or for an outside agent.
//!
//! Invariant: a wait gets no edge that one of its candidates does not give.

use crate::clock::{Agent, Know, Part};
use crate::core::{Core, View};
use crate::lints::Call;
use crate::overlap::common_bytes;
use crate::record::{Place, Role, shifted};
use crate::signalled::{Object, What, Write};
use crate::touch::{Site, mapping};
use crate::{Rule, Sink};
use std::collections::BTreeSet;
use std::sync::Arc;
use streamsan_model::{
    Access, Basis, ByteRange, EdgeKind, Extent, Mode, OpSeq, Operation, RaceClass, SignalObject,
    SignalOperation, Signals, StreamId, Tier,
};

/// Width in bytes of the widest word that a stream can wait for.
const WIDEST: u64 = 8;

/// The order that a wait gets.
#[derive(Debug, Default)]
pub(crate) struct Waited {
    /// The order by signals that the stream does not know already.
    pub(crate) order: Option<BySignals>,
    /// Whether the awaited agent is unknown: it may be one outside of the recording.
    pub(crate) is_from_outside: bool,
}

impl Waited {
    const FROM_OUTSIDE: Self = Self { order: None, is_from_outside: true };
}

/// The order that signals make.
#[derive(Debug)]
pub(crate) struct BySignals {
    /// The knowledge that all candidate signals have in common.
    pub(crate) know: Know,
    /// One of the signals, for a lint.
    pub(crate) call: Call,
    pub(crate) stream: StreamId,
}

/// Stream memory operations and external semaphores: one operation of its stream, whose parts take
/// place in order. Documented: Driver API, Stream Memory Operations, External Resource
/// Interoperability.
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
                let waited = wait(core, op, &before, operation, sink);
                if let Some(by) = waited.order {
                    Arc::make_mut(&mut know).join(&by.know);
                    core.note_foreign(chain.context, stream, op.process);
                    let memory = matches!(object_of(operation), SignalObject::Memory { .. });
                    // Signal and wait order memory, but CUDA does not see that order.
                    if memory && core.memop_pairs.insert((by.stream, stream)) {
                        let class = RaceClass::MemopOnlyOrder;
                        core.lint(op, class, None, Some(&by.call), sink);
                    }
                }
                if waited.is_from_outside {
                    core.outside.note(chain, op.g);
                }
            }
        }
    }
    if let Some(state) = core.stream_mut(stream) {
        state.know = know;
    }
}

/// The role of an access: what the operations use the accessed word for.
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

/// `cuStreamWriteValue32`: "a system-wide memory fence is performed before the write", unless a
/// flag switches the fence off; then the value tells nothing of earlier work. Documented: Driver
/// API, Stream Memory Operations. An external semaphore is signalled once the earlier work is done.
pub(crate) fn signal(
    core: &mut Core,
    op: &Operation,
    stream: StreamId,
    operation: SignalOperation,
    part: Part,
) {
    let SignalOperation::Signal { object: of, value, releases } = operation else { return };
    let object = object(core, of);
    let what = What::Signal { value, releases, stream, call: Call::of(op) };
    let view = View { agent: core.issuing_agent(), ..View::default() };
    let signal = Write::signal(part, view, op.process, what);
    let done = Arc::clone(&core.host(op.process).know);
    // With strict host threads another thread need not be behind what this thread did.
    let host = (!core.strict).then_some(Place::Host(core.issuer()));
    let signalled = core.signalled.entry(object).or_default();
    if let SignalObject::Memory { width, .. } = of {
        signalled.width = signalled.width.max(u64::from(width));
    }
    signalled.push(signal, &done, host);
}

/// A write by anything but a stream memory operation (a memset, a copy, a kernel, the host) to
/// words that have been signalled. An agent behind that write is not behind an earlier signal, for
/// the signal's value is gone. Driver API, `cuStreamWaitValue32`: the wait is for the value that is
/// there.
pub(crate) fn reset(core: &mut Core, op: &Operation, access: &Access, site: &Site<'_>) {
    if !core.applies(Rule::SignalReset) {
        return;
    }
    let mapping = mapping(&core.entities, access.allocation);
    let shift = mapping.map_or(0, |mapping| mapping.shift);
    let word = |start: u64| match mapping {
        Some(mapping) => Object::SharedWord(mapping.memory, start),
        None => Object::Word(access.allocation, start),
    };
    let is_sure = site.role == Role::Ordinary
        && access.mode != Mode::MayWrite
        && matches!(access.basis, Basis::Exact | Basis::Measured | Basis::Inferred);
    let placed = shifted(access.extent.hull(), shift);
    let words = word(placed.start.saturating_sub(WIDEST - 1))..word(placed.end);
    for (object, signalled) in core.signalled.range_mut(words) {
        let (Object::Word(_, start) | Object::SharedWord(_, start)) = *object else { continue };
        let bytes = ByteRange::with_len(start.wrapping_sub(shift), signalled.width);
        let written = common_bytes(&access.extent, &Extent::Range(bytes), bytes);
        if let Some(written) = written {
            let is_whole = written == bytes && is_one_run(&access.extent, bytes);
            let what = What::Reset { certain: is_sure && is_whole };
            let (place, view) = (site.place, site.view.clone());
            signalled.reset(Write { g: op.g, process: op.process, place, view, what });
        }
    }
}

/// Whether one run of an extent holds a whole word, where the extent holds the word's first and
/// last byte.
fn is_one_run(extent: &Extent, word: ByteRange) -> bool {
    match extent {
        Extent::Range(_) => true,
        Extent::Strided(pattern) => {
            let mut offset = word.start - pattern.start;
            if pattern.slices > 1 {
                offset %= pattern.slice_pitch;
            }
            if pattern.rows > 1 {
                offset %= pattern.pitch;
            }
            offset + word.len() <= pattern.width
        }
    }
}

/// `cuStreamWaitValue32`, `cuWaitExternalSemaphoresAsync`: the order of a wait that looks back from
/// `view`. Documented: Driver API, Stream Memory Operations: later work is behind the write that
/// satisfies the wait, with the fence that the write makes.
pub(crate) fn wait(
    core: &mut Core,
    op: &Operation,
    view: &View,
    operation: SignalOperation,
    sink: &mut dyn Sink,
) -> Waited {
    let SignalOperation::Wait { object: of, value, compare } = operation else {
        return Waited::default();
    };
    let (rule, width) = match of {
        SignalObject::Memory { width, .. } => (Rule::SignalWait, width),
        SignalObject::Semaphore(_) => (Rule::SemaphoreWait, 8),
    };
    if !core.applies(rule) {
        return Waited::default();
    }
    let object = object(core, of);
    let Some(signalled) = core.signalled.get(&object) else { return Waited::FROM_OUTSIDE };
    let met = signalled.met_by(view, value, compare, width);
    let is_from_outside = met.is_doubtful;
    if met.is_known {
        return Waited { order: None, is_from_outside };
    }
    if met.may_be_forgotten {
        return Waited::FROM_OUTSIDE;
    }
    let Some((newest, call, stream)) = met.signals.last().and_then(|write| named(write)) else {
        return Waited::FROM_OUTSIDE;
    };
    let releases = |write: &&Write| matches!(write.what, What::Signal { releases: true, .. });
    if !met.signals.iter().all(releases) {
        return Waited { order: None, is_from_outside };
    }
    let parts: Vec<Part> =
        met.signals.iter().filter_map(|signal| of_process(core, op, signal)).collect();
    let only = (parts.len() == 1).then_some(newest);
    let know = core.common_knowledge(&parts);
    if let Some(only) = only {
        core.edge(only, op.g, EdgeKind::Signal, Tier::Documented, sink);
    }
    Waited { order: Some(BySignals { know, call, stream }), is_from_outside }
}

/// A signal as lints and edges name it.
fn named(signal: &Write) -> Option<(OpSeq, Call, StreamId)> {
    match &signal.what {
        What::Signal { stream, call, .. } => Some((signal.g, call.clone(), *stream)),
        What::Reset { .. } => None,
    }
}

/// The point of a signal. A signal of another process is also behind what that process's host did
/// before it.
fn of_process(core: &Core, op: &Operation, signal: &Write) -> Option<Part> {
    let mut part = signal.part()?;
    // With strict host threads the point holds that knowledge already.
    if signal.process != op.process && !core.strict {
        let know = Arc::make_mut(&mut part.know);
        know.documented.raise_host(Agent(signal.process.0), part.g);
    }
    Some(part)
}

impl Core {
    /// The common knowledge of the points; the points themselves are included where they are in one
    /// line.
    fn common_knowledge(&self, parts: &[Part]) -> Know {
        if let [part] = parts {
            let mut know = Know::default();
            know.acquire(part);
            return know;
        }
        Know::common(parts, &self.slot_contexts)
    }
}

/// The pairs of streams that a lint has named; the signalling stream is first.
pub(crate) type MemopPairs = BTreeSet<(StreamId, StreamId)>;
