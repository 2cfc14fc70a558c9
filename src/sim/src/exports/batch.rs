//! Batches of copies, and copies with attributes.

use super::args::{In, Out};
use super::copy::flat;
use super::enter::twins;
use crate::driver::{BatchEntry, Call, CopyEnd, CopySpec, DefaultStream, Role, SourceOrder};
use crate::errors::{CuError, Outcome};

/// CUmemcpyAttributes: order of the source's access, hints of two locations, flags.
type Attributes = [u32; 6];

/// One end of a CUDA_MEMCPY3D_BATCH_OP: a pointer with its lengths in elements, or an array.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Operand {
    kind: u32,
    start: u64,
    row_length: u64,
    layer_height: u64,
    hint: u64,
}

/// CUDA_MEMCPY3D_BATCH_OP.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Box3D {
    source: Operand,
    destination: Operand,
    width: u64,
    height: u64,
    depth: u64,
    order: u32,
    flags: u32,
}

const _: () = assert!(size_of::<Operand>() == 40 && size_of::<Box3D>() == 112);

const POINTER: u32 = 1;
const ARRAY: u32 = 2;

fn entry(to: u64, from: u64, bytes: u64, attributes: &Attributes) -> Outcome<BatchEntry> {
    let spec = flat((Role::Unified, to), (Role::Unified, from), bytes);
    Ok(BatchEntry { spec, order: SourceOrder::from_number(attributes[0])? })
}

impl Operand {
    /// Lengths of 0 mean that rows and slices follow each other without a gap.
    fn end(&self, of: &Box3D) -> Outcome<CopyEnd> {
        match self.kind {
            POINTER => {}
            ARRAY => return Err(CuError::NOT_SUPPORTED),
            _ => return Err(CuError::INVALID_VALUE),
        }
        let pitch = if self.row_length == 0 { of.width } else { self.row_length };
        let rows = if self.layer_height == 0 { of.height } else { self.layer_height };
        let slice = pitch.checked_mul(rows).ok_or(CuError::INVALID_VALUE)?;
        Ok(CopyEnd { role: Role::Unified, start: self.start, pitch, slice })
    }
}

impl Box3D {
    fn entry(&self) -> Outcome<BatchEntry> {
        let (source, destination) = (self.source.end(self)?, self.destination.end(self)?);
        let (width, height, depth) = (self.width, self.height, self.depth);
        let spec = CopySpec { source, destination, width, height, depth };
        Ok(BatchEntry { spec, order: SourceOrder::from_number(self.order)? })
    }
}

/// The attributes of each entry: those of the last index not above it.
struct Batch {
    to: In<u64>,
    from: In<u64>,
    sizes: In<u64>,
    count: u64,
    attributes: In<Attributes>,
    starts: In<u64>,
    attribute_count: u64,
}

impl Batch {
    fn entries(&self) -> Outcome<Vec<BatchEntry>> {
        let (mut entries, mut group) = (Vec::new(), 0);
        if self.attribute_count == 0 || self.starts.get()? != 0 {
            return Err(CuError::INVALID_VALUE);
        }
        for index in 0..self.count as usize {
            let next = group + 1;
            if (next as u64) < self.attribute_count && self.starts.at(next)? == index as u64 {
                group = next;
            }
            let (to, from) = (self.to.at(index)?, self.from.at(index)?);
            entries.push(entry(to, from, self.sizes.at(index)?, &self.attributes.at(group)?)?);
        }
        Ok(entries)
    }
}

fn boxes(list: In<Box3D>, count: u64) -> Outcome<Vec<BatchEntry>> {
    (0..count as usize).map(|index| list.at(index)?.entry()).collect()
}

/// Submits a batch and tells the place of an entry that is refused, the greatest number for none.
fn submit(
    call: &Call,
    entries: Outcome<Vec<BatchEntry>>,
    failed: Out<u64>,
    stream: u64,
    default: DefaultStream,
) -> Outcome {
    failed.set_if_wanted(u64::MAX);
    let result = entries.map_err(|error| (error, usize::MAX));
    result.and_then(|entries| call.copy_batch(&entries, stream, default)).map_err(
        |(error, place)| {
            failed.set_if_wanted(place as u64);
            error
        },
    )
}

twins! { TWINS;
    fn cuMemcpyBatchAsync / cuMemcpyBatchAsync_ptsz(
        to: In<u64>,
        from: In<u64>,
        sizes: In<u64>,
        count: u64,
        attributes: In<Attributes>,
        starts: In<u64>,
        attribute_count: u64,
        failed: Out<u64>,
        stream: u64,
    ) |call, default| {
        let batch = Batch { to, from, sizes, count, attributes, starts, attribute_count };
        submit(call, batch.entries(), failed, stream, default)
    }
    fn cuMemcpyBatchAsync_v2 / cuMemcpyBatchAsync_v2_ptsz(
        to: In<u64>,
        from: In<u64>,
        sizes: In<u64>,
        count: u64,
        attributes: In<Attributes>,
        starts: In<u64>,
        attribute_count: u64,
        stream: u64,
    ) |call, default| {
        let batch = Batch { to, from, sizes, count, attributes, starts, attribute_count };
        submit(call, batch.entries(), Out::NULL, stream, default)
    }
    fn cuMemcpyWithAttributesAsync / cuMemcpyWithAttributesAsync_ptsz(
        to: u64,
        from: u64,
        bytes: u64,
        attributes: In<Attributes>,
        stream: u64,
    ) |call, default| {
        let entries = entry(to, from, bytes, &attributes.get()?).map(|entry| vec![entry]);
        submit(call, entries, Out::NULL, stream, default)
    }
    fn cuMemcpy3DBatchAsync / cuMemcpy3DBatchAsync_ptsz(
        count: u64,
        list: In<Box3D>,
        failed: Out<u64>,
        flags: u64,
        stream: u64,
    ) |call, default| {
        if flags != 0 {
            return Err(CuError::INVALID_VALUE);
        }
        submit(call, boxes(list, count), failed, stream, default)
    }
    fn cuMemcpy3DBatchAsync_v2 / cuMemcpy3DBatchAsync_v2_ptsz(
        count: u64,
        list: In<Box3D>,
        flags: u64,
        stream: u64,
    ) |call, default| {
        if flags != 0 {
            return Err(CuError::INVALID_VALUE);
        }
        submit(call, boxes(list, count), Out::NULL, stream, default)
    }
    fn cuMemcpy3DWithAttributesAsync / cuMemcpy3DWithAttributesAsync_ptsz(
        list: In<Box3D>,
        flags: u64,
        stream: u64,
    ) |call, default| {
        if flags != 0 {
            return Err(CuError::INVALID_VALUE);
        }
        submit(call, boxes(list, 1), Out::NULL, stream, default)
    }
}
