//! CUDA arrays: opaque memory of one to three dimensions, reached by copies. Texture and surface
//! access from kernels is not simulated, so the layout is that of plain rows.

use super::copy::{CopyEnd, CopySpec, Role};
use super::sim::Call;
use super::state::Driver;
use crate::errors::{CuError, Outcome};
use crate::memory::Origin;

/// CUDA_ARRAY3D_DESCRIPTOR; the form for two dimensions has neither depth nor flags.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArrayShape {
    /// Elements of a row.
    pub(crate) width: u64,
    /// Rows, 0 for one dimension.
    pub(crate) height: u64,
    /// Slices or layers, 0 for less than three dimensions.
    pub(crate) depth: u64,
    /// CUarray_format.
    pub(crate) format: u32,
    pub(crate) channels: u32,
    pub(crate) flags: u32,
}

/// A CUDA array.
#[derive(Debug)]
pub(crate) struct Array {
    start: u64,
    shape: ArrayShape,
    pub(super) context: u64,
}

/// Layers, surface access, and gathering: what does not change how copies see an array.
const PLAIN_FLAGS: u32 = 1 | 2 | 8;

impl ArrayShape {
    /// Bytes of an element.
    fn element(&self) -> Outcome<u64> {
        let channel = match self.format {
            0x01 | 0x08 => 1,
            0x02 | 0x09 | 0x10 => 2,
            0x03 | 0x0a | 0x20 => 4,
            _ => return Err(CuError::INVALID_VALUE),
        };
        match self.channels {
            1 | 2 | 4 => Ok(channel * u64::from(self.channels)),
            _ => Err(CuError::INVALID_VALUE),
        }
    }

    fn row(&self) -> Outcome<u64> {
        self.width.checked_mul(self.element()?).ok_or(CuError::INVALID_VALUE)
    }

    fn length(&self) -> Outcome<u64> {
        if self.width == 0 || (self.depth > 0 && self.height == 0 && self.flags & 1 == 0) {
            return Err(CuError::INVALID_VALUE);
        }
        let rows = self.height.max(1).checked_mul(self.depth.max(1));
        let bytes = rows.zip(self.row().ok()).and_then(|(rows, row)| rows.checked_mul(row));
        self.row()?;
        bytes.ok_or(CuError::INVALID_VALUE)
    }
}

impl Driver {
    fn array_end(&self, end: &CopyEnd, at: [u64; 3], of: &CopySpec) -> Outcome<CopyEnd> {
        let array = self.arrays.get(end.start).ok_or(CuError::INVALID_HANDLE)?;
        let limits = [array.shape.row()?, array.shape.height.max(1), array.shape.depth.max(1)];
        let sizes = [of.width, of.height, of.depth];
        for ((from, size), limit) in at.iter().zip(sizes).zip(limits) {
            if from.checked_add(size).is_none_or(|end| end > limit) {
                return Err(CuError::INVALID_VALUE);
            }
        }
        let (pitch, slice) = (limits[0], limits[0] * limits[1]);
        let start = array.start + at[0] + at[1] * pitch + at[2] * slice;
        Ok(CopyEnd { role: Role::Device, start, pitch, slice })
    }

    /// A copy whose ends are addresses.
    pub(super) fn without_arrays(&self, spec: &CopySpec) -> Outcome<CopySpec> {
        let mut plain = *spec;
        for end in [&mut plain.source, &mut plain.destination] {
            if let Role::Array(at) = end.role {
                *end = self.array_end(end, at, spec)?;
            }
        }
        Ok(plain)
    }
}

impl Call {
    pub(crate) fn array_create(&self, shape: ArrayShape) -> Outcome<u64> {
        let mut driver = self.lock();
        let context = driver.current()?;
        if shape.flags & !PLAIN_FLAGS != 0 {
            return Err(CuError::NOT_SUPPORTED);
        }
        let length = shape.length()?;
        driver.check_unsafe()?;
        let device = driver.usable(context)?.device;
        let start = driver.take(length, Origin::Array, context, device, 0)?;
        Ok(driver.arrays.insert(Array { start, shape, context }))
    }

    /// `cuArrayDestroy`: lets the work of its context finish first, as `cuMemFree` does.
    pub(crate) fn array_destroy(&self, handle: u64) -> Outcome {
        let mut driver = self.lock();
        driver.current()?;
        driver.check_unsafe()?;
        let context = driver.arrays.get(handle).ok_or(CuError::INVALID_HANDLE)?.context;
        let targets = driver.context_targets(context);
        let mut driver = self.sim.wait(driver, &targets);
        let array = driver.arrays.remove(handle).ok_or(CuError::INVALID_HANDLE)?;
        if let Some(region) = driver.map.at(array.start).cloned() {
            driver.discard(&region);
        }
        Ok(())
    }

    pub(crate) fn array_shape(&self, handle: u64) -> Outcome<ArrayShape> {
        let driver = self.lock();
        driver.current()?;
        driver.arrays.get(handle).map(|array| array.shape).ok_or(CuError::INVALID_HANDLE)
    }
}
