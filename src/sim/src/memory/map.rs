//! The map of allocations by address.
//!
//! The map holds API time: an allocation appears when the call that makes it returns, and a freed
//! one is gone or marked freed when the call that frees it returns. Blocks of a pool stay in the
//! map after their free, because a pool keeps its memory mapped: an operation that is not ordered
//! before the free reads or overwrites it without a fault, as on a device.

use std::collections::BTreeMap;

/// How a region came to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// `cuMemAlloc`, `cuMemAllocPitch`.
    Device,
    /// `cuMemAllocAsync`: the pool's handle.
    Pool(u64),
    /// A variable of a module.
    Global,
    /// A CUDA array.
    Array,
    /// Mapped physical memory.
    Mapped,
    /// An allocation node of a graph.
    Graph,
    /// `cuMemAllocManaged`.
    Managed,
    /// `cuMemHostAlloc`, `cuMemAllocHost`.
    Pinned,
    /// `cuMemHostRegister`: memory of the program.
    Registered,
}

/// One allocation.
#[derive(Clone, Debug)]
pub(crate) struct Region {
    pub(crate) start: u64,
    /// Bytes asked for.
    pub(crate) length: u64,
    pub(crate) origin: Origin,
    /// Ordinal of the device that the memory lies on, or whose context allocated it.
    pub(crate) device: u32,
    /// The context that allocated it.
    pub(crate) context: u64,
    /// Unique over the life of the process.
    pub(crate) id: u64,
    /// Flags of `cuMemHostAlloc` or `cuMemHostRegister`.
    pub(crate) flags: u32,
    /// Freed by `cuMemFreeAsync`, or a pool's block by either free.
    pub(crate) freed: bool,
    /// `CU_POINTER_ATTRIBUTE_SYNC_MEMOPS`.
    pub(crate) sync_memops: bool,
}

impl Region {
    pub(crate) fn end(&self) -> u64 {
        self.start + self.length
    }

    /// Whether calls may still name it. A pool's block may not be once its free was submitted;
    /// other memory may be until the free has run and the host has waited for something.
    pub(crate) fn is_named(&self) -> bool {
        !(self.freed && matches!(self.origin, Origin::Pool(_)))
    }

    /// Memory of the host: pinned or registered.
    pub(crate) fn is_host(&self) -> bool {
        matches!(self.origin, Origin::Pinned | Origin::Registered)
    }

    /// Whether kernels on `device` may touch it, `peers` being the devices (by bit) whose memory
    /// the context was given access to.
    fn reachable(&self, device: u32, peers: u32) -> bool {
        self.device == device
            || self.is_host()
            || self.origin == Origin::Managed
            || peers & (1 << self.device) != 0
    }
}

/// Regions by address. They never overlap.
#[derive(Clone, Default, Debug)]
pub(crate) struct AddressMap {
    regions: BTreeMap<u64, Region>,
}

impl AddressMap {
    pub(crate) fn insert(&mut self, region: Region) {
        self.regions.insert(region.start, region);
    }

    pub(crate) fn remove(&mut self, start: u64) -> Option<Region> {
        self.regions.remove(&start)
    }

    /// The region that starts at `start`.
    pub(crate) fn at(&self, start: u64) -> Option<&Region> {
        self.regions.get(&start)
    }

    pub(crate) fn at_mut(&mut self, start: u64) -> Option<&mut Region> {
        self.regions.get_mut(&start)
    }

    /// The region that holds the byte at `address`.
    pub(crate) fn containing(&self, address: u64) -> Option<&Region> {
        let (_, region) = self.regions.range(..=address).next_back()?;
        (address < region.end()).then_some(region)
    }

    /// The region that holds all of `[address, address + length)`.
    pub(crate) fn range(&self, address: u64, length: u64) -> Option<&Region> {
        let region = self.containing(address)?;
        let end = address.checked_add(length)?;
        (end <= region.end()).then_some(region)
    }

    /// The region that holds the range, if kernels of `device` may touch it.
    pub(crate) fn reachable(
        &self,
        address: u64,
        length: u64,
        device: u32,
        peers: u32,
    ) -> Option<&Region> {
        self.range(address, length).filter(|region| region.reachable(device, peers))
    }

    /// The last region that overlaps the range.
    pub(crate) fn overlapping(&self, start: u64, length: u64) -> Option<&Region> {
        let end = start.saturating_add(length);
        let (_, region) = self.regions.range(..end).next_back()?;
        (region.end() > start).then_some(region)
    }

    /// Removes and returns every region that `doomed` names.
    pub(crate) fn take_where(&mut self, doomed: impl Fn(&Region) -> bool) -> Vec<Region> {
        let starts: Vec<u64> = self
            .regions
            .values()
            .filter(|region| doomed(region))
            .map(|region| region.start)
            .collect();
        starts.iter().filter_map(|start| self.regions.remove(start)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(start: u64, length: u64, origin: Origin, device: u32) -> Region {
        Region {
            start,
            length,
            origin,
            device,
            context: 0,
            id: start,
            flags: 0,
            freed: false,
            sync_memops: false,
        }
    }

    #[test]
    fn a_range_is_inside_one_region_to_its_last_byte_or_refused() {
        let mut map = AddressMap::default();
        map.insert(region(100, 50, Origin::Device, 0));
        map.insert(region(150, 50, Origin::Device, 0));
        let cases = [
            (100, 50, true),
            (149, 1, true),
            (100, 51, false),
            (99, 1, false),
            (199, 1, true),
            (200, 1, false),
            (120, u64::MAX, false),
        ];
        for (start, length, inside) in cases {
            assert_eq!(map.range(start, length).is_some(), inside, "{start}+{length}");
        }
        assert!(map.overlapping(90, 11).is_some());
        assert!(map.overlapping(90, 10).is_none() && map.overlapping(200, 5).is_none());
    }

    #[test]
    fn memory_of_another_device_needs_peer_access_unless_it_is_the_hosts() {
        let mut map = AddressMap::default();
        map.insert(region(100, 10, Origin::Device, 1));
        map.insert(region(200, 10, Origin::Pinned, 1));
        assert!(map.reachable(100, 4, 0, 0).is_none());
        assert!(map.reachable(100, 4, 0, 0b10).is_some());
        assert!(map.reachable(200, 4, 0, 0).is_some());
    }
}
