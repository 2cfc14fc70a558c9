//! The collector: from records in shared memory to a trace and its findings.
//!
//! Records are put back into the order in which calls were entered (`merge`), their handles become
//! ids (`resolve`), and the operations go into the trace and the engine (`recorder`).

#![forbid(unsafe_code)]

mod call;
mod collector;
mod coverage;
mod descendants;
mod host_event;
mod kernel_code;
mod launch;
mod listener;
mod log;
#[cfg(feature = "measure")]
#[doc(hidden)]
pub mod measure;
mod measured;
mod merge;
mod progress;
mod read_back;
mod reading;
mod recorder;
mod relay;
mod resolve;
mod stacks;
mod unattached;

pub use collector::{Collector, CollectorOptions, WAITED};
pub use listener::{Listener, Progress, Silent, Work};
pub use recorder::{FINDINGS_LEFT_OUT, Recorder, Recording};
