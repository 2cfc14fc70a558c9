//! The simulated devices and what they say of themselves. One H100-class device by default.

use super::sim::Call;
use crate::errors::{CuError, Outcome};

/// Bytes of memory of each device.
pub(crate) const TOTAL_MEMORY: u64 = 16 << 30;
/// Dynamic shared memory of a block at most, in bytes, once the function opts in.
pub(crate) const MAX_DYNAMIC_SHARED: i32 = 232_448;
/// Shared memory of a block without opting in, in bytes.
pub(super) const DEFAULT_SHARED: u32 = 49_152;
/// Shared memory of a multiprocessor, in bytes.
pub(super) const SHARED_PER_MULTIPROCESSOR: u64 = 233_472;
pub(super) const MULTIPROCESSORS: u32 = 132;
pub(super) const MAX_THREADS_PER_BLOCK: u32 = 1024;
pub(super) const MAX_BLOCK: [u32; 3] = [1024, 1024, 64];
pub(super) const MAX_GRID: [u32; 3] = [2_147_483_647, 65_535, 65_535];
pub(super) const THREADS_PER_MULTIPROCESSOR: u32 = 2048;
pub(super) const BLOCKS_PER_MULTIPROCESSOR: u32 = 32;

/// A device.
#[derive(Debug)]
pub(crate) struct Device {
    /// The primary context, once it was retained; it keeps its handle when it is released.
    pub(super) primary: Option<u64>,
    pub(super) retained: u32,
    pub(super) flags: u32,
    pub(super) default_pool: u64,
    pub(super) pool: u64,
    /// Bytes allocated.
    pub(super) used: u64,
}

impl Device {
    pub(super) fn new(pool: u64) -> Device {
        Device { primary: None, retained: 0, flags: 0, default_pool: pool, pool, used: 0 }
    }
}

/// The last attribute of the interface that is known here (CUDA 12.8).
const LAST_ATTRIBUTE: u32 = 142;

/// Value of a device attribute; `None` for a number that is no attribute.
pub(crate) fn device_attribute(attribute: u32, ordinal: u32) -> Option<i32> {
    let value = match attribute {
        1..=3 => 1024,
        4 => 64,
        5 => i32::MAX,
        6 | 7 => 65_535,
        8 => DEFAULT_SHARED as i32,
        9 => 65_536,
        10 => 32,
        11 => i32::MAX,
        12 | 82 => 65_536,
        13 => 1_980_000,
        14 => 512,
        16 => MULTIPROCESSORS as i32,
        21..=29 | 42 | 43 | 45 | 46 => 16_384,
        30 => 512,
        33 => 1 + ordinal as i32,
        36 => 2_619_000,
        37 => 5120,
        38 => 50 << 20,
        39 => THREADS_PER_MULTIPROCESSOR as i32,
        40 => 3,
        47..=49 => 16_384,
        51 => 32,
        52..=74 | 77 => 16_384,
        75 => 9,
        76 => 0,
        81 => SHARED_PER_MULTIPROCESSOR as i32,
        87 => 2,
        97 => MAX_DYNAMIC_SHARED,
        106 => BLOCKS_PER_MULTIPROCESSOR as i32,
        108 => 32 << 20,
        109 => 128 << 20,
        111 => 1024,
        // Features that are there: overlap, mapped host memory, concurrent kernels, ECC, unified
        // addressing, stream priorities, caches, managed memory, preemption, host pointers of
        // registered memory, cooperative launch, host registration, memory pools,
        // stream memory operations, virtual memory management.
        15 | 19 | 31 | 32 | 41 | 44 | 78 | 79 | 80 | 83 | 89..=96 | 99 | 102 | 115 | 122 | 123 => 1,
        0 => return None,
        // Everything else that exists is a feature that is not.
        _ if attribute <= LAST_ATTRIBUTE => 0,
        _ => return None,
    };
    Some(value)
}

impl Call {
    pub(crate) fn device_count(&self) -> i32 {
        self.lock().devices.len() as i32
    }

    /// Checks a device number and returns it as an ordinal.
    pub(crate) fn device(&self, device: i32) -> Outcome<u32> {
        self.lock().device(device)
    }

    /// Free and total bytes of the current context's device.
    pub(crate) fn memory_info(&self) -> Outcome<(u64, u64)> {
        let driver = self.lock();
        let context = driver.current()?;
        let device = driver.usable(context)?.device;
        Ok((TOTAL_MEMORY - driver.devices[device as usize].used, TOTAL_MEMORY))
    }

    /// Whether kernels on `device` could be given access to the memory of `peer`.
    pub(crate) fn can_access_peer(&self, device: i32, peer: i32) -> Outcome<bool> {
        let driver = self.lock();
        Ok(driver.device(device)? != driver.device(peer)?)
    }

    pub(crate) fn device_pool(&self, device: i32, default: bool) -> Outcome<u64> {
        let driver = self.lock();
        let device = &driver.devices[driver.device(device)? as usize];
        Ok(if default { device.default_pool } else { device.pool })
    }

    pub(crate) fn set_device_pool(&self, device: i32, pool: u64) -> Outcome {
        let mut driver = self.lock();
        let ordinal = driver.device(device)?;
        let of = driver.pools.get(pool).ok_or(CuError::INVALID_VALUE)?.device;
        if of != ordinal {
            return Err(CuError::INVALID_VALUE);
        }
        driver.devices[ordinal as usize].pool = pool;
        Ok(())
    }
}
