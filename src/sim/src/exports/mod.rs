//! The C interface of the driver: argument checking, and nothing else.
//!
//! Every function here takes its arguments in the types of [`args`], which are transparent to C,
//! and calls safe code. A function bears its own name in its body ([`enter`]), so that no two are
//! alike and none is folded into another: a tool that tells calls apart by the address that
//! `cuGetProcAddress` answered relies on one address a name. Handles and addresses are plain
//! numbers. Under `cfg(test)` nothing is exported.
#![cfg_attr(test, expect(non_snake_case, reason = "the names are those of the CUDA driver API"))]

mod args;
mod array;
mod batch;
pub(crate) mod callback;
mod capture;
mod context;
mod copy;
mod device;
mod enter;
mod event;
mod fill;
mod graph;
mod green;
mod image;
mod launch;
mod lookup;
mod memory;
mod module;
mod occupancy;
mod pool;
pub(crate) mod runtime;
mod start;
mod stream;
mod unsupported;
mod versions;
mod virtual_memory;
mod words;

/// An exported function: its name and address.
#[derive(Clone, Copy, Debug)]
struct Entry {
    name: &'static str,
    address: *const (),
}

// SAFETY: the address is that of code, which any thread may call.
unsafe impl Sync for Entry {}

/// Every exported function.
const TABLES: &[&[Entry]] = &[
    start::TABLE,
    start::EARLY,
    lookup::TABLE,
    device::TABLE,
    context::TABLE,
    stream::TABLE,
    stream::TWINS,
    event::TABLE,
    event::TWINS,
    memory::TABLE,
    memory::TWINS,
    pool::TABLE,
    pool::TWINS,
    copy::TWINS,
    fill::TWINS,
    module::TABLE,
    launch::TABLE,
    launch::TWINS,
    occupancy::TABLE,
    batch::TWINS,
    virtual_memory::TABLE,
    green::TABLE,
    green::TWINS,
    array::TABLE,
    array::TWINS,
    words::TABLE,
    words::TWINS,
    capture::TABLE,
    capture::TWINS,
    graph::build::TABLE,
    graph::query::TABLE,
    graph::params::TABLE,
    graph::exec::TABLE,
    graph::exec::TWINS,
    unsupported::TABLE,
];
