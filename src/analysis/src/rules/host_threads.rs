//! Order between host threads (`--strict-host-threads`).

use crate::Sink;
use crate::core::Core;
use streamsan_model::{Operation, SyncObject};

/// A thread lets go of the object.
pub(crate) fn release(
    _core: &mut Core,
    _op: &Operation,
    _object: SyncObject,
    _sink: &mut dyn Sink,
) {
}

/// A thread got hold of the object.
pub(crate) fn acquire(
    _core: &mut Core,
    _op: &Operation,
    _object: SyncObject,
    _sink: &mut dyn Sink,
) {
}
