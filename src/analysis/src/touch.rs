//! From an access of an operation to its record in the shadow memory.

use crate::core::{Core, View};
use crate::record::{AccessRecord, Place};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use streamsan_model::{Access, KernelId, Operation, StreamId};

/// Where and from where an access happens.
#[derive(Clone, Debug)]
pub(crate) struct Site<'a> {
    /// What happens before it.
    pub(crate) view: &'a View,
    /// Where it happens itself.
    pub(crate) place: Place,
    /// The stream of reports; `None` on the host.
    pub(crate) stream: Option<StreamId>,
    pub(crate) kernel: Option<KernelId>,
    /// Whether the call is one of the synchronous forms.
    pub(crate) synchronous: bool,
}

impl<'a> Site<'a> {
    pub(crate) fn host(view: &'a View) -> Self {
        Self { view, place: Place::Host, stream: None, kernel: None, synchronous: false }
    }

    pub(crate) fn stream(view: &'a View, stream: StreamId, place: Place) -> Self {
        Self { view, place, stream: Some(stream), kernel: None, synchronous: false }
    }

    pub(crate) fn of_kernel(mut self, kernel: KernelId) -> Self {
        self.kernel = Some(kernel);
        self
    }
}

impl Core {
    /// Checks the access against the shadow memory and keeps it there.
    pub(crate) fn touch(&mut self, op: &Operation, access: &Access, site: &Site<'_>) {
        let call = op.action.stream().and_then(|stream| self.stream(stream)?.newest_call.as_ref());
        let record = Arc::new(AccessRecord {
            id: self.statistics.accesses,
            op: op.g,
            process: op.process,
            place: site.place,
            stream: site.stream,
            api: Arc::clone(&op.api),
            kernel: site.kernel,
            access: access.clone(),
            view: site.view.clone(),
            synchronous: site.synchronous,
            ambiguous: AtomicBool::new(call.is_some_and(|call| call.overlapped)),
        });
        self.statistics.accesses += 1;
        let spent = self.memory.touch(&record, site.view, self.options.antichain_cap);
        self.statistics.antichain_overflows += spent.overflows;
        let call =
            op.action.stream().and_then(|stream| self.stream_mut(stream)?.newest_call.as_mut());
        if let Some(call) = call {
            call.accesses.push(record);
        }
    }
}
