//! Twins: second copies of modules, of which only the copies are patched.
//!
//! The API patches whole modules, and every launch of a patched module's kernel costs about as much
//! as a measured one, also without a log. So the machine code of a module whose selected kernels may
//! have a twin ([`streamsan_wire::Selection::may_be_twin`]) is loaded a second time, in the hook of
//! the first launch of such a kernel; only the copy is patched, and the runtime launches the copy's
//! kernel in the place of the program's where the [budget](crate::budget) allows. All other launches
//! of the module run at their own speed.
//!
//! Invariants:
//! - A twin is the same machine code, with module variables of its own, which its kernels do not use.
//! - Nothing is replaced while its stream is captured: the program may read a node's function back.
//! - The twin has the attributes that the program has given to its own function.
//!
//! Loading the copy may wait for the device, as the driver's own lazy loading may at the same launch
//! (CUDA C++ Programming Guide, "Lazy Loading": Concurrent Execution).
//!
//! Deliberately absent: graphs, whose nodes name functions; their modules are patched themselves.

use core::ffi::CStr;
use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::CString;
use std::ptr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use streamsan_wire::NotMeasured;

use crate::budget::Budget;
use crate::context::{self, Context};
use crate::driver::{Driver, Handle, TwinDriver, checked, driver, twin_driver};
use crate::modules;
use crate::runtime;

/// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`, `..._PREFERRED_SHARED_MEMORY_CARVEOUT`,
/// `..._REQUIRED_CLUSTER_WIDTH`, `..._HEIGHT`, `..._DEPTH`, `..._NON_PORTABLE_CLUSTER_SIZE_ALLOWED`
/// and `..._CLUSTER_SCHEDULING_POLICY_PREFERENCE`: those that a program can set.
const ATTRIBUTES: [i32; 7] = [8, 9, 11, 12, 13, 14, 15];

/// A kernel with a twin.
#[derive(Clone, Debug)]
struct Twin {
    /// The program's function.
    original: Handle,
    /// The same kernel in the second copy of the module.
    function: Handle,
    kernel: Arc<str>,
}

/// A function that was asked for.
#[derive(Debug)]
struct Known {
    /// The module that it is a function of.
    module: usize,
    /// `None` for a kernel that has no twin.
    twin: Option<Twin>,
}

#[derive(Debug, Default)]
struct Twins {
    /// Functions by context and handle, as the program gives it to a launch.
    functions: HashMap<(usize, usize), Known>,
    /// The second copies, by context and the module that each is a copy of.
    copies: HashMap<(usize, usize), Option<usize>>,
    /// Bounds the GPU time of measured launches.
    budget: Budget,
    /// When the first launch was measured.
    begin: Option<Instant>,
}

// SAFETY: handles that any thread may use.
unsafe impl Send for Twin {}

fn twins() -> &'static Mutex<Twins> {
    static TWINS: OnceLock<Mutex<Twins>> = OnceLock::new();
    TWINS.get_or_init(Mutex::default)
}

/// A launch of a twin, timed from an event of ours in front of it on.
#[derive(Clone, Debug)]
pub(crate) struct Timed {
    kernel: Arc<str>,
    begin: Handle,
    context: Arc<Context>,
}

impl Timed {
    /// Keeps the event in front for another launch.
    pub(crate) fn keep(self) {
        self.context.keep(self.begin);
    }
}

// SAFETY: as above.
unsafe impl Send for Timed {}

thread_local! {
    /// The calling thread loads a second copy of a module.
    static LOADS: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread loads a second copy of a module.
pub(crate) fn is_loading() -> bool {
    LOADS.get()
}

/// The function that a launch runs: the program's, or its twin and the event in front of it.
pub(crate) fn chosen(op: u64, function: u64, stream: u64) -> (u64, Option<Timed>) {
    let own = (function, None);
    let (Some(driver), Some(more)) = (driver(), twin_driver()) else { return own };
    let context = driver.current();
    if function == 0 || context.is_null() {
        return own;
    }
    let key = (context as usize, function as usize);
    let known = {
        let twins = twins().lock().unwrap_or_else(PoisonError::into_inner);
        twins.functions.get(&key).map(|known| known.twin.clone())
    };
    let twin = match known {
        Some(twin) => twin,
        // A thread in the midst of a capture may not load a module.
        None if !modules::has_originals() => return own,
        None if is_capturing(more, stream) => return own,
        None => driver.own(|| find(driver, more, key, op)),
    };
    let Some(twin) = twin else { return own };
    if is_capturing(more, stream) {
        return own;
    }
    let takes = {
        let mut twins = twins().lock().unwrap_or_else(PoisonError::into_inner);
        let passed = twins.begin.get_or_insert_with(Instant::now).elapsed();
        twins.budget.takes(&twin.kernel, passed)
    };
    if !takes {
        runtime::not_measured(op, NotMeasured::TooCostly, "");
        return own;
    }
    for attribute in ATTRIBUTES {
        let (mut wanted, mut given) = (0, 0);
        // SAFETY: writable results and functions of loaded modules. An attribute that this driver or
        // device does not have is left alone.
        unsafe {
            let get = more.func_get_attribute;
            if get(&mut wanted, attribute, twin.original) == 0
                && get(&mut given, attribute, twin.function) == 0
                && wanted != given
            {
                (more.func_set_attribute)(twin.function, attribute, wanted);
            }
        }
    }
    (twin.function as u64, front(driver, context, stream, &twin.kernel))
}

/// Puts an event of ours into the stream, from which on the launch behind it is timed.
fn front(driver: &Driver, context: Handle, stream: u64, kernel: &Arc<str>) -> Option<Timed> {
    let context = context::known(context)?;
    let begin = context.event(driver).ok()?;
    // SAFETY: an event of ours and the stream of the call in progress.
    let result = unsafe { (driver.event_record)(begin, stream as Handle) };
    if result != 0 {
        context.keep(begin);
        return None;
    }
    Some(Timed { kernel: Arc::clone(kernel), begin, context })
}

/// A timed launch has ended, and the event behind it has happened.
pub(crate) fn ended(timed: Timed, end: Handle) {
    let Some(more) = twin_driver() else { return };
    let mut milliseconds = 0.0;
    // SAFETY: a writable result and two events of ours that have happened.
    let result = unsafe { (more.event_elapsed_time)(&mut milliseconds, timed.begin, end) };
    if result == 0 && milliseconds >= 0.0 {
        let mut twins = twins().lock().unwrap_or_else(PoisonError::into_inner);
        twins.budget.took(&timed.kernel, Duration::from_secs_f32(milliseconds / 1000.0));
    }
    timed.keep();
}

/// Forgets the functions of a module that is unloaded; its copy stays loaded, since launches of it
/// may be running.
pub(crate) fn unloading(module: Handle) {
    let mut twins = twins().lock().unwrap_or_else(PoisonError::into_inner);
    twins.functions.retain(|_, known| known.module != module as usize);
    twins.copies.retain(|(_, original), _| *original != module as usize);
}

/// Forgets a context that ends, with its modules.
pub(crate) fn forget(context: Handle) {
    let mut twins = twins().lock().unwrap_or_else(PoisonError::into_inner);
    twins.functions.retain(|(of, _), _| *of != context as usize);
    twins.copies.retain(|(of, _), _| *of != context as usize);
}

/// Whether the stream is being captured; also where the driver does not say.
fn is_capturing(more: &TwinDriver, stream: u64) -> bool {
    let mut status = 0;
    // SAFETY: the stream of the call in progress and a writable result.
    let result = unsafe { (more.stream_is_capturing)(stream as Handle, &mut status) };
    result != 0 || status != 0
}

/// Finds a function's twin, for the first launch of the function in a context, and keeps it.
fn find(driver: &Driver, more: &TwinDriver, key: (usize, usize), op: u64) -> Option<Twin> {
    let mut function = key.1 as Handle;
    let mut module = ptr::null_mut();
    let mut name = ptr::null();
    // SAFETY: the function of a launch, and writable results. A launch takes a `CUkernel`, too, which
    // is no function of a module (CUDA Driver API, `cuLaunchKernel`).
    unsafe {
        if (more.func_get_module)(&mut module, function) != 0
            && ((more.kernel_get_function)(&mut function, key.1 as Handle) != 0
                || (more.func_get_module)(&mut module, function) != 0)
        {
            return None;
        }
        if (more.func_get_name)(&mut name, function) != 0 || name.is_null() {
            return None;
        }
    }
    // SAFETY: the driver's name of the function, a text ended by NUL.
    let name = unsafe { CStr::from_ptr(name) }.to_owned();
    let twin = twin(driver, (key.0, function, module), &name).unwrap_or_else(|why| {
        runtime::not_measured(op, NotMeasured::NotPatched, &why);
        None
    });
    let mut twins = twins().lock().unwrap_or_else(PoisonError::into_inner);
    twins.functions.insert(key, Known { module: module as usize, twin: twin.clone() });
    twin
}

/// The twin of a function of a module, `None` where it has none.
///
/// # Errors
/// Why the module could not be loaded again, or its copy not be patched.
fn twin(
    driver: &Driver,
    (context, original, module): (usize, Handle, Handle),
    name: &CString,
) -> Result<Option<Twin>, String> {
    let Ok(kernel) = name.to_str() else { return Ok(None) };
    if !modules::is_of_original(module, kernel) {
        return Ok(None);
    }
    let Some(copy) = copy(driver, (context, module as usize))? else { return Ok(None) };
    let mut function = ptr::null_mut();
    // SAFETY: a module that was loaded here, a text ended by NUL and a writable result.
    let result =
        unsafe { (driver.module_get_function)(&mut function, copy as Handle, name.as_ptr()) };
    checked("cuModuleGetFunction in the copy of a module", result)?;
    Ok(Some(Twin { original, function, kernel: kernel.into() }))
}

/// The second copy of a module, loaded where it is not yet. `None` where that has failed before.
fn copy(driver: &Driver, key: (usize, usize)) -> Result<Option<usize>, String> {
    static LOADING: Mutex<()> = Mutex::new(());
    let _one = LOADING.lock().unwrap_or_else(PoisonError::into_inner);
    {
        let twins = twins().lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(copy) = twins.copies.get(&key) {
            return Ok(*copy);
        }
    }
    let Some(image) = modules::image_of(key.1 as Handle) else { return Ok(None) };
    let mut copy = ptr::null_mut();
    LOADS.set(true);
    // SAFETY: the machine code that the driver has loaded before, and a writable result.
    let result = unsafe { (driver.module_load_data)(&mut copy, image.as_ptr().cast()) };
    LOADS.set(false);
    let loaded = checked("cuModuleLoadData of the copy of a module", result)
        .and_then(|()| modules::error_of(copy).map_or(Ok(()), Err));
    let mut twins = twins().lock().unwrap_or_else(PoisonError::into_inner);
    twins.copies.insert(key, loaded.is_ok().then_some(copy as usize));
    loaded.map(|()| Some(copy as usize))
}
