//! Questions that the documentation leaves open.

use crate::Check;
use crate::graphs::{Executable, primary, secondary};
use crate::lab::{END, Failure, HOLD, LEGACY, Lab, MARK, Memory, ok};
use cudarc::driver::sys::{self, CUresult};
use std::ffi::{CString, c_void};
use std::ptr;
use std::time::Duration;

/// Whether `call` returns only after a non-blocking stream's work.
fn waits_for_nonblocking(lab: &mut Lab, call: impl FnOnce() -> CUresult) -> Result<bool, Failure> {
    let stream = lab.nonblocking()?;
    lab.hold(stream)?;
    ok(call())?;
    Ok(!lab.is_held())
}

pub(crate) const CHECKS: &[Check] = &[
    Check {
        name: "Q1 `cuMemAlloc`, 1 MiB, returns behind a non-blocking stream",
        documented: "not said",
        trial: |lab| {
            let mut address = 0;
            // SAFETY: the pointer leads to a local variable.
            let answer = waits_for_nonblocking(lab, || unsafe {
                sys::cuMemAlloc_v2(&raw mut address, 1 << 20)
            });
            // SAFETY: freed once.
            ok(unsafe { sys::cuMemFree_v2(address) })?;
            answer
        },
    },
    Check {
        name: "Q1 `cuMemAlloc`, 256 MiB, returns behind a non-blocking stream",
        documented: "not said",
        trial: |lab| {
            let mut address = 0;
            // SAFETY: as above.
            let answer = waits_for_nonblocking(lab, || unsafe {
                sys::cuMemAlloc_v2(&raw mut address, 256 << 20)
            });
            // SAFETY: freed once.
            ok(unsafe { sys::cuMemFree_v2(address) })?;
            answer
        },
    },
    Check {
        name: "Q1 `cuMemFree` returns behind a non-blocking stream",
        documented: "may wait",
        trial: |lab| {
            let mut address = 0;
            // SAFETY: the pointer leads to a local variable; freed once.
            unsafe {
                ok(sys::cuMemAlloc_v2(&raw mut address, 1 << 20))?;
                waits_for_nonblocking(lab, || sys::cuMemFree_v2(address))
            }
        },
    },
    Check {
        name: "Q1 `cuMemHostAlloc` returns behind a non-blocking stream",
        documented: "not said",
        trial: |lab| {
            let mut memory = ptr::null_mut::<c_void>();
            // SAFETY: the pointer leads to a local variable; freed once.
            unsafe {
                let answer =
                    waits_for_nonblocking(lab, || sys::cuMemHostAlloc(&raw mut memory, 1 << 20, 0));
                ok(sys::cuMemFreeHost(memory))?;
                answer
            }
        },
    },
    Check {
        name: "Q1 `cuMemFreeHost` returns behind a non-blocking stream",
        documented: "not said",
        trial: |lab| {
            let mut memory = ptr::null_mut::<c_void>();
            // SAFETY: the pointer leads to a local variable; freed once.
            unsafe {
                ok(sys::cuMemHostAlloc(&raw mut memory, 1 << 20, 0))?;
                waits_for_nonblocking(lab, || sys::cuMemFreeHost(memory))
            }
        },
    },
    Check {
        name: "Q1 `cuModuleUnload` returns behind a non-blocking stream",
        documented: "not said",
        trial: |lab| {
            let text = CString::new(include_str!("kernels.ptx")).expect("no NUL in the text");
            let mut module = ptr::null_mut();
            // SAFETY: the text lives until the call returns; the module is unloaded once.
            unsafe {
                ok(sys::cuModuleLoadData(&raw mut module, text.as_ptr().cast()))?;
                waits_for_nonblocking(lab, || sys::cuModuleUnload(module))
            }
        },
    },
    Check {
        name: "Q2 `cuMemcpy`, host to host, returns behind a blocking stream",
        documented: "fully synchronous",
        trial: |lab| {
            let stream = lab.blocking()?;
            let (from, mut to) = (vec![1u8; 4096], vec![0u8; 4096]);
            let (source, target) = (from.as_ptr() as u64, to.as_mut_ptr() as u64);
            lab.hold(stream)?;
            // SAFETY: both are that long.
            ok(unsafe { sys::cuMemcpy(target, source, 4096) })?;
            Ok(!lab.is_held())
        },
    },
    Check {
        name: "Q3 `cuMemsetD8` of managed memory returns behind the legacy stream",
        documented: "older pages: waits",
        trial: |lab| {
            let memory = Memory::managed(4096)?;
            lab.hold(LEGACY)?;
            // SAFETY: the memory is that long.
            ok(unsafe { sys::cuMemsetD8_v2(memory.address, 0, 4096) })?;
            Ok(!lab.is_held())
        },
    },
    Check {
        name: "Q3 `cuMemcpy` between managed and device memory returns behind the legacy stream",
        documented: "older pages: waits",
        trial: |lab| {
            let (from, to) = (Memory::managed(4096)?, Memory::device(4096)?);
            lab.hold(LEGACY)?;
            // SAFETY: both are that long.
            ok(unsafe { sys::cuMemcpy(to.address, from.address, 4096) })?;
            Ok(!lab.is_held())
        },
    },
    Check {
        name: "Q4 pageable `cuMemcpyHtoDAsync`, 4 KiB, reads its source behind earlier work",
        documented: "may be read during the call",
        trial: |lab| source_read_late(lab, 4096),
    },
    Check {
        name: "Q4 the same, 64 KiB",
        documented: "may be read during the call",
        trial: |lab| source_read_late(lab, 64 << 10),
    },
    Check {
        name: "Q4 the same, 256 KiB",
        documented: "may be read during the call",
        trial: |lab| source_read_late(lab, 256 << 10),
    },
    Check {
        name: "Q4 the same, 4 MiB",
        documented: "may be read during the call",
        trial: |lab| source_read_late(lab, 4 << 20),
    },
    Check {
        name: "Q5 event wait node: waits for a record made between launch and the node's turn",
        documented: "not said",
        trial: wait_node_version,
    },
    Check {
        name: "Q6 `cuMemcpyPeer` between two contexts of one device returns behind, or its copy waits for, a non-blocking stream",
        documented: "waits for all earlier work of both devices",
        trial: peer_copy,
    },
    Check {
        name: "Q7 new blocking stream behind earlier work of the legacy stream",
        documented: "ordered",
        trial: |lab| {
            lab.hold(LEGACY)?;
            let stream = lab.blocking()?;
            lab.mark(stream)?;
            lab.mark_waits()
        },
    },
    Check {
        name: "Q8 third kernel of a programmatic chain waits; does the first one count, when the second did not wait?",
        documented: "not said",
        trial: |lab| {
            let stream = lab.nonblocking()?;
            primary(lab, stream)?;
            secondary(lab, stream, lab.kernels.mark_and_trigger, crate::lab::MIDDLE)?;
            secondary(lab, stream, lab.kernels.wait_and_mark, MARK)?;
            lab.mark_waits()
        },
    },
    Check {
        name: "Q9 `cuMemcpyDtoHAsync` to pageable memory, 4 KiB, returns behind its stream",
        documented: "may wait",
        trial: |lab| to_pageable(lab, 4096),
    },
    Check {
        name: "Q9 the same, 4 MiB",
        documented: "may wait",
        trial: |lab| to_pageable(lab, 4 << 20),
    },
    Check {
        name: "Q10 `cuEventSynchronize` under way also waits for a record made by another thread meanwhile",
        documented: "not said",
        trial: record_meanwhile,
    },
];

/// A host function ahead of the copy changes the source: does the copy see the change?
fn source_read_late(lab: &mut Lab, bytes: usize) -> Result<bool, Failure> {
    unsafe extern "C" fn change(source: *mut c_void) {
        // SAFETY: the source lives until the context is synchronised.
        unsafe { source.cast::<u8>().write_volatile(2) }
    }
    let stream = lab.nonblocking()?;
    let target = Memory::device(bytes)?;
    let mut source = vec![1u8; bytes];
    let mut seen = 0u8;
    // SAFETY: every range is that long and lives until the context is synchronised.
    unsafe {
        lab.hold(stream)?;
        ok(sys::cuLaunchHostFunc(stream, Some(change), source.as_mut_ptr().cast()))?;
        ok(sys::cuMemcpyHtoDAsync_v2(target.address, source.as_ptr().cast(), bytes, stream))?;
        ok(sys::cuCtxSynchronize())?;
        ok(sys::cuMemcpyDtoH_v2((&raw mut seen).cast(), target.address, 1))?;
    }
    Ok(seen == 2)
}

fn to_pageable(lab: &mut Lab, bytes: usize) -> Result<bool, Failure> {
    let stream = lab.nonblocking()?;
    let source = Memory::device(bytes)?;
    let mut target = vec![0u8; bytes];
    lab.hold(stream)?;
    // SAFETY: both are that long and live until the context is synchronised.
    unsafe {
        let to = target.as_mut_ptr().cast();
        ok(sys::cuMemcpyDtoHAsync_v2(to, source.address, bytes, stream))?;
        let answer = !lab.is_held();
        ok(sys::cuCtxSynchronize())?;
        Ok(answer)
    }
}

/// A graph that waits for an event is launched into a stream that is busy for a while; before its
/// turn comes the event is recorded again, behind a hold.
fn wait_node_version(lab: &mut Lab) -> Result<bool, Failure> {
    let (a, b, c) = (lab.nonblocking()?, lab.nonblocking()?, lab.nonblocking()?);
    let event = lab.event()?;
    lab.record(event, c)?;
    let (mut graph, mut wait, mut node) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    let argument = lab.address(MARK);
    let mut pointers = [ptr::from_ref(&argument).cast_mut().cast()];
    // SAFETY: all zeroes is a value of this plain structure of C.
    let mut params: sys::CUDA_KERNEL_NODE_PARAMS = unsafe { std::mem::zeroed() };
    params.func = lab.kernels.mark;
    params.gridDimX = 1;
    params.gridDimY = 1;
    params.gridDimZ = 1;
    params.blockDimX = 1;
    params.blockDimY = 1;
    params.blockDimZ = 1;
    params.kernelParams = pointers.as_mut_ptr();
    // SAFETY: every pointer leads to a local variable that outlives its call.
    unsafe {
        ok(sys::cuGraphCreate(&raw mut graph, 0))?;
        ok(sys::cuGraphAddEventWaitNode(&raw mut wait, graph, ptr::null(), 0, event))?;
        let params = &raw const params;
        ok(sys::cuGraphAddKernelNode_v2(&raw mut node, graph, &raw const wait, 1, params))?;
    }
    let graph = Executable::of(graph)?;
    // The stream of the graph is busy for less long than the one of the second record.
    let short = [Duration::from_millis(5).as_nanos() as u64, lab.address(crate::lab::MIDDLE)];
    lab.launch(lab.kernels.hold, a, &short)?;
    graph.launch(a)?;
    lab.hold(b)?;
    lab.record(event, b)?;
    lab.mark_waits()
}

/// A peer copy between two contexts of one device, beside a held non-blocking stream.
fn peer_copy(lab: &mut Lab) -> Result<bool, Failure> {
    let stream = lab.nonblocking()?;
    let source = Memory::pinned(4)?;
    // SAFETY: contexts and memory are alive; what is made here is freed here.
    unsafe {
        source.host::<u32>().write_volatile(1);
        let (mut from, mut to, mut other) = (0, 0, ptr::null_mut());
        ok(sys::cuMemAlloc_v2(&raw mut from, 4))?;
        ok(sys::cuMemcpyHtoD_v2(from, source.host(), 4))?;
        ok(sys::cuCtxCreate_v2(&raw mut other, 0, lab.device))?;
        ok(sys::cuMemAlloc_v2(&raw mut to, 4))?;
        ok(sys::cuMemsetD8_v2(to, 0, 4))?;
        ok(sys::cuCtxSynchronize())?;
        ok(sys::cuCtxSetCurrent(lab.context))?;
        ok(sys::cuCtxSynchronize())?;
        lab.hold(stream)?;
        ok(sys::cuMemcpyPeer(to, other, from, lab.context, 4))?;
        // The target's own stream reads what the copy has written so far.
        ok(sys::cuCtxSetCurrent(other))?;
        let mut reader = ptr::null_mut();
        ok(sys::cuStreamCreate(&raw mut reader, 1))?;
        let seen = Memory::pinned(4)?;
        let mut copied_early = false;
        while lab.is_held() {
            ok(sys::cuMemcpyDtoHAsync_v2(seen.host(), to, 4, reader))?;
            ok(sys::cuStreamSynchronize(reader))?;
            copied_early |= seen.host::<u32>().read_volatile() == 1 && lab.is_held();
        }
        ok(sys::cuCtxSynchronize())?;
        drop(seen);
        ok(sys::cuMemFree_v2(to))?;
        ok(sys::cuStreamDestroy_v2(reader))?;
        ok(sys::cuCtxDestroy_v2(other))?;
        ok(sys::cuCtxSetCurrent(lab.context))?;
        ok(sys::cuMemFree_v2(from))?;
        Ok(!copied_early)
    }
}

/// Another thread records the event again, behind a longer hold, while the host waits for it.
fn record_meanwhile(lab: &mut Lab) -> Result<bool, Failure> {
    let (a, b, event) = (lab.nonblocking()?, lab.nonblocking()?, lab.event()?);
    let short = [HOLD.as_nanos() as u64, lab.address(crate::lab::MIDDLE)];
    lab.launch(lab.kernels.hold, a, &short)?;
    lab.record(event, a)?;
    lab.hold_for(b, 3 * HOLD)?;
    let (context, stream, again) = (lab.context as usize, b as usize, event as usize);
    let other = std::thread::spawn(move || {
        std::thread::sleep(HOLD / 4);
        // SAFETY: context, stream and event are alive until the thread is joined.
        unsafe {
            ok(sys::cuCtxSetCurrent(ptr::with_exposed_provenance_mut(context)))?;
            ok(sys::cuEventRecord(
                ptr::with_exposed_provenance_mut(again),
                ptr::with_exposed_provenance_mut(stream),
            ))
        }
    });
    // SAFETY: the event is alive.
    let waited = ok(unsafe { sys::cuEventSynchronize(event) });
    let answer = lab.read(END) != 0;
    other.join().map_err(|_| Failure("the other thread panicked".to_owned()))??;
    waited?;
    Ok(answer)
}
