//! Order between host threads (`--strict-host-threads`).

use crate::clock::Know;
use crate::core::Core;
use crate::{Rule, Sink};
use std::sync::Arc;
use streamsan_model::{EdgeKind, OpSeq, Operation, SyncObject, Tier};

/// What threads have let go of an object with.
#[derive(Clone, Debug)]
pub(crate) struct Released {
    know: Know,
    /// The newest release.
    by: OpSeq,
}

/// A thread lets go of the object: whoever gets hold of it later knows what the thread knew, and is
/// behind what it did. Of several releases (the posts of a semaphore, the arrivals at a barrier) an
/// acquisition is behind all that came before it. Documented: POSIX, memory synchronization.
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

/// A thread got hold of the object.
pub(crate) fn acquire(core: &mut Core, op: &Operation, object: SyncObject, sink: &mut dyn Sink) {
    if !core.strict {
        return;
    }
    let Some(released) = core.sync_objects.get(&object).cloned() else { return };
    core.host(op.process).learn(&released.know);
    core.edge(released.by, op.g, EdgeKind::HostThreads, Tier::Documented, sink);
}
