//! Copies and memsets: what they order on the device, and when the host goes on.

use crate::Check;
use crate::lab::{Failure, LEGACY, Lab, Memory, ok};
use cudarc::driver::sys::{self, CUresult, CUstream};
use std::ffi::c_void;

const SMALL: usize = 4096;
const LARGE: usize = 4 << 20;

/// Whether `call` returns only after what holds `stream`.
fn returns_behind(
    lab: &mut Lab,
    stream: CUstream,
    call: impl FnOnce() -> CUresult,
) -> Result<bool, Failure> {
    lab.hold(stream)?;
    ok(call())?;
    Ok(!lab.is_held())
}

fn to_device(lab: &mut Lab, bytes: usize, pinned: bool, held: CUstream) -> Result<bool, Failure> {
    let target = Memory::device(bytes)?;
    let page_locked = Memory::pinned(bytes)?;
    let ordinary = vec![1u8; bytes];
    let source: *const c_void =
        if pinned { page_locked.host::<c_void>() } else { ordinary.as_ptr().cast() };
    // SAFETY: both sides are that long, and live until the call returns.
    returns_behind(lab, held, || unsafe { sys::cuMemcpyHtoD_v2(target.address, source, bytes) })
}

pub(crate) const CHECKS: &[Check] = &[
    Check {
        name: "`cuMemcpyHtoD`, pageable, returns behind a blocking stream",
        documented: "waits",
        trial: |lab| {
            let stream = lab.blocking()?;
            to_device(lab, SMALL, false, stream)
        },
    },
    Check {
        name: "`cuMemcpyHtoD`, pageable, returns behind a non-blocking stream",
        documented: "does not wait",
        trial: |lab| {
            let stream = lab.nonblocking()?;
            to_device(lab, SMALL, false, stream)
        },
    },
    Check {
        name: "`cuMemcpyHtoD`, page-locked, returns behind a blocking stream",
        documented: "waits",
        trial: |lab| {
            let stream = lab.blocking()?;
            to_device(lab, SMALL, true, stream)
        },
    },
    Check {
        name: "`cuMemcpyDtoD` returns behind the legacy stream",
        documented: "does not wait",
        trial: |lab| {
            let (a, b) = (Memory::device(SMALL)?, Memory::device(SMALL)?);
            // SAFETY: both sides are that long.
            returns_behind(lab, LEGACY, || unsafe {
                sys::cuMemcpyDtoD_v2(a.address, b.address, SMALL)
            })
        },
    },
    Check {
        name: "`cuMemsetD8` of device memory returns behind the legacy stream",
        documented: "does not wait",
        trial: |lab| {
            let memory = Memory::device(SMALL)?;
            // SAFETY: the memory is that long.
            returns_behind(lab, LEGACY, || unsafe { sys::cuMemsetD8_v2(memory.address, 0, SMALL) })
        },
    },
    Check {
        name: "`cuMemsetD8` of page-locked memory returns behind the legacy stream",
        documented: "waits",
        trial: |lab| {
            let memory = Memory::pinned(SMALL)?;
            // SAFETY: the memory is that long.
            returns_behind(lab, LEGACY, || unsafe { sys::cuMemsetD8_v2(memory.address, 0, SMALL) })
        },
    },
    Check {
        name: "`cuMemcpyHtoDAsync`, page-locked, returns behind its stream",
        documented: "does not wait",
        trial: |lab| {
            let stream = lab.nonblocking()?;
            let (target, source) = (Memory::device(SMALL)?, Memory::pinned(SMALL)?);
            // SAFETY: both sides are that long and live until the trial ends.
            returns_behind(lab, stream, || unsafe {
                sys::cuMemcpyHtoDAsync_v2(target.address, source.host(), SMALL, stream)
            })
        },
    },
    Check {
        name: "`cuMemcpyDtoHAsync`, page-locked, returns behind its stream",
        documented: "does not wait",
        trial: |lab| {
            let stream = lab.nonblocking()?;
            let (source, target) = (Memory::device(SMALL)?, Memory::pinned(SMALL)?);
            // SAFETY: as above.
            returns_behind(lab, stream, || unsafe {
                sys::cuMemcpyDtoHAsync_v2(target.host(), source.address, SMALL, stream)
            })
        },
    },
    Check {
        name: "`cuMemcpyHtoDAsync`, pageable, 4 KiB, returns behind its stream",
        documented: "may wait",
        trial: |lab| async_pageable(lab, SMALL),
    },
    Check {
        name: "`cuMemcpyHtoDAsync`, pageable, 4 MiB, returns behind its stream",
        documented: "may wait",
        trial: |lab| async_pageable(lab, LARGE),
    },
    Check {
        name: "`cuMemcpyHtoD`, pageable: work of a non-blocking stream issued after its return sees all 64 KiB",
        documented: "not ordered",
        trial: |lab| copy_tail(lab, 64 << 10),
    },
    Check {
        name: "the same, 1 MiB",
        documented: "not ordered",
        trial: |lab| copy_tail(lab, 1 << 20),
    },
    Check {
        name: "`cuMemcpyHtoD`, pageable: work of a non-blocking stream issued after its return sees all 64 MiB",
        documented: "not ordered",
        trial: |lab| copy_tail(lab, 64 << 20),
    },
];

fn async_pageable(lab: &mut Lab, bytes: usize) -> Result<bool, Failure> {
    let stream = lab.nonblocking()?;
    let target = Memory::device(bytes)?;
    let source = vec![1u8; bytes];
    // SAFETY: both sides are that long; the source lives until the context is synchronised.
    let answer = returns_behind(lab, stream, || unsafe {
        sys::cuMemcpyHtoDAsync_v2(target.address, source.as_ptr().cast(), bytes, stream)
    });
    // SAFETY: no arguments.
    ok(unsafe { sys::cuCtxSynchronize() })?;
    answer
}

/// The end of a pageable copy may still be under way at its return.
fn copy_tail(lab: &mut Lab, bytes: usize) -> Result<bool, Failure> {
    let stream = lab.nonblocking()?;
    let target = Memory::device(bytes)?;
    let seen = Memory::pinned(4)?;
    let source = vec![0x5a_u8; bytes];
    // SAFETY: every range is that long, and lives until the context is synchronised.
    unsafe {
        ok(sys::cuMemsetD8_v2(target.address, 0, bytes))?;
        ok(sys::cuCtxSynchronize())?;
        ok(sys::cuMemcpyHtoD_v2(target.address, source.as_ptr().cast(), bytes))?;
        let last = target.address + bytes as u64 - 4;
        ok(sys::cuMemcpyDtoHAsync_v2(seen.host(), last, 4, stream))?;
        ok(sys::cuStreamSynchronize(stream))?;
        let answer = seen.host::<u32>().read_volatile() == 0x5a5a_5a5a;
        ok(sys::cuCtxSynchronize())?;
        Ok(answer)
    }
}
