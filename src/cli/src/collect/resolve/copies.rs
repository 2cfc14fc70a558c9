//! Copies and memsets: exact bytes on both sides.

use super::lookup::Lookup;
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
struct Shape {
    width: u64,
    rows: u64,
    slices: u64,
}

impl Shape {
    fn linear(bytes: u64) -> Self {
        Self { width: bytes, rows: 1, slices: 1 }
    }

    fn bytes(self) -> u64 {
        self.width.saturating_mul(self.rows).saturating_mul(self.slices)
    }
}

/// One end of a copy that lies in linear memory.
#[derive(Clone, Copy, Debug)]
struct End {
    side: Side,
    /// Address of the first byte.
    start: u64,
    pitch: u64,
    slice_pitch: u64,
}

impl End {
    fn linear(side: Side, start: u64) -> Self {
        Self { side, start, pitch: 0, slice_pitch: 0 }
    }

    fn extent(self, shape: Shape) -> Option<Extent> {
        let Shape { width, rows, slices } = shape;
        // The driver refuses smaller pitches; zeros stand for rows without gaps.
        let pitch = self.pitch.max(width);
        let slice_pitch = self.slice_pitch.max(pitch.saturating_mul(rows));
        let pattern = StridedPattern { start: self.start, width, pitch, rows, slice_pitch, slices };
        let last =
            slice_pitch.checked_mul(slices).and_then(|len| self.start.checked_add(len)).is_some();
        last.then(|| Extent::strided(pattern))?
    }
}

/// Which allocation an address belongs to, and what kind of memory that is.
fn place(l: &mut Lookup<'_>, side: Side, address: u64) -> (MemoryKind, AllocationId) {
    if let Some(block) = l.tables.memory.find(address) {
        return (block.kind, block.id);
    }
    // Freed host memory lives on as ordinary memory; device memory does not, so that an address in
    // it is a use after free.
    if side != Side::Host
        && let Some(block) = l.tables.memory.find_past(address)
        && !block.kind.is_host()
    {
        return (block.kind, block.id);
    }
    match side {
        Side::Device => (MemoryKind::Device, l.foreign()),
        Side::Host | Side::Any => (MemoryKind::Pageable, l.pageable()),
    }
}

/// The stream that carries the operation, and whether it is a synchronous form.
fn carrier(l: &mut Lookup<'_>, stream: Option<usize>) -> Option<(StreamId, bool)> {
    match stream {
        Some(index) => Some((l.stream(l.call.arg(index))?, false)),
        None => Some((l.default_stream(), true)),
    }
}

fn copy(
    l: &mut Lookup<'_>,
    destination: Option<End>,
    source: Option<End>,
    shape: Shape,
    stream: Option<usize>,
    peer: Option<(ContextId, ContextId)>,
) -> Option<Action> {
    let (stream, synchronous) = carrier(l, stream)?;
    let mut end = |end: Option<End>, mode: Mode| match end {
        Some(end) => {
            let (kind, allocation) = place(l, end.side, end.start);
            if let Some(extent) = end.extent(shape) {
                l.touch(allocation, extent, mode, Basis::Exact);
            }
            kind
        }
        // The bytes of an array have no address.
        None => MemoryKind::Device,
    };
    let source_kind = end(source, Mode::Read);
    let destination_kind = end(destination, Mode::Write);
    if destination.is_none() || source.is_none() {
        l.gaps.not_understood(&format!("{} (CUDA array)", l.call.api.name()));
    }
    Some(Action::Copy(Copy {
        stream,
        synchronous,
        source: source_kind,
        destination: destination_kind,
        peer,
        bytes: shape.bytes(),
        source_order: SourceOrder::Stream,
        sync_memops: false,
    }))
}

/// `cuMemcpy*(dst, src, bytes[, stream])`.
pub(super) fn linear(
    l: &mut Lookup<'_>,
    destination: Side,
    source: Side,
    stream: Option<usize>,
) -> Option<Action> {
    let destination = End::linear(destination, l.call.arg(0));
    let source = End::linear(source, l.call.arg(1));
    copy(l, Some(destination), Some(source), Shape::linear(l.call.arg(2)), stream, None)
}

/// `cuMemcpyPeer*(dst, dst context, src, src context, bytes[, stream])`.
pub(super) fn peer(l: &mut Lookup<'_>, stream: Option<usize>) -> Option<Action> {
    let contexts = (l.context(l.call.arg(3)), l.context(l.call.arg(1)));
    let destination = End::linear(ANY, l.call.arg(0));
    let source = End::linear(ANY, l.call.arg(2));
    let shape = Shape::linear(l.call.arg(4));
    copy(l, Some(destination), Some(source), shape, stream, Some(contexts))
}

/// Copies from and to arrays; each linear end as its parameter index and side.
pub(super) fn array(
    l: &mut Lookup<'_>,
    destination: Option<(usize, Side)>,
    source: Option<(usize, Side)>,
    bytes: usize,
    stream: Option<usize>,
) -> Option<Action> {
    let shape = Shape::linear(l.call.arg(bytes));
    let end = |end: Option<(usize, Side)>| end.map(|(i, side)| End::linear(side, l.call.arg(i)));
    let (destination, source) = (end(destination), end(source));
    copy(l, destination, source, shape, stream, None)
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
pub(super) fn descriptor(l: &mut Lookup<'_>, form: Form, stream: Option<usize>) -> Option<Action> {
    let bytes = l.call.pointee.clone().unwrap_or_default();
    let word = |at: usize| -> Option<u64> {
        Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
    };
    let (fields, shape_at, size) = match form {
        Form::Flat => (&FLAT, FLAT_SHAPE, 128),
        Form::Deep | Form::Peer => (&DEEP, DEEP_SHAPE, 200),
    };
    if bytes.len() != size {
        // The first ABI had 32-bit addresses, in a layout of its own.
        l.gaps.not_understood(l.call.api.name());
        return None;
    }
    let shape = Shape {
        width: word(shape_at)?,
        rows: word(shape_at + 8)?,
        slices: if form == Form::Flat { 1 } else { word(shape_at + 16)? },
    };
    let end = |f: &Fields| -> Option<Option<End>> {
        let (side, base) = match word(f.memory_type)? as u32 {
            1 => (HOST, word(f.host)?),
            2 => (DEVICE, word(f.host + 8)?),
            4 => (ANY, word(f.host + 8)?),
            _ => return Some(None),
        };
        let pitch = match word(f.pitch)? {
            0 => shape.width,
            pitch => pitch,
        };
        let height = f.height.and_then(word).filter(|&height| height != 0).unwrap_or(shape.rows);
        let slice_pitch = pitch.saturating_mul(height);
        let z = f.z.and_then(word).unwrap_or(0);
        let start = base
            .saturating_add(z.saturating_mul(slice_pitch))
            .saturating_add(word(f.x + 8)?.saturating_mul(pitch))
            .saturating_add(word(f.x)?);
        Some(Some(End { side, start, pitch, slice_pitch }))
    };
    let (source, destination) = (end(&fields[0])?, end(&fields[1])?);
    let contexts = match form {
        Form::Peer => {
            Some((l.context(word(PEER_CONTEXTS[0])?), l.context(word(PEER_CONTEXTS[1])?)))
        }
        _ => None,
    };
    copy(l, destination, source, shape, stream, contexts)
}

/// `cuMemsetD*(dst, value, count[, stream])`.
pub(super) fn memset(l: &mut Lookup<'_>, element: u64, stream: Option<usize>) -> Option<Action> {
    let shape = Shape::linear(l.call.arg(2).saturating_mul(element));
    fill(l, End::linear(DEVICE, l.call.arg(0)), shape, stream)
}

/// `cuMemsetD2D*(dst, pitch, value, width, height[, stream])`.
pub(super) fn memset_rows(
    l: &mut Lookup<'_>,
    element: u64,
    stream: Option<usize>,
) -> Option<Action> {
    let width = l.call.arg(3).saturating_mul(element);
    let shape = Shape { width, rows: l.call.arg(4), slices: 1 };
    let end = End { pitch: l.call.arg(1), ..End::linear(DEVICE, l.call.arg(0)) };
    fill(l, end, shape, stream)
}

fn fill(l: &mut Lookup<'_>, end: End, shape: Shape, stream: Option<usize>) -> Option<Action> {
    let (stream, synchronous) = carrier(l, stream)?;
    let (destination, allocation) = place(l, end.side, end.start);
    if let Some(extent) = end.extent(shape) {
        l.touch(allocation, extent, Mode::Write, Basis::Exact);
    }
    Some(Action::Memset { stream, synchronous, destination, sync_memops: false })
}
