//! Copies that come as a list or with attributes.

use super::copies::{ANY, At, End, Extents, Transfer, transfer};
use super::resolution::Resolution;
use std::sync::Arc;
use streamsan_model::{
    Action, Basis, Batch, BatchEntry, ByteRange, Extent, Mode, SourceOrder, StreamId,
};

/// `sizeof(CUmemcpyAttributes)`; the order of the source's accesses comes first.
const ATTRIBUTES: usize = 24;
/// `sizeof(CUDA_MEMCPY3D_BATCH_OP)` and its parts: two operands, an extent, the order.
const OPERATION: usize = 112;
const OPERAND: usize = 40;
const EXTENT: usize = 80;
const ORDER: usize = 104;
/// `CU_MEMCPY_OPERAND_TYPE_ARRAY`.
const OPERAND_IS_ARRAY: u32 = 2;
/// `sizeof(CUmemDecompressParams)`.
const DECOMPRESS: usize = 64;

fn number(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes)
}

fn half(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes)
}

/// `CUmemcpySrcAccessOrder`.
fn order(code: u32) -> SourceOrder {
    match code {
        2 => SourceOrder::DuringCall,
        3 => SourceOrder::Any,
        _ => SourceOrder::Stream,
    }
}

fn stream(resolution: &mut Resolution<'_>) -> Option<StreamId> {
    let signature = resolution.call.api.signature();
    let index = signature.index_of("hStream").or_else(|| signature.index_of("stream"))?;
    resolution.stream(resolution.call.arg(index))
}

fn linear(destination: u64, source: u64, bytes: u64, source_order: SourceOrder) -> Transfer {
    Transfer {
        destination: End::linear(ANY, destination),
        source: End::linear(ANY, source),
        shape: Extents::linear(bytes),
        peer: None,
        source_order,
    }
}

/// `cuMemcpyWithAttributesAsync(dst, src, bytes, attributes, stream)`.
pub(super) fn with_attributes(resolution: &mut Resolution<'_>) -> Option<Action> {
    let stream = stream(resolution)?;
    let order = order(resolution.call.pointee.as_deref().map_or(0, |bytes| half(bytes, 0)));
    let what =
        linear(resolution.call.arg(0), resolution.call.arg(1), resolution.call.arg(2), order);
    Some(Action::Copy(transfer(resolution, stream, false, what)))
}

/// `cuMemcpy3DWithAttributesAsync(operation, flags, stream)`.
pub(super) fn box_with_attributes(resolution: &mut Resolution<'_>) -> Option<Action> {
    let stream = stream(resolution)?;
    let operation = resolution.call.pointee.clone()?;
    let what = box_of(resolution, &operation);
    Some(Action::Copy(transfer(resolution, stream, false, what)))
}

/// A `CUDA_MEMCPY3D_BATCH_OP`. Its sizes count elements: bytes, unless an array is involved.
fn box_of(resolution: &mut Resolution<'_>, operation: &[u8]) -> Transfer {
    let operands = [&operation[..OPERAND], &operation[OPERAND..2 * OPERAND]];
    let arrays = operands.map(|operand| {
        (half(operand, 0) == OPERAND_IS_ARRAY)
            .then(|| resolution.tables.arrays.find(number(operand, 8)))
    });
    let element = match arrays.into_iter().flatten().flatten().next() {
        Some(array) => array.element.unwrap_or_else(|| {
            resolution
                .gaps
                .not_understood(&format!("{} (format of an array)", resolution.call.api.name()));
            1
        }),
        None => 1,
    };
    let size = |index: usize| number(operation, EXTENT + 8 * index);
    let shape = Extents { width: size(0).saturating_mul(element), rows: size(1), slices: size(2) };
    let end = |operand: &[u8]| {
        let field = |index: usize| number(operand, 8 + 8 * index);
        if half(operand, 0) == OPERAND_IS_ARRAY {
            let x = field(1).saturating_mul(element);
            return End::array(field(0), (x, field(2), field(3)));
        }
        let pitch = match field(1) {
            0 => shape.width,
            length => length.saturating_mul(element),
        };
        let rows = if field(2) == 0 { shape.rows } else { field(2) };
        End { at: At::Address(ANY, field(0)), pitch, slice_pitch: pitch.saturating_mul(rows) }
    };
    Transfer {
        source: end(operands[0]),
        destination: end(operands[1]),
        shape,
        peer: None,
        source_order: order(half(operation, ORDER)),
    }
}

/// Resolves the copies of a batch, each a part of the operation.
fn batch(
    resolution: &mut Resolution<'_>,
    stream: StreamId,
    copies: impl Iterator<Item = Transfer>,
) -> Option<Action> {
    let mut entries = Vec::new();
    for what in copies {
        resolution.next_part();
        let copy = transfer(resolution, stream, false, what);
        entries.push(BatchEntry { copy, accesses: resolution.part_len() });
    }
    Some(Action::Batch(Arc::new(Batch { stream, entries })))
}

/// `cuMemcpyBatchAsync(dsts, srcs, sizes, count, attributes, first copies of each, number of
/// attributes, ..., stream)`.
pub(super) fn linear_batch(resolution: &mut Resolution<'_>) -> Option<Action> {
    let stream = stream(resolution)?;
    let (destinations, sources) = (resolution.input_words(0, 3)?, resolution.input_words(1, 3)?);
    let sizes = resolution.input_words(2, 3)?;
    let attributes = resolution.input_list(4, 6, ATTRIBUTES)?;
    let first = resolution.input_words(5, 6)?;
    let order_of = |index: usize| {
        let attribute = first.iter().rposition(|&first| first <= index as u64)?;
        Some(order(half(&attributes, attribute * ATTRIBUTES)))
    };
    let copies = destinations.iter().zip(&sources).zip(&sizes).enumerate();
    let copies = copies.map(|(index, ((&destination, &source), &bytes))| {
        linear(destination, source, bytes, order_of(index).unwrap_or_default())
    });
    batch(resolution, stream, copies)
}

/// `cuMemcpy3DBatchAsync(count, operations, ..., stream)`.
pub(super) fn box_batch(resolution: &mut Resolution<'_>) -> Option<Action> {
    let stream = stream(resolution)?;
    let list = resolution.input_list(1, 0, OPERATION)?;
    let boxes: Vec<_> =
        list.chunks_exact(OPERATION).map(|entry| box_of(resolution, entry)).collect();
    batch(resolution, stream, boxes.into_iter())
}

/// `cuMemBatchDecompressAsync(parameters, count, ..., stream)`. Each writes its output and, where
/// asked to, how long that became.
pub(super) fn decompress(resolution: &mut Resolution<'_>) -> Option<Action> {
    let stream = stream(resolution)?;
    let list = resolution.input_list(0, 1, DECOMPRESS)?;
    let mut entries = Vec::new();
    for entry in list.chunks_exact(DECOMPRESS) {
        let (from, to) = (number(entry, 0), number(entry, 8));
        let (actual, source, destination) =
            (number(entry, 16), number(entry, 24), number(entry, 32));
        resolution.next_part();
        let what = Transfer {
            shape: Extents::linear(to),
            source: End::linear(ANY, source),
            ..linear(destination, source, to, SourceOrder::Stream)
        };
        let copy =
            super::copies::transfer_sized(resolution, stream, false, what, Extents::linear(from));
        if actual != 0 {
            let (_, allocation) = super::copies::place(resolution, ANY, actual);
            let extent = Extent::Range(ByteRange::with_len(actual, 4));
            resolution.touch(allocation, extent, Mode::Write, Basis::Exact);
        }
        entries.push(BatchEntry { copy, accesses: resolution.part_len() });
    }
    Some(Action::Batch(Arc::new(Batch { stream, entries })))
}
