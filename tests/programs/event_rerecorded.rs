//! One event is used for two streams in turn.
//!
//! The hazard: the second record replaces the first before anybody waited for it.
//!
//! racy: one RAW, the first memset against its download, certain. clean: one event a stream.

use program_support::{
    DeviceBuffer, Event, Failure, Gpu, PinnedBuffer, Stream, Variant, check, copy_to_host,
    set_bytes,
};

const LEN: usize = 4096;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let (left, right) = (Stream::non_blocking()?, Stream::non_blocking()?);
    let gather = Stream::non_blocking()?;
    let (shared, own) = (Event::create()?, Event::create()?);
    let (from_left, from_right) = (DeviceBuffer::alloc(LEN)?, DeviceBuffer::alloc(LEN)?);
    let result = PinnedBuffer::filled(2 * LEN, 0)?;

    set_bytes(from_left.all(), 4, &left)?;
    let left_done = if variant.is_racy() { &shared } else { &own };
    left_done.record(&left)?;
    set_bytes(from_right.all(), 6, &right)?;
    shared.record(&right)?;

    gather.wait(left_done)?;
    gather.wait(&shared)?;
    copy_to_host(&result, 0, from_left.all(), &gather)?;
    copy_to_host(&result, LEN, from_right.all(), &gather)?;
    gpu.synchronize_current_context()?;

    if !variant.is_racy() {
        check("byte of the left stream", result.byte(LEN - 1).into(), 4)?;
    }
    check("byte of the right stream", result.byte(2 * LEN - 1).into(), 6)?;
    for event in [shared, own] {
        event.destroy()?;
    }
    for stream in [left, right, gather] {
        stream.destroy()?;
    }
    from_left.free()?;
    from_right.free()?;
    result.free()?;
    gpu.close()
}
