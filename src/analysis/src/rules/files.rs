//! GPUDirect Storage: transfers between files and memory. (The synchronous calls are accesses of
//! the host and need no rule here.)
//!
//! Invariant: a batch is ordered by its submission and by a status query that sees it complete, by
//! nothing else. Source: cuFile API.

use crate::clock::{Chain, Part};
use crate::core::{Core, View};
use crate::host::Acquisition;
use crate::record::Place;
use crate::touch::Site;
use crate::{Rule, Sink};
use std::collections::BTreeMap;
use std::sync::Arc;
use streamsan_model::{EdgeKind, FileBatchId, Operation, StreamId, Tier};

/// Batches of transfers.
#[derive(Debug, Default)]
pub(crate) struct FileBatches {
    /// Batches that no query has seen complete. A batch may be submitted again before that.
    under_way: BTreeMap<FileBatchId, Vec<Part>>,
    /// Chains of finished batches, with their last use.
    over: Vec<(Chain, u64)>,
}

/// `cuFileReadAsync`, `cuFileWriteAsync`: an operation of its stream. Documented: cuFile API,
/// asynchronous reads and writes.
pub(crate) fn transfer(core: &mut Core, op: &Operation, stream: StreamId, sink: &mut dyn Sink) {
    let view = core.enqueue(op, stream, sink);
    let Some((chain, _)) = view.own else { return };
    let site = Site::stream(&view, stream, Place::Chain(chain));
    for access in &op.accesses {
        core.touch(op, access, &site);
    }
}

/// `cuFileBatchIOSubmit`: the transfers run by themselves, behind what the host knew when it
/// submitted them. Neither a stream nor the synchronisation of a context orders them. Documented:
/// cuFile API, batch transfers.
pub(crate) fn submit(core: &mut Core, op: &Operation, batch: FileBatchId) {
    let know = Arc::clone(&core.host(op.process).know);
    let over = &mut core.file_batches.over;
    // A chain can get another owner once every agent is behind the former owner.
    let free = over.iter().position(|&(chain, last)| know.documented.covers(chain, last));
    let chain = match free {
        Some(free) => over.swap_remove(free).0,
        None => core.new_chain(Chain::NOWHERE),
    };
    let mut view = View { own: None, agent: core.issuing_agent(), know };
    if core.strict {
        let know = Arc::make_mut(&mut view.know);
        know.documented.raise_host(view.agent, op.g.0);
    }
    for access in &op.accesses {
        let site = Site { place: Place::Chain(chain), ..Site::host(&view) };
        core.touch(op, access, &site);
    }
    let part = Part { chain, g: op.g.0, know: view.know };
    core.file_batches.under_way.entry(batch).or_default().push(part);
}

/// `cuFileBatchIOGetStatus` that saw the whole batch complete: the host is behind the batch.
/// Documented: cuFile API, batch transfers.
pub(crate) fn complete(core: &mut Core, op: &Operation, batch: FileBatchId, sink: &mut dyn Sink) {
    let Some(parts) = core.file_batches.under_way.remove(&batch) else { return };
    if !core.applies(Rule::FileBatchComplete) {
        return;
    }
    core.file_batches.over.extend(parts.iter().map(|part| (part.chain, part.g)));
    let mut acquisition = Acquisition::new(op.g, Tier::Documented);
    acquisition.parts.extend(parts);
    core.acquire(op, acquisition, EdgeKind::FileBatch, sink);
}
