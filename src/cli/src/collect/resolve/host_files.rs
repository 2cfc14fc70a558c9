//! GPUDirect Storage: transfers between files and memory (cuFile API reference).

use super::host::touch_bytes;
use super::lookup::Lookup;
use crate::collect::host_event::HostEvent;
use std::collections::HashMap;
use streamsan_model::{Action, ByteRange, FileBatchId, Mode};
use streamsan_wire::HostCall;

/// `CUFILE_READ`: from the file into memory. The only other opcode is a write.
const OPCODE_READ: u64 = 0;

/// Batches by their handle.
pub(super) type Batches = HashMap<u64, Batch>;

/// Requests of a batch that are not known to be over.
#[derive(Debug)]
pub(super) struct Batch {
    id: FileBatchId,
    /// What the program told them apart by.
    cookies: Vec<u64>,
}

pub(super) fn resolve(l: &mut Lookup<'_>, event: &HostEvent) -> Option<Action> {
    match event.call {
        HostCall::FileRead => synchronous(l, event, Mode::Write),
        HostCall::FileWrite => synchronous(l, event, Mode::Read),
        HostCall::FileReadAsync => asynchronous(l, event, Mode::Write),
        HostCall::FileWriteAsync => asynchronous(l, event, Mode::Read),
        HostCall::FileBatchSubmit => submit(l, event),
        HostCall::FileBatchGetStatus => status(l, event),
        HostCall::FileBatchDestroy => {
            l.tables.file_batches.remove(&event.arg(0));
            None
        }
        _ => None,
    }
}

/// `cuFileRead`, `cuFileWrite`: over when they return, with as many bytes as they answer.
fn synchronous(l: &mut Lookup<'_>, event: &HostEvent, mode: Mode) -> Option<Action> {
    let moved = event.returned.map_or(event.arg(1), |r| u64::try_from(r.result).unwrap_or(0));
    let range = ByteRange::with_len(event.arg(0), moved.min(event.arg(1)));
    if !range.is_empty() {
        touch_bytes(l, range, mode);
    }
    Some(Action::HostAccess)
}

/// `cuFileReadAsync`, `cuFileWriteAsync`: in stream order. A size that is not known at submission
/// has to be the largest possible one, so nothing outside the range is touched.
fn asynchronous(l: &mut Lookup<'_>, event: &HostEvent, mode: Mode) -> Option<Action> {
    let stream = l.stream(event.arg(2))?;
    let range = ByteRange::with_len(event.arg(0), event.arg(1));
    if !range.is_empty() {
        touch_bytes(l, range, mode);
    }
    Some(Action::FileTransfer { stream })
}

/// `cuFileBatchIOSubmit`: `[batch, (address, bytes, opcode, cookie)...]`. What is submitted to a
/// batch before all earlier requests are over belongs to them.
fn submit(l: &mut Lookup<'_>, event: &HostEvent) -> Option<Action> {
    if !event.succeeded() {
        return None;
    }
    let handle = event.arg(0);
    let new = !l.tables.file_batches.contains_key(&handle);
    if new {
        let batch = Batch { id: l.ids.file_batch(), cookies: Vec::new() };
        l.tables.file_batches.insert(handle, batch);
    }
    let requests = event.args.get(1..).unwrap_or_default().chunks_exact(4);
    for request in requests.clone() {
        let range = ByteRange::with_len(request[0], request[1]);
        let mode = if request[2] == OPCODE_READ { Mode::Write } else { Mode::Read };
        if !range.is_empty() {
            touch_bytes(l, range, mode);
        }
    }
    let batch = l.tables.file_batches.get_mut(&handle)?;
    batch.cookies.extend(requests.map(|request| request[3]));
    Some(Action::FileBatchSubmit { batch: batch.id })
}

/// `cuFileBatchIOGetStatus`: `[batch, cookies of what is over...]`. The program knows that the
/// batch is complete when it has been told of every request.
fn status(l: &mut Lookup<'_>, event: &HostEvent) -> Option<Action> {
    let handle = event.arg(0);
    let batch = l.tables.file_batches.get_mut(&handle)?;
    for cookie in event.args.get(1..).unwrap_or_default() {
        if let Some(at) = batch.cookies.iter().position(|known| known == cookie) {
            batch.cookies.swap_remove(at);
        }
    }
    let id = batch.id;
    if !batch.cookies.is_empty() {
        return Some(Action::Other);
    }
    l.tables.file_batches.remove(&handle);
    Some(Action::FileBatchComplete { batch: id })
}
