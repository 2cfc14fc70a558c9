//! What host threads say of themselves, among the calls.

use super::{Merge, Ready};
use crate::collect::host_event::{HostEvent, HostReturn};
use std::time::Instant;
use streamsan_model::{OpSeq, Status, TraceItem};
use streamsan_wire::ThreadKey;

impl Merge {
    /// A host thread says what it does. A call that takes time hides the driver calls within it:
    /// they are its own doing.
    pub(super) fn host(&mut self, event: HostEvent, now: Instant) {
        let complete = !event.call.returns();
        if complete || self.enter(event.origin.thread, 0, event.g) {
            self.push(event.g, now, complete, Ready::Host(event));
        }
    }

    /// The host call at `begin` has returned. Answers its return where it was handed over before.
    pub(super) fn host_return(
        &mut self,
        thread: ThreadKey,
        begin: u64,
        returned: HostReturn,
    ) -> Option<TraceItem> {
        self.leave(thread, begin);
        if let Some(slot) = self.waiting(begin) {
            if let Ready::Host(event) = &mut slot.ready {
                event.returned = Some(returned);
                slot.complete = true;
            }
            return None;
        }
        self.failed_late |= returned.result < 0;
        Some(TraceItem::Returned {
            g: OpSeq(begin),
            exit: OpSeq(returned.exit),
            status: Status(if returned.result < 0 { -1 } else { 0 }),
        })
    }
}
