//! The resolver: tables of all processes, one call at a time.

mod late;

use super::code_accesses::Instances;
use super::gaps::{Gaps, Toucher};
use super::global_pointers;
use super::graphs;
use super::handlers::{Treatment, treatment};
use super::host;
use super::kernels::Kernels;
use super::ranges::Ranges;
use super::resolution::{LaunchNote, Resolution};
use super::sharing::SharedHandles;
use super::tables::{Ids, ProcessTables};
use crate::call::{Call, Origin};
use crate::host_event::HostEvent;
use crate::kernel_code::Codes;
use crate::launch::{CodeKnown, Targets};
use crate::measured::{ConcludedLaunch, LaunchedNode, Measuring};
use crate::merge::FirstLaunch;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use streamsan_model::{
    Access, Action, Entity, HostTime, OpSeq, Operation, Process, ProcessId, Status, Thread,
    ThreadId, TraceItem,
};
use streamsan_wire::{Access as Touched, Api, HostCall, ProcessKey, ThreadKey};

/// The name of operations that are a host function's run.
const HOST_FUNCTION: &str = "host function";

/// Former generations of an address that are kept: what launches touched may become known late.
const GENERATIONS: usize = 64;

struct KnownEntryPoint {
    name: Arc<str>,
    treatment: Treatment,
    per_thread: bool,
}

/// A host function on a host thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostRun {
    pub(crate) g: u64,
    pub(crate) origin: Origin,
    /// The call that enqueued it.
    pub(crate) enqueued: u64,
    pub(crate) start_ns: u64,
    /// Global index and time at its end.
    pub(crate) ended: Option<(u64, u64)>,
}

/// Whether a call reads or writes memory, rather than making or ending it.
fn moves_data(action: &Action) -> bool {
    matches!(
        action,
        Action::Launch { .. }
            | Action::LaunchMultiDevice(_)
            | Action::Copy(_)
            | Action::Memset { .. }
    )
}

/// Turns calls into trace items.
pub(crate) struct Resolver {
    known: Vec<KnownEntryPoint>,
    host_function: Arc<str>,
    /// Names by [`HostCall`].
    host_calls: Vec<Arc<str>>,
    processes: Vec<Option<ProcessTables>>,
    /// The ids of threads, by key: threads of the trace are numbered as they are declared, and not
    /// every thread that has a ring is (the measuring library's own, for one).
    threads: Vec<Option<ThreadId>>,
    kernels: Kernels,
    ids: Ids,
    shared: SharedHandles,
    gaps: Gaps,
    codes: Codes,
    instances: Instances,
    /// Launches that are to be looked at again.
    code_known: VecDeque<CodeKnown>,
    memory_depth: usize,
    /// Calls of a library whose exact accesses are not asked for.
    of_library: HashSet<u64>,
    /// How many of a launch's exact accesses, the first ones, came before its kernel's wait.
    exact_early: HashMap<u64, u32>,
    ranges: Ranges,
    /// The kernels that the run measures, where it does.
    measuring: Option<Measuring>,
}

impl Resolver {
    /// `exact_accesses`: whether what kernels have touched comes from elsewhere.
    pub(crate) fn new(exact_accesses: bool) -> Self {
        let known = Api::ALL.iter().map(|&api| {
            let (treatment, per_thread) = treatment(api);
            KnownEntryPoint { name: api.name().into(), treatment, per_thread }
        });
        Self {
            known: known.collect(),
            host_function: HOST_FUNCTION.into(),
            host_calls: HostCall::ALL.iter().map(|call| call.name().into()).collect(),
            processes: Vec::new(),
            threads: Vec::new(),
            kernels: Kernels::default(),
            ids: Ids::default(),
            shared: SharedHandles::default(),
            gaps: Gaps::default(),
            codes: Codes::new(exact_accesses),
            instances: Instances::default(),
            code_known: VecDeque::new(),
            memory_depth: GENERATIONS,
            of_library: HashSet::new(),
            exact_early: HashMap::new(),
            ranges: Ranges::default(),
            measuring: None,
        }
    }

    /// The run measures these kernels.
    pub(crate) fn measure(&mut self, measuring: Measuring) {
        self.measuring = Some(measuring);
    }

    /// How many pieces are kept of what programs make and end.
    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        let of_process = |tables: &ProcessTables| {
            let handles = tables.streams.len() + tables.events.len() + tables.globals.len();
            let defaults = tables.legacy_streams.len() + tables.thread_streams.len();
            handles + defaults + tables.declared.len() + tables.memory.len() + tables.graphs.len()
        };
        let tables: usize = self.processes.iter().flatten().map(of_process).sum();
        tables + self.threads.len() + self.of_library.len() + self.exact_early.len()
    }

    /// The gaps so far.
    pub(crate) fn gaps(&self) -> &Gaps {
        &self.gaps
    }

    /// Whether memory turned out to be shared after it was used: what was said of it before has to
    /// be read with the last declaration of its allocation.
    pub(crate) fn shared_late(&self) -> bool {
        self.shared.was_late()
    }

    /// Whether a call's effect is modelled.
    pub(crate) fn understands(api: Api) -> bool {
        treatment(api).0.understood
    }

    /// Whether a call can only be resolved once it has returned.
    pub(crate) fn needs_return(&self, api: Api) -> bool {
        self.known[api as usize].treatment.needs_return
    }

    /// Declares a process; comes before its calls.
    pub(crate) fn process(&mut self, process: Process, items: &mut Vec<TraceItem>) {
        let index = process.id.index();
        if self.processes.len() <= index {
            self.processes.resize_with(index + 1, || None);
        }
        self.processes[index] = Some(ProcessTables::new(process.id, self.memory_depth));
        items.push(TraceItem::Entity(Entity::Process(process)));
    }

    fn origin(&mut self, origin: Origin, items: &mut Vec<TraceItem>) -> (ProcessId, ThreadId) {
        let Origin { process: ProcessKey(process), thread: ThreadKey(thread), tid } = origin;
        let (process, key) = (ProcessId(process), thread as usize);
        if self.processes.get(process.index()).is_none_or(Option::is_none) {
            // Its hello was lost; its calls are not.
            let unknown = Process {
                id: process,
                pid: 0,
                parent_pid: 0,
                executable: String::new(),
                arguments: Vec::new(),
            };
            self.process(unknown, items);
        }
        if self.threads.len() <= key {
            self.threads.resize(key + 1, None);
        }
        let ids = &mut self.ids;
        let thread = *self.threads[key].get_or_insert_with(|| {
            let id = ids.thread();
            items.push(TraceItem::Entity(Entity::Thread(Thread { id, process, tid })));
            id
        });
        (process, thread)
    }

    /// A handle stands for this kernel from now on.
    pub(crate) fn kernel(&mut self, first: &FirstLaunch, items: &mut Vec<TraceItem>) {
        let (process, _) = self.origin(first.origin, items);
        if let Some(Some(tables)) = self.processes.get_mut(process.index()) {
            tables.functions.tell(first);
        }
    }

    /// The context of a call; `None` for a process that nobody declared.
    fn resolution<'a>(
        &'a mut self,
        process: usize,
        call: &'a Call,
        items: &'a mut Vec<TraceItem>,
    ) -> Option<Resolution<'a>> {
        Some(Resolution {
            call,
            launched_nodes: None,
            thread: self.threads.get(call.thread.0 as usize).copied().flatten(),
            per_thread: false,
            tables: self.processes.get_mut(process)?.as_mut()?,
            ids: &mut self.ids,
            kernels: &mut self.kernels,
            shared: &mut self.shared,
            gaps: &mut self.gaps,
            codes: &mut self.codes,
            instances: &mut self.instances,
            written_until: None,
            targets: Targets::default(),
            items,
            captured: None,
            accesses: Vec::new(),
            launch: LaunchNote::default(),
            part: 0,
        })
    }

    /// Resolves a call: declarations of what it names for the first time, then the operation.
    /// `exact` are its accesses where they are known already.
    pub(crate) fn call(
        &mut self,
        call: &Call,
        exact: Option<&[Touched]>,
        items: &mut Vec<TraceItem>,
    ) {
        let before = items.len();
        let origin = Origin { process: call.process, thread: call.thread, tid: call.tid };
        let (process, thread) = self.origin(origin, items);
        let known = &self.known[call.api as usize];
        let (api, per_thread, handler) =
            (known.name.clone(), known.per_thread, known.treatment.handler);
        let (mut action, mut accesses) = (Action::Other, Vec::new());
        let (mut note, mut nodes) = (LaunchNote::default(), None);
        if self.measuring.is_some() {
            self.gaps.put_aside();
        }
        if let Some(mut resolution) = self.resolution(process.index(), call, items) {
            resolution.per_thread = per_thread;
            action = handler(&mut resolution).unwrap_or(Action::Other);
            if let Some(stream) = resolution.captured.filter(|_| call.succeeded()) {
                graphs::captured(&mut resolution, stream);
                resolution.accesses.clear();
                action = Action::Captured { stream };
            }
            if call.succeeded() {
                global_pointers::call(&mut resolution, &action);
                accesses = resolution.accesses;
            }
            note = resolution.launch;
            nodes = resolution.launched_nodes;
        }
        // The accesses of a collective operation are known from itself.
        let internal = call.of_library && moves_data(&action);
        if internal {
            accesses.clear();
            self.of_library.insert(call.g);
        }
        let mut early = 0;
        if let Some(touched) = exact.filter(|_| !internal) {
            (accesses, early) = self.exact_accesses(call.process, call.g, touched, items);
        }
        if let Action::Launch { control, .. } = &mut action
            && self.codes.exact
        {
            // The code counts other accesses.
            control.early = early;
        }
        self.note_launch(call, &action, internal, &accesses, (note, nodes), &items[before..]);
        items.push(TraceItem::Operation(Operation {
            g: OpSeq(call.g),
            exit: call.returned.map(|r| OpSeq(r.exit)),
            process,
            thread,
            api,
            time: Some(HostTime {
                start_ns: call.start_ns,
                end_ns: call.returned.map_or(call.start_ns, |r| r.end_ns),
            }),
            status: Status(call.result()),
            action,
            accesses,
            stack: call.stack,
        }));
        self.note_uses(&items[before..]);
    }

    /// Where kernels are measured: notes a launch whose bytes are to come, with the gaps that these
    /// may close. `declared` are the declarations in front of it.
    fn note_launch(
        &mut self,
        call: &Call,
        action: &Action,
        internal: bool,
        accesses: &[Access],
        (note, nodes): (LaunchNote, Option<Arc<[LaunchedNode]>>),
        declared: &[TraceItem],
    ) {
        let Some(measuring) = &mut self.measuring else { return };
        let mut gaps = self.gaps.take_aside();
        measuring.declared(declared);
        if let Action::Launch { kernel, control, .. } = action
            && call.succeeded()
            && !internal
        {
            let concluded = ConcludedLaunch {
                accesses: accesses.to_vec(),
                early: control.early,
                unseen: note.unseen,
            };
            gaps = measuring.launched(call.g, *kernel, concluded, note.awaits_code, gaps);
        } else if let Some(nodes) = nodes {
            gaps = measuring.gaps_of_nodes(gaps);
            if call.succeeded() && matches!(action, Action::GraphLaunch { .. }) {
                measuring.graph_launched(call.g, &nodes);
            }
        }
        self.gaps.add(gaps);
    }

    /// Notes what is used of memory of unknown origin.
    fn note_uses(&mut self, items: &[TraceItem]) {
        for item in items {
            match item {
                TraceItem::Operation(Operation { g, accesses, .. }) => {
                    self.gaps.touched(Toucher::Operation(*g), accesses);
                }
                TraceItem::Entity(Entity::Graph(graph)) => {
                    let accesses = graph.nodes.iter().flat_map(|node| &node.accesses);
                    self.gaps.touched(Toucher::Graph(graph.id), accesses);
                }
                _ => {}
            }
        }
    }

    /// Resolves the run of a host function.
    pub(crate) fn host_run(&mut self, run: &HostRun, items: &mut Vec<TraceItem>) {
        let (process, thread) = self.origin(run.origin, items);
        items.push(TraceItem::Operation(Operation {
            g: OpSeq(run.g),
            exit: run.ended.map(|(g, _)| OpSeq(g)),
            process,
            thread,
            api: self.host_function.clone(),
            time: Some(HostTime {
                start_ns: run.start_ns,
                end_ns: run.ended.map_or(run.start_ns, |(_, ns)| ns),
            }),
            status: Status::SUCCESS,
            action: Action::HostFunctionRun { enqueued: OpSeq(run.enqueued) },
            accesses: Vec::new(),
            stack: None,
        }));
    }

    /// No more events come: ranges that are open did not end.
    pub(crate) fn end_ranges(&mut self, items: &mut Vec<TraceItem>) {
        self.ranges.end(items);
    }

    /// Resolves what a host thread says of itself.
    pub(crate) fn host(&mut self, event: &HostEvent, items: &mut Vec<TraceItem>) {
        let before = items.len();
        let (process, thread) = self.origin(event.origin, items);
        if self.ranges.take(event, (process, thread), items) {
            return;
        }
        let call = event.as_call(host::context(event));
        let Some(mut resolution) = self.resolution(process.index(), &call, items) else { return };
        let Some(action) = host::resolve(&mut resolution, event) else { return };
        let accesses = if event.succeeded() { resolution.accesses } else { Vec::new() };
        items.push(TraceItem::Operation(Operation {
            g: OpSeq(event.g),
            exit: match (event.returned, event.call.returns()) {
                (Some(returned), _) => Some(OpSeq(returned.exit)),
                (None, true) => None,
                (None, false) => Some(OpSeq(event.g)),
            },
            process,
            thread,
            api: self.host_calls[event.call as usize].clone(),
            time: Some(HostTime {
                start_ns: event.start_ns,
                end_ns: event.returned.map_or(event.start_ns, |r| r.end_ns),
            }),
            status: if event.succeeded() { Status::SUCCESS } else { Status(-1) },
            action,
            accesses,
            stack: event.stack,
        }));
        self.note_uses(&items[before..]);
    }
}
