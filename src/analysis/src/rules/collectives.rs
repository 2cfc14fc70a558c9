//! NCCL: collective operations and transfers between GPUs.
//!
//! Invariant: a collective makes no order but that of its rank's own streams. Source: NCCL user
//! guide.
//!
//! Deliberately absent: order among ranks (a receive is behind the send that it matches, but no
//! order of the rank's own streams follows from that), and order among the streams of two devices
//! in one group (NCCL launches a kernel for each device).

use crate::clock::Part;
use crate::core::Core;
use crate::record::Place;
use crate::rules::launches::{Points, join_streams};
use crate::state::StreamState;
use crate::touch::Site;
use crate::{Rule, Sink};
use streamsan_model::{CollectiveGroup, EdgeKind, OpSeq, Operation, StreamId, Tier};

/// `ncclAllReduce`, `ncclSend`, ...: an operation of its stream. Documented: NCCL user guide, stream
/// semantics.
pub(crate) fn collective(core: &mut Core, op: &Operation, stream: StreamId, sink: &mut dyn Sink) {
    let view = core.enqueue(op, stream, sink);
    let Some((chain, _)) = view.own else { return };
    let site = Site::stream(&view, stream, Place::Chain(chain));
    for access in &op.accesses {
        core.touch(op, access, &site);
    }
}

/// `ncclGroupEnd` of calls in several streams. Documented: NCCL user guide, "Mixing Multiple Streams
/// within the same ncclGroupStart/End() group": it "will enforce a stream dependency of all streams
/// before the NCCL kernel starts and block all streams until the NCCL kernel completes".
pub(crate) fn group(core: &mut Core, op: &Operation, group: &CollectiveGroup, sink: &mut dyn Sink) {
    let mut before = Points::new();
    for member in &group.members {
        core.prepare(op, member.stream, sink);
        let parts = core.stream(member.stream).map(StreamState::parts).unwrap_or_default();
        before.push((member.stream, parts));
    }
    let is_joined = core.applies(Rule::CollectiveGroup);
    if is_joined {
        join_streams(core, op, &before);
        let newest = before.iter().flat_map(|(_, parts)| parts).map(|part| part.g).max();
        if let Some(newest) = newest {
            let kind = EdgeKind::CollectiveGroup;
            core.edge(OpSeq(newest), op.g, kind, Tier::Documented, sink);
        }
    }
    let mut after = Points::new();
    let mut accesses = op.accesses.iter();
    for member in &group.members {
        let stream = member.stream;
        let view = core.append(op, stream);
        let Some((chain, _)) = view.own else { continue };
        let site = Site::stream(&view, stream, Place::Chain(chain));
        for access in accesses.by_ref().take(member.accesses as usize) {
            core.touch(op, access, &site);
        }
        after.push((stream, [Part { chain, g: op.g.0, know: view.know }].into()));
    }
    if is_joined {
        join_streams(core, op, &after);
    }
}
