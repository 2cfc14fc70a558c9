//! Measures which bytes selected kernels touch, with NVIDIA's public Compute Sanitizer API.
//!
//! The command puts this library into `CUDA_INJECTION64_PATH`; the driver loads it inside `cuInit` and
//! calls [`InitializeInjection`]. It loads NVIDIA's library, patches the modules that hold selected
//! kernels, gives each launch of one a log, and hands the bytes to the runtime that is preloaded into
//! the same process. The way of one launch: `launches::launching` (the runtime's hook) →
//! `modules::loaded` (the API's callback, at the first launch) → `launches::begin` (its callback)
//! → `device/patches.cu` on the GPU → `launches::launched` (the hook) → `drainer` →
//! `streamsan_op_measured` of the runtime.
//!
//! Invariants:
//! - Nothing of NVIDIA's is part of it: functions are found by name, fields read at places written
//!   down in `sanitizer`.
//! - No thread of the program waits for a launch; its streams get an event of ours behind a measured
//!   launch and, where the launch runs a twin, one in front of it, nothing else.
//! - What was not measured is told with its reason; nothing is measured in part in silence.
//! - Nothing here becomes a record of the program's: driver functions are the driver's own.
//! - A failure here switches measuring off and leaves the program alone.
//!
//! Source: NVIDIA Compute Sanitizer API ("Sanitizer API" of the Compute Sanitizer documentation), and
//! the CUDA Driver API.
//!
//! Deliberately absent: which kernels are worth measuring, and what the bytes mean.

mod budget;
mod context;
mod cubin;
mod device;
mod drainer;
mod driver;
mod launches;
mod modules;
mod runs;
mod runtime;
mod sanitizer;
mod tensor;
mod twins;

use core::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use streamsan_wire::{
    MEASURE_PATCHES_VARIABLE, MEASURE_VARIABLE, MeasureHooks, NotMeasured, SANITIZER_VARIABLE,
    Selection,
};

use sanitizer::{
    CONTEXT_DESTROY_STARTING, DOMAIN_GRAPHS, DOMAIN_LAUNCH, DOMAIN_RESOURCE, Data,
    GRAPH_LAUNCH_BEGIN, GRAPH_LAUNCH_END, GraphData, LAUNCH_BEGIN, LaunchData, MODULE_LOADED,
    MODULE_UNLOAD_STARTING, NODE_LAUNCH_BEGIN, NodeData, ResourceData, TOO_MANY,
};

static HOOKS: MeasureHooks =
    MeasureHooks { size: size_of::<MeasureHooks>() as u64, launching, launched };

/// The entry point that the driver calls in the library that `CUDA_INJECTION64_PATH` names. 1 for
/// success.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[cfg_attr(test, expect(non_snake_case, reason = "the driver looks for this name"))]
pub extern "C" fn InitializeInjection() -> i32 {
    match catch_unwind(start) {
        Ok(Ok(())) => 1,
        Ok(Err((reason, why))) => {
            runtime::not_measured(0, reason, &why);
            0
        }
        Err(_) => 0,
    }
}

fn start() -> Result<(), (NotMeasured, String)> {
    let other = |why: String| (NotMeasured::Other, why);
    // Without a selection the library was named by mistake.
    let Some(file) = std::env::var_os(MEASURE_VARIABLE) else { return Ok(()) };
    let file = PathBuf::from(file);
    let text = std::fs::read_to_string(&file).map_err(|error| {
        other(format!("the selection {} cannot be read: {error}", file.display()))
    })?;
    let selection = Selection::parse(&text).map_err(|error| other(error.to_string()))?;
    if selection.is_empty() {
        return Ok(());
    }
    let patches = std::env::var_os(MEASURE_PATCHES_VARIABLE).ok_or_else(|| {
        (NotMeasured::NoAssembler, format!("{MEASURE_PATCHES_VARIABLE} is not set"))
    })?;
    let library = std::env::var_os(SANITIZER_VARIABLE)
        .ok_or_else(|| (NotMeasured::NoLibrary, format!("{SANITIZER_VARIABLE} is not set")))?;
    let settings = modules::Settings { selection, patches: patches.into() };
    modules::SETTINGS.get_or_init(|| settings);
    let library = PathBuf::from(library);
    let sanitizer = sanitizer::load(&library).map_err(|why| (NotMeasured::NoLibrary, why))?;
    if driver::driver().is_none() {
        return Err(other("the runtime or the driver lacks a function".to_owned()));
    }
    let mut subscriber = core::ptr::null_mut();
    // SAFETY: a writable result and a function of the type that the API asks for.
    let result = unsafe { (sanitizer.subscribe)(&mut subscriber, callback, core::ptr::null_mut()) };
    sanitizer.checked("sanitizerSubscribe", result).map_err(|why| match result {
        TOO_MANY => (
            NotMeasured::NoSubscription,
            "another tool (a profiler, a debugger, compute-sanitizer) holds the driver's only \
             subscription"
                .to_owned(),
        ),
        _ => (NotMeasured::NoSubscription, why),
    })?;
    for domain in [DOMAIN_RESOURCE, DOMAIN_LAUNCH, DOMAIN_GRAPHS] {
        // SAFETY: the subscriber that was just made.
        let result = unsafe { (sanitizer.enable_domain)(1, subscriber, domain) };
        sanitizer.checked("sanitizerEnableDomain", result).map_err(other)?;
    }
    if !runtime::attach(&HOOKS) {
        // SAFETY: as above.
        unsafe { (sanitizer.unsubscribe)(subscriber) };
        return Err(other("the runtime is of another version".to_owned()));
    }
    Ok(())
}

/// Keeps panics away from the driver's frames; the first one ends measuring.
fn guarded<T>(otherwise: T, run: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        launches::switch_off(NotMeasured::Other, "the measuring library has failed");
        otherwise
    })
}

unsafe extern "C" fn launching(op: u64, function: u64, stream: u64) -> u64 {
    guarded(function, || launches::launching(op, function, stream))
}

unsafe extern "C" fn launched(op: u64, stream: u64, result: i32) {
    guarded((), || launches::launched(op, stream, result));
}

unsafe extern "C" fn callback(_: *mut c_void, domain: u32, id: u32, data: *const c_void) {
    let Some(sanitizer) = sanitizer::sanitizer() else { return };
    // SAFETY: the API gives the structure that it documents for the domain and the number; each is
    // read below as that structure.
    let data = unsafe { Data::new(data) };
    // A second copy of a module is the library's own doing, and patched as the program's are.
    if driver::is_own()
        && !(twins::is_loading() && (domain, id) == (DOMAIN_RESOURCE, MODULE_LOADED))
    {
        return;
    }
    guarded((), || match (domain, id) {
        (DOMAIN_RESOURCE, MODULE_LOADED) => modules::loaded(sanitizer, ResourceData(data)),
        (DOMAIN_RESOURCE, MODULE_UNLOAD_STARTING) => {
            modules::unloading(ResourceData(data).module());
        }
        (DOMAIN_RESOURCE, CONTEXT_DESTROY_STARTING) => {
            twins::forget(ResourceData(data).context());
            context::forget(ResourceData(data).context());
        }
        (DOMAIN_LAUNCH, LAUNCH_BEGIN) => launches::begin(sanitizer, LaunchData(data)),
        (DOMAIN_GRAPHS, NODE_LAUNCH_BEGIN) => launches::node_begin(sanitizer, NodeData(data)),
        (DOMAIN_GRAPHS, GRAPH_LAUNCH_BEGIN) => launches::graph(GraphData(data), true),
        (DOMAIN_GRAPHS, GRAPH_LAUNCH_END) => launches::graph(GraphData(data), false),
        _ => {}
    });
}
