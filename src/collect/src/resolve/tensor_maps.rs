//! Tensor maps: 128 opaque bytes through which a kernel reaches a tensor without a pointer.
//!
//! A map is known by its content, for it is copied freely: into parameters, into graphs, into
//! constants. Where the parameters of a launch hold one, it stands for the tensor that it
//! describes; what the kernel does with it is not known. Maps that lie in device memory, and maps
//! that a kernel has changed, are not recognised: their words are taken as any others.

use super::launches;
use super::resolution::Resolution;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use streamsan_model::{Access, Action, Basis, ByteRange, Extent, Mode, StridedPattern};

/// `sizeof(CUtensorMap)`, and its alignment.
const BYTES: usize = 128;
const ALIGNMENT: usize = 64;

/// Most maps that are kept; the oldest is forgotten first.
const MOST_MAPS: usize = 1 << 16;

/// `CU_TENSOR_MAP_INTERLEAVE_NONE`.
const NOT_INTERLEAVED: u64 = 0;

/// Bytes per element by `CUtensorMapDataType`; packed types of less than a byte are left out.
const ELEMENTS: [u64; 13] = [1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4];

type Content = [u8; BYTES];

/// The tensor of a map: one run of bytes, repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Tensor {
    start: u64,
    /// `None` where the bytes are not known.
    shape: Option<BoxShape>,
}

/// `width` bytes, repeated in each level as often and as far apart as it says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct BoxShape {
    width: u64,
    /// `(stride, count)`, in ascending order.
    levels: Vec<(u64, u64)>,
}

impl BoxShape {
    /// From the dimensions in elements and the strides in bytes, the innermost dimension first;
    /// elements of the innermost one lie side by side.
    fn new(element: u64, dimensions: &[u64], strides: &[u64]) -> Option<Self> {
        let (&first, rest) = dimensions.split_first()?;
        if dimensions.contains(&0) || rest.len() != strides.len() {
            return None;
        }
        let mut width = first.checked_mul(element)?;
        let repeats = |&(stride, count): &(u64, u64)| stride != 0 && count > 1;
        let mut rest: Vec<_> =
            strides.iter().copied().zip(rest.iter().copied()).filter(repeats).collect();
        rest.sort_unstable();
        let mut levels: Vec<(u64, u64)> = Vec::new();
        for (stride, count) in rest {
            match levels.last_mut() {
                // Where the runs touch each other, they are one.
                None if stride == width => width = width.checked_mul(count)?,
                Some((inner, times)) if inner.checked_mul(*times) == Some(stride) => {
                    *times = times.checked_mul(count)?;
                }
                _ => levels.push((stride, count)),
            }
        }
        Some(Self { width, levels })
    }

    /// The bytes from `start` on: exact for up to two levels that do not overlap, else the range
    /// that holds them all.
    fn at(&self, start: u64) -> Option<Extent> {
        let mut hull = self.width;
        for (stride, count) in &self.levels {
            hull = hull.checked_add(stride.checked_mul(count - 1)?)?;
        }
        let range = ByteRange::new(start, start.checked_add(hull)?);
        let width = self.width;
        let pattern = match *self.levels.as_slice() {
            [(pitch, rows)] if width <= pitch => {
                StridedPattern { start, width, pitch, rows, slice_pitch: 0, slices: 1 }
            }
            [(pitch, rows), (slice_pitch, slices)]
                if width <= pitch && pitch.checked_mul(rows)? <= slice_pitch =>
            {
                StridedPattern { start, width, pitch, rows, slice_pitch, slices }
            }
            _ => return Some(Extent::Range(range)),
        };
        Extent::strided(pattern)
    }
}

/// The tensor maps of a process, by content.
#[derive(Debug, Default)]
pub(super) struct TensorMaps {
    maps: HashMap<Content, Tensor>,
    /// In the order in which they were made.
    order: VecDeque<Content>,
}

impl TensorMaps {
    fn insert(&mut self, content: Content, tensor: Tensor) {
        if self.maps.insert(content, tensor).is_none() {
            self.order.push_back(content);
        }
        if self.order.len() > MOST_MAPS
            && let Some(oldest) = self.order.pop_front()
        {
            self.maps.remove(&oldest);
        }
    }
}

/// The map that the call has made.
fn made(resolution: &Resolution<'_>) -> Option<Content> {
    let mut content = [0; BYTES];
    for (index, word) in content.chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&resolution.call.out(index)?.to_le_bytes());
    }
    Some(content)
}

fn words(bytes: Option<&[u8]>) -> Vec<u64> {
    let words = bytes.unwrap_or_default().chunks_exact(8).filter_map(|word| word.try_into().ok());
    words.map(u64::from_le_bytes).collect()
}

/// `cuTensorMapEncodeTiled`, `cuTensorMapEncodeIm2col`, `cuTensorMapEncodeIm2colWide`: `(map, type,
/// rank, address, dimensions, strides, ...)`, and parameter `interleave` (CUDA driver API, "Tensor
/// Map Object Management"). Boxes and the strides of a traversal choose among the bytes of the
/// tensor; what they leave out is taken to be touched too.
pub(super) fn encode(resolution: &mut Resolution<'_>, interleave: usize) -> Option<Action> {
    let content = made(resolution)?;
    let call = resolution.call;
    let element = usize::try_from(call.arg(1)).ok().and_then(|kind| ELEMENTS.get(kind));
    let plain = call.arg(interleave) == NOT_INTERLEAVED;
    let shape = element
        .filter(|_| plain)
        .and_then(|&element| BoxShape::new(element, &words(call.input(4)), &words(call.input(5))));
    resolution.tables.tensor_maps.insert(content, Tensor { start: call.arg(3), shape });
    None
}

/// `cuTensorMapReplaceAddress(map, address)`.
pub(super) fn replace_address(resolution: &mut Resolution<'_>) -> Option<Action> {
    let content = made(resolution)?;
    let before = resolution.call.pointee.as_deref().and_then(|bytes| bytes.try_into().ok());
    let maps = &mut resolution.tables.tensor_maps;
    let known = before.and_then(|before: &Content| maps.maps.get(before));
    let shape = known.and_then(|tensor| tensor.shape.clone());
    maps.insert(content, Tensor { start: resolution.call.arg(1), shape });
    None
}

/// The tensor maps among the parameters of a kernel and what they lead to. None of their words is a
/// pointer.
pub(super) fn parameters(
    resolution: &mut Resolution<'_>,
    bytes: &[u8],
) -> Vec<(Range<usize>, Vec<Access>)> {
    let mut found = Vec::new();
    if resolution.tables.tensor_maps.maps.is_empty() {
        return found;
    }
    let mut at = 0;
    while let Some(part) = bytes.get(at..at + BYTES) {
        let known =
            <&Content>::try_from(part).ok().and_then(|c| resolution.tables.tensor_maps.maps.get(c));
        let Some(tensor) = known.cloned() else {
            at += ALIGNMENT;
            continue;
        };
        let start = resolution.accesses.len();
        touch(resolution, &tensor);
        found.push((at..at + BYTES, resolution.accesses.split_off(start)));
        at += BYTES;
    }
    found
}

/// Notes that anything in the tensor may be touched.
fn touch(resolution: &mut Resolution<'_>, tensor: &Tensor) {
    let Some(block) = launches::pointed_to(resolution, tensor.start) else { return };
    let extent = tensor.shape.as_ref().and_then(|shape| shape.at(tensor.start));
    match extent {
        Some(extent) => resolution.touch_from(&block, extent, Mode::MayWrite, Basis::Assumed),
        None => resolution.touch_all(&block, Mode::MayWrite, Basis::Assumed),
    }
}
