//! Virtual memory management: reserved addresses, physical memory, and mappings of one in the
//! other. Physical memory is a file in memory, so that several mappings of it share their bytes.
//!
//! A range can be used once its mapping was given access. Adjacent mappings of one reservation
//! that have access are one range, as they are to a kernel.

use std::os::fd::OwnedFd;

use super::sim::Call;
use super::state::Driver;
use crate::errors::{CuError, Outcome};
use crate::memory::Origin;
use crate::os;

/// Granularity of physical memory and of its mappings, in bytes.
pub(crate) const GRANULARITY: u64 = 2 << 20;
const ACCESS_READ: u32 = 1;
const ACCESS_READ_WRITE: u32 = 3;

/// Physical memory.
#[derive(Debug)]
pub(crate) struct Physical {
    file: OwnedFd,
    length: u64,
    device: u32,
    /// CUmemAllocationHandleType that it may be exported as.
    exports: u32,
    /// How often the program holds the handle.
    held: u32,
    /// Mappings of it.
    mapped: u32,
}

/// A reserved range of addresses.
#[derive(Debug)]
pub(crate) struct Reservation {
    length: u64,
    /// The part of the window that was taken for it: start and bytes.
    taken: (u64, u64),
    context: u64,
}

/// A mapping of physical memory.
#[derive(Debug)]
pub(crate) struct Mapping {
    length: u64,
    physical: u64,
    /// CU_MEM_ACCESS_FLAGS.
    access: u32,
}

fn whole(length: u64) -> bool {
    length > 0 && length.is_multiple_of(GRANULARITY)
}

impl Driver {
    /// The start of the reservation that holds the whole range.
    fn reservation(&self, start: u64, length: u64) -> Outcome<u64> {
        let end = start.checked_add(length).ok_or(CuError::INVALID_VALUE)?;
        let found = self.reservations.range(..=start).next_back();
        let found = found.filter(|(at, entry)| end <= *at + entry.length);
        found.map(|(at, _)| *at).ok_or(CuError::INVALID_VALUE)
    }

    fn mappings_in(&self, start: u64, length: u64) -> Vec<u64> {
        let end = start + length;
        let overlaps = |(at, entry): &(&u64, &Mapping)| **at < end && **at + entry.length > start;
        self.mappings.iter().filter(overlaps).map(|(at, _)| *at).collect()
    }

    /// Every mapping that overlaps the range, none of which may reach beyond it.
    fn whole_mappings_in(&self, start: u64, length: u64) -> Outcome<Vec<u64>> {
        let found = self.mappings_in(start, length);
        let inside = |at: &u64| *at >= start && *at + self.mappings[at].length <= start + length;
        if found.iter().all(inside) { Ok(found) } else { Err(CuError::INVALID_VALUE) }
    }

    /// Enters what of a reservation can be used in the map anew.
    fn enter_mappings(&mut self, reservation: u64) {
        let Some(entry) = self.reservations.get(&reservation) else { return };
        let (end, context) = (reservation + entry.length, entry.context);
        let stale = |region: &crate::memory::Region| {
            region.origin == Origin::Mapped && (reservation..end).contains(&region.start)
        };
        self.map_mut().take_where(stale);
        let mut runs: Vec<(u64, u64, u32)> = Vec::new();
        for (start, mapping) in self.mappings.range(reservation..end) {
            if mapping.access == 0 {
                continue;
            }
            let device = self.physical.get(mapping.physical).map_or(0, |memory| memory.device);
            match runs.last_mut() {
                Some(run) if run.0 + run.1 == *start && run.2 == device => run.1 += mapping.length,
                _ => runs.push((*start, mapping.length, device)),
            }
        }
        for (start, length, device) in runs {
            self.enter(start, length, Origin::Mapped, context, device, 0);
        }
    }

    /// Physical memory goes with its last mapping and the last hold on its handle.
    fn drop_physical(&mut self, handle: u64) {
        if self.physical.get(handle).is_some_and(|memory| memory.held == 0 && memory.mapped == 0)
            && let Some(memory) = self.physical.remove(handle)
        {
            let used = &mut self.devices[memory.device as usize].used;
            *used = used.saturating_sub(memory.length);
        }
    }

    fn held_physical(&mut self, handle: u64) -> Outcome<&mut Physical> {
        let memory = self.physical.get_mut(handle).filter(|memory| memory.held > 0);
        memory.ok_or(CuError::INVALID_VALUE)
    }
}

impl Call {
    pub(crate) fn address_reserve(&self, length: u64, alignment: u64) -> Outcome<u64> {
        let mut driver = self.lock();
        let context = driver.current()?;
        let align = alignment.max(GRANULARITY);
        if !whole(length) || !align.is_power_of_two() {
            return Err(CuError::INVALID_VALUE);
        }
        let bytes = length.checked_add(align).ok_or(CuError::OUT_OF_MEMORY)?;
        let taken = driver.window.take(bytes).map_err(|_| CuError::OUT_OF_MEMORY)?;
        let start = taken.next_multiple_of(align);
        driver.reservations.insert(start, Reservation { length, taken: (taken, bytes), context });
        Ok(start)
    }

    pub(crate) fn address_free(&self, start: u64, length: u64) -> Outcome {
        let mut driver = self.lock();
        let entry = driver.reservations.get(&start).filter(|entry| entry.length == length);
        let taken = entry.ok_or(CuError::INVALID_VALUE)?.taken;
        if !driver.mappings_in(start, length).is_empty() {
            return Err(CuError::INVALID_VALUE);
        }
        driver.reservations.remove(&start);
        driver.window.give_back(taken.0, taken.1);
        Ok(())
    }

    pub(crate) fn physical_create(&self, length: u64, device: i32, exports: u32) -> Outcome<u64> {
        let mut driver = self.lock();
        let device = driver.device(device)?;
        if !whole(length) {
            return Err(CuError::INVALID_VALUE);
        }
        let used = driver.devices[device as usize].used;
        if used + length > super::device::TOTAL_MEMORY {
            return Err(CuError::OUT_OF_MEMORY);
        }
        let file = os::memory_file(length).ok_or(CuError::OUT_OF_MEMORY)?;
        driver.devices[device as usize].used += length;
        let (held, mapped) = (1, 0);
        Ok(driver.physical.insert(Physical { file, length, device, exports, held, mapped }))
    }

    pub(crate) fn physical_release(&self, handle: u64) -> Outcome {
        let mut driver = self.lock();
        driver.held_physical(handle)?.held -= 1;
        driver.drop_physical(handle);
        Ok(())
    }

    /// `cuMemRetainAllocationHandle`: the handle of what is mapped at an address, held once more.
    pub(crate) fn physical_retain(&self, address: u64) -> Outcome<u64> {
        let mut driver = self.lock();
        let found = driver.mappings.range(..=address).next_back();
        let found = found.filter(|(start, mapping)| address < *start + mapping.length);
        let handle = found.ok_or(CuError::INVALID_VALUE)?.1.physical;
        if let Some(memory) = driver.physical.get_mut(handle) {
            memory.held += 1;
        }
        Ok(handle)
    }

    /// The device of physical memory, and what it may be exported as.
    pub(crate) fn physical_properties(&self, handle: u64) -> Outcome<(u32, u32)> {
        let mut driver = self.lock();
        let memory = driver.held_physical(handle)?;
        Ok((memory.device, memory.exports))
    }

    /// A descriptor of the memory's file, for this or another process to import.
    pub(crate) fn physical_export(&self, handle: u64, kind: u32) -> Outcome<i32> {
        let mut driver = self.lock();
        let memory = driver.held_physical(handle)?;
        if memory.exports & kind == 0 {
            return Err(CuError::INVALID_VALUE);
        }
        os::give_descriptor(&memory.file).ok_or(CuError::OPERATING_SYSTEM)
    }

    pub(crate) fn physical_import(&self, descriptor: i32, exports: u32) -> Outcome<u64> {
        let mut driver = self.lock();
        let context = driver.current()?;
        let device = driver.usable(context)?.device;
        let (file, length) = os::take_descriptor(descriptor).ok_or(CuError::INVALID_VALUE)?;
        driver.devices[device as usize].used += length;
        let (held, mapped) = (1, 0);
        Ok(driver.physical.insert(Physical { file, length, device, exports, held, mapped }))
    }

    /// `cuMemMap`. An offset into the memory must be 0 as yet, says the manual, and driver 580 maps
    /// only all of it.
    pub(crate) fn map_memory(
        &self,
        start: u64,
        length: u64,
        offset: u64,
        physical: u64,
    ) -> Outcome {
        let mut driver = self.lock();
        driver.reservation(start, length)?;
        if !whole(length) || !start.is_multiple_of(GRANULARITY) {
            return Err(CuError::INVALID_VALUE);
        }
        if offset != 0 {
            return Err(CuError::NOT_SUPPORTED);
        }
        let memory = driver.held_physical(physical)?;
        if length > memory.length {
            return Err(CuError::INVALID_VALUE);
        }
        if length < memory.length {
            return Err(CuError::NOT_SUPPORTED);
        }
        if !driver.mappings_in(start, length).is_empty() {
            return Err(CuError::INVALID_VALUE);
        }
        let Driver { window, physical: table, .. } = &mut *driver;
        let memory = table.get_mut(physical).ok_or(CuError::INVALID_VALUE)?;
        if !window.map_file(start, length, &memory.file) {
            return Err(CuError::OPERATING_SYSTEM);
        }
        memory.mapped += 1;
        driver.mappings.insert(start, Mapping { length, physical, access: 0 });
        Ok(())
    }

    /// `cuMemUnmap`: lets all work finish first, as the driver does in most cases; the manual does
    /// not promise it.
    pub(crate) fn unmap_memory(&self, start: u64, length: u64) -> Outcome {
        let driver = self.lock();
        let reservation = driver.reservation(start, length)?;
        driver.whole_mappings_in(start, length)?;
        let targets = driver.all_targets();
        let mut driver = self.sim.wait(driver, &targets);
        for at in driver.whole_mappings_in(start, length)? {
            let Some(mapping) = driver.mappings.remove(&at) else { continue };
            driver.window.unmap_file(at, mapping.length);
            if let Some(memory) = driver.physical.get_mut(mapping.physical) {
                memory.mapped -= 1;
            }
            driver.drop_physical(mapping.physical);
        }
        driver.enter_mappings(reservation);
        Ok(())
    }

    /// `cuMemSetAccess` for one device. Other devices reach the memory by peer access.
    pub(crate) fn set_access(&self, start: u64, length: u64, device: i32, flags: u32) -> Outcome {
        let mut driver = self.lock();
        driver.device(device)?;
        let reservation = driver.reservation(start, length)?;
        let mappings = driver.whole_mappings_in(start, length)?;
        let covered: u64 = mappings.iter().map(|at| driver.mappings[at].length).sum();
        if covered != length || !matches!(flags, 0 | ACCESS_READ | ACCESS_READ_WRITE) {
            return Err(CuError::INVALID_VALUE);
        }
        for at in mappings {
            let owner = driver.physical.get(driver.mappings[&at].physical);
            let own = owner.is_some_and(|memory| memory.device == device as u32);
            match driver.mappings.get_mut(&at) {
                Some(mapping) if own => mapping.access = flags,
                _ => return Err(CuError::NOT_SUPPORTED),
            }
        }
        driver.enter_mappings(reservation);
        Ok(())
    }

    pub(crate) fn access(&self, address: u64, device: i32) -> Outcome<u64> {
        let driver = self.lock();
        let device = driver.device(device)?;
        let found = driver.mappings.range(..=address).next_back();
        let found = found.filter(|(start, mapping)| address < *start + mapping.length);
        let mapping = found.ok_or(CuError::INVALID_VALUE)?.1;
        let own = driver.physical.get(mapping.physical).is_some_and(|of| of.device == device);
        Ok(if own { mapping.access.into() } else { 0 })
    }
}
