//! The one instance of the driver in a process, and how calls enter it.

use std::env;
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use super::host_call::HostJob;
use super::state::Driver;
use crate::errors::{CuError, Outcome};
use crate::schedule::Policy;

/// The lock on the driver's state, held.
pub(super) type Held = MutexGuard<'static, Driver>;

/// The driver of this process.
#[derive(Debug)]
pub(crate) struct Sim {
    /// A forked child inherits the memory but not the threads, and is refused.
    process: u32,
    state: Mutex<Driver>,
    /// Signalled when an operation is done and when work is left pending.
    pub(super) changed: Condvar,
    /// Calls entered so far, and calls in progress.
    pub(super) calls: AtomicU64,
    pub(super) in_call: AtomicUsize,
    pub(super) watched: AtomicBool,
    /// Feeds the thread that runs host functions, once there is one.
    pub(super) host: Mutex<Option<Sender<HostJob>>>,
}

static SIM: OnceLock<Sim> = OnceLock::new();

/// Devices at most.
const MAX_DEVICES: u32 = 8;

impl Sim {
    /// `cuInit`: makes the driver on its first call, and refuses a forked child.
    pub(crate) fn initialize() -> Outcome {
        if SIM.get().is_none() {
            let policy = env::var("STREAMSAN_SIM_POLICY").unwrap_or_default();
            let policy = Policy::parse(&policy).unwrap_or_else(|message| {
                say(&message);
                Policy::Eager
            });
            let devices = env::var("STREAMSAN_SIM_DEVICES").ok().map_or(1, |text| {
                let count = text.parse().ok().filter(|count| (1..=MAX_DEVICES).contains(count));
                count.unwrap_or_else(|| {
                    say(&format!(
                        "STREAMSAN_SIM_DEVICES is `{text}`, not a number from 1 to {MAX_DEVICES}; \
                         simulating one device"
                    ));
                    1
                })
            });
            let driver = Driver::new(policy, devices).map_err(|error| {
                say(&error.to_string());
                CuError::OUT_OF_MEMORY
            })?;
            // A second thread may have been faster: its driver stays, ours is dropped.
            let _lost_race = SIM.set(Sim {
                process: process::id(),
                state: Mutex::new(driver),
                changed: Condvar::new(),
                calls: AtomicU64::new(0),
                in_call: AtomicUsize::new(0),
                watched: AtomicBool::new(false),
                host: Mutex::new(None),
            });
        }
        Sim::get().map(|_| ())
    }

    /// The driver, if `cuInit` was called in this very process.
    pub(crate) fn get() -> Outcome<&'static Sim> {
        SIM.get().filter(|sim| sim.process == process::id()).ok_or(CuError::NOT_INITIALIZED)
    }

    pub(super) fn lock(&'static self) -> Held {
        // A panic while the lock is held is reported as CUDA_ERROR_UNKNOWN by the call that
        // panicked; later calls go on with the state as it is.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says one line to the user on standard error.
pub(crate) fn say(line: &str) {
    eprintln!("streamsan simulator: {line}");
}

/// A driver call in progress.
#[derive(Debug)]
pub(crate) struct Call {
    pub(super) sim: &'static Sim,
}

impl Call {
    /// Enters the driver, unless it was never initialised here or a host function calls.
    pub(crate) fn enter() -> Outcome<Call> {
        let sim = Sim::get()?;
        if super::thread::in_callback() {
            return Err(CuError::NOT_PERMITTED);
        }
        sim.in_call.fetch_add(1, Ordering::SeqCst);
        sim.calls.fetch_add(1, Ordering::SeqCst);
        Ok(Call { sim })
    }

    pub(super) fn lock(&self) -> Held {
        self.sim.lock()
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.sim.in_call.fetch_sub(1, Ordering::SeqCst);
    }
}
