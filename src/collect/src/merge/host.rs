//! Statements of host threads about themselves, among the calls.

use super::{Merge, Ready};
use crate::host_event::{HostEvent, HostReturn};
use std::time::Instant;
use streamsan_model::{OpSeq, Status, TraceItem};
use streamsan_wire::{CollectivePhase, ThreadKey};

impl Merge {
    /// A host thread says what it does. A call that takes time hides the driver calls within it:
    /// they are its own doing. Those within a collective operation are kept, for they make streams
    /// and memory that later calls use, but marked.
    pub(super) fn host(&mut self, event: HostEvent, now: Instant) {
        let complete = !event.call.returns();
        if event.call.is_collective() {
            let open = self.collectives.entry(event.origin.thread).or_default();
            // The streams of a group end together; of anything else a return was lost.
            if event.arg(0) != CollectivePhase::GroupEnd as u64 {
                open.clear();
            }
            open.push(event.g);
            return self.push(event.g, now, false, Ready::Host(event));
        }
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
        if let Some(open) = self.collectives.get_mut(&thread)
            && open.contains(&begin)
        {
            open.retain(|g| *g != begin);
            if open.is_empty() {
                self.collectives.remove(&thread);
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Origin;
    use crate::merge::Policy;
    use streamsan_wire::{Api, HostCall, ProcessKey};

    struct Alive;

    impl Policy for Alive {
        fn needs_return(&self, _: Api) -> bool {
            false
        }

        fn has_ended(&self, _: ProcessKey) -> bool {
            false
        }
    }

    fn event(g: u64, thread: u32, call: HostCall) -> HostEvent {
        let origin = Origin { process: ProcessKey(0), thread: ThreadKey(thread), tid: thread };
        HostEvent {
            g,
            origin,
            call,
            args: [].into(),
            text: "".into(),
            start_ns: 0,
            stack: None,
            returned: None,
        }
    }

    fn handed_over(merge: &mut Merge, now: Instant) -> Vec<(u64, Option<i64>)> {
        let mut all = Vec::new();
        while let Some(ready) = merge.next(now, &Alive) {
            let Ready::Host(event) = ready else { panic!("{ready:?}") };
            all.push((event.g, event.returned.map(|r| r.result)));
        }
        all
    }

    #[test]
    fn what_takes_no_time_is_handed_over_at_once() {
        let (mut merge, now) = (Merge::default(), Instant::now());
        merge.host(event(1, 0, HostCall::HostRead), now);
        merge.host(event(2, 0, HostCall::MutexReleased), now);
        assert_eq!(handed_over(&mut merge, now), [(1, None), (2, None)]);
    }

    #[test]
    fn transfers_wait_for_their_return() {
        let (mut merge, now) = (Merge::default(), Instant::now());
        merge.host(event(1, 0, HostCall::FileRead), now);
        merge.host(event(2, 1, HostCall::HostRead), now);
        assert_eq!(handed_over(&mut merge, now), []);
        let returned = HostReturn { exit: 3, end_ns: 0, result: 64 };
        assert_eq!(merge.host_return(ThreadKey(0), 1, returned), None);
        assert_eq!(handed_over(&mut merge, now), [(1, Some(64)), (2, None)]);
    }

    #[test]
    fn calls_within_a_collective_are_marked() {
        let (mut merge, now) = (Merge::default(), Instant::now());
        let launch = |merge: &mut Merge, g, thread| {
            let call = event(g, thread, HostCall::HostRead).as_call(0);
            merge.begin(call, 0, now);
        };
        merge.host(event(1, 0, HostCall::NcclAllReduce), now);
        launch(&mut merge, 2, 0);
        launch(&mut merge, 3, 1);
        let returned = HostReturn { exit: 4, end_ns: 0, result: 0 };
        merge.host_return(ThreadKey(0), 1, returned);
        launch(&mut merge, 5, 0);
        let later = now + std::time::Duration::from_secs(60);
        let mut marked = Vec::new();
        while let Some(ready) = merge.next(later, &Alive) {
            if let Ready::Call(call) = ready {
                marked.push((call.g, call.of_library));
            }
        }
        assert_eq!(marked, [(2, true), (3, false), (5, false)]);
    }

    #[test]
    fn failure_of_a_transfer_that_was_handed_over_is_remembered() {
        let (mut merge, now) = (Merge::default(), Instant::now());
        merge.host(event(1, 0, HostCall::FileRead), now);
        let later = now + std::time::Duration::from_secs(1);
        assert_eq!(handed_over(&mut merge, later), [(1, None)]);
        let returned = HostReturn { exit: 2, end_ns: 0, result: -1 };
        let late = merge.host_return(ThreadKey(0), 1, returned);
        assert!(matches!(late, Some(TraceItem::Returned { status: Status(-1), .. })), "{late:?}");
        assert!(merge.failed_late());
    }
}
