//! Items to lines.
//!
//! Lines are numbered anew, so operations keep their order and not their numbers. Calls that the
//! grammar cannot express become comments: calls without order and accesses, copies whose memory is
//! unknown, and captured calls (the lines of the graph hold their nodes).

use crate::api;
use crate::scope::primary_name;
use names::Names;
use plan::Plan;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;
use streamsan_model::{
    Action, AllocationId, ByteRange, ContextId, Copy, Entities, FileBatchId, LaunchEventKind,
    MemoryKind, OpSeq, Operation, ProcessId, Status, StreamId, StreamKind, ThreadId, TraceItem,
};

mod accesses;
mod calls;
mod declare;
mod graphs;
mod names;
mod plan;

/// The text form of a trace.
pub fn write(items: &[TraceItem]) -> String {
    let mut writer = Writer {
        plan: Plan::of(items),
        entities: Entities::default(),
        names: Names::default(),
        threads: HashMap::new(),
        lines: HashMap::new(),
        freed: BTreeMap::new(),
        graphs: graphs::GraphNames::default(),
        file_batches: HashSet::new(),
        waiting: Vec::new(),
        text: String::new(),
        line: 0,
    };
    for item in items {
        match item {
            TraceItem::Entity(entity) => writer.entity(entity),
            TraceItem::Operation(operation) => writer.operation(operation),
            // The operation itself stands on one line, its return included. A text trace has no ranges.
            TraceItem::Returned { .. } | TraceItem::Range(_) => {}
        }
    }
    writer.text
}

struct Writer {
    plan: Plan,
    entities: Entities,
    names: Names,
    /// Numbers behind `P` and `T`.
    threads: HashMap<ThreadId, (u32, u32)>,
    /// Lines of operations.
    lines: HashMap<OpSeq, u64>,
    /// Freed buffers by the address of their first byte; the newest of each address.
    freed: BTreeMap<u64, (AllocationId, ByteRange)>,
    graphs: graphs::GraphNames,
    /// Batches of file transfers whose submission is written.
    file_batches: HashSet<FileBatchId>,
    /// Declarations that must stand behind the line that makes their context.
    waiting: Vec<(ContextId, String)>,
    text: String,
    line: u64,
}

/// A line that cannot be written, and why.
struct Inexpressible(&'static str);

type Written<T> = Result<T, Inexpressible>;

/// The words of a call and the entry point that the verb stands for.
struct Words {
    text: String,
    usual: String,
}

impl Writer {
    fn push_line(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
        self.line += 1;
    }

    fn operation(&mut self, operation: &Operation) {
        if self.plan.is_in_graph(operation) {
            return;
        }
        let line = match self.call(operation) {
            Ok(words) => {
                operation.accesses.iter().for_each(|access| self.introduce(access.allocation));
                if let Action::Free { allocation, .. } = operation.action {
                    self.introduce(allocation);
                }
                let mut line = self.issuer(operation);
                line.push_str(&words.text);
                // The line that makes a buffer bears its entry point already.
                let bears_api = matches!(operation.action, Action::Allocate { .. });
                if *operation.api != words.usual && !bears_api && !operation.api.is_empty() {
                    let _ =
                        write!(line, " api={}", operation.api.replace(char::is_whitespace, "_"));
                }
                let is_busy = line.ends_with(" busy");
                if !operation.status.is_success() && !is_busy {
                    let _ = write!(line, " status={}", operation.status.0);
                }
                line
            }
            Err(Inexpressible(why)) => format!("# {}: {why}", operation.api),
        };
        let is_call = !line.starts_with('#');
        self.push_line(&line);
        if is_call {
            self.lines.insert(operation.g, self.line);
        }
        if let Action::ContextCreate { context } = operation.action {
            self.context_made(context);
        }
    }

    /// `T2: `, `P2: ` or `P2T2: `, or nothing for the first thread of the first process.
    fn issuer(&mut self, operation: &Operation) -> String {
        let process = self.plan.process_number(operation.process);
        let next = self.threads.values().filter(|(of, _)| *of == process).count() as u32 + 1;
        let (_, thread) = *self.threads.entry(operation.thread).or_insert((process, next));
        match (process, thread) {
            (1, 1) => String::new(),
            (1, thread) => format!("T{thread}: "),
            (process, 1) => format!("P{process}: "),
            (process, thread) => format!("P{process}T{thread}: "),
        }
    }

    /// The prefix of a process's lines.
    fn process_prefix(&self, process: ProcessId) -> String {
        match self.plan.process_number(process) {
            1 => String::new(),
            number => format!("P{number}: "),
        }
    }

    fn call(&mut self, operation: &Operation) -> Written<Words> {
        let words = |text: String, usual: &str| Ok(Words { text, usual: usual.to_owned() });
        match operation.action.clone() {
            Action::ContextCreate { context } => {
                let name = self.context(context)?;
                let of = self.entities.context(context).cloned().ok_or(UNDECLARED)?;
                let usual = match (of.primary, of.parent) {
                    (true, _) => "cuDevicePrimaryCtxRetain",
                    (false, Some(_)) => "cuGreenCtxCreate",
                    (false, None) => "cuCtxCreate_v2",
                };
                words(format!("context {}{}", names::local(&name), self.context_traits(&of)), usual)
            }
            Action::ContextDestroy { context } => {
                let primary = self.entities.context(context).is_some_and(|c| c.primary);
                let usual = if primary { "cuDevicePrimaryCtxReset_v2" } else { "cuCtxDestroy_v2" };
                words(format!("destroy_context {}", self.context(context)?), usual)
            }
            Action::ContextSynchronize { context } => {
                words(format!("sync_ctx {}", self.context(context)?), "cuCtxSynchronize")
            }
            Action::ContextRecordEvent { context, event } => {
                let (event, context) = (self.names.of_event(event), self.context(context)?);
                words(format!("record_ctx {event} {context}"), "cuCtxRecordEvent")
            }
            Action::ContextWaitEvent { context, event } => {
                let (event, context) = (self.names.of_event(event), self.context(context)?);
                words(format!("wait_ctx {context} {event}"), "cuCtxWaitEvent")
            }
            Action::StreamCreate { stream } => {
                let line = self.stream_line(stream);
                let usual = match line.contains(" priority=") {
                    true => "cuStreamCreateWithPriority",
                    false => "cuStreamCreate",
                };
                words(line, usual)
            }
            Action::StreamDestroy { stream } => {
                let name = self.stream(stream, operation.thread)?;
                words(format!("destroy_stream {name}"), "cuStreamDestroy_v2")
            }
            Action::StreamSynchronize { stream } => {
                let name = self.stream(stream, operation.thread)?;
                words(format!("sync_stream {name}"), "cuStreamSynchronize")
            }
            Action::StreamQuery { stream } => {
                let name = self.stream(stream, operation.thread)?;
                words(format!("query_stream {name}{}", busy(operation)), "cuStreamQuery")
            }
            Action::StreamWaitEvent { stream, event } => {
                let name = self.stream(stream, operation.thread)?;
                let event = self.names.of_event(event);
                words(format!("wait {name} {event}"), "cuStreamWaitEvent")
            }
            Action::EventCreate { event } => {
                let of = self.entities.event(event).cloned().ok_or(UNDECLARED)?;
                let usual = if of.imported { "cuIpcOpenEventHandle" } else { "cuEventCreate" };
                words(self.event_line(&of), usual)
            }
            Action::EventDestroy { event } => {
                words(format!("destroy_event {}", self.names.of_event(event)), "cuEventDestroy_v2")
            }
            Action::EventRecord { event, stream } => {
                let name = self.stream(stream, operation.thread)?;
                let event = self.names.of_event(event);
                words(format!("record {event} {name}"), "cuEventRecord")
            }
            Action::EventSynchronize { event } => {
                words(format!("sync_event {}", self.names.of_event(event)), "cuEventSynchronize")
            }
            Action::EventQuery { event } => {
                let event = self.names.of_event(event);
                words(format!("query_event {event}{}", busy(operation)), "cuEventQuery")
            }
            Action::EventElapsedTime { start, end } => {
                let (start, end) = (self.names.of_event(start), self.names.of_event(end));
                words(format!("elapsed {start} {end}"), "cuEventElapsedTime")
            }
            Action::Allocate { allocation, stream } => self.allocate(allocation, stream, operation),
            Action::Free { allocation, stream } => self.free(allocation, stream, operation),
            Action::Launch { .. } => self.launch(operation),
            Action::Copy(copy) => self.copy(copy, operation),
            Action::Memset { .. } => self.memset(operation),
            Action::HostFunction { stream } => {
                let name = self.stream(stream, operation.thread)?;
                let accesses = self.accesses(operation)?;
                words(format!("host_fn {name}{accesses}"), "cuLaunchHostFunc")
            }
            Action::HostFunctionRun { enqueued } => {
                const UNKNOWN: Inexpressible =
                    Inexpressible("its host function is not in the trace");
                let line = *self.lines.get(&enqueued).ok_or(UNKNOWN)?;
                let accesses = self.accesses(operation)?;
                words(format!("run_host_fn {line}{accesses}"), api::HOST_FUNCTION)
            }
            Action::HostAccess => self.host_access(operation),
            Action::GraphInstantiate { executable, graph } => {
                let succeeds = operation.status.is_success();
                let usual = "cuGraphInstantiateWithFlags";
                self.instantiate(executable, graph, "instantiate", usual, succeeds)
            }
            Action::GraphUpdate { executable, graph } => {
                let succeeds = operation.status.is_success();
                self.instantiate(executable, graph, "update", "cuGraphExecUpdate_v2", succeeds)
            }
            Action::GraphLaunch { stream, executable, graph } => {
                self.launch_graph(stream, executable, graph, operation)
            }
            Action::GraphUpload { stream, executable } => {
                let executable = self.executable(executable)?;
                let stream = self.stream(stream, operation.thread)?;
                words(format!("upload_graph {executable} {stream}"), "cuGraphUpload")
            }
            Action::GraphDestroy { executable } => words(
                format!("destroy_graph {}", self.executable(executable)?),
                "cuGraphExecDestroy",
            ),
            _ => self.other_call(operation),
        }
    }

    fn allocate(
        &mut self,
        id: AllocationId,
        stream: Option<StreamId>,
        operation: &Operation,
    ) -> Written<Words> {
        let name = stream.map(|s| self.stream(s, operation.thread)).transpose()?;
        let buffer = self.entities.allocation(id).cloned().ok_or(UNDECLARED)?;
        let mut text = self.buffer_line(&buffer, name.as_deref());
        let range = buffer.range;
        let below = self.freed.range(..=range.start).next_back();
        let is_region = buffer.kind == MemoryKind::Region;
        if let Some((_, (other, old))) =
            below.filter(|(_, (_, old))| !is_region && old.covers(range))
        {
            let (start, end) = (range.start - old.start, range.end - old.start);
            let _ = write!(text, " at={}[{start}..{end}]", self.names.of_buffer(*other));
        }
        Ok(Words { text, usual: api::allocate(buffer.kind).to_owned() })
    }

    fn free(
        &mut self,
        id: AllocationId,
        stream: Option<StreamId>,
        operation: &Operation,
    ) -> Written<Words> {
        let buffer = self.entities.allocation(id).ok_or(UNDECLARED)?;
        let name = self.names.of_buffer(id);
        let words = match (buffer.kind, stream) {
            (MemoryKind::Pageable | MemoryKind::Global, _) => {
                return Err(Inexpressible("the driver frees no such memory"));
            }
            (MemoryKind::Pinned, _) => (format!("free_pinned {name}"), api::free(buffer.kind)),
            (MemoryKind::Registered, _) => (format!("unregister {name}"), api::free(buffer.kind)),
            (MemoryKind::Array, _) => (format!("free_array {name}"), api::free(buffer.kind)),
            (MemoryKind::Mapped, _) => (format!("unmap {name}"), api::free(buffer.kind)),
            (MemoryKind::Imported, _) => (format!("close_import {name}"), api::free(buffer.kind)),
            (MemoryKind::Region, _) => {
                // A heap that is reset ends all of its regions.
                let all = operation.accesses.iter().map(|access| access.allocation);
                let mut text = format!("unregister_region {name}");
                for other in all.filter(|&other| other != id) {
                    let _ = write!(text, " {}", self.names.of_buffer(other));
                }
                (text, api::free(buffer.kind))
            }
            (_, None) => (format!("free {name}"), api::free(buffer.kind)),
            (_, Some(stream)) => {
                let stream = self.stream(stream, operation.thread)?;
                (format!("free_async {name} {stream}"), "cuMemFreeAsync")
            }
        };
        if operation.status.is_success() && buffer.kind != MemoryKind::Region {
            self.freed.insert(buffer.range.start, (id, buffer.range));
        }
        Ok(Words { text: words.0, usual: words.1.to_owned() })
    }

    fn launch(&mut self, operation: &Operation) -> Written<Words> {
        let Action::Launch { stream, kernel, programmatic, control, cooperative, event } =
            operation.action
        else {
            return Err(UNDECLARED);
        };
        let stream = self.stream(stream, operation.thread)?;
        let kernel = self.entities.kernel(kernel).ok_or(UNDECLARED)?;
        let mut text = format!("launch {stream} {}", names::kernel(&kernel.name));
        for (is_set, word) in [(programmatic, " pdl"), (cooperative, " coop")] {
            if is_set {
                text.push_str(word);
            }
        }
        text.push_str(&self.kernel_words(control, &operation.accesses)?);
        if let Some((event, kind)) = event {
            let option = match kind {
                LaunchEventKind::Programmatic => "programmatic_event",
                LaunchEventKind::BlockStart => "block_start_event",
                LaunchEventKind::LaunchCompletion => "completion_event",
            };
            let _ = write!(text, " {option}={}", self.names.of_event(event));
        }
        let usual = api::launch(programmatic || event.is_some(), cooperative).to_owned();
        Ok(Words { text, usual })
    }

    fn copy(&mut self, copy: Copy, operation: &Operation) -> Written<Words> {
        let (to, from) = calls::sides(&operation.accesses)?;
        let (stream, suffix, per_thread) =
            self.place(copy.stream, copy.synchronous, operation.thread)?;
        let verb = if copy.peer.is_some() { "copy_peer" } else { "copy" };
        let sync = if copy.synchronous { "_sync" } else { "" };
        let (dst, src) = (self.region(to)?, self.region(from)?);
        let (order, memops) = (calls::order_option(&copy), sync_memops(copy.sync_memops));
        let text = format!("{verb}{sync}{stream} dst:{dst} src:{src}{order}{suffix}{memops}");
        let shape = api::Shape::of(&to.extent).max(api::Shape::of(&from.extent));
        let usual = match (copy.peer, copy.synchronous) {
            (Some(_), true) => "cuMemcpyPeer".to_owned(),
            (Some(_), false) => "cuMemcpyPeerAsync".to_owned(),
            (None, false) if !order.is_empty() => api::copy_with_attributes(shape).to_owned(),
            (None, sync) => api::copy(shape, copy.source, copy.destination, sync, per_thread),
        };
        Ok(Words { text, usual })
    }

    fn memset(&mut self, operation: &Operation) -> Written<Words> {
        let (Action::Memset { stream, synchronous, sync_memops: waits, .. }, [access]) =
            (&operation.action, operation.accesses.as_slice())
        else {
            return Err(Inexpressible("its destination is not known"));
        };
        let (stream, synchronous) = (*stream, *synchronous);
        let (stream, suffix, per_thread) = self.place(stream, synchronous, operation.thread)?;
        let sync = if synchronous { "_sync" } else { "" };
        let memops = sync_memops(*waits);
        let text = format!("memset{sync}{stream} {}{suffix}{memops}", self.region(access)?);
        let shape = api::Shape::of(&access.extent);
        Ok(Words { text, usual: api::memset(shape, synchronous, per_thread) })
    }

    /// Where a copy or memset is issued: the words before and behind its operands.
    fn place(
        &mut self,
        stream: StreamId,
        synchronous: bool,
        thread: ThreadId,
    ) -> Written<(String, String, bool)> {
        if !synchronous {
            return Ok((format!(" {}", self.stream(stream, thread)?), String::new(), false));
        }
        let stream = self.entities.stream(stream).ok_or(UNDECLARED)?;
        let (per_thread, mut suffix) = match stream.kind {
            StreamKind::Legacy => (false, String::new()),
            StreamKind::PerThread => (true, " ptds".to_owned()),
            _ => return Err(Inexpressible("a synchronous form outside of a default stream")),
        };
        let own = self.names.own_context(&self.entities, stream.context);
        let _ = write!(suffix, " ctx={own}");
        Ok((String::new(), suffix, per_thread))
    }

    fn context(&self, id: ContextId) -> Written<String> {
        self.entities.context(id).ok_or(UNDECLARED)?;
        Ok(self.names.own_context(&self.entities, id))
    }

    fn stream(&self, id: StreamId, thread: ThreadId) -> Written<String> {
        let stream = self.entities.stream(id).ok_or(UNDECLARED)?;
        let own = self.names.own_context(&self.entities, stream.context);
        let prefix = names::prefix(&own);
        match stream.kind {
            StreamKind::Legacy => Ok(format!("{prefix}legacy")),
            StreamKind::PerThread if stream.thread == Some(thread) => Ok(format!("{prefix}ptds")),
            StreamKind::PerThread => Err(Inexpressible("the default stream of another thread")),
            _ => Ok(self.names.of_stream(id)),
        }
    }
}

const UNDECLARED: Inexpressible = Inexpressible("what it names is not declared");

fn device_option(device: u32) -> String {
    if device == 0 { String::new() } else { format!(" device={device}") }
}

fn sync_memops(holds: bool) -> &'static str {
    if holds { " sync_memops" } else { "" }
}

/// ` ctx=C`, unless it is the usual one or the name says it.
fn context_option(own: &str, name: &str) -> String {
    let is_usual = names::local(own) == primary_name(0);
    let says_it = names::local(name).contains('/');
    if is_usual || says_it { String::new() } else { format!(" ctx={own}") }
}

fn busy(operation: &Operation) -> &'static str {
    if operation.status == Status::NOT_READY { " busy" } else { "" }
}
