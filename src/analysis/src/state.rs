//! The state of streams, contexts and events between operations.
//!
//! Invariant: what a program repeats leaves nothing behind; histories for explanations are bounded
//! by `HISTORY`.

use crate::api_names::Api;
use crate::clock::{Agent, Chain, Know, Part};
use crate::lints::Call;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use streamsan_model::{
    ContextId, DeviceId, OpSeq, ProcessId, StackId, StreamId, StreamKind, ThreadId,
};

/// Number of waits and records that are kept for explanations; older ones are forgotten.
const HISTORY: usize = 32;

/// A stream.
#[derive(Debug)]
pub(crate) struct StreamState {
    pub(crate) id: StreamId,
    pub(crate) process: ProcessId,
    pub(crate) kind: StreamKind,
    pub(crate) chain: Chain,
    /// Whether a call ever told another agent how far the stream has come.
    pub(crate) is_told: bool,
    /// The stream's first operation; 0 before the first.
    pub(crate) first: u64,
    /// The stream's newest operation in `chain`; 0 before the first.
    pub(crate) last: u64,
    /// The stream's knowledge of everything but itself.
    pub(crate) know: Arc<Know>,
    /// The version of the host's knowledge that `know` includes.
    pub(crate) host_version: u64,
    /// The versions of the context's gates that `know` includes.
    pub(crate) gates_seen: [u64; 2],
    /// The newest legacy operation that `know` includes.
    pub(crate) legacy_seen: u64,
    /// Issue index of the stream's creation; 0 for a stream that is older than the trace.
    pub(crate) created: u64,
    /// A use of memory that the legacy stream has not checked (non-blocking streams only).
    pub(crate) beside: Option<Call>,
    /// Whether a lint has named that use already.
    pub(crate) named_beside: bool,
    /// Whether the stream is in its context's list of blocking streams with work since the last
    /// legacy operation.
    pub(crate) dirty: bool,
    /// The kernel that a launch with programmatic serialization may overlap.
    pub(crate) primary: Primary,
    /// Kernels beside the chain that nothing in the stream is ordered behind yet; the newest is
    /// last.
    pub(crate) open: SmallVec<[Part; 1]>,
    /// Chains for kernels beside the stream's chain, with the newest operation of each. A kernel
    /// may use a chain again if it is behind the newest operation there.
    pub(crate) side_chains: SmallVec<[(Chain, u64); 1]>,
    /// The chain for knowledge of events that launches record by attribute; no access lies in it.
    pub(crate) begin_chain: Option<Chain>,
    /// Kernels of other streams that the next kernel's wait covers: the stream is behind events
    /// that those kernels record by attribute.
    pub(crate) awaited: SmallVec<[Part; 1]>,
    /// The chain of the reads that copies make of pageable sources: the host may be behind such a
    /// read without being behind its copy.
    pub(crate) sources: SmallVec<[(Agent, Chain); 1]>,
    /// The work of the former users of the stream, which a stream pool has handed out again; only
    /// work that was not known to be done at the hand-out.
    pub(crate) former: SmallVec<[Part; 1]>,
    /// The chains of the former users.
    pub(crate) former_chains: Vec<Chain>,
    /// The newest call: its thread and its return, to detect overlapping calls.
    pub(crate) newest_call: Option<NewestCall>,
    /// The newest waits, for explanations.
    pub(crate) waits: Waits,
}

/// The newest kernel of a stream, as long as only records of events and waits for events have
/// followed it. Programming Guide, Programmatic Dependent Launch: a kernel may overlap "the
/// previous kernel in the stream".
#[derive(Clone, Debug)]
pub(crate) enum Primary {
    /// The newest work is no kernel: later work is behind all of it.
    None,
    /// A kernel in the stream's chain.
    InChain {
        /// The kernel's issue index.
        g: u64,
        /// The stream's newest operation before the kernel; the kernel is behind it.
        base: u64,
        /// Whether the kernel never triggers. Then its reads are done when its dependents begin.
        ends_first: bool,
    },
    /// The newest kernel beside the chain.
    Beside {
        /// The knowledge with which the kernel's dependents begin.
        start: Arc<Know>,
    },
}

/// The newest call on a stream.
#[derive(Debug)]
pub(crate) struct NewestCall {
    pub(crate) g: OpSeq,
    pub(crate) thread: ThreadId,
    pub(crate) exit: Option<OpSeq>,
    /// Whether another thread's call is known to overlap.
    pub(crate) overlapped: bool,
    /// The overlap flag that the call shares with its accesses; `None` before the first access.
    pub(crate) ambiguous: Option<Arc<AtomicBool>>,
}

/// A wait for an event, as explanations need it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) g: OpSeq,
    /// When the wait took effect: at once for a stream, at its return for the host; `None` while
    /// the call runs.
    pub(crate) done: Option<OpSeq>,
    pub(crate) event: usize,
    /// The record that the wait waits for; `None` when the event had none.
    pub(crate) record: Option<Record>,
}

/// The newest waits of a stream or of the host; older ones are forgotten.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits(VecDeque<Wait>);

impl Waits {
    pub(crate) fn push(&mut self, wait: Wait) {
        if self.0.len() == HISTORY {
            self.0.pop_front();
        }
        self.0.push_back(wait);
    }

    /// Completes a wait of the host.
    pub(crate) fn returned(&mut self, g: OpSeq, exit: OpSeq, success: bool) {
        self.0.retain(|wait| success || wait.g != g);
        self.0.iter_mut().filter(|wait| wait.g == g).for_each(|wait| wait.done = Some(exit));
    }

    /// The waits that were over before an operation, the newest first.
    pub(crate) fn before(&self, g: OpSeq) -> impl Iterator<Item = &Wait> {
        self.0.iter().rev().filter(move |wait| wait.done.is_some_and(|done| done < g))
    }
}

/// A record of an event, as explanations need it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) g: OpSeq,
    /// The stream of the record; `None` for a context-wide record.
    pub(crate) stream: Option<StreamId>,
}

impl StreamState {
    pub(crate) fn new(id: StreamId, process: ProcessId, kind: StreamKind, chain: Chain) -> Self {
        Self {
            id,
            process,
            kind,
            chain,
            is_told: false,
            first: 0,
            last: 0,
            know: Arc::default(),
            host_version: 0,
            gates_seen: [0; 2],
            legacy_seen: 0,
            created: 0,
            beside: None,
            named_beside: false,
            dirty: false,
            primary: Primary::None,
            open: SmallVec::new(),
            side_chains: SmallVec::new(),
            sources: SmallVec::new(),
            begin_chain: None,
            awaited: SmallVec::new(),
            former: SmallVec::new(),
            former_chains: Vec::new(),
            newest_call: None,
            waits: Waits::default(),
        }
    }

    /// Issue index of the stream's newest operation, in its chain or beside it.
    pub(crate) fn newest(&self) -> u64 {
        self.open.iter().map(|part| part.g).max().unwrap_or(0).max(self.last)
    }

    /// The stream's newest operation, the kernels beside it, and the work of the stream's former
    /// users.
    pub(crate) fn parts(&self) -> SmallVec<[Part; 1]> {
        let mut parts = self.own_parts();
        parts.extend(self.former.iter().cloned());
        parts
    }

    /// The stream's newest operation and the kernels beside it.
    pub(crate) fn own_parts(&self) -> SmallVec<[Part; 1]> {
        let mut parts = SmallVec::new();
        if self.last > 0 {
            parts.push(Part { chain: self.chain, g: self.last, know: Arc::clone(&self.know) });
        }
        parts.extend(self.open.iter().cloned());
        parts
    }
}

/// Which streams a context's gate holds back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    /// All streams of the context.
    All = 0,
    /// The context's blocking streams, its legacy stream included.
    Blocking = 1,
}

/// The work that later operations of a set of streams are behind.
#[derive(Clone, Debug, Default)]
pub(crate) struct GateState {
    pub(crate) version: u64,
    pub(crate) know: Know,
}

/// A context.
#[derive(Debug)]
pub(crate) struct ContextState {
    pub(crate) device: DeviceId,
    pub(crate) process: ProcessId,
    /// Used streams, in the order of their first use.
    pub(crate) streams: Vec<StreamId>,
    /// Blocking streams with work since the last legacy operation.
    pub(crate) dirty: Vec<StreamId>,
    /// Non-blocking streams with a use of memory that the legacy stream has not checked.
    pub(crate) beside: Vec<StreamId>,
    /// Streams that have learnt something of other contexts by themselves.
    pub(crate) foreign: Vec<StreamId>,
    /// The legacy stream, once it has been used.
    pub(crate) legacy: Option<StreamId>,
    /// The chain of the returns of copies whose write may still be running at the return.
    pub(crate) returns: Option<Chain>,
    pub(crate) gates: [GateState; 2],
    /// The used green contexts of this primary context.
    pub(crate) green: Vec<ContextId>,
}

/// An event: the work that its newest record captured, and its history for explanations.
#[derive(Debug, Default)]
pub(crate) struct EventState {
    pub(crate) captured: Option<Captured>,
    pub(crate) records: VecDeque<Record>,
    /// The newest record, until an agent waits for it.
    pub(crate) unconsumed: Option<Unconsumed>,
}

/// A call and its entry point.
pub(crate) type NumberedCall = (OpSeq, Api, Option<StackId>);

/// A record that nothing has waited for yet.
#[derive(Clone, Debug)]
pub(crate) struct Unconsumed {
    pub(crate) call: NumberedCall,
    pub(crate) stream: StreamId,
    /// A record on another stream that this record has replaced before anything waited for it.
    pub(crate) replaces: Option<(NumberedCall, SmallVec<[Part; 1]>)>,
}

/// A version of an event.
#[derive(Clone, Debug)]
pub(crate) struct Captured {
    pub(crate) record: Record,
    pub(crate) context: ContextId,
    /// The process that recorded the version.
    pub(crate) process: ProcessId,
    pub(crate) parts: SmallVec<[Part; 1]>,
    /// Kernels that the wait of a kernel behind the event covers (`griddepcontrol.wait`).
    pub(crate) awaited: SmallVec<[Part; 1]>,
}

impl EventState {
    pub(crate) fn capture(&mut self, captured: Captured) {
        if self.records.len() == HISTORY {
            self.records.pop_front();
        }
        self.records.push_back(captured.record);
        self.captured = Some(captured);
    }
}
