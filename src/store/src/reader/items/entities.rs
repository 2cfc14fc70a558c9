//! Entities from their rows.

use super::Stage;
use crate::reader::decode::{Strings, code, range, unsigned};
use crate::reader::{Reader, graphs, kernels, stacks};
use rusqlite::Row;
use streamsan_model::{
    Allocation, AllocationId, Backing, BackingId, Context, ContextId, DeviceId, Entity, Event,
    EventId, Kernel, KernelId, KernelParam, MemoryKind, Process, ProcessId, StackId, Stream,
    StreamId, StreamKind, Thread, ThreadId,
};

/// The entity of a row, as the statement of its stage has it.
///
/// # Errors
///
/// Values that no entity has.
pub(super) fn entity(
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
