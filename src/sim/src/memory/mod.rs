//! The simulated devices' memory: a reserved window of real host addresses, the map of what is
//! allocated in it, and bounds-checked access to both.
//!
//! Invariants: memory once committed stays mapped until the process ends, so that an operation
//! that runs after its memory was freed can never fault the process; whether an address may be
//! used is decided by the map alone.

mod access;
mod map;
mod window;

pub(crate) use access::{DeviceView, load_bytes, store_bytes};
pub(crate) use map::{AddressMap, Origin, Region};
pub(crate) use window::{Window, WindowError};
