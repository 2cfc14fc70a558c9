//! What a program tells by NVTX: names here, ranges and marks in [`super::nvtx_ranges`].
//!
//! NVTX 3 is a header: its first call loads the library that `NVTX_INJECTION64_PATH` names and
//! calls `InitializeInjectionNvtx2` with a function that hands out tables. The table of a module
//! has a slot for each of its functions, which points to the program's function pointer; the
//! numbers below are those of the public header `nvtxTypes.h`. What is not filled in costs the
//! program nothing.
//!
//! Deliberately absent: names of anything but streams and events.

use core::ffi::{c_char, c_void};
use core::ptr;

use streamsan_wire::HostCall;

use super::annotations::record_name;
use super::nvtx_ranges::{CORE, CORE2};
use super::nvtx_text::Text;
use super::publish::record;

/// `NVTX_ETID_CALLBACKS`.
const TABLE_OF_CALLBACKS: u32 = 1;
/// `NVTX_CB_MODULE_CORE`, `..._CUDA`, `..._CUDART` and `..._CORE2`.
const MODULE_CORE: i32 = 1;
const MODULE_CUDA: i32 = 2;
const MODULE_CUDART: i32 = 4;
const MODULE_CORE2: i32 = 5;

type GetExportTable = unsafe extern "C" fn(u32) -> *const ExportTable;
type Slots = *mut *mut *const c_void;

#[repr(C)]
struct ExportTable {
    size: usize,
    get_module: unsafe extern "C" fn(module: i32, table: *mut Slots, size: *mut u32) -> i32,
}

macro_rules! names {
    ($($narrow:ident, $wide:ident => $call:ident;)*) => {$(
        unsafe extern "C" fn $narrow(handle: *mut c_void, name: *const c_char) {
            // SAFETY: NVTX hands on a NUL-terminated string.
            unsafe { record_name(HostCall::$call, handle as u64, name) };
        }

        unsafe extern "C" fn $wide(handle: *mut c_void, name: *const u32) {
            // SAFETY: NVTX hands on a NUL-terminated wide string.
            unsafe { record_wide(HostCall::$call, handle as u64, name) };
        }
    )*};
}

names! {
    cu_stream, cu_stream_wide => NvtxCuStream;
    cu_event, cu_event_wide => NvtxCuEvent;
    cuda_stream, cuda_stream_wide => NvtxCudaStream;
    cuda_event, cuda_event_wide => NvtxCudaEvent;
}

/// Functions by their number in `NvtxCallbackIdCuda`: names in bytes, then in wide characters.
const CUDA: [(usize, *const c_void); 4] = [
    (5, cu_stream as *const c_void),
    (6, cu_stream_wide as *const c_void),
    (7, cu_event as *const c_void),
    (8, cu_event_wide as *const c_void),
];

/// The same for `NvtxCallbackIdCudaRt`.
const CUDART: [(usize, *const c_void); 4] = [
    (3, cuda_stream as *const c_void),
    (4, cuda_stream_wide as *const c_void),
    (5, cuda_event as *const c_void),
    (6, cuda_event_wide as *const c_void),
];

/// Called by each copy of NVTX in the program at its first use. Answers 1: the library stays.
///
/// # Safety
/// As NVTX calls it.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[cfg_attr(test, expect(non_snake_case, reason = "the name is NVTX's"))]
unsafe extern "C" fn InitializeInjectionNvtx2(get: Option<GetExportTable>) -> i32 {
    let Some(get) = get else { return 1 };
    // SAFETY: NVTX answers with a table that lives as long as the program, or null.
    let Some(table) = (unsafe { get(TABLE_OF_CALLBACKS).as_ref() }) else { return 1 };
    if table.size < size_of::<ExportTable>() {
        return 1;
    }
    let modules: [(i32, &[_]); 4] = [
        (MODULE_CUDA, &CUDA),
        (MODULE_CUDART, &CUDART),
        (MODULE_CORE, &CORE),
        (MODULE_CORE2, &CORE2),
    ];
    for (module, functions) in modules {
        let (mut slots, mut size): (Slots, u32) = (ptr::null_mut(), 0);
        // SAFETY: writable results; the slots that it names are the program's own pointers.
        unsafe {
            if (table.get_module)(module, &mut slots, &mut size) == 0 || slots.is_null() {
                continue;
            }
            for &(number, function) in functions {
                if number < size as usize && !(*slots.add(number)).is_null() {
                    **slots.add(number) = function;
                }
            }
        }
    }
    1
}

/// Records a wide name as UTF-8.
///
/// # Safety
/// `name` is null or a NUL-terminated string of `wchar_t`.
unsafe fn record_wide(call: HostCall, handle: u64, name: *const u32) {
    if name.is_null() {
        return;
    }
    let mut text = Text::new();
    // SAFETY: promised by the caller.
    unsafe { text.push_wide(name) };
    record(call, &[handle], text.as_bytes());
}
