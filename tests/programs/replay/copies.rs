//! Descriptors of copies of rows and slices.

use streamsan_model::{Extent, MemoryKind};

use crate::Refusal;

/// One side of a copy: where its first byte really lies, and the bytes as the trace says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side {
    pub(crate) address: u64,
    pub(crate) extent: Extent,
    pub(crate) kind: MemoryKind,
}

/// Rows of `width` bytes.
#[derive(Clone, Copy, Debug)]
struct Shape {
    width: u64,
    rows: u64,
    slices: u64,
}

/// The shape that two extents of one copy have in common. Extents are simplified where rows or
/// slices touch each other, so that one side may say less than the other.
fn shape(sides: [&Extent; 2], bytes: u64) -> Shape {
    let strided = sides.into_iter().filter_map(|extent| match extent {
        Extent::Strided(pattern) => Some(*pattern),
        Extent::Range(_) => None,
    });
    let width = strided.clone().map(|p| p.width).min().unwrap_or(bytes);
    let runs = bytes / width;
    let rows = strided
        .map(|p| if p.width > width { p.width / width } else { p.rows })
        .min()
        .unwrap_or(runs);
    Shape { width, rows, slices: runs / rows }
}

impl Shape {
    /// The pitch and the height of a slice in rows.
    fn pitch_and_height(self, extent: &Extent) -> Result<(u64, u64), Refusal> {
        let (pitch, slice) = match extent {
            Extent::Range(_) => (self.width, self.width * self.rows),
            Extent::Strided(p) if p.width > self.width => (self.width, p.pitch),
            Extent::Strided(p) if p.slices > 1 => (p.pitch, p.slice_pitch),
            Extent::Strided(p) => (p.pitch, p.pitch * self.rows),
        };
        if !slice.is_multiple_of(pitch) {
            return Err(Refusal::new("slices that begin inside a row"));
        }
        Ok((pitch, slice / pitch))
    }
}

/// `CU_MEMORYTYPE_HOST`, `CU_MEMORYTYPE_DEVICE`, `CU_MEMORYTYPE_UNIFIED`, and the places of the
/// pointer.
fn memory(side: &Side) -> (u64, [u64; 2]) {
    match side.kind {
        MemoryKind::Managed => (4, [0, side.address]),
        kind if kind.is_host() => (1, [side.address, 0]),
        _ => (2, [0, side.address]),
    }
}

/// A `CUDA_MEMCPY2D`.
pub(crate) fn flat(to: &Side, from: &Side, bytes: u64) -> Result<[u64; 16], Refusal> {
    let shape = shape([&to.extent, &from.extent], bytes);
    if shape.slices > 1 {
        return Err(Refusal::new("slices in a copy of rows"));
    }
    let mut words = [0; 16];
    for (at, side) in [(0, from), (7, to)] {
        let (kind, [host, device]) = memory(side);
        let (pitch, _) = shape.pitch_and_height(&side.extent)?;
        words[at + 2..at + 7].copy_from_slice(&[kind, host, device, 0, pitch]);
    }
    words[14..].copy_from_slice(&[shape.width, shape.rows]);
    Ok(words)
}

/// A `CUDA_MEMCPY3D`.
pub(crate) fn deep(to: &Side, from: &Side, bytes: u64) -> Result<[u64; 25], Refusal> {
    let shape = shape([&to.extent, &from.extent], bytes);
    let mut words = [0; 25];
    for (at, side) in [(0, from), (11, to)] {
        let (kind, [host, device]) = memory(side);
        let (pitch, height) = shape.pitch_and_height(&side.extent)?;
        words[at + 4..at + 11].copy_from_slice(&[kind, host, device, 0, 0, pitch, height]);
    }
    words[22..].copy_from_slice(&[shape.width, shape.rows, shape.slices]);
    Ok(words)
}

/// Pitch, width and rows of a memset.
pub(crate) fn rows(extent: &Extent) -> Result<[u64; 3], Refusal> {
    match extent {
        Extent::Range(range) => Ok([range.len(), range.len(), 1]),
        Extent::Strided(p) if p.slices == 1 => Ok([p.pitch, p.width, p.rows]),
        Extent::Strided(_) => Err(Refusal::new("slices in a memset")),
    }
}
