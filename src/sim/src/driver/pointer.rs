//! The answers of `cuPointerGetAttribute` for an address.

use super::sim::Call;
use super::state::Driver;
use crate::errors::{CuError, Outcome};
use crate::memory::{Origin, Region};

/// CUpointer_attribute, those that are answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PointerAttribute {
    Context,
    MemoryType,
    DevicePointer,
    HostPointer,
    SyncMemops,
    BufferId,
    IsManaged,
    DeviceOrdinal,
    RangeStart,
    RangeSize,
    Mapped,
    /// Attributes that are 0 for every allocation here, with the bytes of their value.
    Zero(u8),
    AccessFlags,
    MempoolHandle,
}

/// The value of an attribute, in the width that its attribute has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PointerAnswer {
    Int(u32),
    Long(u64),
}

const MEMORYTYPE_HOST: u32 = 1;
const MEMORYTYPE_DEVICE: u32 = 2;
const ACCESS_READ_WRITE: u32 = 3;

impl PointerAttribute {
    pub(crate) fn from_number(number: u32) -> Outcome<PointerAttribute> {
        Ok(match number {
            1 => PointerAttribute::Context,
            2 => PointerAttribute::MemoryType,
            3 => PointerAttribute::DevicePointer,
            4 => PointerAttribute::HostPointer,
            6 => PointerAttribute::SyncMemops,
            7 => PointerAttribute::BufferId,
            8 => PointerAttribute::IsManaged,
            9 => PointerAttribute::DeviceOrdinal,
            11 => PointerAttribute::RangeStart,
            12 => PointerAttribute::RangeSize,
            13 => PointerAttribute::Mapped,
            10 | 15 | 21 => PointerAttribute::Zero(4),
            14 => PointerAttribute::Zero(8),
            16 => PointerAttribute::AccessFlags,
            17 => PointerAttribute::MempoolHandle,
            18 => PointerAttribute::RangeSize,
            19 => PointerAttribute::RangeStart,
            20 => PointerAttribute::BufferId,
            _ => return Err(CuError::INVALID_VALUE),
        })
    }

    /// The answer of `cuPointerGetAttributes` for an address of which the driver knows nothing, as
    /// driver 580 gives it; `None` leaves the program's value as it is.
    pub(crate) fn unknown(self, address: u64) -> Option<PointerAnswer> {
        use PointerAnswer::{Int, Long};
        Some(match self {
            PointerAttribute::RangeStart | PointerAttribute::RangeSize => return None,
            PointerAttribute::HostPointer => Long(address),
            PointerAttribute::DeviceOrdinal => Int(u32::MAX - 1),
            PointerAttribute::MemoryType
            | PointerAttribute::SyncMemops
            | PointerAttribute::IsManaged
            | PointerAttribute::Mapped
            | PointerAttribute::AccessFlags
            | PointerAttribute::Zero(4) => Int(0),
            PointerAttribute::Context
            | PointerAttribute::DevicePointer
            | PointerAttribute::BufferId
            | PointerAttribute::MempoolHandle
            | PointerAttribute::Zero(_) => Long(0),
        })
    }

    fn of(self, address: u64, region: &Region, driver: &Driver) -> PointerAnswer {
        use PointerAnswer::{Int, Long};
        match self {
            PointerAttribute::Context => {
                let pooled = matches!(region.origin, Origin::Pool(_));
                let alive = driver.contexts.get(region.context).is_some();
                Long(if pooled || !alive { 0 } else { region.context })
            }
            PointerAttribute::MemoryType if region.is_host() => Int(MEMORYTYPE_HOST),
            PointerAttribute::MemoryType => Int(MEMORYTYPE_DEVICE),
            PointerAttribute::DevicePointer => Long(address),
            PointerAttribute::HostPointer => {
                let host = region.is_host() || region.origin == Origin::Managed;
                Long(if host { address } else { 0 })
            }
            PointerAttribute::SyncMemops => Int(region.sync_memops.into()),
            PointerAttribute::BufferId => Long(region.id),
            PointerAttribute::IsManaged => Int((region.origin == Origin::Managed).into()),
            PointerAttribute::DeviceOrdinal => Int(region.device),
            PointerAttribute::RangeStart => Long(region.start),
            PointerAttribute::RangeSize => Long(region.length),
            PointerAttribute::Mapped => Int(1),
            PointerAttribute::Zero(4) => Int(0),
            PointerAttribute::Zero(_) => Long(0),
            PointerAttribute::AccessFlags => Int(ACCESS_READ_WRITE),
            PointerAttribute::MempoolHandle => match region.origin {
                Origin::Pool(pool) => Long(pool),
                _ => Long(0),
            },
        }
    }
}

impl Call {
    /// The attribute of an address, `None` if the driver knows nothing of it.
    pub(crate) fn pointer_attribute(
        &self,
        address: u64,
        attribute: PointerAttribute,
    ) -> Outcome<Option<PointerAnswer>> {
        let driver = self.lock();
        driver.current()?;
        let region = driver.map.containing(address).filter(|region| region.is_named());
        if attribute == PointerAttribute::HostPointer
            && region.is_some_and(|region| !region.is_host() && region.origin != Origin::Managed)
        {
            return Err(CuError::INVALID_VALUE);
        }
        Ok(region.map(|region| attribute.of(address, region, &driver)))
    }

    /// `cuPointerSetAttribute` of `CU_POINTER_ATTRIBUTE_SYNC_MEMOPS`: waits for pending work on
    /// the allocation and makes later synchronous operations on it fully synchronous.
    pub(crate) fn set_sync_memops(&self, address: u64, on: bool) -> Outcome {
        let driver = self.lock();
        driver.current()?;
        let region = driver.map.containing(address).filter(|region| region.is_named());
        let (start, context) =
            region.map(|region| (region.start, region.context)).ok_or(CuError::INVALID_VALUE)?;
        let targets = driver.context_targets(context);
        let mut driver = self.sim.wait(driver, &targets);
        if let Some(entry) = driver.map_mut().at_mut(start) {
            entry.sync_memops = on;
        }
        Ok(())
    }
}
