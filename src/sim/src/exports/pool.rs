//! Stream-ordered allocation and memory pools.

use super::args::{In, Out, OutList};
use super::enter::{api, twins};
use super::virtual_memory::AccessDesc;
use crate::driver::PoolAttribute;
use crate::errors::{CuError, Outcome};

/// CUmemPoolProps as far as it is read: allocation type, handle types, location (type and id),
/// security attributes, most bytes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct PoolProps {
    allocation: u32,
    handles: u32,
    location: u32,
    device: i32,
    security: u64,
    limit: u64,
}

const PINNED: u32 = 1;
const LOCATION_DEVICE: u32 = 1;
const READ_WRITE: u32 = 3;

fn device_location(kind: u32, device: i32) -> Outcome<i32> {
    if kind == LOCATION_DEVICE { Ok(device) } else { Err(CuError::INVALID_VALUE) }
}

api! { TABLE;
    fn cuMemPoolCreate(pool: Out<u64>, properties: In<PoolProps>) |call| {
        pool.check()?;
        let properties = properties.get()?;
        let device = device_location(properties.location, properties.device)?;
        if properties.allocation != PINNED {
            return Err(CuError::INVALID_VALUE);
        }
        if properties.handles != 0 {
            return Err(CuError::NOT_SUPPORTED);
        }
        pool.set(call.pool_create(device, properties.limit)?)
    }
    fn cuMemPoolDestroy(pool: u64) |call| { call.pool_destroy(pool) }
    fn cuMemPoolTrimTo(pool: u64, keep: u64) |call| { call.pool_trim(pool, keep) }
    fn cuMemPoolGetAttribute(pool: u64, attribute: u32, value: OutList<u8>) |call| {
        let attribute = PoolAttribute::from_number(attribute)?;
        let number = call.pool_get(pool, attribute)?;
        let width = if attribute.is_int() { 4 } else { 8 };
        value.fill(&number.to_ne_bytes(), width)
    }
    fn cuMemPoolSetAttribute(pool: u64, attribute: u32, value: In<u8>) |call| {
        let attribute = PoolAttribute::from_number(attribute)?;
        let mut bytes = [0; 8];
        let width = if attribute.is_int() { 4 } else { 8 };
        for (index, byte) in bytes.iter_mut().take(width).enumerate() {
            *byte = value.at(index)?;
        }
        call.pool_set(pool, attribute, u64::from_ne_bytes(bytes))
    }
    fn cuMemPoolSetAccess(pool: u64, list: In<AccessDesc>, count: u64) |call| {
        let own = call.pool_device(pool)?;
        for index in 0..count as usize {
            let wanted = list.at(index)?;
            let device = call.device(device_location(wanted.location, wanted.device)?)?;
            match wanted.flags {
                READ_WRITE if device == own => {}
                0 | 1 | READ_WRITE if device != own => return Err(CuError::NOT_SUPPORTED),
                _ => return Err(CuError::INVALID_VALUE),
            }
        }
        Ok(())
    }
    fn cuMemPoolGetAccess(flags: Out<u32>, pool: u64, location: In<[i32; 2]>) |call| {
        flags.check()?;
        let [kind, device] = location.get()?;
        let device = call.device(device_location(kind as u32, device)?)?;
        flags.set(if device == call.pool_device(pool)? { READ_WRITE } else { 0 })
    }
}

twins! { TWINS;
    fn cuMemAllocAsync / cuMemAllocAsync_ptsz(
        address: Out<u64>,
        bytes: u64,
        stream: u64,
    ) |call, default| {
        address.check()?;
        address.set(call.allocate_async(bytes, None, stream, default)?)
    }
    fn cuMemAllocFromPoolAsync / cuMemAllocFromPoolAsync_ptsz(
        address: Out<u64>,
        bytes: u64,
        pool: u64,
        stream: u64,
    ) |call, default| {
        address.check()?;
        address.set(call.allocate_async(bytes, Some(pool), stream, default)?)
    }
    fn cuMemFreeAsync / cuMemFreeAsync_ptsz(address: u64, stream: u64) |call, default| {
        call.free_async(address, stream, default)
    }
}
