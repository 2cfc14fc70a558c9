//! Allocation that is not stream-ordered, pointer attributes, and hints on managed memory.

use super::args::{In, Out, OutList};
use super::enter::{api, twins};
use crate::driver::{Call, PointerAnswer, PointerAttribute};
use crate::errors::{CuError, Outcome};

fn answer(data: OutList<u8>, value: PointerAnswer) -> Outcome {
    match value {
        PointerAnswer::Int(int) => data.fill(&int.to_ne_bytes(), 4),
        PointerAnswer::Long(long) => data.fill(&long.to_ne_bytes(), 8),
    }
}

const SYNC_MEMOPS: u32 = 6;

/// Ranges of managed memory. What is discarded keeps its contents here.
fn check_ranges(call: &Call, starts: In<u64>, sizes: In<u64>, count: u64, flags: u64) -> Outcome {
    if count == 0 || flags != 0 {
        return Err(CuError::INVALID_VALUE);
    }
    for index in 0..count as usize {
        call.check_managed(starts.at(index)?, sizes.at(index)?)?;
    }
    Ok(())
}

/// Each location counts from the range of its index on, the first from range 0.
fn check_locations(indices: In<u64>, count: u64) -> Outcome {
    if count == 0 || indices.get()? != 0 {
        return Err(CuError::INVALID_VALUE);
    }
    Ok(())
}

api! { TABLE;
    fn cuMemAlloc_v2(address: Out<u64>, bytes: u64) |call| {
        address.check()?;
        address.set(call.allocate_device(bytes)?)
    }
    fn cuMemAllocPitch_v2(
        address: Out<u64>,
        pitch: Out<u64>,
        width: u64,
        height: u64,
        element: u32,
    ) |call| {
        address.check()?;
        pitch.check()?;
        let (start, row) = call.allocate_pitched(width, height, element)?;
        address.set(start)?;
        pitch.set(row)
    }
    fn cuMemAllocManaged(address: Out<u64>, bytes: u64, flags: u32) |call| {
        address.check()?;
        address.set(call.allocate_managed(bytes, flags)?)
    }
    fn cuMemFree_v2(address: u64) |call| { call.free_device(address) }
    fn cuMemAllocHost_v2(address: Out<u64>, bytes: u64) |call| {
        address.check()?;
        address.set(call.allocate_pinned(bytes, 0)?)
    }
    fn cuMemHostAlloc(address: Out<u64>, bytes: u64, flags: u32) |call| {
        address.check()?;
        address.set(call.allocate_pinned(bytes, flags)?)
    }
    fn cuMemFreeHost(address: u64) |call| { call.free_pinned(address) }
    fn cuMemHostRegister_v2(address: u64, bytes: u64, flags: u32) |call| {
        call.register_host(address, bytes, flags)
    }
    fn cuMemHostUnregister(address: u64) |call| { call.unregister_host(address) }
    fn cuMemHostGetDevicePointer_v2(device: Out<u64>, host: u64, flags: u32) |call| {
        device.check()?;
        device.set(call.host_device_pointer(host, flags)?)
    }
    fn cuMemHostGetFlags(flags: Out<u32>, host: u64) |call| {
        flags.check()?;
        flags.set(call.host_flags(host)?)
    }
    fn cuMemGetAddressRange_v2(start: Out<u64>, bytes: Out<u64>, address: u64) |call| {
        let (from, length) = call.address_range(address)?;
        start.set_if_wanted(from);
        bytes.set_if_wanted(length);
        Ok(())
    }
    fn cuPointerGetAttribute(data: OutList<u8>, attribute: u32, address: u64) |call| {
        let attribute = PointerAttribute::from_number(attribute)?;
        let value = call.pointer_attribute(address, attribute)?;
        answer(data, value.ok_or(CuError::INVALID_VALUE)?)
    }
    fn cuPointerGetAttributes(
        count: u32,
        attributes: In<u32>,
        data: In<OutList<u8>>,
        address: u64,
    ) |call| {
        for index in 0..count as usize {
            let attribute = PointerAttribute::from_number(attributes.at(index)?)?;
            // This call succeeds with an address that the driver does not know.
            let known = call.pointer_attribute(address, attribute).unwrap_or(None);
            if let Some(value) = known.or_else(|| attribute.unknown(address)) {
                answer(data.at(index)?, value)?;
            }
        }
        Ok(())
    }
    fn cuPointerSetAttribute(value: In<u32>, attribute: u32, address: u64) |call| {
        if attribute != SYNC_MEMOPS {
            return Err(CuError::INVALID_VALUE);
        }
        call.set_sync_memops(address, value.get()? != 0)
    }
    fn cuMemAdvise(address: u64, bytes: u64, _advice: u32, _device: i32) |call| {
        call.check_managed(address, bytes)
    }
    fn cuMemAdvise_v2(address: u64, bytes: u64, _advice: u32, _location: u64) |call| {
        call.check_managed(address, bytes)
    }
}

twins! { TWINS;
    fn cuMemPrefetchAsync / cuMemPrefetchAsync_ptsz(
        address: u64,
        bytes: u64,
        _device: i32,
        stream: u64,
    ) |call, default| {
        call.check_managed(address, bytes)?;
        call.marker(stream, default)
    }
    fn cuMemPrefetchAsync_v2 / cuMemPrefetchAsync_v2_ptsz(
        address: u64,
        bytes: u64,
        _location: u64,
        flags: u32,
        stream: u64,
    ) |call, default| {
        if flags != 0 {
            return Err(CuError::INVALID_VALUE);
        }
        call.check_managed(address, bytes)?;
        call.marker(stream, default)
    }
    fn cuMemPrefetchBatchAsync / cuMemPrefetchBatchAsync_ptsz(
        starts: In<u64>,
        sizes: In<u64>,
        count: u64,
        locations: In<u64>,
        indices: In<u64>,
        location_count: u64,
        flags: u64,
        stream: u64,
    ) |call, default| {
        locations.get()?;
        check_ranges(call, starts, sizes, count, flags)?;
        check_locations(indices, location_count)?;
        call.marker(stream, default)
    }
    fn cuMemDiscardBatchAsync / cuMemDiscardBatchAsync_ptsz(
        starts: In<u64>,
        sizes: In<u64>,
        count: u64,
        flags: u64,
        stream: u64,
    ) |call, default| {
        check_ranges(call, starts, sizes, count, flags)?;
        call.marker(stream, default)
    }
    fn cuMemDiscardAndPrefetchBatchAsync / cuMemDiscardAndPrefetchBatchAsync_ptsz(
        starts: In<u64>,
        sizes: In<u64>,
        count: u64,
        locations: In<u64>,
        indices: In<u64>,
        location_count: u64,
        flags: u64,
        stream: u64,
    ) |call, default| {
        locations.get()?;
        check_ranges(call, starts, sizes, count, flags)?;
        check_locations(indices, location_count)?;
        call.marker(stream, default)
    }
}
