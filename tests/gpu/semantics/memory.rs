//! Memory's life: what allocations and frees wait for.

use crate::Check;
use crate::lab::{END, Failure, Memory, ok};
use cudarc::driver::sys::{self, CUstream};

pub(crate) const CHECKS: &[Check] = &[
    Check {
        name: "memory allocated in stream order, used by a stream that does not wait",
        documented: "not ordered",
        trial: |lab| {
            let (a, b) = (lab.nonblocking()?, lab.nonblocking()?);
            lab.hold(a)?;
            let address = allocate_in(a)?;
            lab.mark(b)?;
            let answer = lab.mark_waits();
            free_in(address, a)?;
            answer
        },
    },
    Check {
        name: "`cuMemAllocAsync` returns behind its stream",
        documented: "does not wait",
        trial: |lab| {
            let stream = lab.nonblocking()?;
            lab.hold(stream)?;
            let address = allocate_in(stream)?;
            let answer = !lab.is_held();
            free_in(address, stream)?;
            Ok(answer)
        },
    },
    Check {
        name: "`cuMemFreeAsync` returns behind its stream",
        documented: "does not wait",
        trial: |lab| {
            let stream = lab.nonblocking()?;
            let address = allocate_in(stream)?;
            lab.hold(stream)?;
            free_in(address, stream)?;
            Ok(!lab.is_held())
        },
    },
    Check {
        name: "`cuMemFree` of stream-ordered memory returns behind a non-blocking stream",
        documented: "does not wait",
        trial: |lab| {
            let stream = lab.nonblocking()?;
            let address = allocate_in(stream)?;
            // SAFETY: the stream is alive; the memory is freed once.
            unsafe {
                ok(sys::cuStreamSynchronize(stream))?;
                lab.hold(stream)?;
                ok(sys::cuMemFree_v2(address))?;
            }
            Ok(!lab.is_held())
        },
    },
    Check {
        name: "memory freed in one held stream is handed out again in another one",
        documented: "only where an order exists",
        trial: |lab| {
            const BYTES: usize = 1 << 20;
            let (a, b) = (lab.nonblocking()?, lab.nonblocking()?);
            // SAFETY: the streams are alive; each address is freed once.
            unsafe {
                let (mut first, mut second) = (0, 0);
                ok(sys::cuMemAllocAsync(&raw mut first, BYTES, a))?;
                lab.hold(a)?;
                ok(sys::cuMemFreeAsync(first, a))?;
                ok(sys::cuMemAllocAsync(&raw mut second, BYTES, b))?;
                let handed_out = first == second;
                lab.mark(b)?;
                // Either another piece of memory, or the stream waits.
                let waits = lab.mark_waits()?;
                ok(sys::cuMemFreeAsync(second, b))?;
                Ok(!handed_out || waits)
            }
        },
    },
    Check {
        name: "managed memory: `cuMemPrefetchAsync` returns behind its stream",
        documented: "does not wait",
        trial: |lab| {
            let stream = lab.nonblocking()?;
            let memory = Memory::managed(1 << 20)?;
            lab.hold(stream)?;
            // SAFETY: memory and stream are alive.
            ok(unsafe { sys::cuMemPrefetchAsync(memory.address, 1 << 20, lab.device, stream) })?;
            Ok(!lab.is_held())
        },
    },
    Check {
        name: "`cuMemHostUnregister` returns behind a non-blocking stream",
        documented: "not said",
        trial: |lab| {
            let stream = lab.nonblocking()?;
            let mut memory = vec![0u8; 1 << 20];
            let start = memory.as_mut_ptr();
            // SAFETY: the memory is registered for as long as it lives here.
            unsafe {
                ok(sys::cuMemHostRegister_v2(start.cast(), 1 << 20, 0))?;
                lab.hold(stream)?;
                ok(sys::cuMemHostUnregister(start.cast()))?;
            }
            Ok(lab.read(END) != 0)
        },
    },
];

fn allocate_in(stream: CUstream) -> Result<u64, Failure> {
    let mut address = 0;
    // SAFETY: the pointer leads to a local variable; the stream is alive.
    ok(unsafe { sys::cuMemAllocAsync(&raw mut address, 4096, stream) })?;
    Ok(address)
}

fn free_in(address: u64, stream: CUstream) -> Result<(), Failure> {
    // SAFETY: the address came from `allocate_in` and is freed once.
    ok(unsafe { sys::cuMemFreeAsync(address, stream) })
}
