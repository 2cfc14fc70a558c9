//! The code that the programs under test share: thin, checked calls of the CUDA driver API through
//! cudarc's raw bindings.
//!
//! Invariants: one function here is one driver call (setup and teardown aside), and no function
//! orders anything that its driver call does not order. Deliberately absent: reference counting,
//! drop handlers, event tracking, waits; a program must show every call that it makes, because the
//! calls are what is under test.
//!
//! The functions are safe to call because handles can only come from the driver, device memory is
//! named by address and never dereferenced on the host, and page-locked memory is reached through
//! raw pointers only. A program may still race: that is its purpose.

mod context;
mod event;
#[cfg(doctest)]
mod findings;
mod graph;
mod kernel;
mod memory;
mod newer;
mod outcome;
mod special;
mod stream;

pub use context::{Gpu, SecondContext};
pub use event::Event;
pub use graph::{Executable, Graph, Node};
pub use kernel::{Arg, Kernel, Library, Module};
pub use memory::{
    Columns, DeviceBuffer, DeviceRange, PinnedBuffer, copy_columns_to_device, copy_on_device,
    copy_pageable_to_device, copy_to_device, copy_to_device_blocking, copy_to_host,
    copy_to_host_blocking, pinned_to_device_blocking, set_bytes,
};
pub use newer::{SourceAccess, copy_batch, copy_batch_to_device};
pub use outcome::{Failure, Variant, check, run};
pub use special::{
    Array, Mapping, Physical, Registered, alloc_managed, copy_on_device_default, free_range,
    free_range_async, prefetch, set_bytes_default, set_sync_memops, wait_value, write_value,
};
pub use stream::Stream;
