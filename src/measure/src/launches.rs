//! Launches: each selected one gets a log while the driver makes it, and an event of ours behind it.

use core::ffi::c_void;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use streamsan_wire::NotMeasured;

use crate::context::{self, Context, LARGEST_GRAPH, UNASKED};
use crate::drainer::{self, Batch, Measured, Node};
use crate::driver::{Handle, driver};
use crate::modules::{self, Function};
use crate::runtime;
use crate::sanitizer::{GraphData, KERNEL_NODE, LaunchData, NodeData, Sanitizer};
use crate::twins::{self, Timed};

/// Whether nothing is measured any more.
static OFF: AtomicBool = AtomicBool::new(false);

/// The most kernel nodes that a launch of an executable graph had, by its handle. A handle may mean
/// another graph later; then the number is only a guess that does not fit.
static NODES: Mutex<Option<HashMap<usize, usize>>> = Mutex::new(None);

const NO_CONTEXT: &str = "its context has no room for marks";

thread_local! {
    /// The twin that the call in progress launches.
    static TIMED: RefCell<Option<Timed>> = const { RefCell::new(None) };
    /// The launches of the call in progress.
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
pub(crate) fn launching(op: u64, function: u64, stream: u64) -> u64 {
    if OFF.load(Ordering::Acquire) {
        return function;
    }
    if let Err(why) = context::prepare() {
        let why = format!("a context has no room for marks: {why}");
        runtime::not_measured(0, NotMeasured::Other, &why);
    }
    let (function, timed) = twins::chosen(op, function, stream);
    TIMED.set(timed);
    function
}

/// The runtime's hook after the driver has returned from a launch.
pub(crate) fn launched(op: u64, stream: u64, result: i32) {
    let launches = PENDING.with_borrow_mut(std::mem::take);
    let timed = TIMED.take();
    let (launches, strays): (Vec<_>, Vec<_>) =
        launches.into_iter().partition(|launch| launch.op == op);
    // The end of such a call was not told. Whether its kernels run is not known, so their logs are
    // never used again.
    for launch in &strays {
        runtime::not_measured(launch.op, NotMeasured::Other, "its call was not followed");
    }
    let Some(first) = launches.first() else {
        return timed.into_iter().for_each(Timed::keep);
    };
    if result != 0 {
        timed.into_iter().for_each(Timed::keep);
        for launch in launches {
            launch.context.give(launch.first, launch.count);
        }
        return;
    }
    let first = Arc::clone(&first.context);
    if let Err(why) = put_event(&first, stream, launches, timed) {
        switch_off(NotMeasured::Other, &why);
    }
}

fn put_event(
    first: &Arc<Context>,
    stream: u64,
    launches: Vec<Measured>,
    timed: Option<Timed>,
) -> Result<(), String> {
    let driver = driver().ok_or("the driver lacks a function")?;
    // The stream belongs to the calling thread's context, mostly the kernel's.
    let context = context::known(driver.current()).unwrap_or_else(|| Arc::clone(first));
    let event = context.event(driver)?;
    let stream = stream as Handle;
    // SAFETY: an event of ours and the stream of the call that has just returned.
    let result = unsafe { (driver.event_record)(event, stream) };
    crate::driver::checked("cuEventRecord", result)?;
    drainer::hand_over(Batch { context, stream, event, launches, timed });
    Ok(())
}

/// The function of a launch, `None` where its module is not patched.
fn function(launch: LaunchData) -> Option<Function> {
    // SAFETY: the name is read only where the module is known, so that the structure is what it
    // should be.
    let function =
        unsafe { modules::function(launch.module(), launch.function(), launch.function_name()) };
    // A module that the API has not told of is not patched; its selected launches come without
    // bytes, which the collector counts.
    (!matches!(function, Function::Unpatched | Function::Unknown)).then_some(function)
}

/// Sets the user data of a launch.
fn set(sanitizer: &Sanitizer, launch: LaunchData, stream: Handle, log: *const c_void) -> bool {
    // SAFETY: the handles that the callback was given, and memory of ours on the device.
    let result = unsafe {
        (sanitizer.set_launch_callback_data)(launch.launch(), launch.function(), stream, log)
    };
    let set = sanitizer.checked("sanitizerSetLaunchCallbackData", result);
    if let Err(why) = &set {
        switch_off(NotMeasured::Other, why);
    }
    set.is_ok()
}

/// A kernel is being launched (`SANITIZER_CBID_LAUNCH_BEGIN`).
pub(crate) fn begin(sanitizer: &Sanitizer, launch: LaunchData) {
    let op = runtime::current_op();
    if op == 0 || OFF.load(Ordering::Acquire) {
        return; // without a log
    }
    match function(launch) {
        Some(Function::Selected) => {}
        Some(Function::Failed(why)) => {
            return runtime::not_measured(op, NotMeasured::NotPatched, &why);
        }
        _ => return,
    }
    let Some(context) = context::known(launch.context()) else {
        return runtime::not_measured(op, NotMeasured::NoRoom, NO_CONTEXT);
    };
    let Some(first) = context.take() else {
        return runtime::not_measured(op, NotMeasured::NoRoom, "all logs were in use");
    };
    if set(sanitizer, launch, launch.stream(), context.log(first)) {
        let measured = Measured { context, first, count: 1, op, nodes: Vec::new() };
        PENDING.with_borrow_mut(|pending| pending.push(measured));
    } else {
        context.give(first, 1);
    }
}

/// A node of a graph is being launched (`SANITIZER_CBID_GRAPHS_NODE_LAUNCH_BEGIN`). Every kernel node
/// of a patched module needs a log: user data that is not set is garbage.
pub(crate) fn node_begin(sanitizer: &Sanitizer, data: NodeData) {
    if data.node_type() != KERNEL_NODE {
        return;
    }
    let launch = data.launch();
    let Some(function) = function(launch) else { return };
    let op = runtime::current_op();
    let is_selected = function == Function::Selected;
    let wanted = op != 0 && !OFF.load(Ordering::Acquire) && !UPLOADS.get();
    if let (Function::Failed(why), true) = (&function, wanted) {
        runtime::not_measured(op, NotMeasured::NotPatched, why);
    }
    let Some(context) = context::known(launch.context()) else {
        if wanted && is_selected {
            runtime::not_measured(op, NotMeasured::NoRoom, NO_CONTEXT);
        }
        return;
    };
    if matches!(function, Function::Failed(_)) {
        return;
    }
    if function == Function::Original {
        if wanted {
            let why = "it was in no graph before, so only a second copy of its module was patched";
            runtime::not_measured(op, NotMeasured::NotPatched, why);
        }
        return;
    }
    let node = Node { grid: launch.grid(), node: data.node(), is_selected };
    let block = wanted.then(|| block(&context, op, data.executable(), node)).flatten();
    if wanted && is_selected && block.is_none() {
        runtime::not_measured(op, NotMeasured::NoRoom, "no block of logs was free for its graph");
    }
    set(sanitizer, launch, launch.api_stream(), context.log(block.unwrap_or(UNASKED)));
}

/// The first log of the block for a graph in progress, which the node is added to.
fn block(context: &Arc<Context>, op: u64, executable: usize, node: Node) -> Option<u32> {
    PENDING.with_borrow_mut(|pending| {
        let of_graph = |launch: &&mut Measured| {
            launch.op == op && launch.count > 1 && Arc::ptr_eq(&launch.context, context)
        };
        let mut known = NODES.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_default();
        if let Some(launch) = pending.iter_mut().find(of_graph) {
            launch.nodes.push(node);
            let most = known.entry(executable).or_default();
            *most = launch.nodes.len().max(*most);
            return Some(launch.first);
        }
        // How many nodes will come is known from the graph's launch before.
        let before = known.get(&executable).copied().unwrap_or(0);
        let (first, count) = match before {
            0 => context.take_largest_block(),
            nodes => context.take_block((nodes as u32).min(LARGEST_GRAPH)),
        }?;
        known.insert(executable, 1.max(before));
        let context = Arc::clone(context);
        pending.push(Measured { context, first, count, op, nodes: vec![node] });
        Some(first)
    })
}

/// A graph is being launched or uploaded, or no longer is.
pub(crate) fn graph(data: GraphData, begins: bool) {
    UPLOADS.set(begins && data.is_upload());
}
