//! Names of a text trace and the entities they stand for.
//!
//! Streams called `sN`, events and buffers come to be by first use. A name belongs to one object at
//! a time: an event's name is free again when the event is destroyed, a buffer's when it is freed.

use crate::SyntaxError;
use crate::token::{Token, is_identifier, numbered};
use std::collections::HashMap;
use streamsan_model::{
    Allocation, AllocationId, ByteRange, Context, ContextId, DeviceId, Entities, Entity, Event,
    EventId, Kernel, KernelId, MemoryKind, Process, ProcessId, Stream, StreamId, StreamKind,
    Thread, ThreadId, TraceItem,
};

/// The only process of a text trace.
pub(crate) const PROCESS: ProcessId = ProcessId(0);

/// Size of a buffer that was not declared, in bytes.
pub(crate) const DEFAULT_SIZE: u64 = 1024;

/// Largest size of a buffer: the address space of a process.
pub(crate) const MAX_SIZE: u64 = 1 << 47;

/// Where buffers begin; far from null, so that no offset looks like an address.
const FIRST_ADDRESS: u64 = 0x2_0000_0000;

/// Buffers begin on pages and lie at least a page apart.
const PAGE: u64 = 4096;

/// What a name stands for, since which line, and until which line.
#[derive(Clone, Copy, Debug)]
struct Bound<T> {
    id: T,
    since: usize,
    until: Option<usize>,
}

type Names<T> = HashMap<String, Bound<T>>;

/// Names and entities so far.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    pub(crate) items: Vec<TraceItem>,
    pub(crate) entities: Entities,
    threads: HashMap<u32, ThreadId>,
    contexts: Names<ContextId>,
    streams: Names<StreamId>,
    legacy_streams: HashMap<ContextId, StreamId>,
    thread_streams: HashMap<(ContextId, ThreadId), StreamId>,
    stream_count: u32,
    events: Names<EventId>,
    event_count: u32,
    buffers: Names<AllocationId>,
    buffer_count: u32,
    kernels: HashMap<String, KernelId>,
    bytes_used: u64,
}

/// A name with the context that its prefix says.
#[derive(Debug)]
pub(crate) struct Scoped<'a> {
    /// The context, where a prefix stands before the name.
    pub(crate) context: Option<ContextId>,
    /// The name without its prefix.
    pub(crate) name: Token<'a>,
    /// What the object is called; `D0/` and `c0/` say nothing and are left out.
    pub(crate) key: String,
}

impl Scope {
    fn declare(&mut self, entity: Entity) {
        self.entities.declare(entity.clone());
        self.items.push(TraceItem::Entity(entity));
    }

    fn process(&mut self) -> ProcessId {
        if self.entities.process(PROCESS).is_none() {
            self.declare(Entity::Process(Process {
                id: PROCESS,
                pid: 1,
                parent_pid: 0,
                executable: String::new(),
                arguments: Vec::new(),
            }));
        }
        PROCESS
    }

    /// The host thread that a trace calls `number`.
    pub(crate) fn thread(&mut self, number: u32) -> ThreadId {
        if let Some(&id) = self.threads.get(&number) {
            return id;
        }
        let id = ThreadId(self.threads.len() as u32);
        let process = self.process();
        self.declare(Entity::Thread(Thread { id, process, tid: number }));
        self.threads.insert(number, id);
        id
    }

    // Contexts.

    /// The primary context of a device.
    pub(crate) fn primary(&mut self, device: u32, line: usize) -> ContextId {
        match self.contexts.get(&primary_name(device)) {
            Some(bound) => bound.id,
            None => self.new_context(primary_name(device), device, true, line),
        }
    }

    /// The context that calls without a stream are made in.
    pub(crate) fn default_context(&mut self, line: usize) -> ContextId {
        self.primary(0, line)
    }

    /// The context that `token` names: `c0`, `D1` or a declared one.
    pub(crate) fn context(&mut self, token: Token<'_>) -> Result<ContextId, SyntaxError> {
        if let Some(device) = primary_device(token.text) {
            return Ok(self.primary(device, token.line));
        }
        match self.contexts.get(token.identifier("a context")?) {
            Some(bound) => Ok(bound.id),
            None => Err(token.error(format!(
                "context `{0}` is not declared; write `context {0}` on a line before, or `D1` for \
                 the primary context of device 1",
                token.text
            ))),
        }
    }

    /// Declares a context that `token` names.
    pub(crate) fn declare_context(
        &mut self,
        token: Token<'_>,
        device: Option<u32>,
    ) -> Result<ContextId, SyntaxError> {
        let name = token.identifier("a name for the context")?;
        let primary = primary_device(name);
        let (name, device) = match (primary, device) {
            (Some(own), Some(other)) if own != other => {
                return Err(token.error(format!("`{name}` is the primary context of device {own}")));
            }
            (Some(own), _) => (primary_name(own), own),
            (None, device) => (name.to_owned(), device.unwrap_or(0)),
        };
        if let Some(bound) = self.contexts.get(&name) {
            return Err(taken(token, "context", bound.since));
        }
        Ok(self.new_context(name, device, primary.is_some(), token.line))
    }

    fn new_context(&mut self, name: String, device: u32, primary: bool, line: usize) -> ContextId {
        let id = ContextId(self.contexts.len() as u32);
        let process = self.process();
        let handle = 0x1_0000 + u64::from(id.0);
        let device = DeviceId(device);
        self.declare(Entity::Context(Context {
            id,
            process,
            device,
            primary,
            parent: None,
            concurrent_managed_access: true,
            handle,
        }));
        self.contexts.insert(name, Bound { id, since: line, until: None });
        id
    }

    /// Splits `D1/name` and `c1/name`.
    pub(crate) fn scoped<'a>(
        &mut self,
        token: Token<'a>,
        what: &str,
    ) -> Result<Scoped<'a>, SyntaxError> {
        let (context, prefix, name) = match token.split_once('/') {
            None => (None, None, token),
            Some((prefix, name)) => {
                let context = self.context(prefix)?;
                let silent = primary_device(prefix.text) == Some(0);
                (Some(context), (!silent).then_some(prefix.text), name)
            }
        };
        let text = name.identifier(what)?;
        let key = prefix.map_or(text.to_owned(), |prefix| format!("{prefix}/{text}"));
        Ok(Scoped { context, name, key })
    }

    // Streams.

    /// The stream that `token` names, from the point of view of `thread`.
    pub(crate) fn stream(
        &mut self,
        token: Token<'_>,
        thread: ThreadId,
    ) -> Result<StreamId, SyntaxError> {
        let scoped = self.scoped(token, "a stream")?;
        let kind = match scoped.name.text {
            "legacy" => StreamKind::Legacy,
            "ptds" => StreamKind::PerThread,
            _ => StreamKind::NonBlocking,
        };
        if kind != StreamKind::NonBlocking {
            let context = self.context_or_default(scoped.context, token.line);
            return Ok(self.default_stream(context, kind, thread));
        }
        match self.streams.get(&scoped.key) {
            Some(Bound { id, until: None, .. }) => return Ok(*id),
            Some(Bound { until: Some(line), .. }) => {
                return Err(token.error(format!(
                    "stream `{0}` was destroyed on line {line}; write `stream {0}` to create \
                     another one of this name",
                    token.text
                )));
            }
            None => {}
        }
        if numbered(scoped.name.text, 's').is_none() {
            return Err(token.error(format!(
                "stream `{0}` is not declared; write `stream {0}` or `stream {0} nonblocking` on \
                 a line before (only names like `s1` are declared by their first use)",
                token.text
            )));
        }
        let context = self.context_or_default(scoped.context, token.line);
        Ok(self.new_stream(scoped.key, context, kind, 0, token.line))
    }

    /// The default stream of `context`: legacy, or that of `thread`.
    pub(crate) fn default_stream(
        &mut self,
        context: ContextId,
        kind: StreamKind,
        thread: ThreadId,
    ) -> StreamId {
        let per_thread = kind == StreamKind::PerThread;
        let known = if per_thread {
            self.thread_streams.get(&(context, thread))
        } else {
            self.legacy_streams.get(&context)
        };
        if let Some(&id) = known {
            return id;
        }
        let id = self.next_stream();
        self.declare(Entity::Stream(Stream {
            id,
            context,
            kind,
            thread: per_thread.then_some(thread),
            priority: 0,
            handle: if per_thread { 2 } else { 1 },
            driver_id: 0,
            name: None,
        }));
        if per_thread {
            self.thread_streams.insert((context, thread), id);
        } else {
            self.legacy_streams.insert(context, id);
        }
        id
    }

    /// Declares the stream that `token` names.
    pub(crate) fn declare_stream(
        &mut self,
        token: Token<'_>,
        context: Option<ContextId>,
        kind: StreamKind,
        priority: i32,
    ) -> Result<StreamId, SyntaxError> {
        let scoped = self.scoped(token, "a name for the stream")?;
        if matches!(scoped.name.text, "legacy" | "ptds") {
            return Err(token.error(format!("`{}` is a default stream", scoped.name.text)));
        }
        if let Some(Bound { since, until: None, .. }) = self.streams.get(&scoped.key) {
            return Err(taken(token, "stream", *since));
        }
        let context = self.context_or_default(context.or(scoped.context), token.line);
        Ok(self.new_stream(scoped.key, context, kind, priority, token.line))
    }

    fn new_stream(
        &mut self,
        name: String,
        context: ContextId,
        kind: StreamKind,
        priority: i32,
        line: usize,
    ) -> StreamId {
        let id = self.next_stream();
        self.declare(Entity::Stream(Stream {
            id,
            context,
            kind,
            thread: None,
            priority,
            handle: 0x2_0000 + u64::from(id.0),
            driver_id: 0,
            name: Some(name.clone()),
        }));
        self.streams.insert(name, Bound { id, since: line, until: None });
        id
    }

    fn next_stream(&mut self) -> StreamId {
        self.stream_count += 1;
        StreamId(self.stream_count - 1)
    }

    /// The name of a destroyed stream can be declared again.
    pub(crate) fn end_stream(&mut self, stream: StreamId, line: usize) {
        let name = self.entities.stream(stream).and_then(|stream| stream.name.as_deref());
        end(&mut self.streams, name, stream, line);
    }

    /// The context of a declared stream.
    pub(crate) fn stream_context(&self, stream: StreamId) -> Option<ContextId> {
        self.entities.stream(stream).map(|stream| stream.context)
    }

    // Events.

    /// The event that `token` names; a new one is created in `context` unless a prefix says else.
    pub(crate) fn event(
        &mut self,
        token: Token<'_>,
        context: Option<ContextId>,
    ) -> Result<EventId, SyntaxError> {
        let scoped = self.scoped(token, "an event")?;
        if let Some(Bound { id, until: None, .. }) = self.events.get(&scoped.key) {
            return Ok(*id);
        }
        let context = self.context_or_default(scoped.context.or(context), token.line);
        Ok(self.new_event(scoped.key, context, token.line))
    }

    /// Creates an event; a name already in use goes over to the new one.
    pub(crate) fn declare_event(
        &mut self,
        token: Token<'_>,
        context: Option<ContextId>,
    ) -> Result<EventId, SyntaxError> {
        let scoped = self.scoped(token, "a name for the event")?;
        let context = self.context_or_default(context.or(scoped.context), token.line);
        Ok(self.new_event(scoped.key, context, token.line))
    }

    fn new_event(&mut self, name: String, context: ContextId, line: usize) -> EventId {
        let id = EventId(self.event_count);
        self.event_count += 1;
        let handle = 0x3_0000 + u64::from(id.0);
        let event =
            Event { id, context, handle, flags: 0, imported: false, name: Some(name.clone()) };
        self.declare(Entity::Event(event));
        self.events.insert(name, Bound { id, since: line, until: None });
        id
    }

    /// The name of a destroyed event stands for a new event at its next use.
    pub(crate) fn end_event(&mut self, event: EventId, line: usize) {
        let name = self.entities.event(event).and_then(|event| event.name.as_deref());
        end(&mut self.events, name, event, line);
    }

    // Buffers.

    /// The buffer that `token` names; freed ones included.
    pub(crate) fn buffer(&mut self, token: Token<'_>) -> Result<&Allocation, SyntaxError> {
        let scoped = self.scoped(token, "a buffer")?;
        let id = match self.buffers.get(&scoped.key) {
            Some(bound) => bound.id,
            None => {
                let context = self.context_or_default(scoped.context, token.line);
                let origin = Origin { kind: MemoryKind::Device, context: Some(context), api: "" };
                self.new_buffer(token, scoped.key, DEFAULT_SIZE, origin, None)?
            }
        };
        self.entities.allocation(id).ok_or_else(|| token.expected("a buffer"))
    }

    /// Declares the buffer that `token` names, at `place` or at addresses of its own.
    pub(crate) fn declare_buffer(
        &mut self,
        token: Token<'_>,
        size: u64,
        origin: Origin<'_>,
        place: Option<u64>,
    ) -> Result<AllocationId, SyntaxError> {
        let scoped = self.scoped(token, "a name for the buffer")?;
        if let Some(Bound { since, until: None, .. }) = self.buffers.get(&scoped.key) {
            return Err(taken(token, "buffer", *since));
        }
        let context = match origin.kind {
            MemoryKind::Pageable => None,
            _ => Some(self.context_or_default(origin.context.or(scoped.context), token.line)),
        };
        self.new_buffer(token, scoped.key, size, Origin { context, ..origin }, place)
    }

    fn new_buffer(
        &mut self,
        token: Token<'_>,
        name: String,
        size: u64,
        origin: Origin<'_>,
        place: Option<u64>,
    ) -> Result<AllocationId, SyntaxError> {
        let start = match place {
            Some(start) => start,
            None => {
                let start = self.bytes_used;
                let used = size.next_multiple_of(PAGE) + PAGE;
                self.bytes_used = start
                    .checked_add(used)
                    .filter(|&end| end < 1 << 62)
                    .ok_or_else(|| token.error("the buffers of this trace exceed 2^62 bytes"))?;
                FIRST_ADDRESS + start
            }
        };
        let id = AllocationId(self.buffer_count);
        self.buffer_count += 1;
        let process = self.process();
        self.declare(Entity::Allocation(Allocation {
            id,
            process,
            context: origin.context,
            kind: origin.kind,
            range: ByteRange::with_len(start, size),
            api: origin.api.to_owned(),
            backing: None,
            name: Some(name.clone()),
        }));
        self.buffers.insert(name, Bound { id, since: token.line, until: None });
        Ok(id)
    }

    /// The name of freed memory goes on standing for it until it is declared again.
    pub(crate) fn end_buffer(&mut self, buffer: AllocationId, line: usize) {
        let name = self.entities.allocation(buffer).and_then(|buffer| buffer.name.as_deref());
        end(&mut self.buffers, name, buffer, line);
    }

    /// Whether a call has ended the life of the buffer.
    pub(crate) fn is_freed(&self, buffer: AllocationId) -> bool {
        let name = self.entities.allocation(buffer).and_then(|buffer| buffer.name.as_deref());
        let bound = name.and_then(|name| self.buffers.get(name));
        // A name that has gone over to another buffer was free before.
        bound.is_none_or(|bound| bound.id != buffer || bound.until.is_some())
    }

    /// The kernel called `name`.
    pub(crate) fn kernel(&mut self, name: &str) -> KernelId {
        if let Some(&id) = self.kernels.get(name) {
            return id;
        }
        let id = KernelId(self.kernels.len() as u32);
        self.declare(Entity::Kernel(Kernel { id, name: name.to_owned(), params: Vec::new() }));
        self.kernels.insert(name.to_owned(), id);
        id
    }

    fn context_or_default(&mut self, context: Option<ContextId>, line: usize) -> ContextId {
        match context {
            Some(context) => context,
            None => self.default_context(line),
        }
    }
}

/// Where a buffer comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin<'a> {
    pub(crate) kind: MemoryKind,
    pub(crate) context: Option<ContextId>,
    /// The entry point that makes it; empty when it is older than the trace.
    pub(crate) api: &'a str,
}

/// The device whose primary context `name` is.
pub(crate) fn primary_device(name: &str) -> Option<u32> {
    if name == "c0" { Some(0) } else { numbered(name, 'D') }
}

/// The one spelling of a primary context.
pub(crate) fn primary_name(device: u32) -> String {
    if device == 0 { "c0".to_owned() } else { format!("D{device}") }
}

/// Whether `name`, without a prefix, can be given to an object of a text trace.
pub(crate) fn can_be_named(name: &str) -> bool {
    is_identifier(name) && !matches!(name, "legacy" | "ptds")
}

/// The object called `name` is gone from `line` on.
fn end<T: PartialEq>(names: &mut Names<T>, name: Option<&str>, id: T, line: usize) {
    if let Some(bound) = name.and_then(|name| names.get_mut(name))
        && bound.id == id
    {
        bound.until = Some(line);
    }
}

fn taken(token: Token<'_>, what: &str, since: usize) -> SyntaxError {
    token
        .error(format!("{what} `{}` is in use since line {since}; choose another name", token.text))
}
