//! Allocation that is not stream-ordered: device, pitched, managed and pinned memory, and the
//! registration of the program's own.

use super::sim::Call;
use crate::errors::{CuError, Outcome};
use crate::memory::Origin;

const ATTACH_GLOBAL: u32 = 1;
const ATTACH_HOST: u32 = 2;
const HOST_ALLOC_FLAGS: u32 = 0b111;
const HOST_REGISTER_FLAGS: u32 = 0b1111;
/// Alignment of the rows of a pitched allocation, in bytes.
const PITCH: u64 = 512;

impl Call {
    fn allocate(&self, length: u64, origin: Origin, flags: u32) -> Outcome<u64> {
        let mut driver = self.lock();
        let context = driver.current()?;
        driver.check_unsafe()?;
        if length == 0 {
            return Err(CuError::INVALID_VALUE);
        }
        let device = driver.usable(context)?.device;
        driver.take(length, origin, context, device, flags)
    }

    pub(crate) fn allocate_device(&self, length: u64) -> Outcome<u64> {
        self.allocate(length, Origin::Device, 0)
    }

    /// `cuMemAllocPitch`: start and bytes from row to row.
    pub(crate) fn allocate_pitched(
        &self,
        width: u64,
        height: u64,
        element: u32,
    ) -> Outcome<(u64, u64)> {
        if width == 0 || height == 0 || !matches!(element, 4 | 8 | 16) {
            self.lock().current()?;
            return Err(CuError::INVALID_VALUE);
        }
        let pitch = width.checked_next_multiple_of(PITCH);
        let length = pitch.and_then(|pitch| pitch.checked_mul(height));
        let (pitch, length) = pitch.zip(length).ok_or(CuError::INVALID_VALUE)?;
        Ok((self.allocate_device(length)?, pitch))
    }

    pub(crate) fn allocate_managed(&self, length: u64, flags: u32) -> Outcome<u64> {
        if !matches!(flags, ATTACH_GLOBAL | ATTACH_HOST) {
            self.lock().current()?;
            return Err(CuError::INVALID_VALUE);
        }
        self.allocate(length, Origin::Managed, flags)
    }

    /// Nothing for no bytes, as driver 580 has it.
    pub(crate) fn allocate_pinned(&self, length: u64, flags: u32) -> Outcome<u64> {
        if flags & !HOST_ALLOC_FLAGS != 0 {
            self.lock().current()?;
            return Err(CuError::INVALID_VALUE);
        }
        if length == 0 {
            return self.lock().current().map(|_| 0);
        }
        self.allocate(length, Origin::Pinned, flags)
    }

    /// `cuMemFree`. Memory that is not a pool's waits for the work of its context, as the driver
    /// does; the manual only says that it may, so nothing may be concluded from it. Memory of a
    /// pool is taken back at once.
    pub(crate) fn free_device(&self, start: u64) -> Outcome {
        let mut driver = self.lock();
        driver.current()?;
        driver.check_unsafe()?;
        if start == 0 {
            return Ok(());
        }
        let region = driver.map.at(start).filter(|region| !region.freed).cloned();
        let region = region.ok_or(CuError::INVALID_VALUE)?;
        match region.origin {
            Origin::Device | Origin::Managed => {
                let targets = driver.context_targets(region.context);
                let mut driver = self.sim.wait(driver, &targets);
                driver.discard(&region);
            }
            Origin::Pool(_) => driver.free_to_pool(&region, None),
            Origin::Graph => driver.free_graph_memory(start)?,
            Origin::Array
            | Origin::Global
            | Origin::Mapped
            | Origin::Pinned
            | Origin::Registered => {
                return Err(CuError::INVALID_VALUE);
            }
        }
        Ok(())
    }

    pub(crate) fn free_pinned(&self, start: u64) -> Outcome {
        let mut driver = self.lock();
        driver.current()?;
        driver.check_unsafe()?;
        if start == 0 {
            return Ok(());
        }
        let region = driver.map.at(start).filter(|region| region.origin == Origin::Pinned);
        let region = region.cloned().ok_or(CuError::INVALID_VALUE)?;
        let targets = driver.all_targets();
        let mut driver = self.sim.wait(driver, &targets);
        driver.discard(&region);
        Ok(())
    }

    pub(crate) fn register_host(&self, start: u64, length: u64, flags: u32) -> Outcome {
        let mut driver = self.lock();
        let context = driver.current()?;
        let end = start.checked_add(length);
        if start == 0 || length == 0 || end.is_none() || flags & !HOST_REGISTER_FLAGS != 0 {
            return Err(CuError::INVALID_VALUE);
        }
        if let Some(region) = driver.map.overlapping(start, length) {
            return Err(match region.origin {
                Origin::Registered => CuError::HOST_MEMORY_ALREADY_REGISTERED,
                _ => CuError::INVALID_VALUE,
            });
        }
        let device = driver.usable(context)?.device;
        driver.enter(start, length, Origin::Registered, context, device, flags);
        Ok(())
    }

    /// `cuMemHostUnregister`: lets pending work finish first, because afterwards the program may
    /// unmap the memory.
    pub(crate) fn unregister_host(&self, start: u64) -> Outcome {
        let driver = self.lock();
        driver.current()?;
        let region = driver.map.at(start).filter(|region| region.origin == Origin::Registered);
        let region = region.cloned().ok_or(CuError::HOST_MEMORY_NOT_REGISTERED)?;
        let targets = driver.all_targets();
        let mut driver = self.sim.wait(driver, &targets);
        driver.discard(&region);
        Ok(())
    }

    /// `cuMemHostGetDevicePointer`: host and device address are the same.
    pub(crate) fn host_device_pointer(&self, address: u64, flags: u32) -> Outcome<u64> {
        let driver = self.lock();
        driver.current()?;
        let host = driver.map.containing(address).is_some_and(|region| region.is_host());
        if host && flags == 0 { Ok(address) } else { Err(CuError::INVALID_VALUE) }
    }

    pub(crate) fn host_flags(&self, address: u64) -> Outcome<u32> {
        let driver = self.lock();
        driver.current()?;
        let region = driver.map.containing(address).filter(|region| region.is_host());
        region.map(|region| region.flags).ok_or(CuError::INVALID_VALUE)
    }

    /// `cuMemGetAddressRange`: start and bytes of the allocation that holds the address.
    pub(crate) fn address_range(&self, address: u64) -> Outcome<(u64, u64)> {
        let driver = self.lock();
        driver.current()?;
        let region = driver.map.containing(address).filter(|region| region.is_named());
        region.map(|region| (region.start, region.length)).ok_or(CuError::NOT_FOUND)
    }

    /// Whether a managed or registered range holds all of the given one, as `cuMemPrefetchAsync`
    /// and `cuMemAdvise` demand.
    pub(crate) fn check_managed(&self, start: u64, length: u64) -> Outcome {
        let driver = self.lock();
        driver.current()?;
        let region = driver.map.range(start, length).filter(|_| length > 0);
        let managed = region.is_some_and(|region| region.origin == Origin::Managed);
        if managed { Ok(()) } else { Err(CuError::INVALID_VALUE) }
    }
}
