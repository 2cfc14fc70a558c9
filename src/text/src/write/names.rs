//! Names for the objects of a written trace: their own where the grammar accepts them and no other
//! object has them, generated ones otherwise.

pub(super) use crate::scope::of_process;
use crate::scope::{can_be_named, primary_name};
use crate::token::numbered;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use streamsan_model::{
    Allocation, AllocationId, ContextId, Entities, Event, EventId, Stream, StreamId,
};

/// Names given so far.
#[derive(Debug, Default)]
pub(super) struct Names {
    contexts: HashMap<ContextId, String>,
    /// Names of primary contexts.
    context_names: HashSet<String>,
    other_contexts: u32,
    streams: Table<StreamId>,
    events: Table<EventId>,
    buffers: Table<AllocationId>,
}

#[derive(Debug)]
struct Table<T> {
    names: HashMap<T, String>,
    taken: HashSet<String>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { names: HashMap::new(), taken: HashSet::new() }
    }
}

impl<T: Eq + Hash> Table<T> {
    fn give(
        &mut self,
        id: T,
        wanted: Option<&str>,
        own: &str,
        (letter, number): (char, u32),
        shared: bool,
    ) -> String {
        let own_local = local(own);
        let usable = |name: &&str| match name.split_once('/') {
            Some((prefix, name)) => prefix == own_local && own_local != "c0" && can_be_named(name),
            None => can_be_named(name),
        };
        let base = match wanted.map(local).filter(usable) {
            Some(name) => name.to_owned(),
            None => format!("{letter}{number}"),
        };
        let base = if shared { base } else { with_process_of(own, &base) };
        let mut name = base.clone();
        for count in 2.. {
            if !self.taken.contains(&name) {
                break;
            }
            name = format!("{base}_{count}");
        }
        self.taken.insert(name.clone());
        self.names.insert(id, name.clone());
        name
    }

    fn get(&self, id: &T) -> String {
        self.names.get(id).cloned().unwrap_or_default()
    }
}

impl Names {
    /// Names the primary context that a process has on a device. A second one (the first was
    /// reset) gets a name of its own.
    pub(super) fn primary(&mut self, id: ContextId, process: u32, device: u32) -> String {
        let name = of_process(process, &primary_name(device));
        if self.context_names.insert(name.clone()) {
            self.contexts.insert(id, name.clone());
            name
        } else {
            self.context(id, process)
        }
    }

    /// Names a context that is not primary.
    pub(super) fn context(&mut self, id: ContextId, process: u32) -> String {
        self.other_contexts += 1;
        let name = of_process(process, &format!("c{}", self.other_contexts));
        self.contexts.insert(id, name.clone());
        name
    }

    /// The name of a declared context; a context without a declaration counts as the default one.
    pub(super) fn own_context(&self, entities: &Entities, id: ContextId) -> String {
        match entities.context(id).and_then(|_| self.contexts.get(&id)) {
            Some(name) => name.clone(),
            None => primary_name(0),
        }
    }

    /// The name of the context that lines without one mean.
    pub(super) fn default_context(&self) -> String {
        primary_name(0)
    }

    pub(super) fn stream(&mut self, stream: &Stream, own: &str) -> String {
        self.streams.give(stream.id, stream.name.as_deref(), own, ('s', stream.id.0), false)
    }

    pub(super) fn event(&mut self, event: &Event, own: &str) -> String {
        self.events.give(event.id, event.name.as_deref(), own, ('e', event.id.0), true)
    }

    pub(super) fn buffer(&mut self, buffer: &Allocation, own: &str) -> String {
        self.buffers.give(buffer.id, buffer.name.as_deref(), own, ('b', buffer.id.0), false)
    }

    pub(super) fn of_stream(&self, id: StreamId) -> String {
        self.streams.get(&id)
    }

    pub(super) fn of_event(&self, id: EventId) -> String {
        self.events.get(&id)
    }

    pub(super) fn of_buffer(&self, id: AllocationId) -> String {
        self.buffers.get(&id)
    }
}

/// A name without its process.
pub(super) fn local(name: &str) -> &str {
    match name.split_once('/') {
        Some((prefix, rest)) if numbered(prefix, 'P').is_some() => rest,
        _ => name,
    }
}

/// The prefix of names in the context called `own`.
pub(super) fn prefix(own: &str) -> String {
    if local(own) == "c0" { with_process_of(own, "") } else { format!("{own}/") }
}

/// `name` in the process that `own` belongs to.
fn with_process_of(own: &str, name: &str) -> String {
    let process = &own[..own.len() - local(own).len()];
    format!("{process}{name}")
}

/// A kernel's name as one word that is neither an option nor a comment.
pub(super) fn kernel(name: &str) -> String {
    let name: String =
        name.chars().map(|c| if c.is_whitespace() || c == '#' { '_' } else { c }).collect();
    if name.is_empty() { "unnamed".to_owned() } else { name }
}
