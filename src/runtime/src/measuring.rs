//! Where a measuring library meets the runtime (`--measure`, `streamsan_wire::MeasureHooks`).
//!
//! The library registers functions that are called around launches. Without one a launch costs one
//! load more.
//!
//! Invariants: the library's functions are called outside of our own critical sections, so that it may
//! publish records, and with the launch's operation as the current one.
//!
//! Deliberately absent: what is measured, and the bytes.

use core::ffi::{CStr, c_char, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use streamsan_wire::{Api, MeasureHooks, NotMeasured};

use crate::accesses::streamsan_not_measured;
use crate::{kept_graphs, resolve};

static HOOKS: AtomicPtr<MeasureHooks> = AtomicPtr::new(ptr::null_mut());

/// `CU_STREAM_LEGACY` and `CU_STREAM_PER_THREAD`.
const LEGACY: u64 = 1;
const PER_THREAD: u64 = 2;

/// Takes the functions of a measuring library. 0 if they were taken.
///
/// # Safety
/// `hooks` points to a table that lives as long as the process.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn streamsan_measure_attach(hooks: *const MeasureHooks) -> i32 {
    // SAFETY: every version of the table begins with its size.
    if hooks.is_null() || unsafe { (*hooks).size } != size_of::<MeasureHooks>() as u64 {
        return 1;
    }
    let null = ptr::null_mut();
    let taken = HOOKS.compare_exchange(null, hooks.cast_mut(), Ordering::AcqRel, Ordering::Acquire);
    if taken.is_ok() {
        kept_graphs::start();
    }
    i32::from(taken.is_err())
}

/// The driver's own function of a name, null where it has none: what is called by it is no record.
///
/// # Safety
/// `name` points to a text ended by NUL.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn streamsan_driver_function(name: *const c_char) -> *mut c_void {
    // SAFETY: promised by the caller.
    let name = unsafe { CStr::from_ptr(name) };
    resolve::function(name).map_or(ptr::null_mut(), |address| address as *mut c_void)
}

/// Where a launch's parameters say what is launched, and in which stream.
struct Launch {
    /// Place of the function among the parameters; a graph has none.
    function: Option<usize>,
    stream: u64,
}

fn launch(api: Api, words: &[u64]) -> Option<Launch> {
    let (function, stream) = match api {
        Api::cuLaunchKernel
        | Api::cuLaunchKernel_ptsz
        | Api::cuLaunchCooperativeKernel
        | Api::cuLaunchCooperativeKernel_ptsz => (Some(0), *words.get(8)?),
        Api::cuLaunchKernelEx | Api::cuLaunchKernelEx_ptsz if words[0] != 0 => {
            // SAFETY: the program gives the driver this structure (`CUlaunchConfig`); the stream lies
            // behind seven halves and a gap.
            (Some(1), unsafe { (words[0] as *const u64).add(4).read_unaligned() })
        }
        Api::cuGraphLaunch | Api::cuGraphLaunch_ptsz => (None, *words.get(1)?),
        Api::cuLaunchGridAsync => (Some(0), *words.get(3)?),
        Api::cuLaunch | Api::cuLaunchGrid => (Some(0), 0),
        _ => return None,
    };
    let null = if api.name().ends_with("_ptsz") { PER_THREAD } else { LEGACY };
    Some(Launch { function, stream: if stream == 0 { null } else { stream } })
}

fn hooks() -> Option<&'static MeasureHooks> {
    // SAFETY: promised by the library that registered.
    unsafe { HOOKS.load(Ordering::Acquire).as_ref() }
}

/// Before the driver is called: tells of a launch and puts the function that the library wants in
/// the place of the program's. Answers the program's own one, 0 where nothing was put in its place.
#[inline]
pub(crate) fn before(api: Api, op: u64, words: &mut [u64]) -> u64 {
    let Some(hooks) = hooks() else { return 0 };
    let Some(launch) = launch(api, words) else { return 0 };
    let function = launch.function.map_or(0, |at| words[at]);
    // SAFETY: a function of the library, which takes any numbers.
    let wanted = unsafe { (hooks.launching)(op, function, launch.stream) };
    match launch.function {
        Some(at) if wanted != function => core::mem::replace(&mut words[at], wanted),
        _ => 0,
    }
}

/// Whether another function may be launched in the place of the program's.
pub(crate) const fn may_replace(api: Api) -> bool {
    matches!(
        api,
        Api::cuLaunchKernel
            | Api::cuLaunchKernel_ptsz
            | Api::cuLaunchCooperativeKernel
            | Api::cuLaunchCooperativeKernel_ptsz
            | Api::cuLaunchKernelEx
            | Api::cuLaunchKernelEx_ptsz
            | Api::cuLaunchGridAsync
            | Api::cuLaunch
            | Api::cuLaunchGrid
    )
}

/// The function in the place of the program's, `launched`, could not be launched (a patched kernel
/// takes more registers and stack): the program's own one is put back, and the library told.
pub(crate) fn failed(api: Api, op: u64, words: &mut [u64], result: i32, launched: u64) {
    after(api, op, words, result, launched);
    // SAFETY: no text.
    unsafe { streamsan_not_measured(op, NotMeasured::LaunchFailed as u32, ptr::null()) };
}

/// After the driver has returned. `launched` is what [`before`] has answered; everybody else knows
/// the program's function only.
#[inline]
pub(crate) fn after(api: Api, op: u64, words: &mut [u64], result: i32, launched: u64) {
    let Some(hooks) = hooks() else { return };
    if result == 0 {
        kept_graphs::after(api, words);
    }
    if let Some(launch) = launch(api, words) {
        if let (Some(at), 1..) = (launch.function, launched) {
            words[at] = launched;
        }
        // SAFETY: a function of the library, which takes any numbers.
        unsafe { (hooks.launched)(op, launch.stream, result) };
    }
}
