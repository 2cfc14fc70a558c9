//! Launches: each selected one gets a log while the driver makes it, and an event of ours behind it.

use core::ffi::c_void;
use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use streamsan_wire::NotMeasured;

use crate::context::{self, UNASKED};
use crate::drainer::{self, Batch, Measured};
use crate::driver::{Handle, driver};
use crate::modules::{self, Function};
use crate::runtime;
use crate::sanitizer::{GraphData, KERNEL_NODE, LaunchData, NodeData, Sanitizer};

/// Whether nothing is measured any more.
static OFF: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// What the call in progress has launched.
    static PENDING: RefCell<Vec<Measured>> = const { RefCell::new(Vec::new()) };
    /// The graph in progress is only uploaded.
    static UPLOADS: Cell<bool> = const { Cell::new(false) };
}

/// Switches measuring off for good and says why, once.
pub(crate) fn switch_off(reason: NotMeasured, why: &str) {
    if !OFF.swap(true, Ordering::AcqRel) {
        runtime::not_measured(0, reason, why);
    }
}

/// The runtime's hook before it calls the driver for a launch; gives the function to be launched.
pub(crate) fn launching(_op: u64, function: u64, _stream: u64) -> u64 {
    if OFF.load(Ordering::Acquire) {
        return function;
    }
    if let Err(why) = context::prepare() {
        let why = format!("a context has no room for marks: {why}");
        runtime::not_measured(0, NotMeasured::Other, &why);
    }
    function
}

/// The runtime's hook after the driver has returned from a launch.
pub(crate) fn launched(op: u64, stream: u64, result: i32) {
    let launches = PENDING.with_borrow_mut(std::mem::take);
    let (launches, strays): (Vec<_>, Vec<_>) =
        launches.into_iter().partition(|launch| launch.op == op);
    // Of a call whose end was not told; whether its kernels run is not known, so their logs are
    // never used again.
    for launch in &strays {
        runtime::not_measured(launch.op, NotMeasured::Other, "its call was not followed");
    }
    let Some(first) = launches.first() else { return };
    if result != 0 {
        for launch in launches {
            launch.context.give([launch.id]);
        }
        return;
    }
    let first = Arc::clone(&first.context);
    if let Err(why) = put_event(&first, stream, launches) {
        switch_off(NotMeasured::Other, &why);
    }
}

fn put_event(
    first: &Arc<context::Context>,
    stream: u64,
    launches: Vec<Measured>,
) -> Result<(), String> {
    let driver = driver().ok_or("the driver lacks a function")?;
    // The stream belongs to the calling thread's context, mostly the kernel's.
    let context = context::known(driver.current()).unwrap_or_else(|| Arc::clone(first));
    let event = context.event(driver)?;
    let stream = stream as Handle;
    // SAFETY: an event of ours and the stream of the call that has just returned.
    let result = unsafe { (driver.event_record)(event, stream) };
    crate::driver::checked("cuEventRecord", result)?;
    drainer::hand_over(Batch { context, stream, event, launches });
    Ok(())
}

/// A kernel is being launched (`SANITIZER_CBID_LAUNCH_BEGIN`).
pub(crate) fn begin(sanitizer: &Sanitizer, launch: LaunchData) {
    give_log(sanitizer, launch, launch.stream(), 0);
}

/// A node of a graph is being launched (`SANITIZER_CBID_GRAPHS_NODE_LAUNCH_BEGIN`).
pub(crate) fn node_begin(sanitizer: &Sanitizer, data: NodeData) {
    if data.node_type() == KERNEL_NODE {
        let launch = data.launch();
        give_log(sanitizer, launch, launch.api_stream(), data.node());
    }
}

/// A graph is being launched or uploaded, or no longer is.
pub(crate) fn graph(data: GraphData, begins: bool) {
    UPLOADS.set(begins && data.is_upload());
}

fn give_log(sanitizer: &Sanitizer, launch: LaunchData, stream: Handle, node: u64) {
    if OFF.load(Ordering::Acquire) && node == 0 {
        return;
    }
    // SAFETY: the name is read only where the module is known, so that the structure is what it
    // should be.
    let function =
        unsafe { modules::function(launch.module(), launch.function(), launch.function_name()) };
    match &function {
        // A module that the API has not told of is not patched; its selected launches come without
        // bytes, which the collector counts.
        Function::Unpatched | Function::Unknown => return,
        _ => {}
    }
    let op = runtime::current_op();
    let wanted = !OFF.load(Ordering::Acquire) && op != 0 && !UPLOADS.get();
    let context = context::known(launch.context());
    let mut log: *const c_void = ptr::null();
    let mut id = None;
    if let Some(context) = &context {
        match &function {
            Function::Selected if wanted => {
                id = context.take();
                log = context.log(id.unwrap_or(UNASKED));
            }
            Function::Failed(_) => {}
            // Nothing set means no log for a launch, and garbage for a node.
            _ if node != 0 => log = context.log(UNASKED),
            _ => return,
        }
    }
    match (&function, &context, id) {
        (Function::Selected, Some(_), Some(_)) => {}
        (Function::Selected, Some(_), None) if wanted => {
            runtime::not_measured(op, NotMeasured::NoRoom, "all logs were in use");
        }
        (Function::Selected, None, _) if wanted => {
            runtime::not_measured(op, NotMeasured::NoRoom, "its context has no room for marks");
        }
        (Function::Failed(why), ..) => {
            if wanted {
                runtime::not_measured(op, NotMeasured::NotPatched, why);
            }
            return;
        }
        _ => {}
    }
    // SAFETY: the handles that the callback was given, and memory of ours on the device, or null.
    let result = unsafe {
        (sanitizer.set_launch_callback_data)(launch.launch(), launch.function(), stream, log)
    };
    match (sanitizer.checked("sanitizerSetLaunchCallbackData", result), context, id) {
        (Ok(()), Some(context), Some(id)) => {
            PENDING.with_borrow_mut(|pending| pending.push(Measured { context, id, op, node }));
        }
        (Err(why), context, id) => {
            if let (Some(context), Some(id)) = (context, id) {
                context.give([id]);
            }
            switch_off(NotMeasured::Other, &why);
        }
        _ => {}
    }
}
