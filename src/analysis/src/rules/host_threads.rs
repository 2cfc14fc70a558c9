//! Order between host threads (`--strict-host-threads`).
//!
//! Invariant: an acquisition is behind every earlier release of its object, and behind nothing
//! else. Source: POSIX, memory synchronization.

use crate::clock::Know;
use crate::core::Core;
use crate::{Rule, Sink};
use std::sync::Arc;
use streamsan_model::{EdgeKind, OpSeq, Operation, SyncObject, Tier};

/// The knowledge with which threads have released an object.
#[derive(Clone, Debug)]
pub(crate) struct Released {
    know: Know,
    /// The newest release.
    by: OpSeq,
}

/// A thread releases the object: a later acquisition gets what the thread knew, and is behind what
/// the thread did. After several releases (the posts of a semaphore, the arrivals at a barrier) an
/// acquisition is behind all earlier ones. Documented: POSIX, memory synchronization.
pub(crate) fn release(core: &mut Core, op: &Operation, object: SyncObject) {
    if !core.strict || !core.applies(Rule::HostThreads) {
        return;
    }
    let agent = core.issuer();
    let know = Arc::clone(&core.host(op.process).know);
    let nothing = || Released { know: Know::default(), by: op.g };
    let released = core.sync_objects.entry(object).or_insert_with(nothing);
    released.know.join(&know);
    released.know.documented.raise_host(agent, op.g.0);
    released.by = op.g;
}

/// A thread acquires the object.
pub(crate) fn acquire(core: &mut Core, op: &Operation, object: SyncObject, sink: &mut dyn Sink) {
    if !core.strict {
        return;
    }
    let Some(released) = core.sync_objects.get(&object).cloned() else { return };
    core.host(op.process).learn(&released.know);
    core.edge(released.by, op.g, EdgeKind::HostThreads, Tier::Documented, sink);
}
