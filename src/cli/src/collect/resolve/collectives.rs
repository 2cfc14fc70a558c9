//! NCCL: collective operations and transfers between GPUs (NCCL user guide).
//!
//! A call touches what this rank sends from and receives into, exactly. The kernels and copies that
//! NCCL issues for it keep their place in the trace, but their accesses are dropped: they would say
//! the same again, more coarsely.
//!
//! Not here: calls to a stream that is being captured. The kernels of the graph stand for them, with
//! what their parameters lead to.

use super::host::touch_bytes;
use super::lookup::Lookup;
use crate::collect::host_event::HostEvent;
use std::collections::HashMap;
use streamsan_model::{Action, ByteRange, Mode};
use streamsan_wire::{CollectivePhase, ThreadKey, Transfer};

/// What threads have asked for in groups that are not ended, by thread, stream and context.
pub(super) type Queues = HashMap<(ThreadKey, u64, u64), Vec<u64>>;

/// `[phase, stream, context, (address, bytes, transfer)...]`.
pub(super) fn resolve(l: &mut Lookup<'_>, event: &HostEvent) -> Option<Action> {
    let key = (event.origin.thread, event.arg(1), event.arg(2));
    let own = event.args.get(3..).unwrap_or_default();
    let queues = &mut l.tables.collectives;
    let transfers = match CollectivePhase::from_word(event.arg(0))? {
        CollectivePhase::Now => own.to_vec(),
        CollectivePhase::Queued => {
            queues.entry(key).or_default().extend(own);
            return None;
        }
        CollectivePhase::GroupEnd => queues.remove(&key).unwrap_or_default(),
        CollectivePhase::Dropped => {
            queues.remove(&key);
            return None;
        }
    };
    let stream = l.stream(event.arg(1))?;
    for transfer in transfers.chunks_exact(3) {
        let mode = match Transfer::from_word(transfer[2]) {
            Transfer::Send => Mode::Read,
            Transfer::Receive => Mode::Write,
            Transfer::Unknown => {
                l.gaps.not_understood(&format!("{} (size unknown)", event.call.name()));
                continue;
            }
        };
        let range = ByteRange::with_len(transfer[0], transfer[1]);
        if !range.is_empty() {
            touch_bytes(l, range, mode);
        }
    }
    Some(Action::Collective { stream })
}
