//! Bad arguments and what the driver answers: one row a call.
//!
//! With `STREAMSAN_SIM_TEST_ROW=N` only row N is called, and its status is printed beside the
//! expected one: so the rows were compared with driver 580.159 on an H200, which
//! does not survive a handle that was never one. The rows differ where that driver counts bytes
//! modulo 2^64, where it tells a handle of another kind from none, where an image is cut short, and
//! in what is not simulated.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::raw::*;

const INVALID_VALUE: u32 = 1;
const INVALID_DEVICE: u32 = 101;
const INVALID_IMAGE: u32 = 200;
const INVALID_CONTEXT: u32 = 201;
const NO_BINARY: u32 = 209;
const INVALID_PTX: u32 = 218;
const FILE_NOT_FOUND: u32 = 301;
const INVALID_HANDLE: u32 = 400;
const NOT_FOUND: u32 = 500;
const NOT_SUPPORTED: u32 = 801;

pub(crate) fn run() {
    before_initialisation();
    without_a_context();
    start();
    with_a_context();
    println!("ok");
}

fn expect(rows: &[(&str, &[u64], u32)]) {
    static ROW: AtomicUsize = AtomicUsize::new(0);
    let only: Option<usize> =
        std::env::var("STREAMSAN_SIM_TEST_ROW").ok().map(|row| row.parse().unwrap());
    let mut wrong = Vec::new();
    for (name, arguments, code) in rows {
        let row = ROW.fetch_add(1, Ordering::Relaxed);
        if only.is_some_and(|only| only != row) {
            continue;
        }
        let answer = cu(name, arguments);
        if only.is_some() {
            println!("{row} {name}: {answer}, expected {code}");
        } else if answer != *code {
            wrong.push(format!("{row} {name}{arguments:x?}: {answer}, expected {code}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn before_initialisation() {
    let mut out = 0u64;
    let out = &raw mut out as u64;
    expect(&[
        ("cuDeviceGetCount", &[out], 3),
        ("cuMemAlloc_v2", &[out, 4], 3),
        ("cuStreamSynchronize", &[0], 3),
        ("cuGraphCreate", &[out, 0], 3),
        ("cuDriverGetVersion", &[out], 0),
        ("cuDriverGetVersion", &[0], INVALID_VALUE),
        ("cuInit", &[1], INVALID_VALUE),
    ]);
    ok("cuInit", &[0]);
}

fn without_a_context() {
    let mut out = 0u64;
    let out = &raw mut out as u64;
    expect(&[
        ("cuCtxGetCurrent", &[out], 0),
        ("cuCtxSynchronize", &[], INVALID_CONTEXT),
        ("cuCtxPopCurrent_v2", &[out], INVALID_CONTEXT),
        ("cuMemAlloc_v2", &[out, 4], INVALID_CONTEXT),
        ("cuStreamCreate", &[out, 0], INVALID_CONTEXT),
        ("cuStreamSynchronize", &[0], INVALID_CONTEXT),
        ("cuStreamSynchronize", &[0x1234], INVALID_CONTEXT),
        ("cuEventCreate", &[out, 0], INVALID_CONTEXT),
        ("cuDeviceGet", &[out, 1], INVALID_DEVICE),
        ("cuDeviceGet", &[out, -1i64 as u64], INVALID_DEVICE),
        ("cuDeviceGet", &[0, 0], INVALID_VALUE),
        ("cuDeviceGetAttribute", &[out, 0, 0], INVALID_VALUE),
        ("cuDeviceGetAttribute", &[out, 10_000, 0], INVALID_VALUE),
        ("cuDeviceGetAttribute", &[out, 75, 1], INVALID_DEVICE),
        ("cuDevicePrimaryCtxRetain", &[out, 9], INVALID_DEVICE),
        ("cuDevicePrimaryCtxRelease_v2", &[0], INVALID_CONTEXT),
        ("cuCtxCreate_v2", &[0, 0, 0], INVALID_VALUE),
        ("cuCtxCreate_v2", &[out, 0xffff, 0], INVALID_VALUE),
        ("cuCtxSetCurrent", &[0x1234], INVALID_CONTEXT),
        ("cuCtxDestroy_v2", &[0], INVALID_VALUE),
        ("cuLibraryUnload", &[0x1234], INVALID_HANDLE),
    ]);
}

fn with_a_context() {
    let mut room = [0u64; 4];
    let out = room.as_mut_ptr() as u64;
    let (memory, host, local) = (device(100), pinned(0), [0u32; 64]);
    let (local, pooled) = (local.as_ptr() as u64, make("cuMemAllocAsync", &[64, 0]));
    let (stream, event, module) = (stream(0), event(), module());
    let put = function(module, "put");
    let elf = c"\x7fELF".as_ptr() as u64;
    let no_ptx = c"no PTX at all".as_ptr() as u64;
    let bad_ptx = c".version 7.0\n.target sm_70\n.address_size 64\n.nonsense".as_ptr() as u64;
    let missing = c"missing".as_ptr() as u64;
    let parameters = [1u64, memory];
    let pointers = parameters.each_ref().map(|word| word as *const u64 as u64);
    let pointers = pointers.as_ptr() as u64;
    let unknown = [9u32, 0, 0, 0].as_ptr() as u64;
    let short_pitch = [0, 0, 1, local, 0, 0, 4, 0, 0, 2, 0, memory, 0, 8, 8, 2u64];
    let array = [0, 0, 3, 0, 0, 8, 8, 0, 0, 2, 0, memory, 0, 8, 8, 2u64];
    let (short_pitch, array) = (short_pitch.as_ptr() as u64, array.as_ptr() as u64);
    expect(&[
        // Memory.
        ("cuMemAlloc_v2", &[out, 0], INVALID_VALUE),
        ("cuMemAlloc_v2", &[0, 4], INVALID_VALUE),
        ("cuMemAlloc_v2", &[out, 1 << 50], 2),
        ("cuMemAlloc_v2", &[out, u64::MAX], 2),
        ("cuMemAllocPitch_v2", &[out, out + 8, 4, 4, 3], INVALID_VALUE),
        ("cuMemAllocPitch_v2", &[out, out + 8, u64::MAX, 4, 4], INVALID_VALUE),
        ("cuMemAllocManaged", &[out, 4, 4], INVALID_VALUE),
        ("cuMemHostAlloc", &[out, 4, 8], INVALID_VALUE),
        ("cuMemFree_v2", &[memory + 4], INVALID_VALUE),
        ("cuMemFree_v2", &[host], INVALID_VALUE),
        ("cuMemFree_v2", &[local], INVALID_VALUE),
        ("cuMemFree_v2", &[0], 0),
        ("cuMemFreeHost", &[memory], INVALID_VALUE),
        ("cuMemFreeHost", &[local], INVALID_VALUE),
        ("cuMemHostRegister_v2", &[0, 4096, 0], INVALID_VALUE),
        ("cuMemHostRegister_v2", &[host, 4096, 0], INVALID_VALUE),
        ("cuMemHostUnregister", &[local], 713),
        ("cuMemHostGetDevicePointer_v2", &[out, local, 0], INVALID_VALUE),
        ("cuMemGetAddressRange_v2", &[out, out + 8, local], NOT_FOUND),
        ("cuPointerGetAttribute", &[out, 2, local], INVALID_VALUE),
        ("cuPointerGetAttribute", &[out, 999, memory], INVALID_VALUE),
        ("cuPointerGetAttribute", &[out, 4, memory], INVALID_VALUE),
        ("cuMemAllocAsync", &[out, 0, stream], 0),
        ("cuMemHostAlloc", &[out, 0, 0], 0),
        ("cuMemFreeHost", &[0], 0),
        ("cuMemFreeAsync", &[0, stream], 0),
        ("cuMemAllocAsync", &[out, 4, 0x1234], INVALID_HANDLE),
        ("cuMemAllocFromPoolAsync", &[out, 4, 0x1234, stream], INVALID_VALUE),
        ("cuMemFreeAsync", &[pooled + 1, stream], INVALID_VALUE),
        ("cuMemFreeAsync", &[host, stream], INVALID_VALUE),
        ("cuMemFreeAsync", &[pooled, stream], 0),
        ("cuMemFreeAsync", &[pooled, stream], INVALID_VALUE),
        ("cuMemsetD8Async", &[pooled, 0, 1, stream], INVALID_VALUE),
        ("cuMemcpyDtoHAsync_v2", &[host, pooled, 1, stream], INVALID_VALUE),
        ("cuPointerGetAttribute", &[out, 2, pooled], INVALID_VALUE),
        ("cuMemPoolSetAttribute", &[0x1234, 4, out], INVALID_VALUE),
        ("cuMemPrefetchAsync", &[memory, 4, 0, 0], INVALID_VALUE),
        // Copies and memsets.
        ("cuMemcpyHtoD_v2", &[memory, local, 100], 0),
        ("cuMemcpyHtoD_v2", &[memory, local, 101], INVALID_VALUE),
        ("cuMemcpyHtoD_v2", &[memory + 100, local, 1], INVALID_VALUE),
        ("cuMemcpyHtoD_v2", &[local, local, 4], INVALID_VALUE),
        ("cuMemcpyHtoD_v2", &[memory, 0, 4], INVALID_VALUE),
        ("cuMemcpyHtoD_v2", &[memory, 16, 4], INVALID_VALUE),
        ("cuMemcpyHtoD_v2", &[memory, memory + 8, 4], 0),
        ("cuMemcpyHtoD_v2", &[0, 0, 0], 0),
        ("cuMemcpyDtoH_v2", &[local, memory + 1, 100], INVALID_VALUE),
        ("cuMemcpyDtoH_v2", &[local, memory, u64::MAX], INVALID_VALUE),
        ("cuMemcpyDtoD_v2", &[memory, local, 4], INVALID_VALUE),
        ("cuMemcpyDtoDAsync_v2", &[memory, memory + 50, 50, 0x1234], INVALID_HANDLE),
        ("cuMemcpyAsync", &[memory, local, 4, stream], 0),
        ("cuMemcpy2D_v2", &[0], INVALID_VALUE),
        ("cuMemcpy2D_v2", &[short_pitch], INVALID_VALUE),
        ("cuMemcpy2D_v2", &[array], INVALID_HANDLE),
        ("cuMemsetD8_v2", &[memory, 0, 101], INVALID_VALUE),
        ("cuMemsetD32_v2", &[memory + 2, 0, 1], INVALID_VALUE),
        ("cuMemsetD16_v2", &[memory + 1, 0, 1], INVALID_VALUE),
        ("cuMemsetD32_v2", &[memory, 0, u64::MAX], INVALID_VALUE),
        ("cuMemsetD8_v2", &[local, 0, 4], INVALID_VALUE),
        ("cuMemsetD2D8_v2", &[memory, 4, 0, 8, 2], INVALID_VALUE),
        // Streams and events.
        ("cuStreamCreate", &[out, 2], INVALID_VALUE),
        ("cuStreamCreate", &[0, 0], INVALID_VALUE),
        ("cuStreamCreateWithPriority", &[out, 0, 100], 0),
        ("cuStreamSynchronize", &[event], INVALID_HANDLE),
        ("cuStreamDestroy_v2", &[0], INVALID_HANDLE),
        ("cuStreamDestroy_v2", &[stream + 1], INVALID_HANDLE),
        ("cuStreamWaitEvent", &[stream, 0, 0], INVALID_HANDLE),
        ("cuStreamWaitEvent", &[stream, event, 8], INVALID_VALUE),
        ("cuLaunchHostFunc", &[stream, 0, 0], INVALID_VALUE),
        ("cuStreamAddCallback", &[stream, local, 0, 1], INVALID_VALUE),
        ("cuEventCreate", &[out, 8], INVALID_VALUE),
        ("cuEventCreate", &[out, 4], INVALID_VALUE),
        ("cuEventCreate", &[out, 6], 0),
        ("cuEventRecord", &[stream, stream], INVALID_HANDLE),
        ("cuEventRecord", &[event, 0x1234], INVALID_HANDLE),
        ("cuEventRecordWithFlags", &[event, stream, 2], INVALID_VALUE),
        ("cuEventElapsedTime", &[out, event, event], INVALID_HANDLE),
        ("cuEventQuery", &[0], INVALID_HANDLE),
        ("cuEventSynchronize", &[0x1234], INVALID_HANDLE),
        ("cuEventDestroy_v2", &[0], INVALID_HANDLE),
        // Modules.
        ("cuModuleLoadData", &[out, 0], INVALID_VALUE),
        ("cuModuleLoadData", &[0, no_ptx], INVALID_VALUE),
        ("cuModuleLoadData", &[out, no_ptx], INVALID_IMAGE),
        ("cuModuleLoadData", &[out, bad_ptx], INVALID_PTX),
        ("cuModuleLoadData", &[out, c"".as_ptr() as u64], INVALID_IMAGE),
        ("cuModuleLoadData", &[out, elf], NO_BINARY),
        ("cuModuleLoadDataEx", &[out, no_ptx, 1, 0, 0], INVALID_VALUE),
        ("cuModuleLoad", &[out, missing], FILE_NOT_FOUND),
        ("cuModuleGetFunction", &[out, module, missing], NOT_FOUND),
        ("cuModuleGetFunction", &[out, 0x1234, missing], INVALID_HANDLE),
        ("cuModuleGetFunction", &[out, module, 0], INVALID_VALUE),
        ("cuModuleGetGlobal_v2", &[out, out + 8, module, missing], NOT_FOUND),
        ("cuModuleUnload", &[put], INVALID_HANDLE),
        ("cuFuncGetAttribute", &[out, 99, put], INVALID_VALUE),
        ("cuFuncSetAttribute", &[put, 8, 1 << 20], INVALID_VALUE),
        ("cuFuncGetParamInfo", &[put, 2, out, out + 8], INVALID_VALUE),
        // Launches.
        ("cuLaunchKernel", &[0, 1, 1, 1, 1, 1, 1, 0, 0, pointers, 0], INVALID_HANDLE),
        ("cuLaunchKernel", &[put, 0, 1, 1, 1, 1, 1, 0, 0, pointers, 0], INVALID_VALUE),
        ("cuLaunchKernel", &[put, 1, 70_000, 1, 1, 1, 1, 0, 0, pointers, 0], INVALID_VALUE),
        ("cuLaunchKernel", &[put, 1, 1, 1, 1025, 1, 1, 0, 0, pointers, 0], INVALID_VALUE),
        ("cuLaunchKernel", &[put, 1, 1, 1, 64, 64, 1, 0, 0, pointers, 0], INVALID_VALUE),
        ("cuLaunchKernel", &[put, 1, 1, 1, 1, 1, 1, 60_000, 0, pointers, 0], INVALID_VALUE),
        ("cuLaunchKernel", &[put, 1, 1, 1, 1, 1, 1, 0, 0x1234, pointers, 0], INVALID_HANDLE),
        ("cuLaunchKernel", &[put, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0], INVALID_VALUE),
        ("cuLaunchKernel", &[put, 1, 1, 1, 1, 1, 1, 0, 0, 0, unknown], INVALID_VALUE),
        ("cuLaunchKernel", &[put, 1, 1, 1, 1, 1, 1, 0, 0, pointers, unknown], INVALID_VALUE),
        ("cuLaunchCooperativeKernel", &[put, 1 << 20, 1, 1, 1024, 1, 1, 0, 0, pointers], 720),
        ("cuLaunchKernelEx", &[0, put, pointers, 0], INVALID_VALUE),
        // Functions that are not simulated.
        ("cuTexObjectCreate", &[out, out, out, 0], NOT_SUPPORTED),
        ("cuImportExternalSemaphore", &[out, out], NOT_SUPPORTED),
        ("cuMemCreate", &[out, 4096, 0, 0], INVALID_VALUE),
    ]);
    // Nothing of this has left the driver in a bad state.
    ok("cuLaunchKernel", &[put, 1, 1, 1, 1, 1, 1, 0, stream, pointers, 0]);
    ok("cuCtxSynchronize", &[]);
    // Before initialisation and in a host function the answer is another, so nothing is left out.
    assert_eq!(cu("cuCtxDestroy_v2", &[make("cuCtxGetCurrent", &[])]), INVALID_CONTEXT);
}
