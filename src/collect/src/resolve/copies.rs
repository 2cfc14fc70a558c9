//! Copies and memsets: exact bytes on both sides.

use super::memory::Block;
use super::resolution::Resolution;
use streamsan_model::{
    Action, AllocationId, Basis, ContextId, Copy, Extent, MemoryKind, Mode, SourceOrder, StreamId,
    StridedPattern,
};

/// Where the entry point says that an address lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Host,
    Device,
    /// Unified addressing: wherever the address lies.
    Any,
}
pub(super) const HOST: Side = Side::Host;
pub(super) const DEVICE: Side = Side::Device;
pub(super) const ANY: Side = Side::Any;

/// Rows of `width` bytes, `rows` to a slice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extents {
    pub(super) width: u64,
    pub(super) rows: u64,
    pub(super) slices: u64,
}

impl Extents {
    pub(super) fn linear(bytes: u64) -> Self {
        Self { width: bytes, rows: 1, slices: 1 }
    }

    fn bytes(self) -> u64 {
        self.width.saturating_mul(self.rows).saturating_mul(self.slices)
    }
}

/// Where one end of a copy begins.
#[derive(Clone, Copy, Debug)]
pub(super) enum At {
    /// At an address.
    Address(Side, u64),
    /// In the CUDA array of a handle: bytes in a row, row, slice.
    Array(u64, (u64, u64, u64)),
}

/// One end of a copy.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub(super) at: At,
    /// Bytes between rows and slices at an address; an array has its own.
    pub(super) pitch: u64,
    pub(super) slice_pitch: u64,
}

impl End {
    pub(super) fn linear(side: Side, start: u64) -> Self {
        Self { at: At::Address(side, start), pitch: 0, slice_pitch: 0 }
    }

    pub(super) fn array(handle: u64, offset: (u64, u64, u64)) -> Self {
        Self { at: At::Array(handle, offset), pitch: 0, slice_pitch: 0 }
    }

    fn extent(self, start: u64, shape: Extents) -> Option<Extent> {
        let Extents { width, rows, slices } = shape;
        // The driver refuses smaller pitches; zeros stand for rows without gaps.
        let pitch = self.pitch.max(width);
        let slice_pitch = self.slice_pitch.max(pitch.saturating_mul(rows));
        let pattern = StridedPattern { start, width, pitch, rows, slice_pitch, slices };
        let last = slice_pitch.checked_mul(slices).and_then(|len| start.checked_add(len)).is_some();
        last.then(|| Extent::strided(pattern))?
    }
}

/// A copy to be resolved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    pub(super) destination: End,
    pub(super) source: End,
    pub(super) shape: Extents,
    pub(super) peer: Option<(ContextId, ContextId)>,
    pub(super) source_order: SourceOrder,
}

/// The block at an address, where one is known.
fn block_at(resolution: &Resolution<'_>, side: Side, address: u64) -> Option<Block> {
    if let Some(block) = resolution.tables.memory.find(address) {
        return Some(*block);
    }
    // Freed host memory lives on as ordinary memory; device memory does not, so that an address in
    // it is a use after free.
    let past = (side != Side::Host).then(|| resolution.tables.memory.find_past(address)).flatten();
    past.filter(|block| !block.kind.is_host()).copied()
}

/// The allocation for addresses that no known block holds.
fn nowhere(resolution: &mut Resolution<'_>, side: Side) -> (MemoryKind, AllocationId) {
    match side {
        Side::Device => (MemoryKind::Device, resolution.foreign()),
        Side::Host | Side::Any => (MemoryKind::Pageable, resolution.pageable()),
    }
}

/// The block that the driver made: for it a region is a part of that.
fn made(resolution: &Resolution<'_>, block: &Block) -> (MemoryKind, AllocationId) {
    let made = match block.kind {
        MemoryKind::Region => {
            resolution.tables.memory.find_made(block.range.start).unwrap_or(block)
        }
        _ => block,
    };
    (made.kind, made.id)
}

/// Which allocation an address belongs to, and what kind of memory that is.
pub(super) fn place(
    resolution: &mut Resolution<'_>,
    side: Side,
    address: u64,
) -> (MemoryKind, AllocationId) {
    match block_at(resolution, side, address) {
        Some(block) => made(resolution, &block),
        None => nowhere(resolution, side),
    }
}

/// Notes what one end of a copy or memset touches.
fn touch_end(
    resolution: &mut Resolution<'_>,
    end: End,
    shape: Extents,
    mode: Mode,
) -> (MemoryKind, Option<AllocationId>) {
    let (side, start) = match end.at {
        At::Address(side, start) => (side, start),
        At::Array(handle, offset) => {
            let Some(array) = resolution.tables.arrays.find(handle) else {
                if resolution.call.succeeded() {
                    let api = resolution.call.api.name();
                    resolution
                        .gaps
                        .not_understood(&format!("{api} (CUDA array of unknown origin)"));
                }
                return (MemoryKind::Array, None);
            };
            if let Some(extent) = array.part(offset, (shape.width, shape.rows, shape.slices)) {
                resolution.touch(array.allocation, extent, mode, Basis::Exact);
            }
            return (MemoryKind::Array, Some(array.allocation));
        }
    };
    let block = block_at(resolution, side, start);
    let (kind, allocation) = match block {
        Some(block) => made(resolution, &block),
        None => nowhere(resolution, side),
    };
    if let Some(extent) = end.extent(start, shape) {
        match block {
            Some(block) => resolution.touch_from(&block, extent, mode, Basis::Exact),
            None => resolution.touch(allocation, extent, mode, Basis::Exact),
        }
    }
    (kind, Some(allocation))
}

/// The stream that carries the operation, and whether it is a synchronous form.
fn carrier(resolution: &mut Resolution<'_>, stream: Option<usize>) -> Option<(StreamId, bool)> {
    match stream {
        Some(index) => Some((resolution.stream(resolution.call.arg(index))?, false)),
        None => Some((resolution.default_stream(), true)),
    }
}

/// Whether a synchronous form on these allocations waits for its end by request.
fn waits_by_request(
    resolution: &mut Resolution<'_>,
    synchronous: bool,
    allocations: [Option<AllocationId>; 2],
) -> bool {
    if !synchronous || resolution.tables.sync_memops.is_empty() {
        return false;
    }
    let context = (resolution.call.context != 0).then(|| resolution.current_context());
    let allocations: Vec<_> = allocations.into_iter().flatten().collect();
    resolution.tables.sync_memops.holds(context, &allocations)
}

/// Resolves a copy: notes what it touches.
pub(super) fn transfer(
    resolution: &mut Resolution<'_>,
    stream: StreamId,
    synchronous: bool,
    what: Transfer,
) -> Copy {
    transfer_sized(resolution, stream, synchronous, what, what.shape)
}

/// As [`transfer`], of a source with a shape of its own.
pub(super) fn transfer_sized(
    resolution: &mut Resolution<'_>,
    stream: StreamId,
    synchronous: bool,
    what: Transfer,
    source_shape: Extents,
) -> Copy {
    let (source, from) = touch_end(resolution, what.source, source_shape, Mode::Read);
    let (destination, to) = touch_end(resolution, what.destination, what.shape, Mode::Write);
    Copy {
        stream,
        synchronous,
        source,
        destination,
        peer: what.peer,
        bytes: what.shape.bytes(),
        source_order: what.source_order,
        sync_memops: waits_by_request(resolution, synchronous, [from, to]),
    }
}

fn copy(
    resolution: &mut Resolution<'_>,
    destination: End,
    source: End,
    shape: Extents,
    stream: Option<usize>,
    peer: Option<(ContextId, ContextId)>,
) -> Option<Action> {
    let (stream, synchronous) = carrier(resolution, stream)?;
    let source_order = SourceOrder::Stream;
    let what = Transfer { destination, source, shape, peer, source_order };
    Some(Action::Copy(transfer(resolution, stream, synchronous, what)))
}

/// `cuMemcpy*(dst, src, bytes[, stream])`.
pub(super) fn linear(
    resolution: &mut Resolution<'_>,
    destination: Side,
    source: Side,
    stream: Option<usize>,
) -> Option<Action> {
    let destination = End::linear(destination, resolution.call.arg(0));
    let source = End::linear(source, resolution.call.arg(1));
    copy(resolution, destination, source, Extents::linear(resolution.call.arg(2)), stream, None)
}

/// `cuMemcpyPeer*(dst, dst context, src, src context, bytes[, stream])`.
pub(super) fn peer(resolution: &mut Resolution<'_>, stream: Option<usize>) -> Option<Action> {
    let contexts =
        (resolution.context(resolution.call.arg(3)), resolution.context(resolution.call.arg(1)));
    let destination = End::linear(ANY, resolution.call.arg(0));
    let source = End::linear(ANY, resolution.call.arg(2));
    let shape = Extents::linear(resolution.call.arg(4));
    copy(resolution, destination, source, shape, stream, Some(contexts))
}

/// One end of a one-dimensional copy with an array: which parameters name it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Linear {
    /// The address is parameter number so and so.
    Address(Side, usize),
    /// The array is parameter number so and so, the offset in bytes the next one.
    Array(usize),
}

/// `cuMemcpyDtoA*` and its like.
pub(super) fn array(
    resolution: &mut Resolution<'_>,
    destination: Linear,
    source: Linear,
    bytes: usize,
    stream: Option<usize>,
) -> Option<Action> {
    let shape = Extents::linear(resolution.call.arg(bytes));
    let end = |end: Linear| match end {
        Linear::Address(side, index) => End::linear(side, resolution.call.arg(index)),
        Linear::Array(index) => {
            End::array(resolution.call.arg(index), (resolution.call.arg(index + 1), 0, 0))
        }
    };
    let (destination, source) = (end(destination), end(source));
    copy(resolution, destination, source, shape, stream, None)
}

/// Which descriptor a copy takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `CUDA_MEMCPY2D`, 128 bytes.
    Flat,
    /// `CUDA_MEMCPY3D`, 200 bytes.
    Deep,
    /// `CUDA_MEMCPY3D_PEER`, 200 bytes.
    Peer,
}

/// Byte offsets of one end's fields in a descriptor (driver API, section "Data types"). The x and
/// y offsets come first, then the z offset where there is one.
struct Fields {
    x: usize,
    z: Option<usize>,
    memory_type: usize,
    /// Host pointer, device pointer and array follow each other.
    host: usize,
    pitch: usize,
    height: Option<usize>,
}

const FLAT: [Fields; 2] = [
    Fields { x: 0, z: None, memory_type: 16, host: 24, pitch: 48, height: None },
    Fields { x: 56, z: None, memory_type: 72, host: 80, pitch: 104, height: None },
];
const DEEP: [Fields; 2] = [
    Fields { x: 0, z: Some(16), memory_type: 32, host: 40, pitch: 72, height: Some(80) },
    Fields { x: 88, z: Some(104), memory_type: 120, host: 128, pitch: 160, height: Some(168) },
];
const FLAT_SHAPE: usize = 112;
const DEEP_SHAPE: usize = 176;
/// Contexts of the peer form, in place of the other form's reserved fields.
const PEER_CONTEXTS: [usize; 2] = [64, 152];

/// `cuMemcpy2D*`, `cuMemcpy3D*`: `(descriptor[, stream])`.
pub(super) fn descriptor(
    resolution: &mut Resolution<'_>,
    form: Form,
    stream: Option<usize>,
) -> Option<Action> {
    let bytes = resolution.call.pointee.clone().unwrap_or_default();
    let Transfer { destination, source, shape, peer, .. } = described(resolution, &bytes, form)?;
    copy(resolution, destination, source, shape, stream, peer)
}

/// The copy node of a graph with this `CUDA_MEMCPY3D`; its stream has no meaning.
pub(super) fn node(resolution: &mut Resolution<'_>, bytes: &[u8]) -> Option<Copy> {
    let what = described(resolution, bytes, Form::Deep)?;
    Some(transfer(resolution, StreamId(0), false, what))
}

/// The contents of a descriptor.
fn described(resolution: &mut Resolution<'_>, bytes: &[u8], form: Form) -> Option<Transfer> {
    let word = |at: usize| -> Option<u64> {
        Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
    };
    let (fields, shape_at, size) = match form {
        Form::Flat => (&FLAT, FLAT_SHAPE, 128),
        Form::Deep | Form::Peer => (&DEEP, DEEP_SHAPE, 200),
    };
    if bytes.len() != size {
        // The first ABI had 32-bit addresses, in a layout of its own.
        resolution.gaps.not_understood(resolution.call.api.name());
        return None;
    }
    let shape = Extents {
        width: word(shape_at)?,
        rows: word(shape_at + 8)?,
        slices: if form == Form::Flat { 1 } else { word(shape_at + 16)? },
    };
    let end = |f: &Fields| -> Option<End> {
        let z = f.z.and_then(word).unwrap_or(0);
        let (side, base) = match word(f.memory_type)? as u32 {
            1 => (HOST, word(f.host)?),
            2 => (DEVICE, word(f.host + 8)?),
            3 => return Some(End::array(word(f.host + 16)?, (word(f.x)?, word(f.x + 8)?, z))),
            _ => (ANY, word(f.host + 8)?),
        };
        let pitch = match word(f.pitch)? {
            0 => shape.width,
            pitch => pitch,
        };
        let height = f.height.and_then(word).filter(|&height| height != 0).unwrap_or(shape.rows);
        let slice_pitch = pitch.saturating_mul(height);
        let start = base
            .saturating_add(z.saturating_mul(slice_pitch))
            .saturating_add(word(f.x + 8)?.saturating_mul(pitch))
            .saturating_add(word(f.x)?);
        Some(End { at: At::Address(side, start), pitch, slice_pitch })
    };
    let (source, destination) = (end(&fields[0])?, end(&fields[1])?);
    let peer = match form {
        Form::Peer => Some((
            resolution.context(word(PEER_CONTEXTS[0])?),
            resolution.context(word(PEER_CONTEXTS[1])?),
        )),
        _ => None,
    };
    Some(Transfer { destination, source, shape, peer, source_order: SourceOrder::Stream })
}

/// `cuMemsetD*(dst, value, count[, stream])`.
pub(super) fn memset(
    resolution: &mut Resolution<'_>,
    element: u64,
    stream: Option<usize>,
) -> Option<Action> {
    let shape = Extents::linear(resolution.call.arg(2).saturating_mul(element));
    fill(resolution, End::linear(DEVICE, resolution.call.arg(0)), shape, stream)
}

/// `cuMemsetD2D*(dst, pitch, value, width, height[, stream])`.
pub(super) fn memset_rows(
    resolution: &mut Resolution<'_>,
    element: u64,
    stream: Option<usize>,
) -> Option<Action> {
    let width = resolution.call.arg(3).saturating_mul(element);
    let shape = Extents { width, rows: resolution.call.arg(4), slices: 1 };
    let end = End { pitch: resolution.call.arg(1), ..End::linear(DEVICE, resolution.call.arg(0)) };
    fill(resolution, end, shape, stream)
}

/// The memset node of a graph: `rows` of `width` bytes.
pub(super) fn memset_node(
    resolution: &mut Resolution<'_>,
    start: u64,
    pitch: u64,
    width: u64,
    rows: u64,
) -> MemoryKind {
    let end = End { pitch, ..End::linear(DEVICE, start) };
    touch_end(resolution, end, Extents { width, rows, slices: 1 }, Mode::Write).0
}

fn fill(
    resolution: &mut Resolution<'_>,
    end: End,
    shape: Extents,
    stream: Option<usize>,
) -> Option<Action> {
    let (stream, synchronous) = carrier(resolution, stream)?;
    let (destination, allocation) = touch_end(resolution, end, shape, Mode::Write);
    let sync_memops = waits_by_request(resolution, synchronous, [allocation, None]);
    Some(Action::Memset { stream, synchronous, destination, sync_memops })
}
