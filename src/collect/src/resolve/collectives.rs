//! NCCL: collective operations and transfers between GPUs (NCCL user guide).
//!
//! A call touches what this rank sends from and receives into, exactly. The kernels and copies that
//! NCCL issues for it keep their place in the trace, but their accesses are dropped: they would say
//! the same again, more coarsely.
//!
//! A call to a stream that is being captured touches nothing yet. Each kernel that NCCL launches for
//! it becomes a node of the graph, which touches what the call asked for.

use super::host::touch_bytes;
use super::resolution::Resolution;
use crate::host_event::HostEvent;
use std::collections::HashMap;
use std::sync::Arc;
use streamsan_model::{Action, ByteRange, CollectiveGroup, MemberCollective, Mode, StreamId};
use streamsan_wire::{CollectivePhase, ThreadKey, Transfer};

/// The transfers of groups that are not ended, by thread, stream and context.
pub(super) type Queues = HashMap<(ThreadKey, u64, u64), Vec<u64>>;

/// `[phase, stream, context, (address, bytes, transfer)...]`; at a group's end
/// `[phase, stream, context, (other stream of the context)...]`.
pub(super) fn resolve(resolution: &mut Resolution<'_>, event: &HostEvent) -> Option<Action> {
    let key = (event.origin.thread, event.arg(1), event.arg(2));
    let own = event.args.get(3..).unwrap_or_default();
    let queues = &mut resolution.tables.collectives;
    let transfers = match CollectivePhase::from_word(event.arg(0))? {
        CollectivePhase::Now => own.to_vec(),
        CollectivePhase::Queued => {
            queues.entry(key).or_default().extend(own);
            return None;
        }
        CollectivePhase::GroupEnd if !own.is_empty() => return group(resolution, event, own),
        CollectivePhase::GroupEnd => queues.remove(&key).unwrap_or_default(),
        CollectivePhase::Dropped => {
            queues.remove(&key);
            return None;
        }
    };
    let stream = resolution.named_stream(event.arg(1))?;
    let touched = touched(resolution, event, &transfers);
    if resolution.tables.captures.holds(stream) {
        let in_group = event.arg(0) == CollectivePhase::GroupEnd as u64;
        resolution.tables.captured_collectives.ask(
            event.origin.thread,
            &[stream],
            in_group,
            touched,
        );
        return None;
    }
    touch(resolution, &touched);
    Some(Action::Collective { stream })
}

/// The end of a group in several streams of a context.
fn group(resolution: &mut Resolution<'_>, event: &HostEvent, others: &[u64]) -> Option<Action> {
    let (thread, context) = (event.origin.thread, event.arg(2));
    let mut asked = Vec::new();
    for &handle in [event.arg(1)].iter().chain(others) {
        let queued =
            resolution.tables.collectives.remove(&(thread, handle, context)).unwrap_or_default();
        asked.push((resolution.named_stream(handle)?, touched(resolution, event, &queued)));
    }
    if asked.iter().any(|(stream, _)| resolution.tables.captures.holds(*stream)) {
        let streams: Vec<StreamId> = asked.iter().map(|(stream, _)| *stream).collect();
        let touched = asked.into_iter().flat_map(|(_, touched)| touched).collect();
        resolution.tables.captured_collectives.ask(thread, &streams, true, touched);
        return None;
    }
    let members = asked.into_iter().map(|(stream, touched)| {
        resolution.next_part();
        touch(resolution, &touched);
        MemberCollective { stream, accesses: resolution.part_len() }
    });
    let members = members.collect();
    Some(Action::CollectiveGroup(Arc::new(CollectiveGroup { members })))
}

/// The memory that the transfers send from and receive into.
fn touched(
    resolution: &mut Resolution<'_>,
    event: &HostEvent,
    transfers: &[u64],
) -> Vec<(ByteRange, Mode)> {
    let mut touched = Vec::new();
    for transfer in transfers.chunks_exact(3) {
        let mode = match Transfer::from_word(transfer[2]) {
            Transfer::Send => Mode::Read,
            Transfer::Receive => Mode::Write,
            Transfer::Unknown => {
                resolution.gaps.not_understood(&format!("{} (size unknown)", event.call.name()));
                continue;
            }
        };
        let range = ByteRange::with_len(transfer[0], transfer[1]);
        if !range.is_empty() {
            touched.push((range, mode));
        }
    }
    touched
}

/// Notes what a call touches.
pub(super) fn touch(resolution: &mut Resolution<'_>, touched: &[(ByteRange, Mode)]) {
    for (range, mode) in touched {
        touch_bytes(resolution, *range, *mode);
    }
}

/// The transfers of each thread's last call or group in streams that are being captured.
#[derive(Debug, Default)]
pub(super) struct Captured(HashMap<ThreadKey, Asked>);

#[derive(Debug, Default)]
struct Asked {
    streams: Vec<StreamId>,
    touched: Vec<(ByteRange, Mode)>,
    /// Whether kernels were launched for it: what is asked for next is another call.
    launched: bool,
}

impl Captured {
    fn ask(
        &mut self,
        thread: ThreadKey,
        streams: &[StreamId],
        in_group: bool,
        touched: Vec<(ByteRange, Mode)>,
    ) {
        let asked = self.0.entry(thread).or_default();
        // A group is told context by context.
        let again = streams.iter().any(|stream| asked.streams.contains(stream));
        if !in_group || asked.launched || again {
            *asked = Asked::default();
        }
        asked.streams.extend(streams);
        asked.touched.extend(touched);
    }

    /// The accesses of a kernel that the library launches in the thread. A group's kernel may be
    /// launched in any stream of the group: NCCL synchronises them with each other (user guide,
    /// "Using multiple streams").
    pub(super) fn launched(&mut self, thread: ThreadKey) -> Arc<[(ByteRange, Mode)]> {
        let Some(asked) = self.0.get_mut(&thread) else { return Arc::default() };
        asked.launched = true;
        asked.touched.as_slice().into()
    }
}
