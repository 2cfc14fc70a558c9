//! A stream for each piece of work: created, used for a copy and a memset, waited for, destroyed; then
//! as many that copy from one place and are destroyed before anybody waits.
//!
//! The hazard: none in what is waited for, however many streams read one source; what two streams
//! of one time do to one buffer has no order.
//!
//! racy: the last two streams set one buffer: one WAW, certain. clean: each has its own.

use program_support::{
    DeviceBuffer, Failure, Gpu, Stream, Variant, copy_on_device, copy_pageable_to_device, set_bytes,
};

const LEN: usize = 256;
const PART: usize = 16;
/// More streams than the analysis keeps unordered accesses of a byte.
const STREAMS: usize = 1_500;

/// Ordinary host memory.
static SOURCE: [u8; LEN] = [7; LEN];

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let (copied, set) = (DeviceBuffer::alloc(LEN)?, DeviceBuffer::alloc(2 * LEN)?);
    for _ in 0..STREAMS {
        let stream = Stream::non_blocking()?;
        copy_pageable_to_device(copied.all(), &SOURCE, &stream)?;
        set_bytes(set.all(), 1, &stream)?;
        stream.synchronize()?;
        stream.destroy()?;
    }
    let parts = DeviceBuffer::alloc(STREAMS * PART)?;
    for start in (0..STREAMS).map(|number| number * PART) {
        let stream = Stream::non_blocking()?;
        copy_on_device(parts.part(start..start + PART), set.part(0..PART), &stream)?;
        stream.destroy()?;
    }
    gpu.synchronize_current_context()?;
    let (one, other) = (Stream::non_blocking()?, Stream::non_blocking()?);
    set_bytes(set.part(0..LEN), 2, &one)?;
    let rest = if variant.is_racy() { set.all() } else { set.part(LEN..2 * LEN) };
    set_bytes(rest, 3, &other)?;
    one.destroy()?;
    other.destroy()?;
    gpu.synchronize_current_context()?;
    copied.free()?;
    parts.free()?;
    set.free()?;
    gpu.close()
}
