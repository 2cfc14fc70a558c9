//! Host functions and stream callbacks.
//!
//! They run on one thread of the driver, never on a thread of the program: a function may take a
//! lock that the submitting thread holds. The thread that would run the operation waits for the
//! function for a bounded time, so that a single-threaded program stays deterministic, and goes on
//! without it when the function itself waits for the program.

use std::sync::PoisonError;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use super::graph::{HostNode, NodeKind};
use super::sim::{Call, Held, Sim};
use super::stream::DefaultStream;
use super::thread as program_thread;
use super::work::{Job, Work};
use crate::errors::{CuError, Outcome, SUCCESS};
use crate::exports::callback;
use crate::os;
use crate::schedule::OpId;

/// How long a submission or synchronisation waits for a function before it goes on without it.
const PATIENCE: Duration = Duration::from_millis(500);

/// A function of the program to call, as addresses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostCall {
    pub(crate) function: usize,
    pub(crate) data: usize,
    pub(crate) form: HostForm,
}

/// How the function is declared.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HostForm {
    /// `CUhostFn`.
    Function,
    /// `CUstreamCallback`: called also after an error, with the stream's handle.
    StreamCallback { stream: u64 },
}

impl HostCall {
    pub(super) fn runs_after_fault(&self) -> bool {
        matches!(self.form, HostForm::StreamCallback { .. })
    }
}

/// A function on its way to the thread that calls it.
#[derive(Debug)]
pub(super) struct HostJob {
    op: OpId,
    job: Job,
    call: HostCall,
    status: u32,
}

impl Sim {
    /// Hands a started operation to the thread for host functions.
    pub(super) fn call_host(
        &'static self,
        mut driver: Held,
        op: OpId,
        job: Job,
        poison: Option<CuError>,
    ) -> Held {
        let Work::Host(call) = job.work else { return driver };
        let status = poison.map_or(SUCCESS, |error| error.0);
        let refused = match self.host_thread() {
            Some(thread) => thread.send(HostJob { op, job, call, status }).err().map(|lost| lost.0),
            None => Some(HostJob { op, job, call, status }),
        };
        if let Some(lost) = refused {
            driver.complete(op, &lost.job, 0, Err(CuError::OPERATING_SYSTEM));
            return driver;
        }
        let deadline = Instant::now() + PATIENCE;
        while !driver.queue.is_done(op)
            && let Some(left) = deadline.checked_duration_since(Instant::now())
        {
            let waited = self.changed.wait_timeout(driver, left);
            driver = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        driver
    }

    fn host_thread(&'static self) -> Option<Sender<HostJob>> {
        let mut host = self.host.lock().unwrap_or_else(PoisonError::into_inner);
        if host.is_none() {
            let (sender, receiver) = mpsc::channel();
            let signals = os::SignalsBlocked::new();
            let started = thread::Builder::new()
                .name("sim-callbacks".into())
                .spawn(move || self.call_back(&receiver));
            drop(signals);
            *host = started.is_ok().then_some(sender);
        }
        host.clone()
    }

    fn call_back(&'static self, jobs: &Receiver<HostJob>) {
        program_thread::set_in_callback(true);
        for HostJob { op, job, call, status } in jobs {
            callback::call(call, status);
            self.lock().complete(op, &job, 5_000, Ok(()));
            self.changed.notify_all();
        }
    }
}

impl Call {
    /// `cuLaunchHostFunc` and `cuStreamAddCallback`.
    pub(crate) fn host_function(
        &self,
        function: usize,
        data: usize,
        stream_callback: bool,
        stream: u64,
        default: DefaultStream,
    ) -> Outcome {
        let mut driver = self.lock();
        let id = driver.resolve(stream, default)?;
        if function == 0 {
            return Err(CuError::INVALID_VALUE);
        }
        let form =
            if stream_callback { HostForm::StreamCallback { stream } } else { HostForm::Function };
        if driver.is_capturing(id)? {
            if stream_callback {
                return driver.refuse_capture(id);
            }
            let call = HostCall { function, data, form };
            return driver.capture(id, NodeKind::Host(HostNode { call })).map(|_| ());
        }
        driver.submit(id, Work::Host(HostCall { function, data, form }), &[]);
        drop(self.sim.submitted(driver));
        Ok(())
    }
}
