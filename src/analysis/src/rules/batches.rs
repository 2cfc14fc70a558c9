//! Batched copies: one operation of its stream whose entries have no order among themselves.
//!
//! Invariant: the entries of a batch are checked against each other, and each entry once against
//! the shadow memory. Source: Driver API, `cuMemcpyBatchAsync`.

use crate::Sink;
use crate::clock::Chain;
use crate::core::{Core, View};
use crate::memory::{Conflict, Memory, Scope};
use crate::record::{AccessRecord, Place};
use crate::rules::catalogue::Rule;
use crate::shadow::Limits;
use crate::touch::{Site, mapping};
use std::sync::Arc;
use streamsan_model::{Access, Batch, BatchEntry, ContextId, OpSeq, Operation, SourceOrder};

/// `cuMemcpyBatchAsync`, `cuMemcpy3DBatchAsync`, `cuMemBatchDecompressAsync`: the batch is behind
/// the stream's earlier work and before its later work; "the copies themselves are not guaranteed
/// to be executed in any specific order". The attributes of a source say whether it is read in
/// stream order, during the call, or at any time from the call to the batch's end; "stream order"
/// holds for pageable sources too. Documented: Driver API, `cuMemcpyBatchAsync`.
pub(crate) fn batch(core: &mut Core, op: &Operation, batch: &Batch, sink: &mut dyn Sink) {
    let view = core.enqueue(op, batch.stream, sink);
    let Some((chain, _)) = view.own else { return };
    let host = core.host_view(op.process);
    let in_stream = Site::stream(&view, batch.stream, Place::Chain(chain));
    let floating = Site::stream(&host, batch.stream, Place::Chain(chain));
    let read = Site::host(&host);
    let entries: Vec<(&BatchEntry, &[Access])> = parts(op, batch);
    // Reads out of stream order come first: earlier accesses that only the other entries are behind
    // must still be in the shadow memory.
    for out_of_order in [true, false] {
        for (entry, accesses) in &entries {
            for access in *accesses {
                let reads_source = access.mode.reads() && !access.mode.writes();
                let site = match entry.copy.source_order {
                    SourceOrder::DuringCall | SourceOrder::Any if !reads_source => &in_stream,
                    SourceOrder::Stream => &in_stream,
                    SourceOrder::DuringCall if core.applies(Rule::CopySourceDuringCall) => &read,
                    SourceOrder::DuringCall | SourceOrder::Any => &floating,
                };
                if site.view.own.is_none() == out_of_order {
                    core.touch(op, access, site);
                }
            }
        }
    }
    check_entries(core, op, batch, &entries);
}

/// The entries, each with its accesses.
fn parts<'a>(op: &'a Operation, batch: &'a Batch) -> Vec<(&'a BatchEntry, &'a [Access])> {
    let mut rest = op.accesses.as_slice();
    let part = |entry: &'a BatchEntry| {
        let (own, others) = rest.split_at(rest.len().min(entry.accesses as usize));
        rest = others;
        (entry, own)
    };
    batch.entries.iter().map(part).collect()
}

/// Finds entries that write what another entry touches, in a shadow memory of their own in which
/// each entry is an operation behind nothing.
fn check_entries(
    core: &mut Core,
    op: &Operation,
    batch: &Batch,
    entries: &[(&BatchEntry, &[Access])],
) {
    let mut memory = Memory::default();
    let limits = Limits::new(core.options.antichain_cap);
    let view = View::default();
    for (at, (_, accesses)) in (1u64..).zip(entries) {
        let chain = Chain { slot: at as u32, context: ContextId(0) };
        let site = Site::stream(&view, batch.stream, Place::Chain(chain));
        for access in *accesses {
            let record = AccessRecord { op: OpSeq(at), ..core.record(op, access, &site) };
            let mapping = mapping(&core.entities, access.allocation);
            let spent = memory.keep(&Arc::new(record), mapping, &view, limits);
            core.statistics.antichain_overflows += spent.overflows;
        }
    }
    let itself = |entry: &AccessRecord| Arc::new(AccessRecord { op: op.g, ..entry.clone() });
    core.memory.conflicts.extend(memory.conflicts.iter().map(|conflict| Conflict {
        scope: Scope::Parts,
        earlier: itself(&conflict.earlier),
        later: itself(&conflict.later),
        ..conflict.clone()
    }));
}
