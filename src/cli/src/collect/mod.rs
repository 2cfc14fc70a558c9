//! The collector: from records in shared memory to a trace and its findings.
//!
//! Records are put back into the order in which calls were entered (`merge`), their handles become
//! ids (`resolve`), and the operations go into the trace and the engine (`recorder`).

mod call;
mod collector;
mod coverage;
mod host_event;
mod kernel_code;
mod merge;
mod progress;
mod read_back;
mod reading;
mod recorder;
mod resolve;
mod stacks;
mod unattached;

pub(crate) use collector::{Collector, CollectorOptions, WAITED};
pub(crate) use recorder::{FINDINGS_LEFT_OUT, Recording};
#[cfg(test)]
pub(crate) use recorder::{Recorder, create};
