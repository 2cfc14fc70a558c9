//! GPUDirect Storage: transfers between files and memory (cuFile API reference).

use super::host::touch_bytes;
use super::resolution::Resolution;
use crate::host_event::HostEvent;
use std::collections::HashMap;
use streamsan_model::{Action, ByteRange, FileBatchId, Mode};
use streamsan_wire::HostCall;

/// `CUFILE_READ`: from the file into memory. The only other opcode is a write.
const OPCODE_READ: u64 = 0;

/// Requests that are not known to be over, by the handle of their batch.
pub(super) type Batches = HashMap<u64, Vec<Submitted>>;

/// Requests that were submitted by one record: one, unless a call has very many.
#[derive(Debug)]
pub(super) struct Submitted {
    id: FileBatchId,
    /// The names by which the program told them apart.
    cookies: Vec<u64>,
}

pub(super) fn resolve(resolution: &mut Resolution<'_>, event: &HostEvent) -> Option<Action> {
    match event.call {
        HostCall::FileRead => synchronous(resolution, event, Mode::Write),
        HostCall::FileWrite => synchronous(resolution, event, Mode::Read),
        HostCall::FileReadAsync => asynchronous(resolution, event, Mode::Write),
        HostCall::FileWriteAsync => asynchronous(resolution, event, Mode::Read),
        HostCall::FileBatchSubmit => submit(resolution, event),
        HostCall::FileBatchGetStatus => status(resolution, event),
        HostCall::FileBatchDestroy => {
            resolution.tables.file_batches.remove(&event.arg(0));
            None
        }
        _ => None,
    }
}

/// `cuFileRead`, `cuFileWrite`: over when they return, with as many bytes as they answer.
fn synchronous(resolution: &mut Resolution<'_>, event: &HostEvent, mode: Mode) -> Option<Action> {
    let moved = event.returned.map_or(event.arg(1), |r| u64::try_from(r.result).unwrap_or(0));
    let range = ByteRange::with_len(event.arg(0), moved.min(event.arg(1)));
    if !range.is_empty() {
        touch_bytes(resolution, range, mode);
    }
    Some(Action::HostAccess)
}

/// `cuFileReadAsync`, `cuFileWriteAsync`: in stream order. A size that is not known at submission
/// has to be the largest possible one, so nothing outside the range is touched.
fn asynchronous(resolution: &mut Resolution<'_>, event: &HostEvent, mode: Mode) -> Option<Action> {
    let stream = resolution.stream(event.arg(2))?;
    let range = ByteRange::with_len(event.arg(0), event.arg(1));
    if !range.is_empty() {
        touch_bytes(resolution, range, mode);
    }
    Some(Action::FileTransfer { stream })
}

/// `cuFileBatchIOSubmit`: `[batch, (address, bytes, opcode, cookie)...]`.
fn submit(resolution: &mut Resolution<'_>, event: &HostEvent) -> Option<Action> {
    if !event.succeeded() {
        return None;
    }
    let requests = event.args.get(1..).unwrap_or_default().chunks_exact(4);
    for request in requests.clone() {
        let range = ByteRange::with_len(request[0], request[1]);
        let mode = if request[2] == OPCODE_READ { Mode::Write } else { Mode::Read };
        if !range.is_empty() {
            touch_bytes(resolution, range, mode);
        }
    }
    let id = resolution.ids.file_batch();
    let cookies = requests.map(|request| request[3]).collect();
    resolution.tables.file_batches.entry(event.arg(0)).or_default().push(Submitted { id, cookies });
    Some(Action::FileBatchSubmit { batch: id })
}

/// `cuFileBatchIOGetStatus`: `[batch, cookie of a request that is over]`. The program knows it from
/// here on.
fn status(resolution: &mut Resolution<'_>, event: &HostEvent) -> Option<Action> {
    let submitted = resolution.tables.file_batches.get_mut(&event.arg(0))?;
    let cookie = event.arg(1);
    // Two requests may bear one cookie: the older one is taken to be over.
    let at = submitted.iter().position(|s| s.cookies.contains(&cookie))?;
    let part = &mut submitted[at];
    part.cookies.swap_remove(part.cookies.iter().position(|known| *known == cookie)?);
    if !part.cookies.is_empty() {
        return Some(Action::Other);
    }
    let Submitted { id, .. } = submitted.remove(at);
    Some(Action::FileBatchComplete { batch: id })
}
