//! Lines for entities that are older than the trace.

use super::{Writer, context_option, device_option, names};
use crate::api;
use crate::scope::DEFAULT_SIZE;
use crate::token::numbered;
use std::fmt::Write;
use streamsan_model::{
    Allocation, Backing, Context, ContextId, Entity, Event, MemoryKind, ProcessId, Stream,
    StreamId, StreamKind,
};

impl Writer {
    /// Names declared entities, and writes declarations that the later lines would not imply.
    pub(super) fn entity(&mut self, entity: &Entity) {
        let is_known = match entity {
            Entity::Context(x) => self.entities.context(x.id).is_some(),
            Entity::Stream(x) => self.entities.stream(x.id).is_some(),
            Entity::Event(x) => self.entities.event(x.id).is_some(),
            Entity::Allocation(x) => self.entities.allocation(x.id).is_some(),
            Entity::Process(_)
            | Entity::Thread(_)
            | Entity::Kernel(_)
            | Entity::KernelCode(_)
            | Entity::Module(_)
            | Entity::Frame(_)
            | Entity::Stack(_)
            | Entity::Graph(_) => true,
        };
        self.entities.declare(entity.clone());
        if is_known {
            return;
        }
        let (line, is_usual) = match entity {
            Entity::Context(context) => self.context_declaration(context),
            Entity::Stream(stream) => self.stream_declaration(stream),
            Entity::Event(event) => self.event_declaration(event),
            Entity::Allocation(buffer) => self.buffer_declaration(buffer),
            Entity::Process(_)
            | Entity::Thread(_)
            | Entity::Kernel(_)
            | Entity::KernelCode(_)
            | Entity::Module(_)
            | Entity::Frame(_)
            | Entity::Stack(_)
            | Entity::Graph(_) => return,
        };
        let is_default = is_usual && self.plan.is_used_at_once(entity);
        let by_node = matches!(entity, Entity::Allocation(x) if x.kind == MemoryKind::GraphOrdered);
        if line.is_empty() || is_default || by_node || self.plan.is_created(entity) {
            return;
        }
        let prefix = self.process_of(entity).map(|process| self.process_prefix(process));
        let line = format!("{}{line}", prefix.unwrap_or_default());
        match context_of(entity) {
            // A stored trace declares everything before its first call.
            Some(context) if self.plan.is_yet_to_come(context) => {
                self.waiting.push((context, line));
            }
            _ => self.push_line(&line),
        }
    }

    /// The process of a declared entity.
    fn process_of(&self, entity: &Entity) -> Option<ProcessId> {
        let of = |context: ContextId| self.entities.context(context).map(|c| c.process);
        match entity {
            Entity::Context(x) => Some(x.process),
            Entity::Stream(x) => of(x.context),
            Entity::Event(x) => of(x.context),
            Entity::Allocation(x) => Some(x.process),
            _ => None,
        }
    }

    /// Writes what was waiting for its context, which has been made.
    pub(super) fn context_made(&mut self, context: ContextId) {
        self.plan.context_made(context);
        for (of, line) in std::mem::take(&mut self.waiting) {
            if of == context {
                self.push_line(&line);
            } else {
                self.waiting.push((of, line));
            }
        }
    }

    // Each gives the line, and whether it says what the first use of the name says.

    fn context_declaration(&mut self, context: &Context) -> (String, bool) {
        let process = self.plan.process_number(context.process);
        let name = match context.primary {
            true => self.names.primary(context.id, process, context.device.0),
            false => self.names.context(context.id, process),
        };
        let traits = self.context_traits(context);
        if context.primary && traits.is_empty() {
            // Its first use declares it.
            return (String::new(), true);
        }
        let line = format!("context {}{traits} existing", names::local(&name));
        (line, false)
    }

    /// The options of a context.
    pub(super) fn context_traits(&self, context: &Context) -> String {
        let mut text = match (context.primary, context.parent) {
            (true, _) => String::new(),
            (false, Some(parent)) => {
                format!(" green={}", self.names.own_context(&self.entities, parent))
            }
            (false, None) => device_option(context.device.0),
        };
        if !context.concurrent_managed_access {
            text.push_str(" no_concurrent_managed");
        }
        text
    }

    fn stream_declaration(&mut self, stream: &Stream) -> (String, bool) {
        if matches!(stream.kind, StreamKind::Legacy | StreamKind::PerThread) {
            return (String::new(), true);
        }
        let own = self.names.own_context(&self.entities, stream.context);
        let name = self.names.stream(stream, &own);
        let base = name.rsplit('/').next().unwrap_or_default();
        let is_usual = stream.kind == StreamKind::NonBlocking
            && stream.priority == 0
            && numbered(base, 's').is_some()
            && context_option(&own, &name).is_empty();
        (format!("{} existing", self.stream_line(stream.id)), is_usual)
    }

    fn event_declaration(&mut self, event: &Event) -> (String, bool) {
        let own = self.names.own_context(&self.entities, event.context);
        let name = self.names.event(event, &own);
        // By its id: the context of the first use may not be declared yet, and have no name.
        let is_that_of_use = match self.plan.event_context(event.id) {
            Some(context) => context == event.context,
            None => own == self.names.default_context(),
        };
        let is_first = names::local(&own) == own;
        let is_usual = (name.contains('/') && is_first || is_that_of_use) && !event.imported;
        (format!("{} existing", self.event_line(event)), is_usual)
    }

    /// The line that makes or declares an event.
    pub(super) fn event_line(&self, event: &Event) -> String {
        let name = self.names.of_event(event.id);
        let own = self.names.own_context(&self.entities, event.context);
        let imported = if event.imported { " imported" } else { "" };
        format!("event {name}{}{imported}", context_option(&own, &name))
    }

    fn buffer_declaration(&mut self, buffer: &Allocation) -> (String, bool) {
        let own = match buffer.context {
            Some(context) => self.names.own_context(&self.entities, context),
            None => names::of_process(
                self.plan.process_number(buffer.process),
                &self.names.default_context(),
            ),
        };
        let name = self.names.buffer(buffer, &own);
        let range = self.plan.window(buffer);
        let is_usual = buffer.kind == MemoryKind::Device
            && range.len() == DEFAULT_SIZE
            && buffer.api.is_empty()
            && buffer.context.is_some()
            && buffer.backing.is_none()
            && context_option(&own, &name).is_empty();
        (self.buffer_line(buffer, None), is_usual)
    }

    /// The line that makes or declares a stream.
    pub(super) fn stream_line(&self, id: StreamId) -> String {
        let Some(stream) = self.entities.stream(id) else { return String::new() };
        let name = self.names.of_stream(id);
        let own = self.names.own_context(&self.entities, stream.context);
        let mut line = format!("stream {name}");
        if stream.kind == StreamKind::NonBlocking {
            line.push_str(" nonblocking");
        }
        line.push_str(&context_option(&own, &name));
        if stream.priority != 0 {
            let _ = write!(line, " priority={}", stream.priority);
        }
        line
    }

    /// The line that makes or declares a buffer; `stream` is where the call is issued.
    pub(super) fn buffer_line(&self, buffer: &Allocation, stream: Option<&str>) -> String {
        if let Some(line) = self.region_line(buffer) {
            return line;
        }
        let verb = match buffer.kind {
            MemoryKind::Device => "alloc",
            MemoryKind::StreamOrdered => "alloc_async",
            MemoryKind::Managed => "alloc_managed",
            MemoryKind::Pinned => "alloc_pinned",
            MemoryKind::Registered => "register",
            MemoryKind::Pageable => "pageable",
            MemoryKind::Global => "global",
            MemoryKind::Array => "array",
            MemoryKind::Mapped => "map",
            MemoryKind::Imported => "import",
            // Nodes of graphs make such memory (`Writer::introduce`), and calls only by mistake. What
            // the region is a part of is not in the trace.
            MemoryKind::GraphOrdered | MemoryKind::Region => "alloc",
        };
        let range = self.plan.window(buffer);
        let name = self.names.of_buffer(buffer.id);
        let mut line = format!("{verb} {name} {}", range.len());
        if let Some(stream) = stream {
            let _ = write!(line, " {stream}");
        }
        line.push_str(&self.context_words(buffer, &name));
        match buffer.backing {
            Some(Backing { memory, offset: 0 }) => {
                let _ = write!(line, " phys=m{memory}");
            }
            Some(Backing { memory, offset }) => {
                let _ = write!(line, " phys=m{memory} offset={offset}");
            }
            // A mapping is one of something.
            None if buffer.kind == MemoryKind::Mapped => {
                let _ = write!(line, " phys=own{}", buffer.id);
            }
            None => {}
        }
        let made = self.plan.is_created(&Entity::Allocation(buffer.clone()));
        let declared = matches!(buffer.kind, MemoryKind::Pageable | MemoryKind::Global);
        if !made && !declared {
            line.push_str(" existing");
        }
        let usual = if made { api::allocate(buffer.kind) } else { "" };
        if buffer.api != usual {
            let _ = write!(line, " api={}", buffer.api);
        }
        line
    }
}

impl Writer {
    /// The line that registers a region, where the memory that it is a part of is in the trace.
    fn region_line(&self, buffer: &Allocation) -> Option<String> {
        let backing = buffer.backing.filter(|_| buffer.kind == MemoryKind::Region)?;
        let holds = |other: &&Allocation| {
            other.kind.holds_regions()
                && other.process == buffer.process
                && other.backing.is_some_and(|of| of.memory == backing.memory)
                && other.range.covers(buffer.range)
        };
        let pool = self.entities.allocations().filter(holds).max_by_key(|other| other.id)?;
        let (start, end) =
            (buffer.range.start - pool.range.start, buffer.range.end - pool.range.start);
        let (name, of) = (self.names.of_buffer(buffer.id), self.names.of_buffer(pool.id));
        let mut line = format!("region {name} {start}..{end} of {of}");
        if buffer.api != api::allocate(buffer.kind) {
            let _ = write!(line, " api={}", buffer.api);
        }
        Some(line)
    }

    /// ` ctx=C` of a buffer, where it must be said.
    pub(super) fn context_words(&self, buffer: &Allocation, name: &str) -> String {
        buffer.context.map_or(String::new(), |context| {
            context_option(&self.names.own_context(&self.entities, context), name)
        })
    }
}

/// The context that something lives in.
fn context_of(entity: &Entity) -> Option<ContextId> {
    match entity {
        Entity::Stream(x) => Some(x.context),
        Entity::Event(x) => Some(x.context),
        Entity::Allocation(x) => x.context,
        _ => None,
    }
}
