//! CUDA arrays: their bytes have no addresses, so each gets a made-up range in which elements lie
//! row by row, slice by slice, level by level.
//!
//! Invariant: copies name a place in an array by bytes in a row, row and slice, so that a made-up
//! row only has to be as long as the longest real one; formats of unknown size are taken as long.

use super::resolution::Resolution;
use std::collections::HashMap;
use streamsan_model::{
    Action, AllocationId, Basis, ByteRange, Extent, MemoryKind, Mode, StridedPattern,
};

/// Where made-up ranges begin: no address of a process lies there.
const FIRST: u64 = 1 << 60;
/// Bytes per element of a format whose size is not known: the largest that exists.
const LONGEST_ELEMENT: u64 = 16;

/// `CUDA_ARRAY3D_LAYERED`, `CUDA_ARRAY3D_CUBEMAP`: the depth counts layers, which every level has.
const LAYERED: u32 = 0x01;
const CUBEMAP: u32 = 0x04;

/// One array, or one level of a mipmapped one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Array {
    pub(super) allocation: AllocationId,
    /// Its bytes in the made-up address space.
    pub(super) range: ByteRange,
    /// Bytes from one row to the next one.
    pitch: u64,
    rows: u64,
    /// Bytes per element, `None` for a format whose size is not known.
    pub(super) element: Option<u64>,
}

impl Array {
    /// The bytes of a box: `x` and `width` in bytes.
    pub(super) fn part(
        &self,
        (x, y, z): (u64, u64, u64),
        (width, rows, slices): (u64, u64, u64),
    ) -> Option<Extent> {
        let slice_pitch = self.pitch.saturating_mul(self.rows);
        let start = self
            .range
            .start
            .saturating_add(z.saturating_mul(slice_pitch))
            .saturating_add(y.saturating_mul(self.pitch))
            .saturating_add(x);
        let pitch = self.pitch.max(width);
        let slice_pitch = slice_pitch.max(pitch.saturating_mul(rows));
        let last = slice_pitch.checked_mul(slices).and_then(|len| start.checked_add(len));
        last.and_then(|_| {
            Extent::strided(StridedPattern { start, width, pitch, rows, slice_pitch, slices })
        })
    }
}

/// A mipmapped array.
#[derive(Clone, Debug)]
struct Mipmapped {
    levels: Vec<Array>,
    range: ByteRange,
}

/// The arrays of a process.
#[derive(Debug)]
pub(super) struct Arrays {
    next: u64,
    arrays: HashMap<u64, Array>,
    mipmapped: HashMap<u64, Mipmapped>,
}

impl Default for Arrays {
    fn default() -> Self {
        Self { next: FIRST, arrays: HashMap::new(), mipmapped: HashMap::new() }
    }
}

impl Arrays {
    /// The array of this handle.
    pub(super) fn find(&self, handle: u64) -> Option<Array> {
        self.arrays.get(&handle).copied()
    }

    /// All levels of the mipmapped array of this handle.
    pub(super) fn find_mipmapped(&self, handle: u64) -> Option<(AllocationId, ByteRange)> {
        let mipmapped = self.mipmapped.get(&handle)?;
        Some((mipmapped.levels.first()?.allocation, mipmapped.range))
    }

    fn take(&mut self, len: u64) -> Option<ByteRange> {
        let range = ByteRange::new(self.next, self.next.checked_add(len)?);
        self.next = range.end.checked_next_multiple_of(4096)?;
        Some(range)
    }
}

/// The contents of a descriptor (`CUDA_ARRAY_DESCRIPTOR`, `CUDA_ARRAY3D_DESCRIPTOR`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ArrayShape {
    width: u64,
    height: u64,
    depth: u64,
    element: Option<u64>,
    flags: u32,
}

impl ArrayShape {
    /// Reads a descriptor whose sizes are words of `word` bytes, `dimensions` of them.
    pub(super) fn read(bytes: &[u8], word: usize, dimensions: usize) -> Option<Self> {
        let number = |at: usize, len: usize| -> Option<u64> {
            let mut value = [0; 8];
            value[..len].copy_from_slice(bytes.get(at..at + len)?);
            Some(u64::from_le_bytes(value))
        };
        let size = |index: usize| number(index * word, word);
        let rest = word * dimensions;
        let (format, channels) = (number(rest, 4)? as u32, number(rest + 4, 4)?);
        let deep = dimensions == 3;
        Some(Self {
            width: size(0)?,
            height: size(1)?,
            depth: if deep { size(2)? } else { 0 },
            element: element(format).map(|bytes| bytes * channels.max(1)),
            flags: if deep { number(rest + 8, 4)? as u32 } else { 0 },
        })
    }

    fn level(self, level: u32) -> Self {
        let less = |size: u64| size.checked_shr(level).unwrap_or(0).max(u64::from(size != 0));
        let layers = self.flags & (LAYERED | CUBEMAP) != 0;
        let depth = if layers { self.depth } else { less(self.depth) };
        Self { width: less(self.width), height: less(self.height), depth, ..self }
    }

    fn pitch(self) -> u64 {
        self.width.max(1).saturating_mul(self.element.unwrap_or(LONGEST_ELEMENT))
    }

    fn bytes(self) -> u64 {
        self.pitch().saturating_mul(self.height.max(1)).saturating_mul(self.depth.max(1))
    }

    fn at(self, allocation: AllocationId, start: u64) -> Array {
        Array {
            allocation,
            range: ByteRange::with_len(start, self.bytes()),
            pitch: self.pitch(),
            rows: self.height.max(1),
            element: self.element,
        }
    }
}

/// Bytes of one channel (`CUarray_format`); the planar and block-compressed ones are not listed.
fn element(format: u32) -> Option<u64> {
    match format {
        0x01 | 0x08 => Some(1),
        0x02 | 0x09 | 0x10 => Some(2),
        0x03 | 0x0a | 0x20 => Some(4),
        _ => None,
    }
}

fn begin(
    resolution: &mut Resolution<'_>,
    range: ByteRange,
    allocation: AllocationId,
) -> Option<Action> {
    resolution.touch(allocation, Extent::Range(range), Mode::Allocate, Basis::Exact);
    Some(Action::Allocate { allocation, stream: None })
}

fn end(
    resolution: &mut Resolution<'_>,
    range: ByteRange,
    allocation: AllocationId,
) -> Option<Action> {
    resolution.touch(allocation, Extent::Range(range), Mode::Free, Basis::Exact);
    Some(Action::Free { allocation, stream: None })
}

/// `cuArrayCreate(array, descriptor)`, `cuArray3DCreate(array, descriptor)`.
pub(super) fn create(resolution: &mut Resolution<'_>, dimensions: usize) -> Option<Action> {
    let handle = resolution.call.out(0)?;
    // The first ABI had sizes of 32 bits.
    let word = if resolution.call.api.name().ends_with("_v2") { 8 } else { 4 };
    let shape = ArrayShape::read(resolution.call.pointee.as_deref()?, word, dimensions)?;
    let range = resolution.tables.arrays.take(shape.bytes())?;
    let allocation = resolution.new_made_up(range, MemoryKind::Array, None);
    resolution.tables.arrays.arrays.insert(handle, shape.at(allocation, range.start));
    begin(resolution, range, allocation)
}

/// `cuArrayDestroy(array)`.
pub(super) fn destroy(resolution: &mut Resolution<'_>) -> Option<Action> {
    if !resolution.call.succeeded() {
        return None;
    }
    let array = resolution.tables.arrays.arrays.remove(&resolution.call.arg(0))?;
    end(resolution, array.range, array.allocation)
}

/// `cuMipmappedArrayCreate(array, descriptor, levels)`.
pub(super) fn create_mipmapped(resolution: &mut Resolution<'_>) -> Option<Action> {
    let handle = resolution.call.out(0)?;
    let shape = ArrayShape::read(resolution.call.pointee.as_deref()?, 8, 3)?;
    mipmapped(resolution, handle, shape, resolution.call.arg(2), MemoryKind::Array, None)
}

/// A mipmapped array of this shape comes to life.
pub(super) fn mipmapped(
    resolution: &mut Resolution<'_>,
    handle: u64,
    shape: ArrayShape,
    levels: u64,
    kind: MemoryKind,
    backing: Option<streamsan_model::Backing>,
) -> Option<Action> {
    // The driver makes at most as many as the largest size has bits.
    let shapes: Vec<ArrayShape> = (0..levels.min(64) as u32).map(|n| shape.level(n)).collect();
    let bytes = shapes.iter().fold(0u64, |sum, shape| sum.saturating_add(shape.bytes()));
    let range = resolution.tables.arrays.take(bytes)?;
    let allocation = resolution.new_made_up(range, kind, backing);
    let mut start = range.start;
    let mut levels = Vec::new();
    for shape in shapes {
        let level = shape.at(allocation, start);
        start = level.range.end;
        levels.push(level);
    }
    resolution.tables.arrays.mipmapped.insert(handle, Mipmapped { levels, range });
    begin(resolution, range, allocation)
}

/// `cuMipmappedArrayGetLevel(level array, array, level)`: a handle for a part.
pub(super) fn level(resolution: &mut Resolution<'_>) -> Option<Action> {
    let (handle, level) = (resolution.call.out(0)?, usize::try_from(resolution.call.arg(2)).ok()?);
    let arrays = &mut resolution.tables.arrays;
    let part = *arrays.mipmapped.get(&resolution.call.arg(1))?.levels.get(level)?;
    arrays.arrays.insert(handle, part);
    None
}

/// `cuMipmappedArrayDestroy(array)`.
pub(super) fn destroy_mipmapped(resolution: &mut Resolution<'_>) -> Option<Action> {
    if !resolution.call.succeeded() {
        return None;
    }
    let arrays = &mut resolution.tables.arrays;
    let mipmapped = arrays.mipmapped.remove(&resolution.call.arg(0))?;
    let allocation = mipmapped.levels.first()?.allocation;
    arrays.arrays.retain(|_, part| part.allocation != allocation);
    end(resolution, mipmapped.range, allocation)
}
