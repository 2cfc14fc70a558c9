//! The items of a trace, read in chunks so that a trace of any length takes little memory.
//!
//! Every table is read in the order of its key, and each chunk begins behind the last row of the
//! one before, so nothing is held open between two calls.

use super::Reader;
use super::bounds::Declared;
use super::decode::{Patterns, Strings, bad_action, code, misfit, range, unsigned};
use super::graphs;
use super::kernels;
use super::stacks;
use crate::action::ActionColumns;
use crate::row::access_ids;
use crate::{Error, Meta};
use rusqlite::{Row, params};
use std::collections::VecDeque;
use streamsan_model::{
    Access, Allocation, AllocationId, Backing, BackingId, Context, ContextId, DeviceId, Entity,
    Event, EventId, HostTime, Kernel, KernelId, KernelParam, MemoryKind, OpSeq, Operation, Process,
    ProcessId, StackId, Status, Stream, StreamId, StreamKind, Thread, ThreadId, TraceItem,
};

/// Rows in a chunk.
const CHUNK: i64 = 1024;

const OP_COLUMNS: &str = "g, exit_after, process, thread, api, action, stream, context, event, \
                          allocation, kernel, other, source, destination, bytes, flags, start_ns, \
                          duration_ns, result, graph, stack";

const ACCESS_COLUMNS: &str = "id, allocation, start, length, mode, basis, pattern";

/// Tables in the order in which they are read: each refers only to those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Processes,
    Threads,
    Contexts,
    Streams,
    Events,
    Frames,
    Stacks,
    Allocations,
    Modules,
    Kernels,
    KernelCodes,
    Graphs,
    Operations,
    Done,
}

impl Stage {
    fn next(self) -> Self {
        match self {
            Self::Processes => Self::Threads,
            Self::Threads => Self::Contexts,
            Self::Contexts => Self::Streams,
            Self::Streams => Self::Events,
            Self::Events => Self::Frames,
            Self::Frames => Self::Stacks,
            Self::Stacks => Self::Allocations,
            Self::Allocations => Self::Modules,
            Self::Modules => Self::Kernels,
            Self::Kernels => Self::KernelCodes,
            Self::KernelCodes => Self::Graphs,
            Self::Graphs => Self::Operations,
            Self::Operations | Self::Done => Self::Done,
        }
    }
}

/// The items of a trace: every entity, then the operations by `g`.
#[derive(Debug)]
pub struct Items<'a> {
    reader: &'a Reader,
    strings: Strings<'a>,
    patterns: Patterns<'a>,
    stage: Stage,
    end: Stage,
    /// Key of the last row read in this stage.
    last: i64,
    /// What to add to stored times; read with the first chunk of operations.
    clock_base: u64,
    chunk: VecDeque<TraceItem>,
    /// What the items so far allow the next ones to refer to.
    declared: Declared,
}

impl Iterator for Items<'_> {
    type Item = Result<TraceItem, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(item) = self.chunk.pop_front() {
                if let Err(error) = self.declared.admit(self.reader, &item) {
                    self.chunk.clear();
                    self.stage = self.end;
                    return Some(Err(error));
                }
                return Some(Ok(item));
            }
            if self.stage == self.end {
                return None;
            }
            if let Err(error) = self.load() {
                self.stage = self.end;
                return Some(Err(error));
            }
        }
    }
}

impl<'a> Items<'a> {
    pub(super) fn new(reader: &'a Reader) -> Self {
        Self {
            reader,
            strings: Strings::new(&reader.connection),
            patterns: Patterns::new(&reader.connection),
            stage: Stage::Processes,
            end: Stage::Done,
            last: i64::MIN,
            clock_base: 0,
            chunk: VecDeque::new(),
            declared: Declared::of_all(),
        }
    }

    /// One that leaves tables out, and reads entities only.
    fn part(self, stage: Stage, end: Stage) -> Self {
        Self { stage, end, declared: Declared::default(), ..self }
    }

    pub(super) fn entities_only(reader: &'a Reader) -> Self {
        Self { end: Stage::Operations, ..Self::new(reader) }
    }

    /// Frames and stacks.
    pub(super) fn stacks_only(reader: &'a Reader) -> Self {
        Self::new(reader).part(Stage::Frames, Stage::Allocations)
    }

    /// Processes, threads, contexts, streams and kernels: what a run has few of.
    pub(super) fn outline(reader: &'a Reader) -> impl Iterator<Item = Result<TraceItem, Error>> {
        let few = Self { end: Stage::Events, ..Self::new(reader) };
        few.chain(Self::new(reader).part(Stage::Kernels, Stage::KernelCodes))
    }

    /// Reads the next chunk, or steps to the next table.
    fn load(&mut self) -> Result<(), Error> {
        if self.stage == Stage::Operations {
            self.load_operations()?;
        } else {
            self.load_entities()?;
        }
        if self.chunk.is_empty() {
            self.stage = self.stage.next();
            self.last = i64::MIN;
        }
        Ok(())
    }

    fn load_entities(&mut self) -> Result<(), Error> {
        let (table, key) = match self.stage {
            Stage::Processes => ("process", "id"),
            Stage::Threads => ("thread", "id"),
            Stage::Contexts => ("context", "id"),
            Stage::Streams => ("stream", "id"),
            Stage::Events => ("event", "id"),
            Stage::Frames => ("frame", "id"),
            // One row a stack; the others are read with it.
            Stage::Stacks => ("(SELECT DISTINCT id FROM stack)", "id"),
            Stage::Allocations => ("allocation", "id"),
            Stage::Modules => ("module", "id"),
            Stage::Kernels => ("kernel", "id"),
            Stage::KernelCodes => ("kernel_code", "kernel"),
            Stage::Graphs => ("graph", "id"),
            Stage::Operations | Stage::Done => return Ok(()),
        };
        let (reader, stage, strings) = (self.reader, self.stage, &mut self.strings);
        let mut last = self.last;
        let entities = reader.rows(
            &format!("SELECT * FROM {table} WHERE {key} > ? ORDER BY {key} LIMIT {CHUNK}"),
            [self.last],
            |row| {
                last = ascending(row, last)?;
                entity(reader, stage, strings, row)
            },
        )?;
        self.last = last;
        self.chunk.extend(entities.into_iter().map(TraceItem::Entity));
        Ok(())
    }

    fn load_operations(&mut self) -> Result<(), Error> {
        let reader = self.reader;
        if self.last == i64::MIN {
            self.clock_base = clock_base(reader)?;
        }
        let (strings, base) = (&mut self.strings, self.clock_base);
        // No operation has an index below 0.
        let mut key = self.last.max(-1);
        let mut operations = reader.rows(
            &format!("SELECT {OP_COLUMNS} FROM op WHERE g > ? ORDER BY g LIMIT {CHUNK}"),
            [self.last],
            |row| {
                key = ascending(row, key)?;
                operation(reader, strings, base, row)
            },
        )?;
        let (Some(first), Some(last)) = (operations.first(), operations.last()) else {
            return Ok(());
        };
        self.last = last.g.0 as i64;
        add_accesses(reader, &mut self.patterns, first.g, last.g, &mut operations)?;
        self.chunk.extend(operations.into_iter().map(TraceItem::Operation));
        Ok(())
    }
}

pub(super) fn one_operation(reader: &Reader, g: OpSeq) -> Result<Option<Operation>, Error> {
    let mut strings = Strings::new(&reader.connection);
    let base = clock_base(reader)?;
    let mut found =
        reader.rows(&format!("SELECT {OP_COLUMNS} FROM op WHERE g = ?"), [g.0 as i64], |row| {
            operation(reader, &mut strings, base, row)
        })?;
    add_accesses(reader, &mut Patterns::new(&reader.connection), g, g, &mut found)?;
    Ok(found.pop())
}

/// Gives the operations, which lie in `first..=last` in ascending order, their accesses.
fn add_accesses(
    reader: &Reader,
    patterns: &mut Patterns<'_>,
    first: OpSeq,
    last: OpSeq,
    operations: &mut [Operation],
) -> Result<(), Error> {
    // Operations past the limit have no accesses.
    let Some(begin) = access_ids(first).map(|ids| ids.start) else {
        return Ok(());
    };
    let end = access_ids(last).map_or(i64::MAX, |ids| ids.end);
    let mut rest = operations.iter_mut().peekable();
    let mut key = -1;
    reader.rows(
        &format!("SELECT {ACCESS_COLUMNS} FROM access WHERE id >= ? AND id < ? ORDER BY id"),
        params![begin, end],
        |row| {
            key = ascending(row, key)?;
            let g = unsigned(row, 0)? >> crate::schema::ACCESS_BITS;
            let access: Access = patterns.access(row, 1)?;
            while rest.next_if(|operation| operation.g.0 < g).is_some() {}
            // Accesses that came late for an operation that was not stored belong to nothing.
            if let Some(operation) = rest.peek_mut().filter(|operation| operation.g.0 == g) {
                operation.accesses.push(access);
            }
            Ok(())
        },
    )?;
    Ok(())
}

/// The key of a row, which must be above the one before: in a damaged file the rows of a table can
/// come again and again.
fn ascending(row: &Row<'_>, last: i64) -> rusqlite::Result<i64> {
    let key = row.get(0)?;
    if key > last { Ok(key) } else { Err(misfit(0)) }
}

fn stream(strings: &mut Strings<'_>, row: &Row<'_>) -> rusqlite::Result<Stream> {
    Ok(Stream {
        id: StreamId(row.get(0)?),
        context: ContextId(row.get(1)?),
        kind: code(row, 2, &StreamKind::ALL)?,
        thread: row.get::<_, Option<u32>>(3)?.map(ThreadId),
        priority: row.get(4)?,
        handle: unsigned(row, 5)?,
        driver_id: unsigned(row, 6)?,
        name: strings.optional(row, 7)?,
    })
}

fn clock_base(reader: &Reader) -> Result<u64, Error> {
    match reader.meta_rows()?.get(Meta::CLOCK_BASE) {
        None => Ok(0),
        Some(text) => text
            .parse()
            .map_err(|_| reader.corrupt(&format!("fact {} of `meta`", Meta::CLOCK_BASE))),
    }
}

fn operation(
    reader: &Reader,
    strings: &mut Strings<'_>,
    base: u64,
    row: &Row<'_>,
) -> rusqlite::Result<Operation> {
    let g: i64 = row.get(0)?;
    let columns = ActionColumns {
        action: row.get(5)?,
        stream: row.get(6)?,
        context: row.get(7)?,
        event: row.get(8)?,
        allocation: row.get(9)?,
        kernel: row.get(10)?,
        other: row.get(11)?,
        source: row.get(12)?,
        destination: row.get(13)?,
        bytes: row.get(14)?,
        flags: row.get(15)?,
        graph: row.get(19)?,
    };
    let parts = match columns.has_parts() {
        true => graphs::of_operation(&reader.connection, OpSeq(g as u64))?,
        false => Vec::new(),
    };
    let time = match (row.get::<_, Option<i64>>(16)?, row.get::<_, Option<i64>>(17)?) {
        (Some(start), Some(duration)) => {
            let start_ns = base.wrapping_add(start as u64);
            Some(HostTime { start_ns, end_ns: start_ns.wrapping_add(duration as u64) })
        }
        _ => None,
    };
    Ok(Operation {
        g: OpSeq(g as u64),
        exit: row.get::<_, Option<i64>>(1)?.map(|after| OpSeq(g.wrapping_add(after) as u64)),
        process: ProcessId(row.get(2)?),
        thread: ThreadId(row.get(3)?),
        api: strings.get(row.get(4)?)?,
        time,
        status: Status(row.get(18)?),
        action: columns.decode(&parts).map_err(bad_action)?,
        accesses: Vec::new(),
        stack: row.get::<_, Option<u32>>(20)?.map(StackId),
    })
}

fn entity(
    reader: &Reader,
    stage: Stage,
    strings: &mut Strings<'_>,
    row: &Row<'_>,
) -> rusqlite::Result<Entity> {
    Ok(match stage {
        Stage::Processes => {
            let id: u32 = row.get(0)?;
            Entity::Process(Process {
                id: ProcessId(id),
                pid: row.get(1)?,
                parent_pid: row.get(2)?,
                executable: strings.text(row, 3)?,
                arguments: reader
                    .connection
                    .prepare_cached(
                        "SELECT value FROM process_argument WHERE process = ? ORDER BY ordinal",
                    )?
                    .query_map([id], |row| strings.text(row, 0))?
                    .collect::<rusqlite::Result<_>>()?,
            })
        }
        Stage::Threads => Entity::Thread(Thread {
            id: ThreadId(row.get(0)?),
            process: ProcessId(row.get(1)?),
            tid: row.get(2)?,
        }),
        Stage::Contexts => Entity::Context(Context {
            id: ContextId(row.get(0)?),
            process: ProcessId(row.get(1)?),
            device: DeviceId(row.get(2)?),
            primary: row.get(3)?,
            handle: unsigned(row, 4)?,
            parent: row.get::<_, Option<u32>>(5)?.map(ContextId),
            concurrent_managed_access: row.get(6)?,
        }),
        Stage::Streams => Entity::Stream(stream(strings, row)?),
        Stage::Events => Entity::Event(Event {
            id: EventId(row.get(0)?),
            context: ContextId(row.get(1)?),
            handle: unsigned(row, 2)?,
            flags: row.get(3)?,
            name: strings.optional(row, 4)?,
            imported: row.get(5)?,
        }),
        Stage::Allocations => Entity::Allocation(Allocation {
            id: AllocationId(row.get(0)?),
            process: ProcessId(row.get(1)?),
            context: row.get::<_, Option<u32>>(2)?.map(ContextId),
            kind: code(row, 3, &MemoryKind::ALL)?,
            range: range(row, 4)?,
            api: strings.text(row, 6)?,
            name: strings.optional(row, 7)?,
            backing: match row.get::<_, Option<u32>>(8)? {
                Some(memory) => {
                    Some(Backing { memory: BackingId(memory), offset: unsigned(row, 9)? })
                }
                None => None,
            },
            stack: row.get::<_, Option<u32>>(10)?.map(StackId),
        }),
        Stage::Frames => Entity::Frame(stacks::frame(&reader.connection, strings, row)?.into()),
        Stage::Stacks => Entity::Stack(stacks::stack(&reader.connection, row.get(0)?)?.into()),
        Stage::Graphs => graphs::graph(reader, strings, row)?,
        Stage::Modules => Entity::Module(kernels::module(strings, row)?),
        Stage::KernelCodes => Entity::KernelCode(kernels::code(reader, strings, row)?.into()),
        Stage::Kernels | Stage::Operations | Stage::Done => {
            let id: u32 = row.get(0)?;
            Entity::Kernel(Kernel {
                id: KernelId(id),
                name: strings.text(row, 1)?,
                params: reader
                    .connection
                    .prepare_cached(
                        "SELECT offset, size FROM kernel_param WHERE kernel = ? ORDER BY ordinal",
                    )?
                    .query_map([id], |row| {
                        Ok(KernelParam { offset: row.get(0)?, size: row.get(1)? })
                    })?
                    .collect::<rusqlite::Result<_>>()?,
            })
        }
    })
}
