//! Streams among themselves and against the host.

use crate::Check;
use crate::lab::{Failure, LEGACY, Lab, MARK, PER_THREAD, ok};
use cudarc::driver::sys::{self, CUstream};
use std::ffi::c_void;
use std::ptr;

fn order(lab: &mut Lab, held: CUstream, marked: CUstream) -> Result<bool, Failure> {
    lab.hold(held)?;
    lab.mark(marked)?;
    lab.mark_waits()
}

/// Whether `call` returns only after the stream's work.
fn blocks(
    lab: &mut Lab,
    held: CUstream,
    call: impl FnOnce() -> sys::CUresult,
) -> Result<bool, Failure> {
    lab.hold(held)?;
    ok(call())?;
    Ok(!lab.is_held())
}

pub(crate) const CHECKS: &[Check] = &[
    Check {
        name: "two operations of one stream",
        documented: "ordered",
        trial: |lab| {
            let stream = lab.nonblocking()?;
            order(lab, stream, stream)
        },
    },
    Check {
        name: "two non-blocking streams",
        documented: "not ordered",
        trial: |lab| {
            let (a, b) = (lab.nonblocking()?, lab.nonblocking()?);
            order(lab, a, b)
        },
    },
    Check {
        name: "two blocking streams",
        documented: "not ordered",
        trial: |lab| {
            let (a, b) = (lab.blocking()?, lab.blocking()?);
            order(lab, a, b)
        },
    },
    Check {
        name: "legacy stream behind a blocking stream",
        documented: "ordered",
        trial: |lab| {
            let stream = lab.blocking()?;
            order(lab, stream, LEGACY)
        },
    },
    Check {
        name: "blocking stream behind the legacy stream",
        documented: "ordered",
        trial: |lab| {
            let stream = lab.blocking()?;
            order(lab, LEGACY, stream)
        },
    },
    Check {
        name: "two blocking streams with an operation of the legacy stream between",
        documented: "ordered",
        trial: |lab| {
            let (a, b) = (lab.blocking()?, lab.blocking()?);
            lab.hold(a)?;
            let words = [lab.address(crate::lab::MIDDLE)];
            lab.launch(lab.kernels.mark, LEGACY, &words)?;
            lab.mark(b)?;
            lab.mark_waits()
        },
    },
    Check {
        name: "legacy stream behind a non-blocking stream",
        documented: "not ordered",
        trial: |lab| {
            let stream = lab.nonblocking()?;
            order(lab, stream, LEGACY)
        },
    },
    Check {
        name: "non-blocking stream behind the legacy stream",
        documented: "not ordered",
        trial: |lab| {
            let stream = lab.nonblocking()?;
            order(lab, LEGACY, stream)
        },
    },
    Check {
        name: "legacy stream behind the per-thread default stream",
        documented: "ordered",
        trial: |lab| order(lab, PER_THREAD, LEGACY),
    },
    Check {
        name: "blocking stream behind the per-thread default stream",
        documented: "not ordered",
        trial: |lab| {
            let stream = lab.blocking()?;
            order(lab, PER_THREAD, stream)
        },
    },
    Check {
        name: "high-priority stream issued later",
        documented: "not ordered",
        trial: |lab| {
            let low = lab.nonblocking()?;
            let mut high = ptr::null_mut();
            // SAFETY: the pointer leads to a local variable; 1 is CU_STREAM_NON_BLOCKING.
            ok(unsafe { sys::cuStreamCreateWithPriority(&raw mut high, 1, -5) })?;
            let answer = order(lab, low, high);
            // SAFETY: nothing uses the stream any more.
            ok(unsafe { sys::cuStreamDestroy_v2(high) })?;
            answer
        },
    },
    Check {
        name: "`cuStreamSynchronize` returns behind its stream",
        documented: "waits",
        trial: |lab| {
            let stream = lab.nonblocking()?;
            // SAFETY: the stream is alive.
            blocks(lab, stream, || unsafe { sys::cuStreamSynchronize(stream) })
        },
    },
    Check {
        name: "`cuStreamSynchronize` of the legacy stream returns behind a blocking stream",
        documented: "waits",
        trial: |lab| {
            let stream = lab.blocking()?;
            // SAFETY: the legacy stream's handle is a constant.
            blocks(lab, stream, || unsafe { sys::cuStreamSynchronize(LEGACY) })
        },
    },
    Check {
        name: "`cuStreamSynchronize` of the legacy stream returns behind a non-blocking stream",
        documented: "does not wait",
        trial: |lab| {
            let stream = lab.nonblocking()?;
            // SAFETY: as above.
            blocks(lab, stream, || unsafe { sys::cuStreamSynchronize(LEGACY) })
        },
    },
    Check {
        name: "`cuCtxSynchronize` returns behind a non-blocking stream",
        documented: "waits",
        trial: |lab| {
            let stream = lab.nonblocking()?;
            // SAFETY: no arguments.
            blocks(lab, stream, || unsafe { sys::cuCtxSynchronize() })
        },
    },
    Check {
        name: "`cuStreamDestroy` returns behind its stream's work",
        documented: "does not wait",
        trial: |lab| {
            let mut stream = ptr::null_mut();
            // SAFETY: the pointer leads to a local variable; the stream is destroyed once.
            unsafe {
                ok(sys::cuStreamCreate(&raw mut stream, 1))?;
                blocks(lab, stream, || sys::cuStreamDestroy_v2(stream))
            }
        },
    },
    Check {
        name: "`cuStreamCreate` returns behind other work",
        documented: "not said",
        trial: |lab| {
            let held = lab.nonblocking()?;
            lab.hold(held)?;
            lab.blocking()?;
            Ok(!lab.is_held())
        },
    },
    Check {
        name: "work behind a host function in its stream",
        documented: "ordered",
        trial: |lab| {
            let stream = lab.nonblocking()?;
            host_function(lab, stream)?;
            lab.mark(stream)?;
            lab.mark_waits()
        },
    },
    Check {
        name: "work of another stream beside a host function",
        documented: "not ordered",
        trial: |lab| {
            let (stream, other) = (lab.nonblocking()?, lab.nonblocking()?);
            host_function(lab, stream)?;
            lab.mark(other)?;
            lab.mark_waits()
        },
    },
    Check {
        name: "waiting stream behind a value written by another stream (`cuStreamWriteValue32`)",
        documented: "ordered",
        trial: |lab| {
            let (a, b) = (lab.nonblocking()?, lab.nonblocking()?);
            let word = crate::lab::Memory::device(4)?;
            // SAFETY: streams and memory are alive until the trial ends; 0 is "at least".
            unsafe {
                ok(sys::cuMemsetD32_v2(word.address, 0, 1))?;
                ok(sys::cuCtxSynchronize())?;
                lab.hold(a)?;
                ok(sys::cuStreamWriteValue32_v2(a, word.address, 1, 0))?;
                ok(sys::cuStreamWaitValue32_v2(b, word.address, 1, 0))?;
            }
            lab.mark(b)?;
            let answer = lab.mark_waits();
            assert!(lab.read(MARK) == 1 || answer.is_err());
            answer
        },
    },
];

/// Enqueues a function that takes as long as a hold.
fn host_function(lab: &Lab, stream: CUstream) -> Result<(), Failure> {
    unsafe extern "C" fn rest(end: *mut c_void) {
        std::thread::sleep(crate::lab::HOLD);
        // SAFETY: the word lives as long as the laboratory.
        unsafe { end.cast::<u32>().write_volatile(1) }
    }
    let end = ptr::with_exposed_provenance_mut(lab.address(crate::lab::END) as usize);
    // SAFETY: the function does not call the driver, and its word outlives it.
    ok(unsafe { sys::cuLaunchHostFunc(stream, Some(rest), end) })
}
