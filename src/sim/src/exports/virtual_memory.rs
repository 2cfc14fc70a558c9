//! Virtual memory management.

use super::args::{In, Out};
use super::enter::api;
use crate::driver::GRANULARITY;
use crate::errors::{CuError, Outcome};

/// CUmemAllocationProp: type, handle types, location (type and id), security attributes, flags.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Properties {
    kind: u32,
    handles: u32,
    location: u32,
    device: i32,
    security: u64,
    flags: u64,
}

/// CUmemAccessDesc: location (type and id) and flags.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct AccessDesc {
    pub(super) location: u32,
    pub(super) device: i32,
    pub(super) flags: u32,
}

const _: () = assert!(size_of::<Properties>() == 32 && size_of::<AccessDesc>() == 12);

const PINNED: u32 = 1;
const LOCATION_DEVICE: u32 = 1;
/// CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR.
const DESCRIPTOR: u32 = 1;

impl Properties {
    /// Memory of a device; memory of the host is not simulated.
    fn check(&self) -> Outcome {
        if self.kind != PINNED || self.location == 0 {
            return Err(CuError::INVALID_VALUE);
        }
        if self.location != LOCATION_DEVICE || self.handles & !DESCRIPTOR != 0 {
            return Err(CuError::NOT_SUPPORTED);
        }
        Ok(())
    }
}

api! { TABLE;
    fn cuMemGetAllocationGranularity(
        granularity: Out<u64>,
        properties: In<Properties>,
        option: u32,
    ) |call| {
        granularity.check()?;
        let properties = properties.get()?;
        properties.check()?;
        call.device(properties.device)?;
        if option > 1 {
            return Err(CuError::INVALID_VALUE);
        }
        granularity.set(GRANULARITY)
    }
    fn cuMemAddressReserve(
        address: Out<u64>,
        bytes: u64,
        alignment: u64,
        _wanted: u64,
        flags: u64,
    ) |call| {
        address.check()?;
        if flags != 0 {
            return Err(CuError::INVALID_VALUE);
        }
        address.set(call.address_reserve(bytes, alignment)?)
    }
    fn cuMemAddressFree(address: u64, bytes: u64) |call| { call.address_free(address, bytes) }
    fn cuMemCreate(handle: Out<u64>, bytes: u64, properties: In<Properties>, flags: u64) |call| {
        handle.check()?;
        let properties = properties.get()?;
        properties.check()?;
        if flags != 0 {
            return Err(CuError::INVALID_VALUE);
        }
        handle.set(call.physical_create(bytes, properties.device, properties.handles)?)
    }
    fn cuMemRelease(handle: u64) |call| { call.physical_release(handle) }
    fn cuMemRetainAllocationHandle(handle: Out<u64>, address: u64) |call| {
        handle.check()?;
        handle.set(call.physical_retain(address)?)
    }
    fn cuMemGetAllocationPropertiesFromHandle(properties: Out<Properties>, handle: u64) |call| {
        properties.check()?;
        let (device, handles) = call.physical_properties(handle)?;
        let (kind, location, device) = (PINNED, LOCATION_DEVICE, device as i32);
        properties.set(Properties { kind, handles, location, device, security: 0, flags: 0 })
    }
    fn cuMemMap(address: u64, bytes: u64, offset: u64, handle: u64, flags: u64) |call| {
        if flags != 0 {
            return Err(CuError::INVALID_VALUE);
        }
        call.map_memory(address, bytes, offset, handle)
    }
    fn cuMemUnmap(address: u64, bytes: u64) |call| { call.unmap_memory(address, bytes) }
    fn cuMemSetAccess(address: u64, bytes: u64, list: In<AccessDesc>, count: u64) |call| {
        if count == 0 {
            return Err(CuError::INVALID_VALUE);
        }
        for index in 0..count as usize {
            let wanted = list.at(index)?;
            if wanted.location != LOCATION_DEVICE {
                return Err(CuError::NOT_SUPPORTED);
            }
            call.set_access(address, bytes, wanted.device, wanted.flags)?;
        }
        Ok(())
    }
    fn cuMemGetAccess(flags: Out<u64>, location: In<[u32; 2]>, address: u64) |call| {
        flags.check()?;
        let [kind, device] = location.get()?;
        if kind != LOCATION_DEVICE {
            return Err(CuError::INVALID_VALUE);
        }
        flags.set(call.access(address, device as i32)?)
    }
    fn cuMemExportToShareableHandle(
        shareable: Out<i32>,
        handle: u64,
        kind: u32,
        flags: u64,
    ) |call| {
        shareable.check()?;
        if kind != DESCRIPTOR || flags != 0 {
            return Err(CuError::INVALID_VALUE);
        }
        shareable.set(call.physical_export(handle, kind)?)
    }
    fn cuMemImportFromShareableHandle(handle: Out<u64>, shareable: u64, kind: u32) |call| {
        handle.check()?;
        if kind != DESCRIPTOR {
            return Err(CuError::INVALID_VALUE);
        }
        // The descriptor is passed as a pointer.
        handle.set(call.physical_import(shareable as i32, DESCRIPTOR)?)
    }
}
