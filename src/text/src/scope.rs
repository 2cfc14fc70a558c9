//! Names of a text trace and the entities they stand for.
//!
//! Streams, contexts and buffers belong to a process and have its prefix (`P2/`) in their names,
//! unless it is the first one. Everything else is shared by name.
//!
//! Streams called `sN`, events and buffers are created by their first use. A name belongs to one
//! object at a time: an event's name is free again when the event is destroyed, a buffer's when it
//! is freed.

use crate::SyntaxError;
use crate::capture::Captures;
use crate::graph::Graphs;
use crate::stack::Stacks;
use crate::token::{Token, is_identifier, numbered};
use std::collections::{HashMap, HashSet};
use streamsan_model::{
    AllocationId, BackingId, Context, ContextId, DeviceId, Entities, Entity, EventId, FileBatchId,
    Kernel, KernelId, Process, ProcessId, SemaphoreId, StackId, StreamId, SyncObject, Thread,
    ThreadId, TraceItem,
};

mod buffers;
mod events;
mod streams;

pub(crate) use buffers::Origin;

/// Size of a buffer that was not declared, in bytes.
pub(crate) const DEFAULT_SIZE: u64 = 1024;

/// Largest size of a buffer: the address space of a process.
pub(crate) const MAX_SIZE: u64 = 1 << 47;

/// The object of a name, with the lines from which and up to which the name belongs to it.
#[derive(Clone, Copy, Debug)]
struct Bound<T> {
    id: T,
    since: usize,
    until: Option<usize>,
}

type ScopeNames<T> = HashMap<String, Bound<T>>;

/// Names and entities so far.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    pub(crate) items: Vec<TraceItem>,
    pub(crate) entities: Entities,
    /// The process that issues the line being read, as the trace numbers it, from 1.
    pub(crate) process: u32,
    processes: HashMap<u32, ProcessId>,
    threads: HashMap<(u32, u32), ThreadId>,
    contexts: ScopeNames<ContextId>,
    streams: ScopeNames<StreamId>,
    legacy_streams: HashMap<ContextId, StreamId>,
    thread_streams: HashMap<(ContextId, ThreadId), StreamId>,
    stream_count: u32,
    events: ScopeNames<EventId>,
    event_count: u32,
    semaphores: HashMap<String, SemaphoreId>,
    sync_objects: HashMap<(u32, String), SyncObject>,
    file_batches: HashMap<String, FileBatchId>,
    file_batch_count: u32,
    buffers: ScopeNames<AllocationId>,
    buffer_count: u32,
    /// Buffers that nodes of graphs free.
    freed_by_nodes: HashSet<AllocationId>,
    /// Physical memory by its name.
    physical: HashMap<String, BackingId>,
    physical_count: u32,
    /// Names of buffers that a line of the trace imports elsewhere: they need a backing.
    exported: HashSet<String>,
    kernels: HashMap<String, KernelId>,
    pub(crate) graphs: Graphs,
    pub(crate) captures: Captures,
    pub(crate) stacks: Stacks,
    /// The stack of the call on the line being read.
    pub(crate) stack: Option<StackId>,
    bytes_used: u64,
}

/// A name with the context that its prefix says.
#[derive(Debug)]
pub(crate) struct Scoped<'a> {
    /// The process it belongs to.
    process: u32,
    /// The context, where a prefix stands before the name.
    pub(crate) context: Option<ContextId>,
    /// The name without its prefix.
    pub(crate) name: Token<'a>,
    /// The object's full name; `P1/`, `D0/` and `c0/` are defaults and left out.
    pub(crate) key: String,
    /// The full name without the process.
    shared: String,
}

impl Scope {
    /// The objects that exist before a trace's first line.
    pub(crate) fn of(text: &str) -> Self {
        Self { exported: exported_names(text), process: 1, ..Self::default() }
    }

    pub(crate) fn declare(&mut self, entity: Entity) {
        self.entities.declare(entity.clone());
        self.items.push(TraceItem::Entity(entity));
    }

    /// The process of this number.
    fn process_of(&mut self, number: u32) -> ProcessId {
        if let Some(&id) = self.processes.get(&number) {
            return id;
        }
        let id = ProcessId(self.processes.len() as u32);
        self.processes.insert(number, id);
        self.declare(Entity::Process(Process {
            id,
            pid: number,
            parent_pid: 0,
            executable: String::new(),
            arguments: Vec::new(),
        }));
        id
    }

    /// The process that issues the line.
    pub(crate) fn current_process(&mut self) -> ProcessId {
        self.process_of(self.process)
    }

    /// The full name of something that belongs to the current process.
    pub(crate) fn own_key(&self, name: &str) -> String {
        of_process(self.process, name)
    }

    /// The host thread that the current process calls `number`.
    pub(crate) fn thread(&mut self, number: u32) -> ThreadId {
        let key = (self.process, number);
        if let Some(&id) = self.threads.get(&key) {
            return id;
        }
        let id = ThreadId(self.threads.len() as u32);
        let process = self.current_process();
        self.declare(Entity::Thread(Thread { id, process, tid: number }));
        self.threads.insert(key, id);
        id
    }

    // Contexts.

    /// The primary context that `process` has on a device.
    fn primary(&mut self, process: u32, device: u32, line: usize) -> ContextId {
        let name = of_process(process, &primary_name(device));
        match self.contexts.get(&name) {
            Some(bound) => bound.id,
            None => self.new_context(name, process, ContextTraits::primary(device), line),
        }
    }

    /// The context that calls without a stream are made in.
    pub(crate) fn default_context(&mut self, line: usize) -> ContextId {
        self.primary(self.process, 0, line)
    }

    /// The context that `token` names: `c0`, `D1` or a declared one.
    pub(crate) fn context(&mut self, token: Token<'_>) -> Result<ContextId, SyntaxError> {
        let (process, name) = split_process(token).unwrap_or((self.process, token));
        self.context_in(process, name)
    }

    fn context_in(&mut self, process: u32, token: Token<'_>) -> Result<ContextId, SyntaxError> {
        if let Some(device) = primary_device(token.text) {
            return Ok(self.primary(process, device, token.line));
        }
        match self.contexts.get(&of_process(process, token.identifier("a context")?)) {
            Some(bound) => Ok(bound.id),
            None => Err(token.error(format!(
                "context `{0}` is not declared; write `context {0}` on a line before, or `D1` for \
                 the primary context of device 1",
                token.text
            ))),
        }
    }

    /// Declares a context that `token` names. A device that is not given is that of the green
    /// context's parent, else 0.
    pub(crate) fn declare_context(
        &mut self,
        token: Token<'_>,
        device: Option<u32>,
        parent: Option<ContextId>,
        concurrent_managed_access: bool,
    ) -> Result<ContextId, SyntaxError> {
        let name = token.identifier("a name for the context")?;
        if numbered(name, 'P').is_some() {
            return Err(token.error(format!("`{name}/` is the prefix of a process")));
        }
        let own = primary_device(name);
        let of_parent = parent.and_then(|id| self.entities.context(id)).map(|c| c.device.0);
        let device = match (own, of_parent, device) {
            (Some(own), _, Some(other)) if own != other => {
                return Err(token.error(format!("`{name}` is the primary context of device {own}")));
            }
            (Some(_), Some(_), _) => {
                return Err(token.error(format!("`{name}` is a primary context, not a green one")));
            }
            (None, Some(own), Some(other)) if own != other => {
                return Err(token.error(format!("the context it is a part of is on device {own}")));
            }
            (Some(own), ..) | (None, Some(own), _) => own,
            (None, None, device) => device.unwrap_or(0),
        };
        let name = own.map_or(name.to_owned(), primary_name);
        let key = of_process(self.process, &name);
        if let Some(bound) = self.contexts.get(&key) {
            return Err(taken(token, "context", bound.since));
        }
        let traits =
            ContextTraits { device, primary: own.is_some(), parent, concurrent_managed_access };
        Ok(self.new_context(key, self.process, traits, token.line))
    }

    fn new_context(
        &mut self,
        name: String,
        process: u32,
        traits: ContextTraits,
        line: usize,
    ) -> ContextId {
        let id = ContextId(self.contexts.len() as u32);
        let process = self.process_of(process);
        let ContextTraits { device, primary, parent, concurrent_managed_access } = traits;
        self.declare(Entity::Context(Context {
            id,
            process,
            device: DeviceId(device),
            primary,
            parent,
            concurrent_managed_access,
            handle: 0x1_0000 + u64::from(id.0),
        }));
        self.contexts.insert(name, Bound { id, since: line, until: None });
        id
    }

    /// Splits `P2/name`, `D1/name`, `c1/name` and `P2/D1/name`.
    pub(crate) fn scoped<'a>(
        &mut self,
        token: Token<'a>,
        what: &str,
    ) -> Result<Scoped<'a>, SyntaxError> {
        let (process, token) = split_process(token).unwrap_or((self.process, token));
        let (context, prefix, name) = match token.split_once('/') {
            None => (None, None, token),
            Some((prefix, name)) => {
                let context = self.context_in(process, prefix)?;
                let silent = primary_device(prefix.text) == Some(0);
                (Some(context), (!silent).then_some(prefix.text), name)
            }
        };
        let text = name.identifier(what)?;
        let shared = prefix.map_or(text.to_owned(), |prefix| format!("{prefix}/{text}"));
        Ok(Scoped { process, context, name, key: of_process(process, &shared), shared })
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

    fn context_or_default(
        &mut self,
        context: Option<ContextId>,
        process: u32,
        line: usize,
    ) -> ContextId {
        match context {
            Some(context) => context,
            None => self.primary(process, 0, line),
        }
    }
}

/// The kind of a context.
#[derive(Clone, Copy, Debug)]
struct ContextTraits {
    device: u32,
    primary: bool,
    parent: Option<ContextId>,
    concurrent_managed_access: bool,
}

impl ContextTraits {
    fn primary(device: u32) -> Self {
        Self { device, primary: true, parent: None, concurrent_managed_access: true }
    }
}

/// The process that stands before a name, and the rest.
pub(crate) fn split_process(token: Token<'_>) -> Option<(u32, Token<'_>)> {
    let (prefix, rest) = token.split_once('/')?;
    let number = numbered(prefix.text, 'P').filter(|&number| number > 0)?;
    Some((number, rest))
}

/// The names of the buffers that lines of `text` import under another name, or take regions of.
fn exported_names(text: &str) -> HashSet<String> {
    let mut names = HashSet::new();
    for (index, text) in text.lines().enumerate() {
        let text = text.split('#').next().unwrap_or_default();
        let line = Token { text, line: index + 1, column: 1 };
        let mut words = line.words().peekable();
        let process = match words.next_if(|word| word.text.ends_with(':')) {
            Some(word) => {
                let digits = word.text.trim_start_matches('P');
                let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
                digits[..end].parse().unwrap_or(1)
            }
            None => 1,
        };
        let operand = match words.next().map(|verb| verb.text) {
            Some("import") => words.nth(1),
            Some("region") => words.nth(3),
            _ => None,
        };
        if let Some(operand) = operand {
            let (process, name) = split_process(operand).unwrap_or((process, operand));
            let name = match name.split_once('/') {
                Some((prefix, name)) if primary_device(prefix.text) == Some(0) => name,
                _ => name,
            };
            names.insert(of_process(process, name.text));
        }
    }
    names
}

/// A name with the prefix of its process; the first one has none.
pub(crate) fn of_process(process: u32, name: &str) -> String {
    if process == 1 { name.to_owned() } else { format!("P{process}/{name}") }
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

/// Ends the life of the object called `name` on `line`.
fn end<T: PartialEq>(names: &mut ScopeNames<T>, name: Option<&str>, id: T, line: usize) {
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
