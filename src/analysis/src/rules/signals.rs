//! Stream memory operations and external semaphores.

use crate::Sink;
use crate::core::Core;
use streamsan_model::{Operation, Signals};

/// `cuStreamWriteValue32`, `cuStreamWaitValue32`, ...
pub(crate) fn signals(core: &mut Core, op: &Operation, signals: &Signals, sink: &mut dyn Sink) {
    let _ = core.enqueue(op, signals.stream, sink);
}
