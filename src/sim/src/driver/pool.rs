//! Stream-ordered allocation.
//!
//! An allocation has its address when the call returns and is meant to be used from its place in
//! the stream on. A freed block is given out again to an allocation of its size in the stream that
//! freed it, or anywhere once the free has run, as the driver does when reuse is not restricted: a
//! use that is not ordered against the free then meets somebody else's data.

use std::collections::BTreeMap;

use super::sim::Call;
use super::state::Driver;
use super::stream::DefaultStream;
use super::work::Work;
use crate::errors::{CuError, Outcome};
use crate::memory::{Origin, Region};
use crate::schedule::OpId;

/// A memory pool.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(super) device: u32,
    default: bool,
    /// Bytes at most, 0 for no limit.
    limit: u64,
    /// Freed blocks by rounded size, last freed last.
    free: BTreeMap<u64, Vec<FreeBlock>>,
    reuse: [u64; 3],
    release_threshold: u64,
    used: u64,
    used_high: u64,
    /// Bytes of all blocks, in use or free.
    reserved: u64,
    reserved_high: u64,
    destroyed: bool,
}

#[derive(Clone, Copy, Debug)]
struct FreeBlock {
    start: u64,
    length: u64,
    /// The free in its stream; `None` for a free that counted at once.
    freed: Option<(OpId, u64)>,
}

/// CUmemPool_attribute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PoolAttribute {
    /// Follow event dependencies, allow opportunistic, allow internal dependencies.
    Reuse(usize),
    ReleaseThreshold,
    ReservedCurrent,
    ReservedHigh,
    UsedCurrent,
    UsedHigh,
}

impl PoolAttribute {
    pub(crate) fn from_number(number: u32) -> Outcome<PoolAttribute> {
        Ok(match number {
            1..=3 => PoolAttribute::Reuse(number as usize - 1),
            4 => PoolAttribute::ReleaseThreshold,
            5 => PoolAttribute::ReservedCurrent,
            6 => PoolAttribute::ReservedHigh,
            7 => PoolAttribute::UsedCurrent,
            8 => PoolAttribute::UsedHigh,
            _ => return Err(CuError::INVALID_VALUE),
        })
    }

    /// Whether the value is an `int`; the others are 64 bits.
    pub(crate) fn is_int(self) -> bool {
        matches!(self, PoolAttribute::Reuse(_))
    }
}

/// Granularity of a pool's blocks, in bytes.
const GRANULE: u64 = 512;
/// Granularity in which a pool says that it takes memory from the system, in bytes.
const RESERVE: u64 = 32 << 20;

impl Pool {
    pub(super) fn new(device: u32, default: bool, limit: u64) -> Pool {
        Pool {
            device,
            default,
            limit,
            free: BTreeMap::new(),
            reuse: [1; 3],
            release_threshold: 0,
            used: 0,
            used_high: 0,
            reserved: 0,
            reserved_high: 0,
            destroyed: false,
        }
    }

    /// Takes the block of this size that was freed last among those that may be reused.
    fn reuse(&mut self, size: u64, usable: impl Fn(&FreeBlock) -> bool) -> Option<FreeBlock> {
        let blocks = self.free.get_mut(&size)?;
        let at = blocks.iter().rposition(usable)?;
        Some(blocks.remove(at))
    }
}

impl Driver {
    fn take_from_pool(&mut self, handle: u64, length: u64, stream: u64) -> Outcome<u64> {
        let size = length.checked_next_multiple_of(GRANULE).ok_or(CuError::OUT_OF_MEMORY)?;
        let context = self.streams.get(&stream).ok_or(CuError::INVALID_HANDLE)?.context;
        let queue = &self.queue;
        let pool = self.pools.get_mut(handle).filter(|pool| !pool.destroyed);
        let pool = pool.ok_or(CuError::INVALID_VALUE)?;
        let device = pool.device;
        let [_, opportunistic, _] = pool.reuse;
        let block = pool.reuse(size, |block| match block.freed {
            None => true,
            Some((op, freed_in)) => freed_in == stream || (opportunistic != 0 && queue.is_done(op)),
        });
        let start = match block {
            Some(block) => {
                let used = &mut self.devices[device as usize].used;
                *used = used.saturating_sub(block.length) + length;
                self.enter(block.start, length, Origin::Pool(handle), context, device, 0);
                block.start
            }
            None => {
                if pool.limit != 0 && pool.reserved + size > pool.limit {
                    return Err(CuError::OUT_OF_MEMORY);
                }
                let start = self.take(length, Origin::Pool(handle), context, device, 0)?;
                if let Some(pool) = self.pools.get_mut(handle) {
                    pool.reserved += size;
                    pool.reserved_high = pool.reserved_high.max(pool.reserved);
                }
                start
            }
        };
        if let Some(pool) = self.pools.get_mut(handle) {
            pool.used += length;
            pool.used_high = pool.used_high.max(pool.used);
        }
        Ok(start)
    }

    /// Puts a block on its pool's free list.
    pub(super) fn free_to_pool(&mut self, region: &Region, freed: Option<(OpId, u64)>) {
        let Origin::Pool(handle) = region.origin else { return };
        if let Some(entry) = self.map_mut().at_mut(region.start) {
            entry.freed = true;
        }
        let size = region.length.next_multiple_of(GRANULE);
        let Some(pool) = self.pools.get_mut(handle) else { return };
        pool.used = pool.used.saturating_sub(region.length);
        let block = FreeBlock { start: region.start, length: region.length, freed };
        pool.free.entry(size).or_default().push(block);
        if pool.destroyed && pool.used == 0 {
            self.trim(handle, 0);
            self.pools.remove(handle);
        }
    }

    /// Gives freed blocks whose free has run back to the system until `keep` bytes are left.
    fn trim(&mut self, handle: u64, keep: u64) {
        let queue = &self.queue;
        let Some(pool) = self.pools.get_mut(handle) else { return };
        let mut doomed = Vec::new();
        for (size, blocks) in &mut pool.free {
            blocks.retain(|block| {
                let ran = block.freed.is_none_or(|(op, _)| queue.is_done(op));
                let goes = ran && pool.reserved > keep;
                if goes {
                    pool.reserved = pool.reserved.saturating_sub(*size);
                    doomed.push(block.start);
                }
                !goes
            });
        }
        for start in doomed {
            if let Some(region) = self.map.at(start).cloned() {
                self.discard(&region);
            }
        }
    }
}

impl Call {
    /// `cuMemAllocAsync` and `cuMemAllocFromPoolAsync`; without a pool, the device's own.
    pub(crate) fn allocate_async(
        &self,
        length: u64,
        pool: Option<u64>,
        stream: u64,
        default: DefaultStream,
    ) -> Outcome<u64> {
        let mut driver = self.lock();
        let id = driver.resolve(stream, default)?;
        if length == 0 {
            return Ok(0);
        }
        let context = driver.streams.get(&id).ok_or(CuError::INVALID_HANDLE)?.context;
        let device = driver.usable(context)?.device;
        if driver.is_capturing(id)? {
            return driver.capture_alloc(id, device as i32, length);
        }
        let pool = pool.unwrap_or(driver.devices[device as usize].pool);
        let start = driver.take_from_pool(pool, length, id)?;
        driver.submit(id, Work::Marker, &[]);
        drop(self.sim.submitted(driver));
        Ok(start)
    }

    /// `cuMemFreeAsync`: of a pool's block, or of memory of `cuMemAlloc`.
    pub(crate) fn free_async(&self, start: u64, stream: u64, default: DefaultStream) -> Outcome {
        let mut driver = self.lock();
        let id = driver.resolve(stream, default)?;
        if start == 0 {
            return Ok(());
        }
        let region = driver.map.at(start).filter(|region| !region.freed).cloned();
        let region = region.ok_or(CuError::INVALID_VALUE)?;
        if driver.is_capturing(id)? {
            return driver.capture_free(id, start);
        }
        match region.origin {
            Origin::Pool(_) => {
                let op = driver.submit(id, Work::Marker, &[]);
                driver.free_to_pool(&region, Some((op, id)));
            }
            Origin::Device => {
                if let Some(entry) = driver.map_mut().at_mut(start) {
                    entry.freed = true;
                }
                driver.submit(id, Work::Release(start), &[]);
            }
            Origin::Graph => {
                driver.free_graph_memory(start)?;
                driver.submit(id, Work::Marker, &[]);
            }
            Origin::Array
            | Origin::Global
            | Origin::Managed
            | Origin::Mapped
            | Origin::Pinned
            | Origin::Registered => {
                return Err(CuError::INVALID_VALUE);
            }
        }
        drop(self.sim.submitted(driver));
        Ok(())
    }

    pub(crate) fn pool_create(&self, device: i32, limit: u64) -> Outcome<u64> {
        let mut driver = self.lock();
        let device = driver.device(device)?;
        Ok(driver.pools.insert(Pool::new(device, false, limit)))
    }

    /// `cuMemPoolDestroy`: blocks still in use stay, and the pool goes with the last of them.
    pub(crate) fn pool_destroy(&self, handle: u64) -> Outcome {
        let mut driver = self.lock();
        let pool = driver.pools.get_mut(handle).filter(|pool| !pool.default && !pool.destroyed);
        let pool = pool.ok_or(CuError::INVALID_VALUE)?;
        pool.destroyed = true;
        let unused = pool.used == 0;
        for device in &mut driver.devices {
            if device.pool == handle {
                device.pool = device.default_pool;
            }
        }
        driver.trim(handle, 0);
        if unused {
            driver.pools.remove(handle);
        }
        Ok(())
    }

    pub(crate) fn pool_trim(&self, handle: u64, keep: u64) -> Outcome {
        let mut driver = self.lock();
        driver.pools.get(handle).ok_or(CuError::INVALID_VALUE)?;
        driver.trim(handle, keep);
        Ok(())
    }

    pub(crate) fn pool_get(&self, handle: u64, attribute: PoolAttribute) -> Outcome<u64> {
        let driver = self.lock();
        let pool = driver.pools.get(handle).ok_or(CuError::INVALID_VALUE)?;
        Ok(match attribute {
            PoolAttribute::Reuse(which) => pool.reuse[which],
            PoolAttribute::ReleaseThreshold => pool.release_threshold,
            PoolAttribute::ReservedCurrent => pool.reserved.next_multiple_of(RESERVE),
            PoolAttribute::ReservedHigh => pool.reserved_high.next_multiple_of(RESERVE),
            PoolAttribute::UsedCurrent => pool.used,
            PoolAttribute::UsedHigh => pool.used_high,
        })
    }

    /// `cuMemPoolSetAttribute`: the high-water marks can only be set to 0.
    pub(crate) fn pool_set(&self, handle: u64, attribute: PoolAttribute, value: u64) -> Outcome {
        let mut driver = self.lock();
        let pool = driver.pools.get_mut(handle).ok_or(CuError::INVALID_VALUE)?;
        match attribute {
            PoolAttribute::Reuse(which) => pool.reuse[which] = u64::from(value != 0),
            PoolAttribute::ReleaseThreshold => pool.release_threshold = value,
            PoolAttribute::ReservedHigh if value == 0 => pool.reserved_high = pool.reserved,
            PoolAttribute::UsedHigh if value == 0 => pool.used_high = pool.used,
            _ => return Err(CuError::INVALID_VALUE),
        }
        Ok(())
    }

    pub(crate) fn pool_device(&self, handle: u64) -> Outcome<u32> {
        let driver = self.lock();
        driver.pools.get(handle).map(|pool| pool.device).ok_or(CuError::INVALID_VALUE)
    }
}
