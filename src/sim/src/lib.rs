//! A simulated CUDA driver: the library that a program loads as `libcuda.so.1` where there is no
//! GPU, or where an adversarial schedule is wanted.
//!
//! Unmodified programs of the driver API run on it: contexts, memory at real host addresses,
//! streams, events, copies, arrays, mappings of physical memory, graphs and stream capture, stream
//! memory operations, green contexts, and kernels from PTX text through an interpreter that records
//! exactly which bytes each launch touches. Asynchronous work is queued and runs only inside driver calls,
//! in an order that CUDA permits and a seeded policy chooses (`STREAMSAN_SIM_POLICY`).
//!
//! Invariants: no lock is held while code of the program runs; a bad argument is one of the
//! driver's own status codes, never a crash; a program with one host thread behaves the same in
//! every run under the same policy. Unsafe code is confined to `exports`, `memory` and `os`.
//!
//! Read from the environment at `cuInit`: `STREAMSAN_SIM_POLICY` (`eager`, the default, `lazy`,
//! `starve:N`, `random:SEED`) and `STREAMSAN_SIM_DEVICES` (1 to 8); `STREAMSAN_SIM_LOG=1` names the
//! calls that are not simulated as they are made, and `STREAMSAN_SIM_ACCESSES=inferred` withholds what
//! kernels touched, as a GPU does. Where `STREAMSAN_MEASURE` names a selection of kernels, the bytes of
//! their plain launches are reported as measured, and those of all others withheld;
//! `STREAMSAN_SIM_UNMEASURED=N` leaves out each N-th of them, as where no log is free.
//!
//! Deliberately absent: conditions of graphs that kernels set and launches from the device, textures and surfaces,
//! external memory and semaphores, inter-process handles, multicast, machine code (only PTX runs),
//! and NVIDIA's export tables, without which NVIDIA's own CUDA runtime does not start.
#![deny(unsafe_code)]

mod driver;
mod errors;
#[expect(unsafe_code, reason = "the C interface of the driver, and calls back into the program")]
mod exports;
mod handles;
#[expect(unsafe_code, reason = "memory at raw addresses, each access checked against the map")]
mod memory;
#[expect(unsafe_code, reason = "system calls")]
mod os;
mod schedule;
