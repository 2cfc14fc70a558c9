//! The C functions of the runtime that is preloaded into the same process, found by name.

use core::ffi::{CStr, c_char, c_void};
use std::ffi::CString;
use std::sync::OnceLock;

use streamsan_wire::{MeasureHooks, MeasuredRun, NotMeasured};

macro_rules! functions {
    ($($field:ident = $name:literal: $type:ty;)*) => {
        #[derive(Clone, Copy)]
        struct Runtime {
            $($field: $type,)*
        }

        impl Runtime {
            fn find() -> Option<Self> {
                Some(Self {
                    $($field: {
                        let address = find($name)?;
                        // SAFETY: the function of this name has this type by agreement of the two
                        // libraries.
                        unsafe { core::mem::transmute::<*mut c_void, $type>(address) }
                    },)*
                })
            }
        }
    };
}

functions! {
    attach = c"streamsan_measure_attach": unsafe extern "C" fn(*const MeasureHooks) -> i32;
    driver_function = c"streamsan_driver_function": unsafe extern "C" fn(*const c_char) -> *mut c_void;
    current_op = c"streamsan_current_op": unsafe extern "C" fn() -> u64;
    op_measured = c"streamsan_op_measured": unsafe extern "C" fn(u64, *const MeasuredRun, usize, u32);
    node_accesses = c"streamsan_node_accesses": unsafe extern "C" fn(u64, u64, *const MeasuredRun, usize, u32);
    not_measured = c"streamsan_not_measured": unsafe extern "C" fn(u64, u32, *const c_char);
}

fn find(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: looks a name up; loads nothing.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

fn runtime() -> Option<Runtime> {
    static RUNTIME: OnceLock<Option<Runtime>> = OnceLock::new();
    *RUNTIME.get_or_init(Runtime::find)
}

/// Registers the library's functions; whether a runtime took them.
pub(crate) fn attach(hooks: &'static MeasureHooks) -> bool {
    // SAFETY: a table that lives as long as the process.
    runtime().is_some_and(|runtime| unsafe { (runtime.attach)(hooks) } == 0)
}

/// The driver's own function of a name.
pub(crate) fn driver_function(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a text ended by NUL.
    let found = unsafe { (runtime()?.driver_function)(name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// The hooked call in progress on this thread, 0 for none.
pub(crate) fn current_op() -> u64 {
    // SAFETY: takes nothing.
    runtime().map_or(0, |runtime| unsafe { (runtime.current_op)() })
}

/// Tells what a launch touched, or a node (not 0) of a launched graph.
pub(crate) fn measured(op: u64, node: u64, runs: &[MeasuredRun], flags: u32) {
    let Some(runtime) = runtime() else { return };
    // SAFETY: pointer and count describe a live list.
    unsafe {
        match node {
            0 => (runtime.op_measured)(op, runs.as_ptr(), runs.len(), flags),
            _ => (runtime.node_accesses)(op, node, runs.as_ptr(), runs.len(), flags),
        }
    }
}

/// Tells that a launch (or everything, for 0) was not measured.
pub(crate) fn not_measured(op: u64, reason: NotMeasured, detail: &str) {
    let Some(runtime) = runtime() else { return };
    let detail = CString::new(detail.replace('\0', " ")).unwrap_or_default();
    // SAFETY: a text ended by NUL.
    unsafe { (runtime.not_measured)(op, reason as u32, detail.as_ptr()) };
}
