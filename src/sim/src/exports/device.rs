//! Devices.

use super::args::{Out, OutList, Text, put_text};
use super::enter::api;
use crate::driver::{TOTAL_MEMORY, device_attribute};
use crate::errors::CuError;

const NAME: &str = "streamsan simulated GPU";

fn uuid(ordinal: u32) -> [u8; 16] {
    let mut bytes = *b"streamsan sim  \0";
    bytes[15] = ordinal as u8;
    bytes
}

fn bus_id(ordinal: u32) -> String {
    format!("0000:{:02x}:00.0", ordinal + 1)
}

api! { TABLE;
    fn cuDeviceGet(device: Out<i32>, ordinal: i32) |call| {
        device.check()?;
        device.set(call.device(ordinal)? as i32)
    }
    fn cuDeviceGetCount(count: Out<i32>) |call| { count.set(call.device_count()) }
    fn cuDeviceGetName(name: OutList<u8>, length: i32, device: i32) |call| {
        call.device(device)?;
        put_text(name, length, NAME)
    }
    fn cuDeviceGetUuid(id: Out<[u8; 16]>, device: i32) |call| {
        id.check()?;
        id.set(uuid(call.device(device)?))
    }
    fn cuDeviceGetUuid_v2(id: Out<[u8; 16]>, device: i32) |call| {
        id.check()?;
        id.set(uuid(call.device(device)?))
    }
    fn cuDeviceTotalMem_v2(bytes: Out<u64>, device: i32) |call| {
        bytes.check()?;
        call.device(device)?;
        bytes.set(TOTAL_MEMORY)
    }
    fn cuDeviceGetAttribute(value: Out<i32>, attribute: u32, device: i32) |call| {
        value.check()?;
        let ordinal = call.device(device)?;
        value.set(device_attribute(attribute, ordinal).ok_or(CuError::INVALID_VALUE)?)
    }
    fn cuDeviceComputeCapability(major: Out<i32>, minor: Out<i32>, device: i32) |call| {
        call.device(device)?;
        major.set(9)?;
        minor.set(0)
    }
    fn cuDeviceGetProperties(properties: Out<[i32; 14]>, device: i32) |call| {
        properties.check()?;
        let ordinal = call.device(device)?;
        // In the order of CUdevprop: threads of a block, its three dimensions, those of a grid,
        // shared memory, constant memory, warp, pitch, registers, clock, texture alignment.
        let order = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14];
        properties.set(order.map(|attribute| device_attribute(attribute, ordinal).unwrap_or(0)))
    }
    fn cuDeviceGetPCIBusId(text: OutList<u8>, length: i32, device: i32) |call| {
        put_text(text, length, &bus_id(call.device(device)?))
    }
    fn cuDeviceGetByPCIBusId(device: Out<i32>, text: Text) |call| {
        device.check()?;
        let wanted = text.get()?;
        let found = (0..call.device_count()).find(|ordinal| bus_id(*ordinal as u32) == wanted);
        device.set(found.ok_or(CuError::INVALID_DEVICE)?)
    }
    fn cuDeviceCanAccessPeer(can: Out<i32>, device: i32, peer: i32) |call| {
        can.check()?;
        can.set(call.can_access_peer(device, peer)?.into())
    }
    fn cuDeviceGetP2PAttribute(value: Out<i32>, attribute: u32, from: i32, to: i32) |call| {
        value.check()?;
        let access = call.can_access_peer(from, to)?;
        match attribute {
            1 => value.set(0),
            2 => value.set(access.into()),
            3 | 4 => value.set(0),
            _ => Err(CuError::INVALID_VALUE),
        }
    }
    fn cuDeviceGetExecAffinitySupport(supported: Out<i32>, _kind: u32, device: i32) |call| {
        supported.check()?;
        call.device(device)?;
        supported.set(0)
    }
    fn cuDeviceGetDefaultMemPool(pool: Out<u64>, device: i32) |call| {
        pool.check()?;
        pool.set(call.device_pool(device, true)?)
    }
    fn cuDeviceGetMemPool(pool: Out<u64>, device: i32) |call| {
        pool.check()?;
        pool.set(call.device_pool(device, false)?)
    }
    fn cuDeviceSetMemPool(device: i32, pool: u64) |call| { call.set_device_pool(device, pool) }
    fn cuMemGetInfo_v2(free: Out<u64>, total: Out<u64>) |call| {
        free.check()?;
        total.check()?;
        let (left, all) = call.memory_info()?;
        free.set(left)?;
        total.set(all)
    }
}
